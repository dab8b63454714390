// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/next_hop.h"

#include <errno.h>
#include <stdlib.h>

#define PORTS 64

// Open addressing, at most half full, so that the first slot mostly is the one. A key that is not
// there ends at an empty slot.
struct slot {
	uint32_t key;
	uint16_t next_hop; // CV_NEXT_HOP_NONE: empty
	uint16_t unused;
};

struct cv_next_hop_table {
	struct slot *slots;
	unsigned shift; // 32 - log2 of the number of slots
	uint32_t mask;
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

static CV_INLINE uint16_t find(const struct cv_next_hop_table *table, uint32_t key)
{
	const struct slot *slot = &table->slots[first_slot(table, key)];

	while (CV_UNLIKELY(slot->key != key && slot->next_hop != CV_NEXT_HOP_NONE)) {
		slot++;
		if (slot == table->slots + table->mask + 1)
			slot = table->slots;
	}
	// An empty slot has no key; its next_hop is CV_NEXT_HOP_NONE also where the key is its
	// zero.
	return slot->next_hop;
}

static int insert(struct cv_next_hop_table *table, const struct cv_next_hop_entry *entry,
	struct cv_error *error)
{
	uint32_t at = first_slot(table, entry->key);
	unsigned kind = entry->key >> 24 & 3;
	uint32_t id = entry->key & 0xffffff;

	if (entry->next_hop >= table->next_hops_count) {
		cv_error_set(error, "next hop %u does not exist", entry->next_hop);
		return -EINVAL;
	}
	while (table->slots[at].next_hop != CV_NEXT_HOP_NONE) {
		if (table->slots[at].key == entry->key) {
			cv_error_set(error, "%s %u has two next hops",
				kind == CV_SCID_VLAN  ? "vlan"
				: kind == CV_SCID_VNI ? "vni"
						      : "everything else:",
				id);
			return -EEXIST;
		}
		at = (at + 1) & table->mask;
	}
	table->slots[at] = (struct slot){.key = entry->key, .next_hop = entry->next_hop};
	table->ports |= (uint64_t)1 << (entry->key >> 26);
	if (kind == CV_SCID_NONE)
		table->rest[entry->key >> 26] = entry->next_hop;
	return 0;
}

struct cv_next_hop_table *cv_next_hop_table_make(const struct cv_next_hop *next_hops,
	uint16_t next_hops_count, const struct cv_next_hop_entry *entries, uint32_t entries_count,
	struct cv_error *error)
{
	struct cv_next_hop_table *table;
	unsigned bits = 4;

	if (next_hops_count > CV_NEXT_HOPS_MAX || entries_count > CV_NEXT_HOP_KEYS_MAX) {
		cv_error_set(error, "%u next hops with %u SC-IDs; at most %u and %u",
			next_hops_count, entries_count, CV_NEXT_HOPS_MAX, CV_NEXT_HOP_KEYS_MAX);
		return NULL;
	}
	while (1u << bits < 2 * entries_count)
		bits++;
	table = calloc(1, sizeof(*table));
	if (table != NULL)
		table->slots = aligned_alloc(64, sizeof(*table->slots) << bits);
	if (table == NULL || table->slots == NULL) {
		cv_error_set(error, "no memory for %u next hops", entries_count);
		free(table);
		return NULL;
	}
	table->shift = 32 - bits;
	table->mask = (1u << bits) - 1;
	for (uint32_t i = 0; i <= table->mask; i++)
		table->slots[i] = (struct slot){.next_hop = CV_NEXT_HOP_NONE};
	for (unsigned i = 0; i < PORTS; i++)
		table->rest[i] = CV_NEXT_HOP_NONE;
	table->next_hops_count = next_hops_count;
	if (next_hops_count > 0)
		memcpy(table->next_hops, next_hops, next_hops_count * sizeof(*next_hops));
	for (uint16_t i = 0; i < next_hops_count; i++)
		table->udp_ports[next_hops[i].outer.udp_port / 8] |=
			(uint8_t)(1 << next_hops[i].outer.udp_port % 8);
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
	return table->ports >> port & 1;
}

uint16_t cv_next_hop_of_port(const struct cv_next_hop_table *table, uint8_t port)
{
	return table->of_port[port];
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
		uint16_t index = find(table, key[i]);

		if (CV_UNLIKELY(index == CV_NEXT_HOP_NONE))
			index = table->rest[key[i] >> 26];
		next_hop[i] = index;
	}
}
