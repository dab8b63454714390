// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <string.h>

#include "nf/router/kernel.h"
#include "nf/router/network.h"
#include "nf/router/paths.h"
#include "packet/ipv4_fragment.h"
#include "packet/ipv6.h"

#define WAIT_S 4 // a packet waits no longer: the neighbour is asked for 3 s

// Bytes of the IP packet, which is sound.
static uint32_t ip_len(const struct cv_view *view)
{
	const uint8_t *ip = cv_router_l3(view);

	return view->proto == CV_PROTO_IPV6
		       ? CV_IPV6_LEN + rte_be_to_cpu_16(((struct cv_ipv6 *)ip)->payload_len)
		       : rte_be_to_cpu_16(((struct cv_ipv4 *)ip)->total_len);
}

static struct cv_address destination_of(const struct cv_view *view)
{
	const uint8_t *ip = cv_router_l3(view);
	const bool v6 = view->proto == CV_PROTO_IPV6;

	return cv_router_address(v6, v6 ? ip + 24 : ip + 16);
}

static void rewrite(struct cv_view *view, const struct cv_adjacency *adjacency)
{
	memcpy(view->data, adjacency, 2 * CV_MAC_LEN);
	view->out = adjacency->port;
}

// Takes what is behind the IP packet off a frame that is too long with it. False: it cannot.
static bool fits(struct cv_router_packet packet, uint16_t mtu)
{
	const uint32_t behind = packet.view->len - packet.view->l3 - ip_len(packet.view);

	return packet.view->len - packet.view->l3 <= mtu ||
	       cv_nf_trim(packet.worker, packet.view, (uint16_t)behind);
}

static uint8_t tell_and_drop(struct cv_router_packet packet, enum cv_icmp_reason reason,
	uint32_t value, enum cv_router_drop why)
{
	cv_network_restore_ttl(packet.view);
	cv_network_tell(packet, reason, value);
	return CV_DROP(why);
}

static bool may_fragment(const struct cv_view *view)
{
	return view->proto == CV_PROTO_IPV4 &&
	       !(((const struct cv_ipv4 *)cv_router_l3(view))->fragment & CV_IPV4_DF);
}

// The packet becomes its first fragment; the others are made behind it.
static uint8_t fragment(struct cv_router_packet packet, const struct cv_adjacency *adjacency)
{
	struct cv_view *view = packet.view;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)cv_router_l3(view);
	struct cv_ipv4_fragments parts;

	cv_ipv4_fragments(ip, adjacency->mtu, &parts);
	if (parts.count == 0 || view->before != 0)
		return CV_DROP(CV_ROUTER_TOO_BIG);
	rewrite(view, adjacency);
	for (uint16_t i = 1; i < parts.count; i++) {
		const uint16_t len = cv_ipv4_fragment_len(&parts, i);
		uint8_t *frame = cv_nf_originate(
			packet.worker, view->l3 + len, view->in, view->out, CV_NF_BEHIND);

		if (frame == NULL)
			return CV_DROP(CV_ROUTER_NO_BUFFER);
		memcpy(frame, view->data, view->l3);
		cv_ipv4_fragment(ip, &parts, i, frame + view->l3);
	}
	cv_ipv4_fragment_first(ip, &parts);
	if (!cv_nf_trim(packet.worker, view, view->len - view->l3 - parts.first_len))
		return CV_DROP(CV_ROUTER_NO_BUFFER);
	cv_network_count(&cv_network_worker_of(packet.network, packet.worker)->fragmented);
	return CV_NEXT;
}

// The packet has a next hop whose address is known.
static uint8_t go(struct cv_router_packet packet, const struct cv_adjacency *adjacency)
{
	if (ip_len(packet.view) <= adjacency->mtu) {
		if (!fits(packet, adjacency->mtu))
			return CV_DROP(CV_ROUTER_TOO_BIG);
		rewrite(packet.view, adjacency);
		return CV_NEXT;
	}
	if (may_fragment(packet.view))
		return fragment(packet, adjacency);
	return tell_and_drop(packet, CV_ICMP_TOO_BIG, adjacency->mtu, CV_ROUTER_TOO_BIG);
}

static uint8_t wait_for(
	struct cv_router_packet packet, const struct cv_neighbour_key *key, uint32_t at)
{
	struct cv_network_worker *own = cv_network_worker_of(packet.network, packet.worker);
	struct cv_router_waiting *waiting = &own->waiting[own->waiting_count];

