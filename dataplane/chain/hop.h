// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A hop: a burst of packets goes through the functions of a path. What functions must not care
// about happens here, once: which buffer a view belongs to, dropping, freeing, counting.
#ifndef CV_HOP_H
#define CV_HOP_H

#include <rte_mbuf.h>

#include "counters.h"
#include "nf.h"

// Packets on their way through a path. The hop owns them; views[i] shows packets[i].
struct cv_burst {
	uint16_t n;
	uint16_t longest; // no packet is longer than this, bytes
	uint32_t bytes; // of all n
	struct rte_mbuf *packets[CV_BURST_MAX];
	struct cv_view views[CV_BURST_MAX];
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

// Makes a burst of n <= CV_BURST_MAX received packets, which from now on belong to it. All came
// in by port in and will leave by port out unless a function says otherwise. A packet in several
// segments is made one; where its buffer has no room for that it is freed. Counts all of them as
// received, and those freed as segmented.
void cv_burst_load(struct cv_burst *burst, struct rte_mbuf **packets, uint16_t n, uint8_t in,
	uint8_t out, struct cv_port_counters *counters);

// Runs the burst through the path. Afterwards burst->n packets are left, in their order; the
// others were freed and counted at the function that dropped them.
void cv_path_run(const struct cv_path *path, unsigned worker, struct cv_burst *burst);

#endif
