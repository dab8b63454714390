// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/next_hop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "packet/symmetric_hash.h"
#include "packet/udp.h"

#define VXLAN_LEN 8

#define PORTS 64

// Open addressing, so that the first slot mostly is the one. A key that is not there ends at an empty
// slot. A slot is one word, read and written whole: a key changes while packets are looked up.
#define EMPTY ((uint64_t)CV_NEXT_HOP_NONE << 32)
#define REMOVED 0xfffeu // in place of a next hop: the slot stays its key's

// Next hops that share keys, a bit each.
struct set {
	uint64_t members[CV_NEXT_HOPS_MAX / 64];
};

// Sets by their number, and their numbers by what is in them.
struct sets {
	unsigned count;
	struct set all[CV_NEXT_HOP_SETS_MAX];
	uint16_t slots[2 * CV_NEXT_HOP_SETS_MAX]; // open addressing: number + 1; 0: empty
	bool used[CV_NEXT_HOP_SETS_MAX]; // by a key: not all that were on the way to others are
};

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
	bool spreads_exist;
	uint64_t hash_key;
	struct sets *sets; // NULL: no key has several next hops
	struct cv_spread *spreads[CV_NEXT_HOP_SPREADS_MAX]; // NULL: it is not used
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

// The number of a set, which is added if it is not there; -ENOSPC: there are too many.
static int number_of(struct sets *sets, const struct set *set)
{
	const unsigned mask = 2 * CV_NEXT_HOP_SETS_MAX - 1;
	uint64_t hash = 0;
	unsigned at;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX / 64; i++)
		hash = (hash ^ set->members[i]) * 0x9e3779b97f4a7c15;
	for (at = (unsigned)(hash >> 40) & mask; sets->slots[at] != 0; at = (at + 1) & mask)
		if (memcmp(&sets->all[sets->slots[at] - 1], set, sizeof(*set)) == 0)
			return sets->slots[at] - 1;
	if (sets->count == CV_NEXT_HOP_SETS_MAX)
		return -ENOSPC;
	sets->all[sets->count] = *set;
	sets->slots[at] = (uint16_t)++sets->count;
	return (int)sets->count - 1;
}

static unsigned count_members(const struct set *set)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX / 64; i++)
		count += (unsigned)__builtin_popcountll(set->members[i]);
	return count;
}

static bool has_member(const struct set *set, unsigned next_hop)
{
	return set->members[next_hop / 64] >> next_hop % 64 & 1;
}

// What a key has that had `before` and gets one more next hop: a spread, or a negative errno.
static int join(struct cv_next_hop_table *table, uint16_t before, uint16_t next_hop)
{
	struct set set = {{0}};
	int number;

	if (table->sets == NULL)
		table->sets = calloc(1, sizeof(*table->sets));
	if (table->sets == NULL)
		return -ENOMEM;
	if (cv_next_hop_is_spread(before))
		set = table->sets->all[before - CV_NEXT_HOP_SPREAD];
	else
		set.members[before / 64] |= (uint64_t)1 << before % 64;
	if (has_member(&set, next_hop))
		return -EEXIST;
	set.members[next_hop / 64] |= (uint64_t)1 << next_hop % 64;
	if (count_members(&set) > CV_SPREAD_MEMBERS_MAX)
		return -E2BIG;
	number = number_of(table->sets, &set);
	return number < 0 ? number : CV_NEXT_HOP_SPREAD + number;
}

static void refuse_join(uint32_t key, int why, struct cv_error *error)
{
	const unsigned kind = kind_of(key);
	char what[32] = "everything else";

	if (kind != CV_SCID_NONE)
		snprintf(what, sizeof(what), "%s %u", kind == CV_SCID_VLAN ? "vlan" : "vni",
			key & 0xffffff);
	if (why == -EEXIST)
		cv_error_set(error, "%s has the same next hop twice", what);
	else if (why == -E2BIG)
		cv_error_set(error, "%s has more than %u next hops", what, CV_SPREAD_MEMBERS_MAX);
	else if (why == -ENOSPC)
		cv_error_set(error,
			"%s: too many different sets of next hops share SC-IDs; at most %u", what,
			CV_NEXT_HOP_SETS_MAX);
	else
		cv_error_set(error, "no memory for next hops");
}

// Whether an entry's next hop or spread is there.
static bool exists(const struct cv_next_hop_table *table, uint16_t next_hop)
{
	const unsigned spread = (unsigned)next_hop - CV_NEXT_HOP_SPREAD;

	if (next_hop < CV_NEXT_HOP_SPREAD)
		return next_hop < table->next_hops_count;
	if (next_hop < CV_NEXT_HOP_GROUP)
		return table->sets != NULL && spread < table->sets->count;
	return cv_next_hop_is_spread(next_hop) && table->spreads[spread] != NULL;
}

