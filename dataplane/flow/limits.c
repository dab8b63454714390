// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/limits.h"

#include "flow/table.h"

#define TIMEOUT_MAX_S (30 * 86400)
#define TIMEOUT(name, index, seconds, text)                                                   \
	{                                                                                     \
		name, CV_INTEGER, CV_AT(struct cv_flow_limits, timeouts_s[index]),            \
			.low = 1, .high = TIMEOUT_MAX_S, .fallback = (seconds), .doc = (text) \
	}

static const struct cv_param timeouts[] = {
	TIMEOUT("tcp_opening", CV_FLOW_TCP_OPENING, 240, "TCP before it is established, s"),
	TIMEOUT("tcp_established", CV_FLOW_TCP_ESTABLISHED, 7440, "established TCP, s"),
	TIMEOUT("tcp_closing", CV_FLOW_TCP_CLOSING, 240, "TCP closed by both ends or reset, s"),
	TIMEOUT("udp_new", CV_FLOW_UDP_NEW, 120, "UDP without a reply, s"),
	TIMEOUT("udp", CV_FLOW_UDP, 300, "UDP both ways, s"),
	TIMEOUT("icmp", CV_FLOW_ICMP, 60, "ICMP and ICMPv6, s"),
	TIMEOUT("other", CV_FLOW_OTHER, 600, "other protocols, s"),
	TIMEOUT("denied", CV_FLOW_DENIED_FOR, 5, "denied flows, until they are decided anew, s"),
	{0},
};

const struct cv_param cv_flow_limits_params[] = {
	{"max", CV_INTEGER, CV_AT(struct cv_flow_limits, max), .low = 64, .high = CV_FLOWS_MAX,
		.fallback = 65536, .doc = "IPv4 flows of all workers together"},
	{"max_ipv6", CV_INTEGER, CV_AT(struct cv_flow_limits, max_ipv6), .low = 64,
		.high = CV_FLOWS_MAX, .fallback = 16384,
		.doc = "IPv6 flows of all workers together"},
	{"per_host", CV_INTEGER, CV_AT(struct cv_flow_limits, per_host), .low = 0,
		.high = CV_FLOWS_MAX, .fallback = 0,
		.doc = "flows that one address may open on one worker; 0: no limit"},
	{"timeouts", CV_PARAMS, .offset = 0, .size = sizeof(struct cv_flow_limits),
		.params = timeouts, .doc = "idle time after which a flow ends"},
	{0},
};
