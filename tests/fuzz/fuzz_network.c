// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any packets to a router with addresses: ARP, neighbour discovery, echo requests, packets that wait
// for neighbours, are fragmented, or that ICMP errors are about. Whatever comes, in whatever order:
// packets are conserved; what leaves is longer than an Ethernet header, by a port, with a sound IP
// header, to an address that is no group unless it is ARP or neighbour discovery; every buffer
// comes back. A group MAC may also answer a group's.
//
// The router is the same for all inputs, and knows what it learned: its tables take too long to make.
//
// Input: for each packet, 1 byte: the port that it came in by, and whether its IPv4 header's checksum
// is made good and it is sent to the port's MAC address; 1 byte: its length; 1 byte: how often that
// length; then its bytes. A tick follows each.
#include <string.h>

#include "packet/ether.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
	"{\"addresses\": {\"a\": [\"10.0.0.1/24\", \"2001:db8:1::1/64\"],"
	"\"b\": [\"192.0.2.1/24\", \"2001:db8:2::1/64\"]},"
	"\"routes\": [{\"prefix\": \"0.0.0.0/0\", \"via\": \"192.0.2.9\"},"
	"{\"prefix\": \"10.8.0.0/16\", \"nexthops\": [{\"via\": \"192.0.2.9\"},"
	"{\"via\": \"10.0.0.8\"}]}, {\"prefix\": \"10.7.0.0/16\", \"type\": \"prohibit\"},"
	"{\"prefix\": \"::/0\", \"via\": \"fe80::1\", \"dev\": \"b\"},"
	"{\"prefix\": \"10.6.0.0/16\", \"dev\": \"c\"}],"
	"\"neighbour_entries\": 16, \"icmp_rate\": 1000000}";
static const uint16_t mtus[RIG_PORTS] = {1500, 300, 1500, 1500};

static struct rte_mempool *pool;
static const struct cv_nf *nf;
static struct function_rig rig;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	pool = fuzz_begin((*argv)[0], "network");
	nf = cv_nf_find("router");
	rig_begin(&rig, nf, fuzz_function(nf, text, mtus), pool);
	return 0;
}

static void check(const struct rig_out *out)
{
	struct cv_view view = {.before = 0};
	const uint8_t *l3;

	cv_view_set(&view, (uint8_t *)out->bytes, out->len);
	l3 = view.data + view.l3;
	must(out->port < RIG_PORTS, "it leaves by a port");
	must(out->len > CV_ETHER_LEN, "it has a header");
	if (view.proto == RTE_BE16(0x0806))
		return;
	must(view.len - view.l3 <= mtus[out->port] || view.len == 60, "it fits");
	if (view.proto == CV_PROTO_IPV4) {
		must(cv_ipv4_check((const struct cv_ipv4 *)l3, view.len - view.l3) != 0,
			"its header is sound");
		must(!cv_mac_group(view.data), "IPv4 goes to one");
		return;
	}
	must(view.proto == CV_PROTO_IPV6, "it is IP");
	must(cv_ipv6_check((const struct cv_ipv6 *)l3, view.len - view.l3), "its header is sound");
	if (cv_mac_group(view.data))
		must(l3[6] == IPPROTO_ICMPV6 && l3[7] == 255, "neighbour discovery");
}

// A packet that came in as the input says.
static void receive(const uint8_t *head, const uint8_t *bytes, uint16_t len)
{
	uint8_t packet[2048];
	struct cv_view view = {.before = 0};
	const unsigned in = head[0] % RIG_PORTS;

	memcpy(packet, bytes, len);
	memset(packet + len, 0x5a, sizeof(packet) - len);
	if (len >= CV_ETHER_LEN) // the same packet, longer: what is fragmented
		len = (uint16_t)RTE_MIN(len * (1u + head[2] % 16), 1600u);
	if (head[0] & 0x40 && len >= CV_ETHER_LEN)
		memcpy(packet, fuzz_macs[in], CV_MAC_LEN);
	cv_view_set(&view, packet, len);
	if (head[0] & 0x80 && view.proto == CV_PROTO_IPV4 && len >= view.l3 + CV_IPV4_LEN) {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)(packet + view.l3);

		if (cv_ipv4_header_len(ip) <= len - view.l3) {
			ip->total_len = rte_cpu_to_be_16(len - view.l3);
			ip->checksum = 0;
			ip->checksum = cv_checksum((uint8_t *)ip, cv_ipv4_header_len(ip));
		}
	}
	if (head[0] & 0x80 && view.proto == CV_PROTO_IPV6 && len >= view.l3 + CV_IPV6_LEN + 4) {
		struct cv_ipv6 *ip = (struct cv_ipv6 *)(packet + view.l3);

		ip->payload_len = rte_cpu_to_be_16(len - view.l3 - CV_IPV6_LEN);
		if (ip->next == IPPROTO_ICMPV6)
			cv_icmpv6_checksum_set((uint8_t *)ip);
	}
	rig_receive(&rig, in, packet, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned seen = rig.outs;

	while (size >= 3) {
		uint16_t len = (uint16_t)RTE_MIN((size_t)data[1], size - 3);

		receive(data, data + 3, len);
		rig_tick(&rig);
		data += 3 + len;
		size -= 3u + len;
		for (; seen < rig.outs; seen++)
			check(&rig.out[seen % RIG_OUT_MAX]);
	}
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == rig.counters.held - rig.counters.released,
		"buffers come back");
	return 0;
}
