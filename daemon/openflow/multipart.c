// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a controller asks about the node: its description, flow entries, tables, next hops.
#include <stdio.h>
#include <time.h>

#include "daemon/openflow/session.h"

#define BODY CV_OF_BODY
#define DESC_BYTES 1056u
#define TABLE_BYTES 24u
#define STATS_BYTES 112u // of a port
#define FLOW_BYTES (48u + CV_OF_MATCH_BYTES + 24u) // an entry with its match and instruction
#define PART_BYTES 32768u // of entries in an answer

uint8_t *cv_of_begin_part(
	struct cv_of_session *session, uint32_t xid, unsigned type, size_t body_bytes)
{
	uint8_t *at = cv_of_reply(session, CV_OF_MULTIPART_REPLY, xid, BODY + body_bytes);

	if (at != NULL)
		cv_of_put16(at + 8, (uint16_t)type);
	return at;
}

static void describe(struct cv_of_session *session, uint32_t xid)
{
	const struct cv_of_node *node = session->of->node;
	uint8_t *at = cv_of_begin_part(session, xid, CV_OF_DESC, DESC_BYTES);

	if (at == NULL)
		return;
	at += BODY;
	snprintf((char *)at, 256, "Convoy");
	snprintf((char *)at + 256, 256, "convoyd: next hops of service chains");
	snprintf((char *)at + 512, 256, "%s", node->version);
	snprintf((char *)at + 768, 32, "none");
	snprintf((char *)at + 800, 256, "convoyd-%016llx", (unsigned long long)node->datapath_id);
}

static void tell_tables(struct cv_of_session *session, uint32_t xid)
{
	const struct cv_of_switch *of = session->of;
	const unsigned count = of->node->tables_count;
	uint8_t *at = cv_of_begin_part(session, xid, CV_OF_TABLE, (size_t)count * TABLE_BYTES);

	for (unsigned i = 0; at != NULL && i < count; i++) {
		uint8_t *table = at + BODY + (size_t)i * TABLE_BYTES;

		table[0] = (uint8_t)i;
		cv_of_put32(table + 4, of->entries.of_port[of->node->ports[i]]);
		cv_of_put64(table + 8, CV_OF_UNKNOWN_COUNT);
		cv_of_put64(table + 16, CV_OF_UNKNOWN_COUNT);
	}
}

// A property of a table: its type, and numbers of four bytes.
static uint8_t *write_property(uint8_t *at, unsigned type, const uint32_t *numbers, unsigned count)
{
	cv_of_put16(at, (uint16_t)type);
	cv_of_put16(at + 2, (uint16_t)(4 + 4 * count));
	for (unsigned i = 0; i < count; i++)
		cv_of_put32(at + 4 + 4 * i, numbers[i]);
	return at + cv_of_padded(4 + 4 * count);
}

// What entries of each table can match and do (7.3.5.5.2).
static void tell_features(struct cv_of_session *session, uint32_t xid)
{
	enum { TABLE = 64 + 16 + 8 + 2 * 16 + 2 * 16 + 2 * 8 };
	static const uint32_t instructions[] = {3u << 16 | 4, 4u << 16 | 4};
	static const uint32_t actions[] = {0u << 16 | 4, 22u << 16 | 4, 25u << 16 | 4};
	static const uint32_t fields[] = {
		CV_OF_OXM(CV_OF_OXM_VLAN, 2), CV_OF_OXM(CV_OF_OXM_TUNNEL, 8)};
	const struct cv_of_switch *of = session->of;
	const unsigned count = of->node->tables_count;
	uint8_t *at = cv_of_begin_part(session, xid, CV_OF_TABLE_FEATURES, (size_t)count * TABLE);

	for (unsigned i = 0; at != NULL && i < count; i++) {
		uint8_t *table = at + BODY + (size_t)i * TABLE, *property = table + 64;

		cv_of_put16(table, TABLE);
		table[2] = (uint8_t)i;
		snprintf((char *)table + 8, 32, "%s", of->node->names[i]);
		cv_of_put32(table + 60, of->entries.max);
		property = write_property(property, 0, instructions, 2);
		property = write_property(property, 2, NULL, 0); // no next table
		property = write_property(property, 4, actions, 3);
		property = write_property(property, 6, actions, 3);
		property = write_property(property, 8, fields, 2);
		property = write_property(property, 10, fields, 2); // may be left out
		property = write_property(property, 12, fields + 1, 1);
		write_property(property, 14, fields + 1, 1);
	}
}

void cv_of_write_port(uint8_t *at, uint16_t next_hop, const struct cv_of_port *port)
{
	cv_of_put32(at, next_hop + 1u);
	memcpy(at + 8, port->mac, sizeof(port->mac));
	snprintf((char *)at + 16, 16, "%.15s", port->name);
	cv_of_put32(at + 36, CV_OF_LIVE);
}

