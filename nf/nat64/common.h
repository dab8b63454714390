// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The short way of most packets, TCP and UDP without anything else; and what it shares with that of all others
// (to_ipv4.c, to_ipv6.c).
#ifndef CV_NAT64_COMMON_H
#define CV_NAT64_COMMON_H

#include "nf/nat64/nat64.h"

// Whether an ICMP error: whoever says something of a packet need not have an address on the other side (RFC 6791).
bool cv_nat64_is_error_ipv4(const struct cv_view *view, const uint8_t *ip, unsigned header);
bool cv_nat64_is_error_ipv6(const uint8_t *ip, unsigned len);

// Makes the UDP checksum that is not there, over IPv6 addresses. A verdict.
uint8_t cv_nat64_make_checksum(
	const struct cv_nat64 *nat64, uint8_t *udp, unsigned len, const struct cv_nat64_ends *ends);

// With clients, an address of the prefix is an IPv4 host's, and no packet comes from there (RFC 6146 section
// 3.5), unless a row says that it is an IPv6 host's.
static inline bool cv_nat64_is_looping(
	const struct cv_nat64_map *map, const struct cv_nat64_ends *ends)
{
	const struct cv_nat64_row *row;
	struct cv_nat64_ipv6 host;

	if (!cv_nat64_has(&map->prefix, ends->src6))
		return false;
	row = cv_nat64_find_ipv4(map, ends->src);
	if (row == NULL || row->by_prefix)
		return row == NULL;
	host = cv_nat64_of_row(map, row, ends->src);
	return host.high != ends->src6.high || host.low != ends->src6.low;
}

// The source's address, and whether the packet may have both. A verdict.
static CV_INLINE uint8_t cv_nat64_find_ipv4_source(
	const struct cv_nat64_job *job, const uint8_t *ip, unsigned len, struct cv_nat64_ends *ends)
{
	const struct cv_nat64 *nat64 = job->nat64;
	const struct cv_nat64_prefix *prefix = &nat64->map.prefix;

	ends->src6 = cv_nat64_load(ip + 8);
	if (CV_UNLIKELY(!cv_nat64_to_ipv4(&nat64->map, ends->src6, &ends->src))) {
		if (cv_ipv6_martian(ip + 8))
			return CV_DROP(CV_NAT64_BAD_ADDRESS);
		if (cv_nat64_is_error_ipv6(ip, len) &&
			(nat64->clients == NULL ||
				!cv_nat64_clients_to_ipv4(nat64->clients, ends->src6, &ends->src)))
			ends->src = nat64->source_host;
		else if (nat64->clients == NULL)
			return CV_DROP(CV_NAT64_NO_MAPPING);
		else if (!cv_nat64_clients_take(
				 nat64->clients, ends->src6, job->worker->now, &ends->src))
			return CV_DROP(CV_NAT64_NO_ADDRESS);
	}
	if (CV_UNLIKELY(cv_ipv4_martians[ends->src >> 24] | cv_ipv4_martians[ends->dst >> 24]))
		return CV_DROP(CV_NAT64_BAD_ADDRESS);
	if (CV_UNLIKELY(nat64->clients != NULL) && cv_nat64_is_looping(&nat64->map, ends))
		return CV_DROP(CV_NAT64_BAD_ADDRESS);
	if (CV_UNLIKELY(prefix->well_known) &&
		((cv_nat64_has(prefix, ends->src6) && !cv_nat64_is_global(ends->src)) ||
			(cv_nat64_has(prefix, ends->dst6) && !cv_nat64_is_global(ends->dst))))
		return CV_DROP(CV_NAT64_BAD_ADDRESS);
	return CV_NEXT;
}

// The IPv4 header in place of the headers before the payload.
static CV_INLINE uint8_t cv_nat64_put_ipv4(const struct cv_nat64_job *job, unsigned upper,
	const struct cv_nat64_head *head, const struct cv_nat64_ends *ends)
{
	uint8_t *ip = cv_nat64_reframe(job, CV_IPV4_LEN - (int)upper, CV_PROTO_IPV4);

	if (ip == NULL)
		return CV_DROP(CV_NAT64_NO_BUFFER);
	cv_nat64_write_ipv4(ip, head, ends);
	return CV_NEXT;
}

// Most packets: TCP or UDP without extension headers or padding, that fits.
static CV_INLINE bool cv_nat64_is_common_ipv6(
	const struct cv_nat64_job *job, const struct cv_ipv6 *ip)
{
	const struct cv_view *view = job->view;
	const unsigned room = view->len - view->l3, mtu = job->nat64->mtus[view->out];

	return cv_nat64_is_common(ip->next, room - CV_IPV6_LEN) && ip->hop_limit > 1 &&
	       *(const uint8_t *)ip >> 4 == 6 &&
	       room == CV_IPV6_LEN + (unsigned)rte_be_to_cpu_16(ip->payload_len) &&
	       room - CV_NAT64_GROWTH <= mtu;
}

