// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/errands.h"

#include <time.h>

#include <rte_launch.h>

// Waits until the worker is done. The errand of one that has ended is done here.
void cv_errands_await(struct cv_node *node, unsigned index)
{
	struct cv_worker *worker = &node->workers[index];
	// It may need this very core: sleep, do not spin.
	const struct timespec pause = {.tv_nsec = 100000};

	// Pairs with the worker's release store.
	while (__atomic_load_n(&worker->errand, __ATOMIC_ACQUIRE) != NULL) {
		if (rte_eal_get_lcore_state(index + 1) == WAIT)
			cv_worker_do_errand(worker);
		else
			nanosleep(&pause, NULL);
	}
}

void cv_errands_give(struct cv_worker *worker, const struct cv_errand *errand)
{
	// Pairs with the worker's acquire load.
	__atomic_store_n(&worker->errand, errand, __ATOMIC_RELEASE);
}

void cv_errands_do(
	struct cv_node *node, void (*run)(void *argument), void *const arguments[CV_WORKERS_MAX])
{
	struct cv_errand errands[CV_WORKERS_MAX];

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		errands[i] = (struct cv_errand){.run = run, .argument = arguments[i]};
		cv_errands_give(&node->workers[i], &errands[i]);
	}
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		cv_errands_await(node, i);
}
