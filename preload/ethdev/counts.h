// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the library did, queue by queue: each queue has one writer, and readers may be a little
// behind. Shown when the program ends, and over its telemetry as /convoy/preload.
#ifndef CV_ETHDEV_COUNTS_H
#define CV_ETHDEV_COUNTS_H

#include <stdint.h>
#include <stdio.h>

#include "convoy/walk.h"

struct cv_rx_counts {
	uint64_t frames; // that the driver gave
	uint64_t convoys; // of them, that add up
	uint64_t pkts; // that the program got: those in convoys, and the other frames
	uint64_t viewed; // packets shown where they lie
	uint64_t copied; // packets copied into buffers of their own
	uint64_t no_buffer; // packets lost for want of one
	uint64_t refused[CV_CONVOY_REASONS]; // frames, dropped whole
};

struct cv_tx_counts {
	uint64_t pkts; // that the program gave, and the driver took
	uint64_t frames; // that the driver took
	uint64_t convoys; // of them
	uint64_t in_place; // packets whose convoy was sent as it came
	uint64_t repacked; // packets copied into a new convoy
	uint64_t unaggregated; // packets sent as they are
	uint64_t no_buffer; // times there was none for a new convoy
	uint64_t looks_like_convoy; // packets dropped: others would take them for convoys
};

void cv_rx_counts_add(struct cv_rx_counts *sum, const struct cv_rx_counts *counts);
void cv_tx_counts_add(struct cv_tx_counts *sum, const struct cv_tx_counts *counts);

// One JSON object, without a line end.
void cv_counts_print(
	FILE *file, uint16_t port, const struct cv_rx_counts *rx, const struct cv_tx_counts *tx);

#endif
