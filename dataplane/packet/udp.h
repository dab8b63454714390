// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The UDP header (RFC 768).
#ifndef CV_UDP_H
#define CV_UDP_H

#include <assert.h>
#include <netinet/in.h>

#include <rte_byteorder.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/view.h"

#define CV_UDP_LEN 8

// May lie at any address: packets are not aligned.
struct cv_udp {
	rte_be16_t sport;
	rte_be16_t dport;
	rte_be16_t len; // header and payload
	rte_be16_t checksum; // 0: none
} __attribute__((packed, aligned(1)));

static_assert(sizeof(struct cv_udp) == CV_UDP_LEN, "as on the wire");

// The offset of a frame's UDP header, if it is an unfragmented UDP packet with so many bytes behind that
// header; else 0. Of the lengths in the headers only IPv4's header length is looked at.
static inline unsigned cv_udp_find(const struct cv_view *view, unsigned bytes)
{
	const uint8_t *l3 = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	unsigned header;

	if (view->proto == CV_PROTO_IPV4) {
		const struct cv_ipv4 *ip = (const struct cv_ipv4 *)l3;

		if (room < CV_IPV4_LEN || l3[0] >> 4 != 4 || ip->proto != IPPROTO_UDP)
			return 0;
		header = cv_ipv4_header_len(ip);
		if (header < CV_IPV4_LEN || (ip->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) != 0)
			return 0;
	} else if (view->proto == CV_PROTO_IPV6) {
		if (room < CV_IPV6_LEN || l3[0] >> 4 != 6 ||
			((const struct cv_ipv6 *)l3)->next != IPPROTO_UDP)
			return 0;
		header = CV_IPV6_LEN;
	} else {
		return 0;
	}
	return room >= header + CV_UDP_LEN + bytes ? view->l3 + header : 0;
}

#endif
