// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The tree: random entries and random packets, against the entries' own words.
#include <errno.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "nf/firewall/tree.h"
#include "tests/support/test_packets.h"

#define ENTRIES_MAX 3000

static uint32_t draw(uint32_t n)
{
	static uint64_t state = 11;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 32) * n >> 32);
}

// Few networks, so that entries overlap and packets pass some.
static uint32_t draw_address(void)
{
	const uint32_t network = draw(4) << 28 | draw(8) << 20 | draw(16) << 8;

	return draw(2) ? network | draw(4) : network | draw(1 << 20);
}

static uint16_t draw_port(void)
{
	static const uint16_t ports[] = {0, 1, 53, 80, 443, 1023, 1024, 65534, 65535};

	return draw(3) ? ports[draw(RTE_DIM(ports))] : (uint16_t)draw(65536);
}

static struct cv_firewall_ports draw_range(void)
{
	const uint16_t a = draw_port(), b = draw(2) ? draw_port() : a;

	if (draw(2))
		return (struct cv_firewall_ports){0, UINT16_MAX};
	return (struct cv_firewall_ports){RTE_MIN(a, b), RTE_MAX(a, b)};
}

static void draw_prefix(struct cv_firewall_entry *entry, unsigned word, unsigned shortest)
{
	const unsigned bits = shortest + draw(33 - shortest);
	const uint32_t mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);

	entry->mask[word] = rte_cpu_to_be_32(mask);
	entry->value[word] = rte_cpu_to_be_32(draw_address() & mask);
}

static struct cv_firewall_entry draw_entry(unsigned shortest, bool with_fields, uint32_t rule)
{
	struct cv_firewall_entry entry = {
		.sport = draw_range(),
		.dport = draw_range(),
		.length = {0, UINT16_MAX},
		.result = (rule + 1) << 1 | draw(2),
	};
	const uint8_t class = (uint8_t)draw(4);

	if (draw(3)) {
		memcpy(&entry.value[0], &class, 1);
		memcpy(&entry.mask[0], &(uint8_t){0xff}, 1);
	}
	draw_prefix(&entry, 1, shortest);
	draw_prefix(&entry, 2, shortest);
	for (unsigned i = 0; with_fields && i < CV_FIREWALL_FIELDS; i++) {
		const uint16_t mask = draw(4) ? 0 : (uint16_t)draw(4);

		if (i == CV_FIREWALL_FIELD_LENGTH)
			entry.length = draw(4) ? entry.length : draw_range();
		else
			entry.field[i] = (struct cv_firewall_bits){(uint16_t)draw(4) & mask, mask};
	}
	return entry;
}

static bool within(const struct cv_firewall_ports *range, uint16_t x)
{
	return x >= range->first && x <= range->last;
}

static bool passes(const struct cv_firewall_entry *entry, const struct cv_tuple_ipv4 *tuple,
	const struct cv_firewall_fields *fields)
{
	uint32_t word[CV_FIREWALL_IPV4_WORDS];

	memcpy(word, tuple, sizeof(word));
	for (unsigned i = 0; i < 3; i++)
		if ((word[i] & entry->mask[i]) != entry->value[i])
			return false;
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		if ((fields->word[i] & entry->field[i].mask) != entry->field[i].value)
			return false;
	return within(&entry->sport, rte_be_to_cpu_16(tuple->sport)) &&
	       within(&entry->dport, rte_be_to_cpu_16(tuple->dport)) &&
	       within(&entry->length, fields->word[CV_FIREWALL_FIELD_LENGTH]);
}

