// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/parse.h"

#define FLOW_MOD_BYTES 48u // before the match
#define SELECTION_BYTES 32u
#define MATCH_HEADER 4u // type, length
#define MATCH_OXM 1u // its type
#define WRITE_ACTIONS 3u // instructions
#define APPLY_ACTIONS 4u
#define CLEAR_ACTIONS 5u
#define LAST_INSTRUCTION 6u
#define EXPERIMENTER 0xffffu // an instruction or action
#define OUTPUT 0u // actions
#define GROUP 22u
#define SET_FIELD 25u
#define GROUP_MOD_BYTES 16u // before the buckets
#define BUCKET_BYTES 16u // before the actions
#define OUTPUT_BYTES 16u
#define SET_TUNNEL_BYTES 16u // with the tunnel id
#define NFI_MAX 0xffffu
#define VNI_MAX 0xffffffu
#define ADD_FLAGS 31u // those of 1.3

// One field of a match.
static uint32_t parse_field(uint32_t header, const uint8_t *value, struct cv_of_match *match)
{
	const bool masked = (header >> 8 & 1) != 0;
	const unsigned field = header >> 9 & 0x7f, bytes = header & 0xff;
	const unsigned width = masked ? bytes / 2 : bytes;
	uint64_t number;

	if (header >> 16 != CV_OF_OXM_CLASS)
		return CV_OF_MATCH_FIELD;
	if (field != CV_OF_OXM_VLAN && field != CV_OF_OXM_TUNNEL)
		return CV_OF_MATCH_FIELD;
	if (bytes != (field == CV_OF_OXM_VLAN ? 2u : 8u) << masked)
		return CV_OF_MATCH_LEN;
	if (match->kind != CV_SCID_NONE)
		return match->kind == (field == CV_OF_OXM_VLAN ? CV_SCID_VLAN : CV_SCID_VNI)
			       ? CV_OF_MATCH_TWICE
			       : CV_OF_MATCH_WILDCARDS;
	if (field == CV_OF_OXM_VLAN) {
		number = cv_of_get16(value);
		if (masked && (cv_of_get16(value + width) & 0x1fff) != 0x1fff)
			return CV_OF_MATCH_MASK;
		if ((number & CV_OF_VLAN_PRESENT) == 0 || number > 0x1fff)
			return CV_OF_MATCH_VALUE;
		*match = (struct cv_of_match){CV_SCID_VLAN, (uint32_t)number & 0xfff};
		return 0;
	}
	number = cv_of_get64(value);
	if (masked && cv_of_get64(value + width) != UINT64_MAX)
		return CV_OF_MATCH_MASK;
	if (number > VNI_MAX)
		return CV_OF_MATCH_VALUE;
	*match = (struct cv_of_match){CV_SCID_VNI, (uint32_t)number};
	return 0;
}

// *used: the bytes that the match takes.
static uint32_t parse_match(
	const uint8_t *at, size_t length, struct cv_of_match *match, size_t *used)
{
	size_t bytes, done = MATCH_HEADER;

	*match = (struct cv_of_match){CV_SCID_NONE, 0};
	if (length < 8)
		return CV_OF_BAD_LEN;
	if (cv_of_get16(at) != MATCH_OXM)
		return CV_OF_MATCH_TYPE;
	bytes = cv_of_get16(at + 2);
	*used = cv_of_padded(bytes);
	if (bytes < MATCH_HEADER || *used > length)
		return CV_OF_MATCH_LEN;
	while (done < bytes) {
		uint32_t header, refused;

		if (bytes - done < 4)
			return CV_OF_MATCH_LEN;
		header = cv_of_get32(at + done);
		done += 4;
		if ((header & 0xff) > bytes - done)
			return CV_OF_MATCH_LEN;
		refused = parse_field(header, at + done, match);
		if (refused != 0)
			return refused;
		done += header & 0xff;
	}
	return 0;
}

