// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/next_hop.h"

#include <errno.h>
#include <stdlib.h>

#define PORTS 64

// Open addressing, so that the first slot mostly is the one. A key that is not there ends at an empty
// slot. A slot is one word, read and written whole: a key changes while packets are looked up.
#define EMPTY ((uint64_t)CV_NEXT_HOP_NONE << 32)
#define REMOVED 0xfffeu // in place of a next hop: the slot stays its key's

struct cv_next_hop_table {
	uint64_t *slots; // key, next hop << 32
	unsigned shift; // 32 - log2 of the number of slots
	uint32_t mask;
	uint32_t slots_used; // by keys that are there or were
	uint32_t slots_max; // that may be
	uint32_t keys[PORTS]; // by port: how many there are, but for CV_SCID_NONE
	uint64_t ports; // that lead somewhere, a bit each
	uint16_t rest[PORTS]; // by port: the next hop of CV_SCID_NONE
	uint16_t of_port[PORTS]; // by port: that, if every SC-ID of the port has the same
	uint8_t udp_ports[UINT16_MAX / 8 +
			  1]; // of all next hops, a bit each, as they are in packets
	uint16_t next_hops_count;
	struct cv_next_hop next_hops[CV_NEXT_HOPS_MAX];
};

static CV_INLINE uint32_t first_slot(const struct cv_next_hop_table *table, uint32_t key)
{
	return (key * 0x9e3779b1u) >> table->shift; // Fibonacci hashing: ids come in rows
}

static CV_INLINE uint32_t key_of(uint64_t word)
{
	return (uint32_t)word;
}

static CV_INLINE uint32_t next_hop_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

// The slot of a key, or the empty one where it would be. *word: what is in it.
static CV_INLINE uint64_t *find(const struct cv_next_hop_table *table, uint32_t key, uint64_t *word)
{
	uint64_t *slot = &table->slots[first_slot(table, key)];

	while (*word = __atomic_load_n(slot, __ATOMIC_RELAXED),
		CV_UNLIKELY(key_of(*word) != key && *word != EMPTY)) {
		slot++;
		if (slot == table->slots + table->mask + 1)
			slot = table->slots;
	}
	return slot;
}

static CV_INLINE unsigned kind_of(uint32_t key)
{
	return key >> 24 & 3;
}

static void put(struct cv_next_hop_table *table, uint32_t key, uint16_t next_hop)
{
	uint64_t word, *slot;

	if (kind_of(key) == CV_SCID_NONE) {
		table->rest[key >> 26] = next_hop;
		return;
	}
	slot = find(table, key, &word);
	table->slots_used += word == EMPTY;
	table->keys[key >> 26] += word == EMPTY || next_hop_of(word) == REMOVED;
	__atomic_store_n(slot, (uint64_t)next_hop << 32 | key, __ATOMIC_RELAXED);
}

static int insert(struct cv_next_hop_table *table, const struct cv_next_hop_entry *entry,
	struct cv_error *error)
{
	const unsigned kind = kind_of(entry->key);

	if (entry->next_hop >= table->next_hops_count) {
		cv_error_set(error, "next hop %u does not exist", entry->next_hop);
		return -EINVAL;
	}
	if (cv_next_hop_of_key(table, entry->key) != CV_NEXT_HOP_NONE) {
		cv_error_set(error, "%s %u has two next hops",
			kind == CV_SCID_VLAN  ? "vlan"
			: kind == CV_SCID_VNI ? "vni"
					      : "everything else:",
			entry->key & 0xffffff);
		return -EEXIST;
	}
	put(table, entry->key, entry->next_hop);
	table->ports |= (uint64_t)1 << (entry->key >> 26);
	return 0;
}

static struct cv_next_hop_table *make_empty(
	const struct cv_next_hop *next_hops, uint16_t next_hops_count, uint32_t keys_max)
{
	struct cv_next_hop_table *table = calloc(1, sizeof(*table));
	unsigned bits = 4;

	while (1u << bits < 2 * keys_max)
		bits++;
	if (table != NULL)
		table->slots = aligned_alloc(64, sizeof(*table->slots) << bits);
	if (table == NULL || table->slots == NULL) {
		free(table);
		return NULL;
	}
	table->shift = 32 - bits;
	table->mask = (1u << bits) - 1;
	table->slots_max = 1u << (bits - 1);
	for (uint32_t i = 0; i <= table->mask; i++)
		table->slots[i] = EMPTY;
	for (unsigned i = 0; i < PORTS; i++)
		table->rest[i] = CV_NEXT_HOP_NONE;
	table->next_hops_count = next_hops_count;
	if (next_hops_count > 0)
		memcpy(table->next_hops, next_hops, next_hops_count * sizeof(*next_hops));
	for (uint16_t i = 0; i < next_hops_count; i++)
		table->udp_ports[next_hops[i].outer.udp_port / 8] |=
			(uint8_t)(1 << next_hops[i].outer.udp_port % 8);
	return table;
}

