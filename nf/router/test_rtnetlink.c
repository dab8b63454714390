// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The kernel's messages about routes: what each says, and that a cut or wrong one says nothing.
#include <string.h>
#include <sys/socket.h>

#include <linux/lwtunnel.h>
#include <linux/rtnetlink.h>

#include "nf/router/rtnetlink.h"
#include "tests/support/test_packets.h"

struct message {
	struct nlmsghdr header;
	uint8_t bytes[4096];
};

static void begin(struct message *message, uint8_t family, uint8_t length, uint8_t type)
{
	struct rtmsg *route = NLMSG_DATA(&message->header);

	memset(message, 0, sizeof(*message));
	message->header.nlmsg_type = RTM_NEWROUTE;
	message->header.nlmsg_len = NLMSG_LENGTH(sizeof(*route));
	route->rtm_family = family;
	route->rtm_dst_len = length;
	route->rtm_table = type == RTN_LOCAL ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	route->rtm_type = type;
}

static struct rtattr *add(struct message *message, uint16_t type, const void *data, size_t len)
{
	struct rtattr *attr =
		(struct rtattr *)((uint8_t *)message + NLMSG_ALIGN(message->header.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (uint16_t)RTA_LENGTH(len);
	if (data != NULL)
		memcpy(RTA_DATA(attr), data, len);
	message->header.nlmsg_len =
		NLMSG_ALIGN(message->header.nlmsg_len) + (uint32_t)RTA_ALIGN(attr->rta_len);
	return attr;
}

static void add_address(struct message *message, uint16_t type, const char *text)
{
	struct cv_address address;

	assert_int_equal(cv_address_parse(text, &address), 0);
	add(message, type, address.bytes, address.v6 ? 16 : 4);
}

static void add_u32(struct message *message, uint16_t type, uint32_t value)
{
	add(message, type, &value, sizeof(value));
}

static void expect_hop(const struct cv_kernel_route *route, unsigned at, const char *via,
	int interface, unsigned weight)
{
	char text[CV_PREFIX_TEXT];

	assert_true(at < route->hops);
	assert_int_equal(route->hop[at].interface, interface);
	assert_int_equal(route->hop[at].weight, weight);
	assert_int_equal(route->hop[at].has_via, via != NULL);
	if (via != NULL)
		assert_string_equal(cv_address_text(&route->hop[at].via, text), via);
}

static void expect_prefix(const struct cv_kernel_route *route, const char *prefix)
{
	char text[CV_PREFIX_TEXT];

	assert_string_equal(cv_prefix_text(&route->prefix, text), prefix);
}

static void single_next_hop(void **state)
{
	struct cv_kernel_route route;
	struct message message;

	begin(&message, AF_INET, 16, RTN_UNICAST);
	add_address(&message, RTA_DST, "10.9.0.0");
	add_address(&message, RTA_GATEWAY, "192.0.2.9");
	add_u32(&message, RTA_OIF, 7);
	add_u32(&message, RTA_PRIORITY, 32);
	add_u32(&message, RTA_TABLE, RT_TABLE_MAIN);
	message.header.nlmsg_flags = NLM_F_REPLACE;
	assert_true(cv_rtnetlink_route(&message.header, &route));
	expect_prefix(&route, "10.9.0.0/16");
	assert_int_equal(route.kind, CV_KERNEL_UNICAST);
	assert_int_equal(route.metric, 32);
	assert_true(route.replaces);
	assert_int_equal(route.hops, 1);
	expect_hop(&route, 0, "192.0.2.9", 7, 1);
}

// What stands behind a prefix is not of it.
static void host_bits_are_ignored(void **state)
{
	struct cv_kernel_route route;
	struct message message;

	begin(&message, AF_INET, 16, RTN_BLACKHOLE);
	add_address(&message, RTA_DST, "10.9.77.1");
	assert_true(cv_rtnetlink_route(&message.header, &route));
	expect_prefix(&route, "10.9.0.0/16");
}

// An IPv4 route by an IPv6 next hop, RFC 8950.
static void next_hop_of_the_other_family(void **state)
{
	uint8_t via[18] = {AF_INET6, 0, 0xfe, 0x80, [17] = 9};
	struct cv_kernel_route route;
	struct message message;

	begin(&message, AF_INET, 0, RTN_UNICAST);
	add(&message, RTA_VIA, via, sizeof(via));
	add_u32(&message, RTA_OIF, 7);
	assert_true(cv_rtnetlink_route(&message.header, &route));
	expect_prefix(&route, "0.0.0.0/0");
	expect_hop(&route, 0, "fe80::9", 7, 1);
}

static void begin_multipath(struct message *message)
{
	struct rtnexthop *next;
	struct rtattr *attr, *inner;

	begin(message, AF_INET, 8, RTN_UNICAST);
	add_address(message, RTA_DST, "11.0.0.0");
	attr = add(message, RTA_MULTIPATH, NULL, 2 * (RTNH_LENGTH(0) + RTA_SPACE(4)));
	next = RTA_DATA(attr);
	for (uint8_t i = 0; i < 2; i++) {
		next->rtnh_len = RTNH_LENGTH(0) + RTA_SPACE(4);
		next->rtnh_ifindex = 7 + i;
		next->rtnh_hops = (uint8_t)(2 * i);
		next->rtnh_flags = i == 1 ? RTNH_F_LINKDOWN : 0;
		inner = RTNH_DATA(next);
		inner->rta_type = RTA_GATEWAY;
		inner->rta_len = RTA_LENGTH(4);
		memcpy(RTA_DATA(inner), (uint8_t[]){192, 0, 2, (uint8_t)(9 + i)}, 4);
		next = RTNH_NEXT(next);
	}
}

static void several_next_hops(void **state)
{
	struct cv_kernel_route route;
	struct message message;

	begin_multipath(&message);
	assert_true(cv_rtnetlink_route(&message.header, &route));
	assert_int_equal(route.hops, 2);
	expect_hop(&route, 0, "192.0.2.9", 7, 1);
	expect_hop(&route, 1, "192.0.2.10", 8, 3);
	assert_false(route.hop[0].dead);
	assert_true(route.hop[1].dead);
}

// A next hop with a header of its own, alone and beside a plain one.
static void encapsulation_is_not_followed(void **state)
{
	const uint16_t mpls = LWTUNNEL_ENCAP_MPLS, none = LWTUNNEL_ENCAP_NONE;
	struct cv_kernel_route route;
	struct message message;
	struct rtattr *outer, *inner;
	struct rtnexthop *next;

	begin(&message, AF_INET, 16, RTN_UNICAST);
	add_address(&message, RTA_DST, "10.9.0.0");
	add_address(&message, RTA_GATEWAY, "192.0.2.9");
	add(&message, RTA_ENCAP_TYPE, &none, sizeof(none));
	assert_true(cv_rtnetlink_route(&message.header, &route));
	assert_false(route.hop[0].dead);
	add(&message, RTA_ENCAP_TYPE, &mpls, sizeof(mpls));
	assert_true(cv_rtnetlink_route(&message.header, &route));
	assert_true(route.hop[0].dead);

	begin_multipath(&message);
	outer = RTM_RTA(NLMSG_DATA(&message.header));
	outer = (struct rtattr *)((uint8_t *)outer + RTA_SPACE(4)); // behind the prefix
	next = RTA_DATA(outer);
	inner = RTNH_DATA(next);
	inner->rta_type = RTA_ENCAP_TYPE; // in the place of its gateway
	inner->rta_len = RTA_LENGTH(sizeof(mpls));
	memcpy(RTA_DATA(inner), &mpls, sizeof(mpls));
	assert_true(cv_rtnetlink_route(&message.header, &route));
	assert_int_equal(route.hops, 2);
	assert_true(route.hop[0].dead);
}

static void kinds(void **state)
{
	static const struct {
		uint8_t type;
		int kind; // -1: not the router's business
	} rows[] = {
		{RTN_LOCAL, CV_KERNEL_LOCAL},
		{RTN_BLACKHOLE, CV_KERNEL_BLACKHOLE},
		{RTN_UNREACHABLE, CV_KERNEL_UNREACHABLE},
		{RTN_PROHIBIT, CV_KERNEL_PROHIBIT},
		{RTN_THROW, CV_KERNEL_UNREACHABLE}, // else packets would follow a shorter prefix
		{RTN_BROADCAST, -1},
		{RTN_MULTICAST, -1},
		{RTN_NAT, -1},
		{200, -1},
	};
	struct cv_kernel_route route;
	struct message message;

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		begin(&message, AF_INET6, 48, rows[i].type);
		add_address(&message, RTA_DST, "2001:db8:7::");
		assert_int_equal(cv_rtnetlink_route(&message.header, &route), rows[i].kind >= 0);
		if (rows[i].kind >= 0) {
			assert_int_equal(route.kind, rows[i].kind);
			assert_int_equal(route.metric, rows[i].kind == CV_KERNEL_LOCAL ? 0 : 1024);
		}
	}
}

// Prefixes that begin with addresses that nobody forwards to, and have others.
static void wide_prefixes(void **state)
{
	static const struct {
		const char *address;
		uint8_t length;
		bool taken;
	} rows[] = {
		{"0.0.0.0", 0, true},
		{"0.0.0.0", 1, true},
		{"0.0.0.0", 7, true},
		{"0.0.0.0", 8, false},
		{"0.1.0.0", 16, false},
		{"128.0.0.0", 1, true},
		{"126.0.0.0", 7, true},
		{"224.0.0.0", 3, false},
		{"::", 0, true},
		{"::", 1, true},
		{"fe80::", 9, true},
		{"fe80::", 10, false},
		{"ff00::", 8, false},
	};
	struct cv_kernel_route route;
	struct message message;

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const bool v6 = strchr(rows[i].address, ':') != NULL;

		begin(&message, v6 ? AF_INET6 : AF_INET, rows[i].length, RTN_UNICAST);
		add_address(&message, RTA_DST, rows[i].address);
		if (cv_rtnetlink_route(&message.header, &route) != rows[i].taken)
			fail_msg("%s/%u", rows[i].address, rows[i].length);
	}
}

