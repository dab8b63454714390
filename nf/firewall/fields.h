// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What rules may ask of a packet beside its 5-tuple, as four words of 16 bits. A rule set that asks
// for none of it never looks.
#ifndef CV_FIREWALL_FIELDS_H
#define CV_FIREWALL_FIELDS_H

#include <stdint.h>

#include <rte_common.h>

#include "packet/ipv6.h"
#include "packet/tuple.h"
#include "packet/view.h"

enum cv_firewall_field {
	// As ClassBench has it. TCP: its flags in the upper byte. ICMP and ICMPv6: type, code.
	// Else, and of non-first fragments, 0.
	CV_FIREWALL_FIELD_L4,
	CV_FIREWALL_FIELD_LENGTH, // bytes of the IP packet, its header included
	CV_FIREWALL_FIELD_IP, // CV_FIREWALL_IS_FRAGMENT, CV_FIREWALL_IS_LATER, above them the DSCP
	CV_FIREWALL_FIELD_VLAN, // id of the outermost tag, or CV_FIREWALL_UNTAGGED
	CV_FIREWALL_FIELDS,
};

#define CV_FIREWALL_IS_FRAGMENT 1 // of CV_FIREWALL_FIELD_IP: a fragment
#define CV_FIREWALL_IS_LATER 2 // not the first
#define CV_FIREWALL_DSCP_SHIFT 2
#define CV_FIREWALL_UNTAGGED UINT16_MAX

struct cv_firewall_fields {
	uint16_t word[CV_FIREWALL_FIELDS]; // host order
};

// What the rules of a table ask for, as bits; 0: nothing of this.
#define CV_FIREWALL_NEEDS_FIELDS 1 // set with any of the others
#define CV_FIREWALL_NEEDS_TCP_FLAGS 2
#define CV_FIREWALL_NEEDS_ICMP 4

// Layer 4's word. left: bytes from l4 on that are of the packet. A packet that is asked for what it
// ends before is cut short: false.
static inline bool cv_firewall_l4_word(
	uint8_t proto, unsigned needs, const uint8_t *l4, uint32_t left, uint16_t *word)
{
	*word = 0;
	if (proto == IPPROTO_TCP && (needs & CV_FIREWALL_NEEDS_TCP_FLAGS)) {
		if (left < 14)
			return false;
		*word = (uint16_t)(l4[13] << 8);
	} else if ((proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) &&
		   (needs & CV_FIREWALL_NEEDS_ICMP)) {
		if (left < 2)
			return false;
		*word = cv_tuple_load(l4);
	}
	return true;
}

// The fields of a packet whose tuple is sound: one of the first three kinds. Returns
// CV_TUPLE_BAD_HEADER or CV_TUPLE_BAD_FRAGMENT if what rules ask for is cut off, or could be
// written over by a fragment (RFC 1858, RFC 3128), else another kind.
static inline enum cv_tuple_kind cv_firewall_fields_read(
	const struct cv_view *view, unsigned needs, struct cv_firewall_fields *fields)
{
	const uint8_t *ip = view->data + view->l3, *fragment_header = NULL;
	const int vlan = cv_view_vlan(view);
	unsigned dscp, fragment, l4, end;
	uint8_t proto;

	if (view->proto == CV_PROTO_IPV4) {
		proto = ip[9];
		dscp = ip[1] >> 2;
		l4 = (ip[0] & 0xfu) * 4;
		end = cv_tuple_load(ip + 2);
		fragment = cv_tuple_load(ip + 6) & 0x3fff; // more fragments, offset
	} else {
		struct cv_tuple_ipv6 tuple;

		if (cv_tuple_ipv6(ip, view->len - view->l3, &tuple) > CV_TUPLE_NON_FIRST)
			return CV_TUPLE_BAD_HEADER;
		proto = tuple.proto;
		dscp = (ip[0] & 0xfu) << 2 | ip[1] >> 6;
		l4 = cv_ipv6_l4(ip, &fragment_header);
		end = CV_IPV6_LEN + cv_tuple_load(ip + 4);
		fragment = 0;
		if (fragment_header != NULL) {
			const uint16_t field = cv_tuple_load(fragment_header + 2);

			fragment = field >> 3 | (field & 1) << 13;
		}
	}
	fields->word[CV_FIREWALL_FIELD_L4] = 0;
	fields->word[CV_FIREWALL_FIELD_LENGTH] = (uint16_t)RTE_MIN(end, (unsigned)UINT16_MAX);
	fields->word[CV_FIREWALL_FIELD_VLAN] = vlan < 0 ? CV_FIREWALL_UNTAGGED : (uint16_t)vlan;
	fields->word[CV_FIREWALL_FIELD_IP] =
		(uint16_t)(dscp << CV_FIREWALL_DSCP_SHIFT |
			   (fragment != 0 ? CV_FIREWALL_IS_FRAGMENT : 0) |
			   ((fragment & 0x1fff) != 0 ? CV_FIREWALL_IS_LATER : 0));
	if (CV_UNLIKELY((fragment & 0x1fff) != 0)) {
		// Offset 1 is behind 8 bytes of TCP, where its flags are. IPv6 has no overlaps (RFC 5722).
		const bool over = (fragment & 0x1fff) == 1 && proto == IPPROTO_TCP &&
				  view->proto == CV_PROTO_IPV4 &&
				  (needs & CV_FIREWALL_NEEDS_TCP_FLAGS) != 0;

		return over ? CV_TUPLE_BAD_FRAGMENT : CV_TUPLE_NON_FIRST;
	}
	if (CV_UNLIKELY(!cv_firewall_l4_word(
		    proto, needs, ip + l4, end - l4, &fields->word[CV_FIREWALL_FIELD_L4])))
		return fragment != 0 ? CV_TUPLE_BAD_FRAGMENT : CV_TUPLE_BAD_HEADER;
	return CV_TUPLE_PORTS;
}

#endif
