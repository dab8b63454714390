// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any buffer of a guest, piece by piece: chained descriptors, indirect tables, pieces that lie in
// several regions of its memory. The slow way, for what is not one plain descriptor.
#ifndef CV_VRING_WALK_H
#define CV_VRING_WALK_H

#include "vring/slot.h"

struct cv_vring_walk {
	struct cv_vring *vring;
	bool write;
	bool malformed; // what was found breaks the rules
	bool done; // no descriptor is left
	const uint8_t *table; // of descriptors; the ring's own, or an indirect one
	uint32_t table_size;
	uint32_t next; // descriptor to look at
	uint32_t steps; // how many more may come
	bool is_indirect;
	uint64_t guest; // what is left of the current descriptor
	uint32_t left;
	struct cv_vring_slot slot; // id and descriptors, as far as walked
};

// Where in the ring a buffer begins.
struct cv_vring_place {
	uint16_t avail;
	bool wrap;
};

static inline struct cv_vring_place cv_vring_here(const struct cv_vring *vring)
{
	return (struct cv_vring_place){vring->next_avail, vring->avail_wrap};
}

// Begins with the buffer at a place of the ring. False: there is none yet, or the ring is broken.
bool cv_vring_walk_begin(
	struct cv_vring_walk *walk, struct cv_vring *vring, struct cv_vring_place at, bool write);

// The next piece of at most *bytes > 0: *bytes becomes its length, *guest (unless NULL) its address
// for the guest. NULL: at the end, or malformed.
uint8_t *cv_vring_walk_piece(struct cv_vring_walk *walk, uint32_t *bytes, uint64_t *guest);

// Goes over bytes without looking at them. Returns how many there were.
uint32_t cv_vring_walk_skip(struct cv_vring_walk *walk, uint32_t bytes);

// To the end of the buffer, so that its descriptors are counted; moves the place behind it.
void cv_vring_walk_end(struct cv_vring_walk *walk, struct cv_vring_place *at);

#endif
