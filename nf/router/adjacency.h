// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a packet's destination leads to: all that it needs to go on.
#ifndef CV_ADJACENCY_H
#define CV_ADJACENCY_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"
#include "packet/ether.h"

enum cv_adjacency_outcome {
	CV_FIB_FORWARD, // to the MAC address
	CV_FIB_NO_ROUTE,
	CV_FIB_LINK, // on the port's link: to the neighbour with the packet's destination
	CV_FIB_NEIGHBOUR, // to the MAC address of a neighbour that is asked for it
	CV_FIB_PATHS, // several next hops: one by the packet's flow
	CV_FIB_LOCAL, // an address of the router's own
	CV_FIB_BROADCAST, // of a connected network (RFC 2644 section 2)
	CV_FIB_BLACKHOLE, // dropped, and nobody is told
	CV_FIB_UNREACHABLE,
	CV_FIB_PROHIBIT,
};

// Those of neighbours change while workers read them. mtu says whether the rest may be used: it is
// stored with release and loaded with acquire; the first 8 bytes are one word.
struct cv_adjacency {
	union {
		struct {
			uint8_t mac[CV_MAC_LEN]; // of the next hop
			uint8_t source
				[CV_MAC_LEN]; // of the port: known when the first packet comes
			uint8_t port;
			uint8_t outcome; // enum cv_adjacency_outcome
			// The longest packet that goes straight on, in bytes of layer 3; 0: none
			// does. Packets that are not longer are not asked for the outcome.
			uint16_t mtu;
		};
		struct {
			uint32_t first, count; // of CV_FIB_PATHS: among the table's paths
		};
		uint64_t word;
	};
};

static_assert(sizeof(struct cv_adjacency) == 16, "four to a cache line");

#endif
