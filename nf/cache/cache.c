// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// cache: answers DNS queries whose answers it has seen pass, in the name of their server.
//
//   {"outside": ["wan"],      ports that servers are behind: queries come in by the others, answers by these
//    "port": 53, "memory_mb": 64, "max_ttl_s": 86400}
//
// A query over UDP that it can answer ends here; the answer leaves by the port that the query came in by. All
// else passes untouched. Which queries are of that kind, and what is learned: message.h, learn.c. An answer
// is given to whoever asks the same server the same (name in any case, type, VLAN tags, EDNS, the bits RD, AD, CD and DO).
//
// Drops: none.
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "nf/cache/worker.h"
#include "nf/config.h"

#define PENDING_SHARE 32 // of a worker's memory, one part in so many is for questions that wait

static const char *const drops[] = {NULL};

static const char *const refused_names[] = {
	[CV_DNS_UNASKED] = "unasked",
	[CV_DNS_BAD_CHECKSUM] = "bad_checksum",
	[CV_DNS_MALFORMED] = "malformed",
	[CV_DNS_TRUNCATED] = "truncated",
	[CV_DNS_BAD_RCODE] = "bad_rcode",
	[CV_DNS_OPTION] = "option",
	[CV_DNS_NO_TTL] = "no_ttl",
	[CV_DNS_NO_SOA] = "no_soa",
	[CV_DNS_TOO_LONG] = "too_long",
};

_Static_assert(RTE_DIM(refused_names) == CV_DNS_REFUSED, "each reason has a name");

struct config {
	const json_t *outside;
	uint16_t port;
	uint32_t memory_mb, max_ttl_s;
};

static const struct cv_param params[] = {
	{"outside", CV_LIST, CV_AT(struct config, outside), .required = true, .low = 1,
		.high = CV_PORTS_MAX, .doc = "ports that servers are behind"},
	{"port", CV_INTEGER, CV_AT(struct config, port), .low = 1, .high = 65535, .fallback = 53,
		.doc = "UDP port of servers"},
	{"memory_mb", CV_INTEGER, CV_AT(struct config, memory_mb), .low = 8, .high = 65536,
		.fallback = 64, .doc = "of all workers together, taken at the start"},
	{"max_ttl_s", CV_INTEGER, CV_AT(struct config, max_ttl_s), .low = 1, .high = 604800,
		.fallback = 86400, .doc = "the longest that an answer is kept"},
	{0},
};

static int read_outside(struct cv_cache *cache, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	const json_t *value;
	size_t i;

	json_array_foreach (config->outside, i, value) {
		const struct cv_where at = cv_where_item(&top, "outside", i);
		const char *name = json_string_value(value);
		const int port = name != NULL ? cv_nf_env_port(env, name) : -1;

		if (name == NULL)
			return cv_where_wrong(&at, "", value, "must be the name of a port");
		if (port < 0)
			return cv_config_no_port_at(&at, "", name, env);
		cache->is_outside[port] = true;
	}
	return 0;
}

static void worker_free(struct cv_cache_worker *worker)
{
	if (worker == NULL)
		return;
	cv_cache_store_free(&worker->store);
	free(worker->pending.buckets);
	free(worker);
}

static struct cv_cache_worker *worker_make(size_t bytes)
{
	const size_t pending = bytes / PENDING_SHARE;
	struct cv_cache_worker *worker = cv_cache_memory(sizeof(*worker));

	if (worker == NULL)
		return NULL;
	worker->pending.count = (uint32_t)(pending / sizeof(*worker->pending.buckets));
	worker->pending.buckets =
		cv_cache_memory(worker->pending.count * sizeof(*worker->pending.buckets));
	if (worker->pending.buckets != NULL &&
		cv_cache_store_init(&worker->store, bytes - pending) == 0)
		return worker;
	worker_free(worker);
	return NULL;
}

static void state_put(struct cv_cache_state *state)
{
	if (state == NULL || --state->owners > 0)
		return;
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++)
		worker_free(state->worker[i]);
	free(state);
}

static struct cv_cache_state *state_make(uint64_t runners, size_t bytes)
{
	const unsigned count = (unsigned)__builtin_popcountll(runners);
	struct cv_cache_state *state = cv_cache_memory(sizeof(*state));

