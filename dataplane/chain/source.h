// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A source of a worker: a port's queue, or the ring behind the path before. What it brings goes
// through the paths behind it, and on its way.
#ifndef CV_SOURCE_H
#define CV_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/classify.h"
#include "chain/counters.h"
#include "chain/path.h"
#include "chain/ring.h"
#include "chain/rx.h"
#include "chain/tx.h"
#include "port/port.h"

struct cv_worker;

// Convoys that one poll takes from a source at most: what they can hold must fit into a ring. Where
// none follows and few packets share a frame it takes CV_BURST_MAX, to share the cost of a poll.
#define CV_CONVOYS_MAX 32
#define CV_CONVOYS_VIEWS (CV_CONVOYS_MAX * CV_CONVOY_PACKETS_MAX)

// A port's queue or a ring, and the paths its packets go to.
struct cv_source {
	struct cv_port *port; // NULL: ring
	uint16_t queue;
	uint8_t in; // the port's index
	struct cv_ring *ring;
	bool handed; // it is another worker's handoff; paths by what that knows them by
	bool moves; // other workers have it too, and one of all polls it
	bool spare; // another worker's, as the plan has it
	const struct cv_convoy_rx *convoys; // a port's that carries convoys; NULL: it does not
	struct cv_convoy_rx *by_nfi; // that, if the classifier knows NFI-IDs; else NULL
	// Polls without a convoy since the last one that came by a port that gives views: after
	// some, packets are received as views, which is cheaper, until convoys come.
	uint16_t plain_polls;
	bool sparse; // the frames of the last poll that brought some had few packets each
	struct cv_classifier classifier; // a port's: classes are indices of paths
	bool one_path; // no packet needs classifying
	uint8_t until_drawn; // bursts that are passed over until the next that is drawn (latency.h)
	// Packets come in a buffer each: a port behind the source sends the buffers, or functions make
	// packets longer.
	bool by_buffer;
	bool waits; // does not receive while a sink has no room: nothing is lost in the node
	const struct cv_path **paths; // by class
	unsigned paths_count;
};

// Receives from the source once, unless it waits for room behind it, and takes what came through
// its paths. ports: port queues are polled, too. Returns how many packets or frames came.
uint16_t cv_source_poll(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst, bool ports);

#endif
