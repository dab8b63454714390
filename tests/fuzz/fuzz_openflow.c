// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes from two controllers, in pieces, while next hops come and go: what is answered is whole
// messages of OpenFlow 1.3, each request has at most one kind of end, the entries are what their
// counters say.
//
// The first byte is how large the pieces are; then the first controller's bytes. The other one reads
// nothing: at worst it is disconnected. Where the bytes do not greet, a greeting goes before.
#include <stdlib.h>
#include <string.h>

#include "daemon/openflow/inband.h"
#include "daemon/openflow/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

// A node with three next hops, of which one may be gone; what its table has for some keys.
struct node {
	struct cv_of_switch of;
	uint64_t generation;
	bool gone;
	unsigned taken;
};

static bool begin(void *of)
{
	((struct node *)of)->taken++;
	return true;
}

static void end(void *of)
{
	((struct node *)of)->taken--;
}

static bool describe(void *of, uint16_t next_hop, struct cv_of_port *port)
{
	const struct node *node = of;

	must(next_hop < CV_NEXT_HOPS_MAX);
	if (next_hop > 2 || (next_hop == 1 && node->gone))
		return false;
	*port = (struct cv_of_port){.nfi = (uint16_t)(next_hop / 2),
		.serial = (uint16_t)(next_hop == 1 ? node->generation : 0)};
	memcpy(port->name, "next hop with a long name abcdef", CV_OF_NAME_MAX - 1);
	return true;
}

static uint64_t generation(void *of)
{
	return ((const struct node *)of)->generation;
}

static int change(void *of, uint32_t key, bool all)
{
	const struct node *node = of;

	must(node->taken == 1);
	must(key >> 26 == 3 || key >> 26 == 60 || (all && key == 0)); // a group's has none
	return key % 251 == 250 ? -1 : 0; // no memory
}

static void nothing(void *of)
{
	must(((const struct node *)of)->taken == 1);
}

static void check_entries(const struct cv_of_entries *entries)
{
	uint32_t there = 0, ports = 0;

	for (uint32_t i = 0; i < entries->end; i++) {
		const struct cv_of_entry *entry = &entries->all[i];
		uint32_t lower;

		if (!entry->there)
			continue;
		there++;
		must(cv_of_entries_find(entries, entry->key, entry->priority) == i);
		lower = entry->lower;
		must(lower == CV_OF_NONE ||
			(entries->all[lower].key == entry->key &&
				entries->all[lower].priority < entry->priority));
		must(entry->next_hop < 3 || cv_of_group_of(entries, entry)->there);
	}
	for (unsigned i = 0; i < 64; i++)
		ports += entries->of_port[i];
	must(there == entries->count && ports == there && there <= entries->max);
}

static void check_groups(const struct cv_of_entries *entries)
{
	for (unsigned i = 0; i < CV_OF_GROUPS_MAX; i++) {
		const struct cv_of_group *group = &entries->groups[i];

		must(!group->there || cv_of_group_find(entries, group->id) == (int)i);
		must(!group->there || group->of.members_count > 0);
		for (unsigned j = 0; group->there && j < group->of.members_count; j++) {
			must(group->of.members[j].next_hop < 3);
			must(group->of.members[j].weight > 0);
			must(j == 0 ||
				group->of.members[j - 1].next_hop < group->of.members[j].next_hop);
		}
	}
}

// Reads what there is, and checks that it is whole messages.
static void drain(struct cv_of_session *session)
{
	while (session->out_from < session->out_to) {
		const uint8_t *at = session->out + session->out_from;
		const size_t there = session->out_to - session->out_from;

		must(there >= CV_OF_HEADER && at[0] == CV_OF_VERSION);
		must(cv_of_get16(at + 2) >= CV_OF_HEADER && cv_of_get16(at + 2) <= there);
		must(at[1] <= CV_OF_GET_ASYNC_REPLY);
		session->out_from += cv_of_get16(at + 2);
	}
}

static void run(struct node *node, struct cv_of_session *session, bool reads)
{
	for (unsigned i = 0; i < 4 && cv_of_session_is_due(session); i++) {
		must(begin(node));
		cv_of_switch_look(&node->of, node->generation * 1000000000u);
		cv_of_session_run(session);
		end(node);
		if (reads)
			drain(session);
	}
}

static void feed(struct node *node, struct cv_of_session *session, const uint8_t *data, size_t size,
	size_t piece)
{
	while (size > 0 && !session->failed) {
		const size_t room = CV_OF_IN_BYTES - session->in_used;
		size_t now = size < piece ? size : piece;

		now = now < room ? now : room;
		if (now == 0)
			return;
		memcpy(session->in + session->in_used, data, now);
		session->in_used += now;
		data += now;
		size -= now;
		run(node, session, true);
		if (size % 3 == 0) {
			node->generation++;
			node->gone = size % 2 == 0;
		}
	}
}

// No frame is authentic, whatever it looks like. (HMAC-SHA-256 holds.)
static void check_frame(const uint8_t *data, size_t size)
{
	static const uint8_t key[CV_OF_INBAND_KEY] = {1};
	uint8_t *frame = malloc(size + 1);
	uint64_t last = 0;
	size_t bytes = 0;

	must(frame != NULL);
	if (size > 0)
		memcpy(frame, data, size);
	must(cv_of_inband_open(frame, size, key, 0x3131313131313131, &last, &bytes) == NULL);
	must(last == 0);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t hello[8] = {4, 0, 0, 8},
			     flows[] = {4, 18, 0, 56, [9] = 1, [16] = 0xff, [20] = 0xff, 0xff, 0xff,
				     0xff, 0xff, 0xff, 0xff, 0xff, [48] = 0, 1, 0, 4, [55] = 0};
	struct node *node = calloc(1, sizeof(*node));
	const struct cv_of_node ops = {
		.of = node,
		.version = "1",
		.tables_count = 2,
		.ports = {3, 60},
		.names = {"out", "in"},
		.begin = begin,
		.end = end,
		.describe = describe,
		.generation = generation,
		.change = change,
		.wait = nothing,
	};
	struct cv_of_session *session, *other;

	must(node != NULL && cv_of_switch_init(&node->of, &ops, 50) == 0);
	node->generation = 1;
	session = cv_of_session_open(&node->of);
	other = cv_of_session_open(&node->of);
	must(session != NULL && other != NULL);
	memcpy(other->in, hello, sizeof(hello));
	other->in_used = sizeof(hello);
	run(node, other, false);
	if (size > 0) {
		if (size < 3 || data[2] != 0)
			feed(node, session, hello, sizeof(hello), sizeof(hello));
		feed(node, session, data + 1, size - 1, data[0] + 1u);
	}
	check_frame(data, size);
	// Everything that is there, at the end.
	if (!session->failed && session->work.kind == CV_OF_NO_WORK && session->greeted) {
		session->in_used = 0;
		feed(node, session, flows, sizeof(flows), sizeof(flows));
	}
	drain(session);
	drain(other);
	check_entries(&node->of.entries);
	check_groups(&node->of.entries);
	cv_of_session_close(session);
	cv_of_session_close(other);
	cv_of_switch_fini(&node->of);
	free(node);
	return 0;
}