	// One that is to be fragmented waits whole: IP alone, in its own buffer.
	if ((ip_len(packet.view) > packet.network->port[key->port].mtu &&
		    packet.view->before != 0) ||
		!fits(packet, packet.network->port[key->port].mtu) ||
		own->waiting_count == CV_WAIT_PACKETS || own->waits[at] == CV_WAIT_EACH ||
		own->waiting_bytes + cv_view_packet_len(packet.view) > CV_WAIT_BYTES ||
		!cv_nf_hold(packet.worker, packet.view, &waiting->held))
		return CV_DROP(CV_ROUTER_WAIT_FULL);
	waiting->key = *key;
	waiting->at = at;
	waiting->since = packet.worker->now;
	own->waiting_count++;
	own->waiting_bytes += cv_view_packet_len(packet.view);
	own->waits[at]++;
	return CV_HELD;
}

// Has the neighbour asked for, or its state changed, because something is to go there.
static enum cv_neighbour_use use(
	struct cv_router_packet packet, const struct cv_neighbour_key *key, uint32_t *at)
{
	const struct cv_neighbour_tags tags = cv_network_tags(packet.view);
	struct cv_neighbour_event event;
	enum cv_neighbour_use result = cv_neighbour_table_use(
		&packet.network->table, key, &tags, packet.worker->now, at, &event);

	cv_network_ask(packet.network, packet.worker, &event);
	return result;
}

static uint8_t to_neighbour(struct cv_router_packet packet, const struct cv_neighbour_key *key)
{
	struct cv_adjacency adjacency;
	enum cv_neighbour_use result;
	uint32_t at;

	if (cv_neighbour_table_forward(&packet.network->table, key, &adjacency))
		return go(packet, &adjacency);
	if (cv_network_source(packet.network, key->port, &key->address) == NULL)
		return CV_DROP(CV_ROUTER_NO_NEIGHBOUR); // nobody would know whom to answer
	if (ip_len(packet.view) > packet.network->port[key->port].mtu && !may_fragment(packet.view))
		return tell_and_drop(packet, CV_ICMP_TOO_BIG, packet.network->port[key->port].mtu,
			CV_ROUTER_TOO_BIG);
	result = use(packet, key, &at);
	if (result == CV_NEIGHBOUR_WAIT)
		return wait_for(packet, key, at);
	if (result == CV_NEIGHBOUR_GO &&
		cv_neighbour_table_forward(&packet.network->table, key, &adjacency))
		return go(packet, &adjacency);
	return CV_DROP(CV_ROUTER_NO_NEIGHBOUR);
}

// The neighbour that an adjacency leads to, for a packet to this address.
static struct cv_neighbour_key key_of(
	const struct cv_network *network, uint32_t at, const struct cv_address *to)
{
	const struct cv_adjacency *adjacency = &cv_network_fib(network)->adjacency[at];

	if (adjacency->outcome == CV_FIB_LINK)
		return (struct cv_neighbour_key){.address = *to, .port = adjacency->port};
	return network->table.entry[at - cv_network_fib(network)->neighbours_at]
		.key; // pinned: it stays
}

// Whether an adjacency leads to a neighbour that does not answer, or was never asked; then key is its.
static bool is_silent(const struct cv_network *network, uint32_t at, struct cv_neighbour_key *key)
{
	const struct cv_fib *fib = cv_network_fib(network);
	enum cv_neighbour_state state;

	if (fib->adjacency[at].outcome != CV_FIB_NEIGHBOUR)
		return false;
	*key = key_of(network, at, NULL);
	state = cv_neighbour_table_state(&network->table, at - fib->neighbours_at, key);
	return state == CV_NEIGHBOUR_FAILED || state == CV_NEIGHBOUR_INCOMPLETE;
}

