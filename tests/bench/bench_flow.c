// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-flow [REPEATS [FLOWS...]]: what the flow path costs, in memory: cycles per packet of four
// stateful functions behind one look-up (a filter, source NAT, destination NAT with MAC addresses, a
// meter that sees every packet), of one that only allows, of reading two lines of memory for each
// packet, which is the least that a look-up costs, and cycles per new flow, by the number of
// flows that the packets belong to, each as likely as the others.
//
// Only process() is timed, in bursts of 64. Half of the packets are TCP, half are replies. A repeat
// is the median of its bursts, which others on the core interrupt. One line of JSON for each number
// of flows: medians of repeats, with the least and the most.
#include <stdlib.h>
#include <stdio.h>
#include <sys/mman.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_meter.h>
#include <rte_prefetch.h>

#include "flow/path.h"
#include "packet/ipv4.h"

#define BURSTS 4096 // of each repeat
#define REPEATS_MAX 99
#define FRAME 60
#define BACKENDS 16
#define HOSTS 1024 // meters

static struct cv_nf_worker worker;
static uint64_t random_state = 1;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)((random64() >> 32) * n >> 32);
}

static uint8_t allow(void *instance, struct cv_nf_worker *of, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, void *slot)
{
	return CV_NEXT;
}

// To an address and port that only this flow has: those of its source, in another network.
static uint8_t source_nat(void *instance, struct cv_nf_worker *of,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	uint32_t src = rte_be_to_cpu_32(actions->tuple.src.ipv4);

	actions->tuple.src.ipv4 = rte_cpu_to_be_32((src & 0xffffff) | 100u << 24);
	actions->tuple.sport ^= RTE_BE16(0x4000);
	return CV_NEXT;
}

static uint32_t backend_of(rte_be16_t sport)
{
	return rte_be_to_cpu_16(sport) % BACKENDS;
}

static uint8_t balance(void *instance, struct cv_nf_worker *of, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, void *slot)
{
	const uint32_t backend = backend_of(actions->tuple.sport);

	actions->tuple.dst.ipv4 = rte_cpu_to_be_32(0xc0a80001 + backend);
	actions->way[CV_FLOW_FORWARD].set = CV_FLOW_SET_DST_MAC | CV_FLOW_SET_SRC_MAC;
	actions->way[CV_FLOW_FORWARD].dst_mac[5] = (uint8_t)backend;
	actions->way[CV_FLOW_FORWARD].src_mac[0] = 2;
	return CV_NEXT;
}

struct policer {
	struct rte_meter_srtcm_profile profile;
	struct rte_meter_srtcm meters[HOSTS];
};

static uint8_t meter(void *instance, struct cv_nf_worker *of, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, void *slot)
{
	*(uint32_t *)slot = below(HOSTS);
	actions->follow = true;
	return CV_NEXT;
}

static unsigned metered(void *instance, struct cv_nf_worker *of,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	struct policer *policer = instance;
	unsigned others = 0;

	for (unsigned i = 0; i < n; i++) {
		const enum rte_color color = rte_meter_srtcm_color_blind_check(
			&policer->meters[*(uint32_t *)packets[i].slot], &policer->profile, of->now,
			packets[i].view->len);

		verdicts[i] = color == RTE_COLOR_RED ? CV_DROP(0) : CV_NEXT;
		others += verdicts[i] != CV_NEXT;
	}
	return others;
}

static const char *const drops[] = {"red", NULL};
static const struct cv_nf_flow flows[] = {
	{.decide = allow, .slot_bytes = 0},
	{.decide = source_nat, .slot_bytes = 4},
	{.decide = balance, .slot_bytes = 4},
	{.decide = meter, .slot_bytes = 4, .follow = metered},
};
#define FUNCTIONS RTE_DIM(flows)
static const struct cv_nf functions[FUNCTIONS] = {
	{.name = "filter", .drops = drops, .flow = &flows[0]},
	{.name = "nat", .drops = drops, .flow = &flows[1]},
	{.name = "balancer", .drops = drops, .flow = &flows[2]},
	{.name = "policer", .drops = drops, .flow = &flows[3]},
};

struct bench {
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters[FUNCTIONS];
	size_t bytes;
	bool rewrites;
};

static void die(const char *text)
{
	fprintf(stderr, "bench-flow: %s\n", text);
	exit(1);
}

// The first count functions behind one look-up.
static void bench_make(struct bench *bench, unsigned count, uint32_t max, struct policer *policer)
{
	const struct cv_flow_limits limits = {
		.max = max, .max_ipv6 = 64, .timeouts_s = {240, 7440, 240, 120, 300, 60, 600, 5}};
	struct cv_flow_member members[FUNCTIONS];
	struct cv_nf_counters *counters[FUNCTIONS];
	struct cv_error error = {0};
	uint8_t order[FUNCTIONS];

	memset(bench, 0, sizeof(*bench));
	for (unsigned i = 0; i < count; i++) {
		members[i] = (struct cv_flow_member){&functions[i], policer};
		counters[i] = &bench->counters[i];
		order[i] = (uint8_t)i;
	}
	bench->rewrites = count > 1;
	bench->bytes = cv_flow_zone_bytes(members, count, &limits);
	bench->zone = cv_flow_zone_create(members, count, &limits, rte_get_tsc_hz(), &error);
	if (bench->zone == NULL)
		die(error.text);
	bench->group = cv_flow_group_create(bench->zone, order, counters);
}

