// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_errno.h>

#include "chain/nf.h"
#include "port/packet_pool.h"
#include "tests/bench/arena.h"
#include "tests/bench/flows.h"

// Packets lie in pages as a node's do, but closer together (there 2 kB each): where the kernel has no large
// pages for them, their addresses fit the second-level TLB, so that caches are measured and not page walks.
#define DATA_ROOM(bytes) \
	(RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL((bytes), RTE_CACHE_LINE_SIZE) + RTE_CACHE_LINE_SIZE)

int bench_arena_create(
	struct bench_arena *arena, uint16_t frame_bytes, size_t l2_bytes, struct cv_error *error)
{
	// Of each packet: the first line of its mbuf and the lines of its bytes.
	const unsigned bytes =
		RTE_CACHE_LINE_SIZE + RTE_ALIGN_CEIL(frame_bytes, RTE_CACHE_LINE_SIZE);
	const unsigned n = RTE_ALIGN_CEIL(2 * l2_bytes / bytes, CV_BURST_MAX);
	char name[32];

	snprintf(name, sizeof(name), "arena-%u", frame_bytes);
	*arena = (struct bench_arena){
		.frame_bytes = frame_bytes,
		.packets_count = n,
		.touched_bytes = (size_t)n * bytes,
		.pool = cv_packet_pool_create(name, n, 0, DATA_ROOM(frame_bytes), false),
		.packets = calloc(n, sizeof(struct rte_mbuf *)),
	};
	if (arena->pool == NULL || arena->packets == NULL ||
		rte_pktmbuf_alloc_bulk(arena->pool, arena->packets, n) != 0) {
		cv_error_set(error, "no memory for %u packets: %s", n, rte_strerror(rte_errno));
		bench_arena_destroy(arena);
		return -1;
	}
	srandom(1);
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned other = random() % (i + 1);
		struct rte_mbuf *packet = arena->packets[i];

		arena->packets[i] = arena->packets[other];
		arena->packets[other] = packet;
	}
	return 0;
}

void bench_arena_destroy(struct bench_arena *arena)
{
	free(arena->packets);
	rte_mempool_free(arena->pool);
	*arena = (struct bench_arena){0};
}

// Of flows: the bursts' directions alternate.
static bool is_reply(unsigned packet)
{
	return packet / CV_BURST_MAX & 1;
}

void bench_arena_fill(struct bench_arena *arena, const struct bench_subject *subject,
	const struct bench_tables *tables)
{
	for (unsigned i = 0; i < arena->packets_count; i++) {
		uint8_t *frame = (uint8_t *)arena->packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;

		if (subject->flows != NULL)
			bench_flows_write(subject->flows, is_reply(i), frame);
		else
			bench_packet_write(tables, i, frame, arena->frame_bytes);
		if (subject->write != NULL)
			subject->write(i, frame, arena->frame_bytes);
	}
}

void bench_arena_receive(struct rte_mbuf **packets, uint16_t n, uint16_t port, uint16_t frame_bytes)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		packet->data_off = RTE_PKTMBUF_HEADROOM;
		rte_mbuf_refcnt_set(packet, 1);
		packet->nb_segs = 1;
		packet->port = port;
		packet->ol_flags = 0;
		packet->packet_type = 0;
		packet->pkt_len = frame_bytes;
		packet->data_len = frame_bytes;
	}
}

// TSC ticks that reading the clock twice takes: the shortest of many, for a measurement must not
// come out too short. Per packet of a burst of 64 it is still half a cycle and more.
static uint64_t clock_ticks(void)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t then = rte_rdtsc();
		uint64_t ticks = rte_rdtsc() - then;

		shortest = RTE_MIN(shortest, ticks);
	}
	return shortest;
}

double bench_arena_run(struct bench_arena *arena, const struct bench_subject *subject,
	unsigned passes, struct cv_error *error)
{
	const uint64_t clock = clock_ticks();
	uint64_t ticks = 0;

	for (unsigned pass = 0; pass < passes; pass++) {
		for (unsigned i = 0; i < arena->packets_count; i += CV_BURST_MAX) {
			struct rte_mbuf **burst = &arena->packets[i];
			uint16_t through;
			uint64_t then;

			bench_arena_receive(burst, CV_BURST_MAX,
				subject->flows != NULL && is_reply(i), arena->frame_bytes);
			then = rte_rdtsc();
			through = subject->run(subject->state, burst, CV_BURST_MAX);
			ticks += rte_rdtsc() - then - clock;
			if (through != CV_BURST_MAX) {
				cv_error_set(error, "only %u of %u packets came through", through,
					CV_BURST_MAX);
				return -1;
			}
		}
	}
	if (subject->settle != NULL)
		subject->settle(subject->state);
	return (double)ticks / passes / arena->packets_count;
}
