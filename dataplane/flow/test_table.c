// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flow table against a plain model, and at its limits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/fragments.h"
#include "flow/hosts.h"
#include "flow/table.h"

static uint64_t random_state = 1;

static uint32_t random32(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 32);
}

static struct cv_flow_secret secret_of(uint8_t seed, bool aes)
{
	struct cv_flow_secret secret;

	assert_int_equal(cv_flow_secret_make(&secret), 0);
	memset(secret.keys, seed, sizeof(secret.keys));
	secret.aes &= aes;
	return secret;
}

static void *make(struct cv_flow_table *table, uint32_t max, unsigned beside, bool v6,
	const struct cv_flow_secret *secret)
{
	const size_t bytes = cv_flow_table_bytes(max, beside, v6);
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(memory);
	memset(memory, 0, bytes);
	cv_flow_table_init(table, memory, max, beside, v6, secret);
	return memory;
}

// Key number n: of its own addresses.
static union cv_flow_key key_of(uint32_t n, bool v6)
{
	union cv_flow_key key = {0};

	if (v6) {
		memcpy(key.ipv6.src, &n, 4);
		key.ipv6.sport = (rte_be16_t)(n * 7);
		key.ipv6.proto = 17;
	} else {
		key.ipv4 = (struct cv_flow_key_ipv4){
			.src = n, .dst = 9, .sport = (rte_be16_t)(n * 7), .proto = 17};
	}
	return key;
}

static uint64_t hash_of(const struct cv_flow_table *table, const union cv_flow_key *key)
{
	return cv_flow_hash(table->secret, key, CV_FLOW_KEY_BYTES(table->v6));
}

// Adds a flow with keys 2n and 2n+1. Its entry, or CV_FLOW_NONE.
static uint32_t add(struct cv_flow_table *table, uint32_t n)
{
	uint32_t index = cv_flow_table_take(table);

	if (index == CV_FLOW_NONE)
		return index;
	for (unsigned direction = 0; direction < 2; direction++) {
		union cv_flow_key key = key_of(2 * n + direction, table->v6);
		struct cv_flow *flow = cv_flow_at(table, index);

		flow->proto = 17;
		memcpy(cv_flow_stored(flow, direction, table->v6), &key,
			CV_FLOW_STORED_BYTES(table->v6));
		if (cv_flow_table_add(table, hash_of(table, &key), index, direction) == 0)
			continue;
		if (direction == 1) {
			key = key_of(2 * n, table->v6);
			cv_flow_table_remove(table, hash_of(table, &key), index, 0);
		}
		cv_flow_table_give(table, index);
		return CV_FLOW_NONE;
	}
	table->deadlines[index] = 1;
	return index;
}

static void drop(struct cv_flow_table *table, uint32_t n, uint32_t index)
{
	for (unsigned direction = 0; direction < 2; direction++) {
		union cv_flow_key key = key_of(2 * n + direction, table->v6);

		cv_flow_table_remove(table, hash_of(table, &key), index, direction);
	}
	cv_flow_table_give(table, index);
}

static void expect(const struct cv_flow_table *table, uint32_t n, uint32_t index)
{
	for (unsigned direction = 0; direction < 2; direction++) {
		union cv_flow_key key = key_of(2 * n + direction, table->v6);
		uint32_t want =
			index == CV_FLOW_NONE ? CV_FLOW_NONE : CV_FLOW_SLOT(index, direction);

		assert_int_equal(cv_flow_table_find(table, &key, hash_of(table, &key)), want);
	}
}

