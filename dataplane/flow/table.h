// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flow table of one worker and one family: memory fixed when it is made, no lock, and a bounded
// number of steps for everything. A flow is one entry that is found by two keys, that of its forward
// packets and that of its replies.
//
// Keys stand in buckets of one cache line: eight signatures, compared at once, and the entries that
// they stand for. A key has a first and a second bucket; the second is looked at only if some key
// of the first had to go there. When both are full, one key of either is moved to its own other
// bucket, where another is moved first if that is full, too; if none can be, there is no room.
#ifndef CV_FLOW_TABLE_H
#define CV_FLOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "flow/hash.h"
#include "packet/compiler.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#define CV_FLOW_NONE UINT32_MAX
#define CV_FLOWS_MAX (1u << 30)
#define CV_FLOW_BUCKET 8 // keys

// Keys as they are hashed and looked up. Every byte counts.
struct cv_flow_key_ipv4 {
	rte_be32_t src, dst;
	rte_be16_t sport, dport;
	uint8_t proto, zero[3];
};

struct cv_flow_key_ipv6 {
	uint8_t src[16], dst[16];
	rte_be16_t sport, dport;
	uint8_t proto, zero[3];
};

union cv_flow_key {
	struct cv_flow_key_ipv4 ipv4;
	struct cv_flow_key_ipv6 ipv6;
};

#define CV_FLOW_KEY_BYTES(v6) \
	((v6) ? sizeof(struct cv_flow_key_ipv6) : sizeof(struct cv_flow_key_ipv4))
#define CV_FLOW_STORED_BYTES(v6) ((v6) ? 36u : 12u) // of a key in its entry: without proto

// What is known of a flow, but its keys.
struct cv_flow {
	uint32_t seen; // when its last packet came: cv_flow_seen(), cv_flow_see()
	uint32_t epoch; // the zone's, when it was decided; of a free entry the next free one
	uint16_t way[2]; // by direction: index of the zone's ways, 0: nothing is set
	// What forward rewriting adds to the sum of the IPv4 header, and to that of layer 4.
	uint16_t ip_delta, l4_delta;
	uint8_t flags; // CV_FLOW_*
	uint8_t tcp_state; // enum cv_flow_tcp_state
	uint8_t timeout; // enum cv_flow_timeout
	uint8_t proto;
	uint8_t group; // that decided
	uint8_t deciders; // functions of that group, in its order; the last one's verdict holds
	uint8_t verdict;
	uint8_t follows; // members that follow, one bit each, and CV_FLOW_WINDOWED
};

// When its last packet came. Its worker and others write it, each the time that it is, and nothing
// depends on the order.
static CV_INLINE uint32_t cv_flow_seen(const struct cv_flow *flow)
{
	return __atomic_load_n(&flow->seen, __ATOMIC_RELAXED);
}

static CV_INLINE void cv_flow_see(struct cv_flow *flow, uint32_t now)
{
	__atomic_store_n(&flow->seen, now, __ATOMIC_RELAXED);
}

#define CV_FLOW_REWRITES 1 // the tuple
#define CV_FLOW_DENIED 2 // there is no key for replies, and no function keeps anything
#define CV_FLOW_REPLIED 4 // a reply was seen
#define CV_FLOW_ONE_KEY 8 // a denied flow, one that is its own reply, or whose replies are others'
#define CV_FLOW_OUTPUT 0x10 // forward packets leave by an output
#define CV_FLOW_WINDOWED 0x80 // of follows: TCP whose windows are checked
// Packets of a direction change nothing of the flow but when it was last seen, unless they have
// flags of TCP.
#define CV_FLOW_SETTLED(direction) (0x40u << (direction))

struct cv_flow_ipv4 {
	struct cv_flow flow;
	uint8_t key[2][12];
	uint8_t slots[16];
};

struct cv_flow_ipv6 {
	struct cv_flow flow;
	uint8_t key[2][36];
	uint8_t slots[32];
};

_Static_assert(sizeof(struct cv_flow_ipv4) == 64, "a cache line");
_Static_assert(sizeof(struct cv_flow_ipv6) == 128, "two cache lines");

// Other workers read a table without a lock (flow/foreign.h). What an entry says grows its version
// before it is taken back, and before the entry is another flow's: who finds the version that it was
// before reading has read one flow. The flag that an entry is settled is set last, and taken first.
#define CV_FLOW_VERSIONS 1024u

struct cv_flow_bucket {
	uint16_t signature[CV_FLOW_BUCKET]; // 0: empty
	uint32_t slot[CV_FLOW_BUCKET]; // CV_FLOW_SLOT()
	uint32_t displaced; // keys whose first bucket this is, and that stand in their second
} __attribute__((aligned(64)));

// What a bucket says of a key: its entry, the direction, and whether this is its second bucket.
#define CV_FLOW_SLOT(index, direction) ((index) << 1 | (direction))
#define CV_FLOW_SECOND (1u << 31)

struct cv_flow_table {
	struct cv_flow_bucket *buckets;
	uint8_t *flows;
	uint8_t *beside; // what of functions' slots has no place in the entries
	uint32_t *deadlines; // by entry; 0: it is free
	const struct cv_flow_secret *secret;
	uint32_t buckets_count;
	uint32_t beside_bytes; // of each flow
	uint32_t max; // flows
	uint32_t used;
	uint32_t high; // entries that were ever used
	uint32_t free; // the first of those that are free again
	uint32_t cursor; // where ageing is
	bool v6;
	uint32_t
		*versions; // of entries, CV_FLOW_VERSIONS for all; NULL: no other worker reads them
};