// What an output or set-field says of where packets go. *actions: so many have said it.
static uint32_t parse_action(
	unsigned type, const uint8_t *at, size_t bytes, struct cv_of_to *to, unsigned *actions)
{
	switch (type) {
	case OUTPUT:
		if (bytes != OUTPUT_BYTES)
			return CV_OF_ACTION_LEN;
		*to = (struct cv_of_to){.number = cv_of_get32(at + 4)};
		break;
	case SET_FIELD:
		if (bytes < 8 || (at[7] > bytes - 8))
			return CV_OF_SET_LEN;
		if (cv_of_get32(at + 4) != CV_OF_OXM(CV_OF_OXM_TUNNEL, 8))
			return CV_OF_SET_TYPE;
		if (bytes != SET_TUNNEL_BYTES)
			return CV_OF_SET_LEN;
		if (cv_of_get64(at + 8) > NFI_MAX)
			return CV_OF_SET_ARGUMENT;
		*to = (struct cv_of_to){CV_OF_BY_NFI, cv_of_get32(at + 12)};
		break;
	case GROUP:
		if (bytes != 8)
			return CV_OF_ACTION_LEN;
		*to = (struct cv_of_to){CV_OF_BY_GROUP, cv_of_get32(at + 4)};
		break;
	case EXPERIMENTER:
		return CV_OF_ACTION_EXPERIMENTER;
	default:
		return CV_OF_ACTION_TYPE;
	}
	return ++*actions > 1 ? CV_OF_ACTION_TOO_MANY : 0;
}

static uint32_t parse_actions(
	const uint8_t *at, size_t length, struct cv_of_to *to, unsigned *actions)
{
	while (length > 0) {
		size_t bytes;
		uint32_t refused;

		if (length < 8)
			return CV_OF_ACTION_LEN;
		bytes = cv_of_get16(at + 2);
		if (bytes < 8 || bytes % 8 != 0 || bytes > length)
			return CV_OF_ACTION_LEN;
		refused = parse_action(cv_of_get16(at), at, bytes, to, actions);
		if (refused != 0)
			return refused;
		at += bytes;
		length -= bytes;
	}
	return 0;
}

static uint32_t parse_instruction(
	unsigned type, const uint8_t *at, size_t bytes, struct cv_of_to *to, unsigned *actions)
{
	switch (type) {
	case WRITE_ACTIONS:
	case APPLY_ACTIONS:
		return parse_actions(at + 8, bytes - 8, to, actions);
	case CLEAR_ACTIONS:
		return 0; // there are none before
	case EXPERIMENTER:
		return CV_OF_INSTRUCTION_EXPERIMENTER;
	default:
		return type > 0 && type <= LAST_INSTRUCTION ? CV_OF_INSTRUCTION_UNSUPPORTED
							    : CV_OF_INSTRUCTION_UNKNOWN;
	}
}

static uint32_t parse_instructions(const uint8_t *at, size_t length, struct cv_of_to *to)
{
	unsigned actions = 0;

	while (length > 0) {
		size_t bytes;
		uint32_t refused;

		if (length < 8)
			return CV_OF_INSTRUCTION_LEN;
		bytes = cv_of_get16(at + 2);
		if (bytes < 8 || bytes % 8 != 0 || bytes > length)
			return CV_OF_INSTRUCTION_LEN;
		refused = parse_instruction(cv_of_get16(at), at, bytes, to, &actions);
		if (refused != 0)
			return refused;
		at += bytes;
		length -= bytes;
	}
	// Packets without an action would be dropped: the table cannot do that.
	return actions > 0 ? 0 : CV_OF_INSTRUCTION_UNSUPPORTED;
}

uint32_t cv_of_parse_change(const uint8_t *message, size_t length, struct cv_of_change *change)
{
	size_t used;
	uint32_t refused;

	if (length < FLOW_MOD_BYTES + 8)
		return CV_OF_BAD_LEN;
	*change = (struct cv_of_change){
		.cookie = cv_of_get64(message + 8),
		.cookie_mask = cv_of_get64(message + 16),
		.table = message[24],
		.command = message[25],
		.idle = cv_of_get16(message + 26),
		.hard = cv_of_get16(message + 28),
		.priority = cv_of_get16(message + 30),
		.out_port = cv_of_get32(message + 36),
		.out_group = cv_of_get32(message + 40),
		.flags = cv_of_get16(message + 44),
	};
	if (change->command > CV_OF_DELETE_STRICT)
		return CV_OF_BAD_COMMAND;
	refused = parse_match(
		message + FLOW_MOD_BYTES, length - FLOW_MOD_BYTES, &change->match, &used);
	if (refused != 0 || change->command >= CV_OF_DELETE)
		return refused; // what is deleted has no instructions that count
	if (change->flags > ADD_FLAGS)
		return CV_OF_BAD_FLAGS;
	if (cv_of_get32(message + 32) != CV_OF_ANY)
		return CV_OF_BUFFER_UNKNOWN;
	if (change->idle != 0)
		return CV_OF_BAD_TIMEOUT; // entries' packets are not counted
	return parse_instructions(
		message + FLOW_MOD_BYTES + used, length - FLOW_MOD_BYTES - used, &change->to);
}