// Random additions and removals: what was added and not removed is found, nothing else, and when
// all are removed the buckets are as they were.
static void behaves_as_the_model(bool v6, bool aes)
{
	enum { MAX = 3000, NAMES = 4000, STEPS = 60000 };
	struct cv_flow_secret secret = secret_of(3, aes);
	static uint32_t model[NAMES];
	struct cv_flow_table table;
	void *memory = make(&table, MAX, 24, v6, &secret);
	unsigned used = 0;

	memset(model, 0xff, sizeof(model));
	for (unsigned step = 0; step < STEPS; step++) {
		uint32_t n = random32() % NAMES;

		if (model[n] == CV_FLOW_NONE) {
			model[n] = add(&table, n);
			assert_int_equal(model[n] == CV_FLOW_NONE, used == MAX);
			used += model[n] != CV_FLOW_NONE;
		} else if (random32() % 3 == 0) { // so that it is full most of the time
			drop(&table, n, model[n]);
			model[n] = CV_FLOW_NONE;
			used--;
		}
		assert_int_equal(table.used, used);
		expect(&table, n, model[n]);
		if (step % 1000 == 0)
			for (n = 0; n < NAMES; n++)
				expect(&table, n, model[n]);
	}
	for (uint32_t n = 0; n < NAMES; n++)
		if (model[n] != CV_FLOW_NONE)
			drop(&table, n, model[n]);
	for (uint32_t i = 0; i < table.buckets_count; i++) {
		assert_int_equal(table.buckets[i].displaced, 0);
		for (unsigned j = 0; j < CV_FLOW_BUCKET; j++)
			assert_int_equal(table.buckets[i].signature[j], 0);
	}
	free(memory);
}

static void ipv4_as_the_model(void **state)
{
	behaves_as_the_model(false, true);
	behaves_as_the_model(false, false);
}

static void ipv6_as_the_model(void **state)
{
	behaves_as_the_model(true, true);
	behaves_as_the_model(true, false);
}

// As many flows as were asked for fit, whatever the size: no key is refused before the last entry.
static void holds_what_it_should(void **state)
{
	static const uint32_t sizes[] = {64, 65, 100, 1000, 4097, 200000};

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (uint8_t seed = 0; seed < 5; seed++) {
			struct cv_flow_secret secret = secret_of(seed, true);
			struct cv_flow_table table;
			void *memory = make(&table, sizes[s], 0, false, &secret);

			for (uint32_t n = 0; n < sizes[s]; n++)
				if (add(&table, n) == CV_FLOW_NONE)
					fail_msg("%u of %u flows, seed %u", n, sizes[s], seed);
			assert_int_equal(add(&table, sizes[s]), CV_FLOW_NONE);
			free(memory);
		}
	}
}

// The chance that a key of a table as full as it may be finds no room is too small to be tested: here
// it is fuller. Moving keys by one step alone fails.
static void holds_more_than_it_should(void **state)
{
	enum { FLOWS = 50000, KEYS = FLOWS * 7 / 3 }; // seven of eight places

	for (uint8_t seed = 0; seed < 5; seed++) {
		struct cv_flow_secret secret = secret_of(seed, true);
		struct cv_flow_table table;
		void *memory = make(&table, FLOWS, 0, false, &secret);

		for (uint32_t n = 0; n < KEYS; n++) {
			const union cv_flow_key key = key_of(n, false);

			if (cv_flow_table_add(&table, hash_of(&table, &key), n / 2, n % 2) != 0)
				fail_msg("%u of %u keys, seed %u", n, KEYS, seed);
		}
		free(memory);
	}
}

// An IPv4 flow takes 128 bytes at most, with 32 bytes of slots, deadlines, buckets and hosts.
static void takes_as_little_as_it_says(void **state)
{
	const uint32_t flows = 10000000;
	const size_t bytes = cv_flow_table_bytes(flows, 16, false) + cv_flow_hosts_bytes(flows, 1);

	assert_true(bytes <= 128 * (size_t)flows);
}

// Keys that collide under one secret are spread by another: whoever finds some learns nothing of
// use. And when all keys are of one bucket, which nobody can make, the table says that it is full
// after a bounded number of steps, and forgets nothing.
static void collisions_are_bounded(void **state)
{
	struct cv_flow_secret one = secret_of(1, true), other = secret_of(2, true);
	struct cv_flow_table table;
	void *memory = make(&table, 10000, 0, false, &one);
	unsigned collide = 0, still = 0;
	uint32_t bucket = 0;

	for (uint32_t n = 0; collide < 100; n++) {
		union cv_flow_key key = key_of(n, false);
		uint64_t hash = cv_flow_hash(&one, &key, sizeof(key.ipv4));

		if (n == 0)
			bucket = cv_flow_first_bucket(&table, hash);
		if (cv_flow_first_bucket(&table, hash) != bucket)
			continue;
		collide++;
		hash = cv_flow_hash(&other, &key, sizeof(key.ipv4));
		still += cv_flow_first_bucket(&table, hash) == bucket;
	}
	assert_true(still < 5);

	collide = 0;
	for (uint32_t n = 0; n < 1000; n++) {
		const uint32_t index = cv_flow_table_take(&table);

		// One signature: one pair of buckets.
		if (cv_flow_table_add(&table, 0x0000123400000000, index, 0) != 0) {
			cv_flow_table_give(&table, index);
			break;
		}
		collide++;
	}
	assert_int_equal(collide, 2 * CV_FLOW_BUCKET);
	free(memory);
}

