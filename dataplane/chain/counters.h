// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What is counted, and by whom: every counter has one writer, the worker that owns it, and any
// number of readers that may be an update behind. Nothing is counted in two places.
#ifndef CV_COUNTERS_H
#define CV_COUNTERS_H

#include <stdint.h>

#include <rte_common.h>

#include "chain/latency.h"
#include "chain/nf.h"
#include "convoy/walk.h"
#include "stats/counter.h"

// Why the node itself, not a function of it, dropped a packet.
enum cv_drop_reason {
	CV_DROP_NO_CHAIN, // no chain of the port matches it
	CV_DROP_SEGMENTED, // scattered over several buffers and too long to be put into one
	// Larger than the MTU of the port it should leave by, or than fits into a convoy to a next
	// hop that encapsulates.
	CV_DROP_TOO_BIG,
	CV_DROP_TX_FULL, // the port it should leave by took nothing for some time
	// The next function of the pipeline is behind, and others share the port; or the worker
	// that keeps the packet's flow is.
	CV_DROP_RING_FULL,
	CV_DROP_BAD_CONVOY, // a malformed convoy, of unknown many packets: counts as one
	CV_DROP_OTHERS_CONVOY, // a convoy to another address than the port's: counts as one
	CV_DROP_UNKNOWN_SENDER, // a convoy from an address not in the port's list: counts as one
	CV_DROP_UNKNOWN_NFI, // a convoy to an NFI-ID that no chain matches: counts as one
	CV_DROP_LOOKS_LIKE_CONVOY, // looks like a convoy, but fits into none, or has no next hop
	CV_DROP_LOST_FRAGMENT, // the rest of a packet, whose beginning did not come right before
	CV_DROP_NO_BUFFER, // the pool had none left to put it into
	CV_DROP_REASONS,
};

extern const char *const cv_drop_reason_names[CV_DROP_REASONS];

// One worker's share of one function.
struct cv_nf_counters {
	uint64_t packets; // that it was shown
	uint64_t bytes;
	uint64_t drops[CV_DROPS_MAX];
	uint64_t busy_cycles; // TSC ticks spent in process() and in sorting out its drops
	uint64_t originated; // packets that it made
	uint64_t absorbed; // packets that were for it
	uint64_t held, released; // packets that it kept; that it gave back or dropped later
	uint64_t copied_out; // packets copied out of a shared buffer, to resize or to keep them
	uint64_t outputs[CV_OUTPUTS_MAX]; // packets, by output
	// From when packets came to it until those that go on do; in the ring before it.
	struct cv_latency latency, ring_latency;
} __rte_cache_aligned;

#define CV_RX_BURST_BUCKETS 9 // up to 256 frames, CV_VIEWS_MAX

// One worker's share of one port.
struct cv_port_counters {
	uint64_t rx_packets, rx_frames, rx_bytes; // a convoy is one frame of several packets;
	uint64_t tx_packets, tx_frames, tx_bytes; // bytes are those of frames
	uint64_t drops[CV_DROP_REASONS]; // packets, at rx or tx
	// Receptions: of 1 frame, of 2, of up to 4, 8, ... The sum of all frames is rx_frames.
	uint64_t rx_bursts[CV_RX_BURST_BUCKETS];
	// Since the port was asked before: as long the first of them may have waited in it. From when
	// it was asked until its packets came to their path. From there until all was sent.
	struct cv_latency rx_wait, rx_latency, tx_latency;
} __rte_cache_aligned;

// Frames of several packets to a next hop that compresses, and compressed ones that were received.
struct cv_compression_counters {
	uint64_t frames; // compressed
	uint64_t not_smaller; // sent as they are
	uint64_t bytes_before, bytes_after; // of whole frames, before compression and after it
};

// One worker's share of the frames that came in by a port, or that went to a next hop: how many
// had how many packets. One packet: sent as it is, or in a convoy of its own because it looks like
// a convoy or its next hop encapsulates.
struct cv_frame_counters {
	uint64_t sizes[CV_CONVOY_PACKETS_MAX + 1]; // frames, by packets
	uint64_t refused[CV_CONVOY_REASONS]; // received only
	struct cv_compression_counters compression;
} __rte_cache_aligned;

#endif
