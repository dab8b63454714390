// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/entries.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST 1024u // entries that there is memory for at first
// Twice the longest timeout: a second has a list of its own, also while we are behind.
#define SECONDS 131072u

static uint32_t slot_of(const struct cv_of_entries *entries, uint32_t key)
{
	return (key * 0x9e3779b1u) >> entries->shift;
}

static uint32_t slots_count(const struct cv_of_entries *entries)
{
	return 1u << (32 - entries->shift);
}

// Where a key is, or where it would be.
static uint32_t find_slot(const struct cv_of_entries *entries, uint32_t key)
{
	const uint32_t mask = slots_count(entries) - 1;
	uint32_t at = slot_of(entries, key);

	while (entries->slots[at] != CV_OF_NONE && entries->all[entries->slots[at]].key != key)
		at = (at + 1) & mask;
	return at;
}

static bool make_slots(struct cv_of_entries *entries, unsigned bits)
{
	uint32_t *before = entries->slots, *slots = malloc(sizeof(*slots) << bits);
	const uint32_t count = before != NULL ? slots_count(entries) : 0;

	if (slots == NULL)
		return false;
	memset(slots, 0xff, sizeof(*slots) << bits); // CV_OF_NONE
	entries->slots = slots;
	entries->shift = 32 - bits;
	for (uint32_t i = 0; i < count; i++)
		if (before[i] != CV_OF_NONE)
			slots[find_slot(entries, entries->all[before[i]].key)] = before[i];
	free(before);
	return true;
}

int cv_of_entries_init(struct cv_of_entries *entries, uint32_t max)
{
	*entries = (struct cv_of_entries){.max = max, .free = CV_OF_NONE, .room = FIRST};
	entries->all = malloc(FIRST * sizeof(*entries->all));
	entries->due = malloc(SECONDS * sizeof(*entries->due));
	entries->groups = calloc(CV_OF_GROUPS_MAX, sizeof(*entries->groups));
	if (entries->all == NULL || entries->due == NULL || entries->groups == NULL ||
		!make_slots(entries, 11)) {
		cv_of_entries_fini(entries);
		return -ENOMEM;
	}
	memset(entries->due, 0xff, SECONDS * sizeof(*entries->due));
	return 0;
}

void cv_of_entries_fini(struct cv_of_entries *entries)
{
	free(entries->all);
	free(entries->due);
	free(entries->slots);
	free(entries->groups);
	*entries = (struct cv_of_entries){0};
}

uint32_t cv_of_entries_best(const struct cv_of_entries *entries, uint32_t key)
{
	return entries->slots[find_slot(entries, key)];
}

uint32_t cv_of_entries_find(const struct cv_of_entries *entries, uint32_t key, uint16_t priority)
{
	uint32_t number = cv_of_entries_best(entries, key);

	while (number != CV_OF_NONE && entries->all[number].priority > priority)
		number = entries->all[number].lower;
	return number != CV_OF_NONE && entries->all[number].priority == priority ? number
										 : CV_OF_NONE;
}

// A number that no entry has; CV_OF_NONE: there is none.
static uint32_t take_number(struct cv_of_entries *entries)
{
	const uint32_t number = entries->free;

	if (number != CV_OF_NONE) {
		entries->free = entries->all[number].lower;
		return number;
	}
	if (entries->end == entries->room) {
		void *all = realloc(entries->all, 2 * sizeof(*entries->all) * entries->room);

		if (all == NULL)
			return CV_OF_NONE;
		entries->all = all;
		entries->room *= 2;
	}
	return entries->end++;
}

static void begin_timeout(struct cv_of_entries *entries, uint32_t number, uint64_t now_s)
{
	struct cv_of_entry *entry = &entries->all[number];
	uint32_t *first;

	entry->due_s = entry->hard > 0 ? now_s + entry->hard : 0;
	if (entry->due_s == 0)
		return;
	if (entries->due_done_s == 0)
		entries->due_done_s = now_s;
	first = &entries->due[entry->due_s % SECONDS];
	entry->due_before = CV_OF_NONE;
	entry->due_after = *first;
	if (*first != CV_OF_NONE)
		entries->all[*first].due_before = number;
	*first = number;
}

static void end_timeout(struct cv_of_entries *entries, const struct cv_of_entry *entry)
{
	if (entry->due_s == 0)
		return;
	if (entry->due_before != CV_OF_NONE)
		entries->all[entry->due_before].due_after = entry->due_after;
	else
		entries->due[entry->due_s % SECONDS] = entry->due_after;
	if (entry->due_after != CV_OF_NONE)
		entries->all[entry->due_after].due_before = entry->due_before;
}

uint32_t cv_of_entries_add(
	struct cv_of_entries *entries, const struct cv_of_entry *entry, uint64_t now_s)
{
	uint32_t number, *at;

	if (entries->count == entries->max ||
		(2 * (entries->keys + 1) > slots_count(entries) &&
			!make_slots(entries, 32 - entries->shift + 1)))
		return CV_OF_NONE;
	number = take_number(entries);
	if (number == CV_OF_NONE)
		return CV_OF_NONE;
	entries->all[number] = *entry;
	entries->all[number].there = true;
	at = &entries->slots[find_slot(entries, entry->key)];
	entries->keys += *at == CV_OF_NONE;
	while (*at != CV_OF_NONE && entries->all[*at].priority > entry->priority)
		at = &entries->all[*at].lower;
	entries->all[number].lower = *at;
	*at = number;
	entries->count++;
	entries->of_port[entry->key >> 26]++;
	begin_timeout(entries, number, now_s);
	return number;
}

// Empties a slot: those behind it that would be there move up.
static void empty_slot(struct cv_of_entries *entries, uint32_t at)
{
	const uint32_t mask = slots_count(entries) - 1;

	for (uint32_t next = (at + 1) & mask; entries->slots[next] != CV_OF_NONE;
		next = (next + 1) & mask) {
		const uint32_t home = slot_of(entries, entries->all[entries->slots[next]].key);

		if (((next - home) & mask) < ((next - at) & mask))
			continue;
		entries->slots[at] = entries->slots[next];
		at = next;
	}
	entries->slots[at] = CV_OF_NONE;
}

void cv_of_entries_remove(struct cv_of_entries *entries, uint32_t number)
{
	struct cv_of_entry *entry = &entries->all[number];
	const uint32_t slot = find_slot(entries, entry->key);
	uint32_t *at = &entries->slots[slot];

	end_timeout(entries, entry);
	if (*at == number && entry->lower == CV_OF_NONE) {
		empty_slot(entries, slot);
		entries->keys--;
	} else {
		while (*at != number)
			at = &entries->all[*at].lower;
		*at = entry->lower;
	}
	entry->there = false;
	entry->lower = entries->free;
	entries->free = number;
	entries->count--;
	entries->of_port[entry->key >> 26]--;
}

uint32_t cv_of_entries_due(struct cv_of_entries *entries, uint64_t now_s)
{
	if (entries->due_done_s == 0)
		return CV_OF_NONE; // there has never been a timeout
	while (entries->due_done_s <= now_s) {
		const uint32_t first = entries->due[entries->due_done_s % SECONDS];

		if (first != CV_OF_NONE)
			return first;
		if (entries->due_done_s == now_s)
			break;
		entries->due_done_s++;
	}
	return CV_OF_NONE;
}
