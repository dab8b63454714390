// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What both ways to seal share: one packet inside, and many (aggfrag.h).
#ifndef CV_VPN_SEAL_H
#define CV_VPN_SEAL_H

#include <string.h>

#include "nf/vpn/vpn.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

// A packet on its way out.
struct out {
	struct cv_vpn *vpn;
	struct cv_nf_worker *worker;
	struct cv_view *view;
	const struct cv_sa *sa;
};

// One that has all but its sequence number, and is not encrypted.
struct prepared {
	const struct cv_sa *sa;
	uint8_t *ip; // the outer header
	uint16_t at; // its place in the burst
	uint16_t clear; // bytes to be encrypted
	// IPv4's: the sum of its words but for the identification, and whether it has one, for it may be
	// fragmented (RFC 6864).
	uint32_t sum;
	bool has_id;
};

// What a packet inside says of the outer one.
struct inner {
	uint16_t len;
	uint8_t class; // DSCP and ECN
	bool v6, df;
};

// Tells the sender, as far as the rate lets. Returns the verdict.
uint8_t cv_vpn_tell_and_drop(
	const struct out *out, enum cv_vpn_drop why, enum cv_icmp_reason reason, uint32_t value);

// Packets that have one association get their sequence numbers, are encrypted, and their outer headers
// become whole; or their verdict says why not.
void cv_vpn_finish_row(const struct prepared *packet, uint16_t n, uint8_t *verdict);

// False: the header is not sound.
static CV_INLINE bool read_inner(const struct cv_view *view, struct inner *inner)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	if (view->proto == CV_PROTO_IPV4) {
		const struct cv_ipv4 *v4 = (const struct cv_ipv4 *)ip;

		if (cv_ipv4_check(v4, room) == 0)
			return false;
		inner->len = rte_be_to_cpu_16(v4->total_len);
		inner->class = v4->tos;
		inner->v6 = false;
		inner->df = (v4->fragment & CV_IPV4_DF) != 0;
		return true;
	}
	if (!cv_ipv6_check((const struct cv_ipv6 *)ip, room))
		return false;
	inner->len = CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
	inner->class = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	inner->v6 = inner->df = true;
	return true;
}

static CV_INLINE uint8_t hops_of(const uint8_t *ip, bool v6)
{
	return v6 ? ((const struct cv_ipv6 *)ip)->hop_limit : ((const struct cv_ipv4 *)ip)->ttl;
}

static CV_INLINE void take_hop(uint8_t *ip, bool v6)
{
	if (v6)
		((struct cv_ipv6 *)ip)->hop_limit--;
	else
		cv_ipv4_ttl_decrement((struct cv_ipv4 *)ip);
}

static CV_INLINE unsigned padding_of(uint32_t len)
{
	return -(len + CV_ESP_TRAILER_LEN) & (CV_ESP_ALIGN - 1);
}

// What is written before a packet, and behind one of so many bytes.
static CV_INLINE unsigned front_of(const struct cv_sa *sa)
{
	return sa->header_len + CV_ESP_LEN;
}

static CV_INLINE unsigned back_of(uint32_t len)
{
	return padding_of(len) + CV_ESP_TRAILER_LEN + CV_GCM_TAG_LEN;
}

// The outer header, of len bytes with what it carries, but for what depends on the sequence number and on the
// encrypted bytes. plain: sa->plain is known to be set.
static CV_INLINE void write_outer(struct prepared *packet, const struct cv_sa *sa,
	const struct inner *inner, uint32_t len, const bool plain)
{
	uint8_t *to = packet->ip;
	uint8_t class = inner->class;

	if (!plain && sa->dscp >= 0)
		class = (uint8_t)(sa->dscp << 2 | (class & 3));
	if (!plain && sa->header_len > CV_IPV4_LEN)
		memcpy(to + CV_IPV4_LEN, sa->header + CV_IPV4_LEN, sa->header_len - CV_IPV4_LEN);
	if (CV_UNLIKELY(!plain && sa->local.v6)) {
		struct cv_ipv6 *ip = (struct cv_ipv6 *)to;

		memcpy(to, sa->header, CV_IPV4_LEN);
		ip->version_class_flow = rte_cpu_to_be_32(0x60000000 | (uint32_t) class << 20);
		ip->payload_len = rte_cpu_to_be_16((uint16_t)(len - CV_IPV6_LEN));
	} else {
		const bool df = sa->df == CV_SA_DF_COPY ? inner->df : sa->df == CV_SA_DF_SET;
		const rte_be16_t total_len = rte_cpu_to_be_16((uint16_t)len);
		const rte_be16_t fragment = df ? CV_IPV4_DF : 0;
		const uint32_t first = 0x45u | (uint32_t) class << 8 | (uint32_t)total_len << 16;
		const uint32_t second = (uint32_t)fragment
					<< 16; // the identification before it is 0

		_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are composed here");
		memcpy(to, &first, sizeof(first));
		memcpy(to + 4, &second, sizeof(second));
		memcpy(to + 8, sa->header + 8, CV_IPV4_LEN - 8);
		packet->sum = sa->sum + total_len + fragment + ((uint32_t) class << 8);
		packet->has_id = fragment == 0;
	}
	if (!plain && sa->udp != 0) {
		struct cv_udp *udp = (struct cv_udp *)(to + sa->header_len - CV_UDP_LEN);

		udp->len = rte_cpu_to_be_16((uint16_t)(len - (sa->header_len - CV_UDP_LEN)));
	}
}

#endif
