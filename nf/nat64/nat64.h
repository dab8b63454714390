// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the parts of nat64 share. A packet's payload is changed first, in its old packet: its checksum follows
// the addresses, or ICMP becomes ICMPv6. Then the IP header before it is replaced.
#ifndef CV_NAT64_H
#define CV_NAT64_H

#include <string.h>

#include "chain/nf.h"
#include "nf/nat64/address.h"
#include "nf/nat64/clients.h"
#include "nf/tell.h"
#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

#define CV_IPV6_FRAGMENT_LEN 8
#define CV_IPV6_MTU_LEAST 1280
#define CV_NAT64_GROWTH (CV_IPV6_LEN - CV_IPV4_LEN)
// The longest IPv4 packet without DF: RFC 7915 section 5.1.
#define CV_NAT64_MAY_FRAGMENT_MAX (CV_IPV6_MTU_LEAST - CV_NAT64_GROWTH)

enum cv_nat64_drop {
	CV_NAT64_BAD_HEADER,
	CV_NAT64_BAD_ADDRESS,
	CV_NAT64_NO_MAPPING,
	CV_NAT64_TTL_EXPIRED,
	CV_NAT64_TOO_BIG,
	CV_NAT64_SOURCE_ROUTE,
	CV_NAT64_UNTRANSLATABLE,
	CV_NAT64_ZERO_CHECKSUM,
	CV_NAT64_NO_BUFFER,
	CV_NAT64_NO_ADDRESS,
};

// What one worker has. No other writes to it.
struct cv_nat64_lane {
	uint64_t to_ipv4, to_ipv6; // packets that left so; read by others
	uint64_t fragments; // made of longer packets, beside the first
	uint16_t id; // of the last IPv4 packet that may be fragmented; read by others
} __rte_cache_aligned;

static CV_INLINE uint16_t cv_nat64_next_id(struct cv_nat64_lane *lane)
{
	const uint16_t id = lane->id + 1;

	__atomic_store_n(&lane->id, id, __ATOMIC_RELAXED); // with the load in start()
	return id;
}

struct cv_nat64 {
	struct cv_nat64_map map;
	struct cv_nat64_clients *clients; // NULL: there are none
	uint8_t source[4], source_ipv6[16]; // of ICMP errors
	uint32_t source_host; // the first, in host order
	uint16_t ipv6_mtu; // of packets that may be fragmented
	uint8_t class_mask; // of the traffic class
	uint8_t hop; // that is taken: 1, or 0
	bool drops_zero_checksum; // UDP's
	// The prefix stands for all addresses, and for whole words of sums: these always change alike.
	bool even;
	rte_be16_t to_ipv4_delta, to_ipv6_delta; // then
	uint32_t icmp_rate;
	uint16_t mtus[CV_PORTS_MAX]; // of ports
	struct cv_teller teller;
	struct cv_nat64_lane lanes[CV_WORKERS_MAX];
};

// A packet that is to be translated.
struct cv_nat64_job {
	struct cv_nat64 *nat64;
	struct cv_nf_worker *worker;
	struct cv_view *view;
};

// Its addresses on both sides.
struct cv_nat64_ends {
	struct cv_nat64_ipv6 src6, dst6;
	uint32_t src, dst;
};

// Translates a packet of which a header's length is there, and whose destination is known on both sides. A
// verdict.
uint8_t cv_nat64_packet_to_ipv4(const struct cv_nat64_job *job, struct cv_nat64_ends *ends);
uint8_t cv_nat64_packet_to_ipv6(const struct cv_nat64_job *job, struct cv_nat64_ends *ends);

// What becomes of an ICMP message.
enum cv_nat64_message {
	CV_NAT64_ECHO, // it is translated where it is
	CV_NAT64_ERROR, // see below
	CV_NAT64_MESSAGE_NONE, // the other protocol has no such message
	CV_NAT64_MESSAGE_BAD, // cut short, or its checksum is wrong
};

// Translates the ICMP message of len bytes at `at`, which is whole: an echo message. Of an error, out gets
// the message that the packet is to have instead, *out_len bytes without a checksum, at most CV_NAT64_ERROR_MAX.
#define CV_NAT64_ERROR_MAX (CV_IPV6_MTU_LEAST - CV_IPV6_LEN)
enum cv_nat64_message cv_nat64_icmp_to_icmpv6(const struct cv_nat64_job *job, uint8_t *at,
	unsigned len, const struct cv_nat64_ends *ends, uint8_t *out, unsigned *out_len);
enum cv_nat64_message cv_nat64_icmpv6_to_icmp(const struct cv_nat64_job *job, uint8_t *at,
	unsigned len, const struct cv_nat64_ends *ends, uint8_t *out, unsigned *out_len);

// The IPv6 header's chain: what RFC 7915 section 5.1 goes over.
struct cv_nat64_chain {
	uint16_t upper; // where what follows the headers begins, from the IPv6 header
	uint16_t fragment_at; // where the fragment header is; 0: there is none
	uint16_t routing_at; // the field of a routing header with segments left; 0: there is none
	uint8_t proto; // of what follows
};

