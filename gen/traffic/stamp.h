// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The stamp: the last 14 bytes of a frame (rounded down to an even offset, so that a checksum's
// 16-bit words line up), little endian:
//
//   0   magic      16 bits   the trial and the stream it belongs to
//   2   sequence   32 bits   position in the stream's schedule
//   6   time       48 bits   scheduled time, TSC ticks since the trial began
//   12  complement    16 bits   makes the one's complement sum of the 14 bytes equal `sum`
//
// As that sum never changes, an IPv4, UDP or TCP checksum computed once stays valid whatever is
// stamped. A function under test may rewrite every header: only these bytes are relied on.
#ifndef GEN_TRAFFIC_STAMP_H
#define GEN_TRAFFIC_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GEN_STAMP_BYTES 14u
#define GEN_STAMP_TICKS_MASK ((1ull << 48) - 1)

struct gen_stamp {
	uint64_t ticks;
	uint32_t seq;
	uint16_t magic;
	uint16_t sum; // one's complement sum of the 14 bytes: 0 and 0xffff are equal
};

static inline uint32_t gen_stamp_offset(uint32_t frame_bytes)
{
	return (frame_bytes - GEN_STAMP_BYTES) & ~1u;
}

static inline uint32_t gen_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)((sum & 0xffff) + (sum >> 16));
}

static inline void gen_stamp_load(
	const uint8_t *at, uint64_t *low, uint32_t *high, uint16_t *complement)
{
	memcpy(low, at, 8);
	memcpy(high, at + 8, 4);
	memcpy(complement, at + 12, 2);
}

// One's complement sum of the stamp's place as it is now: what a frame keeps when it is stamped.
static inline uint16_t gen_stamp_sum(const uint8_t *at)
{
	uint64_t low;
	uint32_t high;
	uint16_t complement;

	gen_stamp_load(at, &low, &high, &complement);
	return (uint16_t)gen_fold((low & 0xffffffff) + (low >> 32) + high + complement);
}

static inline struct gen_stamp gen_stamp_read(const uint8_t *at)
{
	uint64_t low;
	uint32_t high;
	uint16_t complement;

	gen_stamp_load(at, &low, &high, &complement);
	return (struct gen_stamp){
		.magic = (uint16_t)low,
		.seq = (uint32_t)(low >> 16),
		.ticks = low >> 48 | (uint64_t)high << 16,
		.sum = (uint16_t)gen_fold((low & 0xffffffff) + (low >> 32) + high + complement),
	};
}

// Stamps that follow each other: one magic, one time, sequence numbers that count on (and do not
// pass UINT32_MAX). As one's complement sums go, the next one's is one more.
struct gen_stamp_run {
	uint64_t low;
	uint32_t high;
	uint32_t words; // one's complement sum of the next stamp without its complement
};

static inline struct gen_stamp_run gen_stamp_run(uint16_t magic, uint32_t seq, uint64_t ticks)
{
	const uint64_t low = magic | (uint64_t)seq << 16 | ticks << 48;
	const uint32_t high = (uint32_t)(ticks >> 16);

	return (struct gen_stamp_run){low, high, gen_fold((low & 0xffffffff) + (low >> 32) + high)};
}

static inline void gen_stamp_run_next(struct gen_stamp_run *run)
{
	run->low += 1 << 16;
	run->words = run->words == 0xffff ? 1 : run->words + 1;
}

// Writes the next one. `sum` as gen_stamp_sum gave it for the frame before its first stamp.
static inline void gen_stamp_run_write(struct gen_stamp_run *run, uint8_t *at, uint16_t sum)
{
	const uint32_t complement = (run->words ^ 0xffff) + sum;
	const uint16_t folded = (uint16_t)((complement & 0xffff) + (complement >> 16));

	memcpy(at, &run->low, 8);
	memcpy(at + 8, &run->high, 4);
	memcpy(at + 12, &folded, 2);
	gen_stamp_run_next(run);
}

// Not 0: what lies there is not, byte by byte, the next one of a run whose sum was 0.
static inline uint64_t gen_stamp_run_differs(struct gen_stamp_run *run, const uint8_t *at)
{
	uint64_t low;
	uint32_t high;
	uint16_t complement;

	gen_stamp_load(at, &low, &high, &complement);
	const uint64_t differs =
		(low ^ run->low) | (high ^ run->high) | (complement ^ run->words ^ 0xffff);
	gen_stamp_run_next(run);
	return differs;
}

// The same for a frame by itself.
static inline void gen_stamp_write(
	uint8_t *at, uint16_t magic, uint32_t seq, uint64_t ticks, uint16_t sum)
{
	struct gen_stamp_run run = gen_stamp_run(magic, seq, ticks);

	gen_stamp_run_write(&run, at, sum);
}

// One's complement has two zeros.
static inline bool gen_sum_equal(uint16_t a, uint16_t b)
{
	return (a == 0xffff ? 0 : a) == (b == 0xffff ? 0 : b);
}

#endif
