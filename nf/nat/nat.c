// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat: network address and port translation for IPv4 (NAT44; RFC 4787, 5382, 5508, 6888, 7857).
//
//   {"outside": ["wan"],               ports that lead to the outside
//    "pool": ["198.51.100.0/28"],      external addresses
//    "ports": "1024-65535",            of each of them; the default
//    "inside": ["10.0.0.0/8"],         internal addresses
//    "block_size": 512,                ports that a subscriber gets at once, ...
//    "blocks_per_subscriber": 8,       ... how often at most, ...
//    "block_rest_s": 120,              ... and how long nobody else gets them afterwards
//    "mapping": "endpoint-independent", "filtering": "endpoint-independent",
//                                      or address-and-port-dependent
//    "hairpinning": true,              internal hosts reach each other by external addresses
//    "mappings": 65536,                of all workers together
//    "forwards": [{"proto": "tcp",     udp, or icmp without ports: requests
//       "external": "198.51.100.1", "port": 80, a range: "8000-8010"
//       "to": "10.0.0.5", "to_port": 8080}],    to_port: the first; default: as port
//    "block_log": "blocks.jsonl"}      a line for each block that is taken or given back
//
// A packet to an external address goes to whom it is mapped to. One that does not come from outside
// and goes from an internal address to one that is not gets an external address and port. Packets
// from outside to internal addresses are dropped. Everything else passes as it is, IPv6 too. A
// function of flows (flow/flow.h): time-outs, TCP's states, ICMP errors, fragments and checksums
// are the flow path's.
//
// Protocols: TCP, UDP, UDP-Lite, DCCP, ICMP queries. Of others, SCTP among them, the address alone
// is rewritten: one internal host at a time can speak to a remote one.
//
// Drops: no_mapping (to an external address or port that is nobody's), filtered (not by this remote
// end), no_port (the pool has none), subscriber_limit, mappings_full, not_external (from outside to
// an internal address), hairpin (is off), unsupported (ICMP that is no query, groups, broadcasts),
// unrelated_error, bad_header.
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>

#include "nf/nat/count.h"
#include "flow/flow.h"
#include "nf/nat/block_log.h"
#include "nf/nat/blocks.h"
#include "nf/nat/config.h"
#include "nf/nat/mappings.h"

enum drop {
	NO_MAPPING,
	FILTERED,
	NO_PORT,
	SUBSCRIBER_LIMIT,
	MAPPINGS_FULL,
	NOT_EXTERNAL,
	HAIRPIN,
	UNSUPPORTED,
	UNRELATED_ERROR,
	BAD_HEADER,
};

static const char *const drops[] = {"no_mapping", "filtered", "no_port", "subscriber_limit",
	"mappings_full", "not_external", "hairpin", "unsupported", "unrelated_error", "bad_header",
	NULL};

#define TCP_RST 4
#define ICMP_ECHO_REQUEST 8
#define ICMP_TIMESTAMP_REQUEST 13
#define ICMP_INFORMATION_REQUEST 15
#define ICMP_MASK_REQUEST 17
#define FIRST_PORT 1024
#define TRIES 4 // ports that are tried for a new mapping

// What one worker has. No other touches it.
struct nat_worker {
	struct nat *nat;
	unsigned index;
	struct cv_nat_blocks *blocks;
	struct cv_nat_mappings *mappings;
};

struct nat {
	struct cv_nat_lists lists;
	rte_be32_t *external; // addresses of the pool and of forwards, ascending
	unsigned external_count;
	bool per_remote; // mappings
	bool filters, hairpinning;
	unsigned workers_count;
	struct nat_worker *workers;
	struct cv_nat_block_log *log; // or NULL
};

// What is kept of a flow, to give it back, and to say it again.
struct slot {
	uint32_t source; // its mapping's index + 1, or 0: none; or the address that replaces it
	uint32_t destination : 28; // its mapping's index + 1, or 0
	uint32_t is_address : 1; // what source is
	uint32_t is_hairpin : 1;
};

