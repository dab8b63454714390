// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets through nat64, byte by byte: both directions, errors, fragments; and round trips.
#include "nf/nat64/test_net.h"

struct row {
	const char *name, *in;
	const char *out; // NULL: it is dropped
	const char *drop;
};

static void check(const char *config, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		const struct packet packet = whole(row->in);
		void *nf = packet_nf(&cv_nf_nat64, config, NULL); // identifications begin at 1

		translate(nf, &packet);
		if (row->out == NULL) {
			if (strcmp(dropped_as(), row->drop) != 0)
				fail_msg("%s: dropped as %s", row->name, dropped_as());
		} else if (rig.outs != 1) {
			fail_msg("%s: %u packets left, %s", row->name, rig.outs, dropped_as());
		} else {
			const struct packet want = whole(row->out);

			same(row->name, &rig.out[0], &want);
		}
		cv_nf_destroy(&cv_nf_nat64, nf);
	}
}

#define FROM6 "ip6 src=2001:db8::1 dst=2001:db8:64::808:808 "
#define FROM4 "ip4 src=192.0.2.1 dst=8.8.8.8 ttl=63 "
#define BACK4 "ip4 src=8.8.8.8 dst=192.0.2.1 "
#define BACK6 "ip6 src=2001:db8:64::808:808 dst=2001:db8::1 hop=63 "
#define HEX8 "0001020304050607"

static void to_ipv4(void **state)
{
	static const struct row rows[] = {
		{"UDP", FROM6 "udp dport=53 data=9", FROM4 "id=1 udp dport=53 data=9", NULL},
		{"TCP, its class", FROM6 "tc=0x2e tcp sport=9 data=8",
			FROM4 "id=1 tos=0x2e tcp sport=9 data=8", NULL},
		{"tagged twice", "qinq id=7 vlan id=5 " FROM6 "udp data=1",
			"qinq id=7 vlan id=5 " FROM4 "id=1 udp data=1", NULL},
		{"padding goes", FROM6 "udp data=1 pad=9", FROM4 "id=1 udp data=1", NULL},
		{"an address of the prefix",
			"ip6 src=2001:db8:64::c633:6407 dst=2001:db8:64::808:808 udp",
			"ip4 src=198.51.100.7 dst=8.8.8.8 ttl=63 id=1 udp", NULL},
		{"no checksum stays none", "none " FROM6 "udp data=3",
			"none " FROM4 "id=1 udp data=3", NULL},
		{"SCTP", FROM6 "sctp", FROM4 "id=1 sctp", NULL},
		{"an unknown protocol", FROM6 "nh=200 hex=" HEX8, FROM4 "id=1 proto=200 hex=" HEX8,
			NULL},
		{"echo", FROM6 "icmp6 kind=128 data=7", FROM4 "id=1 icmp kind=8 data=7", NULL},
		{"echo reply", FROM6 "icmp6 kind=129 data=6", FROM4 "id=1 icmp kind=0 data=6",
			NULL},
		{"longer than 1260: DF", FROM6 "udp data=1240", FROM4 "df=1 udp data=1240", NULL},
		{"1260", FROM6 "udp data=1232", FROM4 "id=1 udp data=1232", NULL},
		{"extension headers are left out", FROM6 "hbh size=16 dstopt size=8 udp data=2",
			FROM4 "id=1 udp data=2", NULL},
		{"a source route that ended", FROM6 "rth size=24 udp", FROM4 "id=1 udp", NULL},
		{"a fragment", FROM6 "frag off=5 id=77 nh=17 hex=" HEX8,
			FROM4 "off=5 id=77 proto=17 hex=" HEX8, NULL},
		{"one that more follow", FROM6 "frag off=5 mf=1 id=77 nh=6 hex=" HEX8,
			FROM4 "off=5 mf=1 id=77 proto=6 hex=" HEX8, NULL},
		// 3039 + (2001 + 0db8 + 0001 + 2001 + 0db8 + 0064) - (c000 + 0201), carries around
		{"the first", FROM6 "frag mf=1 id=77 nh=17 hex=0001000200103039aabbccddeeff0011",
			FROM4 "mf=1 id=77 proto=17 hex=000100020010ca0eaabbccddeeff0011", NULL},
		{"an atomic one", FROM6 "frag id=77 sctp", FROM4 "id=77 sctp", NULL},
		{"ICMP in fragments", FROM6 "frag mf=1 icmp6 kind=128", NULL, "untranslatable"},
		{"headers behind a fragment header", FROM6 "frag dstopt size=8 udp", NULL,
			"untranslatable"},
		{"not to the prefix", "ip6 dst=2001:db8:65::808:808 udp",
			"ip6 dst=2001:db8:65::808:808 udp", NULL},
		{"no address", "ip6 src=2001:db8::9 dst=2001:db8:64::808:808 udp", NULL,
			"no_mapping"},
		{"to loopback", "ip6 dst=2001:db8:64::7f00:1 udp", NULL, "bad_address"},
		{"to a group", "ip6 dst=2001:db8:64::e000:1 udp", NULL, "bad_address"},
		{"from nobody", "ip6 src=ff02::1 dst=2001:db8:64::808:808 udp", NULL,
			"bad_address"},
		{"the last hop", FROM6 "hop=1 udp", NULL, "ttl_expired"},
		{"cut short", FROM6 "udp cut=60", NULL, "bad_header"},
		{"of TCP's header a part", FROM6 "nh=6 hex=" HEX8, NULL, "bad_header"},
		{"neighbours are the router's", FROM6 "icmp6 kind=135", NULL, "untranslatable"},
		{"a header that is ICMP's of IPv4", FROM6 "nh=1 hex=" HEX8, NULL, "untranslatable"},
	};

	check(CONFIG(""), rows, RTE_DIM(rows));
}