	if (state == NULL)
		return NULL;
	state->owners = 1;
	state->runners = runners;
	if (cv_flow_secret_make(&state->secret) != 0) {
		state_put(state);
		return NULL;
	}
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		if ((runners >> i & 1) == 0)
			continue;
		state->worker[i] = worker_make(bytes / count);
		if (state->worker[i] == NULL) {
			state_put(state);
			return NULL;
		}
	}
	return state;
}

// What was learned by other rules is not to be believed by these.
static bool may_go_on(
	const struct cv_cache *cache, const struct cv_cache *running, uint64_t runners)
{
	return running != NULL && running->state->runners == runners &&
	       running->port == cache->port && running->memory_mb == cache->memory_mb &&
	       memcmp(running->is_outside, cache->is_outside, sizeof(cache->is_outside)) == 0;
}

static void destroy(void *instance)
{
	struct cv_cache *cache = instance;

	state_put(cache->state);
	free(cache);
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	const uint64_t runners = cv_nf_env_runners(env);
	const struct cv_cache *running = env->running;
	struct cv_cache *cache = calloc(1, sizeof(*cache));

	if (cache == NULL)
		return NULL;
	cache->port = rte_cpu_to_be_16(config->port);
	cache->memory_mb = config->memory_mb;
	cache->max_ttl_s = config->max_ttl_s;
	cache->clock_per_tick =
		(uint64_t)(((unsigned __int128)CV_CACHE_SECOND << 64) / rte_get_tsc_hz());
	if (read_outside(cache, config, env, error) != 0) {
		destroy(cache);
		return NULL;
	}
	if (may_go_on(cache, running, runners)) {
		cache->state = running->state;
		cache->state->owners++;
		return cache;
	}
	cache->state = state_make(runners, (size_t)config->memory_mb << 20);
	if (cache->state == NULL) {
		cv_error_set(error, "%s: memory_mb: no %u MiB of memory; ask for less", env->name,
			config->memory_mb);
		destroy(cache);
		return NULL;
	}
	return cache;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct cv_cache *cache = instance;

	memcpy(cache->mtus, env->mtus, env->ports_count * sizeof(*env->mtus));
}

static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct cv_cache *cache = instance;
	struct cv_cache_worker *own = cache->state->worker[worker->index];
	uint16_t answered = 0;

	for (uint16_t i = 0, end; i < n; i = end) {
		const bool outside = cache->is_outside[view[i].in];

		for (end = i; end < n && cache->is_outside[view[end].in] == outside; end++) {
			if (!outside)
				continue;
			verdict[end] = CV_NEXT;
			cv_cache_learn(cache, own, &view[end], cv_cache_clock(cache, worker->now));
		}
		if (!outside)
			answered +=
				cv_cache_answer(cache, own, worker, &view[i], &verdict[i], end - i);
	}
	return answered;
}

static uint64_t counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED); // with cv_cache_count()
}

static void add_counts(struct cv_cache_counts *sum, const struct cv_cache_counts *of)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)of;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += counted(&from[i]);
}

static json_t *info(const void *instance)
{
	const struct cv_cache *cache = instance;
	struct cv_cache_counts sum = {0};
	uint64_t entries = 0, evicted = 0;
	json_t *refused = json_object();

	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		const struct cv_cache_worker *worker = cache->state->worker[i];

		if (worker == NULL)
			continue;
		add_counts(&sum, &worker->counts);
		entries += __atomic_load_n(&worker->store.entries, __ATOMIC_RELAXED);
		evicted += counted(&worker->store.evicted);
	}
	for (unsigned i = 0; i < CV_DNS_REFUSED; i++)
		json_object_set_new(
			refused, refused_names[i], json_integer((json_int_t)sum.refused[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "hits", (json_int_t)sum.hits,
		"misses", (json_int_t)sum.misses, "others", (json_int_t)sum.others, "learned",
		(json_int_t)sum.learned, "expired", (json_int_t)sum.expired, "evicted",
		(json_int_t)evicted, "entries", (json_int_t)entries, "refused", refused);
}

const struct cv_nf cv_nf_cache = {
	.name = "cache",
	.keeps = "stored answers",
	.summary = "Answers DNS queries whose answers it has seen pass.",
	.drops = drops,
	.answers_meet = true,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.process = process,
	.info = info,
};
