// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The UDP header (RFC 768).
#ifndef CV_UDP_H
#define CV_UDP_H

#include <assert.h>

#include <rte_byteorder.h>

#define CV_UDP_LEN 8

// May lie at any address: packets are not aligned.
struct cv_udp {
	rte_be16_t sport;
	rte_be16_t dport;
	rte_be16_t len; // header and payload
	rte_be16_t checksum; // 0: none
} __attribute__((packed, aligned(1)));

static_assert(sizeof(struct cv_udp) == CV_UDP_LEN, "as on the wire");

#endif
