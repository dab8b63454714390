// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "packet/tcp_reset.h"

#include "packet/checksum.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"

#define TCP_LEN 20
#define TTL 64
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

static bool is_v6(const uint8_t *ip)
{
	return ip[0] >> 4 == 6;
}

// Bytes of TCP.
static uint16_t tcp_len(const uint8_t *ip, uint16_t l4)
{
	return (uint16_t)(is_v6(ip) ? CV_IPV6_LEN + cv_tuple_load(ip + 4) - l4
				    : cv_tuple_load(ip + 2) - l4);
}

// Of the pseudo-header and len bytes of TCP, the checksum's field among them.
static uint16_t sum(const uint8_t *ip, const uint8_t *tcp, uint16_t len)
{
	uint64_t sum = cv_checksum_add(0, ip + (is_v6(ip) ? 8 : 12), is_v6(ip) ? 32 : 8);

	sum += rte_cpu_to_be_16(len) + (uint64_t)RTE_BE16(IPPROTO_TCP);
	return cv_checksum_fold(cv_checksum_add(sum, tcp, len));
}

uint16_t cv_tcp_reset_len(const uint8_t *ip, uint16_t l4)
{
	const uint16_t len = tcp_len(ip, l4);
	const uint8_t *tcp = ip + l4;

	if (len < TCP_LEN || (tcp[12] >> 4) * 4 < TCP_LEN || (tcp[12] >> 4) * 4 > len ||
		tcp[13] & RST || sum(ip, tcp, len) != 0xffff)
		return 0;
	return (is_v6(ip) ? CV_IPV6_LEN : CV_IPV4_LEN) + TCP_LEN;
}

static void put_header_v4(uint8_t *out, const uint8_t *ip, uint16_t id)
{
	struct cv_ipv4 header = {
		.version_ihl = 0x45,
		.total_len = RTE_BE16(CV_IPV4_LEN + TCP_LEN),
		.id = rte_cpu_to_be_16(id),
		.ttl = TTL,
		.proto = IPPROTO_TCP,
	};

	memcpy(&header.src, ip + 16, 4);
	memcpy(&header.dst, ip + 12, 4);
	header.checksum = cv_checksum((const uint8_t *)&header, sizeof(header));
	memcpy(out, &header, sizeof(header));
}

static void put_header_v6(uint8_t *out, const uint8_t *ip)
{
	struct cv_ipv6 header = {
		.version_class_flow = RTE_BE32(0x60000000),
		.payload_len = RTE_BE16(TCP_LEN),
		.next = IPPROTO_TCP,
		.hop_limit = TTL,
	};

	memcpy(header.src, ip + 24, 16);
	memcpy(header.dst, ip + 8, 16);
	memcpy(out, &header, sizeof(header));
}

void cv_tcp_reset(uint8_t *out, const uint8_t *ip, uint16_t l4, uint16_t id)
{
	const uint8_t *tcp = ip + l4;
	uint8_t *reset = out + (is_v6(ip) ? CV_IPV6_LEN : CV_IPV4_LEN);
	rte_be32_t seq;
	rte_be16_t checksum;

	if (is_v6(ip))
		put_header_v6(out, ip);
	else
		put_header_v4(out, ip, id);
	memset(reset, 0, TCP_LEN);
	memcpy(reset, tcp + 2, 2);
	memcpy(reset + 2, tcp, 2);
	reset[12] = TCP_LEN / 4 << 4;
	if (tcp[13] & ACK) {
		memcpy(reset + 4, tcp + 8, 4);
		reset[13] = RST;
	} else {
		memcpy(&seq, tcp + 4, 4);
		seq = rte_cpu_to_be_32(rte_be_to_cpu_32(seq) + tcp_len(ip, l4) -
				       (tcp[12] >> 4) * 4u + ((tcp[13] & SYN) != 0) +
				       ((tcp[13] & FIN) != 0));
		memcpy(reset + 8, &seq, 4);
		reset[13] = RST | ACK;
	}
	checksum = (rte_be16_t)~sum(out, reset, TCP_LEN);
	memcpy(reset + 16, &checksum, 2);
}