static_assert(sizeof(struct slot) == 8, "what is kept of flows is limited");

static bool is_external(const struct nat *nat, rte_be32_t address)
{
	const uint32_t wanted = rte_be_to_cpu_32(address);
	unsigned low = 0, high = nat->external_count;

	while (low < high) {
		const unsigned middle = (low + high) / 2;
		const uint32_t at = rte_be_to_cpu_32(nat->external[middle]);

		if (at == wanted)
			return true;
		if (at < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool is_inside(const struct nat *nat, rte_be32_t address)
{
	const uint32_t host = rte_be_to_cpu_32(address);

	for (unsigned i = 0; i < nat->lists.inside_count; i++)
		if (nat->lists.inside[i].first <= host && host <= nat->lists.inside[i].last)
			return true;
	return false;
}

// The ports that a protocol shares; -1: it has none that may be changed.
static int kind_of(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
	case IPPROTO_DCCP:
		return CV_NAT_TCP;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return CV_NAT_UDP;
	case IPPROTO_ICMP:
		return CV_NAT_ICMP;
	default:
		return -1;
	}
}

static struct cv_nat_key key_of(const struct nat *nat, const struct cv_flow_tuple *tuple)
{
	struct cv_nat_key key = {
		.internal = tuple->src.ipv4,
		.port = tuple->sport,
		.proto = tuple->proto,
	};

	if (nat->per_remote) {
		key.remote = tuple->dst.ipv4;
		key.remote_port = tuple->dport;
	}
	return key;
}

// Takes a port that no flow has: one that a flow has is tried no more, and given back.
static int take_port(struct nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple,
	enum cv_nat_kind kind, struct cv_nat_port *port)
{
	struct cv_nat_port tried[TRIES];
	unsigned count = 0;
	int rc;

	for (;;) {
		struct cv_flow_tuple outside = *tuple;

		rc = cv_nat_blocks_take(
			own->blocks, tuple->src.ipv4, kind, tuple->sport, worker->now, port);
		if (rc != 0)
			break;
		outside.src.ipv4 = port->address;
		outside.sport = port->port;
		if (cv_flow_is_free(packet, &outside))
			break;
		tried[count++] = *port;
		if (count == TRIES) {
			rc = -ENOSPC;
			break;
		}
	}
	for (unsigned i = 0; i < count; i++)
		cv_nat_blocks_give(own->blocks, kind, &tried[i], worker->now);
	return rc;
}

// Finds or makes the mapping of a tuple's source. Returns CV_NEXT or a drop.
static uint8_t map_source(struct nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple,
	enum cv_nat_kind kind, uint32_t *index)
{
	struct cv_nat_mapping mapping = {.key = key_of(own->nat, tuple)};
	struct cv_nat_port port;
	int rc;

	*index = cv_nat_mappings_by_key(own->mappings, &mapping.key);
	if (*index == CV_NAT_NONE && own->nat->per_remote) {
		// A forward's internal end has one external end, whoever is remote.
		struct cv_nat_key alone = mapping.key;

		alone.remote = 0;
		alone.remote_port = 0;
		*index = cv_nat_mappings_by_key(own->mappings, &alone);
	}
	if (*index == CV_NAT_NONE) {
		if (!cv_nat_mappings_have_room(own->mappings))
			return CV_DROP(MAPPINGS_FULL);
		rc = take_port(own, worker, packet, tuple, kind, &port);
		if (rc != 0)
			return CV_DROP(rc == -EDQUOT ? SUBSCRIBER_LIMIT : NO_PORT);
		mapping.external = port.address;
		mapping.external_port = port.port;
		mapping.block = port.block;
		*index = cv_nat_mappings_add(own->mappings, &mapping, true);
	}
	cv_nat_mapping_at(own->mappings, *index)->flows++;
	return CV_NEXT;
}

// A flow uses a mapping no more.
static void release(struct nat_worker *own, uint32_t index, uint64_t now)
{
	struct cv_nat_mapping *mapping = cv_nat_mapping_at(own->mappings, index);
	const struct cv_nat_port port = {
		.address = mapping->external,
		.port = mapping->external_port,
		.block = mapping->block,
	};
	const uint8_t proto = mapping->key.proto;

	if (--mapping->flows > 0 || mapping->is_static)
		return;
	cv_nat_mappings_remove(own->mappings, index);
	cv_nat_blocks_give(own->blocks, (enum cv_nat_kind)kind_of(proto), &port, now);
}

// Whether an ICMP message asks something of its receiver: the identifier is its source's port.
static bool is_query(const struct cv_flow_packet *packet)
{
	const uint8_t type = packet->view->data[packet->l4];

	return type == ICMP_ECHO_REQUEST || type == ICMP_TIMESTAMP_REQUEST ||
	       type == ICMP_INFORMATION_REQUEST || type == ICMP_MASK_REQUEST;
}

// The source becomes an external one.
static uint8_t translate_source(struct nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_tuple *tuple, struct slot *slot)
{
	const int kind = kind_of(tuple->proto);
	uint32_t index;
	uint8_t verdict;

	if (kind < 0) {
		struct cv_flow_tuple outside = *tuple;

		outside.src.ipv4 = cv_nat_blocks_address(own->blocks, tuple->src.ipv4);
		if (!cv_flow_is_free(packet, &outside))
			return CV_DROP(NO_PORT);
		slot->source = outside.src.ipv4;
		slot->is_address = true;
		*tuple = outside;
		return CV_NEXT;
	}
	if (tuple->proto == IPPROTO_ICMP && !is_query(packet))
		return CV_DROP(UNSUPPORTED);
	if (packet->tcp_flags & TCP_RST)
		return CV_DROP(NO_MAPPING);
	verdict = map_source(own, worker, packet, tuple, (enum cv_nat_kind)kind, &index);
	if (verdict != CV_NEXT)
		return verdict;
	slot->source = index + 1;
	tuple->src.ipv4 = cv_nat_mapping_at(own->mappings, index)->external;
	tuple->sport = cv_nat_mapping_at(own->mappings, index)->external_port;
	return CV_NEXT;
}

// The mapping that an external destination is; CV_NAT_NONE.
static uint32_t mapping_to(const struct nat_worker *own, const struct cv_flow_packet *packet,
	const struct cv_flow_tuple *tuple)
{
	if (kind_of(tuple->proto) < 0 || packet->tcp_flags & TCP_RST)
		return CV_NAT_NONE;
	// Requests are for who is forwarded to; the identifier is the sender's.
	if (tuple->proto == IPPROTO_ICMP)
		return !is_query(packet) ? CV_NAT_NONE
					 : cv_nat_mappings_by_external(
						   own->mappings, tuple->dst.ipv4, 0, IPPROTO_ICMP);
	return cv_nat_mappings_by_external(
		own->mappings, tuple->dst.ipv4, tuple->dport, tuple->proto);
}

static void put_destination(const struct cv_nat_mapping *mapping, struct cv_flow_tuple *tuple)
{
	tuple->dst.ipv4 = mapping->key.internal;
	if (tuple->proto != IPPROTO_ICMP)
		tuple->dport = mapping->key.port;
}

// A hairpin's packets leave by the port that they came in by.
static void turn_back(const struct cv_flow_packet *packet, struct cv_flow_actions *actions)
{
	for (unsigned i = 0; i < 2; i++) {
		actions->way[i].set |= CV_FLOW_SET_OUT;
		actions->way[i].out = packet->view->in;
	}
}

// To an external address: from outside, or from inside, a hairpin.
static uint8_t translate_destination(struct nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, struct slot *slot)
{
	const struct nat *nat = own->nat;
	struct cv_flow_tuple *tuple = &actions->tuple;
	const bool from_outside = nat->lists.outside[packet->view->in];
	const uint32_t index = mapping_to(own, packet, tuple);
	struct cv_nat_mapping *mapping;
	uint8_t verdict;

	if (!from_outside && !nat->hairpinning)
		return CV_DROP(HAIRPIN);
	if (index == CV_NAT_NONE)
		return CV_DROP(NO_MAPPING);
	mapping = cv_nat_mapping_at(own->mappings, index);
	if (from_outside && nat->filters && !mapping->is_static)
		return CV_DROP(FILTERED);
	if (!from_outside && is_inside(nat, tuple->src.ipv4)) {
		// Its source is external, too: RFC 4787 REQ-9.
		verdict = translate_source(own, worker, packet, tuple, slot);
		if (verdict != CV_NEXT)
			return verdict;
	}
	put_destination(mapping, tuple);
	mapping->flows++;
	slot->destination = index + 1;
	slot->is_hairpin = !from_outside;
	if (!from_outside)
		turn_back(packet, actions);
	return CV_NEXT;
}

// What was decided, again. A tuple that is not what it was ends the flow; the next packet begins it
// anew.
static uint8_t repeat(struct nat_worker *own, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, const struct slot *slot)
{
	struct cv_flow_tuple *tuple = &actions->tuple;

	if (slot->is_address) {
		tuple->src.ipv4 = slot->source;
	} else if (slot->source != 0) {
		const struct cv_nat_mapping *mapping =
			cv_nat_mapping_at(own->mappings, slot->source - 1);

		if (tuple->src.ipv4 != mapping->key.internal || tuple->sport != mapping->key.port)
			return CV_DROP(NO_MAPPING);
		tuple->src.ipv4 = mapping->external;
		tuple->sport = mapping->external_port;
	}
	if (slot->destination != 0) {
		const struct cv_nat_mapping *mapping =
			cv_nat_mapping_at(own->mappings, slot->destination - 1);

		if (tuple->dst.ipv4 != mapping->external)
			return CV_DROP(NO_MAPPING);
		put_destination(mapping, tuple);
	}
	if (slot->is_hairpin)
		turn_back(packet, actions);
	return CV_NEXT;
}

static bool is_group(rte_be32_t address)
{
	const uint32_t host = rte_be_to_cpu_32(address);

	return host >> 28 >= 14 || host >> 24 == 0 || host >> 24 == 127;
}

static uint8_t translate(struct nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, struct slot *slot)
{
	const struct nat *nat = own->nat;
	struct cv_flow_tuple *tuple = &actions->tuple;

	if (is_external(nat, tuple->dst.ipv4))
		return translate_destination(own, worker, packet, actions, slot);
	if (nat->lists.outside[packet->view->in])
		return is_inside(nat, tuple->dst.ipv4) ? CV_DROP(NOT_EXTERNAL) : CV_NEXT;
	if (!is_inside(nat, tuple->src.ipv4) || is_inside(nat, tuple->dst.ipv4))
		return CV_NEXT;
	if (is_group(tuple->dst.ipv4) || is_group(tuple->src.ipv4))
		return CV_DROP(UNSUPPORTED);
	return translate_source(own, worker, packet, tuple, slot);
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *kept)
{
	struct nat *nat = instance;
	struct nat_worker *own = &nat->workers[worker->index];

	if (actions->tuple.family != 4)
		return CV_NEXT;
	if (packet->why != CV_FLOW_NEW)
		return repeat(own, packet, actions, kept);
	// What is denied now may be allowed by the next packet from inside.
	actions->once = true;
	return translate(own, worker, packet, actions, kept);
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *kept)
{
	struct nat *nat = instance;
	struct nat_worker *own = &nat->workers[worker->index];
	const struct slot *slot = kept;

	if (slot->source != 0 && !slot->is_address)
		release(own, slot->source - 1, worker->now);
	if (slot->destination != 0)
		release(own, slot->destination - 1, worker->now);
}

static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	switch (why) {
	case CV_FLOW_NON_IP:
		return CV_NEXT;
	case CV_FLOW_UNRELATED:
		return view->proto == CV_PROTO_IPV6 ? CV_NEXT : CV_DROP(UNRELATED_ERROR);
	default:
		return CV_DROP(BAD_HEADER);
	}
}

static int compare_addresses(const void *a, const void *b)
{
	const uint32_t x = rte_be_to_cpu_32(*(const rte_be32_t *)a);
	const uint32_t y = rte_be_to_cpu_32(*(const rte_be32_t *)b);

	return x < y ? -1 : x > y;
}

static int make_externals(struct nat *nat)
{
	const struct cv_nat_lists *lists = &nat->lists;

	nat->external =
		calloc(lists->pool_count + (size_t)lists->forwards_count, sizeof(*nat->external));
	if (nat->external == NULL)
		return -ENOMEM;
	memcpy(nat->external, lists->pool, lists->pool_count * sizeof(*lists->pool));
	nat->external_count = lists->pool_count;
	for (unsigned i = 0; i < lists->forwards_count; i++) // sorted: one of each in a row
		if (i == 0 || lists->forwards[i].external != lists->forwards[i - 1].external)
			nat->external[nat->external_count++] = lists->forwards[i].external;
	qsort(nat->external, nat->external_count, sizeof(*nat->external), compare_addresses);
	return 0;
}

static void on_block(void *argument, const struct cv_nat_block_event *event)
{
	const struct nat_worker *own = argument;

	if (own->nat->log != NULL)
		cv_nat_block_log_add(own->nat->log, own->index, event);
}

static void add_forwards(struct nat_worker *own)
{
	const struct cv_nat_lists *lists = &own->nat->lists;

	for (unsigned i = 0; i < lists->forwards_count; i++) {
		const struct cv_nat_forward *forward = &lists->forwards[i];
		const struct cv_nat_mapping mapping = {
			.key = {.internal = forward->internal,
				.port = forward->internal_port,
				.proto = forward->proto},
			.external = forward->external,
			.external_port = forward->external_port,
			.is_static = true,
		};
		// Of several to one internal end the first is that by which it speaks itself.
		const bool by_key =
			forward->proto != IPPROTO_ICMP &&
			cv_nat_mappings_by_key(own->mappings, &mapping.key) == CV_NAT_NONE;

		cv_nat_mappings_add(own->mappings, &mapping, by_key);
	}
}

static int make_worker(struct nat *nat, unsigned index, const struct cv_nat_config *config)
{
	struct nat_worker *own = &nat->workers[index];
	const unsigned workers = nat->workers_count;
	const unsigned ports = config->ports.last - config->ports.first + 1u;
	const unsigned blocks = ports / config->block_size / workers;
	struct cv_nat_blocks_config of = {
		.addresses = nat->lists.pool,
		.addresses_count = nat->lists.pool_count,
		.first_port = (uint16_t)(config->ports.first + index * blocks * config->block_size),
		.blocks_per_address = (uint16_t)blocks,
		.block_size = (uint16_t)config->block_size,
		.blocks_per_subscriber = (uint16_t)config->blocks_per_subscriber,
		.rest = config->block_rest_s * rte_get_tsc_hz(),
		.on_block = on_block,
		.argument = own,
	};

	own->nat = nat;
	own->index = index;
	if (getrandom(&of.seed, sizeof(of.seed), 0) != (ssize_t)sizeof(of.seed))
		return -errno;
	own->blocks = cv_nat_blocks_create(&of);
	own->mappings = cv_nat_mappings_create(
		(config->mappings + workers - 1) / workers + nat->lists.forwards_count);
	if (own->blocks == NULL || own->mappings == NULL)
		return -ENOMEM;
	add_forwards(own);
	return 0;
}

static void destroy(void *instance)
{
	struct nat *nat = instance;

	cv_nat_block_log_close(nat->log);
	for (unsigned i = 0; nat->workers != NULL && i < nat->workers_count; i++) {
		cv_nat_blocks_destroy(nat->workers[i].blocks);
		cv_nat_mappings_destroy(nat->workers[i].mappings);
	}
	free(nat->workers);
	free(nat->external);
	cv_nat_lists_free(&nat->lists);
	free(nat);
}

static int make(struct nat *nat, const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	int rc = cv_nat_lists_read(config, env, &nat->lists, error);

	if (rc == 0)
		rc = make_externals(nat);
	if (rc != 0)
		return rc;
	nat->workers = calloc(env->workers, sizeof(*nat->workers));
	if (nat->workers == NULL)
		return -ENOMEM;
	nat->workers_count = env->workers;
	for (unsigned i = 0; i < env->workers && rc == 0; i++)
		rc = make_worker(nat, i, config);
	if (rc != 0 || config->block_log == NULL)
		return rc;
	nat->log = cv_nat_block_log_open(config->block_log, env->name, env->workers, error);
	return nat->log == NULL ? -EIO : 0;
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_nat_config config = *(const struct cv_nat_config *)of;
	struct nat *nat = calloc(1, sizeof(*nat));

	if (nat == NULL)
		return NULL;
	if (config.ports.first == 0) // not given
		config.ports = (struct cv_nat_ports){FIRST_PORT, UINT16_MAX};
	nat->per_remote = config.mapping == CV_NAT_ADDRESS_AND_PORT_DEPENDENT;
	nat->filters = config.filtering == CV_NAT_ADDRESS_AND_PORT_DEPENDENT;
	nat->hairpinning = config.hairpinning;
	if (make(nat, &config, env, error) == 0)
		return nat;
	destroy(nat);
	return NULL;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct nat *nat = instance;

	// Without a thread the lines are written at the end, as far as the rings hold them.
	if (nat->log != NULL)
		cv_nat_block_log_start(nat->log);
}

static json_t *info(const void *instance)
{
	const struct nat *nat = instance;
	uint64_t mappings = 0, subscribers = 0, used = 0, resting = 0;
	json_t *object;

	for (unsigned i = 0; i < nat->workers_count; i++) {
		const struct cv_nat_blocks_counters *counters =
			cv_nat_blocks_counters(nat->workers[i].blocks);

		mappings += cv_nat_mappings_count(nat->workers[i].mappings);
		subscribers += cv_nat_counted(&counters->subscribers);
		used += cv_nat_counted(&counters->blocks_used);
		resting += cv_nat_counted(&counters->blocks_resting);
	}
	mappings -= (uint64_t)nat->lists.forwards_count * nat->workers_count;
	object = json_pack("{s:i, s:i, s:I, s:I, s:{s:I, s:I}}", "addresses", nat->lists.pool_count,
		"forwards", nat->lists.forwards_count, "mappings", (json_int_t)mappings,
		"subscribers", (json_int_t)subscribers, "blocks", "used", (json_int_t)used,
		"resting", (json_int_t)resting);
	if (nat->log != NULL)
		json_object_set_new(object, "block_log_lost",
			json_integer((json_int_t)cv_nat_block_log_lost(nat->log)));
	return object;
}

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct slot),
	.decide = decide,
	.ended = ended,
	.other = other,
};

const struct cv_nf cv_nf_nat = {
	.name = "nat",
	.summary = "NAT for IPv4: internal hosts share external addresses and ports.",
	.drops = drops,
	.params = cv_nat_params,
	.config_size = sizeof(struct cv_nat_config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.flow = &flow,
	.info = info,
};
