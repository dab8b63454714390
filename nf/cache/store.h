// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Answers by what they answer, of one worker, in memory that does not grow. They lie one behind another in a
// ring; the oldest make room for new ones, but those that were used meanwhile get a second turn (CLOCK). An
// index of buckets, a cache line each, finds them by a keyed hash.
#ifndef CV_CACHE_STORE_H
#define CV_CACHE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "nf/cache/message.h"
#include "packet/compiler.h"

#define CV_CACHE_UNIT 64u // bytes: what places in the ring are counted in
#define CV_CACHE_WAYS 8u
#define CV_CACHE_SECOND 256u // of the clock that answers age by

// What an answer is an answer to. Bytes of the name behind its end are zero.
struct cv_cache_key {
	uint8_t server[16]; // an IPv4 address: the first four, the rest zero
	uint16_t tags[2]; // of VLAN, outermost first; 0: none
	uint16_t type;
	uint8_t query_flags; // enum cv_dns_query_flags, CV_CACHE_IPV6
	uint8_t name_len;
	uint8_t name[256]; // in lower case
};

#define CV_CACHE_IPV6 128

// The key's bytes that say something: a multiple of 8.
static CV_INLINE size_t cv_cache_key_len(const struct cv_cache_key *key)
{
	return offsetof(struct cv_cache_key, name) + ((key->name_len + 7u) & ~7u);
}

// An answer in the ring. bytes are the key, the TTLs' offsets (from the body's beginning, 16 bits each), and
// the body: what is behind the question.
struct cv_cache_answer {
	uint64_t hash;
	uint64_t learned; // by the clock
	uint32_t ttl; // seconds that it holds
	uint16_t key_len, body_len;
	uint16_t ttls;
	uint8_t used; // since it got its place
	uint8_t units;
	uint16_t flags; // of the message's header, in host order
	rte_be16_t records[3]; // of the message's header
	uint16_t sum; // of the body, as it counts in the message's checksum
	uint8_t bytes[];
};

#define CV_CACHE_ANSWER_MAX                                                                      \
	(sizeof(struct cv_cache_answer) + sizeof(struct cv_cache_key) + 2 * CV_DNS_RECORDS_MAX + \
		CV_DNS_ANSWER_MAX)
#define CV_CACHE_UNITS_MAX ((CV_CACHE_ANSWER_MAX + CV_CACHE_UNIT - 1) / CV_CACHE_UNIT)

struct cv_cache_bucket {
	uint32_t tag[CV_CACHE_WAYS];
	uint32_t place[CV_CACHE_WAYS]; // in the ring + 1; 0: none
} __attribute__((aligned(64)));

struct cv_cache_store {
	uint8_t *ring;
	struct cv_cache_bucket *buckets;
	uint32_t units; // answers begin below
	uint32_t buckets_count;
	uint32_t head, tail; // where the next one goes, and where the oldest one is
	uint32_t lie; // answers in the ring, those among them that nothing leads to any more
	uint32_t entries; // answers that the index leads to
	uint64_t evicted; // of these, that made room while they still held
	uint8_t moving[CV_CACHE_UNITS_MAX * CV_CACHE_UNIT];
};

// Zeroed, by lines or large pages, all of it there; for free(). NULL: there is none.
void *cv_cache_memory(size_t bytes);

// Of so many bytes in all, at least 64 KiB. Returns 0 or -ENOMEM.
int cv_cache_store_init(struct cv_cache_store *store, size_t bytes);
void cv_cache_store_free(struct cv_cache_store *store);

static CV_INLINE struct cv_cache_bucket *cv_cache_bucket(
	const struct cv_cache_store *store, uint64_t hash)
{
	return &store->buckets[(hash >> 32) * store->buckets_count >> 32];
}

static CV_INLINE struct cv_cache_answer *cv_cache_at(
	const struct cv_cache_store *store, uint32_t place)
{
	return (struct cv_cache_answer *)(store->ring + (size_t)place * CV_CACHE_UNIT);
}

// The answer that may be meant; NULL: there is none. Compare it by cv_cache_is().
static CV_INLINE struct cv_cache_answer *cv_cache_store_find(
	const struct cv_cache_store *store, uint64_t hash)
{
	const struct cv_cache_bucket *bucket = cv_cache_bucket(store, hash);
	uint32_t place = 0;

	for (unsigned way = 0; way < CV_CACHE_WAYS; way++)
		place |= bucket->tag[way] == (uint32_t)hash ? bucket->place[way] : 0;
	return place != 0 ? cv_cache_at(store, place - 1) : NULL;
}

static CV_INLINE bool cv_cache_holds(const struct cv_cache_answer *answer, uint64_t now)
{
	return (now - answer->learned) / CV_CACHE_SECOND < answer->ttl;
}

// Takes an answer out of the index, if it is there.
void cv_cache_store_forget(struct cv_cache_store *store, const struct cv_cache_answer *answer);

// Room for an answer, which is in the index from then on: the caller writes all but hash, used and units.
struct cv_cache_answer *cv_cache_store_put(
	struct cv_cache_store *store, uint64_t hash, size_t bytes, uint64_t now);

#endif
