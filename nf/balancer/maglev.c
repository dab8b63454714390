// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>

#include "nf/balancer/maglev.h"

// A backend's turn: where in its permutation of the table it is.
struct turn {
	uint32_t at, skip;
	uint64_t due; // it places when the round, times its weight, comes to this
};

bool cv_maglev_is_size(uint32_t size)
{
	for (uint64_t i = 2; i * i <= size; i++)
		if (size % i == 0)
			return false;
	return size > 1;
}

// FNV-1a, and what MurmurHash3 ends with: names that differ in a digit are far apart.
static uint64_t hash(const uint8_t *name, size_t bytes, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325 ^ seed;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ name[i]) * 0x100000001b3;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
	return h ^ h >> 33;
}

// Gives the backend the next free place of its permutation.
static void place(uint16_t *table, uint32_t size, struct turn *turn, uint16_t backend)
{
	while (table[turn->at] != CV_MAGLEV_NONE)
		turn->at = (uint32_t)(((uint64_t)turn->at + turn->skip) % size);
	table[turn->at] = backend;
}

int cv_maglev_fill(
	uint16_t *table, uint32_t size, const struct cv_maglev_backend *backends, unsigned count)
{
	struct turn *turns = calloc(count + 1, sizeof(*turns));
	uint32_t filled = 0, most = 0;

	if (turns == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		table[i] = CV_MAGLEV_NONE;
	for (unsigned i = 0; i < count; i++) {
		const struct cv_maglev_backend *backend = &backends[i];

		turns[i].at = (uint32_t)(hash(backend->name, backend->name_bytes, 0) % size);
		turns[i].skip =
			(uint32_t)(hash(backend->name, backend->name_bytes, 1) % (size - 1)) + 1;
		most = backend->weight > most ? backend->weight : most;
	}
	for (uint64_t round = 1; most != 0 && filled < size; round++) {
		for (unsigned i = 0; i < count && filled < size; i++) {
			if (backends[i].weight == 0 || round * backends[i].weight < turns[i].due)
				continue;
			turns[i].due += most;
			place(table, size, &turns[i], (uint16_t)i);
			filled++;
		}
	}
	free(turns);
	return 0;
}
