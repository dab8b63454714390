// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Two stages of a pipeline on two cores. This core makes views of packets and pushes them; the
// other pops them and runs l2fwd. What is measured here is this core's part, waiting for room
// included; what the other core needs is its busy time. Between measurements the other core sleeps.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "chain/rx.h"
#include "chain/ring.h"
#include "tests/bench/bench.h"

#define RING_PACKETS 1024

struct pipeline {
	struct cv_ring *ring;
	struct cv_port_counters port_counters;
	struct cv_burst burst;
	bool awake; // known to this core only

	// The other core's.
	pthread_t thread;
	sem_t wake;
	struct bench_subject l2fwd;
	int rest; // the other core goes to sleep when the ring is empty; written by this core
	int end;
	uint64_t busy __rte_cache_aligned; // written by the other core
};

static void *work(void *argument)
{
	struct pipeline *pipeline = argument;
	struct cv_burst *burst = bench_path_burst(pipeline->l2fwd.state);

	sem_wait(&pipeline->wake);
	// Pairs with destroy().
	while (!__atomic_load_n(&pipeline->end, __ATOMIC_ACQUIRE)) {
		uint64_t then = rte_rdtsc();

		burst->n =
			cv_ring_pop(pipeline->ring, &burst->buffers, burst->views, CV_BURST_VIEWS);
		if (burst->n > 0) {
			cv_burst_measure(burst);
			bench_path_continue(pipeline->l2fwd.state);
			cv_count(&pipeline->busy, rte_rdtsc() - then);
		} else if (__atomic_load_n(
				   &pipeline->rest, __ATOMIC_ACQUIRE)) { // pairs with settle()
			sem_wait(&pipeline->wake);
		} else {
			rte_pause();
		}
	}
	return NULL;
}

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct pipeline *pipeline = state;
	struct cv_burst *burst = &pipeline->burst;
	if (CV_UNLIKELY(!pipeline->awake)) {
		pipeline->awake = true;
		__atomic_store_n(&pipeline->rest, 0, __ATOMIC_RELEASE); // pairs with work()
		sem_post(&pipeline->wake);
	}
	cv_burst_load(burst, packets, n, 0, 1, &pipeline->port_counters);
	while (!cv_ring_has_room(pipeline->ring, burst->buffers.n, burst->n))
		rte_pause();
	return cv_ring_push(pipeline->ring, &burst->buffers, burst->views, burst->n);
}

static void settle(void *state)
{
	struct pipeline *pipeline = state;

	while (cv_ring_count(pipeline->ring) > 0)
		rte_pause();
	pipeline->awake = false;
	__atomic_store_n(&pipeline->rest, 1, __ATOMIC_RELEASE); // pairs with work()
}

static uint64_t busy(const void *state)
{
	const struct pipeline *pipeline = state;

	return cv_counted(&pipeline->busy);
}

static void destroy(void *state)
{
	struct pipeline *pipeline = state;

	__atomic_store_n(&pipeline->end, 1, __ATOMIC_RELEASE); // pairs with work()
	sem_post(&pipeline->wake);
	pthread_join(pipeline->thread, NULL);
	sem_destroy(&pipeline->wake);
	cv_ring_free(pipeline->ring);
	pipeline->l2fwd.destroy(pipeline->l2fwd.state);
	free(pipeline);
}

static int start(struct pipeline *pipeline, int core, struct cv_error *error)
{
	cpu_set_t cores;

	if (pthread_create(&pipeline->thread, NULL, work, pipeline) != 0) {
		cv_error_set(error, "cannot start a thread");
		return -1;
	}
	CPU_ZERO(&cores);
	CPU_SET(core, &cores);
	if (pthread_setaffinity_np(pipeline->thread, sizeof(cores), &cores) != 0)
		cv_error_set(error, "cannot run on core %d", core);
	return error->text[0] == '\0' ? 0 : -1;
}

int bench_pipeline_create(struct bench_subject *subject, const struct bench_tables *tables,
	int core, struct cv_error *error)
{
	static const char *const path[] = {"l2fwd"};
	struct pipeline *pipeline = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*pipeline), RTE_CACHE_LINE_SIZE));

	if (pipeline == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(pipeline, 0, sizeof(*pipeline));
	sem_init(&pipeline->wake, 0, 0);
	pipeline->ring = cv_ring_create("bench", RING_PACKETS, RING_PACKETS, error);
	if (pipeline->ring == NULL ||
		bench_path_create(&pipeline->l2fwd, path, 1, tables, error) != 0 ||
		start(pipeline, core, error) != 0)
		return -1; // the program ends
	*subject = (struct bench_subject){
		.run = run, .settle = settle, .busy = busy, .destroy = destroy, .state = pipeline};
	return 0;
}