void cv_of_tell_port(struct cv_of_session *session, unsigned why, uint16_t next_hop,
	const struct cv_of_port *port)
{
	uint8_t *at;

	if ((session->async[session->role == CV_OF_SLAVE ? 3 : 2] >> why & 1) == 0)
		return;
	at = cv_of_reply(session, CV_OF_PORT_STATUS, ++session->xid, 16 + CV_OF_PORT_BYTES);
	if (at == NULL)
		return;
	at[8] = (uint8_t)why;
	cv_of_write_port(at + 16, next_hop, port);
}

static unsigned count_ports(const struct cv_of_switch *of)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		count += of->ports[i].name[0] != '\0';
	return count;
}

static void describe_ports(struct cv_of_session *session, uint32_t xid)
{
	const struct cv_of_switch *of = session->of;
	uint8_t *at =
		cv_of_begin_part(session, xid, CV_OF_PORT_DESC, count_ports(of) * CV_OF_PORT_BYTES);

	if (at != NULL)
		at += BODY;
	for (uint16_t i = 0; at != NULL && i < CV_NEXT_HOPS_MAX; i++) {
		if (of->ports[i].name[0] == '\0')
			continue;
		cv_of_write_port(at, i, &of->ports[i]);
		at += CV_OF_PORT_BYTES;
	}
}

static bool is_asked_for(const struct cv_of_switch *of, uint32_t number, uint16_t next_hop)
{
	return of->ports[next_hop].name[0] != '\0' &&
	       (number == CV_OF_ANY || number == next_hop + 1u);
}

// What was sent to next hops: packets are all that is counted.
static uint32_t tell_ports(
	struct cv_of_session *session, uint32_t xid, const uint8_t *body, size_t length)
{
	const struct cv_of_switch *of = session->of;
	const uint32_t number = length == 8 ? cv_of_get32(body) : 0;
	unsigned count = 0;
	uint8_t *at;

	if (length != 8)
		return CV_OF_BAD_LEN;
	for (uint16_t i = 0; i < CV_NEXT_HOPS_MAX; i++)
		count += is_asked_for(of, number, i);
	if (count == 0 && number != CV_OF_ANY)
		return CV_OF_BAD_PORT;
	at = cv_of_begin_part(session, xid, CV_OF_PORT_STATS, (size_t)count * STATS_BYTES);
	if (at != NULL)
		at += BODY;
	for (uint16_t i = 0; at != NULL && i < CV_NEXT_HOPS_MAX; i++) {
		struct cv_of_port port;

		if (!is_asked_for(of, number, i))
			continue;
		of->node->describe(of->node->of, i, &port);
		memset(at + 8, 0xff, STATS_BYTES - 8);
		cv_of_put32(at, i + 1u);
		cv_of_put64(at + 16, port.packets);
		at += STATS_BYTES;
	}
	return 0;
}

static uint32_t tell_sum(
	struct cv_of_session *session, uint32_t xid, const struct cv_of_change *selection)
{
	const struct cv_of_switch *of = session->of;
	uint32_t count = 0;
	uint8_t *at;

	for (uint32_t i = 0; i < of->entries.end; i++)
		count += of->entries.all[i].there &&
			 cv_of_is_selected(of, selection, &of->entries.all[i]);
	at = cv_of_begin_part(session, xid, CV_OF_AGGREGATE, 24);
	if (at != NULL) {
		cv_of_put64(at + BODY, CV_OF_UNKNOWN_COUNT);
		cv_of_put64(at + BODY + 8, CV_OF_UNKNOWN_COUNT);
		cv_of_put32(at + BODY + 16, count);
	}
	return 0;
}

uint32_t cv_of_multipart(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	const uint32_t xid = cv_of_get32(message + 4);
	const uint8_t *body = message + BODY;
	struct cv_of_change selection;
	unsigned type;
	uint32_t why;

	if (length < BODY)
		return CV_OF_BAD_LEN;
	type = cv_of_get16(message + 8);
	length -= BODY;
	if ((cv_of_get16(message + 10) & CV_OF_MORE) != 0)
		return CV_OF_MULTIPART_OVERFLOW; // no request that we know takes two messages
	switch (type) {
	case CV_OF_DESC:
		describe(session, xid);
		return 0;
	case CV_OF_TABLE:
		tell_tables(session, xid);
		return 0;
	case CV_OF_PORT_DESC:
		describe_ports(session, xid);
		return 0;
	case CV_OF_PORT_STATS:
		return tell_ports(session, xid, body, length);
	case CV_OF_TABLE_FEATURES:
		if (length > 0)
			return CV_OF_FEATURES_FIXED;
		tell_features(session, xid);
		return 0;
	case CV_OF_GROUP_STATS:
	case CV_OF_GROUP_DESC:
	case CV_OF_GROUP_FEATURES:
		return cv_of_tell_groups(session, xid, type, body, length);
	case CV_OF_FLOW:
	case CV_OF_AGGREGATE:
		why = cv_of_parse_selection(body, length, &selection);
		if (why == 0 && selection.table != CV_OF_ALL_TABLES &&
			selection.table >= session->of->node->tables_count)
			why = CV_OF_BAD_TABLE;
		if (why == 0 && type == CV_OF_AGGREGATE)
			return tell_sum(session, xid, &selection);
		if (why == 0)
			session->work = (struct cv_of_work){
				.kind = CV_OF_STATISTICS, .selection = selection, .xid = xid};
		return why;
	default:
		return CV_OF_BAD_MULTIPART;
	}
}

