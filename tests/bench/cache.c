// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The function cache: queries that it answers, each of them by a packet of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "chain/path.h"
#include "chain/rx.h"
#include "nf/cache/datagram.h"
#include "tests/bench/bench.h"

#define NAMES 10000 // that are asked for, in turn
#define IP_AT 14
#define DNS_AT (IP_AT + CV_IPV4_LEN + CV_UDP_LEN)
#define QUESTION_LEN 28 // of one name
#define ANSWER_LEN 27 // two records: an address, EDNS
#define ANSWERS 511 // buffers, more than a burst makes
#define POOL_CACHE 256

struct bench_cache {
	struct cv_path path;
	struct cv_step step;
	struct cv_nf_counters counters;
	struct cv_port_counters port_counters;
	struct cv_path_worker worker;
	struct cv_burst burst;
	struct rte_mempool *pool; // of answers
	uint64_t busy;
};

static const uint8_t opt[] = {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0};
static const uint8_t address[] = {0xc0, 12, 0, 1, 0, 1, 0, 1, 0x51, 0x80, 0, 4, 192, 0, 2, 1};

_Static_assert(sizeof(opt) + sizeof(address) == ANSWER_LEN, "both records");

// Headers around len bytes at DNS_AT. Returns the frame's length.
static uint16_t put_headers(uint8_t *frame, bool is_answer, uint16_t len)
{
	const rte_be32_t client = RTE_BE32(0x0a000001), server = RTE_BE32(0xc0000235);
	struct cv_udp udp = {
		.sport = is_answer ? RTE_BE16(53) : RTE_BE16(4000),
		.dport = is_answer ? RTE_BE16(4000) : RTE_BE16(53),
		.len = rte_cpu_to_be_16(CV_UDP_LEN + len),
	};
	struct cv_ipv4 ip = {
		.version_ihl = 0x45,
		.total_len = rte_cpu_to_be_16(CV_IPV4_LEN + CV_UDP_LEN + len),
		.ttl = 64,
		.proto = IPPROTO_UDP,
		.src = is_answer ? server : client,
		.dst = is_answer ? client : server,
	};
	uint8_t *at = frame + IP_AT;

	memcpy(frame, (uint8_t[IP_AT]){2, [6] = 2, [11] = 1, [12] = 8}, IP_AT);
	ip.checksum = cv_checksum((const uint8_t *)&ip, sizeof(ip));
	memcpy(at, &ip, sizeof(ip));
	memcpy(at + sizeof(ip), &udp, sizeof(udp));
	udp.checksum = (rte_be16_t)~cv_datagram_sum(at, false, at + sizeof(ip), CV_UDP_LEN + len);
	memcpy(at + sizeof(ip), &udp, sizeof(udp));
	return DNS_AT + len;
}

static uint8_t *put_question(uint8_t *frame, uint64_t i, bool is_answer)
{
	const uint8_t header[] = {(uint8_t)(i >> 8), (uint8_t)i, is_answer ? 0x81 : 1,
		is_answer ? 0x80 : 0, 0, 1, 0, is_answer, 0, 0, 0, 1};
	uint8_t *at = frame + DNS_AT;
	char name[QUESTION_LEN];

	snprintf(name, sizeof(name), "\nhost%06u\7example\3com", (unsigned)(i % NAMES));
	memcpy(at, header, sizeof(header));
	memcpy(at + sizeof(header), name, 24);
	memcpy(at + sizeof(header) + 24, (uint8_t[]){0, 1, 0, 1}, 4);
	return at + sizeof(header) + QUESTION_LEN;
}

static uint16_t write_query(uint64_t i, uint8_t *frame)
{
	uint8_t *at = put_question(frame, i, false);

	memcpy(at, opt, sizeof(opt));
	return put_headers(frame, false, (uint16_t)(at + sizeof(opt) - frame - DNS_AT));
}

