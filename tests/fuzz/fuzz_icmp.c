// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as what a router in a network reads and answers: ARP, neighbour discovery, packets that
// an ICMP error is about, echo requests, and packets to be fragmented. Nothing outside the packet is
// read; what is written has the length that was said before, and is sound itself.
//
// Input: 1 byte: ARP, IPv4 or IPv6; 2 bytes: an MTU, a reason; then the packet. Its checksums are made
// good, for what is behind them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/arp.h"
#include "packet/icmp.h"
#include "packet/ipv4_fragment.h"
#include "packet/ipv6.h"
#include "packet/neighbour_discovery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t router[16] = {0x20, 1, 0x0d, 0xb8, [15] = 1};

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void arp(const uint8_t *at, uint32_t len)
{
	struct cv_arp read;
	uint8_t *out = malloc(CV_ARP_LEN);

	if (cv_arp_read(at, len, &read)) {
		cv_arp_write(out, rte_be_to_cpu_16(read.operation), read.sender_mac, read.sender,
			read.target_mac, read.target);
		must(memcmp(out, at, CV_ARP_LEN) == 0, "what was read is written again");
	}
	free(out);
}

static void error_v4(const uint8_t *ip, const struct cv_icmp_error *error)
{
	const uint16_t len = cv_icmpv4_error_len(ip);
	uint8_t *out = malloc(len);

	if (cv_icmpv4_allowed(ip)) {
		cv_icmpv4_error(out, ip, error, 1, 2);
		must(len <= CV_ICMPV4_ERROR_MAX && cv_ipv4_check((struct cv_ipv4 *)out, len) != 0,
			"an error is sound");
		must(cv_checksum(out + CV_IPV4_LEN, len - CV_IPV4_LEN) == 0, "its checksum is");
		must(!cv_icmpv4_allowed(out), "no error is about an error");
		must(memcmp(out + 16, ip + 12, 4) == 0, "it goes to the packet's source");
	}
	free(out);
}

static void echo_v4(const uint8_t *ip)
{
	const uint16_t len = cv_icmpv4_echo_len(ip);
	uint8_t *out = malloc(len + !len);

	if (len != 0) {
		cv_icmpv4_echo(out, ip, 1, 2);
		must(cv_ipv4_check((struct cv_ipv4 *)out, len) == CV_IPV4_LEN, "a reply is sound");
		must(cv_checksum(out + CV_IPV4_LEN, len - CV_IPV4_LEN) == 0, "its checksum is");
		must(cv_icmpv4_echo_len(out) == 0, "a reply is not answered");
	}
	free(out);
}

static void fragments(const struct cv_ipv4 *ip, uint16_t mtu)
{
	const uint16_t total = rte_be_to_cpu_16(ip->total_len);
	struct cv_ipv4_fragments parts;
	uint32_t payload;

	if (total <= mtu)
		return;
	cv_ipv4_fragments(ip, mtu, &parts);
	payload = parts.first_payload;
	for (uint16_t i = 1; i < parts.count; i++) {
		uint16_t len = cv_ipv4_fragment_len(&parts, i);
		uint8_t *out = malloc(len);
		uint16_t header;

		cv_ipv4_fragment(ip, &parts, i, out);
		header = cv_ipv4_check((struct cv_ipv4 *)out, len);
		must(header != 0 && len <= mtu, "a fragment is sound");
		must(memcmp(out + header, (const uint8_t *)ip + cv_ipv4_header_len(ip) + payload,
			     len - header) == 0,
			"its payload is the packet's");
		payload += len - header;
		free(out);
	}
	must(parts.count == 0 || payload == total - cv_ipv4_header_len(ip),
		"nothing is missing, nothing twice");
}

static void v4(uint8_t *at, uint16_t len, uint16_t mtu, const struct cv_icmp_error *error)
{
	struct cv_ipv4 *ip = (struct cv_ipv4 *)at;

	if (len >= CV_IPV4_LEN && cv_ipv4_header_len(ip) <= len) {
		ip->checksum = 0;
		ip->checksum = cv_checksum(at, cv_ipv4_header_len(ip));
	}
	if (cv_ipv4_check(ip, len) == 0)
		return;
	error_v4(at, error);
	echo_v4(at);
	fragments(ip, mtu);
}

static void v6(uint8_t *ip, uint16_t len, const struct cv_icmp_error *error)
{
	struct cv_nd nd;
	uint16_t bytes;
	uint8_t *out;

	if (!cv_ipv6_check((struct cv_ipv6 *)ip, len))
		return;
	bytes = cv_icmpv6_error_len(ip);
	if (cv_icmpv6_allowed(ip, error)) {
		out = malloc(bytes);
		cv_icmpv6_error(out, ip, error, router);
		must(cv_ipv6_check((struct cv_ipv6 *)out, bytes) && bytes <= CV_ICMPV6_ERROR_MAX &&
				cv_icmpv6_checksum_ok(out),
			"an ICMPv6 error is sound");
		must(!cv_icmpv6_allowed(out, error), "no error is about an ICMPv6 error");
		free(out);
	}
	if (rte_be_to_cpu_16(((struct cv_ipv6 *)ip)->payload_len) >= 4)
		cv_icmpv6_checksum_set(ip);
	bytes = cv_icmpv6_echo_len(ip);
	if (bytes != 0) {
		out = malloc(bytes);
		cv_icmpv6_echo(out, ip, router);
		must(cv_icmpv6_checksum_ok(out) && cv_icmpv6_echo_len(out) == 0,
			"a reply is sound");
		free(out);
	}
	if (cv_nd_read(ip, len, &nd)) {
		struct cv_nd again;

		out = malloc(CV_ND_LEN);
		bytes = cv_nd_write(out, &nd);
		must(cv_nd_read(out, bytes, &again) && again.flags == nd.flags &&
				again.has_mac == nd.has_mac &&
				memcmp(again.target, nd.target, 16) == 0,
			"what was read is written again");
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_icmp_error error;
	uint16_t mtu, len;
	uint8_t *exact;

	if (size < 3)
		return 0;
	mtu = (uint16_t)(68 + (data[1] << 4) + (data[2] >> 4));
	error = (struct cv_icmp_error){data[2] % (CV_ICMP_SOURCE_ROUTE_FAILED + 1), mtu};
	len = (uint16_t)(size - 3);
	exact = malloc(len + !len);
	memcpy(exact, data + 3, len);
	if (data[0] % 3 == 0)
		arp(exact, len);
	else if (data[0] % 3 == 1)
		v4(exact, len, mtu, &error);
	else
		v6(exact, len, &error);
	free(exact);
	return 0;
}
