// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The scan, for every processor that this one can stand in for, and as it is compiled for those
// without vectors that it knows: random entries, random tuples, against the entries' own words.
#include <errno.h>

#include <rte_common.h>
#include <rte_vect.h>

#include "nf/firewall/scan.h"
#include "tests/support/test_eal.h"
#include "tests/support/test_packets.h"

static cv_firewall_scan_run run_portable;

#define CV_FIREWALL_SCAN_PORTABLE
#define CV_FIREWALL_SCAN_RUN run_portable
#include "nf/firewall/scan_run.h"

#define RULES_MAX 64

static uint32_t draw(uint32_t n)
{
	static uint64_t state = 7;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

// Few values, so that entries pass.
static uint16_t draw_word(void)
{
	static const uint16_t words[] = {0, 1, 0x00ff, 0x0100, 0x7fff, 0x8000, 0xfffe, 0xffff};

	return words[draw(RTE_DIM(words))];
}

static struct cv_firewall_ports draw_ports(void)
{
	uint16_t a = draw_word(), b = draw(2) ? draw_word() : a;

	if (draw(2))
		return (struct cv_firewall_ports){0, UINT16_MAX};
	return (struct cv_firewall_ports){RTE_MIN(a, b), RTE_MAX(a, b)};
}

static void draw_entry(struct cv_firewall_entry *entry, unsigned words, uint32_t rule)
{
	static const uint16_t masks[] = {0, 0, 0, 0, 0x00ff, 0x80ff, 0xffff};
	uint16_t value[2 * CV_FIREWALL_IPV6_WORDS] = {0}, mask[2 * CV_FIREWALL_IPV6_WORDS] = {0};
	uint8_t class = (uint8_t)draw(3), class_mask = draw(2) ? 0xff : draw(2);

	class &= class_mask;
	memcpy(&value[0], &class, 1);
	memcpy(&mask[0], &class_mask, 1);
	for (unsigned i = 2; i < 2 * words - 2; i++) {
		mask[i] = draw(words) < 4 ? masks[draw(RTE_DIM(masks))] : 0;
		value[i] = draw_word() & mask[i];
	}
	*entry = (struct cv_firewall_entry){.sport = draw_ports(),
		.dport = draw_ports(),
		.length = draw(3) ? (struct cv_firewall_ports){0, UINT16_MAX} : draw_ports(),
		.result = (rule + 1) << 1 | draw(2)};
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++) {
		uint16_t bits = draw(6) ? 0 : masks[draw(RTE_DIM(masks))];

		if (i != CV_FIREWALL_FIELD_LENGTH)
			entry->field[i] = (struct cv_firewall_bits){draw_word() & bits, bits};
	}
	memcpy(entry->value, value, sizeof(value));
	memcpy(entry->mask, mask, sizeof(mask));
}

static void draw_tuple(uint16_t *tuple, unsigned words)
{
	uint8_t class = (uint8_t)draw(3);

	for (unsigned i = 0; i < 2 * words; i++)
		tuple[i] = draw_word();
	tuple[0] = tuple[1] = 0;
	memcpy(tuple, &class, 1);
}

static bool within(const struct cv_firewall_ports *ports, uint16_t port)
{
	return rte_be_to_cpu_16(port) >= ports->first && rte_be_to_cpu_16(port) <= ports->last;
}

static bool fields_pass(
	const struct cv_firewall_entry *entry, const struct cv_firewall_fields *fields)
{
	const uint16_t length = fields->word[CV_FIREWALL_FIELD_LENGTH];

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		if ((fields->word[i] & entry->field[i].mask) != entry->field[i].value)
			return false;
	return length >= entry->length.first && length <= entry->length.last;
}

static bool passes(const struct cv_firewall_entry *entry, const uint16_t *tuple,
	const struct cv_firewall_fields *fields, unsigned words)
{
	uint16_t value[2 * CV_FIREWALL_IPV6_WORDS], mask[2 * CV_FIREWALL_IPV6_WORDS];

	memcpy(value, entry->value, sizeof(value));
	memcpy(mask, entry->mask, sizeof(mask));
	for (unsigned i = 0; i < 2 * words - 2; i++)
		if ((tuple[i] & mask[i]) != value[i])
			return false;
	return fields_pass(entry, fields) && within(&entry->sport, tuple[2 * words - 2]) &&
	       within(&entry->dport, tuple[2 * words - 1]);
}