// Writes flow number i's packet into a frame. A reply is to what the functions make of it.
static void write_packet(const struct bench *bench, uint8_t *frame, uint32_t i, bool reply)
{
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + 14);
	const bool tcp = i & 1;
	const uint32_t src = 10u << 24 | i >> 4;
	rte_be16_t sport = rte_cpu_to_be_16((uint16_t)(1024 + (i & 15) * 37 + (i >> 20)));
	uint32_t dst = 0xc6336401;
	rte_be16_t ports[2] = {sport, RTE_BE16(443)};
	uint32_t from = src;

	*ip = (struct cv_ipv4){.version_ihl = 0x45,
		.total_len = RTE_BE16(FRAME - 14),
		.ttl = 64,
		.proto = tcp ? IPPROTO_TCP : IPPROTO_UDP};
	memset(frame + 34, 0, FRAME - 34);
	frame[34 + 13] = 0x10;
	if (bench->rewrites && reply) {
		from = (src & 0xffffff) | 100u << 24;
		ports[0] ^= RTE_BE16(0x4000);
		dst = 0xc0a80001 + backend_of(ports[0]);
	}
	ip->src = rte_cpu_to_be_32(reply ? dst : from);
	ip->dst = rte_cpu_to_be_32(reply ? from : dst);
	memcpy(frame + 34, &ports[reply], 2);
	memcpy(frame + 36, &ports[!reply], 2);
	frame[40] = 1; // UDP: there is a checksum
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
}

// A burst, whose frames lie as a port's buffers do: 2 KiB apart but for a few lines.
struct burst {
	uint8_t *frames[CV_BURST_MAX];
	struct cv_view views[CV_BURST_MAX];
	uint8_t verdicts[CV_BURST_MAX];
};

static void burst_make(struct burst *burst)
{
	uint8_t *memory = calloc(CV_BURST_MAX, 2176);

	for (unsigned i = 0; i < CV_BURST_MAX; i++) {
		burst->frames[i] = memory + i * 2176;
		burst->frames[i][12] = 8;
	}
}

static void burst_write(
	const struct bench *bench, struct burst *burst, unsigned at, uint32_t flow, bool reply)
{
	write_packet(bench, burst->frames[at], flow, reply);
	cv_view_set(&burst->views[at], burst->frames[at], FRAME);
}

static void die_dropped(const struct bench *bench)
{
	const struct cv_nf_counters *counters = cv_flow_group_counters(bench->group);

	for (unsigned i = CV_FLOW_BY_FUNCTION + 1; i < CV_FLOW_DROPS; i++)
		if (counters->drops[i] != 0)
			die(cv_flow_drop_names[i]);
	die("a function dropped a packet");
}

// Ticks of one burst.
static uint64_t run(struct bench *bench, struct burst *burst, unsigned n)
{
	const uint64_t begin = rte_rdtsc();
	uint16_t dropped;

	worker.now = begin;
	cv_flow_tick(bench->group, &worker);
	dropped =
		cv_flow_process(bench->group, &worker, burst->views, burst->verdicts, (uint16_t)n);
	if (dropped != 0)
		die_dropped(bench);
	return rte_rdtsc() - begin;
}

