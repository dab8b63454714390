// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Numbers (row indices) by IPv6 address, or by anything of 16 bytes. Made before packets flow and at most
// half full; a look-up ends at the first free place.
#ifndef CV_ADDRESS_TABLE_H
#define CV_ADDRESS_TABLE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "packet/compiler.h"

#define CV_ADDRESS_NONE UINT32_MAX

struct cv_address_place {
	uint64_t high, low; // as it lies in memory
	uint32_t row; // CV_ADDRESS_NONE: free
};

struct cv_address_table {
	unsigned shift; // of a hash of 64 bits, to a place
	uint32_t mask;
	struct cv_address_place *place;
};

// Room for so many. Returns 0 or -ENOMEM.
static inline int cv_address_table_init(struct cv_address_table *table, size_t count)
{
	const unsigned bits = (unsigned)rte_log2_u32((uint32_t)RTE_MAX(2 * count, 2u));

	table->shift = 64 - bits;
	table->mask = (1u << bits) - 1;
	table->place = malloc((table->mask + 1u) * sizeof(*table->place));
	if (table->place == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i <= table->mask; i++)
		table->place[i] = (struct cv_address_place){.row = CV_ADDRESS_NONE};
	return 0;
}

static inline void cv_address_table_free(struct cv_address_table *table)
{
	free(table->place);
}

// Where an address is, or belongs.
static CV_INLINE struct cv_address_place *cv_address_place(
	const struct cv_address_table *table, const uint8_t *address)
{
	uint64_t high, low;
	uint32_t at;

	memcpy(&high, address, sizeof(high));
	memcpy(&low, address + sizeof(high), sizeof(low));
	at = (uint32_t)(((high * UINT64_C(0xe7037ed1a0b428db)) ^ low) *
				UINT64_C(0x9e3779b97f4a7c15) >>
			table->shift);
	while (table->place[at].row != CV_ADDRESS_NONE &&
		(table->place[at].high != high || table->place[at].low != low))
		at = (at + 1) & table->mask;
	return &table->place[at];
}

static inline int cv_address_add(
	struct cv_address_table *table, const uint8_t *address, uint32_t row)
{
	struct cv_address_place *place = cv_address_place(table, address);

	if (place->row != CV_ADDRESS_NONE)
		return -EEXIST;
	memcpy(&place->high, address, sizeof(place->high));
	memcpy(&place->low, address + sizeof(place->high), sizeof(place->low));
	place->row = row;
	return 0;
}

static CV_INLINE uint32_t cv_address_find(
	const struct cv_address_table *table, const uint8_t *address)
{
	return cv_address_place(table, address)->row;
}

#endif
