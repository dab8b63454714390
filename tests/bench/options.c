// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/bench/options.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"

#define USUAL_RULES 100000
#define REPEATS_MAX 1001
#define CACHE_BYTES 97 // a query with EDNS
#define IDS_BYTES 306 // with 260 of payload

// What a function that was left out would be made by.
#ifdef CV_HAVE_VPN
#define VPN(create) create
#else
#define VPN(create) NULL
#endif
#define IDS(count)                                                                        \
	{"ids", .bytes = IDS_BYTES, .patterns = count, .needs = "ids", .path_length = 1}, \
	{                                                                                 \
		"raw-ids", .bytes = IDS_BYTES, .patterns = count, .needs = "ids"          \
	}

const struct bench_kind bench_kinds[] = {
	{"path", .path_length = 0},
	{"ring", .create = bench_ring_create},
	{"ring-2-cores", .two_cores = true},
	{"l2fwd", .path_length = 1, .path = {"l2fwd"}},
	{"router", BENCH_ENTRIES, .path_length = 1, .path = {"router"}},
	{"reference-router", BENCH_ENTRIES, .create = bench_reference_router_create},
	{"firewall", BENCH_ENTRIES, USUAL_RULES, .path_length = 1, .path = {"firewall"}},
	{"classifier", BENCH_ENTRIES, USUAL_RULES, .path_length = 1, .path = {"classifier"}},
	{"reference-firewall", BENCH_ENTRIES, USUAL_RULES,
		.create = bench_reference_firewall_create},
	{"chain", BENCH_ENTRIES, USUAL_RULES, .path_length = 3,
		.path = {"firewall", "router", "l2fwd"}},
	{"nat", BENCH_FEW_FLOWS, .path_length = 1, .path = {"nat"}},
	{"balancer", BENCH_FEW_FLOWS, .path_length = 1, .path = {"balancer"}},
	{"reference-nat", BENCH_FEW_FLOWS, .rewrites = true},
	{"policer", BENCH_FEW_FLOWS, .path_length = 1, .path = {"policer"}},
	{"reference-policer", BENCH_FEW_FLOWS, .meters = true},
	{"stateful", BENCH_FLOWS, .path_length = 4,
		.path = {"firewall", "nat", "balancer", "policer"}},
	{"reference-stateful", BENCH_FLOWS, .rewrites = true, .meters = true},
	{"cache", .bytes = CACHE_BYTES, .create = bench_cache_create, .path_length = 1},
	{"nat64", .bytes = 64, .create = bench_nat64_create, .path_length = 1},
	{"vpn", .bytes = 64, .create = VPN(bench_vpn_create), .needs = "vpn", .path_length = 1},
	{"raw-vpn", .bytes = 64, .create = VPN(bench_raw_vpn_create), .needs = "vpn"},
	{"vpn", .bytes = 1400, .create = VPN(bench_vpn_create), .needs = "vpn", .path_length = 1},
	{"vpn-aggfrag", .bytes = 64, .create = VPN(bench_vpn_aggfrag_create), .needs = "vpn",
		.path_length = 1},
	{"raw-vpn", .bytes = 1400, .create = VPN(bench_raw_vpn_create), .needs = "vpn"},
	IDS(100),
	IDS(2000),
	IDS(10000),
};

_Static_assert(RTE_DIM(bench_kinds) == BENCH_KINDS, "as declared");

void bench_die(int code, const char *text)
{
	fprintf(stderr, "bench-nf: %s\n", text);
	exit(code);
}

static unsigned number(const char *option, const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	char message[160];

	if (end != text && *end == '\0' && text[0] != '-' && value >= least && value <= most)
		return value;
	snprintf(message, sizeof(message), "%s: '%.40s' is not a number from %u to %u", option,
		text, least, most);
	bench_die(2, message);
	return 0;
}

