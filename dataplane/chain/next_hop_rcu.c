// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <time.h>

#include <rte_malloc.h>

#include "chain/next_hop_rcu.h"

int cv_next_hop_rcu_init(
	struct cv_next_hop_rcu *rcu, struct cv_next_hop_table *table, unsigned workers)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(workers);

	rcu->table = table;
	rcu->readers = rte_zmalloc("next_hop_readers", bytes, RTE_CACHE_LINE_SIZE);
	if (rcu->readers == NULL || rte_rcu_qsbr_init(rcu->readers, workers) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < workers; i++)
		rte_rcu_qsbr_thread_register(rcu->readers, i);
	return 0;
}

void cv_next_hop_rcu_fini(struct cv_next_hop_rcu *rcu)
{
	cv_next_hop_table_free(rcu->table);
	rte_free(rcu->readers);
	rcu->table = NULL;
	rcu->readers = NULL;
}

void cv_next_hop_rcu_wait(struct cv_next_hop_rcu *rcu)
{
	// The readers may need this very core: sleep until they are done, do not spin.
	const struct timespec pause = {.tv_nsec = 100000};
	uint64_t token;

	// Pairs with the acquire load in cv_next_hop_rcu_changes().
	__atomic_add_fetch(&rcu->changes, 1, __ATOMIC_RELEASE);
	token = rte_rcu_qsbr_start(rcu->readers);
	while (rte_rcu_qsbr_check(rcu->readers, token, false) != 1)
		nanosleep(&pause, NULL);
}

void cv_next_hop_rcu_replace(struct cv_next_hop_rcu *rcu, struct cv_next_hop_table *table)
{
	struct cv_next_hop_table *old = rcu->table;

	// Pairs with the acquire load in cv_next_hop_rcu_table().
	__atomic_store_n(&rcu->table, table, __ATOMIC_RELEASE);
	cv_next_hop_rcu_wait(rcu);
	cv_next_hop_table_free(old);
}

void cv_next_hop_rcu_online(struct cv_next_hop_rcu *rcu, unsigned worker)
{
	rte_rcu_qsbr_thread_online(rcu->readers, worker);
}

void cv_next_hop_rcu_offline(struct cv_next_hop_rcu *rcu, unsigned worker)
{
	rte_rcu_qsbr_thread_offline(rcu->readers, worker);
}