struct cv_next_hop_table *cv_next_hop_table_make(const struct cv_next_hop *next_hops,
	uint16_t next_hops_count, const struct cv_next_hop_entry *entries, uint32_t entries_count,
	uint32_t room, struct cv_error *error)
{
	struct cv_next_hop_table *table;

	if (next_hops_count > CV_NEXT_HOPS_MAX || entries_count > CV_NEXT_HOP_KEYS_MAX ||
		room > CV_NEXT_HOP_KEYS_MAX) {
		cv_error_set(error, "%u next hops with %u SC-IDs; at most %u and %u",
			next_hops_count, entries_count, CV_NEXT_HOPS_MAX, CV_NEXT_HOP_KEYS_MAX);
		return NULL;
	}
	table = make_empty(next_hops, next_hops_count, entries_count + room);
	if (table == NULL) {
		cv_error_set(error, "no memory for %u next hops", entries_count);
		return NULL;
	}
	for (uint32_t i = 0; i < entries_count; i++) {
		if (insert(table, &entries[i], error) != 0) {
			cv_next_hop_table_free(table);
			return NULL;
		}
	}
	memcpy(table->of_port, table->rest, sizeof(table->of_port));
	for (uint32_t i = 0; i < entries_count; i++)
		if (entries[i].next_hop != table->rest[entries[i].key >> 26])
			table->of_port[entries[i].key >> 26] = CV_NEXT_HOP_NONE;
	return table;
}

uint16_t cv_next_hop_of_key(const struct cv_next_hop_table *table, uint32_t key)
{
	uint64_t word;

	if (kind_of(key) == CV_SCID_NONE)
		return table->rest[key >> 26];
	find(table, key, &word);
	return next_hop_of(word) == REMOVED ? CV_NEXT_HOP_NONE : (uint16_t)next_hop_of(word);
}

// What goes for a whole port, after one of its keys has changed. Less is said than could be, where
// that would take a look at all keys: of_port only says that the SC-ID need not be looked up.
static void settle_port(struct cv_next_hop_table *table, unsigned port, uint16_t next_hop)
{
	const uint64_t bit = (uint64_t)1 << port;
	const bool leads = table->keys[port] > 0 || table->rest[port] != CV_NEXT_HOP_NONE;
	uint16_t of_port = table->of_port[port];

	if (table->keys[port] == 0)
		of_port = table->rest[port];
	else if (next_hop != of_port)
		of_port = CV_NEXT_HOP_NONE;
	__atomic_store_n(&table->of_port[port], of_port, __ATOMIC_RELAXED);
	__atomic_store_n(
		&table->ports, leads ? table->ports | bit : table->ports & ~bit, __ATOMIC_RELAXED);
}

int cv_next_hop_table_change(struct cv_next_hop_table *table, uint32_t key, uint16_t next_hop)
{
	const unsigned port = key >> 26;
	uint64_t word, *slot;

	if (kind_of(key) == CV_SCID_NONE) {
		__atomic_store_n(&table->rest[port], next_hop, __ATOMIC_RELAXED);
		settle_port(table, port, next_hop);
		return 0;
	}
	slot = find(table, key, &word);
	if (next_hop != CV_NEXT_HOP_NONE) {
		if (word == EMPTY && table->slots_used == table->slots_max)
			return -ENOSPC;
		put(table, key, next_hop);
		settle_port(table, port, next_hop);
	} else if (word != EMPTY && next_hop_of(word) != REMOVED) {
		table->keys[port]--;
		__atomic_store_n(slot, (uint64_t)REMOVED << 32 | key, __ATOMIC_RELAXED);
		settle_port(table, port, table->rest[port]);
	}
	return 0;
}

void cv_next_hop_table_free(struct cv_next_hop_table *table)
{
	if (table != NULL)
		free(table->slots);
	free(table);
}

const struct cv_next_hop *cv_next_hop_at(const struct cv_next_hop_table *table, uint16_t next_hop)
{
	return &table->next_hops[next_hop];
}

bool cv_next_hop_of_port_exists(const struct cv_next_hop_table *table, uint8_t port)
{
	return __atomic_load_n(&table->ports, __ATOMIC_RELAXED) >> port & 1;
}

uint16_t cv_next_hop_of_port(const struct cv_next_hop_table *table, uint8_t port)
{
	return __atomic_load_n(&table->of_port[port], __ATOMIC_RELAXED);
}

bool cv_next_hop_takes(const struct cv_next_hop_table *table, rte_be16_t udp_port)
{
	return table->udp_ports[udp_port / 8] >> udp_port % 8 & 1;
}

CV_HOT void cv_next_hop_find(
	const struct cv_next_hop_table *table, const uint32_t *key, uint16_t *next_hop, uint16_t n)
{
	// All first slots at once: none waits for the one before.
	for (uint16_t i = 0; i < n; i++)
		__builtin_prefetch(&table->slots[first_slot(table, key[i])]);
	for (uint16_t i = 0; i < n; i++) {
		uint32_t index;
		uint64_t word;

		find(table, key[i], &word);
		index = next_hop_of(word);
		if (CV_UNLIKELY(index >= REMOVED))
			index = __atomic_load_n(&table->rest[key[i] >> 26], __ATOMIC_RELAXED);
		next_hop[i] = (uint16_t)index;
	}
}
