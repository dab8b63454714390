// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Numbers (row indices) by service path and index, which are 32 bits together. Made before packets flow and
// at most half full; a look-up ends at the first free place.
#ifndef CV_NSH_PATH_TABLE_H
#define CV_NSH_PATH_TABLE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "packet/compiler.h"

#define CV_NSH_PATHS_MAX 65536
#define CV_NSH_NO_PATH UINT32_MAX

struct cv_nsh_path_table {
	unsigned shift; // of a hash of 32 bits, to a place
	uint32_t mask;
	struct cv_nsh_path_place {
		uint32_t key, row; // CV_NSH_NO_PATH: free
	} * place;
};

// Room for so many. Returns 0 or -ENOMEM.
static inline int cv_nsh_path_table_init(struct cv_nsh_path_table *table, size_t count)
{
	const unsigned bits = (unsigned)rte_log2_u32((uint32_t)RTE_MAX(2 * count, 2u));

	table->shift = 32 - bits;
	table->mask = (1u << bits) - 1;
	table->place = malloc((table->mask + 1u) * sizeof(*table->place));
	if (table->place == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i <= table->mask; i++)
		table->place[i] = (struct cv_nsh_path_place){.row = CV_NSH_NO_PATH};
	return 0;
}

static inline void cv_nsh_path_table_free(struct cv_nsh_path_table *table)
{
	free(table->place);
}

// Where the key is, or belongs.
static CV_INLINE struct cv_nsh_path_place *cv_nsh_path_place(
	const struct cv_nsh_path_table *table, uint32_t key)
{
	uint32_t at = (key * UINT32_C(0x9e3779b1)) >> table->shift;

	while (table->place[at].key != key && table->place[at].row != CV_NSH_NO_PATH)
		at = (at + 1) & table->mask;
	return &table->place[at];
}

static inline int cv_nsh_path_add(struct cv_nsh_path_table *table, uint32_t key, uint32_t row)
{
	struct cv_nsh_path_place *place = cv_nsh_path_place(table, key);

	if (place->row != CV_NSH_NO_PATH)
		return -EEXIST;
	*place = (struct cv_nsh_path_place){.key = key, .row = row};
	return 0;
}

static CV_INLINE uint32_t cv_nsh_path_find(const struct cv_nsh_path_table *table, uint32_t key)
{
	return cv_nsh_path_place(table, key)->row;
}

#endif
