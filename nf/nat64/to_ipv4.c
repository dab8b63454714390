// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// IPv6 to IPv4: RFC 7915 section 5.
#include "nf/nat64/common.h"
#include "packet/tuple.h"

bool cv_nat64_chain_read(const uint8_t *ip, unsigned len, struct cv_nat64_chain *chain)
{
	uint32_t at = CV_IPV6_LEN;
	uint8_t proto = ip[6];

	*chain = (struct cv_nat64_chain){0};
	for (int left = CV_IPV6_EXTENSIONS_MAX; cv_nat64_is_foreign(proto, true); left--) {
		uint32_t bytes = CV_IPV6_FRAGMENT_LEN;

		// What a fragment header announces is in the part that is fragmented.
		if (left == 0 || chain->fragment_at != 0 || proto == IPPROTO_ICMP || len - at < 8)
			return false;
		if (proto == IPPROTO_FRAGMENT)
			chain->fragment_at = (uint16_t)at;
		else
			bytes = (ip[at + 1] + 1u) * 8;
		if (len - at < bytes)
			return false;
		if (proto == IPPROTO_ROUTING && ip[at + 3] != 0 && chain->routing_at == 0)
			chain->routing_at = (uint16_t)(at + 3);
		proto = ip[at];
		at += bytes;
	}
	chain->upper = (uint16_t)at;
	chain->proto = proto;
	return chain->fragment_at == 0 || proto != IPPROTO_AH;
}

// The checksum of what is carried follows the addresses. A verdict.
static CV_INLINE uint8_t update(
	uint8_t *l4, unsigned len, uint8_t proto, const struct cv_nat64_ends *ends)
{
	const unsigned at = cv_nat64_checksum_at(proto);
	const bool udp = proto == IPPROTO_UDP;

	if (CV_UNLIKELY(len < cv_nat64_least(proto)))
		return CV_DROP(CV_NAT64_BAD_HEADER);
	if (at == 0 || (udp && cv_load_be16(l4 + at) == 0))
		return CV_NEXT;
	cv_nat64_checksum_update(l4 + at,
		cv_nat64_delta(cv_nat64_sum_ipv6(ends), (uint64_t)ends->src + ends->dst), udp);
	return CV_NEXT;
}

// An ICMP error in place of an ICMPv6 error: the message becomes shorter.
static uint8_t put_error(const struct cv_nat64_job *job, const struct cv_nat64_head *head,
	const struct cv_nat64_ends *ends, const uint8_t *message)
{
	const int more = CV_IPV4_LEN + head->payload - (job->view->len - job->view->l3);
	uint8_t *ip = cv_nat64_reframe(job, more, CV_PROTO_IPV4);
	rte_be16_t checksum;

	if (ip == NULL)
		return CV_DROP(CV_NAT64_NO_BUFFER);
	cv_nat64_write_ipv4(ip, head, ends);
	memcpy(ip + CV_IPV4_LEN, message, head->payload);
	checksum = cv_checksum(ip + CV_IPV4_LEN, head->payload);
	memcpy(ip + CV_IPV4_LEN + 2, &checksum, sizeof(checksum));
	return CV_NEXT;
}

static CV_NOINLINE uint8_t translate_icmp(const struct cv_nat64_job *job,
	const struct cv_nat64_chain *chain, struct cv_nat64_head *head,
	const struct cv_nat64_ends *ends)
{
	uint8_t *at = job->view->data + job->view->l3 + chain->upper;
	uint8_t message[CV_NAT64_ERROR_MAX];
	unsigned len;

	if (cv_nat64_is_part(&head->fragment))
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	head->proto = IPPROTO_ICMP;
	switch (cv_nat64_icmpv6_to_icmp(job, at, head->payload, ends, message, &len)) {
	case CV_NAT64_ECHO:
		return cv_nat64_put_ipv4(job, chain->upper, head, ends);
	case CV_NAT64_ERROR:
		head->payload = (uint16_t)len;
		head->df = false;
		return put_error(job, head, ends, message);
	case CV_NAT64_MESSAGE_NONE:
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	case CV_NAT64_MESSAGE_BAD:
		break;
	}
	return CV_DROP(CV_NAT64_BAD_HEADER);
}

