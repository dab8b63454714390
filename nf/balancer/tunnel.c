// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/tunnel.h"

#include <netinet/in.h>
#include <string.h>

#include "packet/checksum.h"
#include "packet/ether.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"
#include "packet/udp.h"

#define HOPS 64
#define DYNAMIC_PORTS 0xc000 // source ports of tunnels: RFC 6335's dynamic ones

// What an outer header takes over of the packet inside.
struct inner {
	bool v6;
	bool whole; // it may not be fragmented
	uint8_t class; // DSCP and ECN
	uint16_t len; // without padding
	uint16_t flow; // a hash: packets of a flow stay on one way
};

// Folds the words that tell flows apart.
static uint16_t fold(const void *of, size_t bytes)
{
	const uint16_t folded = cv_checksum_fold(cv_checksum_add(0, of, bytes));

	return (uint16_t)(folded ^ folded >> 7);
}

static bool read_ipv4(const uint8_t *ip, unsigned room, struct inner *inner)
{
	const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;
	struct cv_tuple_ipv4 tuple;

	if (room < CV_IPV4_LEN || rte_be_to_cpu_16(header->total_len) > room ||
		rte_be_to_cpu_16(header->total_len) < CV_IPV4_LEN ||
		cv_tuple_ipv4(ip, room, &tuple) >= CV_TUPLE_BAD_HEADER)
		return false;
	// Ports of a first fragment only would lead its others another way.
	if (ip[6] & 0x20)
		tuple.sport = tuple.dport = 0;
	*inner = (struct inner){.whole = ip[6] & 0x40,
		.class = header->tos,
		.len = rte_be_to_cpu_16(header->total_len),
		.flow = fold(&tuple, sizeof(tuple))};
	return true;
}

static bool read_ipv6(const uint8_t *ip, unsigned room, struct inner *inner)
{
	struct cv_tuple_ipv6 tuple;

	if (!cv_ipv6_check((const struct cv_ipv6 *)ip, (uint16_t)room) ||
		cv_tuple_ipv6(ip, room, &tuple) >= CV_TUPLE_BAD_HEADER)
		return false;
	*inner = (struct inner){.v6 = true,
		.whole = true,
		.class = (uint8_t)(ip[0] << 4 | ip[1] >> 4),
		.len = (uint16_t)(CV_IPV6_LEN +
				  rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len)),
		.flow = ip[6] == IPPROTO_FRAGMENT ? fold(ip + 8, 32) : fold(&tuple, sizeof(tuple))};
	return true;
}

static unsigned ip_bytes(const struct cv_address *to)
{
	return to->v6 ? CV_IPV6_LEN : CV_IPV4_LEN;
}

unsigned cv_tunnel_bytes(const struct cv_tunnel *tunnel, const struct cv_address *to)
{
	return ip_bytes(to) + (tunnel->gue ? CV_UDP_LEN : 0u);
}

static void write_ipv4(uint8_t *ip, const struct cv_tunnel *tunnel, const struct cv_address *to,
	const struct inner *inner, uint8_t proto, uint16_t len, uint16_t identification)
{
	struct cv_ipv4 *header = (struct cv_ipv4 *)ip;

	memset(ip, 0, CV_IPV4_LEN);
	ip[0] = 0x45;
	ip[6] = inner->whole ? 0x40 : 0;
	header->tos = inner->class;
	header->total_len = rte_cpu_to_be_16((uint16_t)(CV_IPV4_LEN + len));
	header->id = rte_cpu_to_be_16(inner->whole ? 0 : identification);
	header->ttl = HOPS;
	header->proto = proto;
	memcpy(ip + 12, tunnel->source[0].bytes, 4);
	memcpy(ip + 16, to->bytes, 4);
	header->checksum = cv_checksum(ip, CV_IPV4_LEN);
}

static void write_ipv6(uint8_t *ip, const struct cv_tunnel *tunnel, const struct cv_address *to,
	const struct inner *inner, uint8_t proto, uint16_t len)
{
	cv_icmpv6_header(ip, tunnel->source[1].bytes, to->bytes, len, HOPS);
	((struct cv_ipv6 *)ip)->next = proto;
	ip[0] = (uint8_t)(0x60 | inner->class >> 4);
	ip[1] = (uint8_t)(inner->class << 4);
}

// UDP in front of so many bytes. A checksum over IPv6 must be there (RFC 8200 section 8.1); receivers that
// go without (RFC 6935) are not sure to.
static void write_udp(uint8_t *l4, const struct cv_tunnel *tunnel, const struct inner *inner,
	uint16_t len, const uint8_t *ipv6)
{
	struct cv_udp *udp = (struct cv_udp *)l4;
	uint64_t sum;

	*udp = (struct cv_udp){
		.sport = rte_cpu_to_be_16((uint16_t)(DYNAMIC_PORTS | inner->flow)),
		.dport = rte_cpu_to_be_16(tunnel->port),
		.len = rte_cpu_to_be_16(len),
	};
	if (ipv6 == NULL)
		return;
	sum = cv_checksum_add(0, ipv6 + 8, 32) + rte_cpu_to_be_16(IPPROTO_UDP) + udp->len;
	udp->checksum = (rte_be16_t)~cv_checksum_fold(cv_checksum_add(sum, l4, len));
	if (udp->checksum == 0)
		udp->checksum = 0xffff;
}

bool cv_tunnel_wrap(const struct cv_tunnel *tunnel, const struct cv_address *to,
	struct cv_nf_worker *worker, struct cv_view *view, uint16_t identification)
{
	const unsigned l3 = view->l3, more = cv_tunnel_bytes(tunnel, to);
	const unsigned room = view->len - l3, udp_bytes = tunnel->gue ? CV_UDP_LEN : 0;
	const rte_be16_t type = rte_cpu_to_be_16(to->v6 ? 0x86dd : 0x0800);
	struct inner inner;
	uint8_t *ip, proto;
	uint16_t len;

	if (view->proto == CV_PROTO_IPV4 ? !read_ipv4(view->data + l3, room, &inner)
					 : !read_ipv6(view->data + l3, room, &inner))
		return false;
	if (inner.len + more > UINT16_MAX || cv_nf_prepend(worker, view, (uint16_t)more) == NULL)
		return false;
	memmove(view->data, view->data + more, l3);
	memcpy(view->data + l3 - 2, &type, sizeof(type));
	ip = view->data + l3;
	len = (uint16_t)(udp_bytes + inner.len);
	proto = tunnel->gue ? IPPROTO_UDP : inner.v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	if (to->v6)
		write_ipv6(ip, tunnel, to, &inner, proto, len);
	else
		write_ipv4(ip, tunnel, to, &inner, proto, len, identification);
	if (tunnel->gue)
		write_udp(ip + ip_bytes(to), tunnel, &inner, len, to->v6 ? ip : NULL);
	cv_view_parse(view);
	return true;
}
