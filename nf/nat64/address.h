// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which IPv6 address stands for an IPv4 address, and the other way round: an IPv4 address inside of a prefix
// (RFC 6052), and the explicit address mapping table (RFC 7757). Of rows that have an address the longest
// prefix holds; what no row has is mapped by the prefix.
//
// IPv4 addresses are in host order; IPv6 addresses are two numbers.
#ifndef CV_NAT64_ADDRESS_H
#define CV_NAT64_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "nf/address_table.h"
#include "packet/compiler.h"
#include "packet/prefix.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CV_NAT64_ROWS_MAX 65536

struct cv_nat64_ipv6 {
	uint64_t high, low;
};

// RFC 6052 section 2.2: an IPv4 address stands behind the prefix, but for bits 64 to 71, which are zero.
struct cv_nat64_prefix {
	bool given;
	bool well_known; // 64:ff9b::/96
	struct cv_nat64_ipv6 first, mask;
	uint8_t high_shift, low_shift;
	uint32_t low_bits; // of an IPv4 address: those in the low half
};

struct cv_nat64_row {
	uint32_t ipv4;
	uint8_t ipv4_length, ipv6_length;
	bool by_prefix; // IPv4 addresses of hosts whose IPv6 addresses are made of the prefix
	struct cv_nat64_ipv6 ipv6;
};

// All rows, if they are few: they are compared at once. The longest prefixes first; those that are not there
// have no address.
#define CV_NAT64_FEW 8

struct cv_nat64_few {
	bool are_all;
	uint8_t by_prefix; // which of them are, one bit each
	uint32_t mask[CV_NAT64_FEW], first[CV_NAT64_FEW]; // of IPv4 addresses
	uint32_t row[CV_NAT64_FEW];
};

// The rows of one side: a table for each length that there is, the longest first.
struct cv_nat64_side {
	unsigned lengths;
	struct cv_nat64_length {
		struct cv_nat64_ipv6 mask;
		uint8_t length;
		struct cv_address_table table;
	} * by;
};

struct cv_nat64_map {
	struct cv_nat64_prefix prefix;
	struct cv_nat64_row *row;
	uint32_t rows;
	struct cv_nat64_side ipv4, ipv6; // IPv4 addresses are the high halves of keys
	struct cv_nat64_few few;
};

// What is written into configurations. Returns 0, or -EINVAL: not one of RFC 6052's.
int cv_nat64_prefix_set(struct cv_nat64_prefix *prefix, const struct cv_prefix *from);

// Makes the sides of the rows, which must fit: no IPv4 suffix is longer than its IPv6 suffix. Returns 0,
// -ENOMEM, or -EEXIST: *twice has a prefix that another row has.
int cv_nat64_map_finish(struct cv_nat64_map *map, uint32_t *twice);
void cv_nat64_map_free(struct cv_nat64_map *map);

// Whether the address may be used with the well-known prefix (RFC 6052 section 3.1).
bool cv_nat64_is_global(uint32_t ipv4);

static CV_INLINE struct cv_nat64_ipv6 cv_nat64_load(const uint8_t *at)
{
	rte_be64_t half[2];

	memcpy(half, at, sizeof(half));
	return (struct cv_nat64_ipv6){rte_be_to_cpu_64(half[0]), rte_be_to_cpu_64(half[1])};
}

static CV_INLINE void cv_nat64_store(uint8_t *at, struct cv_nat64_ipv6 address)
{
	const rte_be64_t half[2] = {rte_cpu_to_be_64(address.high), rte_cpu_to_be_64(address.low)};

	memcpy(at, half, sizeof(half));
}

// Whether an IPv4 address behind it stands in words of its own.
static inline bool cv_nat64_prefix_is_even(const struct cv_nat64_prefix *prefix)
{
	return prefix->given && prefix->high_shift % 32 == 0 && prefix->low_shift % 32 == 0;
}

static CV_INLINE bool cv_nat64_has(const struct cv_nat64_prefix *prefix, struct cv_nat64_ipv6 ipv6)
{
	return (((ipv6.high & prefix->mask.high) ^ prefix->first.high) |
		       ((ipv6.low & prefix->mask.low) ^ prefix->first.low)) == 0 &&
	       prefix->given;
}

static CV_INLINE struct cv_nat64_ipv6 cv_nat64_embed(
	const struct cv_nat64_prefix *prefix, uint32_t ipv4)
{
	return (struct cv_nat64_ipv6){
		.high = prefix->first.high | (uint64_t)ipv4 >> prefix->high_shift,
		.low = prefix->first.low | (uint64_t)(ipv4 & prefix->low_bits) << prefix->low_shift,
	};
}

static CV_INLINE uint32_t cv_nat64_extract(
	const struct cv_nat64_prefix *prefix, struct cv_nat64_ipv6 ipv6)
{
	return ((uint32_t)(ipv6.high << prefix->high_shift) & ~prefix->low_bits) |
	       ((uint32_t)(ipv6.low >> prefix->low_shift) & prefix->low_bits);
}

// The row of the longest prefix that has a key. NULL: there is none.
static CV_INLINE const struct cv_nat64_row *cv_nat64_find(
	const struct cv_nat64_map *map, const struct cv_nat64_side *side, struct cv_nat64_ipv6 key)
{
	for (unsigned i = 0; i < side->lengths; i++) {
		const struct cv_nat64_length *of = &side->by[i];
		const uint64_t masked[2] = {key.high & of->mask.high, key.low & of->mask.low};
		const uint32_t at = cv_address_find(&of->table, (const uint8_t *)masked);

		if (at != CV_ADDRESS_NONE)
			return &map->row[at];
	}
	return NULL;
}

