// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/neighbour_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_bitops.h>
#include <rte_common.h>

#define BUCKET 8u // slots: half a cache line
#define SLOTS_PER_ENTRY 4u // so that a bucket is hardly ever full
#define SIGNATURE_SHIFT 21 // above an index + 1
#define FORGET_LOOKS 64u // entries looked at for one to forget

// RFC 4861 section 10, in milliseconds.
#define REACHABLE_MS 30000u // times 0.5 to 1.5
#define RETRANSMIT_MS 1000u
#define DELAY_MS 5000u
// A neighbour that did not answer is forgotten after so long.
#define FAILED_MS 20000u

const char *const cv_neighbour_state_names[CV_NEIGHBOUR_STATES] = {
	[CV_NEIGHBOUR_FREE] = "free",
	[CV_NEIGHBOUR_INCOMPLETE] = "incomplete",
	[CV_NEIGHBOUR_REACHABLE] = "reachable",
	[CV_NEIGHBOUR_STALE] = "stale",
	[CV_NEIGHBOUR_DELAY] = "delay",
	[CV_NEIGHBOUR_PROBE] = "probe",
	[CV_NEIGHBOUR_FAILED] = "failed",
};

int cv_neighbour_table_init(struct cv_neighbour_table *table, uint32_t entries,
	struct cv_adjacency *adjacency, uint64_t hz, const uint64_t *seed)
{
	uint32_t buckets = rte_align32pow2(entries * SLOTS_PER_ENTRY / BUCKET + 1);

	*table = (struct cv_neighbour_table){
		.entries_count = entries,
		.adjacency = adjacency,
		.entry = calloc(entries, sizeof(*table->entry)),
		.slot = calloc((size_t)buckets * BUCKET, sizeof(*table->slot)),
		.free = calloc(entries, sizeof(*table->free)),
		.buckets_mask = buckets - 1,
		.hz = hz,
		.random = 1,
	};
	rte_spinlock_init(&table->lock);
	if (table->entry == NULL || table->slot == NULL || table->free == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < entries; i++)
		table->free[table->free_count++] = entries - 1 - i;
	if (seed != NULL)
		memcpy(table->key, seed, sizeof(table->key));
	else if (getrandom(table->key, sizeof(table->key), 0) != sizeof(table->key))
		return -ENOMEM; // does not happen: so few bytes always come
	table->random = table->key[2] | 1;
	return 0;
}

void cv_neighbour_table_free(struct cv_neighbour_table *table)
{
	free(table->entry);
	free(table->slot);
	free(table->free);
	*table = (struct cv_neighbour_table){.entry = NULL};
}

static uint64_t folded(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Two multiplications with secret numbers, as wyhash does.
static uint64_t hash_of(const struct cv_neighbour_table *table, const struct cv_neighbour_key *key)
{
	uint64_t a, b;

	memcpy(&a, key->address.bytes, 8);
	memcpy(&b, key->address.bytes + 8, 8);
	a = folded(a ^ table->key[0], b ^ table->key[1]);
	return folded(a ^ table->key[2],
		(key->port + 2u) * UINT64_C(0x9e3779b97f4a7c15) ^ key->address.v6 ^ table->key[1]);
}

static uint32_t *bucket_of(const struct cv_neighbour_table *table, uint64_t hash)
{
	return &table->slot[(size_t)(hash & table->buckets_mask) * BUCKET];
}

static uint32_t signature_of(uint64_t hash)
{
	return (uint32_t)(hash >> 53) << SIGNATURE_SHIFT;
}

static bool same_key(const struct cv_neighbour_key *a, const struct cv_neighbour_key *b)
{
	bool same;

	CV_UNSURE_BEGIN(); // with rekey(), where there is no lock
	same = memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes)) == 0 &&
	       a->address.v6 == b->address.v6 && a->port == b->port;
	CV_UNSURE_END();
	return same;
}

// Pairs with rekey(): whoever reads the same even version before and after has read one key's entry.
static uint32_t version_of(const struct cv_neighbour_entry *entry)
{
	return __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
}