static int insert(struct cv_next_hop_table *table, const struct cv_next_hop_entry *entry,
	struct cv_error *error)
{
	const uint16_t before = cv_next_hop_of_key(table, entry->key);
	int next_hop = entry->next_hop;

	if (!exists(table, entry->next_hop)) {
		cv_error_set(error, "next hop %u does not exist", entry->next_hop);
		return -EINVAL;
	}
	if (before != CV_NEXT_HOP_NONE)
		next_hop = entry->next_hop < CV_NEXT_HOPS_MAX && before < CV_NEXT_HOP_GROUP
				   ? join(table, before, entry->next_hop)
				   : -EEXIST;
	if (next_hop < 0) {
		refuse_join(entry->key, next_hop, error);
		return next_hop;
	}
	put(table, entry->key, (uint16_t)next_hop);
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

// Marks the sets that keys have.
static void mark_used(const struct cv_next_hop_table *table)
{
	for (uint32_t i = 0; i < PORTS + table->mask + 1; i++) {
		const uint32_t next_hop =
			i < PORTS ? table->rest[i] : next_hop_of(table->slots[i - PORTS]);

		if (next_hop >= CV_NEXT_HOP_SPREAD && next_hop < CV_NEXT_HOP_GROUP)
			table->sets->used[next_hop - CV_NEXT_HOP_SPREAD] = true;
	}
}

// A spread with the members of a set. NULL: no memory.
static struct cv_spread *spread_of_set(const struct cv_next_hop_table *table, const struct set *set)
{
	struct cv_spread *spread = calloc(1, sizeof(*spread));

