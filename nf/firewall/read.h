// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The firewall's first half: what a burst's packets are, and which of them the rules apply to.
// firewall.c says what is dropped.
#ifndef CV_FIREWALL_READ_H
#define CV_FIREWALL_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "chain/nf.h"
#include "nf/firewall/transposed.h"
#include "nf/firewall/table.h"
#include "packet/tuple.h"

enum cv_firewall_drop {
	CV_FIREWALL_DENIED,
	CV_FIREWALL_DEFAULT_DENIED,
	CV_FIREWALL_BAD_HEADER,
	CV_FIREWALL_FRAGMENT,
	CV_FIREWALL_NON_IP,
	CV_FIREWALL_INVALID,
};

_Static_assert(CV_BURST_MAX <= CV_FIREWALL_LOOKUP_MAX, "a burst is one lookup");

// What a burst has of each family. A packet's place is the same everywhere.
struct cv_firewall_read {
	struct {
		uint64_t packets; // a bit for each
		bool later; // some are non-first fragments
		struct cv_tuple_ipv4 tuple[CV_BURST_MAX]; // classified
		struct cv_firewall_transposed transposed; // where the family scans
	} ipv4;
	struct {
		uint64_t packets;
		bool later;
		struct cv_tuple_ipv6 tuple[CV_BURST_MAX];
		struct cv_firewall_transposed transposed;
	} ipv6;
	struct cv_firewall_fields fields[CV_BURST_MAX]; // where rules ask for them
};

// The tags that a view stands behind do not get here: it is a third one, or one of before 802.1ad.
static CV_INLINE bool cv_firewall_is_tag(rte_be16_t proto)
{
	return proto == CV_PROTO_VLAN || proto == CV_PROTO_QINQ || proto == CV_PROTO_QINQ1 ||
	       proto == CV_PROTO_QINQ2 || proto == CV_PROTO_QINQ3;
}

// Looks at the packet in place i. Returns the verdict: CV_NEXT if that is the rules' to say.
static CV_INLINE uint8_t cv_firewall_read_one(const struct cv_firewall_table *table, uint8_t non_ip,
	const struct cv_view *view, unsigned i, struct cv_firewall_read *read)
{
	const uint8_t *ip = view->data + view->l3;
	uint32_t len = view->len - view->l3;
	enum cv_tuple_kind kind;

	if (CV_LIKELY(view->proto == CV_PROTO_IPV4)) {
		struct cv_tuple_ipv4 *tuple = &read->ipv4.tuple[i];

		kind = cv_tuple_ipv4(ip, len, tuple);
		if (CV_LIKELY(kind <= CV_TUPLE_NON_FIRST)) {
			tuple->proto = cv_firewall_class(table, tuple->proto, kind);
			read->ipv4.later |= kind == CV_TUPLE_NON_FIRST;
			read->ipv4.packets |= 1ull << i;
			return CV_NEXT;
		}
	} else if (view->proto == CV_PROTO_IPV6) {
		struct cv_tuple_ipv6 *tuple = &read->ipv6.tuple[i];

		kind = cv_tuple_ipv6(ip, len, tuple);
		if (CV_LIKELY(kind <= CV_TUPLE_NON_FIRST)) {
			tuple->proto = cv_firewall_class(table, tuple->proto, kind);
			read->ipv6.later |= kind == CV_TUPLE_NON_FIRST;
			read->ipv6.packets |= 1ull << i;
			return CV_NEXT;
		}
	} else if (view->proto == 0 || cv_firewall_is_tag(view->proto)) {
		return CV_DROP(CV_FIREWALL_BAD_HEADER); // cut short (or type 0), or hidden by a tag
	} else {
		return non_ip;
	}
	return kind == CV_TUPLE_BAD_FRAGMENT ? CV_DROP(CV_FIREWALL_FRAGMENT)
					     : CV_DROP(CV_FIREWALL_BAD_HEADER);
}

