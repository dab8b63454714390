// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "packet/icmp.h"

#include <string.h>

#include <rte_common.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"

#define HEADER 8 // of a message: type, code, checksum, and 4 bytes more
#define TTL 64
#define TOS_ERROR 0xc0 // precedence 6, internetwork control: RFC 1812 section 4.3.2.5
#define ECHO_REQUEST 8
#define ECHO_REQUEST_V6 128
#define ECHO_REPLY_V6 129

// Type and code of each reason.
static const uint8_t kinds_v4[][2] = {
	[CV_ICMP_TIME_EXCEEDED] = {11, 0},
	[CV_ICMP_NO_ROUTE] = {3, 0},
	[CV_ICMP_HOST_UNREACHABLE] = {3, 1},
	[CV_ICMP_PROHIBITED] = {3, 13},
	[CV_ICMP_PORT_UNREACHABLE] = {3, 3},
	[CV_ICMP_PROTOCOL_UNREACHABLE] = {3, 2},
	[CV_ICMP_TOO_BIG] = {3, 4},
	[CV_ICMP_PARAMETER] = {12, 0},
	[CV_ICMP_UNKNOWN_OPTION] = {12, 0},
	[CV_ICMP_SR_UPPER_LAYER] = {12, 0},
	[CV_ICMP_SOURCE_ROUTE_FAILED] = {3, 5},
};
static const uint8_t kinds_v6[][2] = {
	[CV_ICMP_TIME_EXCEEDED] = {3, 0},
	[CV_ICMP_NO_ROUTE] = {1, 0},
	[CV_ICMP_HOST_UNREACHABLE] = {1, 3},
	[CV_ICMP_PROHIBITED] = {1, 1},
	[CV_ICMP_PORT_UNREACHABLE] = {1, 4},
	[CV_ICMP_PROTOCOL_UNREACHABLE] = {4, 1},
	[CV_ICMP_TOO_BIG] = {2, 0},
	[CV_ICMP_PARAMETER] = {4, 0},
	[CV_ICMP_UNKNOWN_OPTION] = {4, 2},
	[CV_ICMP_SR_UPPER_LAYER] = {4, 4},
	[CV_ICMP_SOURCE_ROUTE_FAILED] = {1, 0},
};

static uint16_t total_of(const uint8_t *ip)
{
	return rte_be_to_cpu_16(((const struct cv_ipv4 *)ip)->total_len);
}

static uint16_t payload_of(const uint8_t *ip)
{
	return rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
}

static void put_be32(uint8_t *at, uint32_t value)
{
	rte_be32_t word = rte_cpu_to_be_32(value);

	memcpy(at, &word, sizeof(word));
}

static void put_checksum_v4(uint8_t *icmp, uint16_t len)
{
	rte_be16_t sum;

	memset(icmp + 2, 0, 2);
	sum = cv_checksum(icmp, len);
	memcpy(icmp + 2, &sum, sizeof(sum));
}

bool cv_icmpv4_allowed(const uint8_t *ip)
{
	// Queries and their answers: what else is there is an error, or unknown.
	static const uint8_t queries[] = {0, 8, 9, 10, 13, 14, 15, 16, 17, 18};
	const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;
	uint16_t len = cv_ipv4_header_len(header);

	if (cv_ipv4_martian(header->src) || cv_ipv4_martian(header->dst) ||
		(header->fragment & CV_IPV4_OFFSET) != 0)
		return false;
	if (header->proto != IPPROTO_ICMP)
		return true;
	return total_of(ip) > len && memchr(queries, ip[len], sizeof(queries)) != NULL;
}

// Where the upper layer begins, and what it is: behind extension headers. 0: it is not there, or in
// another fragment.
static uint32_t upper_layer(const uint8_t *ip, uint8_t *proto)
{
	uint32_t at = CV_IPV6_LEN, end = at + payload_of(ip);

	*proto = ((const struct cv_ipv6 *)ip)->next;
	for (int left = CV_IPV6_EXTENSIONS_MAX; cv_ipv6_is_extension(*proto); left--) {
		if (end - at < 8 || left == 0)
			return 0;
		if (*proto == IPPROTO_FRAGMENT && (cv_tuple_load(ip + at + 2) & 0xfff8) != 0)
			return 0;
		uint32_t bytes = *proto == IPPROTO_FRAGMENT ? 8
				 : *proto == IPPROTO_AH     ? (ip[at + 1] + 2u) * 4
							    : (ip[at + 1] + 1u) * 8;

		if (end - at < bytes)
			return 0;
		*proto = ip[at];
		at += bytes;
	}
	return at;
}

