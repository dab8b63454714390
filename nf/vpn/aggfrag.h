// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AGGFRAG payloads (RFC 9347), not controlled for congestion: many packets inside one ESP packet, and a long
// one in several.
#ifndef CV_VPN_AGGFRAG_H
#define CV_VPN_AGGFRAG_H

#include "nf/vpn/vpn.h"

#define CV_AGGFRAG_PROTO 144 // next header of ESP
#define CV_AGGFRAG_HEADER_LEN 4 // sub-type, reserved, BlockOffset
#define CV_AGGFRAG_INNER_MAX 9216 // bytes of a packet inside that came in several

// The beginning of a packet that goes on in the ESP packet to come. Under the lock of its association.
struct cv_aggfrag {
	uint64_t next; // its sequence number
	uint64_t packets, lost; // inside; whose rest did not come in sequence
	uint16_t have; // bytes; 0: none
	uint8_t bytes[CV_AGGFRAG_INNER_MAX];
};

// Gives the state of an inbound association that aggregates what it needs. False: no memory.
bool cv_aggfrag_make(const struct cv_sa *sa, int socket);

// Takes what is in an authentic payload of len bytes out, each packet inside as one that the function makes,
// where policy says so. The verdict is the ESP packet's: absorbed, or the first reason why something of
// it was dropped.
uint8_t cv_aggfrag_open(const struct cv_vpn *vpn, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_sa *sa, uint64_t sequence,
	const uint8_t *payload, uint16_t len);

// Seals the packets at n places of a burst, whose policies' associations aggregate: those of one association
// that fit, together. Rule is what cv_choice_find() said of each of the burst.
void cv_aggfrag_seal(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	const uint32_t *rule, const uint16_t *at, uint16_t n, uint8_t *verdict);

#endif