static CV_INLINE uint8_t cv_nat64_run_to_ipv4(
	const struct cv_nat64_job *job, struct cv_nat64_ends *ends)
{
	struct cv_nat64 *nat64 = job->nat64;
	uint8_t *ip = job->view->data + job->view->l3;
	const unsigned len = job->view->len - job->view->l3;
	struct cv_nat64_head head;
	uint16_t delta;
	uint8_t verdict;

	if (CV_UNLIKELY(!cv_nat64_is_common_ipv6(job, (const struct cv_ipv6 *)ip)))
		return cv_nat64_packet_to_ipv4(job, ends);
	verdict = cv_nat64_find_ipv4_source(job, ip, len, ends);
	if (CV_UNLIKELY(verdict != CV_NEXT))
		return verdict;
	head = (struct cv_nat64_head){
		.class = (uint8_t)(ip[0] << 4 | ip[1] >> 4) & nat64->class_mask,
		.hops = ip[7] - nat64->hop,
		.proto = ip[6],
		.df = len - CV_NAT64_GROWTH > CV_NAT64_MAY_FRAGMENT_MAX,
		.payload = (uint16_t)(len - CV_IPV6_LEN),
	};
	if (!head.df)
		head.fragment.id = cv_nat64_next_id(&nat64->lanes[job->worker->index]);
	delta = cv_nat64_delta_to_ipv4(nat64, ends);
	cv_nat64_common_checksum(ip + CV_IPV6_LEN, head.proto, delta); // none stays none
	return cv_nat64_put_ipv4(job, CV_IPV6_LEN, &head, ends);
}

// The source's address, and whether the packet may have both. A verdict.
static CV_INLINE uint8_t cv_nat64_find_ipv6_source(const struct cv_nat64_job *job,
	const uint8_t *ip, unsigned header, struct cv_nat64_ends *ends)
{
	const struct cv_nat64 *nat64 = job->nat64;
	const struct cv_nat64_prefix *prefix = &nat64->map.prefix;
	rte_be32_t src;

	memcpy(&src, ip + 12, sizeof(src));
	ends->src = rte_be_to_cpu_32(src);
	if (CV_UNLIKELY(cv_ipv4_martians[ends->src >> 24]))
		return CV_DROP(CV_NAT64_BAD_ADDRESS);
	if (CV_UNLIKELY(!cv_nat64_to_ipv6(&nat64->map, ends->src, &ends->src6))) {
		if (!cv_nat64_is_error_ipv4(job->view, ip, header))
			return CV_DROP(CV_NAT64_NO_MAPPING);
		ends->src6 = cv_nat64_load(nat64->source_ipv6);
	}
	if (CV_UNLIKELY(prefix->well_known) &&
		((cv_nat64_has(prefix, ends->src6) && !cv_nat64_is_global(ends->src)) ||
			(cv_nat64_has(prefix, ends->dst6) && !cv_nat64_is_global(ends->dst))))
		return CV_DROP(CV_NAT64_BAD_ADDRESS);
	return CV_NEXT;
}

// The IPv6 headers in place of the header before the payload.
static CV_INLINE uint8_t cv_nat64_put_ipv6(const struct cv_nat64_job *job, unsigned header,
	const struct cv_nat64_head *head, const struct cv_nat64_ends *ends)
{
	const int more = head->fragment.given ? CV_IPV6_FRAGMENT_LEN : 0;
	uint8_t *ip = cv_nat64_reframe(job, CV_IPV6_LEN + more - (int)header, CV_PROTO_IPV6);

	if (CV_UNLIKELY(ip == NULL))
		return CV_DROP(CV_NAT64_NO_BUFFER);
	cv_nat64_write_ipv6(ip, head, ends);
	return CV_NEXT;
}

// Most packets: TCP or UDP, whole, without options or padding, that fits.
static CV_INLINE bool cv_nat64_is_common_ipv4(
	const struct cv_nat64_job *job, const struct cv_ipv4 *ip)
{
	const struct cv_nat64 *nat64 = job->nat64;
	const struct cv_view *view = job->view;
	const unsigned room = view->len - view->l3, mtu = nat64->mtus[view->out];
	const unsigned most = ip->fragment != 0 ? mtu : RTE_MIN(mtu, (unsigned)nat64->ipv6_mtu);

	return cv_nat64_is_common(ip->proto, room - CV_IPV4_LEN) &&
	       (ip->fragment & ~CV_IPV4_DF) == 0 && ip->ttl > 1 &&
	       room == rte_be_to_cpu_16(ip->total_len) && room + CV_NAT64_GROWTH <= most &&
	       cv_ipv4_check(ip, (uint16_t)room) == CV_IPV4_LEN;
}

static CV_INLINE uint8_t cv_nat64_run_to_ipv6(
	const struct cv_nat64_job *job, struct cv_nat64_ends *ends)
{
	const struct cv_nat64 *nat64 = job->nat64;
	uint8_t *ip = job->view->data + job->view->l3;
	const struct cv_ipv4 *old = (const struct cv_ipv4 *)ip;
	struct cv_nat64_head head;
	uint16_t delta;
	uint8_t verdict;

	if (CV_UNLIKELY(!cv_nat64_is_common_ipv4(job, old)))
		return cv_nat64_packet_to_ipv6(job, ends);
	verdict = cv_nat64_find_ipv6_source(job, ip, CV_IPV4_LEN, ends);
	if (CV_UNLIKELY(verdict != CV_NEXT))
		return verdict;
	head = (struct cv_nat64_head){
		.class = old->tos & nat64->class_mask,
		.hops = old->ttl - nat64->hop,
		.proto = old->proto,
		.payload = (uint16_t)(job->view->len - job->view->l3 - CV_IPV4_LEN),
	};
	delta = cv_nat64_delta_to_ipv6(nat64, ends);
	if (CV_UNLIKELY(!cv_nat64_common_checksum(ip + CV_IPV4_LEN, head.proto, delta))) {
		verdict = cv_nat64_make_checksum(nat64, ip + CV_IPV4_LEN, head.payload, ends);
		if (verdict != CV_NEXT)
			return verdict;
	}
	return cv_nat64_put_ipv6(job, CV_IPV4_LEN, &head, ends);
}

#endif