// A packet that passes an entry more often than not: of one its first, else any.
static void draw_packet(const struct cv_firewall_entry *entry, struct cv_tuple_ipv4 *tuple,
	struct cv_firewall_fields *fields)
{
	*tuple = (struct cv_tuple_ipv4){
		.proto = (uint8_t)draw(4),
		.src = rte_cpu_to_be_32(draw_address()),
		.dst = rte_cpu_to_be_32(draw_address()),
		.sport = rte_cpu_to_be_16(draw_port()),
		.dport = rte_cpu_to_be_16(draw_port()),
	};
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		fields->word[i] = (uint16_t)draw(4);
	if (entry == NULL || draw(4) == 0)
		return;
	memcpy(&tuple->proto, &entry->value[0], 1);
	tuple->src = entry->value[1] | (tuple->src & ~entry->mask[1]);
	tuple->dst = entry->value[2] | (tuple->dst & ~entry->mask[2]);
	tuple->sport = rte_cpu_to_be_16(draw(2) ? entry->sport.first : entry->sport.last);
	tuple->dport = rte_cpu_to_be_16(draw(2) ? entry->dport.first : entry->dport.last);
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		fields->word[i] = entry->field[i].value;
	fields->word[CV_FIREWALL_FIELD_LENGTH] = entry->length.first;
}

static void check_burst(const struct cv_firewall_tree *tree, const struct cv_firewall_entry *entry,
	uint32_t count, bool with_fields)
{
	struct cv_tuple_ipv4 tuple[CV_FIREWALL_LOOKUP_MAX];
	struct cv_firewall_fields fields[CV_FIREWALL_LOOKUP_MAX];
	uint8_t place[CV_FIREWALL_LOOKUP_MAX];
	uint32_t result[CV_FIREWALL_LOOKUP_MAX], n = 0;

	for (unsigned i = 0; i < CV_FIREWALL_LOOKUP_MAX; i++) {
		draw_packet(count > 0 ? &entry[draw(count)] : NULL, &tuple[i], &fields[i]);
		if (draw(8))
			place[n++] = (uint8_t)i;
	}
	cv_firewall_tree_lookup(tree, tuple, with_fields ? fields : NULL, place, result, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = 0, want;

		while (first < count && !passes(&entry[first], &tuple[place[i]], &fields[place[i]]))
			first++;
		want = first < count ? entry[first].result : 0;
		if (result[i] != want)
			fail_msg("%u entries, fields %d: %u, not %u", count, with_fields, result[i],
				want);
	}
}

static void check(uint32_t count, unsigned shortest, bool with_fields)
{
	static struct cv_firewall_entry entry[ENTRIES_MAX];
	struct cv_firewall_tree *tree;
	int rc;

	for (uint32_t i = 0; i < count; i++)
		entry[i] = draw_entry(draw(20) ? shortest : 0, with_fields, i);
	rc = cv_firewall_tree_build(&tree, entry, count, with_fields);
	if (rc != 0) // only where entries overlap much
		fail_msg("%u entries, prefixes from %u on: %d", count, shortest, rc);
	for (unsigned round = 0; round < 20; round++)
		check_burst(tree, entry, count, with_fields);
	cv_firewall_tree_free(tree);
}

static void random_entries(void **state)
{
	static const uint32_t counts[] = {0, 1, 2, 3, 30, 100, 300, 1000};

	for (unsigned round = 0; round < 6; round++)
		for (size_t i = 0; i < RTE_DIM(counts); i++)
			check(counts[i], counts[i] > 100 ? 20 : round % 2 ? 0 : 16, round % 3 == 0);
}

// Entries that nothing tells apart but what no cut sees are refused, and nothing is kept.
static void too_much_overlap(void **state)
{
	static struct cv_firewall_entry entry[ENTRIES_MAX];
	struct cv_firewall_tree *tree;

	for (uint32_t i = 0; i < ENTRIES_MAX; i++)
		entry[i] = (struct cv_firewall_entry){
			.sport = {(uint16_t)i, (uint16_t)(40000 + i)},
			.dport = {(uint16_t)(ENTRIES_MAX - i), (uint16_t)(50000 - i)},
			.length = {0, UINT16_MAX},
			.result = (i + 1) << 1,
		};
	assert_int_equal(cv_firewall_tree_build(&tree, entry, ENTRIES_MAX, false), -E2BIG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_entries),
		cmocka_unit_test(too_much_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
