// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat: network address and port translation for IPv4 (NAT44; RFC 4787, 5382, 5508, 6888, 7857).
//
//   {"outside": ["wan"],               ports that lead to the outside
//    "pool": ["198.51.100.0/28"],      external addresses
//    "ports": "1024-65535",            of each of them; the default
//    "share_address": false,           with the node's router: a gateway that has one address
//    "inside": ["10.0.0.0/8"],         internal addresses
//    "block_size": 512,                ports that a subscriber gets at once, ...
//    "blocks_per_subscriber": 8,       ... how often at most, ...
//    "block_rest_s": 120,              ... and how long nobody else gets them afterwards
//    "mapping": "endpoint-independent",   or address-and-port-dependent
//    "filtering": "endpoint-independent", or address-dependent, address-and-port-dependent
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
#include "nf/nat/memory.h"
#include "nf/nat/nat.h"

static const char *const drops[] = {"no_mapping", "filtered", "no_port", "subscriber_limit",
	"mappings_full", "not_external", "hairpin", "unsupported", "unrelated_error", "bad_header",
	NULL};

#define FIRST_PORT 1024

static void set_reach(struct cv_nat *nat)
{
	const unsigned count = nat->external_count;
	unsigned different = 1;

	for (unsigned i = 1; i < count; i++) // a forward's may be of the pool, too
		different += nat->external[i] != nat->external[i - 1];
	nat->external_first = rte_be_to_cpu_32(nat->external[0]);
	nat->external_reach = rte_be_to_cpu_32(nat->external[count - 1]) - nat->external_first;
	nat->external_dense = nat->external_reach == different - 1;
}

static int make_externals(struct cv_nat *nat)
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
	qsort(nat->external, nat->external_count, sizeof(*nat->external), cv_nat_compare_addresses);
	set_reach(nat);
	return 0;
}

static void on_block(void *argument, const struct cv_nat_block_event *event)
{
	const struct cv_nat_worker *own = argument;
	struct cv_nat_block_log *log = own->state->log;

	if (log != NULL)
		cv_nat_block_log_add(log, own->index, event);
}

// Makes the table of what is forwarded.
static int make_forwards(struct cv_nat *nat)
{
	const struct cv_nat_lists *lists = &nat->lists;

	if (lists->forwards_count == 0)
		return 0;
	nat->forwards_memory = cv_nat_zalloc(cv_nat_mappings_bytes(lists->forwards_count), 1);
	if (nat->forwards_memory != NULL)
		nat->forwards = cv_nat_mappings_create(lists->forwards_count, nat->forwards_memory);
	if (nat->forwards == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < lists->forwards_count; i++) {
		const struct cv_nat_forward *forward = &lists->forwards[i];
		const struct cv_nat_mapping mapping = {
			.key = {.internal = forward->internal,
				.port = forward->internal_port,
				.proto = forward->proto},
			.external = forward->external,
			.external_port = forward->external_port,
		};
		// Of several to one internal end the first is that by which it speaks itself.
		const bool by_key =
			forward->proto != IPPROTO_ICMP &&
			cv_nat_mappings_by_key(nat->forwards, &mapping.key) == CV_NAT_NONE;

		cv_nat_mappings_add(nat->forwards, &mapping, by_key);
	}
	cv_nat_mappings_settle(nat->forwards);
	return 0;
}

// The blocks of the rank-th of so many workers that run it.
static struct cv_nat_blocks_config blocks_of(
	const struct cv_nat_state *state, unsigned rank, unsigned workers)
{
	const struct cv_nat_config *config = &state->config;
	const unsigned ports = config->ports.last - config->ports.first + 1u;
	const unsigned blocks = ports / config->block_size / workers;

	return (struct cv_nat_blocks_config){
		.addresses = state->pool,
		.addresses_count = state->pool_count,
		.first_port = (uint16_t)(config->ports.first + rank * blocks * config->block_size),
		.blocks_per_address = (uint16_t)blocks,
		.block_size = (uint16_t)config->block_size,
		.blocks_per_subscriber = (uint16_t)config->blocks_per_subscriber,
		.rest = config->block_rest_s * rte_get_tsc_hz(),
		.on_block = on_block,
	};
}

