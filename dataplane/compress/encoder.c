// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#ifdef __SSE4_2__
#include <emmintrin.h>
#include <string.h>

#include "compress/encoder.h"
#include "packet/compiler.h"

// The end of a block, as LZ4 has it: the last match begins so many bytes before it, at least.
#define LAST_MATCH 12
#define MATCH_MIN 4
#define REACH 65535 // of a match
#define HEADERS 64 // bytes of a packet, its length included, by which it is known
#define RECENT_SLOTS 512 // packets of the frame itself
#define SHORT_BYTES 96 // of packets in the mean, with their lengths
#define NONE UINT32_MAX

static CV_INLINE uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

// Addresses and ports of IPv4 without options and tags; of others, what stands there.
static CV_INLINE uint32_t flow_of(const uint8_t *packet)
{
	uint32_t ports;

	memcpy(&ports, packet + 36, sizeof(ports));
	return (uint32_t)((load64(packet + 28) * 0x9e3779b185ebca87u +
				  ports * 0xc2b2ae3d27d4eb4fu) >>
			  40);
}

// The length, Ethernet, and the protocol of IPv4.
static CV_INLINE uint32_t kind_of(const uint8_t *packet)
{
	const uint64_t rest = packet[16] | (uint64_t)packet[17] << 8 | (uint64_t)packet[25] << 16;

	return (uint32_t)((load64(packet) * 0x9e3779b185ebca87u +
				  load64(packet + 8) * 0xc2b2ae3d27d4eb4fu +
				  rest * 0x165667b19e3779f9u) >>
			  40);
}

static CV_INLINE uint32_t step_of(const uint8_t *packet)
{
	return 2 + ((uint32_t)packet[0] << 8 | packet[1]);
}

bool cv_encoder_suits(const uint8_t *run, uint32_t n)
{
	uint32_t packets = 0;

	for (uint32_t at = 0; at + 1 < n; at += step_of(run + at))
		packets++;
	return n <= packets * SHORT_BYTES;
}

void cv_encoder_index(struct cv_encoder_index *index, const uint8_t *dictionary, uint32_t len)
{
	memset(index, 0, sizeof(*index));
	for (uint32_t at = 0; at + HEADERS < len; at += step_of(dictionary + at)) {
		const uint8_t *packet = dictionary + at;

		index->by_flow[flow_of(packet) % CV_ENCODER_SLOTS] = (uint16_t)(at + 1);
		index->by_kind[kind_of(packet) % CV_ENCODER_SLOTS] = (uint16_t)(at + 1);
	}
}

// Which of 16 bytes are equal, a bit each.
static CV_INLINE uint32_t equal16(const uint8_t *a, const uint8_t *b)
{
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(
		_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)b)));
}

static CV_INLINE uint32_t equal32(const uint8_t *a, const uint8_t *b)
{
	return equal16(a, b) | equal16(a + 16, b + 16) << 16;
}

// What is left of a length that does not fit into 4 bits of a token.
static CV_INLINE uint8_t *put_length(uint8_t *to, uint32_t len)
{
	if (CV_LIKELY(len < 15))
		return to;
	for (len -= 15; len >= 255; len -= 255)
		*to++ = 255;
	*to++ = (uint8_t)len;
	return to;
}

// Token and literals. match: its length, without those that every match has.
static CV_INLINE uint8_t *put_literals(
	uint8_t *to, const uint8_t *literals, uint32_t len, uint32_t match)
{
	*to++ = (uint8_t)((len < 15 ? len : 15) << 4 | (match < 15 ? match : 15));
	to = put_length(to, len);
	if (CV_LIKELY(len <= 16))
		memcpy(to, literals, 16);
	else
		memcpy(to, literals, len);
	return to + len;
}

struct run {
	const uint8_t *bytes; // the dictionary, and what is encoded behind it
	uint32_t literals; // from here to where the encoder is nothing has been written
	uint8_t *to;
};

