// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The router's first half, packets alone: is a header sound, may it be routed, and where to?
// router.c says what is dropped.
#ifndef CV_ROUTER_VALIDATE_H
#define CV_ROUTER_VALIDATE_H

#include <stdint.h>

#include "chain/nf.h"
#include "packet/ether.h"
#include "packet/view.h"

enum cv_router_drop {
	CV_ROUTER_NOT_IP,
	CV_ROUTER_BAD_HEADER,
	CV_ROUTER_MULTICAST,
	CV_ROUTER_MARTIAN,
	CV_ROUTER_TTL_EXPIRED,
	CV_ROUTER_NO_ROUTE,
	CV_ROUTER_NO_NEIGHBOUR,
	CV_ROUTER_OTHER_MAC,
	CV_ROUTER_TOO_BIG,
	CV_ROUTER_NOT_SERVED,
	CV_ROUTER_WAIT_FULL,
	CV_ROUTER_NO_BUFFER,
	CV_ROUTER_PUNT_FULL,
};

// What is known of a burst before its routes are.
struct cv_router_validated {
	uint32_t destination[CV_BURST_MAX]; // IPv4, host order; 0: none
	uint8_t v6_index[CV_BURST_MAX]; // places of the IPv6 packets that are to be routed
	uint16_t v6;
	uint32_t longest; // no packet has more bytes of layer 3, padding among them
	bool all; // every verdict is CV_NEXT
};

// Validates the headers of n packets: verdict CV_NEXT for those to be routed. match has what each port
// takes in. Of these it takes one
// from the TTL, updating the checksum: a packet that then has no route is dropped, and nobody sees
// it.
typedef void cv_router_validate(const struct cv_view *view, const struct cv_mac_match *match,
	uint8_t *verdict, uint16_t n, struct cv_router_validated *validated);

cv_router_validate cv_router_validate_avx2, cv_router_validate_baseline;

// The better one that this machine can. Needs the EAL, for its limit to vectors.
cv_router_validate *cv_router_validate_best(void);

#endif