#define CV_FLOW_SLOTS_INSIDE(v6)                                    \
	((v6) ? (unsigned)sizeof(((struct cv_flow_ipv6 *)0)->slots) \
	      : (unsigned)sizeof(((struct cv_flow_ipv4 *)0)->slots))

// Bytes that a table of so many flows takes, with beside_bytes, a multiple of 8, of functions' slots
// beside each entry.
size_t cv_flow_table_bytes(uint32_t max, unsigned beside_bytes, bool v6);

// Makes an empty table in memory of cv_flow_table_bytes() zeros, aligned to a cache line. It lives
// as long as the memory and the secret.
void cv_flow_table_init(struct cv_flow_table *table, void *memory, uint32_t max,
	unsigned beside_bytes, bool v6, const struct cv_flow_secret *secret);

// What other workers may have read of an entry is not so any more after this.
static CV_INLINE void cv_flow_table_touch(struct cv_flow_table *table, uint32_t index)
{
	uint32_t *version;

	if (CV_LIKELY(table->versions == NULL))
		return;
	version = &table->versions[index % CV_FLOW_VERSIONS];
	__atomic_store_n(version, *version + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE); // before all that is written now
}

// Asks for the memory of the entry that is taken next.
void cv_flow_table_expect(const struct cv_flow_table *table);

// A new entry, all zero but for its slots' memory, which is zero as well; CV_FLOW_NONE: full.
uint32_t cv_flow_table_take(struct cv_flow_table *table);

// Gives an entry back. No key may lead to it.
void cv_flow_table_give(struct cv_flow_table *table, uint32_t index);

// Lets a key lead to an entry. Returns 0 or -ENOSPC. The key is not there yet.
int cv_flow_table_add(
	struct cv_flow_table *table, uint64_t hash, uint32_t index, unsigned direction);

// Takes the key of that hash away from the entry.
void cv_flow_table_remove(
	struct cv_flow_table *table, uint64_t hash, uint32_t index, unsigned direction);

// CV_FLOW_SLOT() of a key, or CV_FLOW_NONE.
uint32_t cv_flow_table_find(
	const struct cv_flow_table *table, const union cv_flow_key *key, uint64_t hash);

static CV_INLINE struct cv_flow *cv_flow_at(const struct cv_flow_table *table, uint32_t index)
{
	size_t bytes = table->v6 ? sizeof(struct cv_flow_ipv6) : sizeof(struct cv_flow_ipv4);

	return (struct cv_flow *)(table->flows + index * bytes);
}

// The key that an entry holds for a direction, without the protocol.
static CV_INLINE uint8_t *cv_flow_stored(struct cv_flow *flow, unsigned direction, bool v6)
{
	return (uint8_t *)flow + sizeof(*flow) + direction * CV_FLOW_STORED_BYTES(v6);
}

// The key as it is looked up.
static CV_INLINE void cv_flow_key(
	struct cv_flow *flow, unsigned direction, bool v6, union cv_flow_key *key)
{
	const uint8_t *stored = cv_flow_stored(flow, direction, v6);

	if (v6) {
		key->ipv6 = (struct cv_flow_key_ipv6){.proto = flow->proto};
		memcpy(key, stored, CV_FLOW_STORED_BYTES(true));
	} else {
		struct cv_flow_key_ipv4 from;

		memcpy(&from, stored, CV_FLOW_STORED_BYTES(false));
		cv_flow_key_write(
			&key->ipv4, from.src, from.dst, from.sport, from.dport, flow->proto);
	}
}

static CV_INLINE bool cv_flow_has_key(
	struct cv_flow *flow, unsigned direction, bool v6, const union cv_flow_key *key)
{
	const uint8_t *stored = cv_flow_stored(flow, direction, v6);

	if (v6)
		return memcmp(stored, key, 36) == 0 && flow->proto == key->ipv6.proto;
	return memcmp(stored, key, 12) == 0 && flow->proto == key->ipv4.proto;
}

static CV_INLINE uint32_t cv_flow_bucket_of(uint64_t hash, uint32_t buckets_count)
{
	return (uint32_t)((uint64_t)(uint32_t)hash * buckets_count >> 32);
}

static CV_INLINE uint32_t cv_flow_first_bucket(const struct cv_flow_table *table, uint64_t hash)
{
	return cv_flow_bucket_of(hash, table->buckets_count);
}

static CV_INLINE uint16_t cv_flow_signature(uint64_t hash)
{
	uint16_t signature = (uint16_t)(hash >> 32);

	return signature + (signature == 0);
}

// The other bucket of a key that stands in one of its two.
static CV_INLINE uint32_t cv_flow_other_bucket(
	uint32_t bucket, uint16_t signature, uint32_t buckets_count)
{
	const uint32_t sum = cv_flow_bucket_of(signature * 0x9e3779b1u, buckets_count);

	return sum >= bucket ? sum - bucket : sum - bucket + buckets_count;
}

// Which of a bucket's keys have the signature, one bit each.
static CV_INLINE uint32_t cv_flow_bucket_match(
	const struct cv_flow_bucket *bucket, uint16_t signature)
{
#ifdef __SSE4_1__
	__m128i same = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)bucket->signature),
		_mm_set1_epi16((short)signature));

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(same, _mm_setzero_si128()));
#else
	uint32_t same = 0;

	for (unsigned i = 0; i < CV_FLOW_BUCKET; i++)
		same |= (uint32_t)(bucket->signature[i] == signature) << i;
	return same;
#endif
}

#endif
