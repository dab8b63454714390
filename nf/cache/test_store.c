// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The store and the table of questions: beside a model of what they were told, they forget, and never lie.
#include <stdlib.h>

#include "nf/cache/pending.h"
#include "nf/cache/store.h"
#include "tests/support/test_packets.h"

#define BYTES ((size_t)64 << 10)

static uint64_t hash_of(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15;
	i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
	return i ^ (i >> 27);
}

static struct cv_cache_answer *put(
	struct cv_cache_store *store, uint64_t i, size_t body, uint64_t now, uint32_t ttl)
{
	struct cv_cache_answer *answer =
		cv_cache_store_put(store, hash_of(i), sizeof(*answer) + body, now);

	answer->learned = now;
	answer->ttl = ttl;
	answer->body_len = (uint16_t)body;
	memset(answer->bytes, (int)i, body);
	return answer;
}

static struct cv_cache_answer *find(struct cv_cache_store *store, uint64_t i)
{
	struct cv_cache_answer *answer = cv_cache_store_find(store, hash_of(i));

	if (answer == NULL || answer->hash != hash_of(i))
		return NULL;
	for (unsigned at = 0; at < answer->body_len; at++)
		assert_int_equal(answer->bytes[at], (uint8_t)i);
	return answer;
}

static void keeps_what_is_used(void **state)
{
	struct cv_cache_store store;
	unsigned kept = 0;

	assert_int_equal(cv_cache_store_init(&store, BYTES), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		put(&store, i, 40 + i * 7 % 1500, 0, 10);
		assert_non_null(find(&store, i));
		for (uint64_t hot = 0; hot < 4; hot++)
			if (find(&store, hot) != NULL)
				find(&store, hot)->used = 1;
		assert_true(store.entries <= store.lie);
	}
	for (uint64_t hot = 0; hot < 4; hot++)
		assert_non_null(find(&store, hot));
	for (uint64_t i = 0; i < 20000; i++)
		kept += find(&store, i) != NULL;
	assert_int_equal(kept, store.entries);
	assert_int_equal(store.entries + store.evicted, 20000);
	assert_true(kept > 50);
	cv_cache_store_free(&store);
}

static void holds_no_longer_than_its_ttl(void **state)
{
	struct cv_cache_store store;
	struct cv_cache_answer *answer;

	assert_int_equal(cv_cache_store_init(&store, BYTES), 0);
	answer = put(&store, 1, 100, 1000, 2);
	assert_true(cv_cache_holds(answer, 1000));
	assert_true(cv_cache_holds(answer, 1000 + 2 * CV_CACHE_SECOND - 1));
	assert_false(cv_cache_holds(answer, 1000 + 2 * CV_CACHE_SECOND));
	cv_cache_store_forget(&store, answer);
	assert_null(find(&store, 1));
	assert_int_equal(store.entries, 0);
	// What does not hold any more gets no second turn, used or not.
	put(&store, 2, 1000, 0, 1)->used = 1;
	for (uint64_t i = 3; i < 200; i++)
		put(&store, i, 1000, 10 * CV_CACHE_SECOND, 100);
	assert_null(find(&store, 2));
	cv_cache_store_free(&store);
}

static void replaces(void **state)
{
	struct cv_cache_store store;

	assert_int_equal(cv_cache_store_init(&store, BYTES), 0);
	for (unsigned i = 0; i < 1000; i++)
		put(&store, 7, 10 + i, i, 100);
	assert_int_equal(find(&store, 7)->body_len, 1009);
	assert_int_equal(store.entries, 1);
	assert_int_equal(store.evicted, 0);
	cv_cache_store_free(&store);
}

// All in one bucket, as only who knows the key could have it: the oldest of the bucket goes.
static void one_bucket(void **state)
{
	struct cv_cache_store store;
	unsigned entries = 0;

	assert_int_equal(cv_cache_store_init(&store, BYTES), 0);
	for (uint64_t i = 1; i <= 100; i++)
		cv_cache_store_put(&store, i, 64, 0)->hash = i;
	for (uint64_t i = 1; i <= 100; i++)
		entries += cv_cache_store_find(&store, i) != NULL;
	assert_int_equal(entries, CV_CACHE_WAYS);
	assert_non_null(cv_cache_store_find(&store, 100));
	assert_int_equal(store.entries, CV_CACHE_WAYS);
	cv_cache_store_free(&store);
}

static void questions_wait(void **state)
{
	static struct cv_cache_query memory[64][CV_CACHE_PENDING_WAYS];
	const struct cv_cache_pending pending = {.buckets = memory, .count = 64};
	const uint64_t same = UINT64_C(5) << 32; // bucket

	cv_cache_pending_put(&pending, 10, 3, 100);
	assert_int_equal(cv_cache_pending_take(&pending, 12, 100, 50), -1);
	assert_int_equal(cv_cache_pending_take(&pending, 10, 150, 50), 3);
	assert_int_equal(cv_cache_pending_take(&pending, 10, 150, 50), -1); // answered
	cv_cache_pending_put(&pending, 10, 3, 100);
	assert_int_equal(cv_cache_pending_take(&pending, 10, 151, 50), -1); // too late
	cv_cache_pending_put(&pending, 10, 3, UINT32_MAX - 10);
	cv_cache_pending_put(&pending, 10, 3, UINT32_MAX - 5); // asked again
	assert_int_equal(cv_cache_pending_take(&pending, 10, 44, 50), 3);
	for (unsigned i = 0; i < CV_CACHE_PENDING_WAYS + 1; i++) // the oldest makes room
		cv_cache_pending_put(&pending, same | i << 1, (uint8_t)i, 200 + i);
	assert_int_equal(cv_cache_pending_take(&pending, same, 210, 50), -1);
	for (unsigned i = 1; i < CV_CACHE_PENDING_WAYS + 1; i++)
		assert_int_equal(cv_cache_pending_take(&pending, same | i << 1, 210, 50), i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_is_used),
		cmocka_unit_test(holds_no_longer_than_its_ttl),
		cmocka_unit_test(replaces),
		cmocka_unit_test(one_bucket),
		cmocka_unit_test(questions_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
