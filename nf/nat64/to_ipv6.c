// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// IPv4 to IPv6: RFC 7915 section 4.
#include "nf/nat64/common.h"
#include "packet/ipv4_fragment.h"

#define OPTION_END 0
#define OPTION_NONE 1
#define OPTION_LOOSE_ROUTE 131
#define OPTION_STRICT_ROUTE 137

uint8_t cv_nat64_make_checksum(
	const struct cv_nat64 *nat64, uint8_t *udp, unsigned len, const struct cv_nat64_ends *ends)
{
	const uint16_t length = rte_be_to_cpu_16(cv_load_be16(udp + 4));
	const uint64_t pseudo = cv_nat64_sum_ipv6(ends) + IPPROTO_UDP + length;
	rte_be16_t checksum;

	if (nat64->drops_zero_checksum)
		return CV_DROP(CV_NAT64_ZERO_CHECKSUM);
	if (length < 8 || length > len)
		return CV_DROP(CV_NAT64_BAD_HEADER);
	checksum = (rte_be16_t)~cv_checksum_fold(
		cv_checksum_add(rte_cpu_to_be_16(cv_checksum_fold(pseudo)), udp, length));
	if (checksum == 0)
		checksum = 0xffff;
	memcpy(udp + 6, &checksum, sizeof(checksum));
	return CV_NEXT;
}

// The checksum of what is carried follows the addresses; UDP's is made if it is not there. A verdict.
static CV_INLINE uint8_t update(const struct cv_nat64 *nat64, uint8_t *l4, unsigned len,
	uint8_t proto, bool is_part, const struct cv_nat64_ends *ends)
{
	const unsigned at = cv_nat64_checksum_at(proto);
	const bool udp = proto == IPPROTO_UDP;

	if (CV_UNLIKELY(len < cv_nat64_least(proto)))
		return CV_DROP(CV_NAT64_BAD_HEADER);
	if (at == 0)
		return CV_NEXT;
	if (CV_UNLIKELY(udp && cv_load_be16(l4 + at) == 0)) {
		return is_part ? CV_DROP(CV_NAT64_ZERO_CHECKSUM)
			       : cv_nat64_make_checksum(nat64, l4, len, ends);
	}
	cv_nat64_checksum_update(l4 + at,
		cv_nat64_delta((uint64_t)ends->src + ends->dst, cv_nat64_sum_ipv6(ends)), udp);
	return CV_NEXT;
}

static uint8_t put_error(const struct cv_nat64_job *job, const struct cv_nat64_head *head,
	const struct cv_nat64_ends *ends, const uint8_t *message)
{
	const int more = CV_IPV6_LEN + head->payload - (job->view->len - job->view->l3);
	uint8_t *ip = cv_nat64_reframe(job, more, CV_PROTO_IPV6);

	if (ip == NULL)
		return CV_DROP(CV_NAT64_NO_BUFFER);
	cv_nat64_write_ipv6(ip, head, ends);
	memcpy(ip + CV_IPV6_LEN, message, head->payload);
	cv_icmpv6_checksum_set(ip);
	return CV_NEXT;
}

// Writes fragment number i, from 1, as a packet of its own. The verdict is the reason why there is none.
static uint8_t send_fragment(const struct cv_nat64_job *job, const struct cv_ipv4_fragments *parts,
	uint16_t i, const struct cv_nat64_head *whole, const struct cv_nat64_ends *ends)
{
	const struct cv_view *view = job->view;
	const unsigned front = view->l3 + CV_IPV6_LEN + CV_IPV6_FRAGMENT_LEN;
	struct cv_nat64_head head = *whole;
	const struct cv_ipv4 *ip;
	uint8_t *frame;

	head.payload = cv_ipv4_fragment_len(parts, i) - parts->other_header;
	frame = cv_nf_originate(
		job->worker, (uint16_t)(front + head.payload), view->in, view->out, CV_NF_BEHIND);
	if (frame == NULL)
		return CV_DROP(CV_NAT64_NO_BUFFER);
	// At least an Ethernet header and 48 bytes are there for 60 of an IPv4 header.
	ip = (const struct cv_ipv4 *)(frame + front - parts->other_header);
	cv_ipv4_fragment((const struct cv_ipv4 *)(view->data + view->l3), parts, i,
		frame + front - parts->other_header);
	head.fragment = cv_nat64_fragment_of_ipv4(ip);
	memcpy(frame, view->data, view->l3 - 2u);
	memcpy(frame + view->l3 - 2, (uint8_t[]){0x86, 0xdd}, 2);
	cv_nat64_write_ipv6(frame + view->l3, &head, ends);
	cv_nat64_add(&job->nat64->lanes[job->worker->index].fragments, 1);
	return CV_NEXT;
}