static void fill(struct bench *bench, struct burst *burst, uint32_t flows_count)
{
	for (unsigned reply = 0; reply < 2; reply++)
		for (uint32_t i = 0; i < flows_count; i += CV_BURST_MAX) {
			const unsigned n = RTE_MIN(flows_count - i, (unsigned)CV_BURST_MAX);

			for (unsigned k = 0; k < n; k++)
				burst_write(bench, burst, k, i + k, reply);
			run(bench, burst, n);
		}
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// Cycles per packet of flows that are known.
static double known(struct bench *bench, struct burst *burst, uint32_t flows_count)
{
	double ticks[BURSTS];

	for (unsigned b = 0; b < BURSTS; b++) {
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			burst_write(bench, burst, k, below(flows_count), random64() & 1);
		ticks[b] = (double)run(bench, burst, CV_BURST_MAX);
	}
	qsort(ticks, BURSTS, sizeof(ticks[0]), ascending);
	return ticks[BURSTS / 2] / CV_BURST_MAX;
}

// The least that memory costs: of one bucket and one entry for each packet, asked for in the same
// way, nothing but a word is read.
static double two_lines(uint32_t flows_count)
{
	const size_t buckets = flows_count / 3 + 1, lines = buckets + flows_count;
	uint64_t *memory = aligned_alloc(2 << 20, RTE_ALIGN_CEIL(lines * 64, (size_t)2 << 20));
	double ticks[BURSTS];

	if (memory == NULL)
		die("no memory");
	madvise(memory, lines * 64, MADV_HUGEPAGE);
	memset(memory, 1, lines * 64);
	for (unsigned b = 0; b < BURSTS; b++) {
		const uint64_t *bucket[CV_BURST_MAX], *entry[CV_BURST_MAX];
		uint64_t begin, all = 0;

		for (unsigned k = 0; k < CV_BURST_MAX; k++) {
			bucket[k] = memory + 8 * below((uint32_t)buckets);
			entry[k] = memory + 8 * (buckets + below(flows_count));
		}
		begin = rte_rdtsc();
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			rte_prefetch0(bucket[k]);
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			rte_prefetch0(entry[k] + (*bucket[k] & 2));
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			all += *entry[k];
		__asm__ volatile("" : : "r"(all)); // read, whatever becomes of it
		ticks[b] = (double)(rte_rdtsc() - begin);
	}
	free(memory);
	qsort(ticks, BURSTS, sizeof(ticks[0]), ascending);
	return ticks[BURSTS / 2] / CV_BURST_MAX;
}

// Cycles per new flow, while the others are forwarded.
static double fresh(struct bench *bench, struct burst *burst, uint32_t flows_count, uint32_t *next)
{
	double ticks[BURSTS];

	for (unsigned b = 0; b < BURSTS; b++) {
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			burst_write(bench, burst, k, (*next)++, false);
		ticks[b] = (double)run(bench, burst, CV_BURST_MAX);
		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			burst_write(bench, burst, k, below(flows_count), random64() & 1);
		run(bench, burst, CV_BURST_MAX);
	}
	qsort(ticks, BURSTS, sizeof(ticks[0]), ascending);
	return ticks[BURSTS / 2] / CV_BURST_MAX;
}

static void print(const char *name, double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), ascending);
	printf(", \"%s\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}", name, values[n / 2],
		values[0], values[n - 1]);
}

static void measure(uint32_t flows_count, unsigned repeats)
{
	static struct policer policer;
	const struct rte_meter_srtcm_params params = {
		.cir = 1ull << 40, .cbs = 1ull << 40, .ebs = 1ull << 40};
	const uint32_t max = flows_count + repeats * BURSTS * CV_BURST_MAX;
	double four[REPEATS_MAX], one[REPEATS_MAX], added[REPEATS_MAX], memory[REPEATS_MAX];
	struct burst burst;
	struct bench bench;
	uint32_t next = flows_count;

	rte_meter_srtcm_profile_config(&policer.profile, (struct rte_meter_srtcm_params *)&params);
	for (unsigned i = 0; i < HOSTS; i++)
		rte_meter_srtcm_config(&policer.meters[i], &policer.profile);
	burst_make(&burst);
	bench_make(&bench, 1, flows_count, &policer);
	fill(&bench, &burst, flows_count);
	for (unsigned r = 0; r < repeats; r++)
		one[r] = known(&bench, &burst, flows_count);
	cv_flow_zone_destroy(bench.zone);

	bench_make(&bench, FUNCTIONS, flows_count, &policer);
	fill(&bench, &burst, flows_count);
	for (unsigned r = 0; r < repeats; r++) {
		four[r] = known(&bench, &burst, flows_count);
		memory[r] = two_lines(flows_count);
	}
	printf("{\"flows\": %u, \"bytes_per_flow\": %.1f", flows_count,
		(double)bench.bytes / flows_count);
	cv_flow_zone_destroy(bench.zone);
	print("two_lines_cycles_per_packet", memory, repeats);
	print("one_function_cycles_per_packet", one, repeats);
	print("four_functions_cycles_per_packet", four, repeats);

	bench_make(&bench, FUNCTIONS, max, &policer);
	fill(&bench, &burst, flows_count);
	for (unsigned r = 0; r < repeats; r++)
		added[r] = fresh(&bench, &burst, flows_count, &next);
	cv_flow_zone_destroy(bench.zone);
	print("cycles_per_new_flow", added, repeats);
	printf(", \"tsc_hz\": %lu}\n", rte_get_tsc_hz());
	fflush(stdout);
	free(burst.frames[0]);
}

int main(int argc, char **argv)
{
	static const uint32_t usual[] = {1000, 65536, 1000000, 10000000};
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"64", "-l", "0", "--log-level=error", "--file-prefix=bench-flow"};
	const unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 11;

	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		die("DPDK did not start");
	if (repeats < 1 || repeats > REPEATS_MAX)
		die("REPEATS: give 1 to 99");
	if (argc < 3)
		for (unsigned i = 0; i < RTE_DIM(usual); i++)
			measure(usual[i], repeats);
	for (int i = 2; i < argc; i++)
		measure((uint32_t)atoi(argv[i]), repeats);
	return 0;
}