static void both_hashes_depend_on_every_bit(void **state)
{
	for (unsigned aes = 0; aes < 2; aes++) {
		struct cv_flow_secret secret = secret_of(7, aes);

		for (unsigned bytes = 16; bytes <= 40; bytes += 24) {
			uint8_t key[40] = {0};
			const uint64_t plain = cv_flow_hash(&secret, key, bytes);

			for (unsigned bit = 0; bit < 8 * bytes; bit++) {
				uint64_t changed;

				key[bit / 8] ^= (uint8_t)(1 << bit % 8);
				changed = cv_flow_hash(&secret, key, bytes) ^ plain;
				key[bit / 8] ^= (uint8_t)(1 << bit % 8);
				assert_in_range(__builtin_popcountll(changed), 10, 54);
			}
			secret.keys[0][0] ^= 1;
			assert_true(cv_flow_hash(&secret, key, bytes) != plain);
			secret.keys[0][0] ^= 1;
		}
	}
}

static void hosts_are_limited(void **state)
{
	enum { FLOWS = 5000, LIMIT = 3 };
	struct cv_flow_hosts hosts;
	void *memory = aligned_alloc(64, cv_flow_hosts_bytes(FLOWS, LIMIT));

	memset(memory, 0, cv_flow_hosts_bytes(FLOWS, LIMIT));
	cv_flow_hosts_init(&hosts, memory, FLOWS, LIMIT);
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t host = 1; host <= FLOWS / LIMIT; host++) {
			const uint64_t hash = host * 0x9e3779b97f4a7c15u;

			for (unsigned i = 0; i < LIMIT; i++)
				assert_true(cv_flow_hosts_add(&hosts, hash));
			assert_false(cv_flow_hosts_add(&hosts, hash));
			cv_flow_hosts_remove(&hosts, hash);
			assert_true(cv_flow_hosts_add(&hosts, hash));
		}
		for (uint64_t host = 1; host <= FLOWS / LIMIT; host++)
			for (unsigned i = 0; i < LIMIT; i++)
				cv_flow_hosts_remove(&hosts, host * 0x9e3779b97f4a7c15u);
	}
	free(memory);
}

static void fragments_are_forgotten(void **state)
{
	static struct cv_flow_fragments fragments;
	struct cv_flow_fragment_key key = {.id = 1};

	cv_flow_fragments_put(&fragments, 5, &key, 77, 100, 200);
	assert_int_equal(cv_flow_fragments_find(&fragments, 5, &key, 199), 77);
	assert_int_equal(cv_flow_fragments_find(&fragments, 5, &key, 200), CV_FLOW_NONE);
	// Of five with one hash the one that would be forgotten first is.
	for (uint32_t id = 1; id <= CV_FLOW_FRAGMENTS_WAYS + 1; id++) {
		key.id = id;
		cv_flow_fragments_put(&fragments, 5, &key, id, 300, 400 + id);
	}
	for (uint32_t id = 1; id <= CV_FLOW_FRAGMENTS_WAYS + 1; id++) {
		key.id = id;
		assert_int_equal(cv_flow_fragments_find(&fragments, 5, &key, 301),
			id == 1 ? CV_FLOW_NONE : id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_as_the_model),
		cmocka_unit_test(ipv6_as_the_model),
		cmocka_unit_test(holds_what_it_should),
		cmocka_unit_test(holds_more_than_it_should),
		cmocka_unit_test(takes_as_little_as_it_says),
		cmocka_unit_test(collisions_are_bounded),
		cmocka_unit_test(both_hashes_depend_on_every_bit),
		cmocka_unit_test(hosts_are_limited),
		cmocka_unit_test(fragments_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