static int make_worker(struct cv_nat_state *state, unsigned index, unsigned rank, unsigned workers)
{
	struct cv_nat_worker *own = &state->workers[index];
	struct cv_nat_blocks_config of = blocks_of(state, rank, workers);
	void *memory;

	own->index = index;
	own->state = state;
	own->first = rank * state->mappings_each;
	own->at = rank * (state->memory.bytes / workers);
	rte_spinlock_init(&own->lock);
	memset(&state->block_owner[rank * of.blocks_per_address], (int)index,
		of.blocks_per_address);
	state->blocks_count = (rank + 1) * of.blocks_per_address;
	of.argument = own;
	if (getrandom(&of.seed, sizeof(of.seed), 0) != (ssize_t)sizeof(of.seed))
		return -EIO;
	memory = RTE_PTR_ADD(state->memory.start, own->at);
	own->mappings = cv_nat_mappings_create(state->mappings_each, memory);
	own->blocks = cv_nat_blocks_create(
		&of, RTE_PTR_ADD(memory, cv_nat_mappings_bytes(state->mappings_each)));
	return own->blocks == NULL || own->mappings == NULL ? -ENOMEM : 0;
}

// In one memory, whoever has which part of it: it goes along to another process as a whole.
static int make_workers(struct cv_nat_state *state, uint64_t runners, unsigned workers)
{
	const struct cv_nat_blocks_config blocks = blocks_of(state, 0, workers);
	const size_t each = RTE_ALIGN_CEIL(
		cv_nat_mappings_bytes(state->mappings_each) + cv_nat_blocks_bytes(&blocks),
		CV_FLOW_HUGE_PAGE);
	unsigned rank = 0;
	int rc = cv_flow_memory_make(&state->memory, workers * each);

	for (unsigned i = 0; i < state->workers_count && rc == 0; i++)
		if (runners >> i & 1)
			rc = make_worker(state, i, rank++, workers);
	return rc;
}

static void release_state(struct cv_nat_state *state)
{
	if (state == NULL || --state->owners > 0)
		return;
	cv_nat_block_log_destroy(state->log);
	for (unsigned i = 0; i < state->workers_count; i++) {
		cv_nat_blocks_destroy(state->workers[i].blocks);
		cv_nat_mappings_destroy(state->workers[i].mappings);
	}
	cv_flow_memory_free(&state->memory);
	cv_flow_memory_free(&state->before);
	free(state->block_log);
	free(state->pool);
	free(state);
}

static int make_state(struct cv_nat *nat, const struct cv_nat_config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const size_t pool = nat->lists.pool_count * sizeof(*nat->lists.pool);
	struct cv_nat_state *state =
		calloc(1, sizeof(*state) + env->workers * sizeof(state->workers[0]));
	const uint64_t runners = cv_nf_env_runners(env);
	const unsigned workers = (unsigned)__builtin_popcountll(runners);
	int rc;

	nat->state = state;
	if (state == NULL)
		return -ENOMEM;
	state->owners = 1;
	state->config = *config;
	state->workers_count = env->workers;
	state->pool = malloc(pool);
	if (state->pool == NULL)
		return -ENOMEM;
	memcpy(state->pool, nat->lists.pool, pool);
	state->pool_count = nat->lists.pool_count;
	state->shared = workers > 1;
	state->mappings_each = (config->mappings + workers - 1) / workers;
	state->mappings_all = workers * state->mappings_each;
	state->first_port = config->ports.first;
	state->block_shift = (uint16_t)__builtin_ctz(config->block_size);
	rc = make_workers(state, runners, workers);
	if (rc != 0 || config->block_log == NULL)
		return rc;
	state->block_log = strdup(config->block_log);
	state->log = cv_nat_block_log_create(config->block_log, env->name, env->workers, error);
	return state->log == NULL || state->block_log == NULL ? -EIO : 0;
}