// Writes what an entry does, one action that is applied; how many bytes.
static size_t write_instruction(
	uint8_t *at, const struct cv_of_entries *entries, const struct cv_of_entry *entry)
{
	const struct cv_of_group *group = cv_of_group_of(entries, entry);
	const size_t bytes = group != NULL ? 16 : 24;

	cv_of_put16(at, 4);
	cv_of_put16(at + 2, (uint16_t)bytes);
	cv_of_put16(at + 10, (uint16_t)(bytes - 8));
	if (group != NULL) {
		cv_of_put16(at + 8, 22);
		cv_of_put32(at + 12, group->id);
		return bytes;
	}
	cv_of_put32(at + 12, entry->next_hop + 1u);
	cv_of_put16(at + 16, UINT16_MAX); // no limit to the bytes for a controller
	return bytes;
}

// Writes an entry; how many bytes.
static size_t write_entry(uint8_t *at, const struct cv_of_switch *of,
	const struct cv_of_entry *entry, uint64_t now_ns)
{
	const uint64_t ns = now_ns > entry->since_ns ? now_ns - entry->since_ns : 0;
	const struct cv_of_match match = cv_of_match_of(entry->key);
	size_t bytes = 48;

	memset(at, 0, FLOW_BYTES);
	at[2] = cv_of_table_of(of, entry->key);
	cv_of_put32(at + 4, (uint32_t)(ns / 1000000000u));
	cv_of_put32(at + 8, (uint32_t)(ns % 1000000000u));
	cv_of_put16(at + 12, entry->priority);
	cv_of_put16(at + 14, entry->idle);
	cv_of_put16(at + 16, entry->hard);
	cv_of_put16(at + 18, entry->flags);
	cv_of_put64(at + 24, entry->cookie);
	cv_of_put64(at + 32, CV_OF_UNKNOWN_COUNT);
	cv_of_put64(at + 40, CV_OF_UNKNOWN_COUNT);
	bytes += cv_of_write_match(at + bytes, &match);
	bytes += write_instruction(at + bytes, &of->entries, entry);
	cv_of_put16(at, (uint16_t)bytes);
	return bytes;
}

// An answer with entries that is being made.
struct part {
	struct cv_of_session *session;
	uint8_t bytes[PART_BYTES];
	size_t used;
	uint64_t now_ns;
};

static void add_entry(struct part *part, const struct cv_of_entry *entry)
{
	if (part->used + FLOW_BYTES <= sizeof(part->bytes) &&
		cv_of_is_selected(part->session->of, &part->session->work.selection, entry))
		part->used += write_entry(
			part->bytes + part->used, part->session->of, entry, part->now_ns);
}

// Adds what there is room for. Whether that was the last.
static bool fill(struct part *part, struct cv_of_work *work)
{
	const struct cv_of_switch *of = part->session->of;
	const struct cv_of_entries *entries = &of->entries;
	const struct cv_of_match *match = &work->selection.match;

	if (match->kind == CV_SCID_NONE) {
		for (; work->number < entries->end; work->number++) {
			if (part->used + FLOW_BYTES > sizeof(part->bytes))
				return false;
			if (entries->all[work->number].there)
				add_entry(part, &entries->all[work->number]);
		}
		return true;
	}
	for (; work->table < of->node->tables_count; work->table++) {
		if (part->used + CV_OF_PRIORITIES_MAX * FLOW_BYTES > sizeof(part->bytes))
			return false;
		for (uint32_t i = cv_of_entries_best(entries, cv_of_key_in(of, work->table, match));
			i != CV_OF_NONE; i = entries->all[i].lower)
			add_entry(part, &entries->all[i]);
	}
	return true;
}

bool cv_of_go_on_telling(struct cv_of_session *session, struct cv_of_work *work)
{
	struct timespec now;
	struct part part = {.session = session};
	uint8_t *at;
	bool last;

	if (cv_of_room(session) < BODY + PART_BYTES)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	part.now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	last = fill(&part, work);
	at = cv_of_begin_part(session, work->xid, CV_OF_FLOW, part.used);
	if (at == NULL)
		return true;
	cv_of_put16(at + 10, last ? 0 : CV_OF_MORE);
	memcpy(at + BODY, part.bytes, part.used);
	return last;
}
