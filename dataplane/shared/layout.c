// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/layout.h"

#include <stddef.h>

#define ALIGN(bytes, to) (((bytes) + (to)-1) / (to) * (to))
// Not a power of two: the first lines of all rings would lie in the same few sets of a cache.
#define RING_BYTES(n) \
	(ALIGN(offsetof(struct cv_shared_ring, slots) + (uint64_t)(n) * sizeof(uint64_t), 64) + 64)
#define LARGE_PAGE ((uint64_t)2 << 20)

bool cv_shared_layout_make(struct cv_shared_layout *layout)
{
	const uint64_t marks = (uint64_t)CV_SHARED_MEMBERS * layout->buffers;

	if (layout->buffers == 0 || layout->buffers > CV_SHARED_BUFFERS_MAX ||
		layout->stride == 0 || layout->stride % 64 != 0 ||
		layout->stride > CV_SHARED_STRIDE_MAX || layout->room > UINT16_MAX ||
		layout->room == 0 || layout->first > layout->stride - 1 ||
		layout->room > layout->stride - layout->first)
		return false;
	layout->return_slots = 64;
	while (layout->return_slots < layout->buffers)
		layout->return_slots *= 2;
	layout->rings = ALIGN(marks, 4096);
	layout->links = layout->rings + CV_SHARED_MEMBERS * (RING_BYTES(layout->return_slots) +
								    RING_BYTES(CV_SHARED_SLOTS));
	layout->data = ALIGN(
		layout->links + 2 * CV_SHARED_LINKS * RING_BYTES(CV_SHARED_SLOTS), LARGE_PAGE);
	layout->size = ALIGN(layout->data + (uint64_t)layout->buffers * layout->stride, LARGE_PAGE);
	return true;
}

static struct cv_shared_ring *at(uint8_t *base, uint64_t offset)
{
	return (struct cv_shared_ring *)(void *)(base + offset);
}

struct cv_shared_ring *cv_shared_returns(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned member)
{
	return at(base, layout->rings + member * RING_BYTES(layout->return_slots));
}

struct cv_shared_ring *cv_shared_supply(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned member)
{
	return at(base, layout->rings + CV_SHARED_MEMBERS * RING_BYTES(layout->return_slots) +
				member * RING_BYTES(CV_SHARED_SLOTS));
}

struct cv_shared_ring *cv_shared_link(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned link, unsigned side)
{
	return at(base, layout->links + (2 * link + side) * RING_BYTES(CV_SHARED_SLOTS));
}
