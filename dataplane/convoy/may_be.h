// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// May a packet be a convoy? The first step of a receiver's check (docs/convoy-frame.md): whatever
// passes it is a convoy to the receiver, good or refused, and never an ordinary packet. So a sender
// does not send such a packet as it is to a next hop: it leaves in a convoy of one.
#ifndef CV_CONVOY_MAY_BE_H
#define CV_CONVOY_MAY_BE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"
#include "packet/view.h"

// Is this the header of what may be a convoy? Options and non-first fragments: whatever it carries, no
// sender of convoys sent it.
static CV_INLINE bool cv_convoy_ipv4(const struct cv_ipv4 *ip)
{
	return ip->version_ihl == 0x45 && ip->proto == IPPROTO_UDP &&
	       !(ip->fragment & CV_IPV4_OFFSET);
}

static CV_INLINE bool cv_convoy_ipv6(const struct cv_ipv6 *ip)
{
	return *(const uint8_t *)ip >> 4 == 6 && ip->next == IPPROTO_UDP;
}

// The UDP port that a packet goes to if it is a convoy to a receiver whose port of convoys is that
// one; 0: it is none to any. The view shows the packet from its outermost header on (before is 0).
static CV_INLINE rte_be16_t cv_convoy_port_of(const struct cv_view *view)
{
	const uint8_t *l3 = view->data + view->l3;
	uint32_t room = (uint32_t)(view->len - view->l3);
	uint32_t header;

	if (CV_LIKELY(view->proto == CV_PROTO_IPV4)) {
		header = CV_IPV4_LEN;
		if (room < header + CV_UDP_LEN || !cv_convoy_ipv4((const struct cv_ipv4 *)l3))
			return 0;
	} else if (view->proto == CV_PROTO_IPV6) {
		header = CV_IPV6_LEN;
		if (room < header + CV_UDP_LEN || !cv_convoy_ipv6((const struct cv_ipv6 *)l3))
			return 0;
	} else {
		return 0;
	}
	return cv_load_be16(l3 + header + 2);
}

// Would a receiver whose UDP port of convoys this is take the packet for one? Most packets are told
// by that port alone.
static CV_INLINE bool cv_may_be_convoy(const struct cv_view *view, rte_be16_t port)
{
	unsigned dport = view->l3 + (view->proto == CV_PROTO_IPV6 ? CV_IPV6_LEN : CV_IPV4_LEN) + 2u;

	if (CV_LIKELY(view->len < dport + 2 || cv_load_be16(view->data + dport) != port))
		return false;
	return cv_convoy_port_of(view) == port;
}

#endif