bool cv_nat64_is_error_ipv6(const uint8_t *ip, unsigned len)
{
	return ip[6] == IPPROTO_ICMPV6 && len > CV_IPV6_LEN && ip[CV_IPV6_LEN] < 128;
}

// A packet with extension headers, or of another protocol. A verdict.
static uint8_t read_chain(const struct cv_nat64_job *job, const uint8_t *ip, unsigned len,
	struct cv_nat64_chain *chain)
{
	if (!cv_nat64_chain_read(ip, len, chain))
		return CV_DROP(CV_NAT64_UNTRANSLATABLE);
	if (chain->routing_at != 0)
		return cv_nat64_tell_and_drop(
			job, CV_NAT64_SOURCE_ROUTE, CV_ICMP_PARAMETER, chain->routing_at);
	return CV_NEXT;
}

uint8_t cv_nat64_packet_to_ipv4(const struct cv_nat64_job *job, struct cv_nat64_ends *ends)
{
	struct cv_nat64 *nat64 = job->nat64;
	struct cv_view *view = job->view;
	uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	const unsigned mtu = nat64->mtus[view->out];
	struct cv_nat64_chain chain = {.upper = CV_IPV6_LEN, .proto = ip[6]};
	struct cv_nat64_head head = {.hops = ip[7] - nat64->hop};
	unsigned len, total;
	uint8_t verdict;

	if (CV_UNLIKELY(!cv_ipv6_check((const struct cv_ipv6 *)ip, (uint16_t)room)))
		return CV_DROP(CV_NAT64_BAD_HEADER);
	len = CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
	verdict = cv_nat64_find_ipv4_source(job, ip, len, ends);
	if (CV_UNLIKELY(verdict != CV_NEXT))
		return verdict;
	if (CV_UNLIKELY(ip[7] <= 1))
		return cv_nat64_tell_and_drop(job, CV_NAT64_TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
	if (CV_UNLIKELY(chain.proto != IPPROTO_TCP && chain.proto != IPPROTO_UDP)) {
		verdict = read_chain(job, ip, len, &chain);
		if (verdict != CV_NEXT)
			return verdict;
		head.fragment = cv_nat64_fragment_of_ipv6(ip, &chain);
	}
	head.class = (uint8_t)(ip[0] << 4 | ip[1] >> 4) & nat64->class_mask;
	head.payload = (uint16_t)(len - chain.upper);
	head.proto = chain.proto;
	total = (uint32_t)CV_IPV4_LEN + head.payload;
	if (CV_UNLIKELY(total > UINT16_MAX))
		return CV_DROP(CV_NAT64_TOO_BIG);
	head.df = !head.fragment.given && total > CV_NAT64_MAY_FRAGMENT_MAX;
	// What every link of IPv6 carries is fragmented behind.
	if (CV_UNLIKELY(head.df && total > mtu)) {
		if (mtu >= CV_NAT64_MAY_FRAGMENT_MAX)
			return cv_nat64_tell_and_drop(
				job, CV_NAT64_TOO_BIG, CV_ICMP_TOO_BIG, mtu + CV_NAT64_GROWTH);
		head.df = false;
	}
	if (!head.df && !head.fragment.given)
		head.fragment.id = cv_nat64_next_id(&nat64->lanes[job->worker->index]);
	if (CV_UNLIKELY(room > len) && !cv_nf_trim(job->worker, view, (uint16_t)(room - len)))
		return CV_DROP(CV_NAT64_NO_BUFFER);
	if (CV_UNLIKELY(chain.proto == IPPROTO_ICMPV6))
		return translate_icmp(job, &chain, &head, ends);
	if (CV_LIKELY(head.fragment.offset == 0)) {
		verdict = update(ip + chain.upper, head.payload, chain.proto, ends);
		if (CV_UNLIKELY(verdict != CV_NEXT))
			return verdict;
	}
	return cv_nat64_put_ipv4(job, chain.upper, &head, ends);
}
