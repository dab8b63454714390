// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/bench/flows.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "chain/nf.h"
#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "tests/bench/arena.h"

#define FLOWS_PER_HOST 16
#define BACKENDS 16
#define INSIDE (10u << 24 | 1)
#define SERVICE "203.0.113.10"
#define SERVICE_ADDRESS (203u << 24 | 113 << 8 | 10)
#define SERVICE_PORT 443
#define BLOCK 64u // ports that the nat gives to a host
#define BLOCKS_OF_ADDRESS (64512u / BLOCK)
#define DENIED_PORTS 9
#define HUGE_PAGE ((size_t)2 << 20)

#define SYN 2
#define ACK 16

int bench_flows_create(struct bench_flows *flows, uint32_t known, struct cv_error *error)
{
	const size_t bytes = RTE_ALIGN_CEIL(known * sizeof(*flows->end), HUGE_PAGE);

	*flows = (struct bench_flows){.known = known, .chance = 1};
	flows->end = aligned_alloc(HUGE_PAGE, bytes);
	if (flows->end == NULL) {
		cv_error_set(error, "no memory for %u flows", known);
		return -1;
	}
	madvise(flows->end, bytes, MADV_HUGEPAGE);
	return 0;
}

void bench_flows_destroy(struct bench_flows *flows)
{
	free(flows->end);
}

