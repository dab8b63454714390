// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A view of one packet: where its bytes are, and the little that is known about it. The bytes may
// lie in a buffer of their own or inside a larger frame: who holds a view cannot tell, must not
// look before or behind [data, data + len), and does not own the bytes.
#ifndef CV_VIEW_H
#define CV_VIEW_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CV_ETHER_LEN 14
#define CV_VLAN_LEN 4

// EtherTypes, in network order, as cv_view.proto holds them.
#define CV_PROTO_IPV4 RTE_BE16(0x0800)
#define CV_PROTO_IPV6 RTE_BE16(0x86dd)
#define CV_PROTO_VLAN RTE_BE16(0x8100) // 802.1Q customer tag
#define CV_PROTO_QINQ RTE_BE16(0x88a8) // 802.1ad service tag
// Service tags of before 802.1ad. Views do not look behind them; some switches and cards do.
#define CV_PROTO_QINQ1 RTE_BE16(0x9100)
#define CV_PROTO_QINQ2 RTE_BE16(0x9200)
#define CV_PROTO_QINQ3 RTE_BE16(0x9300)

struct cv_view {
	uint8_t *data; // the Ethernet header; readable and writable
	uint16_t len; // bytes from data, without FCS
	uint8_t l3; // offset of what follows the Ethernet header and up to two VLAN tags; <= len
	// Bytes before data that belong to the packet: a tunnel's headers, which functions are
	// not shown. Whoever moves a view forward adds to it.
	uint8_t before;
	rte_be16_t proto; // EtherType of what is at l3; 0: the frame ends before it
	uint8_t in; // index of the port that the packet came in by
	uint8_t out; // index of the port that it will leave by; a function may change it
};

static_assert(sizeof(struct cv_view) == 16, "four views to a cache line");

// Of in, between a worker's look for packets of flows that others keep and the function that it was
// for: it is done with this one.
#define CV_VIEW_DONE 0x80

static CV_INLINE rte_be16_t cv_load_be16(const uint8_t *at)
{
	rte_be16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

// Finds the layer 3 of what the view shows.
static CV_INLINE void cv_view_parse(struct cv_view *view)
{
	const uint8_t *data = view->data;
	unsigned len = view->len;
	unsigned l3 = CV_ETHER_LEN;
	rte_be16_t proto = 0;

	if (CV_UNLIKELY(len < CV_ETHER_LEN)) {
		l3 = len;
	} else {
		proto = cv_load_be16(data + 12);
		// One tag or two; what follows a third is nobody's packet.
		for (int tags = 0; tags < 2; tags++) {
			if (CV_LIKELY(proto != CV_PROTO_VLAN && proto != CV_PROTO_QINQ))
				break;
			if (CV_UNLIKELY(len < l3 + CV_VLAN_LEN)) {
				l3 = len;
				proto = 0;
				break;
			}
			proto = cv_load_be16(data + l3 + 2);
			l3 += CV_VLAN_LEN;
		}
	}
	view->l3 = (uint8_t)l3;
	view->proto = proto;
}

// Points the view at a frame of len bytes, without a tunnel before it, and finds its layer 3. In
// and out stay as they are.
static CV_INLINE void cv_view_set(struct cv_view *view, uint8_t *data, uint16_t len)
{
	view->data = data;
	view->len = len;
	view->before = 0;
	cv_view_parse(view);
}

// The whole packet as it is sent: what the view shows and the tunnel before it.
static CV_INLINE uint8_t *cv_view_packet(const struct cv_view *view)
{
	return view->data - view->before;
}

static CV_INLINE uint32_t cv_view_packet_len(const struct cv_view *view)
{
	return (uint32_t)view->len + view->before;
}

// Moves an Ethernet header and its tags, of len bytes.
static CV_INLINE void cv_move_ethernet(uint8_t *to, const uint8_t *from, unsigned len)
{
	uint64_t first, last; // they overlap

	if (CV_UNLIKELY(len != CV_ETHER_LEN)) {
		memmove(to, from, len);
		return;
	}
	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + CV_ETHER_LEN - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy(to + CV_ETHER_LEN - sizeof(last), &last, sizeof(last));
}

// The VLAN id of the outermost tag, 0 to 4095; -1: untagged or too short to tell.
static CV_INLINE int cv_view_vlan(const struct cv_view *view)
{
	rte_be16_t type;

	if (view->len < CV_ETHER_LEN + CV_VLAN_LEN)
		return -1;
	type = cv_load_be16(view->data + 12);
	if (type != CV_PROTO_VLAN && type != CV_PROTO_QINQ)
		return -1;
	return rte_be_to_cpu_16(cv_load_be16(view->data + 14)) & 0xfff;
}

#endif