static void not_the_routers(void **state)
{
	static const char *const prefixes[] = {
		"224.0.0.0", "127.0.0.0", "255.255.255.255", "ff00::", "fe80::", "::1"};
	struct cv_kernel_route route;
	struct message message;

	for (unsigned i = 0; i < RTE_DIM(prefixes); i++) {
		const bool v6 = strchr(prefixes[i], ':') != NULL;

		begin(&message, v6 ? AF_INET6 : AF_INET, v6 ? 128 : 32, RTN_UNICAST);
		add_address(&message, RTA_DST, prefixes[i]);
		if (cv_rtnetlink_route(&message.header, &route))
			fail_msg("%s was taken", prefixes[i]);
	}
	begin(&message, AF_INET, 8, RTN_UNICAST);
	add_u32(&message, RTA_TABLE, 100);
	assert_false(cv_rtnetlink_route(&message.header, &route));
	begin(&message, AF_INET, 33, RTN_UNICAST);
	assert_false(cv_rtnetlink_route(&message.header, &route));
	begin(&message, AF_UNIX, 8, RTN_UNICAST);
	assert_false(cv_rtnetlink_route(&message.header, &route));
	begin(&message, AF_INET, 8, RTN_UNICAST);
	((struct rtmsg *)NLMSG_DATA(&message.header))->rtm_tos = 8;
	assert_false(cv_rtnetlink_route(&message.header, &route));
}

// Cut at every length, and changed at every byte, in memory of its own exact size.
static void broken(void **state)
{
	struct cv_kernel_route route;
	struct message message;

	begin_multipath(&message);
	for (uint32_t len = sizeof(struct nlmsghdr); len <= message.header.nlmsg_len; len++) {
		for (unsigned value = 0; value < 256; value += 15) {
			struct nlmsghdr *exact = malloc(len);

			memcpy(exact, &message, len);
			if (len > sizeof(struct nlmsghdr))
				((uint8_t *)exact)[sizeof(struct nlmsghdr) +
						   (value * 7 + len) %
							   (len - sizeof(struct nlmsghdr))] =
					(uint8_t)value;
			exact->nlmsg_len = len;
			cv_rtnetlink_route(exact, &route);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_next_hop),
		cmocka_unit_test(host_bits_are_ignored),
		cmocka_unit_test(next_hop_of_the_other_family),
		cmocka_unit_test(several_next_hops),
		cmocka_unit_test(encapsulation_is_not_followed),
		cmocka_unit_test(kinds),
		cmocka_unit_test(wide_prefixes),
		cmocka_unit_test(not_the_routers),
		cmocka_unit_test(broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