// A packet that is too long becomes its first fragment; the others are sent behind the burst.
static CV_NOINLINE uint8_t fragment(const struct cv_nat64_job *job, unsigned mtu,
	struct cv_nat64_head *head, const struct cv_nat64_ends *ends)
{
	struct cv_view *view = job->view;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(view->data + view->l3);
	const unsigned header = cv_ipv4_header_len(ip);
	struct cv_ipv4_fragments parts;

	// A fragment of IPv4 that becomes as long as the longest of IPv6.
	cv_ipv4_fragments(ip, (uint16_t)(mtu - CV_NAT64_GROWTH - CV_IPV6_FRAGMENT_LEN), &parts);
	if (parts.count == 0 || view->before != 0)
		return CV_DROP(CV_NAT64_TOO_BIG);
	for (uint16_t i = 1; i < parts.count; i++) {
		const uint8_t verdict = send_fragment(job, &parts, i, head, ends);

		if (verdict != CV_NEXT)
			return verdict;
	}
	cv_ipv4_fragment_first(ip, &parts);
	head->fragment = cv_nat64_fragment_of_ipv4(ip);
	head->payload = (uint16_t)(parts.first_len - header);
	if (!cv_nf_trim(job->worker, view, (uint16_t)(view->len - view->l3 - parts.first_len)))
		return CV_DROP(CV_NAT64_NO_BUFFER);
	return cv_nat64_put_ipv6(job, header, head, ends);
}

// Changes an ICMP message. CV_NEXT: it is an echo message, and its IP header is to follow.
static CV_NOINLINE uint8_t translate_icmp(const struct cv_nat64_job *job, uint8_t *at,
	struct cv_nat64_head *head, const struct cv_nat64_ends *ends, bool *is_done)
{
	uint8_t message[CV_NAT64_ERROR_MAX];
	unsigned len;

	if (head->fragment.given)
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	head->proto = IPPROTO_ICMPV6;
	switch (cv_nat64_icmp_to_icmpv6(job, at, head->payload, ends, message, &len)) {
	case CV_NAT64_ECHO:
		return CV_NEXT;
	case CV_NAT64_ERROR:
		head->payload = (uint16_t)len;
		*is_done = true;
		return put_error(job, head, ends, message);
	case CV_NAT64_MESSAGE_NONE:
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	case CV_NAT64_MESSAGE_BAD:
		break;
	}
	return CV_DROP(CV_NAT64_BAD_HEADER);
}

// Whether a source route has not ended: its pointer is not behind it. Other options are left out.
static bool has_source_route(const uint8_t *ip, unsigned header)
{
	for (unsigned at = CV_IPV4_LEN; at < header && ip[at] != OPTION_END;) {
		if (ip[at] == OPTION_NONE) {
			at++;
			continue;
		}
		if (header - at < 3 || ip[at + 1] < 2 || ip[at + 1] > header - at)
			return false;
		if ((ip[at] == OPTION_LOOSE_ROUTE || ip[at] == OPTION_STRICT_ROUTE) &&
			ip[at + 2] <= ip[at + 1])
			return true;
		at += ip[at + 1];
	}
	return false;
}

bool cv_nat64_is_error_ipv4(const struct cv_view *view, const uint8_t *ip, unsigned header)
{
	const uint8_t type = view->len > view->l3 + header ? ip[header] : 0;

	return ip[9] == IPPROTO_ICMP && (type == 3 || type == 11 || type == 12);
}

