// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Stateful functions behind one look-up, as the node runs them: one chain inwards, one outwards with
// the path reversed, and the flow path's tick in each poll iteration.
#include <stdlib.h>

#include <rte_cycles.h>

#include "chain/rx.h"
#include "flow/path.h"
#include "tests/bench/bench.h"
#include "tests/bench/flows.h"

#define FUNCTIONS_MAX 4
#define FRESH_S 1 // after which new flows end
#define KNOWN_S 1000000 // no known flow does

struct stateful {
	struct cv_path path[2]; // of packets that come in left, right
	struct cv_step step[2];
	struct cv_path_worker worker;
	struct cv_port_counters port_counters;
	struct cv_burst burst;
	struct cv_flow_zone *zone;
	uint32_t known; // flows, which do not end
	struct cv_nf_counters counters[FUNCTIONS_MAX];
	unsigned count;
	const struct cv_nf *types[FUNCTIONS_MAX];
	void *instances[FUNCTIONS_MAX];
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct stateful *stateful = state;
	const uint8_t in = (uint8_t)packets[0]->port;

	stateful->worker.nf.now = rte_rdtsc();
	cv_flow_tick(stateful->step[in].instance, &stateful->worker.nf);
	cv_burst_load(&stateful->burst, packets, n, in, !in, &stateful->port_counters);
	cv_path_run_functions(&stateful->path[in], &stateful->worker, &stateful->burst);
	return stateful->burst.n;
}

static uint64_t busy(const void *state)
{
	const struct stateful *stateful = state;

	return cv_counted(&stateful->step[0].counters->busy_cycles) +
	       cv_counted(&stateful->step[1].counters->busy_cycles);
}

// Poll iterations of a time at which new flows are over. Those in which some end are counted.
static double end_fresh(void *state, uint64_t *again)
{
	struct stateful *stateful = state;
	const struct cv_flow_counters *counters = cv_flow_zone_counters(stateful->zone);
	struct cv_nf_worker worker = {.now = rte_rdtsc() + 2 * FRESH_S * rte_get_tsc_hz()};
	uint64_t ticks = 0;

	while (counters->flows_ipv4 > stateful->known) {
		const uint64_t before = counters->flows_ipv4, then = rte_rdtsc();

		cv_flow_tick(stateful->step[0].instance, &worker);
		if (counters->flows_ipv4 != before)
			ticks += rte_rdtsc() - then;
		worker.now += rte_get_tsc_hz() / 1000;
	}
	*again = worker.now; // until then a nat's blocks rest
	return (double)ticks / BENCH_FLOWS_FRESH;
}

static void destroy(void *state)
{
	struct stateful *stateful = state;

	cv_flow_zone_destroy(stateful->zone);
	for (unsigned i = 0; i < stateful->count; i++)
		cv_nf_destroy(stateful->types[i], stateful->instances[i]);
	free(stateful);
}

static int make_functions(
	struct stateful *stateful, const char *const *names, uint32_t known, struct cv_error *error)
{
	static const char *const ports[] = {"left", "right"};
	static const uint8_t macs[][6] = {{2, 0xc0, 0x17, 0, 0, 0}, {2, 0xc0, 0x17, 0, 0, 1}};
	static const uint16_t mtus[] = {1500, 1500};

	for (; stateful->count < FUNCTIONS_MAX && names[stateful->count] != NULL;
		stateful->count++) {
		const unsigned i = stateful->count;
		const struct cv_nf_env env = {
			.name = names[i],
			.workers = 1,
			.socket = -1,
			.ports = ports,
			.macs = macs,
			.mtus = mtus,
			.ports_count = RTE_DIM(ports),
		};
		json_t *config = bench_flows_config(names[i], known);

		stateful->types[i] = cv_nf_find(names[i]);
		stateful->instances[i] = cv_nf_create(stateful->types[i], config, &env, error);
		json_decref(config);
		if (stateful->instances[i] == NULL)
			return -1;
		cv_nf_start(stateful->types[i], stateful->instances[i], &env);
	}
	return 0;
}

static int make_zone(
	struct stateful *stateful, uint32_t known, size_t *bytes, struct cv_error *error)
{
	const struct cv_flow_limits limits = {
		.max = BENCH_FLOWS_TABLE(known),
		.max_ipv6 = 64,
		.timeouts_s = {[CV_FLOW_TCP_OPENING] = FRESH_S,
			[CV_FLOW_TCP_ESTABLISHED] = KNOWN_S,
			[CV_FLOW_TCP_CLOSING] = FRESH_S,
			[CV_FLOW_UDP_NEW] = FRESH_S,
			[CV_FLOW_UDP] = KNOWN_S},
	};
	struct cv_flow_member members[FUNCTIONS_MAX];

	for (unsigned i = 0; i < stateful->count; i++)
		members[i] = (struct cv_flow_member){stateful->types[i], stateful->instances[i]};
	stateful->zone =
		cv_flow_zone_create(members, stateful->count, &limits, rte_get_tsc_hz(), error);
	if (stateful->zone == NULL)
		return -1;
	*bytes = cv_flow_zone_bytes(members, stateful->count, &limits);
	for (unsigned in = 0; in < 2; in++) {
		struct cv_nf_counters *counters[FUNCTIONS_MAX];
		uint8_t order[FUNCTIONS_MAX];
		struct cv_flow_group *group;

		for (unsigned i = 0; i < stateful->count; i++) {
			order[i] = (uint8_t)(in ? stateful->count - 1 - i : i);
			counters[i] = &stateful->counters[order[i]];
		}
		group = cv_flow_group_create(stateful->zone, order, counters);
		if (group == NULL) {
			cv_error_set(error, "out of memory");
			return -1;
		}
		stateful->step[in] = (struct cv_step){.process = cv_flow_process,
			.instance = group,
			.counters = cv_flow_group_counters(group)};
		stateful->path[in] = (struct cv_path){.length = 1, .steps = &stateful->step[in]};
	}
	return 0;
}

int bench_stateful_create(struct bench_subject *subject, const char *const *names,
	struct bench_flows *flows, struct cv_error *error)
{
	struct stateful *stateful = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*stateful), RTE_CACHE_LINE_SIZE));

	if (stateful == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(stateful, 0, sizeof(*stateful));
	stateful->known = flows->known;
	*subject = (struct bench_subject){.run = run,
		.busy = busy,
		.flows = flows,
		.end_fresh = end_fresh,
		.destroy = destroy,
		.state = stateful};
	if (make_functions(stateful, names, flows->known, error) == 0 &&
		make_zone(stateful, flows->known, &subject->table_bytes, error) == 0)
		return 0;
	destroy(stateful);
	return -1;
}
