// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How many flows there may be, and for how long. Time-outs follow RFC 4787 (UDP), RFC 5382 and RFC
// 6146 (TCP) and RFC 5508 (ICMP); all are of idle time.
#ifndef CV_FLOW_LIMITS_H
#define CV_FLOW_LIMITS_H

#include <stdint.h>

#include "config/params.h"

enum cv_flow_timeout {
	CV_FLOW_TCP_OPENING, // not answered, or not established yet
	CV_FLOW_TCP_ESTABLISHED, // also with one direction closed
	CV_FLOW_TCP_CLOSING, // both closed, or reset
	CV_FLOW_UDP_NEW, // no reply was seen
	CV_FLOW_UDP,
	CV_FLOW_ICMP,
	CV_FLOW_OTHER, // protocols
	CV_FLOW_DENIED_FOR, // how long a denied flow is not decided on again
	CV_FLOW_TIMEOUTS,
};

struct cv_flow_limits {
	uint32_t max; // IPv4 flows of all workers
	uint32_t max_ipv6;
	uint32_t per_host; // flows that one address may open on one worker; 0: as many as there are
	uint32_t timeouts_s[CV_FLOW_TIMEOUTS];
};

// For cv_params_read() into a struct cv_flow_limits.
extern const struct cv_param cv_flow_limits_params[];

#endif
