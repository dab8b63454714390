// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where the packet path tells a trace what becomes of packets. These are called where there is
// one only (trace_here.h).
#ifndef CV_TRACE_HOOKS_H
#define CV_TRACE_HOOKS_H

#include "chain/burst.h"
#include "chain/trace.h"
#include "chain/trace_here.h"

// A burst enters a path at a step, and has gone through. The packets it takes are known in between.
void cv_trace_begin(const struct cv_path *path, unsigned step, const struct cv_burst *burst,
	enum cv_trace_origin origin);
void cv_trace_end(void);

// Whether some packet is on its way. Of a sample most bursts have none.
bool cv_trace_follows(void);

// Before and after a step's process(); cycles: that it took.
void cv_trace_before(const struct cv_path *path, unsigned step, const struct cv_nf_worker *worker,
	const struct cv_burst *burst);
void cv_trace_after(const struct cv_burst *burst, const uint8_t *verdicts, uint64_t cycles);

// Packets of a class were picked from a burst into another, some of them copied.
void cv_trace_picked(const struct cv_burst *from, const uint8_t *classes, uint8_t class,
	const struct cv_burst *to);

// A burst comes to the end of its path.
void cv_trace_leave(const struct cv_path *path, const struct cv_burst *burst);

// The node drops packets: on their way, or before it.
void cv_trace_dropped(const struct cv_view *views, unsigned n, enum cv_drop_reason why);
void cv_trace_refused(const struct rte_mbuf *frame, uint8_t in, enum cv_drop_reason why);
void cv_trace_unsent(struct rte_mbuf *const *frames, unsigned n);

// A function drops a packet that it held.
void cv_trace_held_dropped(
	const struct cv_path *path, unsigned step, const struct cv_view *view, unsigned reason);

struct cv_next_hop_table;

// Packets go to next hops of a table (NULL: none), one for each or one for all.
void cv_trace_next_hops(const struct cv_next_hop_table *table, const struct cv_burst *burst,
	const uint16_t *next_hops, uint16_t all);

// A packet that leaves was copied.
void cv_trace_moved(const struct cv_view *from, const uint8_t *to);

// A packet was cut: what is known of it is its rest from now on.
void cv_trace_cut(const struct cv_view *packet, const struct cv_view *rest);

// A convoy to a next hop was made of count packets, which lie from begin to end, each behind its length.
void cv_trace_convoy(const struct rte_mbuf *frame, uint16_t next_hop, const uint8_t *begin,
	const uint8_t *end, unsigned count);

// Whether packets that are traced have come to the end of their path, or are on their way.
bool cv_trace_has_packets(void);

// All was sent that there was: the end of a poll iteration.
void cv_trace_flush(void);

#endif
