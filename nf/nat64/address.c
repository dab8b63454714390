// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat64/address.h"

#define RESERVED (UINT64_C(0xff) << 56) // bits 64 to 71

int cv_nat64_prefix_set(struct cv_nat64_prefix *prefix, const struct cv_prefix *from)
{
	// How far the low part of an IPv4 address is from the end, by the prefix's length / 8.
	static const uint8_t low_shifts[] = {[5] = 48, [6] = 40, [7] = 32, [8] = 24, [12] = 0};
	static const uint8_t well_known[16] = {0, 0x64, 0xff, 0x9b};
	const unsigned length = from->length;
	const struct cv_nat64_ipv6 first = cv_nat64_load(from->address.bytes);

	if (!from->address.v6 || length % 8 != 0 || length < 32 || (length > 64 && length != 96) ||
		(first.low & RESERVED) != 0)
		return -EINVAL;
	*prefix = (struct cv_nat64_prefix){
		.given = true,
		.well_known = length == 96 && memcmp(from->address.bytes, well_known, 16) == 0,
		.first = first,
		.mask.high = length < 64 ? ~(UINT64_MAX >> length) : UINT64_MAX,
		.mask.low = length == 96 ? ~(uint64_t)UINT32_MAX : RESERVED,
		.high_shift = (uint8_t)(length < 64 ? length - 32 : 32),
		.low_shift = length == 32 ? 0 : low_shifts[length / 8],
	};
	prefix->low_bits = (uint32_t)((UINT64_C(1) << prefix->high_shift) - 1);
	return 0;
}

bool cv_nat64_is_global(uint32_t ipv4)
{
	// RFC 6890, in the order of the addresses.
	static const struct {
		uint32_t first;
		uint8_t length;
	} others[] = {{0x00000000, 8}, {0x0a000000, 8}, {0x64400000, 10}, {0x7f000000, 8},
		{0xa9fe0000, 16}, {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24},
		{0xc0a80000, 16}, {0xc6120000, 15}, {0xc6336400, 24}, {0xcb007100, 24},
		{0xe0000000, 3}};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if ((ipv4 ^ others[i].first) >> (32 - others[i].length) == 0)
			return false;
	return true;
}

static struct cv_nat64_ipv6 mask_of(unsigned length)
{
	return (struct cv_nat64_ipv6){
		.high = length == 0    ? 0
			: length >= 64 ? UINT64_MAX
				       : ~(UINT64_MAX >> length),
		.low = length <= 64    ? 0
		       : length == 128 ? UINT64_MAX
				       : ~(UINT64_MAX >> (length - 64)),
	};
}

static unsigned length_of(const struct cv_nat64_row *row, bool v6)
{
	return v6 ? row->ipv6_length : row->ipv4_length;
}

static struct cv_nat64_ipv6 key_of(const struct cv_nat64_row *row, bool v6)
{
	return v6 ? row->ipv6 : (struct cv_nat64_ipv6){.high = (uint64_t)row->ipv4 << 32};
}

// The rows of one length. Those by prefix are found by IPv4 addresses alone.
static int make_length(const struct cv_nat64_map *map, bool v6, struct cv_nat64_length *by,
	size_t count, uint32_t *twice)
{
	by->mask = mask_of(by->length);
	if (cv_address_table_init(&by->table, count) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->rows; i++) {
		const struct cv_nat64_row *row = &map->row[i];
		const struct cv_nat64_ipv6 key = key_of(row, v6);
		const uint64_t halves[2] = {key.high, key.low};

		if (length_of(row, v6) != by->length || (v6 && row->by_prefix))
			continue;
		if (cv_address_add(&by->table, (const uint8_t *)halves, i) != 0) {
			*twice = i;
			return -EEXIST;
		}
	}
	return 0;
}

static int make_side(
	const struct cv_nat64_map *map, bool v6, struct cv_nat64_side *side, uint32_t *twice)
{
	size_t counts[129] = {0};
	unsigned lengths = 0;
	int rc = 0;

	for (uint32_t i = 0; i < map->rows; i++)
		if (!v6 || !map->row[i].by_prefix)
			lengths += counts[length_of(&map->row[i], v6)]++ == 0;
	side->by = calloc(lengths + 1, sizeof(*side->by));
	if (side->by == NULL)
		return -ENOMEM;
	for (int length = 128; length >= 0 && rc == 0; length--) {
		if (counts[length] == 0)
			continue;
		side->by[side->lengths].length = (uint8_t)length;
		rc = make_length(map, v6, &side->by[side->lengths++], counts[length], twice);
	}
	return rc;
}

static void make_few(struct cv_nat64_map *map)
{
	struct cv_nat64_few *few = &map->few;
	unsigned n = 0;

	few->are_all = map->rows <= CV_NAT64_FEW;
	for (int length = 32; length >= 0 && few->are_all; length--)
		for (uint32_t i = 0; i < map->rows; i++) {
			if (map->row[i].ipv4_length != length)
				continue;
			few->mask[n] = length == 0 ? 0 : UINT32_MAX << (32 - length);
			few->first[n] = map->row[i].ipv4;
			few->by_prefix |= (uint8_t)(map->row[i].by_prefix << n);
			few->row[n++] = i;
		}
	while (n < CV_NAT64_FEW)
		few->first[n++] = 1; // under a mask of 0
}

int cv_nat64_map_finish(struct cv_nat64_map *map, uint32_t *twice)
{
	const int rc = make_side(map, false, &map->ipv4, twice);

	make_few(map);
	return rc != 0 ? rc : make_side(map, true, &map->ipv6, twice);
}

static void free_side(struct cv_nat64_side *side)
{
	for (unsigned i = 0; i < side->lengths; i++)
		cv_address_table_free(&side->by[i].table);
	free(side->by);
}

void cv_nat64_map_free(struct cv_nat64_map *map)
{
	free_side(&map->ipv4);
	free_side(&map->ipv6);
	free(map->row);
}