static void to_ipv6(void **state)
{
	static const struct row rows[] = {
		{"UDP", BACK4 "udp sport=53 data=9", BACK6 "udp sport=53 data=9", NULL},
		{"TCP, its class", BACK4 "tos=0x2e id=9 df=1 tcp sport=9 data=8",
			BACK6 "tc=0x2e tcp sport=9 data=8", NULL},
		{"tagged", "vlan id=5 " BACK4 "udp data=1", "vlan id=5 " BACK6 "udp data=1", NULL},
		{"padding goes", BACK4 "udp data=1 pad=9", BACK6 "udp data=1", NULL},
		{"to an address of the prefix", "ip4 src=8.8.8.8 dst=198.51.100.7 udp",
			"ip6 src=2001:db8:64::808:808 dst=2001:db8:64::c633:6407 hop=63 udp", NULL},
		{"UDP gets a checksum", "none " BACK4 "udp data=3", BACK6 "udp data=3", NULL},
		{"SCTP", BACK4 "sctp", BACK6 "sctp", NULL},
		{"echo", BACK4 "icmp kind=8 data=7", BACK6 "icmp6 kind=128 data=7", NULL},
		{"echo reply", BACK4 "icmp kind=0 data=6", BACK6 "icmp6 kind=129 data=6", NULL},
		{"options are left out", BACK4 "opt=01010101 udp data=2", BACK6 "udp data=2", NULL},
		{"a source route that ended", BACK4 "opt=83070801020304 opt=00 udp", BACK6 "udp",
			NULL},
		{"one that has not", BACK4 "opt=83070401020304 opt=00 udp", NULL, "source_route"},
		{"a fragment", BACK4 "off=5 id=77 proto=17 hex=" HEX8,
			BACK6 "frag off=5 id=77 nh=17 hex=" HEX8, NULL},
		{"the first", BACK4 "mf=1 id=77 proto=17 hex=000100020010ca0eaabbccddeeff0011",
			BACK6 "frag mf=1 id=77 nh=17 hex=0001000200103039aabbccddeeff0011", NULL},
		{"the first of UDP without a checksum",
			BACK4 "mf=1 proto=17 hex=0001000200100000aabbccddeeff0011", NULL,
			"zero_checksum"},
		{"ICMP in fragments", BACK4 "mf=1 icmp kind=8", NULL, "untranslatable"},
		{"timestamps", BACK4 "icmp kind=13 data=12", NULL, "untranslatable"},
		{"not for anybody", "ip4 src=8.8.8.8 dst=192.0.2.2 udp",
			"ip4 src=8.8.8.8 dst=192.0.2.2 udp", NULL},
		{"from nobody", "ip4 src=127.0.0.1 dst=192.0.2.1 udp", NULL, "bad_address"},
		{"the last hop", BACK4 "ttl=1 udp", NULL, "ttl_expired"},
		{"a wrong checksum", BACK4 "sum=1234 udp", NULL, "bad_header"},
		{"UDP that lies about its length", "none " BACK4 "proto=17 hex=0001000200090000",
			NULL, "bad_header"},
		{"a protocol that is an extension header", BACK4 "proto=43 hex=" HEX8, NULL,
			"untranslatable"},
		{"too long for the port, with DF", BACK4 "df=1 udp data=1460", NULL, "too_big"},
		{"as long as it may be", BACK4 "df=1 udp data=1452", BACK6 "udp data=1452", NULL},
		{"not IP", "type=0806 data=28", "type=0806 data=28", NULL},
		{"too short to be IP", "type=0800 hex=45", "type=0800 hex=45", NULL},
	};

	check(CONFIG(""), rows, RTE_DIM(rows));
}

