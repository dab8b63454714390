// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Maglev's table (Eisenbud et al., NSDI 2016, section 3.4), with weights: from the hash of a flow to
// a backend. Backends have almost equal shares of it, by weight; when one comes or goes, few places
// change that need not. Whoever makes a table of the same backends and size has the same.
#ifndef CV_MAGLEV_H
#define CV_MAGLEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CV_MAGLEV_NONE UINT16_MAX
#define CV_MAGLEV_BACKENDS_MAX 4096

struct cv_maglev_backend {
	const void *name; // what it is known by, the same everywhere
	size_t name_bytes;
	uint32_t weight; // 0: it gets nothing
};

// True for primes: a table's size must be one.
bool cv_maglev_is_size(uint32_t size);

// Fills table with indices of backends; with CV_MAGLEV_NONE if there is none of a weight. Returns 0
// or -ENOMEM.
int cv_maglev_fill(
	uint16_t *table, uint32_t size, const struct cv_maglev_backend *backends, unsigned count);

#endif
