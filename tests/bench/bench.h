// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What bench-nf measures: a subject does some work on a burst of mbufs, as often as it is told.
// Everything that is alike for all subjects (packets, caches, clocks, repeats) is in bench_nf.c.
#ifndef CV_BENCH_H
#define CV_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/error.h"
#include "packet/view.h"
#include "tests/bench/flows.h"
#include "tests/bench/traffic.h"

struct bench_subject {
	// One burst of n <= CV_BURST_MAX packets, which stay the caller's. Returns how many of them
	// would have gone on: every packet of the traffic is one that should.
	uint16_t (*run)(void *state, struct rte_mbuf **packets, uint16_t n);
	// Waits until nothing of the packets is in use any more; NULL: nothing ever is.
	void (*settle)(void *state);
	// TSC ticks that the node itself would report as the functions' busy cycles, since the
	// beginning; NULL: it would not know.
	uint64_t (*busy)(const void *state);
	// Whose packets it gets, which come in by port 0 (forward) and port 1 (replies); NULL: those
	// of the tables.
	struct bench_flows *flows;
	// Ends the flows that bench_flows_open_fresh() opened. Returns TSC ticks for each, and from
	// which TSC on others may be opened.
	double (*end_fresh)(void *state, uint64_t *again);
	// Writes what is behind the packet's IP header, which is there; NULL: that of the tables stays.
	void (*write)(uint64_t i, uint8_t *frame, uint16_t bytes);
	bool uses_up; // packets must be written anew before they come again
	size_t table_bytes; // of the flow table, if it is neither in DPDK's memory nor malloc()'s
	void (*destroy)(void *state);
	void *state;
};

// Each fills in a subject, or returns -1 with error set.

// The functions called names (a path, in this order) behind the node's own path. One name that does
// not exist is an error. No name at all is the empty path: making views of packets.
int bench_path_create(struct bench_subject *subject, const char *const *names, unsigned names_count,
	const struct bench_tables *tables, struct cv_error *error);

// The one function called name, of this configuration.
int bench_path_create_of(struct bench_subject *subject, const char *name, const json_t *config,
	struct cv_error *error);

// The function nat64, from IPv4 to IPv6.
int bench_nat64_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// The function vpn, which encrypts, one packet each or as many as fit; and the cipher's bare call on as many bytes where they lie.
int bench_vpn_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);
int bench_vpn_aggfrag_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);
int bench_raw_vpn_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// The function cache with answers to all that is asked.
int bench_cache_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// The function ids with so many patterns; raw: Hyperscan's bare call on the same payloads.
int bench_ids_create(
	struct bench_subject *subject, unsigned patterns, bool raw, struct cv_error *error);

// The ring between two stages of a pipeline, with both ends on this core: views made of packets,
// pushed to a ring, popped again. Less the empty path, it is what aggregating costs when nothing
// moves from one core's cache to another's.
int bench_ring_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// The ring between two stages of a pipeline on two cores, of which the other is given: there the
// packets go through l2fwd. Busy cycles are the other core's.
int bench_pipeline_create(struct bench_subject *subject, const struct bench_tables *tables,
	int core, struct cv_error *error);

// The path of a path's state, for a worker of its own: packets leave by port 1.
struct cv_path;
const struct cv_path *bench_path_of(void *state);

// The burst of a path's state, and the functions with what an earlier stage put into it.
struct cv_burst;
struct cv_burst *bench_path_burst(void *state);
void bench_path_continue(void *state);

// What DPDK's l3fwd does with its LPM: look up four at a time, rewrite, on mbufs. The same routes.
int bench_reference_router_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// What DPDK's l3fwd-acl does: classify headers where they lie, on mbufs. The same rules.
int bench_reference_firewall_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error);

// The stateful functions called names, NULL at the end of fewer than four, behind one look-up.
int bench_stateful_create(struct bench_subject *subject, const char *const *names,
	struct bench_flows *flows, struct cv_error *error);

// What plain DPDK offers for the same flows: rte_hash, and rte_meter.
int bench_reference_flows_create(struct bench_subject *subject, bool rewrites, bool meters,
	struct bench_flows *flows, struct cv_error *error);

#endif