static uint32_t below(struct bench_flows *flows, uint32_t n)
{
	flows->chance ^= flows->chance << 13;
	flows->chance ^= flows->chance >> 7;
	flows->chance ^= flows->chance << 17;
	return (uint32_t)(((flows->chance * 0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

static void write_packet(const struct bench_flows *flows, uint32_t flow, bool reply,
	uint8_t tcp_flags, uint8_t *frame)
{
	static const uint8_t ether[14] = {2, 0xc0, 0x17, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0};
	const bool tcp = flow & 1;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + sizeof(ether));
	uint8_t *l4 = (uint8_t *)(ip + 1);
	rte_be16_t ports[2] = {
		rte_cpu_to_be_16((uint16_t)(1024 + flow % FLOWS_PER_HOST * 4001 + flow % 97)),
		RTE_BE16(SERVICE_PORT),
	};

	memset(frame, 0, BENCH_FRAME_BYTES);
	memcpy(frame, ether, sizeof(ether));
	*ip = (struct cv_ipv4){
		.version_ihl = 0x45,
		.total_len = RTE_BE16(BENCH_FRAME_BYTES - sizeof(ether)),
		.ttl = 64,
		.proto = tcp ? IPPROTO_TCP : IPPROTO_UDP,
		.src = rte_cpu_to_be_32(INSIDE + flow / FLOWS_PER_HOST),
		.dst = RTE_BE32(SERVICE_ADDRESS),
	};
	memcpy(l4, ports, sizeof(ports));
	if (reply) { // the end of its forward packets, turned around
		const uint8_t *end = flows->end[flow].bytes;

		memcpy(&ip->src, end + 4, 4);
		memcpy(&ip->dst, end, 4);
		memcpy(l4, end + 10, 2);
		memcpy(l4 + 2, end + 8, 2);
	}
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
	if (tcp) {
		l4[12] = 0x50;
		l4[13] = tcp_flags;
	} else {
		l4[5] = BENCH_FRAME_BYTES - sizeof(ether) - CV_IPV4_LEN;
		l4[6] = 1; // there is a checksum
	}
}

void bench_flows_write(struct bench_flows *flows, bool reply, uint8_t *frame)
{
	write_packet(flows, below(flows, flows->known), reply, ACK, frame);
}

static uint8_t *frame_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod(packet, uint8_t *);
}

// Runs n packets of consecutive flows. Returns TSC ticks, or 0 with error set.
static uint64_t run(const struct bench_subject *subject, struct rte_mbuf **packets, uint16_t n,
	bool reply, struct cv_error *error)
{
	uint64_t busy, then;
	uint16_t through;

	bench_arena_receive(packets, n, reply, BENCH_FRAME_BYTES);
	busy = subject->busy == NULL ? 0 : subject->busy(subject->state);
	then = rte_rdtsc();
	through = subject->run(subject->state, packets, n);
	then = rte_rdtsc() - then;
	if (through == n)
		return subject->busy == NULL ? then : subject->busy(subject->state) - busy;
	cv_error_set(error, "only %u of %u packets came through", through, n);
	return 0;
}

int bench_flows_open(struct bench_flows *flows, struct bench_arena *arena,
	const struct bench_subject *subject, struct cv_error *error)
{
	static const uint8_t tcp_flags[] = {SYN, SYN | ACK, ACK};

	for (uint32_t first = 0; first < flows->known; first += CV_BURST_MAX) {
		const uint32_t n = RTE_MIN(flows->known - first, (uint32_t)CV_BURST_MAX);

		for (unsigned turn = 0; turn < RTE_DIM(tcp_flags); turn++) {
			for (uint32_t i = 0; i < n; i++)
				write_packet(flows, first + i, turn == 1, tcp_flags[turn],
					frame_of(arena->packets[i]));
			if (run(subject, arena->packets, (uint16_t)n, turn == 1, error) == 0)
				return -1;
			for (uint32_t i = 0; turn == 0 && i < n; i++)
				memcpy(flows->end[first + i].bytes,
					frame_of(arena->packets[i]) + 26, 12);
		}
	}
	return 0;
}

double bench_flows_open_fresh(struct bench_flows *flows, struct bench_arena *arena,
	const struct bench_subject *subject, struct cv_error *error)
{
	uint64_t ticks = 0;

	for (uint32_t first = 0; first < BENCH_FLOWS_FRESH; first += CV_BURST_MAX) {
		struct rte_mbuf **burst = &arena->packets[first % arena->packets_count];
		const bool reply = first / CV_BURST_MAX & 1;
		uint64_t taken;

		for (uint32_t i = 0; i < CV_BURST_MAX; i++)
			write_packet(
				flows, flows->known + first + i, false, SYN, frame_of(burst[i]));
		taken = run(subject, burst, CV_BURST_MAX, false, error);
		if (taken == 0)
			return -1;
		ticks += taken;
		for (uint32_t i = 0; i < CV_BURST_MAX; i++)
			bench_flows_write(flows, reply, frame_of(burst[i]));
		if (run(subject, burst, CV_BURST_MAX, reply, error) == 0)
			return -1;
	}
	return (double)ticks / BENCH_FLOWS_FRESH;
}

static json_t *firewall_config(void)
{
	json_t *rules = json_array();

	for (unsigned i = 0; i < DENIED_PORTS; i++)
		json_array_append_new(rules, json_pack("{ss ss si}", "action", "deny", "proto",
						     i & 1 ? "tcp" : "udp", "dport", 20 + i));
	json_array_append_new(rules, json_pack("{ss ss}", "action", "allow", "src", "10.0.0.0/8"));
	return json_pack("{sb ss so}", "stateful", 1, "default", "deny", "rules", rules);
}

// A pool with twice the blocks that all hosts take.
static json_t *nat_config(uint32_t known)
{
	const uint32_t hosts = BENCH_FLOWS_TABLE(known) / FLOWS_PER_HOST + 1;
	unsigned length = 32;

	while (length > 20 && (BLOCKS_OF_ADDRESS << (32 - length)) < 2 * hosts)
		length--;
	return json_pack("{s[s] s[o] s[s] si si si}", "outside", "right", "pool",
		json_sprintf("100.64.0.0/%u", length), "inside", "10.0.0.0/8", "block_size",
		(int)BLOCK, "block_rest_s", 0, "mappings", (int)BENCH_FLOWS_TABLE(known));
}

static json_t *balancer_config(void)
{
	json_t *backends = json_array();

	for (unsigned i = 0; i < BACKENDS; i++)
		json_array_append_new(backends,
			json_pack("{so so ss}", "address", json_sprintf("192.168.0.%u", 1 + i),
				"mac", json_sprintf("02:00:00:00:02:%02x", i), "dev", "right"));
	return json_pack("{ss s[{ss}] so}", "mode", "nat", "services", "address", SERVICE,
		"backends", backends);
}

json_t *bench_flows_config(const char *function, uint32_t known)
{
	if (strcmp(function, "firewall") == 0)
		return firewall_config();
	if (strcmp(function, "nat") == 0)
		return nat_config(known);
	if (strcmp(function, "balancer") == 0)
		return balancer_config();
	// One meter for each flow, which is never exhausted.
	return json_pack("{ss ss sI sI sI}", "meter", "srtcm", "per", "flow", "cir_bps",
		(json_int_t)100000000000, "cbs_bytes", (json_int_t)1000000, "entries",
		(json_int_t)BENCH_FLOWS_TABLE(known));
}
