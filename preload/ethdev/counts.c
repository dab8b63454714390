// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/counts.h"

#include <inttypes.h>

void cv_rx_counts_add(struct cv_rx_counts *sum, const struct cv_rx_counts *counts)
{
	sum->frames += counts->frames;
	sum->convoys += counts->convoys;
	sum->pkts += counts->pkts;
	sum->viewed += counts->viewed;
	sum->copied += counts->copied;
	sum->no_buffer += counts->no_buffer;
	for (int i = 0; i < CV_CONVOY_REASONS; i++)
		sum->refused[i] += counts->refused[i];
}

void cv_tx_counts_add(struct cv_tx_counts *sum, const struct cv_tx_counts *counts)
{
	sum->pkts += counts->pkts;
	sum->frames += counts->frames;
	sum->convoys += counts->convoys;
	sum->in_place += counts->in_place;
	sum->repacked += counts->repacked;
	sum->unaggregated += counts->unaggregated;
	sum->no_buffer += counts->no_buffer;
	sum->looks_like_convoy += counts->looks_like_convoy;
}

void cv_counts_print(
	FILE *file, uint16_t port, const struct cv_rx_counts *rx, const struct cv_tx_counts *tx)
{
	const char *comma = "";

	fprintf(file,
		"{\"port\":%u,\"rx\":{\"frames\":%" PRIu64 ",\"convoys\":%" PRIu64
		",\"pkts\":%" PRIu64 ",\"viewed\":%" PRIu64 ",\"copied\":%" PRIu64
		",\"no_buffer\":%" PRIu64 ",\"refused\":{",
		port, rx->frames, rx->convoys, rx->pkts, rx->viewed, rx->copied, rx->no_buffer);
	for (int i = CV_CONVOY_NOT_A_CONVOY + 1; i < CV_CONVOY_REASONS; i++) {
		if (rx->refused[i] == 0)
			continue;
		fprintf(file, "%s\"%s\":%" PRIu64, comma, cv_convoy_reason_names[i],
			rx->refused[i]);
		comma = ",";
	}
	fprintf(file,
		"}},\"tx\":{\"pkts\":%" PRIu64 ",\"frames\":%" PRIu64 ",\"convoys\":%" PRIu64
		",\"in_place\":%" PRIu64 ",\"repacked\":%" PRIu64 ",\"unaggregated\":%" PRIu64
		",\"no_buffer\":%" PRIu64 ",\"looks_like_convoy\":%" PRIu64 "}}",
		tx->pkts, tx->frames, tx->convoys, tx->in_place, tx->repacked, tx->unaggregated,
		tx->no_buffer, tx->looks_like_convoy);
}