static void check(const char *name, cv_firewall_scan_run *run, unsigned words, uint32_t count)
{
	struct cv_firewall_entry entry[RULES_MAX];
	struct cv_firewall_transposed transposed;
	struct cv_firewall_scan *scan;
	uint16_t tuple[CV_FIREWALL_LOOKUP_MAX][2 * CV_FIREWALL_IPV6_WORDS];
	uint64_t hits[RULES_MAX + 1], want_hits[RULES_MAX + 1] = {0}, denied = 0, unmatched = 0;
	uint8_t rows[8 * sizeof(struct cv_tuple_ipv6)];
	uint32_t n = draw(CV_FIREWALL_LOOKUP_MAX + 1);
	uint64_t packets =
		((uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX)) | -(uint64_t)draw(2);
	struct cv_firewall_scanned got;

	packets &= n == 64 ? UINT64_MAX : (1ull << n) - 1;
	memset(hits, 0, sizeof(hits));
	for (uint32_t i = 0; i < count; i++)
		draw_entry(&entry[i], words, i);
	for (unsigned i = 0; i < CV_FIREWALL_LOOKUP_MAX; i++) {
		struct cv_firewall_fields fields;
		uint32_t first = 0;

		for (unsigned k = 0; k < CV_FIREWALL_FIELDS; k++)
			transposed.word[CV_FIREWALL_FIELD_ROW(k)][i] = fields.word[k] = draw_word();
		draw_tuple(tuple[i], words);
		memcpy(&rows[i % 8 * words * 4], tuple[i], words * 4);
		if (i % 8 == 7)
			cv_firewall_transpose_tuples_x8(rows, words, &transposed, i - 7);
		if (!(packets >> i & 1))
			continue;
		while (first < count && !passes(&entry[first], tuple[i], &fields, words))
			first++;
		want_hits[first < count ? first + 1 : 0]++;
		if (first == count)
			unmatched |= 1ull << i;
		else if (CV_FIREWALL_DENIES(entry[first].result))
			denied |= 1ull << i;
	}
	assert_int_equal(cv_firewall_scan_make(&scan, entry, count, words), 0);
	got = run(scan, &transposed, n, packets, hits);
	if (got.denied != denied || got.unmatched != unmatched)
		fail_msg("%s, %u words, %u entries, %u packets: denied %lx, not %lx; unmatched "
			 "%lx, not %lx",
			name, words, count, n, got.denied, denied, got.unmatched, unmatched);
	assert_memory_equal(hits, want_hits, sizeof(hits));
	cv_firewall_scan_free(scan);
}

static void check_all(const char *name, cv_firewall_scan_run *run)
{
	static const uint32_t counts[] = {0, 1, 2, 10, 20};

	for (unsigned round = 0; round < 200; round++) {
		for (size_t i = 0; i < RTE_DIM(counts); i++) {
			check(name, run, CV_FIREWALL_IPV4_WORDS, counts[i]);
			check(name, run, CV_FIREWALL_IPV6_WORDS, counts[i]);
		}
	}
}

static void every_run(void **state)
{
	const struct cv_firewall_scan_run_of *of;

	for (of = cv_firewall_scan_runs; of->name != NULL; of++) {
		print_message("%s: %s\n", of->name, of->can() ? "checked" : "not on this machine");
		if (of->can())
			check_all(of->name, of->run);
	}
	check_all("portable", run_portable);
}

// The limit that DPDK's users know counts here, too.
static void limited_vectors(void **state)
{
	uint16_t before = rte_vect_get_max_simd_bitwidth();
	const struct cv_firewall_scan_run_of *last = cv_firewall_scan_runs;

	while (last[1].name != NULL)
		last++;
	assert_int_equal(rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_128), 0);
	assert_ptr_equal(cv_firewall_scan_run_best(), last->run);
	assert_int_equal(rte_vect_set_max_simd_bitwidth(before), 0);
}

// What a scan has no room for is refused, and nothing is kept.
static void too_many_tests(void **state)
{
	struct cv_firewall_entry *entry = calloc(CV_FIREWALL_TESTS_MAX + 1, sizeof(*entry));
	struct cv_firewall_scan *scan;

	assert_non_null(entry);
	for (uint32_t i = 0; i <= CV_FIREWALL_TESTS_MAX; i++)
		entry[i] = (struct cv_firewall_entry){.sport = {0, UINT16_MAX},
			.dport = {(uint16_t)i, (uint16_t)(i < 200 ? i : i + 1)},
			.length = {0, UINT16_MAX},
			.result = (i + 1) << 1};
	assert_int_equal(
		cv_firewall_scan_make(&scan, entry, CV_FIREWALL_TESTS_MAX, CV_FIREWALL_IPV4_WORDS),
		0);
	cv_firewall_scan_free(scan);
	assert_int_equal(cv_firewall_scan_make(
				 &scan, entry, CV_FIREWALL_TESTS_MAX + 1, CV_FIREWALL_IPV4_WORDS),
		-E2BIG);
	free(entry);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_run),
		cmocka_unit_test(limited_vectors),
		cmocka_unit_test(too_many_tests),
	};
	int failed;

	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
