// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <string.h>

#include "nf/router/network.h"
#include "packet/arp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/neighbour_discovery.h"
#include "packet/tcp_reset.h"

#define FRAME_MIN 60u // bytes without FCS

struct cv_neighbour_tags cv_network_tags(const struct cv_view *view)
{
	struct cv_neighbour_tags tags = {.len = (uint8_t)(view->l3 - CV_ETHER_LEN)};

	memcpy(tags.bytes, view->data + 2 * CV_MAC_LEN, tags.len);
	return tags;
}

uint8_t *cv_network_make(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_tags *tags, unsigned port, const uint8_t *mac, rte_be16_t type,
	uint16_t len)
{
	const uint32_t l3 = CV_ETHER_LEN + tags->len;
	uint8_t *frame = cv_nf_originate(worker, (uint16_t)RTE_MAX(l3 + len, FRAME_MIN),
		(uint8_t)port, (uint8_t)port, CV_NF_BY_PORT);

	if (frame == NULL)
		return NULL;
	memcpy(frame, mac, CV_MAC_LEN);
	memcpy(frame + CV_MAC_LEN, network->port[port].mac, CV_MAC_LEN);
	memcpy(frame + 2 * CV_MAC_LEN, tags->bytes, tags->len);
	memcpy(frame + l3 - 2, &type, sizeof(type));
	return frame + l3;
}

