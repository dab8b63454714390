// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/row_counters.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

int cv_row_counters_make(struct cv_row_counters *counters, size_t rows, const struct cv_nf_env *env)
{
	counters->rows = rows;
	for (; counters->workers < env->workers; counters->workers++) {
		uint64_t *packets = rte_calloc_socket(
			"row counters", rows, sizeof(*packets), RTE_CACHE_LINE_SIZE, env->socket);

		if (packets == NULL)
			return -ENOMEM;
		counters->packets[counters->workers] = packets;
	}
	return 0;
}

void cv_row_counters_free(struct cv_row_counters *counters)
{
	for (unsigned i = 0; i < counters->workers; i++)
		rte_free(counters->packets[i]);
	free(counters->before);
}

uint64_t cv_row_counters_sum(const struct cv_row_counters *counters, size_t row)
{
	uint64_t sum = counters->before != NULL ? counters->before[row] : 0;

	for (unsigned i = 0; i < counters->workers; i++)
		sum += __atomic_load_n(&counters->packets[i][row], __ATOMIC_RELAXED);
	return sum;
}

void cv_row_counters_inherit(struct cv_row_counters *counters, const struct cv_row_counters *before,
	const uint32_t *same)
{
	uint64_t *sums = same == NULL ? NULL : calloc(counters->rows, sizeof(*sums));

	for (size_t row = 0; sums != NULL && row < counters->rows; row++)
		if (same[row] != 0)
			sums[row] = cv_row_counters_sum(before, same[row] - 1);
	counters->before = sums;
}