static uint16_t write_answer(uint64_t i, uint8_t *frame)
{
	uint8_t *at = put_question(frame, i, true);

	memcpy(at, address, sizeof(address));
	memcpy(at + sizeof(address), opt, sizeof(opt));
	return put_headers(frame, true, (uint16_t)(at + ANSWER_LEN - frame - DNS_AT));
}

static void write_frame(uint64_t i, uint8_t *frame, uint16_t bytes)
{
	memset(frame, 0, bytes);
	write_query(i, frame);
}

static uint16_t process(struct bench_cache *cache, struct cv_view *views, uint16_t n)
{
	uint8_t verdicts[CV_BURST_MAX];

	return cache->step.process(cache->step.instance, &cache->worker.nf, views, verdicts, n);
}

// What the path does with answers, sending them, is no cost of this function's: they are freed.
static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct bench_cache *cache = state;
	struct rte_mbuf *answers[CV_WAITING_MAX];
	uint16_t answered;
	uint64_t then;

	cv_burst_load(&cache->burst, packets, n, 0, 1, &cache->port_counters);
	cache->worker.burst = &cache->burst;
	then = rte_rdtsc();
	cache->worker.nf.now = then;
	answered = process(cache, cache->burst.views, n);
	cache->busy += rte_rdtsc() - then;
	for (unsigned i = 0; i < cache->worker.waiting_count; i++)
		answers[i] = cache->worker.waiting[i].packet.buffer;
	rte_pktmbuf_free_bulk(answers, cache->worker.waiting_count);
	cache->worker.waiting_count = 0;
	return answered;
}

static uint64_t busy(const void *state)
{
	return ((const struct bench_cache *)state)->busy;
}

static void destroy(void *state)
{
	struct bench_cache *cache = state;

	if (cache->step.instance != NULL)
		cv_nf_destroy(cv_nf_find("cache"), cache->step.instance);
	rte_mempool_free(cache->pool);
	free(cache);
}

static void learn(struct bench_cache *cache)
{
	uint8_t frame[256] = {0};
	struct cv_view view = {.in = 0};

	cache->worker.nf.now = rte_rdtsc();
	for (uint64_t i = 0; i < NAMES; i++) {
		view.in = 0;
		cv_view_set(&view, frame, write_query(i, frame));
		process(cache, &view, 1);
		view.in = 1;
		cv_view_set(&view, frame, write_answer(i, frame));
		process(cache, &view, 1);
	}
}

int bench_cache_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	static const char *const ports[] = {"left", "right"};
	static const uint16_t mtus[] = {1500, 1500};
	const struct cv_nf_env env = {.name = "cache",
		.workers = 1,
		.socket = -1,
		.ports = ports,
		.mtus = mtus,
		.ports_count = RTE_DIM(ports)};
	const struct cv_nf *nf = cv_nf_find("cache");
	struct bench_cache *cache =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*cache), RTE_CACHE_LINE_SIZE));
	json_t *config = json_pack("{s[s]}", "outside", "right");

	if (cache == NULL) {
		cv_error_set(error, "out of memory");
		json_decref(config);
		return -1;
	}
	memset(cache, 0, sizeof(*cache));
	cache->pool = rte_pktmbuf_pool_create(
		"answers", ANSWERS, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	cache->step = (struct cv_step){.process = nf->process, .counters = &cache->counters};
	cache->step.instance = cv_nf_create(nf, config, &env, error);
	json_decref(config);
	if (cache->pool == NULL || cache->step.instance == NULL) {
		cv_error_set(error, "no memory for answers");
		destroy(cache);
		return -1;
	}
	cv_nf_start(nf, cache->step.instance, &env);
	cache->path = (struct cv_path){.length = 1, .steps = &cache->step};
	cache->worker.path = &cache->path;
	cache->worker.step = &cache->step;
	cache->worker.pool = cache->pool;
	learn(cache);
	*subject = (struct bench_subject){
		.run = run, .busy = busy, .write = write_frame, .destroy = destroy, .state = cache};
	return 0;
}
