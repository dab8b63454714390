// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the tests of nat64 share: checksums by their definition, and one packet through a path.
#ifndef CV_NAT64_TEST_NET_H
#define CV_NAT64_TEST_NET_H

#include "tests/support/test_packets.h"

#include <rte_byteorder.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/support/function_rig.h"

extern const struct cv_nf cv_nf_nat64;

#define SOURCES "'source': '203.0.113.1', 'source_ipv6': '2001:db8:ffff::1'"
// Host 1 has 2001:db8::1 and 192.0.2.1; all others of IPv4 are in the prefix, and so are hosts in 198.51.100/24.
#define CONFIG(more)                                                   \
	"{'prefix': '2001:db8:64::/96', 'hosts': ['198.51.100.0/24']," \
	"'eam': [{'ipv4': '192.0.2.1', 'ipv6': '2001:db8::1'}], " SOURCES more "}"

static struct rte_mempool *pool;
static struct function_rig rig;

static inline uint16_t load16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

// Where layer 4 begins, what it is and how long; behind options and routes. 0: it has none that
// is whole.
static inline unsigned find_l4(const uint8_t *ip, uint8_t *proto, unsigned *len)
{
	unsigned at = CV_IPV6_LEN;

	if (ip[0] >> 4 == 4) {
		*proto = ip[9];
		*len = load16(ip + 2) - (ip[0] & 15) * 4u;
		return load16(ip + 6) & 0x3fff ? 0 : (ip[0] & 15) * 4u;
	}
	*proto = ip[6];
	*len = 0;
	if (ip[0] >> 4 != 6)
		return 0;
	while (*proto == IPPROTO_HOPOPTS || *proto == IPPROTO_DSTOPTS ||
		*proto == IPPROTO_ROUTING) {
		*proto = ip[at];
		at += (ip[at + 1] + 1u) * 8;
	}
	*len = CV_IPV6_LEN + load16(ip + 4) - at;
	return *proto == IPPROTO_FRAGMENT ? 0 : at;
}

static inline unsigned checksum_at(uint8_t proto)
{
	return proto == IPPROTO_TCP                                                        ? 16
	       : proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6                          ? 2
	       : proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE || proto == IPPROTO_DCCP ? 6
											   : 0;
}

// The checksum of layer 4, by its definition: 0 if what is there is right.
static inline uint16_t checksum_of(const uint8_t *ip)
{
	const bool v6 = ip[0] >> 4 == 6;
	uint8_t proto;
	unsigned len, at = find_l4(ip, &proto, &len);
	uint64_t sum = 0;

	if (proto != IPPROTO_ICMP) {
		sum = cv_checksum_add(0, ip + (v6 ? 8 : 12), v6 ? 32 : 8);
		sum += rte_cpu_to_be_16((uint16_t)len) + rte_cpu_to_be_16(proto);
	}
	return (uint16_t)~cv_checksum_fold(cv_checksum_add(sum, ip + at, len));
}

static inline void put_checksum(uint8_t *ip)
{
	uint8_t proto;
	unsigned len, at = find_l4(ip, &proto, &len), field = checksum_at(proto);
	uint16_t sum;

	if (at == 0 || field == 0 || len < field + 2 || load16(ip + at + field) != 0)
		return;
	sum = checksum_of(ip);
	if (sum == 0 && proto == IPPROTO_UDP)
		sum = 0xffff;
	memcpy(ip + at + field, &sum, 2);
}

// A packet with the checksum that it should have. "none": it has none.
static inline struct packet whole(const char *text)
{
	const bool none = strncmp(text, "none ", 5) == 0;
	struct packet packet = packet_make(none ? text + 5 : text);
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	if (!none && packet.len > view.l3 + CV_IPV4_LEN)
		put_checksum(packet.bytes + view.l3);
	return packet;
}

static inline void same(const char *name, const struct rig_out *out, const struct packet *want)
{
	if (out->len != want->len)
		fail_msg("%s: %u bytes, not %u", name, out->len, want->len);
	for (unsigned i = 0; i < want->len; i++)
		if (out->bytes[i] != want->bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, out->bytes[i],
				want->bytes[i]);
}

static inline void translate(void *nf, const struct packet *packet)
{
	rig_begin(&rig, &cv_nf_nat64, nf, pool);
	assert_true(rig_receive(&rig, 0, packet->bytes, packet->len));
	assert_true(rig_conserved(&rig));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static inline const char *dropped_as(void)
{
	for (unsigned why = 0; cv_nf_nat64.drops[why] != NULL; why++)
		if (rig.counters.drops[why] != 0)
			return cv_nf_nat64.drops[why];
	return "no drop";
}

static inline int nat64_tests(const char *program, const struct CMUnitTest *tests, size_t count)
{
	packet_eal(program);
	pool = rte_pktmbuf_pool_create("nat64", 255, 0, 0, 4096, SOCKET_ID_ANY);
	assert_non_null(pool);
	return _cmocka_run_group_tests("nat64", tests, count, NULL, NULL);
}

#endif
