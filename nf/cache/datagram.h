// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// UDP packets that may carry a question or an answer: whole, without IP options or extension headers,
// between addresses that a network forwards between.
#ifndef CV_CACHE_DATAGRAM_H
#define CV_CACHE_DATAGRAM_H

#include <netinet/in.h>
#include <string.h>

#include "packet/checksum.h"
#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"
#include "packet/view.h"

struct cv_datagram {
	const uint8_t *ip;
	const struct cv_udp *udp;
	const uint8_t *payload;
	uint16_t len; // of the payload
	bool v6;
};

// Whether it is UDP with the port, as source or as destination: what most packets are not.
static CV_INLINE bool cv_datagram_has_port(
	const struct cv_view *view, rte_be16_t port, bool as_source)
{
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	const unsigned at = as_source ? 0 : 2;

	if (CV_LIKELY(view->proto == CV_PROTO_IPV4))
		return room >= CV_IPV4_LEN + CV_UDP_LEN && ip[9] == IPPROTO_UDP && ip[0] == 0x45 &&
		       cv_load_be16(ip + CV_IPV4_LEN + at) == port;
	return view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN + CV_UDP_LEN &&
	       ip[6] == IPPROTO_UDP && cv_load_be16(ip + CV_IPV6_LEN + at) == port;
}

static CV_INLINE bool cv_datagram_read_ipv4(
	const struct cv_ipv4 *ip, uint16_t room, struct cv_datagram *datagram)
{
	if (CV_UNLIKELY(cv_ipv4_check(ip, room) != CV_IPV4_LEN ||
			(ip->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) != 0 ||
			cv_ipv4_martian(ip->src) || cv_ipv4_martian(ip->dst)))
		return false;
	datagram->udp = (const struct cv_udp *)(ip + 1);
	datagram->len = rte_be_to_cpu_16(ip->total_len) - CV_IPV4_LEN;
	return true;
}

static CV_INLINE bool cv_datagram_read_ipv6(
	const struct cv_ipv6 *ip, uint16_t room, struct cv_datagram *datagram)
{
	if (CV_UNLIKELY(!cv_ipv6_check(ip, room) || cv_ipv6_martian(ip->src) ||
			cv_ipv6_martian(ip->dst)))
		return false;
	datagram->udp = (const struct cv_udp *)(ip + 1);
	datagram->len = rte_be_to_cpu_16(ip->payload_len);
	return true;
}

// Of a view that has the port: the headers' lengths must agree. Checksums of UDP are not looked at.
static CV_INLINE bool cv_datagram_read(const struct cv_view *view, struct cv_datagram *datagram)
{
	const uint16_t room = view->len - view->l3;
	const void *ip = view->data + view->l3;

	if (CV_UNLIKELY(view->before != 0 || cv_mac_group(view->data) ||
			cv_mac_group(view->data + CV_MAC_LEN)))
		return false;
	datagram->ip = ip;
	datagram->v6 = view->proto == CV_PROTO_IPV6;
	if (datagram->v6 ? !cv_datagram_read_ipv6(ip, room, datagram)
			 : !cv_datagram_read_ipv4(ip, room, datagram))
		return false;
	if (CV_UNLIKELY(datagram->len < CV_UDP_LEN || datagram->udp->sport == 0 ||
			rte_be_to_cpu_16(datagram->udp->len) != datagram->len))
		return false;
	datagram->payload = (const uint8_t *)(datagram->udp + 1);
	datagram->len -= CV_UDP_LEN;
	return true;
}

// The sum of pseudo-header and UDP, the checksum's field among them.
static CV_INLINE uint16_t cv_datagram_sum(
	const uint8_t *ip, bool v6, const uint8_t *udp, uint16_t udp_len)
{
	uint64_t sum = v6 ? cv_checksum_add(0, ip + 8, 32) : cv_checksum_add(0, ip + 12, 8);

	sum += rte_cpu_to_be_16(udp_len) + (uint64_t)RTE_BE16(IPPROTO_UDP);
	return cv_checksum_fold(cv_checksum_add(sum, udp, udp_len));
}

// RFC 768: over IPv4 there may be none; over IPv6 there must be one (RFC 8200 section 8.1).
static CV_INLINE bool cv_datagram_is_sound(const struct cv_datagram *datagram)
{
	if (datagram->udp->checksum == 0)
		return !datagram->v6;
	return cv_datagram_sum(datagram->ip, datagram->v6, (const uint8_t *)datagram->udp,
		       datagram->len + CV_UDP_LEN) == 0xffff;
}

#endif