static bool are_same_texts(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

// What of a configuration stays as long as flows use it; NULL: that is as it was.
static const char *stays(const struct cv_nat_state *state, const struct cv_nat_lists *lists,
	const struct cv_nat_config *config)
{
	const struct cv_nat_config *was = &state->config;

	if (state->pool_count != lists->pool_count ||
		memcmp(state->pool, lists->pool, lists->pool_count * sizeof(*lists->pool)) != 0)
		return "pool";
	if (was->ports.first != config->ports.first || was->ports.last != config->ports.last)
		return "ports";
	if (was->block_size != config->block_size)
		return "block_size";
	if (was->blocks_per_subscriber != config->blocks_per_subscriber)
		return "blocks_per_subscriber";
	if (was->block_rest_s != config->block_rest_s)
		return "block_rest_s";
	if (was->mappings != config->mappings)
		return "mappings";
	return are_same_texts(state->block_log, config->block_log) ? NULL : "block_log";
}

// Mappings and ports of the instance that runs go over to this one.
static int share_state(struct cv_nat *nat, const struct cv_nat_config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_nat_state *state = ((const struct cv_nat *)env->running)->state;
	const char *what = stays(state, &nat->lists, config);

	if (what != NULL) {
		cv_error_set(error,
			"%s: %s: stays as it is while packets flow; start the node anew", env->name,
			what);
		return -EINVAL;
	}
	nat->state = state;
	state->owners++;
	return 0;
}

static void destroy(void *instance)
{
	struct cv_nat *nat = instance;

	release_state(nat->state);
	cv_nat_mappings_destroy(nat->forwards);
	free(nat->forwards_memory);
	free(nat->targets);
	free(nat->external);
	cv_nat_lists_free(&nat->lists);
	free(nat);
}

static int make(struct cv_nat *nat, const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	int rc = cv_nat_lists_read(config, env, &nat->lists, error);

	if (rc == 0)
		rc = make_externals(nat);
	if (rc == 0)
		rc = make_forwards(nat);
	if (rc == 0)
		rc = cv_nat_home_init(nat);
	if (rc != 0)
		return rc;
	return env->running != NULL ? share_state(nat, config, env, error)
				    : make_state(nat, config, env, error);
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_nat_config config = *(const struct cv_nat_config *)of;
	struct cv_nat *nat = calloc(1, sizeof(*nat));

	if (nat == NULL)
		return NULL;
	if (config.ports.first == 0) // not given
		config.ports = (struct cv_nat_ports){FIRST_PORT, UINT16_MAX};
	nat->per_remote = config.mapping == CV_NAT_MAPS_EACH;
	nat->filtering = config.filtering;
	nat->hairpinning = config.hairpinning;
	nat->shares_address = config.share_address;
	if (make(nat, &config, env, error) == 0)
		return nat;
	destroy(nat);
	return NULL;
}

static size_t claims(const void *instance, struct cv_nf_claim *of, size_t max)
{
	const struct cv_nat *nat = instance;

	for (unsigned i = 0; i < nat->external_count && i < max; i++) {
		of[i] = (struct cv_nf_claim){.shared = nat->shares_address};
		memcpy(of[i].address.bytes, &nat->external[i], sizeof(nat->external[i]));
	}
	return nat->external_count;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct cv_nat *nat = instance;

	// If the file cannot be opened any more, events are counted as lost when the rings are full.
	if (nat->state->log != NULL && env->running == NULL)
		cv_nat_block_log_start(nat->state->log);
}

static json_t *info(const void *instance)
{
	const struct cv_nat *nat = instance;
	const struct cv_nat_state *state = nat->state;
	uint64_t mappings = 0, subscribers = 0, used = 0, resting = 0;
	json_t *object;

	for (unsigned i = 0; i < state->workers_count; i++) {
		const struct cv_nat_blocks_counters *counters;

		if (state->workers[i].blocks == NULL) // does not run it
			continue;
		counters = cv_nat_blocks_counters(state->workers[i].blocks);
		mappings += cv_nat_mappings_count(state->workers[i].mappings);
		subscribers += cv_nat_counted(&counters->subscribers);
		used += cv_nat_counted(&counters->blocks_used);
		resting += cv_nat_counted(&counters->blocks_resting);
	}
	object = json_pack("{s:i, s:i, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "addresses",
		nat->lists.pool_count, "forwards", nat->lists.forwards_count, "mappings",
		(json_int_t)mappings, "subscribers", (json_int_t)subscribers, "blocks", "used",
		(json_int_t)used, "resting", (json_int_t)resting, "total",
		(json_int_t)state->pool_count * state->blocks_count, "ports",
		(json_int_t)state->config.block_size);
	if (state->log != NULL)
		json_object_set_new(object, "block_log_lost",
			json_integer((json_int_t)cv_nat_block_log_lost(state->log)));
	return object;
}

const struct cv_nf cv_nf_nat = {
	.name = "nat",
	.summary = "NAT for IPv4: internal hosts share external addresses and ports.",
	.drops = drops,
	.params = cv_nat_params,
	.config_size = sizeof(struct cv_nat_config),
	.create = create,
	.claims = claims,
	.start = start,
	.destroy = destroy,
	.flow = &cv_nat_flow,
	.info = info,
};
