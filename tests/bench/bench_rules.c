// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The firewall with a rules file (ClassBench): how long it takes to build, and cycles per packet.
// Every packet is a flow of its own, of a rule drawn at random.
//
//   bench-rules FILE [REPEATS]
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "chain/nf.h"
#include "nf/firewall/rules.h"
#include "packet/tuple.h"

#define PACKETS 8192
#define FRAME_BYTES 64

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((state >> 32) * n) >> 32);
}

static uint32_t draw_address(const struct cv_prefix *prefix)
{
	uint32_t base;

	memcpy(&base, prefix->address.bytes, 4);
	if (prefix->length == 32)
		return base;
	return base | rte_cpu_to_be_32((draw(1u << 31) << 1 | draw(2)) >> prefix->length);
}

static rte_be16_t draw_port(const struct cv_firewall_ports *ports)
{
	return rte_cpu_to_be_16((uint16_t)(ports->first + draw(ports->last - ports->first + 1u)));
}

static void write_packet(const struct cv_firewall_rule *rule, uint8_t *frame)
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = RTE_BE16(FRAME_BYTES - 14),
		.time_to_live = 64,
		.next_proto_id = rule->proto >= 0 ? (uint8_t)rule->proto : IPPROTO_TCP,
		.src_addr = draw_address(&rule->src),
		.dst_addr = draw_address(&rule->dst),
	};
	rte_be16_t ports[2] = {draw_port(&rule->sport), draw_port(&rule->dport)};

	memset(frame, 0, FRAME_BYTES);
	frame[12] = 8;
	memcpy(frame + 14, &ip, sizeof(ip));
	memcpy(frame + 34, ports, sizeof(ports));
	if (ip.next_proto_id == IPPROTO_TCP)
		frame[34 + 13] = (uint8_t)(rule->extra.l4.value >> 8);
	else if (ip.next_proto_id == IPPROTO_ICMP)
		memcpy(frame + 34,
			(uint8_t[]){(uint8_t)(rule->extra.l4.value >> 8),
				(uint8_t)rule->extra.l4.value},
			2);
}

static int ascending(const void *one, const void *two)
{
	const double a = *(const double *)one, b = *(const double *)two;

	return (a > b) - (a < b);
}

static double run(const struct cv_nf *nf, void *firewall, struct cv_view *views)
{
	struct cv_nf_worker worker = {.index = 0};
	uint8_t verdict[CV_BURST_MAX];
	uint64_t ticks = 0;

	for (unsigned i = 0; i < PACKETS; i += CV_BURST_MAX) {
		uint64_t then;

		for (unsigned k = 0; k < CV_BURST_MAX; k++)
			rte_prefetch0(views[i + k].data);
		then = rte_rdtsc();
		nf->process(firewall, &worker, &views[i], verdict, CV_BURST_MAX);
		ticks += rte_rdtsc() - then;
	}
	return (double)ticks / PACKETS;
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"3072", "-l", "0", "--log-level=error", "--file-prefix=bench-rules"};
	const unsigned repeats = argc > 2 ? (unsigned)atoi(argv[2]) : 11;
	const struct cv_nf_env env = {.name = "bench-rules", .workers = 1, .socket = -1};
	const struct cv_nf *nf = cv_nf_find("firewall");
	struct cv_firewall_rules rules = {0};
	struct cv_error error = {""};
	struct cv_view *views = calloc(PACKETS, sizeof(*views));
	uint8_t *frames = calloc(PACKETS, FRAME_BYTES);
	double *cycles = calloc(repeats, sizeof(*cycles));
	json_t *config;
	void *firewall;
	uint64_t then;
	double seconds;
	struct rusage usage;

	if (argc < 2 || repeats == 0 || rte_eal_init(RTE_DIM(eal), eal) < 0 || views == NULL ||
		frames == NULL || cycles == NULL) {
		fprintf(stderr, "usage: bench-rules FILE [REPEATS]\n");
		return 2;
	}
	config = json_pack("{s:s}", "rules_file", argv[1]);
	then = rte_rdtsc();
	firewall = cv_firewall_rules_load(&rules, argv[1], true, &error) == 0
			   ? cv_nf_create(nf, config, &env, &error)
			   : NULL;
	if (firewall == NULL) {
		fprintf(stderr, "bench-rules: %s\n", error.text);
		return 1;
	}
	seconds = (double)(rte_rdtsc() - then) / (double)rte_get_tsc_hz();
	getrusage(RUSAGE_SELF, &usage);
	for (unsigned i = 0; i < PACKETS; i++) {
		write_packet(&rules.rule[draw((uint32_t)rules.count)], &frames[i * FRAME_BYTES]);
		cv_view_set(&views[i], &frames[i * FRAME_BYTES], FRAME_BYTES);
	}
	run(nf, firewall, views);
	for (unsigned i = 0; i < repeats; i++)
		cycles[i] = run(nf, firewall, views);
	qsort(cycles, repeats, sizeof(*cycles), ascending);
	printf("%s: %zu rules, built in %.2f s, %ld MB at most; cycles per packet: median %.1f, "
	       "min "
	       "%.1f, max %.1f\n",
		argv[1], rules.count, seconds, usage.ru_maxrss / 1024, cycles[repeats / 2],
		cycles[0], cycles[repeats - 1]);
	cv_nf_destroy(nf, firewall);
	cv_firewall_rules_clear(&rules);
	return 0;
}
