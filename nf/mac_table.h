// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which side of a bridge a station was last heard on. Any number of workers learn and look up at
// once without a lock: an entry is one 64-bit word that is read and written whole.
//
// A bucket is one cache line of eight words; a station's bucket is a hash of its address. Its
// multiplier is random: who does not know it cannot make addresses that push another's out. A word
// is written only when what it says changes: a station that keeps talking costs a read.
//
// Ages are counted in ticks of a clock that the caller keeps (15 bits of it are stored). A station
// that stayed silent for 32,768 ticks in a bucket that learned nothing meanwhile looks young
// again; with sixteen ticks to an age that is 2,048 ages.
#ifndef CV_MAC_TABLE_H
#define CV_MAC_TABLE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CV_MAC_TABLE_WAYS 8
#define CV_MAC_KEY 0xffffffffffff // the 48 bits of a word that are the address
#define CV_MAC_TICKS 0x7fff

struct cv_mac_table {
	_Atomic uint64_t *words; // address | side << 48 | tick << 49; 0: empty
	uint64_t multiplier; // of the hash: odd
	unsigned shift; // of the hash, to the bucket's number
	unsigned buckets;
	uint16_t age; // ticks after which an entry no longer counts
};

// The address at mac, of which 8 bytes are readable, as a key: never 0 for a real station.
static CV_INLINE uint64_t cv_mac_key(const uint8_t *mac)
{
	uint64_t key;

	memcpy(&key, mac, sizeof(key));
	return rte_le_to_cpu_64(key) & CV_MAC_KEY;
}

// Makes an empty table for at least entries stations, of two buckets or more (a shift by all 64
// bits of the hash is not defined). Returns 0, -ENOMEM, or -EIO: no random numbers.
static inline int cv_mac_table_init(struct cv_mac_table *table, unsigned entries, uint16_t age)
{
	unsigned log2 = 1;

	if (getrandom(&table->multiplier, sizeof(table->multiplier), 0) !=
		(ssize_t)sizeof(table->multiplier))
		return -EIO;
	table->multiplier |= 1;
	while (((unsigned)CV_MAC_TABLE_WAYS << log2) < entries)
		log2++;
	table->buckets = 1u << log2;
	table->shift = 64 - log2;
	table->age = age;
	table->words = aligned_alloc(64, (size_t)table->buckets * 64);
	if (table->words == NULL)
		return -ENOMEM;
	memset((void *)table->words, 0, (size_t)table->buckets * 64);
	return 0;
}

static inline void cv_mac_table_free(struct cv_mac_table *table)
{
	free((void *)table->words);
}

static CV_INLINE _Atomic uint64_t *cv_mac_bucket(const struct cv_mac_table *table, uint64_t key)
{
	return table->words + ((key * table->multiplier) >> table->shift) * CV_MAC_TABLE_WAYS;
}

static CV_INLINE bool cv_mac_old(const struct cv_mac_table *table, uint64_t word, uint16_t tick)
{
	return ((tick - (uint16_t)(word >> 49)) & CV_MAC_TICKS) > table->age;
}

// The side (0 or 1) that the station was heard on, or -1: not heard, or too long ago.
static CV_INLINE int cv_mac_find(const struct cv_mac_table *table, uint64_t key, uint16_t tick)
{
	const _Atomic uint64_t *bucket = cv_mac_bucket(table, key);

	for (int way = 0; way < CV_MAC_TABLE_WAYS; way++) {
		uint64_t word = atomic_load_explicit(&bucket[way], memory_order_relaxed);

		if ((word & CV_MAC_KEY) == key)
			return cv_mac_old(table, word, tick) ? -1 : (int)(word >> 48 & 1);
	}
	return -1;
}

// The rest of learning: the station is new, moved, or was silent for a tick.
__attribute__((noinline, unused)) static void cv_mac_learn_slow(
	const struct cv_mac_table *table, uint64_t key, uint64_t now, uint16_t tick)
{
	_Atomic uint64_t *bucket = cv_mac_bucket(table, key);
	uint16_t oldest = 0;
	int place = -1, known = -1;

	for (int way = 0; way < CV_MAC_TABLE_WAYS; way++) {
		uint64_t word = atomic_load_explicit(&bucket[way], memory_order_relaxed);
		uint16_t silent = (tick - (uint16_t)(word >> 49)) & CV_MAC_TICKS;

		if ((word & CV_MAC_KEY) == key) {
			// Two workers may have learned a new station at once: one entry is enough.
			if (known >= 0)
				atomic_compare_exchange_strong(&bucket[way], &word, 0);
			else
				known = way;
		} else if (word == 0) {
			silent = CV_MAC_TICKS;
		}
		if (place < 0 || silent > oldest) {
			place = way;
			oldest = silent;
		}
	}
	// Relaxed: a word says all there is to say, nothing else is published with it.
	atomic_store_explicit(&bucket[known >= 0 ? known : place], now, memory_order_relaxed);
}

// Notes that the station was heard on a side (0 or 1). A full bucket forgets its most silent one.
static CV_INLINE void cv_mac_learn(
	const struct cv_mac_table *table, uint64_t key, unsigned side, uint16_t tick)
{
	uint64_t now = key | (uint64_t)side << 48 | (uint64_t)(tick & CV_MAC_TICKS) << 49;
	const _Atomic uint64_t *bucket = cv_mac_bucket(table, key);

	for (int way = 0; way < CV_MAC_TABLE_WAYS; way++)
		if (atomic_load_explicit(&bucket[way], memory_order_relaxed) == now)
			return;
	cv_mac_learn_slow(table, key, now, tick);
}

// How many stations count as heard.
static inline unsigned cv_mac_table_count(const struct cv_mac_table *table, uint16_t tick)
{
	unsigned count = 0;

	for (size_t i = 0; i < (size_t)table->buckets * CV_MAC_TABLE_WAYS; i++) {
		uint64_t word = atomic_load_explicit(&table->words[i], memory_order_relaxed);

		count += word != 0 && !cv_mac_old(table, word, tick);
	}
	return count;
}

#endif