static uint32_t parse_bucket(const uint8_t *at, size_t bytes, struct cv_of_to *to, uint16_t *weight)
{
	unsigned actions = 0;
	const uint32_t refused =
		parse_actions(at + BUCKET_BYTES, bytes - BUCKET_BYTES, to, &actions);

	*weight = cv_of_get16(at + 2);
	if (refused != 0)
		return refused;
	if (cv_of_get32(at + 4) != CV_OF_ANY || cv_of_get32(at + 8) != CV_OF_ANY)
		return CV_OF_NO_WATCHING;
	if (actions == 0)
		return CV_OF_BAD_BUCKET; // its packets would be dropped
	if (to->by == CV_OF_BY_GROUP)
		return CV_OF_CHAINED_GROUP;
	return *weight > 0 ? 0 : CV_OF_BAD_WEIGHT;
}

uint32_t cv_of_parse_group(const uint8_t *message, size_t length, struct cv_of_group_change *change)
{
	const uint8_t *at = message + GROUP_MOD_BYTES;

	if (length < GROUP_MOD_BYTES)
		return CV_OF_BAD_LEN;
	change->command = cv_of_get16(message + 8);
	change->id = cv_of_get32(message + 12);
	change->buckets_count = 0;
	if (change->command > CV_OF_GROUP_DELETE)
		return CV_OF_GROUP_COMMAND;
	if (change->command == CV_OF_GROUP_DELETE)
		return 0;
	if (change->id > CV_OF_GROUP_ID_MAX)
		return CV_OF_INVALID_GROUP;
	if (message[10] != CV_OF_SELECT)
		return CV_OF_GROUP_TYPE;
	length -= GROUP_MOD_BYTES;
	while (length > 0) {
		const unsigned i = change->buckets_count;
		size_t bytes;
		uint32_t refused;

		if (length < BUCKET_BYTES)
			return CV_OF_BAD_BUCKET;
		bytes = cv_of_get16(at);
		if (bytes < BUCKET_BYTES || bytes % 8 != 0 || bytes > length)
			return CV_OF_BAD_BUCKET;
		if (i == CV_SPREAD_MEMBERS_MAX)
			return CV_OF_OUT_OF_BUCKETS;
		refused =
			parse_bucket(at, bytes, &change->buckets[i].to, &change->buckets[i].weight);
		if (refused != 0)
			return refused;
		change->buckets_count++;
		at += bytes;
		length -= bytes;
	}
	// Packets of a group without a bucket would be dropped.
	return change->buckets_count > 0 ? 0 : CV_OF_BAD_BUCKET;
}

uint32_t cv_of_parse_selection(const uint8_t *body, size_t length, struct cv_of_change *selection)
{
	size_t used;

	if (length < SELECTION_BYTES + 8)
		return CV_OF_BAD_LEN;
	*selection = (struct cv_of_change){
		.table = body[0],
		.out_port = cv_of_get32(body + 4),
		.out_group = cv_of_get32(body + 8),
		.cookie = cv_of_get64(body + 16),
		.cookie_mask = cv_of_get64(body + 24),
	};
	return parse_match(
		body + SELECTION_BYTES, length - SELECTION_BYTES, &selection->match, &used);
}

size_t cv_of_write_match(uint8_t *at, const struct cv_of_match *match)
{
	size_t bytes = MATCH_HEADER;

	memset(at, 0, CV_OF_MATCH_BYTES);
	if (match->kind == CV_SCID_VLAN) {
		cv_of_put32(at + 4, CV_OF_OXM(CV_OF_OXM_VLAN, 2));
		cv_of_put16(at + 8, (uint16_t)(CV_OF_VLAN_PRESENT | match->id));
		bytes += 6;
	} else if (match->kind == CV_SCID_VNI) {
		cv_of_put32(at + 4, CV_OF_OXM(CV_OF_OXM_TUNNEL, 8));
		cv_of_put64(at + 8, match->id);
		bytes += 12;
	}
	cv_of_put16(at, MATCH_OXM);
	cv_of_put16(at + 2, (uint16_t)bytes);
	return cv_of_padded(bytes);
}