// Reads the headers of len bytes. False: they do not fit, or cannot be translated.
bool cv_nat64_chain_read(const uint8_t *ip, unsigned len, struct cv_nat64_chain *chain);

// What a fragment header and an IPv4 header both say.
struct cv_nat64_fragment {
	bool given; // there is such a header; in IPv4, it is a part of a packet
	bool more;
	uint16_t offset; // in units of 8 bytes
	uint16_t id;
};

// What may not stand behind the other IP header: it would be an extension header, or the other ICMP.
static CV_INLINE bool cv_nat64_is_foreign(uint8_t proto, bool v6)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_DSTOPTS || proto == (v6 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

// The headers of a packet with so many bytes behind them. IPv6 gets a fragment header if that is given.
struct cv_nat64_head {
	uint8_t class, hops, proto;
	bool df; // IPv4
	uint16_t payload;
	struct cv_nat64_fragment fragment;
};

static CV_INLINE void cv_nat64_write_ipv4(
	uint8_t *ip, const struct cv_nat64_head *head, const struct cv_nat64_ends *ends)
{
	const uint32_t flags = (head->df ? 0x4000u : 0) | (head->fragment.more ? 0x2000u : 0);
	uint32_t word[5] = {
		0x45000000u | (uint32_t)head->class << 16 | (CV_IPV4_LEN + head->payload),
		(uint32_t)head->fragment.id << 16 | flags | head->fragment.offset,
		(uint32_t)head->hops << 24 | (uint32_t)head->proto << 16,
		ends->src,
		ends->dst,
	};
	uint64_t sum = 0;

	for (unsigned i = 0; i < 5; i++)
		sum += word[i];
	word[2] |= (uint16_t)~cv_checksum_fold(sum);
	for (unsigned i = 0; i < 5; i++)
		word[i] = rte_cpu_to_be_32(word[i]);
	memcpy(ip, word, sizeof(word));
}

// Returns how long the headers are.
static CV_INLINE unsigned cv_nat64_write_ipv6(
	uint8_t *ip, const struct cv_nat64_head *head, const struct cv_nat64_ends *ends)
{
	const unsigned more = head->fragment.given ? CV_IPV6_FRAGMENT_LEN : 0;
	const uint64_t first = rte_cpu_to_be_64(
		UINT64_C(6) << 60 | (uint64_t)head->class << 52 |
		(uint64_t)(head->payload + more) << 16 |
		(uint64_t)(more ? IPPROTO_FRAGMENT : head->proto) << 8 | head->hops);

	memcpy(ip, &first, sizeof(first));
	cv_nat64_store(ip + 8, ends->src6);
	cv_nat64_store(ip + 24, ends->dst6);
	if (CV_UNLIKELY(more)) {
		const uint64_t fragment = rte_cpu_to_be_64(
			(uint64_t)head->proto << 56 | (uint64_t)head->fragment.offset << 35 |
			(uint64_t)head->fragment.more << 32 | head->fragment.id);

		memcpy(ip + CV_IPV6_LEN, &fragment, sizeof(fragment));
	}
	return CV_IPV6_LEN + more;
}

static CV_INLINE struct cv_nat64_fragment cv_nat64_fragment_of_ipv4(const struct cv_ipv4 *ip)
{
	const uint16_t field = rte_be_to_cpu_16(ip->fragment);

	if (CV_LIKELY((field & 0x3fff) == 0))
		return (struct cv_nat64_fragment){.given = false};
	return (struct cv_nat64_fragment){
		.given = true,
		.more = field & 0x2000,
		.offset = field & 0x1fff,
		.id = rte_be_to_cpu_16(ip->id),
	};
}

static inline struct cv_nat64_fragment cv_nat64_fragment_of_ipv6(
	const uint8_t *ip, const struct cv_nat64_chain *chain)
{
	const uint8_t *at = ip + chain->fragment_at;

	if (chain->fragment_at == 0)
		return (struct cv_nat64_fragment){.given = false};
	return (struct cv_nat64_fragment){
		.given = true,
		.more = at[3] & 1,
		.offset = rte_be_to_cpu_16(cv_load_be16(at + 2)) >> 3,
		.id = rte_be_to_cpu_16(cv_load_be16(at + 6)),
	};
}

static CV_INLINE bool cv_nat64_is_part(const struct cv_nat64_fragment *fragment)
{
	return fragment->more || fragment->offset != 0;
}

// Where the checksum of layer 4 is; 0: it has none that addresses are under.
static CV_INLINE unsigned cv_nat64_checksum_at(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		return 6;
	default:
		return 0;
	}
}

// Bytes of layer 4 without which a packet is cut short.
static CV_INLINE unsigned cv_nat64_least(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 20;
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
		return 12;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return 8;
	default:
		return 0;
	}
}

// The sum of a number's words, in its byte order.
static CV_INLINE uint64_t cv_nat64_sum(uint64_t number)
{
	return (number >> 32) + (number & UINT32_MAX);
}

