// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows, their packets, and how they are opened: for functions that remember. Inside hosts, 16 flows
// each, speak to one service outside; half of the flows are TCP. Bursts are of one direction each,
// forward and reply in turn, as two ports give them; each known flow is as likely as the others.
//
// What the answers to a flow look like depends on what was made of its first packet, which is kept.
#ifndef CV_BENCH_FLOWS_H
#define CV_BENCH_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "packet/error.h"

#define BENCH_FLOWS_MAX 16000000u
#define BENCH_FLOWS_FRESH 4096u // new ones in each repeat, beside those that are known
#define BENCH_FLOWS_TABLE(known) ((known) + BENCH_FLOWS_FRESH + 64) // for how many there is room

struct bench_arena;
struct bench_subject;

struct bench_flows {
	uint32_t known;
	// Addresses and ports, as in the packet, with which each known flow's packets leave.
	struct bench_flow_end {
		uint8_t bytes[12];
	} * end;
	uint64_t chance;
};

// Returns 0, or -1 with error set.
int bench_flows_create(struct bench_flows *flows, uint32_t known, struct cv_error *error);
void bench_flows_destroy(struct bench_flows *flows);

// Writes the packet of some known flow, BENCH_FRAME_BYTES.
void bench_flows_write(struct bench_flows *flows, bool reply, uint8_t *frame);

// Opens all known flows: a packet forward, one back, one forward. Returns 0, or -1 with error set.
int bench_flows_open(struct bench_flows *flows, struct bench_arena *arena,
	const struct bench_subject *subject, struct cv_error *error);

// Opens BENCH_FLOWS_FRESH flows, in bursts that alternate with such of known flows. Returns TSC ticks
// for each, the subject's own where it knows them, or -1 with error set. The subject ends them.
double bench_flows_open_fresh(struct bench_flows *flows, struct bench_arena *arena,
	const struct bench_subject *subject, struct cv_error *error);

// The configuration of a function for these flows: a new reference. Port 0 is "left", inside, port 1
// "right".
json_t *bench_flows_config(const char *function, uint32_t known);

#endif
