// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The scan's hot part, once for each kind of processor: the files that include this are compiled
// for different ones, and give it a name as CV_FIREWALL_SCAN_RUN. With CV_FIREWALL_SCAN_PORTABLE it
// is what a processor gets that has none of these vectors (a test has it so).
#include "nf/firewall/scan.h"
#include "packet/compiler.h"

#if defined(__AVX2__) && !defined(CV_FIREWALL_SCAN_PORTABLE)
#include <immintrin.h>

static CV_INLINE __m256i test_x16(
	enum cv_firewall_kind kind, const uint16_t *x, __m256i a, __m256i b)
{
	__m256i lanes = _mm256_load_si256((const __m256i *)x);

	if (kind == CV_FIREWALL_MASKED)
		lanes = _mm256_and_si256(lanes, a);
	if (kind == CV_FIREWALL_RANGE) {
		lanes = _mm256_sub_epi16(lanes, a);
		b = _mm256_min_epu16(lanes, b);
	}
	return _mm256_cmpeq_epi16(lanes, b);
}

// Vectors are packed by halves: of four bytes of answers the second and the third have changed
// places. They do so in every test, so it is undone where packets come in and verdicts go out.
static CV_INLINE uint32_t test_x32(
	enum cv_firewall_kind kind, const uint16_t *x, const struct cv_firewall_test *test)
{
	__m256i a = _mm256_set1_epi32((int)test->a), b = _mm256_set1_epi32((int)test->b);

	return (uint32_t)_mm256_movemask_epi8(
		_mm256_packs_epi16(test_x16(kind, x, a, b), test_x16(kind, x + 16, a, b)));
}

static CV_INLINE uint64_t in_lanes(uint64_t packets)
{
	return (packets & 0xff0000ffff0000ff) | (packets & 0x0000ff000000ff00) << 8 |
	       (packets >> 8 & 0x0000ff000000ff00);
}

#elif defined(__SSE4_1__) && !defined(CV_FIREWALL_SCAN_PORTABLE)
#include <smmintrin.h>

static CV_INLINE __m128i test_x8(
	enum cv_firewall_kind kind, const uint16_t *x, __m128i a, __m128i b)
{
	__m128i lanes = _mm_load_si128((const __m128i *)x);

	if (kind == CV_FIREWALL_MASKED)
		lanes = _mm_and_si128(lanes, a);
	if (kind == CV_FIREWALL_RANGE) {
		lanes = _mm_sub_epi16(lanes, a);
		b = _mm_min_epu16(lanes, b);
	}
	return _mm_cmpeq_epi16(lanes, b);
}

static CV_INLINE uint32_t test_x32(
	enum cv_firewall_kind kind, const uint16_t *x, const struct cv_firewall_test *test)
{
	__m128i a = _mm_set1_epi32((int)test->a), b = _mm_set1_epi32((int)test->b);
	__m128i low = _mm_packs_epi16(test_x8(kind, x, a, b), test_x8(kind, x + 8, a, b));
	__m128i high = _mm_packs_epi16(test_x8(kind, x + 16, a, b), test_x8(kind, x + 24, a, b));

	return (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
}

static CV_INLINE uint64_t in_lanes(uint64_t packets)
{
	return packets;
}

#else

// The compiler makes vectors of the comparisons. Eight of their answers, a byte each, are turned
// into bits by a multiplication.
static CV_INLINE uint32_t test_x32(
	enum cv_firewall_kind kind, const uint16_t *x, const struct cv_firewall_test *test)
{
	const uint16_t a = (uint16_t)test->a, b = (uint16_t)test->b;
	uint8_t passed[32];
	uint32_t bits = 0;

	for (unsigned i = 0; i < 32; i++)
		passed[i] = kind == CV_FIREWALL_EXACT    ? x[i] == b
			    : kind == CV_FIREWALL_MASKED ? (x[i] & a) == b
							 : (uint16_t)(x[i] - a) <= b;
	for (unsigned i = 0; i < 32; i += 8) {
		uint64_t eight;

		memcpy(&eight, &passed[i], 8);
		eight = rte_le_to_cpu_64(eight);
		bits |= (uint32_t)(eight * 0x0102040810204080 >> 56) << i;
	}
	return bits;
}

static CV_INLINE uint64_t in_lanes(uint64_t packets)
{
	return packets;
}

#endif

// Makes a kind's tests of 32 packets or of 64.
static CV_INLINE void test_kind(const struct cv_firewall_scan *scan, enum cv_firewall_kind kind,
	const struct cv_firewall_transposed *transposed, bool both, uint64_t *passed)
{
	uint32_t i = kind == 0 ? 0 : scan->end[kind - 1];

	for (; i < scan->end[kind]; i++) {
		const struct cv_firewall_test *test = &scan->test[i];
		const uint16_t *x = transposed->word[test->row];
		uint64_t bits = test_x32(kind, x, test);

		if (both)
			bits |= (uint64_t)test_x32(kind, x + 32, test) << 32;
		passed[i] = bits;
	}
}

static CV_INLINE void test_all(const struct cv_firewall_scan *scan,
	const struct cv_firewall_transposed *transposed, bool both, uint64_t *passed)
{
	test_kind(scan, CV_FIREWALL_EXACT, transposed, both, passed);
	test_kind(scan, CV_FIREWALL_MASKED, transposed, both, passed);
	test_kind(scan, CV_FIREWALL_RANGE, transposed, both, passed);
	passed[CV_FIREWALL_TESTS_MAX] = UINT64_MAX;
}

static CV_INLINE void add_hits(uint64_t *hits, uint32_t rule, uint64_t packets)
{
	__atomic_store_n(&hits[rule], hits[rule] + (uint64_t)__builtin_popcountll(packets),
		__ATOMIC_RELAXED); // with the load in hits_sum()
}

struct cv_firewall_scanned CV_FIREWALL_SCAN_RUN(const struct cv_firewall_scan *scan,
	const struct cv_firewall_transposed *transposed, uint32_t n, uint64_t packets,
	uint64_t *hits) {
	uint64_t passed[CV_FIREWALL_TESTS_MAX + 1];
	uint64_t left = in_lanes(packets), denied = 0;

	if (n > 32)
		test_all(scan, transposed, true, passed);
	else
		test_all(scan, transposed, false, passed);
	for (uint32_t i = 0; i < scan->count; i++) {
		const struct cv_firewall_all *entry = &scan->entry[i];
		const uint16_t *list = &scan->list[entry->first];
		uint64_t hit = left;

		for (uint32_t k = 0; k < entry->fours; k++, list += 4)
			hit &= passed[list[0]] & passed[list[1]] & passed[list[2]] &
			       passed[list[3]];
		left ^= hit;
		denied |= hit & entry->denies;
		add_hits(hits, entry->rule, hit);
	}
	add_hits(hits, 0, left);
	return (struct cv_firewall_scanned){in_lanes(denied), in_lanes(left)};
}
