// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A hop: a burst of packets goes through the functions of a path. What functions must not care
// about happens here, once: which buffer a view belongs to, dropping, freeing, counting.
#ifndef CV_HOP_H
#define CV_HOP_H

#include <rte_mbuf.h>

#include "buffers.h"
#include "counters.h"
#include "nf.h"
#include "walk.h"

// Views that a burst has room for: a whole convoy more than are enough to stop loading.
#define CV_BURST_VIEWS (CV_VIEWS_MAX + CV_CONVOY_PACKETS_MAX)

// Packets on their way through a path. The hop owns the buffers that they lie in.
struct cv_burst {
	uint16_t n; // packets, each with a view
	uint16_t longest; // no packet is longer than this with its tunnel, bytes
	uint16_t shortest; // none is shorter
	bool singly; // all came as frames of their own, none in a convoy
	// Where a buffer holds several packets nothing but their lengths is between them. False: it
	// is not known.
	bool whole;
	uint32_t bytes; // that the views show, all together
	struct cv_buffers buffers;
	struct cv_view views[CV_BURST_VIEWS];
};

// One function of a path, as one worker runs it.
struct cv_step {
	uint16_t (*process)(void *instance, unsigned worker, struct cv_view *views,
		uint8_t *verdicts, uint16_t n);
	void *instance;
	struct cv_nf_counters *counters; // this worker's
};

struct cv_path {
	unsigned length;
	struct cv_step *steps;
};

// What a port that carries convoys is received with.
struct cv_convoy_rx {
	rte_be16_t udp_port; // of convoys
	uint8_t address_len; // 4, 16; 0: convoys to any address are taken
	uint8_t address[16];
	struct cv_frame_counters *counters; // this worker's
};

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

// Sets bytes, longest and shortest, from the views.
void cv_burst_measure(struct cv_burst *burst);

// The packets whose class is this one, of a burst that has others as well, as a burst of its own.
// Those that share a buffer with packets of another class are copied, into buffers of the pool;
// where it has none they are dropped and counted. After the last class, cv_burst_picked() frees the
// buffers that were copied from.
void cv_burst_pick(const struct cv_burst *from, const uint8_t *classes, uint8_t class,
	struct cv_burst *to, struct rte_mempool *pool, struct cv_port_counters *counters);
void cv_burst_picked(const struct cv_burst *from, const uint8_t *classes);

// Runs the burst through the path. Afterwards burst->n packets are left, in their order; the
// others were counted at the function that dropped them, and buffers that nothing is left in freed.
void cv_path_run(const struct cv_path *path, unsigned worker, struct cv_burst *burst);

#endif
