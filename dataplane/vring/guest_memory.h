// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory that a guest shares with us: where its addresses are here. Every address and length
// that a guest names goes through this; what is not wholly inside its memory is NULL.
#ifndef CV_GUEST_MEMORY_H
#define CV_GUEST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "packet/compiler.h"

#define CV_GUEST_REGIONS_MAX 8 // that a vhost-user front end may share

struct cv_guest_region {
	uint64_t guest; // its first address as the guest names it
	uint64_t size; // bytes
	uint8_t *host; // where that is here
};

struct cv_guest_memory {
	unsigned count;
	struct cv_guest_region regions[CV_GUEST_REGIONS_MAX];
};

// Whether [address, address + bytes) lies in the region, whatever the numbers are.
static CV_INLINE int cv_guest_inside(
	const struct cv_guest_region *region, uint64_t address, uint64_t bytes)
{
	const uint64_t offset = address - region->guest; // huge if it lies before the region

	return offset <= region->size && bytes <= region->size - offset;
}

// How much of the guest's [address, address + bytes) lies in one piece here: *bytes becomes that,
// and its place is returned. NULL: the first byte is nowhere.
static inline uint8_t *cv_guest_piece(
	const struct cv_guest_memory *memory, uint64_t address, uint32_t *bytes)
{
	for (unsigned i = 0; i < memory->count; i++) {
		const struct cv_guest_region *region = &memory->regions[i];
		const uint64_t offset = address - region->guest;

		if (offset >= region->size)
			continue;
		if (*bytes > region->size - offset)
			*bytes = (uint32_t)(region->size - offset);
		return region->host + offset;
	}
	return NULL;
}

#endif
