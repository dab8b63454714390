// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include <rte_telemetry.h>

#include "preload/ethdev/hook.h"

static const struct cv_ethdev_config *config; // NULL: the library was not loaded

void cv_report_print(FILE *file)
{
	const char *comma = "";

	fprintf(file, "{\"schema\":\"convoy.preload/2\",\"mode\":\"%s\",\"ports\":[",
		cv_ethdev_mode_name(config->mode));
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct cv_rx_counts rx;
		struct cv_tx_counts tx;

		if (!cv_hook_counts(id, &rx, &tx))
			continue;
		fputs(comma, file);
		cv_counts_print(file, id, &rx, &tx);
		comma = ",";
	}
	fputs("]}", file);
}

static int answer_telemetry(const char *command, const char *parameters, struct rte_tel_data *data)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (file == NULL)
		return -1;
	cv_report_print(file);
	fclose(file);
	rte_tel_data_string(data, text);
	free(text);
	return 0;
}

void cv_report_begin(const struct cv_ethdev_config *of)
{
	config = of;
}

void cv_report_hooked(uint16_t id, const struct rte_eth_dev_info *info)
{
	static bool registered;
	char name[RTE_ETH_NAME_MAX_LEN] = "?";

	if (!registered)
		rte_telemetry_register_cmd("/convoy/preload", answer_telemetry,
			"What the preloaded libconvoy_ethdev did. No parameters");
	registered = true;
	rte_eth_dev_get_name_by_port(id, name);
	fprintf(stderr,
		"convoy: ethdev: port %u (%s): %u receive and %u transmit queue(s), mode %s, "
		"convoys of up to %u bytes sent to %s\n",
		id, name, info->nb_rx_queues, info->nb_tx_queues, cv_ethdev_mode_name(config->mode),
		config->mtu,
		config->fixed ? "the next hop given"
			      : "where a packet's came from, if by that port");
}

static void summarize(uint16_t id, const struct cv_rx_counts *rx, const struct cv_tx_counts *tx)
{
	uint64_t refused = 0;

	for (int i = 0; i < CV_CONVOY_REASONS; i++)
		refused += rx->refused[i];
	fprintf(stderr,
		"convoy: ethdev: port %u: received %" PRIu64 " packets in %" PRIu64
		" frames, %" PRIu64 " of them convoys (%" PRIu64 " refused, %" PRIu64
		" packets lost without a buffer); sent %" PRIu64 " in %" PRIu64 " frames, %" PRIu64
		" of them convoys: %" PRIu64 " in place, %" PRIu64 " repacked, %" PRIu64
		" unaggregated; %" PRIu64 " dropped that looked like convoys\n",
		id, rx->pkts, rx->frames, rx->convoys, refused, rx->no_buffer, tx->pkts, tx->frames,
		tx->convoys, tx->in_place, tx->repacked, tx->unaggregated, tx->looks_like_convoy);
}

// It may have had its reasons; or rte_pktmbuf_prepend() gave it none of the room it needs.
void cv_report_advice(FILE *file, uint64_t viewed, uint64_t received, uint64_t sent)
{
	if (viewed > 0 && sent < received / 2)
		fprintf(file,
			"convoy: ethdev: the program sent %" PRIu64 " of %" PRIu64
			" packets: views have no headroom; if it puts headers in front of them, "
			"it needs --mode auto or copy\n",
			sent, received);
}

__attribute__((destructor)) static void report(void)
{
	uint64_t viewed = 0, received = 0, sent = 0;
	FILE *file;

	if (config == NULL)
		return;
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct cv_rx_counts rx;
		struct cv_tx_counts tx;

		if (!cv_hook_counts(id, &rx, &tx))
			continue;
		summarize(id, &rx, &tx);
		viewed += rx.viewed;
		received += rx.pkts;
		sent += tx.pkts;
	}
	if (config->mode == CV_ETHDEV_VIEW)
		cv_report_advice(stderr, viewed, received, sent);
	if (config->counts[0] == '\0')
		return;
	file = fopen(config->counts, "w");
	if (file == NULL) {
		fprintf(stderr, "convoy: ethdev: counts=%s: cannot be written\n", config->counts);
		return;
	}
	cv_report_print(file);
	fputc('\n', file);
	fclose(file);
}