static void as_configured(void **state)
{
	static const struct row none[] = {
		{"no checksum", "none " BACK4 "udp data=3", NULL, "zero_checksum"},
		{"no class", BACK4 "tos=0x2e tcp", BACK6 "hop=64 tcp", NULL},
		{"a hop is left to the router", "ip4 src=8.8.8.8 dst=192.0.2.1 ttl=2 tcp",
			"ip6 src=2001:db8:64::808:808 dst=2001:db8::1 hop=2 tcp", NULL},
		{"but not the last", BACK4 "ttl=1 tcp", NULL, "ttl_expired"},
		{"nor back", FROM6 "tc=0x2e tcp", FROM4 "ttl=64 id=1 tcp", NULL},
		{"a longer packet stays whole", BACK4 "udp data=1400", BACK6 "hop=64 udp data=1400",
			NULL},
	};
	static const struct row global[] = {
		{"private", "ip6 src=2001:db8::1 dst=64:ff9b::a00:1 udp", NULL, "bad_address"},
		{"public", "ip6 src=2001:db8::1 dst=64:ff9b::808:808 udp",
			"ip4 src=10.0.0.1 dst=8.8.8.8 ttl=63 id=1 udp", NULL},
		{"private, back", "ip4 src=10.0.0.9 dst=10.0.0.1 udp", NULL, "bad_address"},
	};
	static const struct row mapped[] = {
		{"no prefix", "ip4 src=10.0.0.9 dst=10.0.0.1 udp", NULL, "no_mapping"},
		{"both in the table", "ip4 src=10.0.0.1 dst=10.0.0.1 udp",
			"ip6 src=2001:db8::1 dst=2001:db8::1 hop=63 udp", NULL},
	};
#define ROW "'eam': [{'ipv4': '10.0.0.1', 'ipv6': '2001:db8::1'}], " SOURCES "}"

	check(CONFIG(", 'zero_checksum': 'drop', 'traffic_class': 'zero', 'ipv6_mtu': 9000, 'ttl': "
		     "'check'"),
		none, RTE_DIM(none));
	check("{'prefix': '64:ff9b::/96', " ROW, global, RTE_DIM(global));
	check("{" ROW, mapped, RTE_DIM(mapped));
}

// The sender is told: the message's type, code and value, from the node's address, about what it sent.
static void informs_senders(void **state)
{
	static const struct {
		const char *in, *message;
	} rows[] = {
		{FROM6 "hop=1 udp data=20", "3/0/0"},
		{BACK4 "ttl=1 udp data=20", "11/0/0"},
		{BACK4 "df=1 udp data=1460", "3/4/1480"},
		{BACK4 "df=1 mf=1 udp data=1464", "3/4/1472"},
		{BACK4 "opt=83070401020304 opt=00 udp data=20", "3/5/0"},
		{FROM6 "rth nh=17 size=24 data=20", "none"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct packet packet = whole(rows[i].in);
		void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);
		const struct rig_out *out = &rig.out[0];
		const bool v6 = packet.bytes[12] == 0x86;
		const unsigned at = 14 + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN);
		char text[32];

		if (strcmp(rows[i].message, "none") == 0)
			packet.bytes[14 + 40 + 3] = 2; // segments left
		translate(nf, &packet);
		if (rig.outs != 1)
			fail_msg("%s: %u errors, %s", rows[i].in, rig.outs, dropped_as());
		assert_int_equal(out->port, 0);
		snprintf(text, sizeof(text), "%u/%u/%u", out->bytes[at], out->bytes[at + 1],
			load16(out->bytes + at + 6));
		assert_string_equal(
			text, strcmp(rows[i].message, "none") == 0 ? "4/0/43" : rows[i].message);
		assert_int_equal(checksum_of(out->bytes + 14), 0);
		if (v6)
			assert_memory_equal(out->bytes + 22, "\x20\x01\x0d\xb8\xff\xff", 6);
		else
			assert_memory_equal(out->bytes + 26, "\xcb\0\x71\1", 4);
		assert_memory_equal(out->bytes + at + 8, packet.bytes + 14, 40);
		cv_nf_destroy(&cv_nf_nat64, nf);
	}
}

