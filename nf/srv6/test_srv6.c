// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Each packet goes through a path of its own: what leaves is compared byte by byte.
#include "tests/support/test_packets.h"

#include "nf/address_table.h"
#include "nf/srv6/header.h"
#include "packet/icmp.h"
#include "tests/support/function_rig.h"

extern const struct cv_nf cv_nf_srv6, cv_nf_srv6_encap;

#define S1 "20010db8000a00000000000000000001"
#define S2 "20010db8000b00000000000000000002"
#define FROM_PORT_1 "dst=02:00:00:00:00:09 src=02:aa:00:00:00:01 "
#define IP4 "450000160000000040118ea1c0000201c6336401aabb"
// Version 6, hop limit 9, next header 59, 2001:db8:1::1 > 2001:db8:1::2.
#define IP6 "6000000000003b0920010db800010000000000000000000120010db8000100000000000000000002"
#define FRAME "02000000000b02000000000a88b5c0ffee"

static struct rte_mempool *pool;
static struct function_rig rig;

struct row {
	const char *name;
	const char *in;
	const char *drop; // NULL: it leaves
	const char *out; // of a dropped packet: the ICMPv6 error's type, code and value; NULL: none
	uint8_t port; // that it leaves by; it would by port 1
};

static void expect(const struct row *row)
{
	const struct packet want = packet_make(row->out);
	const struct rig_out *out = &rig.out[0];

	if (rig.outs != 1)
		fail_msg("%s: %u packets left", row->name, rig.outs);
	if (out->port != row->port)
		fail_msg("%s: left by port %u, not %u", row->name, out->port, row->port);
	if (out->len != want.len)
		fail_msg("%s: %u bytes, not %u", row->name, out->len, want.len);
	for (unsigned i = 0; i < want.len; i++)
		if (out->bytes[i] != want.bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", row->name, i, out->bytes[i],
				want.bytes[i]);
}

// The error goes back where the packet came from, has a sound checksum, and the packet as it came inside.
static void expect_error(const struct row *row, const struct packet *packet)
{
	const struct rig_out *out = &rig.out[0];
	char text[32];

	if (rig.outs != (row->out != NULL))
		fail_msg("%s: %u errors were sent", row->name, rig.outs);
	if (row->out == NULL)
		return;
	snprintf(text, sizeof(text), "%u/%u/%u", out->bytes[54], out->bytes[55],
		out->bytes[60] << 8 | out->bytes[61]);
	assert_string_equal(text, row->out);
	assert_int_equal(out->port, 0);
	assert_memory_equal(out->bytes, "\2\0\0\0\0\1\2\xaa\0\0\0\0\x86\xdd", 14);
	assert_true(cv_icmpv6_checksum_ok(out->bytes + 14));
	assert_memory_equal(out->bytes + 38, packet->bytes + 22, 16); // to its source
	assert_memory_equal(
		out->bytes + 62, packet->bytes + 14, RTE_MIN(packet->len - 14u, 1280u - 48));
}