bool cv_icmpv6_allowed(const uint8_t *ip, const struct cv_icmp_error *error)
{
	const struct cv_ipv6 *header = (const struct cv_ipv6 *)ip;
	uint8_t proto;
	uint32_t at;

	if (cv_ipv6_martian(header->src))
		return false;
	if (cv_ipv6_martian(header->dst) &&
		!(error->reason == CV_ICMP_TOO_BIG && cv_ipv6_multicast(header->dst)))
		return false;
	at = upper_layer(ip, &proto);
	if (at == 0)
		return false;
	if (proto != IPPROTO_ICMPV6)
		return true;
	// Types below 128 are errors; 137 is a redirect.
	return at < CV_IPV6_LEN + (uint32_t)payload_of(ip) && ip[at] >= 128 && ip[at] != 137;
}

uint16_t cv_icmpv4_error_len(const uint8_t *ip)
{
	uint32_t len = CV_IPV4_LEN + HEADER + (uint32_t)total_of(ip);

	return (uint16_t)RTE_MIN(len, (uint32_t)CV_ICMPV4_ERROR_MAX);
}

uint16_t cv_icmpv6_error_len(const uint8_t *ip)
{
	uint32_t len = 2 * CV_IPV6_LEN + HEADER + (uint32_t)payload_of(ip);

	return (uint16_t)RTE_MIN(len, (uint32_t)CV_ICMPV6_ERROR_MAX);
}

static void header_v4(
	uint8_t *out, rte_be32_t src, rte_be32_t dst, uint16_t len, uint16_t id, uint8_t tos)
{
	struct cv_ipv4 ip = {
		.version_ihl = 0x45,
		.tos = tos,
		.total_len = rte_cpu_to_be_16(len),
		.id = rte_cpu_to_be_16(id),
		.ttl = TTL,
		.proto = IPPROTO_ICMP,
		.src = src,
		.dst = dst,
	};

	ip.checksum = cv_checksum((const uint8_t *)&ip, sizeof(ip));
	memcpy(out, &ip, sizeof(ip));
}

void cv_icmpv4_error(uint8_t *out, const uint8_t *ip, const struct cv_icmp_error *error,
	rte_be32_t src, uint16_t id)
{
	const uint16_t len = cv_icmpv4_error_len(ip);
	uint8_t *icmp = out + CV_IPV4_LEN;

	header_v4(out, src, ((const struct cv_ipv4 *)ip)->src, len, id, TOS_ERROR);
	memset(icmp, 0, HEADER);
	memcpy(icmp, kinds_v4[error->reason], 2);
	if (error->reason == CV_ICMP_TOO_BIG) // RFC 1191 section 4: in the lower half
		put_be32(icmp + 4, error->value & 0xffff);
	if (error->reason == CV_ICMP_PARAMETER)
		icmp[4] = (uint8_t)error->value;
	memcpy(icmp + HEADER, ip, len - CV_IPV4_LEN - HEADER);
	put_checksum_v4(icmp, len - CV_IPV4_LEN);
}

void cv_icmpv6_error(
	uint8_t *out, const uint8_t *ip, const struct cv_icmp_error *error, const uint8_t *src)
{
	const uint16_t len = cv_icmpv6_error_len(ip);
	uint8_t *icmp = out + CV_IPV6_LEN;

	cv_icmpv6_header(out, src, ((const struct cv_ipv6 *)ip)->src, len - CV_IPV6_LEN, TTL);
	memset(icmp, 0, HEADER);
	memcpy(icmp, kinds_v6[error->reason], 2);
	if (error->reason == CV_ICMP_TOO_BIG || error->reason == CV_ICMP_PARAMETER ||
		error->reason == CV_ICMP_UNKNOWN_OPTION ||
		error->reason == CV_ICMP_SR_UPPER_LAYER ||
		error->reason == CV_ICMP_PROTOCOL_UNREACHABLE)
		put_be32(icmp + 4, error->value);
	memcpy(icmp + HEADER, ip, len - CV_IPV6_LEN - HEADER);
	cv_icmpv6_checksum_set(out);
}

