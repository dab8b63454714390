// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a policer reads of a packet, and writes into it.
#ifndef CV_POLICER_MEASURE_H
#define CV_POLICER_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_meter.h>

#include "chain/nf.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/view.h"

enum cv_policer_reason {
	CV_POLICED_GREEN,
	CV_POLICED_YELLOW,
	CV_POLICED_RED,
	CV_POLICED_BAD_HEADER,
	CV_POLICED_NON_IP,
	CV_POLICED_TABLE_FULL,
};

// What is to be known of a packet.
struct cv_measured {
	uint32_t bytes; // of the IP packet
	enum rte_color colour; // that it comes with
	bool v6;
};

// Colours of DSCPs: AFxy has the bits xxxyy0, x from 1 to 4, y from 1 to 3 (RFC 2597).
static CV_INLINE enum rte_color cv_dscp_colour(uint8_t dscp)
{
	const unsigned class = dscp >> 3, precedence = dscp >> 1 & 3;

	if ((dscp & 1) != 0 || class < 1 || class > 4 || precedence < 2)
		return RTE_COLOR_GREEN;
	return precedence == 2 ? RTE_COLOR_YELLOW : RTE_COLOR_RED;
}

// A packet's DSCP.
static CV_INLINE uint8_t cv_dscp_read(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;

	return view->proto == CV_PROTO_IPV4 ? ip[1] >> 2
					    : (uint8_t)((ip[0] & 15) << 2 | ip[1] >> 6);
}

// Looks at a packet; colour_aware: at its own colour, too. Returns CV_NEXT, or the verdict of one that is not measured.
static CV_INLINE uint8_t cv_measure(
	const struct cv_view *view, bool colour_aware, struct cv_measured *measured)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	switch (view->proto) {
	case CV_PROTO_IPV4: {
		const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;

		if (CV_UNLIKELY(room < CV_IPV4_LEN || header->version_ihl >> 4 != 4))
			return CV_DROP(CV_POLICED_BAD_HEADER);
		measured->bytes = rte_be_to_cpu_16(header->total_len);
		if (CV_UNLIKELY(cv_ipv4_header_len(header) < CV_IPV4_LEN ||
				measured->bytes < cv_ipv4_header_len(header) ||
				measured->bytes > room))
			return CV_DROP(CV_POLICED_BAD_HEADER);
		measured->v6 = false;
		break;
	}
	case CV_PROTO_IPV6:
		if (CV_UNLIKELY(!cv_ipv6_check((const struct cv_ipv6 *)ip, room)))
			return CV_DROP(CV_POLICED_BAD_HEADER);
		measured->bytes =
			CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
		measured->v6 = true;
		break;
	case 0:
	case CV_PROTO_VLAN:
	case CV_PROTO_QINQ:
	case CV_PROTO_QINQ1:
	case CV_PROTO_QINQ2:
	case CV_PROTO_QINQ3:
		return CV_DROP(CV_POLICED_BAD_HEADER);
	default:
		return CV_DROP(CV_POLICED_NON_IP);
	}
	measured->colour = colour_aware ? cv_dscp_colour(cv_dscp_read(view)) : RTE_COLOR_GREEN;
	return CV_NEXT;
}

// Writes a packet's DSCP.
static inline void cv_dscp_write(const struct cv_view *view, uint8_t dscp)
{
	uint8_t *ip = view->data + view->l3;

	if (view->proto == CV_PROTO_IPV4) {
		struct cv_ipv4 *header = (struct cv_ipv4 *)ip;
		const uint16_t old = cv_load_be16(ip);

		header->tos = (uint8_t)(dscp << 2 | (header->tos & 3));
		header->checksum = cv_checksum_update(header->checksum, old, cv_load_be16(ip));
	} else {
		ip[0] = (uint8_t)(0x60 | dscp >> 2);
		ip[1] = (uint8_t)((dscp & 3) << 6 | (ip[1] & 0x3f));
	}
}

#endif