	for (uint16_t i = 0; spread != NULL && i < table->next_hops_count; i++) {
		const struct cv_next_hop *member = &table->next_hops[i];

		if (!has_member(set, i))
			continue;
		spread->group.by_addresses |= member->by_addresses;
		spread->group.members[spread->group.members_count++] = (struct cv_spread_member){
			.next_hop = i, .weight = member->weight > 0 ? member->weight : 1};
	}
	return spread;
}

// Gives buckets to the members of a spread; ranks: those that are known, by next hop. False: no memory.
static bool fill(const struct cv_next_hop_table *table, struct cv_spread *spread,
	struct cv_spread_ranks **ranks)
{
	for (unsigned i = 0; i < spread->group.members_count; i++) {
		const uint16_t next_hop = spread->group.members[i].next_hop;

		if (ranks[next_hop] != NULL)
			continue;
		ranks[next_hop] = malloc(sizeof(*ranks[next_hop]));
		if (ranks[next_hop] == NULL)
			return false;
		cv_spread_rank(ranks[next_hop], table->next_hops[next_hop].id);
	}
	cv_spread_fill(spread, ranks);
	return true;
}

// Makes what keys with several next hops choose by. False: no memory.
static bool make_spreads(struct cv_next_hop_table *table)
{
	struct cv_spread_ranks *ranks[CV_NEXT_HOPS_MAX] = {NULL};
	bool whole = true;

	if (table->sets != NULL)
		mark_used(table);
	for (unsigned i = 0; table->sets != NULL && whole && i < table->sets->count; i++) {
		if (!table->sets->used[i])
			continue;
		table->spreads[i] = spread_of_set(table, &table->sets->all[i]);
		whole = table->spreads[i] != NULL;
	}
	for (unsigned i = 0; whole && i < CV_NEXT_HOP_SPREADS_MAX; i++)
		if (table->spreads[i] != NULL) {
			table->spreads_exist = true;
			whole = fill(table, table->spreads[i], ranks);
		}
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		free(ranks[i]);
	return whole;
}

// What the table has before its entries. False: no memory.
static bool take_spreads(struct cv_next_hop_table *table, const struct cv_next_hop_spec *spec)
{
	table->hash_key = spec->hash_key;
	for (unsigned i = 0; i < spec->groups_count; i++) {
		struct cv_spread *spread;

		if (spec->groups[i].members_count == 0)
			continue;
		spread = malloc(sizeof(*spread));
		table->spreads[CV_NEXT_HOP_SETS_MAX + i] = spread;
		if (spread == NULL)
			return false;
		spread->group = spec->groups[i];
	}
	if (spec->like == NULL || spec->like->sets == NULL)
		return true;
	table->sets = malloc(sizeof(*table->sets));
	if (table->sets != NULL)
		*table->sets = *spec->like->sets;
	return table->sets != NULL;
}

// A next hop by itself, that a whole port may have.
static uint16_t single(uint16_t next_hop)
{
	return cv_next_hop_is_spread(next_hop) ? CV_NEXT_HOP_NONE : next_hop;
}

struct cv_next_hop_table *cv_next_hop_table_build(
	const struct cv_next_hop_spec *spec, struct cv_error *error)
{
	struct cv_next_hop_table *table;

	if (spec->next_hops_count > CV_NEXT_HOPS_MAX ||
		spec->entries_count > CV_NEXT_HOP_KEYS_MAX || spec->room > CV_NEXT_HOP_KEYS_MAX ||
		spec->groups_count > CV_NEXT_HOP_GROUPS_MAX) {
		cv_error_set(error, "%u next hops with %u SC-IDs; at most %u and %u",
			spec->next_hops_count, spec->entries_count, CV_NEXT_HOPS_MAX,
			CV_NEXT_HOP_KEYS_MAX);
		return NULL;
	}
	table = make_empty(
		spec->next_hops, spec->next_hops_count, spec->entries_count + spec->room);
	if (table == NULL || !take_spreads(table, spec)) {
		cv_error_set(error, "no memory for %u next hops", spec->entries_count);
		cv_next_hop_table_free(table);
		return NULL;
	}
	for (uint32_t i = 0; i < spec->entries_count; i++) {
		if (insert(table, &spec->entries[i], error) != 0) {
			cv_next_hop_table_free(table);
			return NULL;
		}
	}
	if (!make_spreads(table)) {
		cv_error_set(error, "no memory for next hops");
		cv_next_hop_table_free(table);
		return NULL;
	}
	for (unsigned i = 0; i < PORTS; i++)
		table->of_port[i] = single(table->rest[i]);
	for (uint32_t i = 0; i < spec->entries_count; i++)
		if (spec->entries[i].next_hop != table->rest[spec->entries[i].key >> 26])
			table->of_port[spec->entries[i].key >> 26] = CV_NEXT_HOP_NONE;
	return table;
}

struct cv_next_hop_table *cv_next_hop_table_make(const struct cv_next_hop *next_hops,
	uint16_t next_hops_count, const struct cv_next_hop_entry *entries, uint32_t entries_count,
	uint32_t room, struct cv_error *error)
{
	return cv_next_hop_table_build(&(struct cv_next_hop_spec){.next_hops = next_hops,
					       .next_hops_count = next_hops_count,
					       .entries = entries,
					       .entries_count = entries_count,
					       .room = room},
		error);
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
		of_port = single(table->rest[port]);
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

	if (cv_next_hop_is_spread(next_hop) && cv_next_hop_spread_at(table, next_hop) == NULL)
		return -ENOSPC;
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
	if (table == NULL)
		return;
	for (unsigned i = 0; i < CV_NEXT_HOP_SPREADS_MAX; i++)
		free(table->spreads[i]);
	free(table->sets);
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

void cv_next_hop_table_rekey(struct cv_next_hop_table *table, uint64_t hash_key)
{
	table->hash_key = hash_key;
}

bool cv_next_hop_spreads(const struct cv_next_hop_table *table)
{
	return table->spreads_exist;
}

CV_HOT void cv_next_hop_choose(const struct cv_next_hop_table *table, const struct cv_view *views,
	uint16_t *next_hop, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct cv_spread *spread;

		if (!cv_next_hop_is_spread(next_hop[i]))
			continue;
		spread = table->spreads[next_hop[i] - CV_NEXT_HOP_SPREAD];
		next_hop[i] = cv_spread_choose(spread,
			cv_symmetric_hash(&views[i], table->hash_key, spread->group.by_addresses));
	}
}

const struct cv_spread *cv_next_hop_spread_at(
	const struct cv_next_hop_table *table, uint16_t next_hop)
{
	return cv_next_hop_is_spread(next_hop) ? table->spreads[next_hop - CV_NEXT_HOP_SPREAD]
					       : NULL;
}

uint32_t cv_next_hop_key_of_hidden(const struct cv_view *view)
{
	struct cv_view whole = *view;
	unsigned udp;

	cv_view_set(&whole, cv_view_packet(view), (uint16_t)cv_view_packet_len(view));
	udp = cv_udp_find(&whole, VXLAN_LEN);
	// Nothing but VXLAN lies there; before a frame behind NSH there is more, or no UDP at all.
	if (udp > 0 && udp + CV_UDP_LEN + VXLAN_LEN == view->before) {
		const uint8_t *vni = view->data - 4; // RFC 7348: three bytes and one reserved

		return cv_next_hop_key(view->out, CV_SCID_VNI,
			(uint32_t)vni[0] << 16 | (uint32_t)vni[1] << 8 | vni[2]);
	}
	return cv_next_hop_key_of(&whole);
}
