// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What controllers ask for, out of bytes that may be anything: checked whole before anything of it is
// done. All that this node's table cannot do is refused by the specification's own error.
#ifndef CV_OF_PARSE_H
#define CV_OF_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convoy/next_hop.h"
#include "daemon/openflow/wire.h"

// An SC-ID, or everything.
struct cv_of_match {
	enum cv_scid_kind kind; // CV_SCID_NONE: all packets
	uint32_t id;
};

// Where packets are to go: a next hop by its number, the one that has an NFI-ID, or those of a group.
struct cv_of_to {
	enum { CV_OF_BY_PORT, CV_OF_BY_NFI, CV_OF_BY_GROUP } by;
	uint32_t number; // of an OpenFlow port, the NFI-ID, or the group's id
};

// A GROUP_MOD.
struct cv_of_group_change {
	uint16_t command; // enum cv_of_group_command
	uint16_t buckets_count;
	uint32_t id;
	struct {
		struct cv_of_to to; // not a group
		uint16_t weight;
	} buckets[CV_SPREAD_MEMBERS_MAX];
};

// A FLOW_MOD, and of it what selects entries: so do requests of statistics.
struct cv_of_change {
	uint8_t command; // enum cv_of_command
	uint8_t table; // CV_OF_ALL_TABLES
	uint16_t priority, idle, hard, flags;
	uint64_t cookie, cookie_mask;
	uint32_t out_port, out_group;
	struct cv_of_match match;
	struct cv_of_to to; // of what is added or modified
};

// length: of the whole message, whose header has been looked at. 0, or why it is refused.
uint32_t cv_of_parse_change(const uint8_t *message, size_t length, struct cv_of_change *change);

// The same for GROUP_MOD. What is deleted has no buckets that count.
uint32_t cv_of_parse_group(
	const uint8_t *message, size_t length, struct cv_of_group_change *change);

// The body of a request for flows or their sum. 0, or why it is refused.
uint32_t cv_of_parse_selection(const uint8_t *body, size_t length, struct cv_of_change *selection);

// Writes a match, at most CV_OF_MATCH_BYTES; how many bytes with what fills it up to eight.
#define CV_OF_MATCH_BYTES 16u
size_t cv_of_write_match(uint8_t *at, const struct cv_of_match *match);

#endif
