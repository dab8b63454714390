// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory that processes of one pool share: one file, which the owner makes and its members map.
//
//   marks of member 0 .. MEMBERS - 1   a byte for each buffer: the member has it
//   of each member: returns, supply    rings of buffers, to and from the owner
//   of each link: two rings            packets, one ring each way
//   buffers                            as the owner's mempool has them, one behind the other
//
// Every line has one writer. Nobody follows a pointer that lies here: descriptors have numbers of
// buffers, and whoever reads one checks it.
#ifndef CV_SHARED_LAYOUT_H
#define CV_SHARED_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define CV_SHARED_MEMBERS 16
#define CV_SHARED_LINKS 64
#define CV_SHARED_SLOTS 1024u // of a ring of packets, and of supply
#define CV_SHARED_BUFFERS_MAX (1u << 20)
#define CV_SHARED_STRIDE_MAX (1u << 17)

// Who sends writes descriptors, then how far it will have sent (upto), then takes its marks off,
// then publishes tail. Who receives reads descriptors, sets its marks, then moves head. So of a
// process that died at any instruction, what it had is what it has marked, what lies in rings to it
// behind head, and what lies in rings from it up to upto.
struct cv_shared_ring {
	_Alignas(64) uint32_t tail; // the sender's
	_Alignas(64) uint32_t upto; // the sender's; read by the owner alone, when it has died
	_Alignas(64) uint32_t head; // the receiver's
	// Number of the buffer, offset of the packet in it << 32, its length << 48. Relaxed atomics.
	_Alignas(64) uint64_t slots[];
};

struct cv_shared_layout {
	uint32_t buffers; // count
	uint32_t stride; // bytes from one to the next
	uint32_t first; // bytes from there to what packets may lie in
	uint32_t room; // bytes of that
	// What follows is computed.
	uint32_t return_slots; // of a ring of returns: all buffers fit
	uint64_t rings, links, data, size; // where they begin, and where all of it ends
};

// Computes the rest from the first four. False: they are out of range, and nothing may be used.
bool cv_shared_layout_make(struct cv_shared_layout *layout);

static inline uint8_t *cv_shared_marks(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned member)
{
	return base + (uint64_t)member * layout->buffers;
}

struct cv_shared_ring *cv_shared_returns(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned member);
struct cv_shared_ring *cv_shared_supply(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned member);
// The ring that the end of that side, 0 or 1, sends by.
struct cv_shared_ring *cv_shared_link(
	const struct cv_shared_layout *layout, uint8_t *base, unsigned link, unsigned side);

#endif