static void check(const struct cv_nf *nf, void *instance, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		const struct packet packet = packet_make(row->in);

		rig_begin(&rig, nf, instance, pool);
		assert_true(rig_receive(&rig, 0, packet.bytes, packet.len));
		assert_true(rig_conserved(&rig));
		if (row->drop == NULL) {
			expect(row);
			continue;
		}
		for (unsigned why = 0; nf->drops[why] != NULL; why++)
			if (rig.counters.drops[why] !=
				(strcmp(nf->drops[why], row->drop) == 0 ? 1 : 0))
				fail_msg("%s: dropped as %s: %d", row->name, nf->drops[why],
					(int)rig.counters.drops[why]);
		expect_error(row, &packet);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

static const char sids[] =
	"{'sids': [{'sid': '2001:db8:a::1'},"
	"{'sid': '2001:db8:a::2', 'behaviour': 'end-x', 'mac': '02:00:00:00:00:09', 'dev': "
	"'third'},"
	"{'sid': '2001:db8:a::d2', 'behaviour': 'end-dx2', 'dev': 'fourth'},"
	"{'sid': '2001:db8:a::d4', 'behaviour': 'end-dx4', 'mac': '02:00:00:00:00:09'},"
	"{'sid': '2001:db8:a::d6', 'behaviour': 'end-dx6', 'mac': '02:00:00:00:00:09'},"
	"{'sid': '2001:db8:a::f4', 'behaviour': 'end-dt4'},"
	"{'sid': '2001:db8:a::f6', 'behaviour': 'end-dt6'},"
	"{'sid': '2001:db8:a::f46', 'behaviour': 'end-dt46', 'output': 'voice'}]}";

static void segments(void **state)
{
	static const struct row rows[] = {
		{"End", "ip6 dst=2001:db8:a::1 nh=43 hex=3b04040101000000" S2 S1, NULL,
			"ip6 dst=2001:db8:b::2 nh=43 hex=3b04040001000000" S2 S1, 1},
		{"tagged, behind options, with a TLV",
			"vlan id=5 ip6 dst=2001:db8:a::1 dstopt nh=43 size=8 "
			"hex=3b05040101000000" S2 S1 "0506000000000000",
			NULL,
			"vlan id=5 ip6 dst=2001:db8:b::2 dstopt nh=43 size=8 "
			"hex=3b05040001000000" S2 S1 "0506000000000000",
			1},
		{"End.X takes a hop",
			"ip6 dst=2001:db8:a::2 hop=9 nh=43 hex=3b04040101000000" S2 S1, NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 ip6 dst=2001:db8:b::2 hop=8 "
			"nh=43 hex=3b04040001000000" S2 S1,
			2},
		{"reduced: the first segment is not in the list",
			"ip6 dst=2001:db8:a::1 nh=43 hex=3b02040100000000" S2, NULL,
			"ip6 dst=2001:db8:b::2 nh=43 hex=3b02040000000000" S2, 1},
		{"to no SID", "ip6 udp", NULL, "ip6 udp", 1},
		{"not IPv6", "ip4 udp", NULL, "ip4 udp", 1},
		{"cut short", "ip6 dst=2001:db8:a::1 cut=53", NULL, "ip6 dst=2001:db8:a::1 cut=53",
			1},
		{"no segment left", "ip6 dst=2001:db8:a::1 nh=43 hex=3b02040000000000" S1,
			"upper_layer", "4/4/64", 0},
		{"no header", "ip6 dst=2001:db8:a::1 udp data=4", "upper_layer", "4/4/40", 0},
		{"hop limit 1", "ip6 dst=2001:db8:a::1 hop=1 nh=43 hex=3b04040101000000" S2 S1,
			"ttl_expired", "3/0/0", 0},
		{"more segments left than there are",
			"ip6 dst=2001:db8:a::1 nh=43 hex=3b04040301000000" S2 S1, "bad_segments",
			"4/0/43", 0},
		{"the last entry is behind the header",
			"ip6 dst=2001:db8:a::1 nh=43 hex=3b04040102000000" S2 S1, "bad_segments",
			"4/0/43", 0},
		{"an empty list", "ip6 dst=2001:db8:a::1 nh=43 hex=3b00040100000000",
			"bad_segments", "4/0/43", 0},
		{"another routing header", "ip6 dst=2001:db8:a::1 nh=43 hex=3b02000100000000" S1,
			"bad_segments", "4/0/42", 0},
		{"longer than the packet", "ip6 dst=2001:db8:a::1 nh=43 hex=3b05040101000000" S2 S1,
			.drop = "bad_header"},
		{"a hop-by-hop header without end",
			"ip6 dst=2001:db8:a::1 nh=0 hex=00000000000000000000000000000000"
			"00000000000000000000000000000000000000000000000000000000000000000000"
			"000000000000000000000000000000000000",
			.drop = "bad_header"},
		{"not about ICMPv6 errors", "ip6 dst=2001:db8:a::1 icmp6 kind=3 data=44",
			.drop = "upper_layer"},
		{"not to groups", "ip6 src=ff02::1 dst=2001:db8:a::1 udp", .drop = "upper_layer"},
	};
	void *nf = packet_nf(&cv_nf_srv6, sids, NULL);

	check(&cv_nf_srv6, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_srv6, nf);
}

static void decapsulates(void **state)
{
	static const struct row rows[] = {
		{"End.DX2", "ip6 dst=2001:db8:a::d2 nh=143 hex=" FRAME " pad=3", NULL,
			"dst=02:00:00:00:00:0b src=02:00:00:00:00:0a type=88b5 hex=c0ffee", 3},
		{"End.DX2 behind segments",
			"ip6 dst=2001:db8:a::d2 nh=43 hex=8f02040000000000" S1 FRAME, NULL,
			"dst=02:00:00:00:00:0b src=02:00:00:00:00:0a type=88b5 hex=c0ffee", 3},
		{"End.DX4 takes a hop", "vlan id=4 ip6 dst=2001:db8:a::d4 nh=4 hex=" IP4, NULL,
			FROM_PORT_1 "vlan id=4 ip4 ttl=63 proto=17 hex=aabb", 1},
		{"End.DX6 takes a hop", "ip6 dst=2001:db8:a::d6 nh=41 hex=" IP6, NULL,
			FROM_PORT_1 "ip6 src=2001:db8:1::1 dst=2001:db8:1::2 hop=8", 1},
		{"End.DT4", "ip6 dst=2001:db8:a::f4 nh=4 hex=" IP4, NULL, "ip4 proto=17 hex=aabb",
			1},
		{"End.DT6", "ip6 dst=2001:db8:a::f6 nh=41 hex=" IP6 " pad=1", NULL,
			"ip6 src=2001:db8:1::1 dst=2001:db8:1::2 hop=9", 1},
		{"End.DX4 of IPv6", "ip6 dst=2001:db8:a::d4 nh=41 hex=" IP6, "upper_layer",
			"4/4/40", 0},
		{"End.DT6 of IPv4", "ip6 dst=2001:db8:a::f6 nh=4 hex=" IP4, "upper_layer", "4/4/40",
			0},
		{"End.DX2 of IPv6", "ip6 dst=2001:db8:a::d2 nh=41 hex=" IP6, "upper_layer",
			"4/4/40", 0},
		{"a segment left", "ip6 dst=2001:db8:a::d4 nh=43 hex=0402040100000000" S1 IP4,
			"bad_segments", "4/0/43", 0},
		{"no hop left inside",
			"ip6 dst=2001:db8:a::d4 nh=4 hex=45000016000000000111"
			"cda1c0000201c6336401aabb",
			.drop = "ttl_expired"},
		{"a broken packet inside",
			"ip6 dst=2001:db8:a::f4 nh=4 hex=45000016000000004011f6d4c0000201c6336401",
			.drop = "bad_header"},
		{"no packet inside", "ip6 dst=2001:db8:a::f6 nh=41", .drop = "bad_header"},
		{"no frame inside", "ip6 dst=2001:db8:a::d2 nh=143 hex=02000000000b02",
			.drop = "bad_header"},
	};
	void *nf = packet_nf(&cv_nf_srv6, sids, NULL);
	const struct packet packet = packet_make("ip6 dst=2001:db8:a::f46 nh=4 hex=" IP4);
	struct cv_path to = {0};
	const struct cv_path *outputs[] = {&to, &to};

	check(&cv_nf_srv6, nf, rows, RTE_DIM(rows));
	rig_begin(&rig, &cv_nf_srv6, nf, pool);
	rig.step.outputs = outputs;
	rig_receive(&rig, 0, packet.bytes, packet.len);
	assert_int_equal(rig.counters.outputs[0], 1);
	cv_nf_destroy(&cv_nf_srv6, nf);
}

// What encapsulated packets look like is compared with Linux and scapy (tests/python/sfc).
static void encapsulates_what_fits(void **state)
{
	static const struct row rows[] = {
		{"no hop left", "ip6 src=2001:db8:1::1 hop=1 udp", "ttl_expired", "3/0/0", 0},
		{"no hop left, of IPv4", "ip4 ttl=1 udp", .drop = "ttl_expired"},
		{"a broken header", "ip4 sum=1234 udp", .drop = "bad_header"},
		{"too big", "ip6 src=2001:db8:1::1 udp data=1373", "too_big", "2/0/1420", 0},
		{"too big, of IPv4", "ip4 udp data=1393", .drop = "too_big"},
		{"not IP", "type=88b5 data=1700", NULL, "type=88b5 data=1700", 1},
	};
	void *nf = packet_nf(&cv_nf_srv6_encap,
		"{'source': '2001:db8::1', 'rules': ["
		"{'segments': ['2001:db8:a::1', '2001:db8:b::2'], 'mac': '02:00:00:00:00:09'}]}",
		NULL);

	check(&cv_nf_srv6_encap, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_srv6_encap, nf);
}

static void errors_are_limited(void **state)
{
	char config[2048];
	const struct packet packet = packet_make("ip6 dst=2001:db8:a::1 udp");
	void *nf;

	snprintf(config, sizeof(config), "%.*s, 'icmp_rate': 0}", (int)strlen(sids) - 1, sids);
	nf = packet_nf(&cv_nf_srv6, config, NULL);
	rig_begin(&rig, &cv_nf_srv6, nf, pool);
	rig_receive(&rig, 0, packet.bytes, packet.len);
	assert_int_equal(rig.outs, 0);
	cv_nf_destroy(&cv_nf_srv6, nf);
}

static void refuses(void **state)
{
	static const struct {
		const struct cv_nf *nf;
		const char *config, *words;
	} rows[] = {
		{&cv_nf_srv6, "{}", "sids: is missing"},
		{&cv_nf_srv6, "{'sids': [{'sid': '10.0.0.1'}]}",
			"sids[0]: sid: \"10.0.0.1\": must be an IPv6 address"},
		{&cv_nf_srv6, "{'sids': [{'sid': 'ff02::1'}]}", "must be an IPv6 address"},
		{&cv_nf_srv6, "{'sids': [{'sid': '2001:db8::1'}, {'sid': '2001:db8:0::1'}]}",
			"sids[1]: sid: 2001:db8:0::1 is there twice; remove one"},
		{&cv_nf_srv6, "{'sids': [{'sid': '2001:db8::1', 'behaviour': 'end-x'}]}",
			"mac: is missing; end-x needs its neighbour's"},
		{&cv_nf_srv6, "{'sids': [{'sid': '2001:db8::1', 'mac': '02:00:00:00:00:09'}]}",
			"mac: end has no neighbour; remove it"},
		{&cv_nf_srv6, "{'sids': [{'sid': '2001:db8::1', 'dev': 'x'}]}",
			"sids[0]: dev: no port is called \"x\""},
		{&cv_nf_srv6, "{'sids': [{'sid': '2001:db8::1', 'output': 'x'}]}",
			"sids[0]: output: no output is called \"x\""},
		{&cv_nf_srv6_encap, "{'rules': [{'segments': ['2001:db8::1']}]}",
			"source: is missing"},
		{&cv_nf_srv6_encap, "{'source': '::1', 'rules': [{'segments': ['2001:db8::1']}]}",
			"source: \"::1\": must be an IPv6 address"},
		{&cv_nf_srv6_encap, "{'source': '2001:db8::1', 'rules': [{'segments': []}]}",
			"segments: "},
		{&cv_nf_srv6_encap,
			"{'source': '2001:db8::1', 'rules': [{'segments': ['2001:db8::1', 5]}]}",
			"rules[0]: segments: 5: must be an IPv6 address"},
		{&cv_nf_srv6_encap,
			"{'source': '2001:db8::1', 'rules': [{'segments': ['2001:db8::1']},"
			"{'match': {}, 'segments': ['2001:db8::1']}]}",
			"rules[0]: match: is missing; only the last rule"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++)
		packet_refused(rows[i].nf, rows[i].config, rows[i].words);
}

static void finds_every_sid(void **state)
{
	struct cv_address_table table;
	uint8_t address[16] = {0x20, 1, 0xd, 0xb8};

	assert_int_equal(cv_address_table_init(&table, 3000), 0);
	for (unsigned add = 1; add < 2; add--)
		for (uint32_t i = 0; i < 3000; i++) {
			memcpy(address + (i % 2 ? 12 : 4), &i, sizeof(i));
			if (add)
				assert_int_equal(cv_address_add(&table, address, i), 0);
			assert_int_equal(cv_address_find(&table, address), i);
			address[8] ^= 1;
			assert_int_equal(cv_address_find(&table, address), CV_ADDRESS_NONE);
			address[8] ^= 1;
			memset(address + 4, 0, 12);
		}
	memcpy(address + 4, &(uint32_t){2}, 4);
	assert_int_equal(cv_address_add(&table, address, 9), -EEXIST);
	cv_address_table_free(&table);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments),
		cmocka_unit_test(decapsulates),
		cmocka_unit_test(encapsulates_what_fits),
		cmocka_unit_test(errors_are_limited),
		cmocka_unit_test(refuses),
		cmocka_unit_test(finds_every_sid),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("srv6", 255, 0, 0, 4096, SOCKET_ID_ANY);
	assert_non_null(pool);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