// One of several next hops: the flow's own, unless that neighbour does not answer. Then it is one that
// packets go straight on to, or else one whose address is known; what is not known is asked for.
static uint32_t path_of(struct cv_router_packet packet, uint32_t paths, uint32_t flow)
{
	const struct cv_fib *fib = cv_network_fib(packet.network);
	const struct cv_adjacency *all = &fib->adjacency[paths];
	const uint32_t chosen = cv_paths_choose(fib, paths, flow);
	uint32_t known = chosen, at;
	struct cv_neighbour_key key;

	if (!is_silent(packet.network, chosen, &key))
		return chosen;
	use(packet, &key, &at); // it is asked for again
	for (uint32_t i = 0; i < all->count; i++) {
		const uint32_t other = fib->path[all->first + i];

		if (__atomic_load_n(&fib->adjacency[other].mtu, __ATOMIC_RELAXED) != 0)
			return other;
	}
	for (uint32_t i = 0; i < all->count; i++) {
		const uint32_t other = fib->path[all->first + i];

		if (fib->adjacency[other].outcome != CV_FIB_NEIGHBOUR)
			continue;
		if (is_silent(packet.network, other, &key))
			use(packet, &key, &at);
		else if (known == chosen)
			known = other;
	}
	return known;
}

uint8_t cv_network_onward(struct cv_router_packet packet, uint32_t at)
{
	const struct cv_fib *fib = cv_network_fib(packet.network);
	const struct cv_address to = destination_of(packet.view);
	struct cv_neighbour_key key;

	if (fib->adjacency[at].outcome == CV_FIB_PATHS)
		at = path_of(packet, at, cv_paths_flow(packet.view, fib->flow_key));
	switch (fib->adjacency[at].outcome) {
	case CV_FIB_FORWARD:
		return go(packet, &fib->adjacency[at]);
	case CV_FIB_LINK:
	case CV_FIB_NEIGHBOUR:
		key = key_of(packet.network, at, &to);
		return to_neighbour(packet, &key);
	case CV_FIB_LOCAL:
		if (packet.view->before != 0)
			return CV_DROP(CV_ROUTER_NOT_SERVED); // answers would leave its tunnel
		cv_network_restore_ttl(packet.view);
		return cv_network_answer_ip(packet);
	case CV_FIB_BROADCAST:
		return CV_DROP(CV_ROUTER_MULTICAST);
	case CV_FIB_BLACKHOLE:
		return CV_DROP(CV_ROUTER_NO_ROUTE);
	case CV_FIB_UNREACHABLE:
		return tell_and_drop(packet, CV_ICMP_HOST_UNREACHABLE, 0, CV_ROUTER_NO_ROUTE);
	case CV_FIB_PROHIBIT:
		return tell_and_drop(packet, CV_ICMP_PROHIBITED, 0, CV_ROUTER_NO_ROUTE);
	default:
		return tell_and_drop(packet, CV_ICMP_NO_ROUTE, 0, CV_ROUTER_NO_ROUTE);
	}
}

enum cv_resolved cv_network_resolve(
	struct cv_router_packet packet, const struct cv_address *to, struct cv_adjacency *adjacency)
{
	const struct cv_fib *fib = cv_network_fib(packet.network);
	struct cv_neighbour_key key = {.address = *to, .port = packet.view->in};
	uint32_t at;

	if (!to->v6 || !cv_ipv6_is_link_local(to->bytes)) {
		at = cv_fib_find(fib, to);
		if (fib->adjacency[at].outcome == CV_FIB_PATHS)
			at = path_of(packet, at, 0);
		*adjacency = fib->adjacency[at];
		if (adjacency->outcome == CV_FIB_FORWARD)
			return CV_RESOLVED;
		if (adjacency->outcome != CV_FIB_LINK && adjacency->outcome != CV_FIB_NEIGHBOUR)
			return CV_NOWHERE;
		key = key_of(packet.network, at, to);
	}
	if (cv_neighbour_table_forward(&packet.network->table, &key, adjacency))
		return CV_RESOLVED;
	return use(packet, &key, &at) == CV_NEIGHBOUR_GO &&
			       cv_neighbour_table_forward(&packet.network->table, &key, adjacency)
		       ? CV_RESOLVED
		       : CV_ASKED;
}

// A packet that has waited becomes its first fragment; the others go before it. False: it cannot be.
static bool fragment_held(struct cv_router_packet packet, const struct cv_held *held, uint16_t mtu)
{
	const struct cv_view *view = packet.view;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)cv_router_l3(view);
	struct cv_ipv4_fragments parts;

	cv_ipv4_fragments(ip, mtu, &parts);
	if (parts.count == 0)
		return false;
	for (uint16_t i = 1; i < parts.count; i++) {
		const uint16_t len = cv_ipv4_fragment_len(&parts, i);
		uint8_t *frame =
			cv_nf_originate_beside(packet.worker, held, view->l3 + len, CV_NF_BEHIND);

		if (frame == NULL)
			return false;
		memcpy(frame, view->data, view->l3);
		cv_ipv4_fragment(ip, &parts, i, frame + view->l3);
	}
	cv_ipv4_fragment_first(ip, &parts);
	cv_nf_trim_held(held, view->len - view->l3 - parts.first_len);
	cv_network_count(&cv_network_worker_of(packet.network, packet.worker)->fragmented);
	return true;
}

