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
		.steps = vring->size < CV_VRING_CHAIN_MAX ? vring->size : CV_VRING_CHAIN_MAX,
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
		__atomic_store_n(&vring->broken, true, __ATOMIC_RELAXED);
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
	walk->steps = CV_VRING_CHAIN_MAX;
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
	if (CV_UNLIKELY(walk->steps == 0)) {
		walk->endless = true;
		return refuse(walk);
	}
	if (walk->next >= walk->table_size)
		return refuse(walk);
	walk->steps--;
	vring->counters.steps++;
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

// The next piece of at most `most` > 0 bytes. False: at the end, or malformed.
static bool next_piece(struct cv_vring_walk *walk, uint32_t most, struct cv_vring_piece *piece)
{
	while (walk->left == 0) {
		if (walk->malformed || !step(walk) || walk->malformed)
			return false;
	}
	piece->bytes = most < walk->left ? most : walk->left;
	piece->guest = walk->guest;
	piece->at = cv_guest_piece(walk->vring->memory, walk->guest, &piece->bytes);
	if (piece->at == NULL) {
		walk->malformed = true;
		walk->left = 0;
		return false;
	}
	walk->guest += piece->bytes;
	walk->left -= piece->bytes;
	return true;
}

void cv_vring_walk_pieces(struct cv_vring_walk *walk, struct cv_vring_pieces *pieces, uint32_t most)
{
	while (pieces->bytes < most) {
		struct cv_vring_piece *piece = &pieces->piece[pieces->count];

		if (CV_UNLIKELY(pieces->count == CV_VRING_PIECES_MAX)) {
			walk->malformed = true;
			break;
		}
		if (!next_piece(walk, most - pieces->bytes, piece))
			break;
		pieces->bytes += piece->bytes;
		pieces->count++;
	}
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
	if (walk->endless && !walk->is_indirect) {
		__atomic_store_n(&vring->broken, true,
			__ATOMIC_RELAXED); // where the next buffer begins is not to be known
		return;
	}
	cv_vring_packed_step(vring, &at->avail, &at->wrap, walk->slot.descriptors);
}
