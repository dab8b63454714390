// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <time.h>

#include <rte_malloc.h>

#include "chain/next_hops.h"

int cv_next_hops_init(struct cv_next_hops *hops, struct cv_next_hop_table *table, unsigned workers)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(workers);

	hops->table = table;
	hops->readers = rte_zmalloc("next_hop_readers", bytes, RTE_CACHE_LINE_SIZE);
	if (hops->readers == NULL || rte_rcu_qsbr_init(hops->readers, workers) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < workers; i++)
		rte_rcu_qsbr_thread_register(hops->readers, i);
	return 0;
}

void cv_next_hops_fini(struct cv_next_hops *hops)
{
	cv_next_hop_table_free(hops->table);
	rte_free(hops->readers);
	hops->table = NULL;
	hops->readers = NULL;
}

void cv_next_hops_change(struct cv_next_hops *hops, struct cv_next_hop_table *table)
{
	// The readers may need this very core: sleep until they are done, do not spin.
	const struct timespec pause = {.tv_nsec = 100000};
	struct cv_next_hop_table *old = hops->table;
	uint64_t token;

	// Pairs with the acquire load in cv_next_hops_table().
	__atomic_store_n(&hops->table, table, __ATOMIC_RELEASE);
	token = rte_rcu_qsbr_start(hops->readers);
	while (rte_rcu_qsbr_check(hops->readers, token, false) != 1)
		nanosleep(&pause, NULL);
	cv_next_hop_table_free(old);
}

void cv_next_hops_join(struct cv_next_hops *hops, unsigned worker)
{
	rte_rcu_qsbr_thread_online(hops->readers, worker);
}

void cv_next_hops_leave(struct cv_next_hops *hops, unsigned worker)
{
	rte_rcu_qsbr_thread_offline(hops->readers, worker);
}