static CV_INLINE uint64_t cv_nat64_sum_ipv6(const struct cv_nat64_ends *ends)
{
	return cv_nat64_sum(ends->src6.high) + cv_nat64_sum(ends->src6.low) +
	       cv_nat64_sum(ends->dst6.high) + cv_nat64_sum(ends->dst6.low);
}

// What a checksum's sum grows by, as words lie in memory, when words of one sum, under 2^40, take the place of
// others: a multiple of 0xffff adds nothing to it.
static CV_INLINE uint16_t cv_nat64_delta(uint64_t old, uint64_t new)
{
	return rte_cpu_to_be_16(cv_checksum_fold(new + (UINT64_C(0xffff) << 40) - old));
}

static CV_INLINE uint16_t cv_nat64_delta_to_ipv4(
	const struct cv_nat64 *nat64, const struct cv_nat64_ends *ends)
{
	return CV_LIKELY(nat64->even)
		       ? nat64->to_ipv4_delta
		       : cv_nat64_delta(cv_nat64_sum_ipv6(ends), (uint64_t)ends->src + ends->dst);
}

static CV_INLINE uint16_t cv_nat64_delta_to_ipv6(
	const struct cv_nat64 *nat64, const struct cv_nat64_ends *ends)
{
	return CV_LIKELY(nat64->even)
		       ? nat64->to_ipv6_delta
		       : cv_nat64_delta((uint64_t)ends->src + ends->dst, cv_nat64_sum_ipv6(ends));
}

static CV_INLINE void cv_nat64_checksum_update(uint8_t *at, uint16_t delta, bool udp)
{
	const uint32_t sum = (uint32_t)(uint16_t)~cv_load_be16(at) + delta;
	rte_be16_t checksum = (rte_be16_t) ~(sum + (sum >> 16));

	if (udp && checksum == 0)
		checksum = 0xffff;
	memcpy(at, &checksum, sizeof(checksum));
}

// TCP's or UDP's. Without a branch that half of the packets of mixed traffic would take. False: it is UDP's,
// and not there.
static CV_INLINE bool cv_nat64_common_checksum(uint8_t *l4, uint8_t proto, uint16_t delta)
{
	const uint16_t udp = -(uint16_t)(proto == IPPROTO_UDP); // all bits, or none
	uint8_t *at = l4 + 16 - (10 & udp);
	const uint16_t old = cv_load_be16(at);
	const uint32_t sum = (uint32_t)(uint16_t)~old + delta;
	uint16_t new = (uint16_t) ~(sum + (sum >> 16));

	if (CV_UNLIKELY((udp & -(uint16_t)(old == 0)) != 0))
		return false;
	new |= udp & -(uint16_t)(new == 0);
	memcpy(at, &new, sizeof(new));
	return true;
}

// Whether it is TCP or UDP, with a whole header in so many bytes.
static CV_INLINE bool cv_nat64_is_common(uint8_t proto, unsigned bytes)
{
	const unsigned tcp = proto == IPPROTO_TCP, udp = proto == IPPROTO_UDP;

	return (tcp | udp) & (bytes >= 8 + 12 * tcp);
}

static CV_INLINE void cv_nat64_add(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED); // with info()
}

static inline uint8_t cv_nat64_tell_and_drop(const struct cv_nat64_job *job, enum cv_nat64_drop why,
	enum cv_icmp_reason reason, uint32_t value)
{
	const struct cv_icmp_error error = {.reason = reason, .value = value};
	const bool v6 = job->view->proto == CV_PROTO_IPV6;

	cv_teller_tell(&job->nat64->teller, job->worker, job->view, &error,
		v6 ? job->nat64->source_ipv6 : job->nat64->source);
	return CV_DROP(why);
}

// Makes the packet's layer 3 so many bytes longer, or shorter, at its beginning: the Ethernet header and its
// tags stay before it, with another type. Returns where it begins; NULL: no buffer.
static CV_INLINE uint8_t *cv_nat64_reframe(
	const struct cv_nat64_job *job, int more, rte_be16_t type)
{
	struct cv_view *view = job->view;
	const unsigned l3 = view->l3;
	uint64_t first, second, third;
	uint8_t *data;

	// An Ethernet header and two tags are 22 bytes, and at least 20 follow.
	memcpy(&first, view->data, sizeof(first));
	memcpy(&second, view->data + 8, sizeof(second));
	memcpy(&third, view->data + 16, sizeof(third));
	if (more > 0) {
		if (cv_nf_prepend(job->worker, view, (uint16_t)more) == NULL)
			return NULL;
		data = view->data;
	} else {
		data = view->data - more;
	}
	memcpy(data, &first, sizeof(first));
	if (CV_LIKELY(l3 == CV_ETHER_LEN)) {
		memcpy(data + 8, &second, 4);
	} else { // up to the last type; what is written behind is the header's
		memcpy(data + 8, &second, sizeof(second));
		memcpy(data + 16, &third, sizeof(third));
	}
	memcpy(data + l3 - sizeof(type), &type, sizeof(type));
	if (more < 0 && !cv_nf_adj(job->worker, view, (uint16_t)-more))
		return NULL;
	view->proto = type;
	return data + l3;
}

#endif