// Finds the key, without a lock. *version: of the entry when it had the key.
static uint32_t find(const struct cv_neighbour_table *table, const struct cv_neighbour_key *key,
	uint32_t *version)
{
	const uint64_t hash = hash_of(table, key);
	const uint32_t *bucket = bucket_of(table, hash);

	for (unsigned i = 0; i < BUCKET; i++) {
		uint32_t slot = __atomic_load_n(&bucket[i], __ATOMIC_ACQUIRE);
		uint32_t at = (slot & ((1u << SIGNATURE_SHIFT) - 1)) - 1;

		if (slot == 0 || (slot ^ signature_of(hash)) >> SIGNATURE_SHIFT != 0)
			continue;
		*version = version_of(&table->entry[at]);
		if ((*version & 1) == 0 && same_key(&table->entry[at].key, key))
			return at;
	}
	return CV_NEIGHBOUR_NONE;
}

uint32_t cv_neighbour_table_find(
	const struct cv_neighbour_table *table, const struct cv_neighbour_key *key)
{
	uint32_t version;

	return find(table, key, &version);
}

bool cv_neighbour_table_forward(const struct cv_neighbour_table *table,
	const struct cv_neighbour_key *key, struct cv_adjacency *adjacency)
{
	const struct cv_adjacency *from;
	uint32_t version;
	uint32_t at = find(table, key, &version);

	if (at == CV_NEIGHBOUR_NONE)
		return false;
	from = &table->adjacency[at];
	adjacency->mtu = __atomic_load_n(&from->mtu, __ATOMIC_ACQUIRE); // with publish()
	if (adjacency->mtu == 0)
		return false;
	adjacency->word = __atomic_load_n(&from->word, __ATOMIC_RELAXED);
	CV_UNSURE_BEGIN();
	memcpy((uint8_t *)adjacency + 8, (const uint8_t *)from + 8, 6);
	CV_UNSURE_END();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&table->entry[at].version, __ATOMIC_RELAXED) == version;
}

bool cv_neighbour_table_key(
	const struct cv_neighbour_table *table, uint32_t at, struct cv_neighbour_key *key)
{
	const struct cv_neighbour_entry *entry;
	uint32_t version;

	if (at >= table->entries_count)
		return false;
	entry = &table->entry[at];
	version = version_of(entry);
	CV_UNSURE_BEGIN();
	*key = entry->key;
	CV_UNSURE_END();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return (version & 1) == 0 &&
	       __atomic_load_n(&entry->state, __ATOMIC_RELAXED) != CV_NEIGHBOUR_FREE &&
	       __atomic_load_n(&entry->version, __ATOMIC_RELAXED) == version;
}

enum cv_neighbour_state cv_neighbour_table_state(
	const struct cv_neighbour_table *table, uint32_t at, const struct cv_neighbour_key *key)
{
	const struct cv_neighbour_entry *entry = &table->entry[at];
	uint32_t version = version_of(entry);
	bool same = (version & 1) == 0 && same_key(&entry->key, key);
	uint8_t state = __atomic_load_n(&entry->state, __ATOMIC_RELAXED);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!same || __atomic_load_n(&entry->version, __ATOMIC_RELAXED) != version)
		return CV_NEIGHBOUR_FREE;
	return state;
}

// What follows is called with the lock held.

static uint64_t in_ms(const struct cv_neighbour_table *table, uint64_t now, uint32_t ms)
{
	return now + table->hz / 1000 * ms;
}

// 0.5 to 1.5 times REACHABLE_MS: neighbours that came together are not asked together for ever.
static uint32_t reachable_ms(struct cv_neighbour_table *table)
{
	table->random ^= table->random << 13;
	table->random ^= table->random >> 7;
	table->random ^= table->random << 17;
	return REACHABLE_MS / 2 + (uint32_t)(table->random % REACHABLE_MS);
}