// Which of a few rows have an address, one bit each.
static CV_INLINE unsigned cv_nat64_few_match(const struct cv_nat64_few *few, uint32_t ipv4)
{
#ifdef __SSE2__
	const __m128i *mask = (const __m128i *)few->mask, *first = (const __m128i *)few->first;
	const __m128i address = _mm_set1_epi32((int)ipv4);
	const __m128i low = _mm_cmpeq_epi32(
		_mm_and_si128(address, _mm_loadu_si128(&mask[0])), _mm_loadu_si128(&first[0]));
	const __m128i high = _mm_cmpeq_epi32(
		_mm_and_si128(address, _mm_loadu_si128(&mask[1])), _mm_loadu_si128(&first[1]));

	return (unsigned)_mm_movemask_epi8(
		_mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128()));
#else
	unsigned match = 0;

	for (unsigned i = 0; i < CV_NAT64_FEW; i++)
		match |= (unsigned)((ipv4 & few->mask[i]) == few->first[i]) << i;
	return match;
#endif
}

static CV_INLINE const struct cv_nat64_row *cv_nat64_find_ipv4(
	const struct cv_nat64_map *map, uint32_t ipv4)
{
	if (CV_LIKELY(map->few.are_all)) {
		const unsigned match = cv_nat64_few_match(&map->few, ipv4);

		return match == 0 ? NULL : &map->row[map->few.row[__builtin_ctz(match)]];
	}
	return cv_nat64_find(map, &map->ipv4, (struct cv_nat64_ipv6){.high = (uint64_t)ipv4 << 32});
}

// An address of a row, on its other side (RFC 7757 section 3.3).
static CV_INLINE struct cv_nat64_ipv6 cv_nat64_row_to_ipv6(
	const struct cv_nat64_row *row, uint32_t ipv4)
{
	const unsigned at = row->ipv6_length;
	struct cv_nat64_ipv6 ipv6 = row->ipv6;
	uint64_t suffix; // its first bit is the highest

	if (row->ipv4_length == 32)
		return ipv6;
	suffix = (uint64_t)ipv4 << (32 + row->ipv4_length);
	ipv6.high |= at < 64 ? suffix >> at : 0;
	ipv6.low |= at > 63 ? suffix >> (at - 64) : at > 0 ? suffix << (64 - at) : 0;
	return ipv6;
}

static CV_INLINE uint32_t cv_nat64_row_to_ipv4(
	const struct cv_nat64_row *row, struct cv_nat64_ipv6 ipv6)
{
	const unsigned at = row->ipv6_length;
	uint64_t suffix;

	if (row->ipv4_length == 32)
		return row->ipv4;
	suffix = at > 63  ? ipv6.low << (at - 64)
		 : at > 0 ? ipv6.high << at | ipv6.low >> (64 - at)
			  : ipv6.high;
	return row->ipv4 | (uint32_t)(suffix >> (32 + row->ipv4_length));
}

// The IPv6 address of an IPv4 address whose row is known; NULL: it has none.
static CV_INLINE struct cv_nat64_ipv6 cv_nat64_of_row(
	const struct cv_nat64_map *map, const struct cv_nat64_row *row, uint32_t ipv4)
{
	if (row != NULL && !row->by_prefix)
		return cv_nat64_row_to_ipv6(row, ipv4);
	return cv_nat64_embed(&map->prefix, ipv4);
}

// The IPv6 address of an IPv4 address that a row has. False: none has it.
static CV_INLINE bool cv_nat64_row_has(
	const struct cv_nat64_map *map, uint32_t ipv4, struct cv_nat64_ipv6 *ipv6)
{
	const struct cv_nat64_row *row;

	// Without a look at the row: its memory is one more to wait for.
	if (CV_LIKELY(map->few.are_all)) {
		const unsigned match = cv_nat64_few_match(&map->few, ipv4);

		if (CV_LIKELY((match & -match & map->few.by_prefix) != 0)) {
			*ipv6 = cv_nat64_embed(&map->prefix, ipv4);
			return true;
		}
		if (match == 0)
			return false;
	}
	row = cv_nat64_find_ipv4(map, ipv4);
	if (row == NULL)
		return false;
	*ipv6 = cv_nat64_of_row(map, row, ipv4);
	return true;
}

// The IPv6 address of an IPv4 address. False: it has none.
static CV_INLINE bool cv_nat64_to_ipv6(
	const struct cv_nat64_map *map, uint32_t ipv4, struct cv_nat64_ipv6 *ipv6)
{
	const struct cv_nat64_row *row =
		map->ipv6.lengths == 0 ? NULL : cv_nat64_find_ipv4(map, ipv4);

	*ipv6 = cv_nat64_of_row(map, row, ipv4);
	return row != NULL || map->prefix.given;
}

// The IPv4 address of an IPv6 address. False: it has none.
static CV_INLINE bool cv_nat64_to_ipv4(
	const struct cv_nat64_map *map, struct cv_nat64_ipv6 ipv6, uint32_t *ipv4)
{
	const struct cv_nat64_row *row = cv_nat64_find(map, &map->ipv6, ipv6);

	if (CV_UNLIKELY(row != NULL)) {
		*ipv4 = cv_nat64_row_to_ipv4(row, ipv6);
		return true;
	}
	*ipv4 = cv_nat64_extract(&map->prefix, ipv6);
	return cv_nat64_has(&map->prefix, ipv6);
}

#endif