// Writes where a packet equals another, so many bytes before it.
static CV_INLINE void put_matches(struct run *run, uint32_t at, uint32_t end, uint32_t offset)
{
	const uint8_t *bytes = run->bytes;

	while (at < end) {
		const uint32_t left = end - at;
		uint32_t equal = equal32(bytes + at, bytes + at - offset);
		uint32_t begins, first, len;

		if (left < 32)
			equal &= (1u << left) - 1;
		begins = equal & equal >> 1;
		begins &= begins >> 2; // of four equal bytes and more
		if (begins == 0) {
			at += 32 - (MATCH_MIN - 1);
			continue;
		}
		first = (uint32_t)__builtin_ctz(begins);
		len = (uint32_t)__builtin_ctzll(~((uint64_t)equal >> first));
		at += first;
		if (first + len == 32)
			while (at + len < end && bytes[at + len] == bytes[at + len - offset])
				len++;
		run->to = put_literals(
			run->to, bytes + run->literals, at - run->literals, len - MATCH_MIN);
		*run->to++ = (uint8_t)offset;
		*run->to++ = (uint8_t)(offset >> 8);
		run->to = put_length(run->to, len - MATCH_MIN);
		at += len;
		run->literals = at;
	}
}

struct best {
	uint32_t at; // NONE: there is none
	int equal; // bytes of the headers
};

// Is another packet more like this one?
static CV_INLINE void compare(
	struct best *best, const uint8_t *bytes, uint32_t packet, uint32_t other)
{
	const uint8_t *a = bytes + packet + 16, *b = bytes + other + 16;
	int equal;

	if (packet - other > REACH)
		return;
	equal = __builtin_popcount(equal32(a, b)) + __builtin_popcount(equal16(a + 32, b + 32));
	if (best->at == NONE || equal > best->equal)
		*best = (struct best){other, equal};
}

uint32_t cv_encoder_run(const struct cv_encoder_index *index, const uint8_t *bytes, uint32_t known,
	uint32_t len, uint8_t *to)
{
	const uint32_t end = known + len;
	const uint32_t matches_end = len > LAST_MATCH ? end - LAST_MATCH : known;
	struct run run = {.bytes = bytes, .literals = known, .to = to};
	uint16_t by_flow[RECENT_SLOTS] = {0}, by_kind[RECENT_SLOTS] = {0}; // as in the index
	uint32_t before = NONE, step;

	for (uint32_t at = known; at < matches_end; before = at, at += step) {
		struct best best = {.at = NONE};

		step = step_of(bytes + at);
		if (CV_LIKELY(at + HEADERS <= end)) {
			const uint32_t flow = flow_of(bytes + at), kind = kind_of(bytes + at);
			uint16_t *own_flow = &by_flow[flow % RECENT_SLOTS];
			uint16_t *own_kind = &by_kind[kind % RECENT_SLOTS];
			const uint32_t known_flow = index->by_flow[flow % CV_ENCODER_SLOTS];
			const uint32_t known_kind = index->by_kind[kind % CV_ENCODER_SLOTS];

			if (*own_flow != 0)
				compare(&best, bytes, at, known + *own_flow - 1);
			if (known_flow != 0)
				compare(&best, bytes, at, known_flow - 1);
			if (*own_kind != 0)
				compare(&best, bytes, at, known + *own_kind - 1);
			if (known_kind != 0)
				compare(&best, bytes, at, known_kind - 1);
			if (before != NONE)
				compare(&best, bytes, at, before);
			*own_flow = *own_kind = (uint16_t)(at - known + 1);
		} else {
			best.at = before;
		}
		if (best.at != NONE && at - best.at <= REACH)
			put_matches(&run, at, matches_end - at < step ? matches_end : at + step,
				at - best.at);
	}
	run.to = put_literals(run.to, bytes + run.literals, end - run.literals, 0);
	return (uint32_t)(run.to - to);
}
#endif
