// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The packets of health checks: what is asked of a backend, and what is an answer.
#ifndef CV_BALANCER_PROBE_H
#define CV_BALANCER_PROBE_H

#include "chain/nf.h"
#include "flow/flow.h"
#include "packet/ether.h"
#include "packet/prefix.h"

enum cv_probe_kind {
	CV_PROBE_LINK, // ARP, or neighbour discovery
	CV_PROBE_ICMP, // echo
	CV_PROBE_TCP, // SYN, which is reset when it was answered
};

// One backend, as it is asked.
struct cv_probe {
	enum cv_probe_kind kind;
	const struct cv_address *source, *to;
	const uint8_t *mac; // of the backend; NULL: a function behind knows
	const uint8_t *own_mac; // of the port that it leaves by, or comes to the next function by
	uint8_t port; // its index
	uint16_t number; // of the backend
	uint16_t tcp_port; // CV_PROBE_TCP
	uint32_t nonce; // an answer has it
};

// Sends a probe. False: no buffer.
bool cv_probe_send(struct cv_nf_worker *worker, const struct cv_probe *probe);

// Ends the connection that a TCP probe was answered for.
void cv_probe_reset(struct cv_nf_worker *worker, const struct cv_probe *probe);

enum cv_answer { CV_ANSWER_NONE, CV_ANSWER_GOOD, CV_ANSWER_BAD };

// What may be an answer, and whose: the backend's number. Of CV_PROBE_LINK a backend is known by its
// address, and there is no nonce.
struct cv_answered {
	enum cv_answer answer;
	enum cv_probe_kind kind;
	uint16_t number;
	uint32_t nonce;
	struct cv_address from;
};

// Reads a packet of a flow, whose layer 4 is at l4, that goes to where probes come from.
struct cv_answered cv_answer_read(
	const struct cv_flow_tuple *tuple, const struct cv_view *view, unsigned l4);

// Answers who asks by ARP or neighbour discovery for where probes come from. True: it was asked.
bool cv_probe_resolve(struct cv_nf_worker *worker, const struct cv_view *view,
	const struct cv_address *own, const uint8_t *own_mac);

#endif
