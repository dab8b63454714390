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

static void leave(struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
}

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct bench_path *path = state;

	cv_burst_load(&path->burst, packets, n, 0, 1, &path->port_counters);
	cv_path_run(&path->path, &path->worker, &path->burst);
	return path->burst.n;
}

struct cv_burst *bench_path_burst(void *state)
{
	struct bench_path *path = state;

	return &path->burst;
}

const struct cv_path *bench_path_of(void *state)
{
	struct bench_path *path = state;

	path->path.out = 1;
	return &path->path;
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

static struct bench_path *make_path(void)
{
	struct bench_path *path =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*path), RTE_CACHE_LINE_SIZE));

	if (path == NULL)
		return NULL;
	memset(path, 0, sizeof(*path));
	path->path.steps = path->steps;
	path->worker.leave = leave;
	return path;
}

// Puts a function behind those that are there. Returns 0, or -1 with error set.
static int add(
	struct bench_path *path, const char *name, const json_t *config, struct cv_error *error)
{
	static const char *const ports[] = {"left", "right"};
	static const uint8_t macs[][6] = {{2, 0xc0, 0x17, 0, 0, 0}, {2, 0xc0, 0x17, 0, 0, 1}};
	static const uint16_t mtus[] = {1500, 1500};
	const struct cv_nf_env env = {
		.name = name,
		.workers = 1,
		.socket = -1,
		.ports = ports,
		.macs = macs,
		.mtus = mtus,
		.ports_count = RTE_DIM(ports),
	};
	const unsigned i = path->path.length;

	path->types[i] = cv_nf_find(name);
	if (path->types[i] == NULL) {
		cv_error_set(error, "no function is called %s", name);
		return -1;
	}
	path->steps[i].process = path->types[i]->process;
	path->steps[i].counters = &path->counters[i];
	path->steps[i].instance = cv_nf_create(path->types[i], config, &env, error);
	if (path->steps[i].instance == NULL)
		return -1;
	cv_nf_start(path->types[i], path->steps[i].instance, &env);
	path->path.length++;
	return 0;
}

static int finish(struct bench_subject *subject, struct bench_path *path, int rc)
{
	if (rc != 0) {
		destroy(path);
		return -1;
	}
	*subject =
		(struct bench_subject){.run = run, .busy = busy, .destroy = destroy, .state = path};
	return 0;
}

int bench_path_create(struct bench_subject *subject, const char *const *names, unsigned names_count,
	const struct bench_tables *tables, struct cv_error *error)
{
	struct bench_path *path = make_path();
	int rc = 0;

	if (path == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	for (unsigned i = 0; rc == 0 && i < names_count; i++) {
		json_t *config = bench_config(names[i], tables);

		rc = add(path, names[i], config, error);
		json_decref(config);
	}
	return finish(subject, path, rc);
}

int bench_path_create_of(struct bench_subject *subject, const char *name, const json_t *config,
	struct cv_error *error)
{
	struct bench_path *path = make_path();

	if (path == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	return finish(subject, path, add(path, name, config, error));
}
