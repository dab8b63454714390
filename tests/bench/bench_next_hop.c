// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of finding next hops, in bursts of 64 keys.
//
//   bench-next-hop [REPEATS]        11 unless given
//
// Prints one JSON object: {"schema": "convoy.bench.next-hop/1", "results": [{"sc_ids", "same_key":
// {"median", "min", "max"}, "all_different": {...}}]}, a row for each number of SC-IDs in the table:
// keys that are all the same, and all different in an order that no prefetcher guesses. The two
// are measured alternately. "spreads": [{"next_hops", "ipv4": {"median", ...}, "ipv6": {...}}]: one key with
// that many next hops, and UDP packets of 256 flows, which are hashed, once there are two.
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "convoy/next_hop.h"

#define BURST 64
#define KEYS (1u << 16) // looked up per repeat
#define REPEATS_MAX 101

static volatile unsigned sink;

static double cycles(const struct cv_next_hop_table *table, const uint32_t *keys)
{
	uint16_t next_hops[BURST];
	uint64_t then = __rdtsc();

	for (unsigned i = 0; i < KEYS; i += BURST) {
		cv_next_hop_find(table, keys + i, next_hops, BURST);
		sink += next_hops[i % BURST];
	}
	return (double)(__rdtsc() - then) / KEYS;
}

#define FLOWS 256u
#define SPREAD_KEYS (1u << 13) // looked up per repeat
#define PACKET_BYTES 64u

static uint8_t packets[FLOWS][PACKET_BYTES];
static struct cv_view views[FLOWS];

static void make_packets(uint8_t version)
{
	for (uint32_t i = 0; i < FLOWS; i++) {
		uint8_t *at = packets[i];

		memset(at, 0, PACKET_BYTES);
		at[12] = version == 4 ? 0x08 : 0x86;
		at[13] = version == 4 ? 0 : 0xdd;
		at[14] = version == 4 ? 0x45 : 0x60;
		at[version == 4 ? 23 : 20] = 17;
		memcpy(at + (version == 4 ? 26 : 34), &i, sizeof(i)); // of the source address
		cv_view_set(&views[i], at, PACKET_BYTES);
		views[i].out = 1;
	}
}

static double spread_cycles(const struct cv_next_hop_table *table)
{
	uint32_t keys[BURST];
	uint16_t next_hops[BURST];
	uint64_t then = __rdtsc();

	for (unsigned i = 0; i < SPREAD_KEYS; i += BURST) {
		const struct cv_view *burst = &views[i % FLOWS];

		for (unsigned j = 0; j < BURST; j++)
			keys[j] = cv_next_hop_key_of(&burst[j]);
		cv_next_hop_find(table, keys, next_hops, BURST);
		if (cv_next_hop_spreads(table))
			cv_next_hop_choose(table, burst, next_hops, BURST);
		sink += next_hops[i % BURST];
	}
	return (double)(__rdtsc() - then) / SPREAD_KEYS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *all, int repeats)
{
	qsort(all, (size_t)repeats, sizeof(all[0]), by_value);
	printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", name, all[repeats / 2],
		all[0], all[repeats - 1]);
}

static int measure_spread(struct cv_next_hop *next_hops, uint16_t count, int repeats)
{
	static const uint8_t versions[] = {4, 6};
	struct cv_next_hop_entry entries[CV_SPREAD_MEMBERS_MAX];
	struct cv_next_hop_table *table;
	double all[REPEATS_MAX];

	for (uint16_t i = 0; i < count; i++) {
		next_hops[i].id = i;
		entries[i] = (struct cv_next_hop_entry){cv_next_hop_key(1, CV_SCID_NONE, 0), i};
	}
	table = cv_next_hop_table_make(next_hops, CV_NEXT_HOPS_MAX, entries, count, 0, NULL);
	if (table == NULL)
		return 1;
	printf("%s\n  {\"next_hops\": %u", count == 1 ? "" : ",", count);
	for (unsigned v = 0; v < 2; v++) {
		make_packets(versions[v]);
		for (int i = 0; i < repeats; i++)
			all[i] = spread_cycles(table);
		print(versions[v] == 4 ? "ipv4" : "ipv6", all, repeats);
	}
	printf("}");
	cv_next_hop_table_free(table);
	return 0;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {1, 64, 4096, 65536};
	static uint32_t same[KEYS], different[KEYS];
	static struct cv_next_hop_entry entries[KEYS];
	static struct cv_next_hop next_hops[CV_NEXT_HOPS_MAX];
	int repeats = argc > 1 ? atoi(argv[1]) : 11;

	if (repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "bench-next-hop: %s: give 1 to %d repeats\n", argv[1], REPEATS_MAX);
		return 2;
	}
	printf("{\"schema\": \"convoy.bench.next-hop/1\", \"results\": [");
	for (size_t row = 0; row < sizeof(sizes) / sizeof(sizes[0]); row++) {
		double a[REPEATS_MAX], b[REPEATS_MAX];
		struct cv_next_hop_table *table;

		for (uint32_t i = 0; i < sizes[row]; i++)
			entries[i] = (struct cv_next_hop_entry){cv_next_hop_key(1, CV_SCID_VNI, i),
				(uint16_t)(i % CV_NEXT_HOPS_MAX)};
		table = cv_next_hop_table_make(
			next_hops, CV_NEXT_HOPS_MAX, entries, sizes[row], 0, NULL);
		if (table == NULL)
			return 1;
		for (uint32_t i = 0; i < KEYS; i++) {
			same[i] = entries[sizes[row] / 2].key;
			different[i] = entries[(uint32_t)rand() % sizes[row]].key;
		}
		for (int i = 0; i < repeats; i++) {
			a[i] = cycles(table, same);
			b[i] = cycles(table, different);
		}
		printf("%s\n  {\"sc_ids\": %u", row == 0 ? "" : ",", sizes[row]);
		print("same_key", a, repeats);
		print("all_different", b, repeats);
		printf("}");
		cv_next_hop_table_free(table);
	}
	printf("\n], \"spreads\": [");
	for (uint16_t count = 1; count <= 64; count *= 8)
		if (measure_spread(next_hops, count, repeats) != 0)
			return 1;
	printf("\n]}\n");
	return 0;
}
