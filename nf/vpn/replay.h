// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which sequence numbers of a security association came already (RFC 4303 section 3.4.3): a ring of bits, as
// RFC 6479 has it, so that a window moves without shifting. Extended sequence numbers (appendix A) travel
// without their upper half, which is found here.
#ifndef CV_VPN_REPLAY_H
#define CV_VPN_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/compiler.h"

#define CV_REPLAY_WINDOW_MAX 4096
#define CV_REPLAY_WORDS 128 // of 64 bits: more than the window, for the word that is being filled

struct cv_replay {
	uint64_t top; // the highest that came; 0: none
	uint64_t seen[CV_REPLAY_WORDS];
};

_Static_assert(CV_REPLAY_WORDS * 64 >= CV_REPLAY_WINDOW_MAX + 64, "words in use are never cleared");

// Whether a number did not come yet, as far as the window reaches. 0 is never sent.
static CV_INLINE bool cv_replay_is_new(
	const struct cv_replay *replay, uint32_t window, uint64_t sequence)
{
	if (CV_LIKELY(sequence > replay->top))
		return true;
	if (sequence == 0 || replay->top - sequence >= window)
		return false;
	return (replay->seen[sequence / 64 % CV_REPLAY_WORDS] >> sequence % 64 & 1) == 0;
}

// Notes a number that is new: of a packet that is authentic.
static CV_INLINE void cv_replay_note(struct cv_replay *replay, uint64_t sequence)
{
	const uint64_t from = replay->top / 64, to = sequence / 64;

	if (sequence > replay->top) {
		for (uint64_t i = 1; i <= to - from && i <= CV_REPLAY_WORDS; i++)
			replay->seen[(from + i) % CV_REPLAY_WORDS] = 0;
		replay->top = sequence;
	}
	replay->seen[to % CV_REPLAY_WORDS] |= UINT64_C(1) << sequence % 64;
}

// The extended number of which a packet has the lower half: the one that is in the window, or above
// (RFC 4303 appendix A2.2). 0: that would be before the first.
static CV_INLINE uint64_t cv_replay_extend(
	const struct cv_replay *replay, uint32_t window, uint32_t low)
{
	const uint32_t top = (uint32_t)replay->top, bottom = top - window + 1;
	uint64_t high = replay->top >> 32;

	if (top >= window - 1) {
		high += low < bottom;
	} else if (low >= bottom) { // the window begins in the range before
		if (high == 0)
			return 0;
		high--;
	}
	return high << 32 | low;
}

#endif