// Looks at the packets from place first to before end, eight at most, one by one. Returns how many
// are dropped.
static inline uint16_t cv_firewall_read_each(const struct cv_firewall_table *table, uint8_t non_ip,
	const struct cv_view *view, unsigned first, unsigned end, struct cv_firewall_read *read,
	uint8_t *verdict)
{
	uint16_t dropped = 0;

	for (unsigned i = first; i < end; i++) {
		verdict[i] = cv_firewall_read_one(table, non_ip, &view[i], i, read);
		dropped += verdict[i] != CV_NEXT;
	}
	if ((read->ipv4.packets >> first & 0xff) != 0 && cv_firewall_is_scanned(&table->ipv4))
		cv_firewall_transpose_tuples_x8(&read->ipv4.tuple[first], CV_FIREWALL_IPV4_WORDS,
			&read->ipv4.transposed, first);
	if ((read->ipv6.packets >> first & 0xff) != 0 && cv_firewall_is_scanned(&table->ipv6))
		cv_firewall_transpose_tuples_x8(&read->ipv6.tuple[first], CV_FIREWALL_IPV6_WORDS,
			&read->ipv6.transposed, first);
	return dropped;
}

// Looks at n <= CV_BURST_MAX packets, eight at a time where they are what most are; of the last
// eight some may be looked at twice. non_ip is the verdict of what is not IP. Returns how many are
// dropped.
static CV_INLINE uint16_t cv_firewall_read_all(const struct cv_firewall_table *table,
	uint8_t non_ip, const struct cv_view *view, unsigned n, struct cv_firewall_read *read,
	uint8_t *verdict)
{
	const bool scanned = cv_firewall_is_scanned(&table->ipv4);
	uint16_t dropped = 0;

	read->ipv4.packets = read->ipv6.packets = 0;
	read->ipv4.later = read->ipv6.later = false;
	memset(verdict, CV_NEXT, n);
	for (unsigned i = 0; i < n; i += 8) {
		unsigned at = RTE_MIN(i, n - 8);
		bool common = n >= 8;

		if (CV_LIKELY(common))
			common = scanned ? cv_firewall_common_x8(
						   &view[at], &read->ipv4.transposed, at)
					 : cv_firewall_common_tuples_x8(
						   &view[at], &read->ipv4.tuple[at]);
		if (CV_LIKELY(common))
			read->ipv4.packets |= 0xffull << at;
		else
			dropped += cv_firewall_read_each(
				table, non_ip, view, i, RTE_MIN(i + 8, n), read, verdict);
	}
	return dropped;
}

static CV_INLINE void cv_firewall_fields_transpose(const struct cv_firewall_fields *fields,
	struct cv_firewall_transposed *transposed, unsigned at)
{
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		transposed->word[CV_FIREWALL_FIELD_ROW(i)][at] = fields->word[i];
}

// Reads the fields of all packets that the rules are asked about, for rules that ask for some. Takes
// those out that are cut short. Returns how many that drops.
static inline uint16_t cv_firewall_read_fields(const struct cv_firewall_table *table,
	const struct cv_view *view, struct cv_firewall_read *read, uint8_t *verdict)
{
	uint16_t dropped = 0;

	for (uint64_t left = read->ipv4.packets | read->ipv6.packets; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);
		const enum cv_tuple_kind kind =
			cv_firewall_fields_read(&view[i], table->needs, &read->fields[i]);

		if (CV_UNLIKELY(kind > CV_TUPLE_NON_FIRST)) {
			read->ipv4.packets &= ~(1ull << i);
			read->ipv6.packets &= ~(1ull << i);
			verdict[i] = kind == CV_TUPLE_BAD_FRAGMENT
					     ? CV_DROP(CV_FIREWALL_FRAGMENT)
					     : CV_DROP(CV_FIREWALL_BAD_HEADER);
			dropped++;
		} else if (view[i].proto == CV_PROTO_IPV4) {
			cv_firewall_fields_transpose(&read->fields[i], &read->ipv4.transposed, i);
		} else {
			cv_firewall_fields_transpose(&read->fields[i], &read->ipv6.transposed, i);
		}
	}
	return dropped;
}

#endif
