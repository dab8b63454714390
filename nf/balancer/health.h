// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which backends answer: each is asked once in an interval, and an answer must come before the next
// question. One worker asks; any may hear answers.
#ifndef CV_BALANCER_HEALTH_H
#define CV_BALANCER_HEALTH_H

#include "nf/balancer/probe.h"

struct cv_health_config {
	bool given;
	enum cv_probe_kind by;
	uint16_t port; // TCP: 0: the backend's own
	uint32_t interval_ms, rise,
		fall; // answers, or silences, in a row that turn a backend's state
};

struct cv_health;

// A backend, as it is known from outside. mac may be NULL, dev -1.
struct cv_health_backend {
	const struct cv_address *address;
	const uint8_t *mac;
	int dev;
	uint16_t tcp_port;
};

// All of count backends are up. What it is given must live as long as it does, but for backends: copied.
// sources: by family. NULL: no memory, or no randomness.
struct cv_health *cv_health_create(const struct cv_health_config *config,
	const struct cv_health_backend *backends, unsigned count,
	const struct cv_address sources[2]);
void cv_health_destroy(struct cv_health *health); // NULL is allowed

// When ports are open: their MAC addresses, by index. Of backends that another instance knows, which runs
// still, the state is as there; before may be NULL.
void cv_health_start(struct cv_health *health, const uint8_t (*macs)[CV_MAC_LEN],
	const struct cv_health *before);

// Asks those whose turn it is, a few at most.
void cv_health_tick(struct cv_health *health, struct cv_nf_worker *worker);

// Whether a packet was an answer, or asked for where probes come from: it is absorbed then. A packet of
// a flow, or of none.
bool cv_health_takes(struct cv_health *health, struct cv_nf_worker *worker,
	const struct cv_flow_tuple *tuple, const struct cv_flow_packet *packet);
bool cv_health_takes_other(
	struct cv_health *health, struct cv_nf_worker *worker, const struct cv_view *view);

// Any thread may ask.
bool cv_health_is_up(const struct cv_health *health, unsigned backend);
void cv_health_counts(
	const struct cv_health *health, unsigned backend, uint64_t *probes, uint64_t *answers);

#endif
