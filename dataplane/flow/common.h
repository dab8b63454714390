// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The common case of packets of flows: its key lies in one piece, at a place that is known.
#ifndef CV_FLOW_COMMON_H
#define CV_FLOW_COMMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/tuple.h"
#include "packet/view.h"

// Bytes of an IPv4 packet of the common case at least, by protocol: others, with 0, are not common.
static const uint8_t cv_flow_common_least[256] = {[IPPROTO_TCP] = 40, [IPPROTO_UDP] = 28};

// Bytes of an IPv4 packet of the common case: no options, no fragment, a whole TCP or UDP header. 0: it is
// none.
static CV_INLINE unsigned cv_flow_common_ipv4(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	unsigned total, below; // below it is too short: nothing is long enough where it is 0 - 1
	uint64_t word;

	if (CV_UNLIKELY(room < 28))
		return 0;
	memcpy(&word, ip, 8);
	_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are compared here");
	total = __builtin_bswap16((uint16_t)(word >> 16));
	below = cv_flow_common_least[ip[9]] - 1u;
	// Version and header length; more fragments and where this one belongs.
	return CV_LIKELY((word & 0xff3f0000000000ff) == 0x45 && total > below && total <= room)
		       ? total
		       : 0;
}

// The same of IPv6: no extension header.
static CV_INLINE unsigned cv_flow_common_ipv6(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	unsigned total, least;

	if (CV_UNLIKELY(room < 48 || ip[0] >> 4 != 6))
		return 0;
	total = 40 + cv_tuple_load(ip + 4);
	least = cv_flow_common_least[ip[6]];
	return least != 0 && total >= least + 20 && total <= room ? total : 0;
}

#endif
