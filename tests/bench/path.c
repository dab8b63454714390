// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Functions as the node runs them: its own path loads the burst and takes it through the path.
#include <stdlib.h>

#include "chain/rx.h"
#include "tests/bench/bench.h"

struct bench_path {
	struct cv_path path;
	struct cv_port_counters port_counters;
	struct cv_burst burst;
	const struct cv_nf *types[4];
	struct cv_step steps[4];
	struct cv_nf_counters counters[4];
	struct cv_path_worker worker;
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct bench_path *path = state;

	cv_burst_load(&path->burst, packets, n, 0, 1, &path->port_counters);
	cv_path_run_functions(&path->path, &path->worker, &path->burst);
	return path->burst.n;
}

struct cv_burst *bench_path_burst(void *state)
{
	struct bench_path *path = state;

	return &path->burst;
}

void bench_path_continue(void *state)
{
	struct bench_path *path = state;

	cv_path_run_functions(&path->path, &path->worker, &path->burst);
}

static uint64_t busy(const void *state)
{
	const struct bench_path *path = state;
	uint64_t ticks = 0;

	for (unsigned i = 0; i < path->path.length; i++)
		ticks += cv_counted(&path->counters[i].busy_cycles);
	return ticks;
}

static void destroy(void *state)
{
	struct bench_path *path = state;

	for (unsigned i = 0; i < path->path.length; i++)
		cv_nf_destroy(path->types[i], path->steps[i].instance);
	free(path);
}

int bench_path_create(struct bench_subject *subject, const char *const *names, unsigned names_count,
	const struct bench_tables *tables, struct cv_error *error)
{
	static const char *const ports[] = {"left", "right"};
	static const uint8_t macs[][6] = {{2, 0xc0, 0x17, 0, 0, 0}, {2, 0xc0, 0x17, 0, 0, 1}};
	static const uint16_t mtus[] = {1500, 1500};
	struct bench_path *path =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*path), RTE_CACHE_LINE_SIZE));

	if (path == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(path, 0, sizeof(*path));
	path->path.steps = path->steps;
	for (unsigned i = 0; i < names_count; i++) {
		struct cv_nf_env env = {
			.name = names[i],
			.workers = 1,
			.socket = -1,
			.ports = ports,
			.macs = macs,
			.mtus = mtus,
			.ports_count = RTE_DIM(ports),
		};
		json_t *config = bench_config(names[i], tables);

		path->types[i] = cv_nf_find(names[i]);
		if (path->types[i] == NULL) {
			cv_error_set(error, "no function is called %s", names[i]);
		} else {
			path->steps[i].process = path->types[i]->process;
			path->steps[i].counters = &path->counters[i];
			path->steps[i].instance = cv_nf_create(path->types[i], config, &env, error);
			if (path->steps[i].instance != NULL)
				cv_nf_start(path->types[i], path->steps[i].instance, &env);
		}
		json_decref(config);
		if (path->steps[i].instance == NULL) {
			destroy(path);
			return -1;
		}
		path->path.length++;
	}
	*subject =
		(struct bench_subject){.run = run, .busy = busy, .destroy = destroy, .state = path};
	return 0;
}
