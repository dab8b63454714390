// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/switch.h"

#include "daemon/openflow/session.h"

#define PORT_ADDED 0u
#define PORT_GONE 1u
#define PORT_CHANGED 2u

int cv_of_switch_init(struct cv_of_switch *of, const struct cv_of_node *node, uint32_t entries_max)
{
	*of = (struct cv_of_switch){.node = node};
	return cv_of_entries_init(&of->entries, entries_max);
}

void cv_of_switch_fini(struct cv_of_switch *of)
{
	cv_of_entries_fini(&of->entries);
}

uint32_t cv_of_switch_resolve(
	const struct cv_of_switch *of, const struct cv_of_to *to, uint16_t *next_hop)
{
	unsigned count = 0;

	if (to->by == CV_OF_BY_GROUP) {
		const int group = cv_of_group_find(&of->entries, to->number);

		if (group < 0)
			return CV_OF_ACTION_OUT_GROUP;
		*next_hop = (uint16_t)(CV_NEXT_HOP_GROUP + group);
		return 0;
	}
	if (to->by == CV_OF_BY_PORT) {
		if (to->number < 1 || to->number > CV_NEXT_HOPS_MAX ||
			of->ports[to->number - 1].name[0] == '\0')
			return CV_OF_ACTION_OUT_PORT;
		*next_hop = (uint16_t)(to->number - 1);
		return 0;
	}
	for (uint16_t i = 0; i < CV_NEXT_HOPS_MAX; i++)
		if (of->ports[i].name[0] != '\0' && of->ports[i].nfi == to->number) {
			*next_hop = i;
			count++;
		}
	return count == 1 ? 0 : CV_OF_SET_ARGUMENT;
}

static void remove_entries_of(struct cv_of_switch *of, uint16_t next_hop)
{
	for (uint32_t i = 0; i < of->entries.end; i++)
		if (of->entries.all[i].there && of->entries.all[i].next_hop == next_hop)
			cv_of_remove(of, i, CV_OF_REMOVED_DELETE);
}

static void tell_all(
	struct cv_of_switch *of, unsigned why, uint16_t next_hop, const struct cv_of_port *port)
{
	for (unsigned i = 0; i < CV_OF_SESSIONS_MAX; i++)
		if (of->sessions[i] != NULL && of->sessions[i]->greeted)
			cv_of_tell_port(of->sessions[i], why, next_hop, port);
}

static void look_at_port(struct cv_of_switch *of, uint16_t next_hop)
{
	const struct cv_of_port before = of->ports[next_hop];
	const bool was = before.name[0] != '\0';
	struct cv_of_port now = {.name = ""};
	const bool is = of->node->describe(of->node->of, next_hop, &now);

	if (!was && !is)
		return;
	of->ports[next_hop] = now;
	if (was && (!is || now.serial != before.serial)) {
		tell_all(of, PORT_GONE, next_hop, &before);
		remove_entries_of(of, next_hop);
		cv_of_groups_forget(of, next_hop);
	}
	if (is && (!was || now.serial != before.serial))
		tell_all(of, PORT_ADDED, next_hop, &now);
	else if (is && memcmp(now.mac, before.mac, sizeof(now.mac)) != 0)
		tell_all(of, PORT_CHANGED, next_hop, &now);
}

// Whether every controller can be told that one more entry is gone. One that reads nothing does not
// stay long.
static bool has_room(const struct cv_of_switch *of)
{
	for (unsigned i = 0; i < CV_OF_SESSIONS_MAX; i++)
		if (of->sessions[i] != NULL && cv_of_room(of->sessions[i]) < CV_OF_REMOVED_BYTES)
			return false;
	return true;
}

void cv_of_switch_look(struct cv_of_switch *of, uint64_t now_ns)
{
	const uint64_t generation = of->node->generation(of->node->of);
	uint32_t number;

	for (uint16_t i = 0; generation != of->known && i < CV_NEXT_HOPS_MAX; i++)
		look_at_port(of, i);
	of->known = generation;
	while (has_room(of) &&
		(number = cv_of_entries_due(&of->entries, now_ns / 1000000000u)) != CV_OF_NONE)
		cv_of_remove(of, number, CV_OF_REMOVED_HARD);
	__atomic_store_n(&of->counters.entries, of->entries.count, __ATOMIC_RELAXED);
}