// Each part is what it should be, and together they are the packet.
static void fragments(void **state)
{
	static const struct {
		const char *in;
		unsigned parts;
	} rows[] = {{BACK4 "id=7 udp data=1300", 2}, {BACK4 "id=7 udp data=1233", 2},
		{BACK4 "id=7 tcp data=1400", 2}, {BACK4 "id=7 opt=01010101 udp data=1300", 2},
		{BACK4 "id=7 icmp kind=8 data=1400", 2},
		{"vlan id=5 " BACK4 "id=7 udp data=1400", 2},
		{BACK4 "id=7 mf=1 off=2 proto=17 data=1400", 2}};
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet packet = whole(rows[i].in);
		uint8_t joined[2048] = {0}, *ip = joined;
		const unsigned l3 = packet.bytes[12] == 0x81 ? 18 : 14;
		const bool was_part = packet.bytes[l3 + 6] & 0x20;
		unsigned at = was_part ? 16 : 0, begin = at;

		translate(nf, &packet);
		assert_int_equal(rig.outs, rows[i].parts);
		for (unsigned n = 0; n < rig.outs; n++) {
			const uint8_t *part = rig.out[n].bytes + l3;
			const unsigned len = load16(part + 4) - 8u, field = load16(part + 42);
			const bool last = n + 1 == rig.outs;

			assert_int_equal(rig.out[n].len, l3 + 48 + len);
			assert_true(48 + len <= 1280);
			assert_int_equal(load16(part - 2), 0x86dd);
			assert_int_equal(part[6], IPPROTO_FRAGMENT);
			assert_int_equal(field >> 3, at / 8);
			assert_int_equal(field & 1, !last || was_part);
			assert_int_equal(load16(part + 46), 7);
			if (n == 0)
				memcpy(ip, part, 40);
			ip[6] = part[40];
			memcpy(ip + 40 + at - begin, part + 48, len);
			at += len;
		}
		ip[4] = (uint8_t)((at - begin) >> 8);
		ip[5] = (uint8_t)(at - begin);
		if (!was_part)
			assert_int_equal(checksum_of(ip), 0);
	}
	cv_nf_destroy(&cv_nf_nat64, nf);
}

// Through one and back by another with the same table: IPv4 is as it was, but for two hops. An identification goes
// over with fragments alone.
static void round_trip(void **state)
{
	static const char *const prefixes[] = {"2001:db8::/32", "2001:db8:100::/40",
		"2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64",
		"2001:db8:122:344::/96"};
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_SCTP,
		IPPROTO_UDPLITE, IPPROTO_DCCP, 200};

	for (unsigned i = 0; i < 3000; i++) {
		char config[256];
		struct packet packet = packet_make("ip4 data=40"), there;
		uint8_t *ip = packet.bytes + 14;
		bool has_checksum;
		void *nf;

		snprintf(config, sizeof(config),
			"{'prefix': '%s', 'hosts': ['0.0.0.0/0'], " SOURCES "}",
			prefixes[i % RTE_DIM(prefixes)]);
		for (unsigned b = 12; b < 20; b++)
			ip[b] = (uint8_t)(b % 4 == 0 ? 1 + rand() % 126 : rand());
		for (unsigned b = 20; b < 60; b++)
			ip[b] = (uint8_t)rand();
		ip[1] = (uint8_t)rand();
		ip[9] = protos[(unsigned)rand() % RTE_DIM(protos)];
		if (ip[9] == IPPROTO_ICMP)
			ip[20] = rand() % 2 ? 8 : 0;
		else if (rand() % 3 == 0) { // a part
			ip[6] = (uint8_t)(0x20 | rand() % 32);
			ip[7] = (uint8_t)(1 + rand() % 255);
			ip[4] = (uint8_t)rand();
			ip[5] = (uint8_t)rand();
		}
		memset(ip + 10, 0, 2);
		memcpy(ip + 10, &(rte_be16_t){cv_checksum(ip, 20)}, 2);
		has_checksum = (ip[6] & 0x3f) == 0 && checksum_at(ip[9]) != 0;
		if (has_checksum) {
			memset(ip + 20 + checksum_at(ip[9]), 0, 2);
			put_checksum(ip);
		}
		nf = packet_nf(&cv_nf_nat64, config, NULL);
		translate(nf, &packet);
		assert_int_equal(rig.outs, 1);
		there.len = rig.out[0].len;
		memcpy(there.bytes, rig.out[0].bytes, there.len);
		assert_int_equal(there.bytes[14] >> 4, 6);
		if (has_checksum && there.bytes[20] != IPPROTO_ICMPV6)
			assert_int_equal(checksum_of(there.bytes + 14), 0);
		translate(nf, &there);
		assert_int_equal(rig.outs, 1);
		if ((ip[6] & 0x3f) == 0 && ip[7] == 0)
			memcpy(ip + 4, rig.out[0].bytes + 18, 2);
		ip[8] -= 2;
		memset(ip + 10, 0, 2);
		memcpy(ip + 10, &(rte_be16_t){cv_checksum(ip, 20)}, 2);
		same("round trip", &rig.out[0], &packet);
		cv_nf_destroy(&cv_nf_nat64, nf);
	}
}