uint16_t cv_icmpv4_echo_len(const uint8_t *ip)
{
	const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;
	uint16_t skip = cv_ipv4_header_len(header);
	uint16_t len = total_of(ip) - skip;

	if (header->proto != IPPROTO_ICMP || len < HEADER ||
		(header->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) != 0 ||
		ip[skip] != ECHO_REQUEST || ip[skip + 1] != 0 ||
		cv_checksum_fold(cv_checksum_add(0, ip + skip, len)) != 0xffff)
		return 0;
	return CV_IPV4_LEN + len;
}

uint16_t cv_icmpv6_echo_len(const uint8_t *ip)
{
	const struct cv_ipv6 *header = (const struct cv_ipv6 *)ip;
	uint16_t len = payload_of(ip);

	if (header->next != IPPROTO_ICMPV6 || len < HEADER || ip[CV_IPV6_LEN] != ECHO_REQUEST_V6 ||
		ip[CV_IPV6_LEN + 1] != 0 || !cv_icmpv6_checksum_ok(ip))
		return 0;
	return CV_IPV6_LEN + len;
}

void cv_icmpv4_echo(uint8_t *out, const uint8_t *ip, rte_be32_t src, uint16_t id)
{
	const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;
	uint16_t skip = cv_ipv4_header_len(header);
	uint16_t len = total_of(ip) - skip;

	header_v4(out, src, header->src, CV_IPV4_LEN + len, id, header->tos);
	memcpy(out + CV_IPV4_LEN, ip + skip, len);
	out[CV_IPV4_LEN] = 0; // reply
	put_checksum_v4(out + CV_IPV4_LEN, len);
}

void cv_icmpv6_echo(uint8_t *out, const uint8_t *ip, const uint8_t *src)
{
	uint16_t len = payload_of(ip);

	cv_icmpv6_header(out, src, ((const struct cv_ipv6 *)ip)->src, len, TTL);
	memcpy(out + CV_IPV6_LEN, ip + CV_IPV6_LEN, len);
	out[CV_IPV6_LEN] = ECHO_REPLY_V6;
	cv_icmpv6_checksum_set(out);
}

void cv_icmpv6_header(
	uint8_t *ip, const uint8_t *src, const uint8_t *dst, uint16_t len, uint8_t hop_limit)
{
	struct cv_ipv6 header = {
		.version_class_flow = RTE_BE32(0x60000000),
		.payload_len = rte_cpu_to_be_16(len),
		.next = IPPROTO_ICMPV6,
		.hop_limit = hop_limit,
	};

	memcpy(header.src, src, 16);
	memcpy(header.dst, dst, 16);
	memcpy(ip, &header, sizeof(header));
}

// Of the pseudo-header (RFC 8200 section 8.1) and the message, whose checksum is among it.
static uint16_t sum_v6(const uint8_t *ip)
{
	uint64_t sum = cv_checksum_add(0, ip + 8, 32);

	sum += ((const struct cv_ipv6 *)ip)->payload_len;
	sum += RTE_BE16(IPPROTO_ICMPV6);
	return cv_checksum_fold(cv_checksum_add(sum, ip + CV_IPV6_LEN, payload_of(ip)));
}

void cv_icmpv6_checksum_set(uint8_t *ip)
{
	rte_be16_t sum;

	memset(ip + CV_IPV6_LEN + 2, 0, 2);
	sum = (rte_be16_t)~sum_v6(ip);
	memcpy(ip + CV_IPV6_LEN + 2, &sum, sizeof(sum));
}

bool cv_icmpv6_checksum_ok(const uint8_t *ip)
{
	return sum_v6(ip) == 0xffff;
}
