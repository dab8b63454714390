// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Receive: from what a port gave to a burst of packets, each with a view; convoys are disaggregated
// in place. Everything that came is counted here.
#ifndef CV_RX_H
#define CV_RX_H

#include "chain/classify.h"
#include "chain/path.h"
#include "compress/compress.h"
#include "convoy/fragment.h"

#define CV_CONVOY_SENDERS_MAX 16

struct cv_convoy_address {
	uint8_t len; // 4, 16; 0: none
	uint8_t bytes[16];
};

// What a port that carries convoys is received with.
struct cv_convoy_rx {
	rte_be16_t udp_port; // of convoys
	struct cv_convoy_address address; // none: convoys to any are taken
	struct cv_convoy_address senders[CV_CONVOY_SENDERS_MAX]; // whose convoys are taken
	uint8_t senders_count; // 0: anybody's
	bool copies; // the port: what it gives was just written by this core, and is near
	struct cv_frame_counters *counters; // this worker's
	struct cv_expander expander; // of compressed frames; off: they are refused by their type
	struct cv_reassembly *reassembly; // NULL: frames of fragments are refused by their type
	struct rte_mempool *pool; // for what these expand to, and packets that came in two
	// Where chains match NFI-IDs: their classes, which views get in place of the port out;
	// convoys to others are refused. NULL: NFI-IDs are not looked at.
	const struct cv_classifier *by_nfi;
	uint64_t *nfi_convoys; // convoys that were taken, this worker's [CV_NFIS], by NFI-ID
};

#define CV_NFIS (UINT16_MAX + 1u)

// Makes a burst of n <= CV_BURST_MAX received packets, which from now on belong to it. All came
// in by port in and will leave by port out unless a function says otherwise. A packet in several
// segments is made one; where its buffer has no room for that it is freed. Counts all of them as
// received, and those freed as segmented.
void cv_burst_load(struct cv_burst *burst, struct rte_mbuf **packets, uint16_t n, uint8_t in,
	uint8_t out, struct cv_port_counters *counters);

// The same of frames of which some are convoys: the burst has the packets in them, where they lie.
// Stops when the burst is full; returns how many frames it took, one at least where n > 0. A frame
// that is refused is freed, and counted as one packet.
uint16_t cv_burst_load_convoys(struct cv_burst *burst, struct rte_mbuf **frames, uint16_t n,
	uint8_t in, uint8_t out, const struct cv_convoy_rx *rx, struct cv_port_counters *counters);

// The same of n views that a port gave (rx_views), already in the burst with their buffers.
void cv_burst_take_views(struct cv_burst *burst, uint16_t n, uint8_t in, uint8_t out,
	struct cv_port_counters *counters);

// May convoys be among views that a port gave? Then they must be disaggregated.
bool cv_views_have_convoys(const struct cv_view *views, uint16_t n, rte_be16_t udp_port);

// Turns n such views into frames, of which there may be CV_VIEWS_MAX, for cv_burst_load_convoys().
// Those that share a buffer are copied, into buffers of the pool; where it has none they are dropped
// and counted. Returns how many frames there are.
uint16_t cv_burst_to_frames(struct cv_burst *burst, uint16_t n, struct rte_mbuf **frames,
	struct rte_mempool *pool, struct cv_port_counters *counters);

#endif