// Packets go straight on from now, or no longer.
static void publish(struct cv_neighbour_table *table, uint32_t at, bool open)
{
	struct cv_adjacency *adjacency = &table->adjacency[at];
	uint16_t mtu = open ? table->ports[adjacency->port].mtu : 0;

	// Pairs with the acquire loads of whoever reads the rest.
	__atomic_store_n(&adjacency->mtu, mtu, __ATOMIC_RELEASE);
}

static void set_mac(struct cv_neighbour_table *table, uint32_t at, const uint8_t *mac)
{
	struct cv_adjacency *adjacency = &table->adjacency[at], new = *adjacency;

	memcpy(new.mac, mac, sizeof(new.mac));
	__atomic_store_n(&adjacency->word, new.word, __ATOMIC_RELAXED);
}

static void enter(
	struct cv_neighbour_table *table, uint32_t at, enum cv_neighbour_state state, uint64_t now)
{
	static const uint32_t lasts_ms[CV_NEIGHBOUR_STATES] = {
		[CV_NEIGHBOUR_INCOMPLETE] = RETRANSMIT_MS,
		[CV_NEIGHBOUR_DELAY] = DELAY_MS,
		[CV_NEIGHBOUR_PROBE] = RETRANSMIT_MS,
		[CV_NEIGHBOUR_FAILED] = FAILED_MS,
	};
	struct cv_neighbour_entry *entry = &table->entry[at];
	uint32_t ms = state == CV_NEIGHBOUR_REACHABLE ? reachable_ms(table) : lasts_ms[state];
	bool waited = entry->state == CV_NEIGHBOUR_INCOMPLETE;

	table->incomplete += (state == CV_NEIGHBOUR_INCOMPLETE) - waited;
	entry->probes = 0;
	entry->since = now;
	entry->due = in_ms(table, now, ms);
	__atomic_store_n(&entry->state, (uint8_t)state, __ATOMIC_RELAXED);
	publish(table, at,
		state == CV_NEIGHBOUR_REACHABLE || state == CV_NEIGHBOUR_DELAY ||
			state == CV_NEIGHBOUR_PROBE);
	if (waited || state == CV_NEIGHBOUR_FREE)
		__atomic_store_n(&table->changes, table->changes + 1, __ATOMIC_RELEASE);
}

