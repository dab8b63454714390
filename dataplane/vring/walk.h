// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any buffer of a guest, piece by piece: chained descriptors, indirect tables, pieces that lie in
// several regions of its memory. The slow way, for what is not one plain descriptor.
//
// Each descriptor is read once, into the list of pieces that it names; a packet goes by that list.
// The guest pays for what it makes us look at: each descriptor counts (counters.steps), a chain has
// at most CV_VRING_CHAIN_MAX of them, and a call of vring.h at most a budget (CV_VRING_STEPS_MAX,
// CV_VRING_PUT_STEPS).
#ifndef CV_VRING_WALK_H
#define CV_VRING_WALK_H

#include "vring/slot.h"

// Descriptors of one buffer, the one that leads to an indirect table not counted. Drivers need few:
// a header and the pages of a packet of 64 KiB are 18 (Linux: MAX_SKB_FRAGS + 2 at most).
#define CV_VRING_CHAIN_MAX 64

// Pieces of one packet, in however many buffers.
#define CV_VRING_PIECES_MAX 128

struct cv_vring_pieces {
	uint32_t count;
	uint32_t bytes; // of all of them
	struct cv_vring_piece {
		uint8_t *at; // here
		uint64_t guest; // where the guest has it
		uint32_t bytes;
	} piece[CV_VRING_PIECES_MAX];
};

struct cv_vring_walk {
	struct cv_vring *vring;
	bool write;
	bool malformed; // what was found breaks the rules
	bool endless; // a chain of more than CV_VRING_CHAIN_MAX descriptors, or than the ring has
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

static inline struct cv_vring_place cv_vring_here(const struct cv_vring *vring)
{
	return (struct cv_vring_place){vring->next_avail, vring->avail_wrap};
}

// Begins with the buffer at a place of the ring. False: there is none yet, or the ring is broken.
bool cv_vring_walk_begin(
	struct cv_vring_walk *walk, struct cv_vring *vring, struct cv_vring_place at, bool write);

// Adds the buffer's pieces to a list until that has `most` bytes, or the buffer ends (or is
// malformed).
void cv_vring_walk_pieces(
	struct cv_vring_walk *walk, struct cv_vring_pieces *pieces, uint32_t most);

// To the end of the buffer, so that its descriptors are counted; moves the place behind it.
void cv_vring_walk_end(struct cv_vring_walk *walk, struct cv_vring_place *at);

#endif
