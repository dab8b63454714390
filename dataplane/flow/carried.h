// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a zone's memory ends with: what a zone knows of its flows beside them, written when they go over
// to another process (flow/handover.h).
#ifndef CV_FLOW_CARRIED_H
#define CV_FLOW_CARRIED_H

#include <stdint.h>

#include "flow/fragments.h"
#include "flow/hash.h"
#include "flow/path.h"
#include "flow/ways.h"

struct cv_flow_carried_family {
	uint32_t used, high, free, cursor; // struct cv_flow_table
	uint32_t denied, due; // struct cv_flow_zone
};

struct cv_flow_carried {
	uint64_t layout; // a digest
	uint32_t is_whole; // 1: all of the rest is there
	uint32_t groups_count;
	uint8_t order[CV_FLOW_GROUPS_MAX][CV_FLOW_MEMBERS_MAX];
	struct cv_flow_secret
		homes; // by which several workers share flows (flow/home.h); else zeros
	uint32_t now, aged, epoch;
	struct cv_flow_carried_family family[2];
	struct cv_flow_counters counters;
	struct cv_flow_secret secret;
	struct cv_flow_fragments fragments;
	uint32_t has_ways; // 0: ways is not written
	struct cv_flow_ways ways;
};

#endif
