// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vring/walk.h"

#define DESCRIPTOR_BYTES 16 // both layouts'

static bool refuse(struct cv_vring_walk *walk)
{
	walk->malformed = true;
	walk->done = true;
	return false;
}

bool cv_vring_walk_begin(
	struct cv_vring_walk *walk, struct cv_vring *vring, struct cv_vring_place at, bool write)
{
	uint16_t flags;

	*walk = (struct cv_vring_walk){
		.vring = vring,
		.write = write,
		.table = (const uint8_t *)vring->desc,
		.table_size = vring->size,
		.steps = vring->size,
		.next = at.avail,
		.slot.descriptors = vring->is_packed ? 0 : 1,
	};
	if (vring->is_packed)
		return cv_vring_packed_ready(vring, at.avail, at.wrap, &flags);
	if (cv_vring_split_ready(vring, (uint16_t)(at.avail - vring->next_avail + 1)) <=
		(uint16_t)(at.avail - vring->next_avail))
		return false;
	walk->next = __atomic_load_n(
		&vring->avail->ring[at.avail & (vring->size - 1)], __ATOMIC_RELAXED);
	walk->slot.id = (uint16_t)walk->next;
	if (walk->next >= vring->size) {
		// Not even a buffer that could be given back.
		vring->broken = true;
		return false;
	}
	return true;
}

static bool enter_table(struct cv_vring_walk *walk, uint64_t address, uint32_t len)
{
	uint32_t piece = len;

	if (walk->is_indirect || len % DESCRIPTOR_BYTES != 0 || len == 0)
		return refuse(walk);
	walk->table = cv_guest_piece(walk->vring->memory, address, &piece);
	if (walk->table == NULL || piece != len)
		return refuse(walk);
	walk->table_size = len / DESCRIPTOR_BYTES;
	walk->is_indirect = true;
	walk->next = 0;
	return true;
}

// Where the chain goes on after a descriptor.
static void follow(struct cv_vring_walk *walk, uint16_t flags, uint16_t next)
{
	if (!walk->vring->is_packed) {
		walk->next = next;
		walk->done = !(flags & VRING_DESC_F_NEXT);
	} else if (walk->is_indirect) { // a packed ring's table has no flags but WRITE
		walk->next++;
		walk->done = walk->next == walk->table_size;
	} else {
		walk->next = walk->next + 1 == walk->table_size ? 0 : walk->next + 1;
		walk->done = !(flags & VRING_DESC_F_NEXT);
	}
}

// Takes the next descriptor on. False: there is none, or the chain cannot be followed any more.
static bool step(struct cv_vring_walk *walk)
{
	struct cv_vring *vring = walk->vring;
	struct {
		uint64_t address;
		uint32_t len;
		uint16_t words[2]; // split: flags, next; packed: id, flags
	} copy;
	uint16_t flags;

	if (walk->done)
		return false;
	if (walk->next >= walk->table_size || walk->steps == 0)
		return refuse(walk);
	walk->steps--;
	memcpy(&copy, walk->table + (size_t)walk->next * DESCRIPTOR_BYTES, sizeof(copy));
	CV_COPIED();
	flags = copy.words[vring->is_packed];
	if (vring->is_packed && !walk->is_indirect) {
		walk->slot.id = copy.words[0];
		walk->slot.descriptors++;
	}
	if (CV_UNLIKELY(flags & VRING_DESC_F_INDIRECT)) {
		if (flags & VRING_DESC_F_NEXT || !vring->indirect ||
			(vring->is_packed && walk->slot.descriptors > 1)) {
			walk->malformed = true;
			follow(walk, flags, copy.words[1]);
			return true;
		}
		return enter_table(walk, copy.address, copy.len) && step(walk);
	}
	follow(walk, flags, copy.words[1]);
	if (!!(flags & VRING_DESC_F_WRITE) != walk->write) {
		walk->malformed = true;
		return true;
	}
	walk->guest = copy.address;
	walk->left = copy.len;
	return true;
}

uint8_t *cv_vring_walk_piece(struct cv_vring_walk *walk, uint32_t *bytes, uint64_t *guest)
{
	uint8_t *piece;

	while (walk->left == 0) {
		if (walk->malformed || !step(walk) || walk->malformed)
			return NULL;
	}
	if (*bytes > walk->left)
		*bytes = walk->left;
	piece = cv_guest_piece(walk->vring->memory, walk->guest, bytes);
	if (piece == NULL) {
		walk->malformed = true;
		walk->left = 0;
		return NULL;
	}
	if (guest != NULL)
		*guest = walk->guest;
	walk->guest += *bytes;
	walk->left -= *bytes;
	return piece;
}

uint32_t cv_vring_walk_skip(struct cv_vring_walk *walk, uint32_t bytes)
{
	uint32_t skipped = 0;

	while (skipped < bytes) {
		uint32_t piece = bytes - skipped;

		if (cv_vring_walk_piece(walk, &piece, NULL) == NULL)
			break;
		skipped += piece;
	}
	return skipped;
}

void cv_vring_walk_end(struct cv_vring_walk *walk, struct cv_vring_place *at)
{
	struct cv_vring *vring = walk->vring;

	if (!vring->is_packed) {
		at->avail++;
		return;
	}
	// Only the packed ring has to know how long a chain is.
	while (!walk->is_indirect && !walk->done)
		step(walk);
	if (walk->slot.descriptors == vring->size && walk->steps == 0 && walk->malformed) {
		vring->broken = true; // a chain around the whole ring has no end
		return;
	}
	cv_vring_packed_step(vring, &at->avail, &at->wrap, walk->slot.descriptors);
}
