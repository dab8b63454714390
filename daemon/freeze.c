// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/freeze.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker_core.h"

// What workers stand in.
static struct {
	uint32_t go; // 0: they stand; a futex
	uint32_t standing; // workers
	uint64_t since_ns; // the first does; 0: none has
	struct cv_errand errand;
	struct cv_worker_core core; // on which the thread runs that froze the node
} freeze;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// In a worker. Asleep: its core may be the one that another process's worker needs now.
static void stand(void *argument)
{
	uint64_t nobody = 0;

	__atomic_compare_exchange_n(
		&freeze.since_ns, &nobody, now_ns(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	// Pairs with the acquire load in await_standing(): all that the worker did is seen.
	__atomic_fetch_add(&freeze.standing, 1, __ATOMIC_RELEASE);
	// Pairs with the release store in let_go().
	while (__atomic_load_n(&freeze.go, __ATOMIC_ACQUIRE) == 0)
		syscall(SYS_futex, &freeze.go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void let_go(struct cv_node *node)
{
	__atomic_store_n(&freeze.go, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &freeze.go, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	// Pairs with the worker's release store. One that has not begun to stand passes it by.
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		while (__atomic_load_n(&node->workers[i].errand, __ATOMIC_ACQUIRE) != NULL)
			sched_yield();
}

static bool await_standing(const struct cv_node *node, uint64_t until_ns)
{
	while (__atomic_load_n(&freeze.standing, __ATOMIC_ACQUIRE) < node->plan->workers_count) {
		if (now_ns() > until_ns)
			return false;
		sched_yield();
	}
	return true;
}

// Until every worker has begun and ended a poll iteration from now on.
static bool await_iterations(const struct cv_node *node, uint64_t until_ns)
{
	uint64_t before[CV_WORKERS_MAX];

	// Pairs with the release store at the end of a poll iteration.
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		before[i] = __atomic_load_n(&node->workers[i].iterations, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		while (__atomic_load_n(&node->workers[i].iterations, __ATOMIC_ACQUIRE) <
			before[i] + 2) {
			if (now_ns() > until_ns)
				return false;
			sched_yield();
		}
	return true;
}

static bool has_rings(const struct cv_node *node)
{
	return node->plan->rings_count + node->handoff.rings_count > 0;
}

static bool is_empty(const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->rings_count; i++)
		if (cv_ring_count(node->rings[i]) > 0)
			return false;
	return cv_node_handoff_count(node) == 0;
}

static void set_phase(struct cv_node *node, enum cv_worker_phase phase)
{
	// Pairs with the acquire load in cv_worker_run().
	__atomic_store_n(&node->phase, phase, __ATOMIC_RELEASE);
}

// What is on its way from worker to worker comes to its end: as many quiet rounds as there are stages,
// as cv_node_stop() has it.
static bool drain(struct cv_node *node, uint64_t until_ns)
{
	uint64_t nobody = 0;

	set_phase(node, CV_WORKER_DRAIN);
	__atomic_compare_exchange_n(
		&freeze.since_ns, &nobody, now_ns(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	for (unsigned quiet = 0; quiet <= node->plan->stages_count - node->plan->spare_count;
		quiet++) {
		if (!await_iterations(node, until_ns))
			return false;
		if (!is_empty(node))
			quiet = 0;
	}
	return true;
}

int cv_node_freeze(struct cv_node *node, unsigned ms, uint64_t *at_ns, struct cv_error *error)
{
	const uint64_t until_ns = now_ns() + ms * UINT64_C(1000000);
	bool stands;

	freeze.go = freeze.standing = 0;
	freeze.since_ns = 0;
	freeze.errand.run = stand;
	stands = !has_rings(node) || drain(node, until_ns);
	for (unsigned i = 0; stands && i < node->plan->workers_count; i++)
		// Pairs with the worker's acquire load.
		__atomic_store_n(&node->workers[i].errand, &freeze.errand, __ATOMIC_RELEASE);
	if (stands)
		cv_worker_core_borrow(&freeze.core, node);
	stands = stands && await_standing(node, until_ns);
	*at_ns = __atomic_load_n(&freeze.since_ns, __ATOMIC_RELAXED);
	if (stands)
		return 0;
	cv_node_thaw(node);
	cv_error_set(error, "packets do not leave the node within %u ms; try again", ms);
	return -ETIMEDOUT;
}

void cv_node_leave_core(void)
{
	cv_worker_core_return(&freeze.core);
}

void cv_node_thaw(struct cv_node *node)
{
	cv_node_leave_core();
	set_phase(node, CV_WORKER_RUN);
	let_go(node);
}

void cv_node_end_frozen(struct cv_node *node)
{
	cv_node_leave_core();
	set_phase(node, CV_WORKER_EXIT);
	let_go(node);
}