static void ask_by_arp(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_event *event, const uint8_t *source)
{
	static const uint8_t broadcast[CV_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const unsigned port = event->key.port;
	const uint8_t *mac = event->what == CV_NEIGHBOUR_ASK_ALL ? broadcast : event->mac;
	uint8_t *l3 =
		cv_network_make(network, worker, &event->tags, port, mac, CV_PROTO_ARP, CV_ARP_LEN);
	rte_be32_t own, target;

	memcpy(&own, source, sizeof(own));
	memcpy(&target, event->key.address.bytes, sizeof(target));
	if (l3 != NULL)
		cv_arp_write(l3, CV_ARP_REQUEST, network->port[port].mac, own, NULL, target);
}

static void solicit(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_event *event, const uint8_t *source)
{
	const unsigned port = event->key.port;
	struct cv_nd nd = {.type = CV_ND_SOLICITATION, .has_mac = true};
	uint8_t mac[CV_MAC_LEN], *l3;

	memcpy(nd.src, source, 16);
	memcpy(nd.target, event->key.address.bytes, 16);
	memcpy(nd.mac, network->port[port].mac, CV_MAC_LEN);
	if (event->what == CV_NEIGHBOUR_ASK_ALL) {
		cv_nd_group(nd.target, nd.dst);
		cv_ipv6_group_mac(nd.dst, mac);
	} else {
		memcpy(nd.dst, nd.target, 16);
		memcpy(mac, event->mac, CV_MAC_LEN);
	}
	l3 = cv_network_make(network, worker, &event->tags, port, mac, CV_PROTO_IPV6, CV_ND_LEN);
	if (l3 != NULL)
		cv_nd_write(l3, &nd);
}

void cv_network_ask(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_event *event)
{
	const uint8_t *source;

	if (event->what == CV_NEIGHBOUR_NOTHING)
		return;
	source = cv_network_source(network, event->key.port, &event->key.address);
	if (source == NULL)
		return;
	cv_network_count(&cv_network_worker_of(network, worker)->solicitations);
	if (event->key.address.v6)
		solicit(network, worker, event, source);
	else
		ask_by_arp(network, worker, event, source);
}

void cv_network_restore_ttl(const struct cv_view *view)
{
	uint8_t *l3 = cv_router_l3(view);
	struct cv_ipv4 *ip = (struct cv_ipv4 *)l3;
	rte_be16_t old, new;

	if (view->proto == CV_PROTO_IPV6) {
		((struct cv_ipv6 *)l3)->hop_limit++;
		return;
	}
	memcpy(&old, &ip->ttl, sizeof(old));
	ip->ttl++;
	memcpy(&new, &ip->ttl, sizeof(new));
	ip->checksum = cv_checksum_update(ip->checksum, old, new);
}

// Whether the sender of a packet may be told, and is a host that it could be.
static bool may_tell(struct cv_router_packet packet, const struct cv_icmp_error *error)
{
	const uint8_t *ip = cv_router_l3(packet.view);
	bool v6 = packet.view->proto == CV_PROTO_IPV6;
	uint8_t outcome;
	rte_be32_t source;
	uint32_t at;

	if (packet.view->before != 0 || cv_mac_group(packet.view->data))
		return false;
	if (v6 ? !cv_icmpv6_allowed(ip, error) : !cv_icmpv4_allowed(ip))
		return false;
	memcpy(&source, ip + 12, sizeof(source));
	at = v6 ? cv_fib_find_v6(cv_network_fib(packet.network), ip + 8)
		: cv_fib_find_v4(cv_network_fib(packet.network), rte_be_to_cpu_32(source));
	outcome = cv_network_fib(packet.network)->adjacency[at].outcome;
	return outcome != CV_FIB_LOCAL && outcome != CV_FIB_BROADCAST;
}

// Takes one of the errors that may be sent, and finds out where it goes. False: there is none, or nobody
// is known there.
static bool begin_error(struct cv_router_packet packet, const struct cv_icmp_error *error,
	const struct cv_address *to, struct cv_adjacency *next_hop)
{
	struct cv_network_worker *own = cv_network_worker_of(packet.network, packet.worker);

	if (!may_tell(packet, error))
		return false;
	if (!cv_token_bucket_take(&own->errors, packet.worker->now)) {
		cv_network_count(&own->errors_limited);
		return false;
	}
	return cv_network_resolve(packet, to, next_hop) == CV_RESOLVED;
}

void cv_network_tell(struct cv_router_packet packet, enum cv_icmp_reason reason, uint32_t value)
{
	struct cv_network *network = packet.network;
	struct cv_network_worker *own = cv_network_worker_of(network, packet.worker);
	const struct cv_icmp_error error = {.reason = reason, .value = value};
	const uint8_t *ip = cv_router_l3(packet.view), *source;
	const bool v6 = packet.view->proto == CV_PROTO_IPV6;
	const struct cv_address to = cv_router_address(v6, v6 ? ip + 8 : ip + 12);
	const struct cv_neighbour_tags tags = cv_network_tags(packet.view);
	struct cv_adjacency next_hop;
	rte_be32_t own_v4;
	uint16_t len;
	uint8_t *out;

	if (!begin_error(packet, &error, &to, &next_hop))
		return;
	source = cv_network_source(network, next_hop.port, &to);
	len = v6 ? cv_icmpv6_error_len(ip) : cv_icmpv4_error_len(ip);
	if (source == NULL || len > network->port[next_hop.port].mtu)
		return;
	out = cv_network_make(network, packet.worker, &tags, next_hop.port, next_hop.mac,
		packet.view->proto, len);
	if (out == NULL)
		return;
	memcpy(&own_v4, source, sizeof(own_v4));
	if (v6)
		cv_icmpv6_error(out, ip, &error, source);
	else
		cv_icmpv4_error(out, ip, &error, own_v4, own->ip_id++);
	cv_network_count(&own->errors_sent);
}

void cv_network_refuse(struct cv_router_packet packet, uint16_t l4)
{
	struct cv_network_worker *own = cv_network_worker_of(packet.network, packet.worker);
	const struct cv_icmp_error error = {.reason = CV_ICMP_PORT_UNREACHABLE};
	const uint8_t *ip = cv_router_l3(packet.view);
	const bool v6 = packet.view->proto == CV_PROTO_IPV6;
	const struct cv_address to = cv_router_address(v6, v6 ? ip + 8 : ip + 12);
	const struct cv_neighbour_tags tags = cv_network_tags(packet.view);
	const uint16_t len = cv_tcp_reset_len(ip, l4);
	struct cv_adjacency next_hop;
	uint8_t *out;

	if (len == 0 || !begin_error(packet, &error, &to, &next_hop))
		return;
	out = cv_network_make(packet.network, packet.worker, &tags, next_hop.port, next_hop.mac,
		packet.view->proto, len);
	if (out == NULL)
		return;
	cv_tcp_reset(out, ip, l4, own->ip_id++);
	cv_network_count(&own->errors_sent);
}
