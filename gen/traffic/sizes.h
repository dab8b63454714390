// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which sizes the frames have.
#ifndef GEN_TRAFFIC_SIZES_H
#define GEN_TRAFFIC_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "gen/spec/spec.h"

// Fills sizes[count] (bytes with FCS) so that every size has its share of `count`, to the packet,
// in an order drawn with the seed. 0, or a negative errno with error set, which names the file's line.
int gen_sizes_draw(
	uint32_t *sizes, uint32_t count, const struct gen_spec *spec, struct cv_error *error);

#endif