// What becomes of a packet that waits. False: it goes on waiting.
static bool try_release(
	struct cv_network *network, struct cv_nf_worker *worker, struct cv_router_waiting *waiting)
{
	struct cv_view view = cv_nf_held_view(&waiting->held);
	const struct cv_router_packet packet = {network, worker, &view};
	enum cv_neighbour_state state =
		cv_neighbour_table_state(&network->table, waiting->at, &waiting->key);
	struct cv_adjacency adjacency;
	uint32_t at;

	if (state == CV_NEIGHBOUR_INCOMPLETE && worker->now - waiting->since < WAIT_S * network->hz)
		return false;
	if (state == CV_NEIGHBOUR_STALE)
		use(packet, &waiting->key, &at);
	if (!cv_neighbour_table_forward(&network->table, &waiting->key, &adjacency)) {
		tell_and_drop(packet, CV_ICMP_HOST_UNREACHABLE, 0, CV_ROUTER_NO_NEIGHBOUR);
		cv_nf_drop_held(worker, &waiting->held, CV_ROUTER_NO_NEIGHBOUR);
		return true;
	}
	rewrite(&view, &adjacency);
	waiting->held.out = adjacency.port;
	if (ip_len(&view) > adjacency.mtu &&
		!fragment_held(packet, &waiting->held, adjacency.mtu)) {
		cv_nf_drop_held(worker, &waiting->held, CV_ROUTER_NO_BUFFER);
		return true;
	}
	return cv_nf_release(worker, &waiting->held, CV_NF_BEHIND);
}

static uint32_t held_bytes(const struct cv_router_waiting *waiting)
{
	const struct cv_view view = cv_nf_held_view(&waiting->held);

	return cv_view_packet_len(&view);
}

void cv_network_release(struct cv_network *network, struct cv_nf_worker *worker)
{
	struct cv_network_worker *own = cv_network_worker_of(network, worker);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < own->waiting_count; i++) {
		struct cv_router_waiting *waiting = &own->waiting[i];
		const uint32_t at = waiting->at;

		own->waiting_bytes -= held_bytes(waiting);
		if (try_release(network, worker, waiting)) {
			own->waits[at]--;
			continue;
		}
		own->waiting_bytes += held_bytes(waiting); // perhaps a first fragment by now
		own->waiting[kept++] = *waiting;
	}
	own->waiting_count = kept;
}

// 224.0.0.0/24, which no router forwards (RFC 5771 section 4): routing protocols'.
static bool is_link_group(const struct cv_view *view)
{
	const uint8_t *to = cv_router_l3(view) + 16;

	return view->proto == CV_PROTO_IPV4 && cv_mac_group(view->data) && to[0] == 224 &&
	       to[1] == 0 && to[2] == 0;
}

uint8_t cv_network_process(struct cv_network *network, struct cv_nf_worker *worker,
	struct cv_view *view, uint8_t verdict, uint32_t adjacency)
{
	const struct cv_router_packet packet = {network, worker, view};
	const bool answers = view->before == 0; // what is inside a tunnel is forwarded only
	struct cv_address to;

	switch (verdict) {
	case CV_NEXT:
		return cv_network_onward(packet, adjacency);
	case CV_DROP(CV_ROUTER_NOT_IP):
		if (answers && view->proto == RTE_BE16(0x0806))
			return cv_network_answer_arp(packet);
		return verdict;
	case CV_DROP(CV_ROUTER_MULTICAST):
	case CV_DROP(CV_ROUTER_MARTIAN):
		if (answers && view->proto == CV_PROTO_IPV6)
			return cv_network_answer_link(packet, verdict);
		if (is_link_group(view))
			return cv_kernel_punt(packet, verdict);
		return verdict;
	case CV_DROP(CV_ROUTER_TTL_EXPIRED):
		to = destination_of(view);
		if (answers && cv_network_local(network, &to))
			return cv_network_answer_ip(packet);
		cv_network_tell(packet, CV_ICMP_TIME_EXCEEDED, 0);
		return verdict;
	default:
		return verdict;
	}
}