// Gives the entry a key, or none. Pairs with version_of(). A reader of the old key sees that the
// version has changed.
static void rekey(struct cv_neighbour_table *table, uint32_t at, const struct cv_neighbour_key *key)
{
	struct cv_neighbour_entry *entry = &table->entry[at];

	__atomic_store_n(&entry->version, entry->version + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	entry->key = *key;
	memset(&table->adjacency[at], 0, sizeof(*table->adjacency));
	table->adjacency[at].port = key->port;
	table->adjacency[at].outcome = CV_FIB_NEIGHBOUR;
	if (table->ports != NULL)
		memcpy(table->adjacency[at].source, table->ports[key->port].mac, CV_MAC_LEN);
	__atomic_store_n(&entry->version, entry->version + 1, __ATOMIC_RELEASE);
}

static void forget(struct cv_neighbour_table *table, uint32_t at, uint64_t now)
{
	uint64_t hash = hash_of(table, &table->entry[at].key);
	uint32_t *bucket = bucket_of(table, hash);

	for (unsigned i = 0; i < BUCKET; i++)
		if (bucket[i] == (signature_of(hash) | (at + 1)))
			__atomic_store_n(&bucket[i], 0, __ATOMIC_RELEASE);
	enter(table, at, CV_NEIGHBOUR_FREE, now);
	rekey(table, at, &(struct cv_neighbour_key){.port = 0});
	table->free[table->free_count++] = at;
}

// How little an entry is worth keeping; 0: it must be.
static unsigned forgettable(const struct cv_neighbour_entry *entry)
{
	if (entry->pinned)
		return 0;
	switch (entry->state) {
	case CV_NEIGHBOUR_FAILED:
		return 2;
	case CV_NEIGHBOUR_STALE:
		return 1;
	default:
		return 0; // somebody waits for it, or uses it
	}
}

static bool better_forgotten(
	const struct cv_neighbour_entry *entry, const struct cv_neighbour_entry *best)
{
	unsigned worth = forgettable(entry);

	if (worth == 0 || best == NULL)
		return worth != 0;
	return worth > forgettable(best) ||
	       (worth == forgettable(best) && entry->since < best->since);
}

// Forgets one of the next few entries: one that failed, or the one that was silent longest.
static void make_room(struct cv_neighbour_table *table, uint64_t now)
{
	const struct cv_neighbour_entry *best = NULL;
	uint32_t looks = RTE_MIN(table->entries_count, FORGET_LOOKS);

	for (; looks > 0; looks--) {
		const struct cv_neighbour_entry *entry = &table->entry[table->hand];

		if (better_forgotten(entry, best))
			best = entry;
		table->hand = (table->hand + 1) % table->entries_count;
	}
	if (best != NULL)
		forget(table, (uint32_t)(best - table->entry), now);
}

// A slot for the hash; a neighbour whose slot is there may be forgotten for it. NULL: none.
static uint32_t *slot_for(struct cv_neighbour_table *table, uint64_t hash, uint64_t now)
{
	uint32_t *bucket = bucket_of(table, hash);
	const struct cv_neighbour_entry *best = NULL;

	for (int again = 0; again < 2; again++) {
		for (unsigned i = 0; i < BUCKET; i++) {
			const struct cv_neighbour_entry *entry;

			if (bucket[i] == 0)
				return &bucket[i];
			entry = &table->entry[(bucket[i] & ((1u << SIGNATURE_SHIFT) - 1)) - 1];
			if (better_forgotten(entry, best))
				best = entry;
		}
		if (best == NULL)
			return NULL;
		forget(table, (uint32_t)(best - table->entry), now);
	}
	return NULL;
}

static uint32_t add(struct cv_neighbour_table *table, const struct cv_neighbour_key *key,
	const struct cv_neighbour_tags *tags, uint64_t now)
{
	const uint64_t hash = hash_of(table, key);
	uint32_t *slot = slot_for(table, hash, now);
	uint32_t at;

	if (slot != NULL && table->free_count == 0)
		make_room(table, now);
	if (slot == NULL || table->free_count == 0)
		return CV_NEIGHBOUR_NONE;
	at = table->free[--table->free_count];
	rekey(table, at, key);
	table->entry[at].tags = *tags;
	__atomic_store_n(slot, signature_of(hash) | (at + 1), __ATOMIC_RELEASE); // with find()
	return at;
}

static struct cv_neighbour_event ask(
	struct cv_neighbour_table *table, uint32_t at, enum cv_neighbour_what what, uint64_t now)
{
	struct cv_neighbour_entry *entry = &table->entry[at];
	struct cv_neighbour_event event = {.what = what, .key = entry->key, .tags = entry->tags};

	memcpy(event.mac, table->adjacency[at].mac, CV_MAC_LEN);
	entry->probes++;
	entry->due = in_ms(table, now, RETRANSMIT_MS);
	return event;
}

uint32_t cv_neighbour_table_pin(
	struct cv_neighbour_table *table, const struct cv_neighbour_key *key)
{
	uint32_t at;

	rte_spinlock_lock(&table->lock);
	at = cv_neighbour_table_find(table, key);
	if (at == CV_NEIGHBOUR_NONE) {
		at = add(table, key, &(struct cv_neighbour_tags){0}, 0);
		if (at != CV_NEIGHBOUR_NONE) {
			// The first packet asks for it.
			__atomic_store_n(
				&table->entry[at].state, CV_NEIGHBOUR_FAILED, __ATOMIC_RELAXED);
			table->entry[at].due = UINT64_MAX;
		}
	}
	if (at != CV_NEIGHBOUR_NONE)
		table->entry[at].pinned = true;
	rte_spinlock_unlock(&table->lock);
	return at;
}

void cv_neighbour_table_unpin(struct cv_neighbour_table *table, uint32_t at)
{
	struct cv_neighbour_entry *entry = &table->entry[at];

	rte_spinlock_lock(&table->lock);
	entry->pinned = false;
	if (entry->state == CV_NEIGHBOUR_FAILED)
		entry->due = 0; // it is forgotten next time
	rte_spinlock_unlock(&table->lock);
}

void cv_neighbour_table_start(
	struct cv_neighbour_table *table, const struct cv_neighbour_port *ports)
{
	table->ports = ports;
	for (uint32_t i = 0; i < table->entries_count; i++)
		if (table->entry[i].pinned)
			memcpy(table->adjacency[i].source, ports[table->entry[i].key.port].mac,
				CV_MAC_LEN);
}

// As cv_neighbour_table_use(), of an entry that is there.
static enum cv_neighbour_use use(struct cv_neighbour_table *table, uint32_t at,
	const struct cv_neighbour_tags *tags, uint64_t now, struct cv_neighbour_event *event)
{
	struct cv_neighbour_entry *entry = &table->entry[at];

	switch (entry->state) {
	case CV_NEIGHBOUR_FREE: // new
	case CV_NEIGHBOUR_FAILED:
		if (table->incomplete >= (table->entries_count + 1) / 2 && !entry->pinned)
			return CV_NEIGHBOUR_NO_ROOM;
		entry->tags = *tags;
		enter(table, at, CV_NEIGHBOUR_INCOMPLETE, now);
		*event = ask(table, at, CV_NEIGHBOUR_ASK_ALL, now);
		return CV_NEIGHBOUR_WAIT;
	case CV_NEIGHBOUR_INCOMPLETE:
		return CV_NEIGHBOUR_WAIT;
	case CV_NEIGHBOUR_STALE:
		enter(table, at, CV_NEIGHBOUR_DELAY, now);
		return CV_NEIGHBOUR_GO;
	default:
		return CV_NEIGHBOUR_GO;
	}
}

enum cv_neighbour_use cv_neighbour_table_use(struct cv_neighbour_table *table,
	const struct cv_neighbour_key *key, const struct cv_neighbour_tags *tags, uint64_t now,
	uint32_t *at, struct cv_neighbour_event *event)
{
	enum cv_neighbour_use result = CV_NEIGHBOUR_NO_ROOM;

	event->what = CV_NEIGHBOUR_NOTHING;
	*at = cv_neighbour_table_find(table, key);
	if (*at != CV_NEIGHBOUR_NONE &&
		cv_neighbour_table_state(table, *at, key) == CV_NEIGHBOUR_INCOMPLETE)
		return CV_NEIGHBOUR_WAIT; // as most packets that must not go straight on
	rte_spinlock_lock(&table->lock);
	*at = cv_neighbour_table_find(table, key);
	if (*at == CV_NEIGHBOUR_NONE && table->incomplete < (table->entries_count + 1) / 2)
		*at = add(table, key, tags, now);
	if (*at != CV_NEIGHBOUR_NONE)
		result = use(table, *at, tags, now, event);
	rte_spinlock_unlock(&table->lock);
	return result;
}

static bool has_mac(const struct cv_neighbour_entry *entry)
{
	return entry->state != CV_NEIGHBOUR_FREE && entry->state != CV_NEIGHBOUR_INCOMPLETE &&
	       entry->state != CV_NEIGHBOUR_FAILED;
}

// RFC 4861 section 7.2.3: who asks tells its address; that it can be reached is not known.
static void requested(struct cv_neighbour_table *table, uint32_t at,
	const struct cv_neighbour_heard *heard, uint64_t now)
{
	bool same = has_mac(&table->entry[at]) &&
		    memcmp(table->adjacency[at].mac, heard->mac, CV_MAC_LEN) == 0;

	if (!heard->has_mac || same)
		return;
	set_mac(table, at, heard->mac);
	enter(table, at, CV_NEIGHBOUR_STALE, now);
}

// RFC 4861 section 7.2.5.
static void advertised(struct cv_neighbour_table *table, uint32_t at,
	const struct cv_neighbour_heard *heard, uint64_t now)
{
	struct cv_neighbour_entry *entry = &table->entry[at];
	bool differs =
		heard->has_mac && memcmp(table->adjacency[at].mac, heard->mac, CV_MAC_LEN) != 0;

	if (!has_mac(entry)) {
		if (!heard->has_mac)
			return;
		set_mac(table, at, heard->mac);
		enter(table, at, heard->solicited ? CV_NEIGHBOUR_REACHABLE : CV_NEIGHBOUR_STALE,
			now);
		return;
	}
	if (differs && !heard->override) {
		if (entry->state == CV_NEIGHBOUR_REACHABLE)
			enter(table, at, CV_NEIGHBOUR_STALE, now);
		return;
	}
	if (differs)
		set_mac(table, at, heard->mac);
	if (heard->solicited)
		enter(table, at, CV_NEIGHBOUR_REACHABLE, now);
	else if (differs)
		enter(table, at, CV_NEIGHBOUR_STALE, now);
}

void cv_neighbour_table_hear(struct cv_neighbour_table *table, const struct cv_neighbour_key *key,
	const struct cv_neighbour_heard *heard, const struct cv_neighbour_tags *tags, uint64_t now)
{
	uint32_t at = cv_neighbour_table_find(table, key);

	if (at == CV_NEIGHBOUR_NONE && !(heard->create && heard->has_mac))
		return;
	rte_spinlock_lock(&table->lock);
	at = cv_neighbour_table_find(table, key);
	if (at == CV_NEIGHBOUR_NONE && heard->create && heard->has_mac)
		at = add(table, key, tags, now);
	if (at != CV_NEIGHBOUR_NONE && heard->advertised)
		advertised(table, at, heard, now);
	else if (at != CV_NEIGHBOUR_NONE)
		requested(table, at, heard, now);
	rte_spinlock_unlock(&table->lock);
}

// Ends the state of an entry, which is due.
static struct cv_neighbour_event end(struct cv_neighbour_table *table, uint32_t at, uint64_t now)
{
	struct cv_neighbour_entry *entry = &table->entry[at];
	bool incomplete = entry->state == CV_NEIGHBOUR_INCOMPLETE;

	switch (entry->state) {
	case CV_NEIGHBOUR_REACHABLE:
		enter(table, at, CV_NEIGHBOUR_STALE, now);
		break;
	case CV_NEIGHBOUR_DELAY:
		enter(table, at, CV_NEIGHBOUR_PROBE, now);
		return ask(table, at, CV_NEIGHBOUR_ASK_IT, now);
	case CV_NEIGHBOUR_INCOMPLETE:
	case CV_NEIGHBOUR_PROBE:
		if (entry->probes < CV_NEIGHBOUR_PROBES)
			return ask(table, at,
				incomplete ? CV_NEIGHBOUR_ASK_ALL : CV_NEIGHBOUR_ASK_IT, now);
		enter(table, at, CV_NEIGHBOUR_FAILED, now);
		break;
	case CV_NEIGHBOUR_FAILED:
		if (!entry->pinned)
			forget(table, at, now);
		break;
	default:
		break;
	}
	return (struct cv_neighbour_event){.what = CV_NEIGHBOUR_NOTHING};
}

unsigned cv_neighbour_table_expire(struct cv_neighbour_table *table, uint64_t now, unsigned entries,
	struct cv_neighbour_event *events)
{
	unsigned count = 0;

	if (!rte_spinlock_trylock(&table->lock))
		return 0;
	for (entries = RTE_MIN(entries, table->entries_count); entries > 0; entries--) {
		uint32_t at = table->next_due;

		table->next_due = (at + 1) % table->entries_count;
		if (table->entry[at].state == CV_NEIGHBOUR_FREE || table->entry[at].due > now)
			continue;
		events[count] = end(table, at, now);
		count += events[count].what != CV_NEIGHBOUR_NOTHING;
	}
	rte_spinlock_unlock(&table->lock);
	return count;
}
