// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One function in a path of its own, for tests and fuzzers of functions that make, keep or resize
// packets: what leaves is kept as bytes, and everything is counted.
#ifndef CV_FUNCTION_RIG_H
#define CV_FUNCTION_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "chain/path.h"
#include "chain/rx.h"

#define RIG_OUT_MAX 512 // packets kept; more are counted only
#define RIG_PORTS 4

struct rig_out {
	uint8_t port;
	uint16_t len;
	uint8_t bytes[2048];
};

struct function_rig {
	const struct cv_nf *nf;
	struct cv_nf_counters counters;
	struct cv_step step;
	struct cv_path path;
	struct cv_port_counters ports[RIG_PORTS];
	struct cv_path_worker worker;
	unsigned received, outs;
	struct rig_out out[RIG_OUT_MAX];
};

static inline void rig_leave(
	struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	struct function_rig *rig =
		(struct function_rig *)RTE_PTR_SUB(worker, offsetof(struct function_rig, worker));

	(void)path;
	for (unsigned i = 0; i < burst->n; i++, rig->outs++) {
		const struct cv_view *view = &burst->views[i];
		struct rig_out *out = &rig->out[rig->outs % RIG_OUT_MAX];

		out->port = view->out;
		out->len = (uint16_t)RTE_MIN(cv_view_packet_len(view), sizeof(out->bytes));
		memcpy(out->bytes, cv_view_packet(view), out->len);
	}
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

static inline void rig_begin(
	struct function_rig *rig, const struct cv_nf *nf, void *instance, struct rte_mempool *pool)
{
	memset(rig, 0, sizeof(*rig));
	rig->nf = nf;
	rig->step = (struct cv_step){
		.process = nf->process, .instance = instance, .counters = &rig->counters};
	rig->path = (struct cv_path){.length = 1, .steps = &rig->step};
	rig->worker.pool = pool;
	rig->worker.ports_counters = rig->ports;
	rig->worker.leave = rig_leave;
}

// A packet comes in by a port of four; it would leave by the next. False: no buffer.
static inline bool rig_receive(
	struct function_rig *rig, unsigned in, const uint8_t *bytes, uint16_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig->worker.pool);
	struct cv_burst burst;
	char *data = mbuf != NULL ? rte_pktmbuf_append(mbuf, len) : NULL;

	if (data == NULL) {
		rte_pktmbuf_free(mbuf);
		return false;
	}
	memcpy(data, bytes, len);
	cv_burst_load(
		&burst, &mbuf, 1, (uint8_t)in, (uint8_t)((in + 1) % RIG_PORTS), &rig->ports[in]);
	rig->received += burst.n;
	if (burst.n > 0)
		cv_path_run(&rig->path, &rig->worker, &burst);
	return true;
}

static inline void rig_tick(struct function_rig *rig)
{
	cv_path_tick(&rig->path, &rig->step, rig->nf->tick, &rig->worker);
}

// received + originated = sent + dropped + absorbed + held.
static inline bool rig_conserved(const struct function_rig *rig)
{
	const struct cv_nf_counters *counters = &rig->counters;
	uint64_t dropped = 0;

	for (unsigned why = 0; why < CV_DROPS_MAX; why++)
		dropped += counters->drops[why];
	return rig->received + counters->originated ==
	       rig->outs + dropped + counters->absorbed + counters->held - counters->released;
}

#endif