static void numbers(const char *option, unsigned least, unsigned most, struct bench_sizes *sizes)
{
	char message[64];

	for (char *at = strtok(optarg, ","); at != NULL; at = strtok(NULL, ",")) {
		if (sizes->count == BENCH_SIZES_MAX) {
			snprintf(message, sizeof(message), "%s: more than %d numbers", option,
				BENCH_SIZES_MAX);
			bench_die(2, message);
		}
		sizes->of[sizes->count++] = number(option, at, least, most);
	}
}

static bool is_built(const struct bench_kind *kind)
{
	return kind->needs == NULL || cv_nf_find(kind->needs) != NULL;
}

static void want(struct bench_options *options, const char *name)
{
	char message[512];
	bool known = false;
	int length;

	for (unsigned i = 0; i < BENCH_KINDS; i++) {
		if (strcmp(name, bench_kinds[i].name) != 0)
			continue;
		if (!is_built(&bench_kinds[i])) {
			snprintf(message, sizeof(message),
				"--function: '%s' was left out of this build; install %s and build "
				"again",
				name, cv_nf_left_out(bench_kinds[i].needs));
			bench_die(2, message);
		}
		known = options->wanted[i] = true;
	}
	if (known)
		return;
	length = snprintf(message, sizeof(message), "--function: '%.40s' is none of", name);
	for (unsigned i = 0; i < BENCH_KINDS; i++)
		// Of several sizes once.
		if (i == 0 || strcmp(bench_kinds[i].name, bench_kinds[i - 1].name) != 0)
			length += snprintf(message + length, sizeof(message) - length, " %s",
				bench_kinds[i].name);
	bench_die(2, message);
}

// Chooses the cores that were not given. A pipeline that nobody asked for by name is left out where
// there is one core.
static void choose_cores(struct bench_options *options, bool by_name)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &allowed))
			continue;
		if (options->core < 0 && core != options->other_core)
			options->core = core;
		else if (options->other_core < 0 && core != options->core)
			options->other_core = core;
	}
	for (unsigned i = 0; i < BENCH_KINDS; i++) {
		if (!bench_kinds[i].two_cores || !options->wanted[i] || options->other_core >= 0)
			continue;
		if (by_name)
			bench_die(2, "--function: ring-2-cores needs a second core");
		options->wanted[i] = false;
	}
}

void bench_options_read(struct bench_options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{"function", required_argument, NULL, 'f'},
		{"entries", required_argument, NULL, 'e'},
		{"flows", required_argument, NULL, 'n'},
		{"repeats", required_argument, NULL, 'r'},
		{"core", required_argument, NULL, 'c'},
		{"other-core", required_argument, NULL, 'o'},
		{"hugepages", no_argument, NULL, 'H'},
		{0},
	};
	bool all = true;
	int option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'f':
			all = false;
			for (char *at = strtok(optarg, ","); at != NULL; at = strtok(NULL, ","))
				want(options, at);
			break;
		case 'e':
			numbers("--entries", 1, 1000000, &options->entries);
			break;
		case 'n':
			numbers("--flows", 64, BENCH_FLOWS_MAX, &options->flows);
			break;
		case 'r':
			options->repeats = number("--repeats", optarg, 1, REPEATS_MAX);
			break;
		case 'c':
			options->core = number("--core", optarg, 0, 1023);
			break;
		case 'o':
			options->other_core = number("--other-core", optarg, 0, 1023);
			break;
		case 'H':
			options->hugepages = true;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc)
		bench_die(2, "takes options only");
	options->usual = options->entries.count == 0;
	if (options->usual)
		options->entries = (struct bench_sizes){4, {10, 1000, 100000, 1000000}};
	if (options->flows.count == 0)
		options->flows = (struct bench_sizes){2, {65536, 10000000}};
	for (unsigned i = 0; i < BENCH_KINDS; i++)
		options->wanted[i] |= all && is_built(&bench_kinds[i]);
	choose_cores(options, !all);
}
