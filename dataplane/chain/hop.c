// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "hop.h"

// Headers are read this many packets after they were asked for.
#define PREFETCH_AHEAD 8u

const char *const cv_hop_drop_names[CV_HOP_DROPS] = {
	[CV_HOP_NO_CHAIN] = "no_chain",
	[CV_HOP_SEGMENTED] = "segmented",
	[CV_HOP_TOO_BIG] = "too_big",
	[CV_HOP_TX_FULL] = "tx_full",
	[CV_HOP_RING_FULL] = "ring_full",
};

// Puts a packet that is scattered over several buffers into one; false: it is freed, and counted.
static __rte_noinline bool gather(struct rte_mbuf *packet, struct cv_port_counters *counters)
{
	const uint32_t bytes = packet->pkt_len;

	if (rte_pktmbuf_linearize(packet) == 0)
		return true;
	cv_count(&counters->drops[CV_HOP_SEGMENTED], 1);
	cv_count(&counters->rx_bytes, bytes);
	rte_pktmbuf_free(packet);
	return false;
}

CV_HOT void cv_burst_load(struct cv_burst *burst, struct rte_mbuf **packets, uint16_t n, uint8_t in,
	uint8_t out, struct cv_port_counters *counters)
{
	uint32_t bytes = 0;
	unsigned longest = 0;
	unsigned kept = 0;

	for (unsigned i = 0; i < RTE_MIN((unsigned)n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (unsigned i = 0; i < n; i++) {
		// Past the end the last one is asked for again, which is cheaper than to ask whether.
		struct rte_mbuf *ahead = packets[RTE_MIN(i + PREFETCH_AHEAD, n - 1u)];
		struct rte_mbuf *packet = packets[i];
		struct cv_view *view = &burst->views[kept];

		rte_prefetch0(rte_pktmbuf_mtod(ahead, void *));
		if (CV_UNLIKELY(packet->nb_segs > 1) && !gather(packet, counters))
			continue;
		cv_view_set(view, rte_pktmbuf_mtod(packet, uint8_t *), packet->data_len);
		view->in = in;
		view->out = out;
		bytes += packet->data_len;
		longest = RTE_MAX(longest, packet->data_len);
		burst->packets[kept++] = packet;
	}
	burst->n = kept;
	burst->bytes = bytes;
	burst->longest = longest;
	cv_count(&counters->rx_packets, n);
	cv_count(&counters->rx_bytes, bytes);
}

// Frees and counts the packets whose verdict is a drop; the others close ranks.
static void sort_out(
	struct cv_burst *burst, const uint8_t *verdicts, struct cv_nf_counters *counters)
{
	struct rte_mbuf *dropped[CV_BURST_MAX];
	uint16_t drops = 0;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < burst->n; i++) {
		if (verdicts[i] == CV_NEXT) {
			burst->packets[kept] = burst->packets[i];
			burst->views[kept++] = burst->views[i];
			continue;
		}
		cv_count(&counters->drops[verdicts[i] - CV_DROP(0)], 1);
		burst->bytes -= burst->views[i].len;
		dropped[drops++] = burst->packets[i];
	}
	burst->n = kept;
	rte_pktmbuf_free_bulk(dropped, drops);
}

void cv_path_run(const struct cv_path *path, unsigned worker, struct cv_burst *burst)
{
	uint8_t verdicts[CV_BURST_MAX];
	uint64_t then = rte_rdtsc();

	for (unsigned i = 0; i < path->length && burst->n > 0; i++) {
		const struct cv_step *step = &path->steps[i];
		uint64_t now;

		cv_count(&step->counters->packets, burst->n);
		cv_count(&step->counters->bytes, burst->bytes);
		if (step->process(step->instance, worker, burst->views, verdicts, burst->n) > 0)
			sort_out(burst, verdicts, step->counters);
		now = rte_rdtsc();
		cv_count(&step->counters->busy_cycles, now - then);
		then = now;
	}
}