// The longest packet that the next link carries, and what becomes of one that is longer. A verdict; *mtu is not 0
// if it is to be fragmented.
static CV_INLINE uint8_t check_length(
	const struct cv_nat64_job *job, const struct cv_nat64_head *head, unsigned *mtu)
{
	const unsigned more = head->fragment.given ? CV_IPV6_FRAGMENT_LEN : 0;
	const unsigned len = CV_IPV6_LEN + more + head->payload;
	unsigned most = job->nat64->mtus[job->view->out];

	*mtu = 0;
	if (head->df) {
		if (CV_LIKELY(len <= most))
			return CV_NEXT;
		return cv_nat64_tell_and_drop(job, CV_NAT64_TOO_BIG, CV_ICMP_TOO_BIG,
			RTE_MAX(most, (unsigned)CV_IPV6_MTU_LEAST) - CV_NAT64_GROWTH - more);
	}
	most = RTE_MIN(most, (unsigned)job->nat64->ipv6_mtu);
	if (CV_UNLIKELY(len > most))
		*mtu = RTE_MAX(most, (unsigned)CV_IPV6_MTU_LEAST);
	return CV_NEXT;
}

uint8_t cv_nat64_packet_to_ipv6(const struct cv_nat64_job *job, struct cv_nat64_ends *ends)
{
	struct cv_nat64 *nat64 = job->nat64;
	struct cv_view *view = job->view;
	uint8_t *ip = view->data + view->l3;
	const struct cv_ipv4 *old = (const struct cv_ipv4 *)ip;
	const unsigned room = view->len - view->l3;
	const unsigned header = cv_ipv4_check(old, (uint16_t)room);
	struct cv_nat64_head head = {.hops = old->ttl - nat64->hop};
	bool is_done = false;
	unsigned mtu;
	uint8_t verdict;

	if (CV_UNLIKELY(header == 0))
		return CV_DROP(CV_NAT64_BAD_HEADER);
	verdict = cv_nat64_find_ipv6_source(job, ip, header, ends);
	if (CV_UNLIKELY(verdict != CV_NEXT))
		return verdict;
	if (CV_UNLIKELY(old->ttl <= 1))
		return cv_nat64_tell_and_drop(job, CV_NAT64_TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
	if (CV_UNLIKELY(header > CV_IPV4_LEN && has_source_route(ip, header)))
		return cv_nat64_tell_and_drop(
			job, CV_NAT64_SOURCE_ROUTE, CV_ICMP_SOURCE_ROUTE_FAILED, 0);
	if (CV_UNLIKELY(cv_nat64_is_foreign(old->proto, false)))
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	head.class = old->tos & nat64->class_mask;
	head.proto = old->proto;
	head.payload = (uint16_t)(rte_be_to_cpu_16(old->total_len) - header);
	head.fragment = cv_nat64_fragment_of_ipv4(old);
	head.df = (old->fragment & CV_IPV4_DF) != 0;
	verdict = check_length(job, &head, &mtu);
	if (CV_UNLIKELY(verdict != CV_NEXT))
		return verdict;
	if (CV_UNLIKELY(room > header + head.payload) &&
		!cv_nf_trim(job->worker, view, (uint16_t)(room - header - head.payload)))
		return CV_DROP(CV_NAT64_NO_BUFFER);
	if (CV_UNLIKELY(head.proto == IPPROTO_ICMP))
		verdict = translate_icmp(job, ip + header, &head, ends, &is_done);
	else if (CV_LIKELY(head.fragment.offset == 0))
		verdict = update(
			nat64, ip + header, head.payload, head.proto, head.fragment.given, ends);
	if (CV_UNLIKELY(verdict != CV_NEXT || is_done))
		return verdict;
	return CV_UNLIKELY(mtu != 0) ? fragment(job, mtu, &head, ends)
				     : cv_nat64_put_ipv6(job, header, &head, ends);
}