// Another instance goes on where the one before was.
static void identifications_go_on(void **state)
{
	const struct packet packet =
		whole("ip6 src=2001:db8::1 dst=2001:db8:64::808:808 udp data=9");
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL), *next;

	for (unsigned i = 0; i < 3; i++)
		translate(nf, &packet);
	next = packet_nf_instead(&cv_nf_nat64, CONFIG(", 'icmp_rate': 1"), nf, NULL);
	cv_nf_nat64.inherit(next, nf);
	cv_nf_destroy(&cv_nf_nat64, nf);
	translate(next, &packet);
	assert_int_equal(load16(rig.out[0].bytes + 18), 4);
	cv_nf_destroy(&cv_nf_nat64, next);
}

// Without clients nothing is kept.
static void keeps_clients(void **state)
{
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);

	assert_null(cv_nf_keeps(&cv_nf_nat64, nf));
	cv_nf_destroy(&cv_nf_nat64, nf);
	nf = packet_nf_alone(&cv_nf_nat64, CONFIG(", 'clients': '100.64.0.0/30'"));
	assert_string_equal(cv_nf_keeps(&cv_nf_nat64, nf), "clients");
	cv_nf_destroy(&cv_nf_nat64, nf);
}

static void refuses(void **state)
{
	static const struct {
		const char *config, *words;
	} rows[] = {
		{"{" SOURCES "}", "translates nothing; add prefix or eam"},
		{"{'hosts': ['10.0.0.0/8'], " SOURCES "}", "hosts: there is no prefix; add prefix"},
		{"{'prefix': '64:ff9b::/95', " SOURCES "}",
			"must have 32, 40, 48, 56, 64 or 96 bits"},
		{"{'prefix': '64:ff9b::1/96', " SOURCES "}",
			"host bits are set; write \"64:ff9b::/96\""},
		{"{'prefix': '10.0.0.0/8', " SOURCES "}",
			"prefix: \"10.0.0.0/8\": must be an IPv6 prefix"},
		{"{'prefix': '64:ff9b::/96', 'source': '203.0.113.1'}", "source_ipv6"},
		{"{'prefix': '64:ff9b::/96', 'source': '127.0.0.1', 'source_ipv6': '2001:db8::1'}",
			"source: \"127.0.0.1\": must be an IPv4 address of the node"},
		{"{'eam': [{'ipv4': '10.0.0.0/24', 'ipv6': '2001:db8::/121'}], " SOURCES "}",
			"eam[0]: ipv6: \"2001:db8::/121\": has fewer addresses than ipv4; "
			"its "
			"length may be 120 at most"},
		{"{'eam': [{'ipv4': '10.0.0.1', 'ipv6': '2001:db8::1'}, {'ipv4': '10.0.0.1', "
		 "'ipv6': "
		 "'2001:db8::2'}], " SOURCES "}",
			"eam[1]: has a prefix that another row has"},
		{"{'prefix': '64:ff9b::/96', 'hosts': [1], " SOURCES "}",
			"hosts[0]: 1: must be an IPv4 prefix"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++)
		packet_refused(&cv_nf_nat64, rows[i].config, rows[i].words);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_ipv4),
		cmocka_unit_test(to_ipv6),
		cmocka_unit_test(as_configured),
		cmocka_unit_test(informs_senders),
		cmocka_unit_test(fragments),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(identifications_go_on),
		cmocka_unit_test(keeps_clients),
		cmocka_unit_test(refuses),
	};

	return nat64_tests(argv[0], tests, RTE_DIM(tests));
}
