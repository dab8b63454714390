// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Each packet goes through a path of its own: what leaves is compared byte by byte.
#include "tests/support/test_packets.h"

#include "nf/nsh/header.h"
#include "nf/nsh/path_table.h"
#include "tests/support/function_rig.h"

extern const struct cv_nf cv_nf_nsh, cv_nf_nsh_encap;

#define INNER "02000000000b02000000000a88b5c0ffee"
#define INNER_IP4 "45000016000000004011f6d3c0000201c6336401aabb"
// TTL 63, metadata of type 1, Ethernet inside; path 42.
#define NSH "0fc60103"
#define CONTEXT "00112233445566778899aabbccddeeff"
#define EAST "dst=02:00:00:00:00:09 src=02:aa:00:00:00:01"

static struct rte_mempool *pool;
static struct function_rig rig;

struct row {
	const char *name;
	const char *in;
	const char *drop; // NULL: it leaves
	const char *out;
	uint8_t port; // that it leaves by; it would by port 1
};

static unsigned drop_index(const struct cv_nf *nf, const char *name)
{
	for (unsigned i = 0; nf->drops[i] != NULL; i++)
		if (strcmp(nf->drops[i], name) == 0)
			return i;
	fail_msg("%s has no drop reason %s", nf->name, name);
	return 0;
}

static void expect(const char *name, const char *text, unsigned port)
{
	const struct packet want = packet_make(text);
	const struct rig_out *out = &rig.out[0];

	if (rig.outs != 1)
		fail_msg("%s: %u packets left", name, rig.outs);
	if (out->port != port)
		fail_msg("%s: left by port %u, not %u", name, out->port, port);
	if (out->len != want.len)
		fail_msg("%s: %u bytes, not %u", name, out->len, want.len);
	for (unsigned i = 0; i < want.len; i++)
		if (out->bytes[i] != want.bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, out->bytes[i],
				want.bytes[i]);
}

static void check(const struct cv_nf *nf, void *instance, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		const struct packet packet = packet_make(row->in);

		rig_begin(&rig, nf, instance, pool);
		assert_true(rig_receive(&rig, 0, packet.bytes, packet.len));
		assert_true(rig_conserved(&rig));
		if (row->drop == NULL)
			expect(row->name, row->out, row->port);
		else if (rig.counters.drops[drop_index(nf, row->drop)] != 1)
			fail_msg("%s: was not dropped as %s", row->name, row->drop);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

static const char table[] =
	"{'paths': [{'path': 42, 'index': 255, 'mac': '02:00:00:00:00:09', 'dev': 'third'},"
	"{'path': 42, 'index': 254, 'mac': '02:00:00:00:00:09', 'vxlan_gpe':"
	"  {'src': '192.0.2.1', 'dst': '198.51.100.1', 'vni': 7}},"
	"{'path': 42, 'index': 253, 'action': 'decapsulate'},"
	"{'path': 42, 'index': 252, 'action': 'proxy'},"
	"{'path': 42, 'index': 0, 'action': 'proxy'},"
	"{'path': 42, 'index': 251, 'mac': '02:00:00:00:00:09', 'vxlan_gpe':"
	"  {'src': '2001:db8::1', 'dst': '2001:db8::2', 'vni': 16777215}}]%s}";

static void forwards(void **state)
{
	static const struct row rows[] = {
		{"over Ethernet, the TTL is one less",
			"type=894f hex=" NSH "00002aff" CONTEXT INNER, NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=0f860103 hex=00002aff" CONTEXT INNER,
			2},
		{"the outer tags stay", "vlan id=5 type=894f hex=" NSH "00002aff" CONTEXT INNER,
			NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 vlan id=5 type=894f "
			"hex=0f860103 hex=00002aff" CONTEXT INNER,
			2},
		{"TTL 0 becomes 63", "type=894f hex=0006010300002aff" CONTEXT INNER, NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=0fc6010300002aff" CONTEXT INNER,
			2},
		{"TTL 1", "type=894f hex=0046010300002aff" CONTEXT INNER, .drop = "ttl_expired"},
		{"unassigned bits stay", "type=894f hex=1fc6f10300002aff" CONTEXT INNER, NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=1f86f10300002aff" CONTEXT INNER,
			2},
		{"metadata of type 2",
			"type=894f hex=0fc4020300002aff"
			"0103040200aa0000" INNER,
			NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=0f84020300002aff"
			"0103040200aa0000" INNER,
			2},
		{"none of type 2", "type=894f hex=0fc2020300002aff" INNER, NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=0f82020300002aff" INNER,
			2},
		{"from Ethernet into VXLAN-GPE", "type=894f hex=" NSH "00002afe" CONTEXT INNER,
			NULL,
			EAST " ip4 df=1 udp sport=56058 dport=4790 hex=0c00000400000700 "
			     "hex=0f86010300002afe" CONTEXT INNER,
			1},
		{"and over IPv6", "type=894f hex=" NSH "00002afb" CONTEXT INNER, NULL,
			EAST " ip6 udp sport=56058 dport=4790 hex=0c000004ffffff00 "
			     "hex=0f86010300002afb" CONTEXT INNER,
			1},
		{"and from it",
			"ip6 udp sport=9 dport=4790 hex=0c00000400000900 "
			"hex=" NSH "00002aff" CONTEXT INNER,
			NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=0f86010300002aff" CONTEXT INNER,
			2},
		{"another path", "type=894f hex=" NSH "00002bff" CONTEXT INNER, .drop = "no_path"},
		{"another index", "type=894f hex=" NSH "00002afa" CONTEXT INNER, .drop = "no_path"},
		{"OAM", "type=894f hex=2fc6010300002aff" CONTEXT INNER, .drop = "oam"},
		{"metadata of type 0", "type=894f hex=0fc6000300002aff" CONTEXT INNER,
			.drop = "metadata_type"},
		{"metadata of type 15", "type=894f hex=0fc60f0300002aff" CONTEXT INNER,
			.drop = "metadata_type"},
		{"version 1", "type=894f hex=4fc6010300002aff" CONTEXT INNER, .drop = "bad_header"},
		{"type 1 with another length", "type=894f hex=0fc5010300002aff" CONTEXT INNER,
			.drop = "bad_header"},
		{"shorter than a header", "type=894f hex=0fc1020300002aff" INNER,
			.drop = "bad_header"},
		{"longer than the packet", "type=894f hex=0fff020300002aff" INNER,
			.drop = "bad_header"},
		{"cut in the header", "type=894f hex=0fc20203 hex=00002a", .drop = "bad_header"},
		{"no NSH", "ip4 udp dport=53", .drop = "not_nsh"},
		{"VXLAN-GPE with something else",
			"ip4 udp dport=4790 hex=0c00000300000700 hex=" NSH "00002aff" CONTEXT INNER,
			.drop = "not_nsh"},
		{"VXLAN-GPE cut short", "ip4 udp dport=4790 hex=0c000004000007", .drop = "not_nsh"},
		{"nothing", "cut=0", .drop = "not_nsh"},
	};
	char config[2048];
	void *nf;

	snprintf(config, sizeof(config), table, "");
	nf = packet_nf(&cv_nf_nsh, config, NULL);
	check(&cv_nf_nsh, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_nsh, nf);
}

static void decapsulates(void **state)
{
	static const struct row rows[] = {
		{"Ethernet inside", "type=894f hex=" NSH "00002afd" CONTEXT INNER, NULL,
			"dst=02:00:00:00:00:0b src=02:00:00:00:00:0a type=88b5 hex=c0ffee", 1},
		{"from VXLAN-GPE",
			"ip4 udp dport=4790 hex=0c00000400000700 hex=" NSH "00002afd" CONTEXT INNER,
			NULL, "dst=02:00:00:00:00:0b src=02:00:00:00:00:0a type=88b5 hex=c0ffee",
			1},
		{"IPv4 inside: the Ethernet header and its tag stay",
			"vlan id=3 type=894f hex=0fc2020100002afd" INNER_IP4, NULL,
			"vlan id=3 type=0800 hex=" INNER_IP4, 1},
		{"IPv6 inside", "type=894f hex=0fc2020200002afd" INNER_IP4, NULL,
			"type=86dd hex=" INNER_IP4, 1},
		{"IPv4 in VXLAN-GPE",
			"ip4 udp dport=4790 hex=0c00000400000700 hex=0fc2020100002afd" INNER_IP4,
			NULL, "type=0800 hex=" INNER_IP4, 1},
		{"MPLS inside", "type=894f hex=0fc2020500002afd" INNER, .drop = "next_protocol"},
		{"less than an Ethernet header inside",
			"type=894f hex=0fc2020300002afd hex=02000000000b02000000000a88",
			.drop = "bad_header"},
		{"OAM", "type=894f hex=2fc6010300002afd" CONTEXT INNER, .drop = "oam"},
		{"no NSH", "ip4 udp dport=53", NULL, "ip4 udp dport=53", 1},
	};
	char config[2048];
	void *nf;

	snprintf(config, sizeof(config), table, ", 'not_nsh': 'pass', 'oam': 'forward'");
	nf = packet_nf(&cv_nf_nsh, config, NULL);
	check(&cv_nf_nsh, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_nsh, nf);
}

static void oam_is_forwarded_where_allowed(void **state)
{
	static const struct row row = {"OAM", "type=894f hex=2fc6010300002aff" CONTEXT INNER, NULL,
		"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
		"hex=2f86010300002aff" CONTEXT INNER,
		2};
	char config[2048];
	void *nf;

	snprintf(config, sizeof(config), table, ", 'oam': 'forward'");
	nf = packet_nf(&cv_nf_nsh, config, NULL);
	check(&cv_nf_nsh, nf, &row, 1);
	cv_nf_destroy(&cv_nf_nsh, nf);
}

static uint16_t seen_type, seen_len;

// A function that knows nothing of NSH: it sees the packet inside, and makes it longer by a tag.
static uint16_t add_tag(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *data;

		seen_type = rte_be_to_cpu_16(view[i].proto);
		seen_len = view[i].len;
		data = cv_nf_prepend(worker, &view[i], CV_VLAN_LEN);
		assert_non_null(data);
		memmove(data, data + CV_VLAN_LEN, 12);
		memcpy(data + 12, (uint8_t[]){0x81, 0, 0, 7}, CV_VLAN_LEN);
		cv_view_parse(&view[i]);
		verdict[i] = CV_NEXT;
	}
	return 0;
}

// From the proxy through such a function to the forwarder: the header comes back with one index less.
static void proxies(void **state)
{
	static const struct row rows[] = {
		{"over Ethernet", "type=894f hex=" NSH "00002afc" CONTEXT INNER, NULL,
			EAST " ip6 udp sport=56058 dport=4790 hex=0c000004ffffff00 "
			     "hex=0f86010300002afb" CONTEXT
			     "02000000000b02000000000a8100000788b5c0ffee",
			1},
		{"over VXLAN-GPE",
			"ip4 udp sport=5 dport=4790 hex=0c00000400000800 "
			"hex=" NSH "00002afc" CONTEXT INNER,
			NULL,
			EAST " ip6 udp sport=56058 dport=4790 hex=0c000004ffffff00 "
			     "hex=0f86010300002afb" CONTEXT
			     "02000000000b02000000000a8100000788b5c0ffee",
			1},
	};
	char config[2048];
	void *nf;

	snprintf(config, sizeof(config), table, "");
	nf = packet_nf(&cv_nf_nsh, config, NULL);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet packet = packet_make(rows[i].in);
		struct cv_nf_counters counters[3] = {0};
		struct cv_step steps[3] = {
			{.process = cv_nf_nsh.process, .instance = nf, .counters = &counters[0]},
			{.process = add_tag, .counters = &counters[1]},
			{.process = cv_nf_nsh.process, .instance = nf, .counters = &counters[2]},
		};

		rig_begin(&rig, &cv_nf_nsh, nf, pool);
		rig.path = (struct cv_path){.length = 3, .steps = steps};
		rig_receive(&rig, 0, packet.bytes, packet.len);
		assert_int_equal(seen_type, 0x88b5);
		assert_int_equal(seen_len, 17);
		assert_int_equal(counters[1].bytes, 17);
		expect(rows[i].name, rows[i].out, rows[i].port);
		// Without a second nsh function it leaves as it came, the lengths of a tunnel fitting.
		rig_begin(&rig, &cv_nf_nsh, nf, pool);
		rig.path = (struct cv_path){.length = 2, .steps = steps};
		rig_receive(&rig, 0, packet.bytes, packet.len);
		expect(rows[i].name,
			i == 0 ? "type=894f hex=" NSH "00002afb" CONTEXT
				 "02000000000b02000000000a8100000788b5c0ffee"
			       : "ip4 udp sport=5 dport=4790 hex=0c00000400000800 "
				 "hex=" NSH "00002afb" CONTEXT
				 "02000000000b02000000000a8100000788b5c0ffee",
			1);
	}
	cv_nf_destroy(&cv_nf_nsh, nf);
}

static void proxies_what_it_can(void **state)
{
	static const struct row rows[] = {
		{"index 0", "type=894f hex=" NSH "00002a00" CONTEXT INNER, .drop = "index_expired"},
		{"IP inside", "type=894f hex=0fc2020100002afc" INNER_IP4, .drop = "next_protocol"},
		{"less than an Ethernet header inside",
			"type=894f hex=0fc2020300002afc hex=02000000000b02000000000a88",
			.drop = "bad_header"},
		{"more metadata than can be hidden",
			"type=894f hex=0fff020300002afc data=244 hex=" INNER, .drop = "too_long"},
	};
	char config[2048];
	void *nf;

	snprintf(config, sizeof(config), table, "");
	nf = packet_nf(&cv_nf_nsh, config, NULL);
	check(&cv_nf_nsh, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_nsh, nf);
}

static void encapsulates(void **state)
{
	static const struct row rows[] = {
		{"type 1", "ip4 tcp dport=80", NULL,
			EAST " type=894f hex=0fc6010300002aff" CONTEXT
			     "0200000000020200000000010800"
			     "45000028000000004006"
			     "8e9ac0000201c6336401"
			     "0000005000000000000000005000000000000000",
			1},
		{"type 2", "ip4 udp", NULL,
			"dst=02:00:00:00:00:09 src=02:aa:00:00:00:02 type=894f "
			"hex=01450203abcdef07"
			"0103040100000000"
			"fffe8000"
			"020000000002020000000001080045"
			"00001c000000004011"
			"8e9bc0000201c63364010000000000080000",
			2},
		{"all others", "vlan id=3 type=0806 hex=0001", NULL,
			EAST " ip4 df=1 udp sport=58455 dport=4790 hex=0c00000400000700 "
			     "hex=0fc6010300000101 hex=00000000000000000000000000000000 "
			     "hex=0200000000020200000000018100000308060001",
			1},
	};
	void *nf = packet_nf(&cv_nf_nsh_encap,
		"{'rules': [{'match': {'proto': 'tcp'}, 'path': 42, 'mac': '02:00:00:00:00:09',"
		"  'context': '" CONTEXT "'},"
		" {'match': {'proto': 'udp'}, 'path': 11259375, 'index': 7, 'ttl': 5,"
		"  'mac': '02:00:00:00:00:09', 'dev': 'third',"
		"  'tlvs': [{'metadata_class': 259, 'type': 4, 'value': '00'},"
		"    {'metadata_class': 65534, 'type': 128}]},"
		" {'path': 1, 'index': 1, 'mac': '02:00:00:00:00:09',"
		"  'vxlan_gpe': {'src': '192.0.2.1', 'dst': '198.51.100.1', 'vni': 7}}]}",
		NULL);

	check(&cv_nf_nsh_encap, nf, rows, RTE_DIM(rows));
	cv_nf_destroy(&cv_nf_nsh_encap, nf);
	nf = packet_nf(&cv_nf_nsh_encap,
		"{'rules': [{'match': {'proto': 'tcp'}, 'path': 42, 'mac': '02:00:00:00:00:09'}]}",
		NULL);
	check(&cv_nf_nsh_encap, nf, &(struct row){"no rule matches", "ip4 udp", NULL, "ip4 udp", 1},
		1);
	cv_nf_destroy(&cv_nf_nsh_encap, nf);
}

#define RULE "{'rules': [{'path': 1, 'mac': '02:00:00:00:00:09', "

static void refuses(void **state)
{
	static const struct {
		const struct cv_nf *nf;
		const char *config, *words;
	} rows[] = {
		{&cv_nf_nsh, "{}", "paths: is missing"},
		{&cv_nf_nsh, "{'paths': [{'path': 1, 'index': 256}]}", "from 0 to 255"},
		{&cv_nf_nsh, "{'paths': [{'path': 16777216, 'index': 1}]}", "from 0 to 16777215"},
		{&cv_nf_nsh, "{'paths': [{'path': 1, 'index': 1}]}",
			"paths[0]: mac: is missing; give that of the next hop"},
		{&cv_nf_nsh,
			"{'paths': [{'path': 1, 'index': 1, 'action': 'proxy'},"
			"{'path': 1, 'index': 1, 'action': 'decapsulate'}]}",
			"paths[1]: path 1 with index 1 is there twice; remove one"},
		{&cv_nf_nsh,
			"{'paths': [{'path': 1, 'index': 1, 'action': 'proxy', 'output': 'x'}]}",
			"output: no output is called \"x\""},
		{&cv_nf_nsh,
			"{'paths': [{'path': 1, 'index': 1, 'mac': '02:00:00:00:00:09',"
			"'dev': 'x'}]}",
			"paths[0]: dev: no port is called \"x\"; the ports are left, right"},
		{&cv_nf_nsh_encap, "{'rules': []}", "rules: "},
		{&cv_nf_nsh_encap, "{'rules': [{'path': 1}]}", "rules[0]: mac: is missing"},
		{&cv_nf_nsh_encap, RULE "'index': 0}]}", "from 1 to 255"},
		{&cv_nf_nsh_encap, RULE "'context': '00'}]}",
			"context: \"00\": must be 32 hexadecimal digits"},
		{&cv_nf_nsh_encap, RULE "'context': '0000000000000000000000000000000g'}]}",
			"must be 32 hexadecimal digits"},
		{&cv_nf_nsh_encap,
			RULE "'tlvs': [{'metadata_class': 1, 'type': 1, 'value': '0'}]}]}",
			"tlvs[0]: value: \"0\": must be an even number of up to 254"},
		{&cv_nf_nsh_encap, RULE "'tlvs': [], 'context': '" CONTEXT "'}]}",
			"context and tlvs exclude each other"},
		{&cv_nf_nsh_encap,
			RULE "'vxlan_gpe': {'src': '10.0.0.1', 'dst': '::1', 'vni': 1}}]}",
			"vxlan_gpe: src and dst must both be IPv4"},
		{&cv_nf_nsh_encap, RULE "'vxlan_gpe': {'src': '10.0.0.1', 'dst': '10.0.0.2'}}]}",
			"vxlan_gpe: vni: is missing"},
		{&cv_nf_nsh_encap,
			RULE "'index': 1}, {'path': 1, 'mac': '02:00:00:00:00:09', 'match': {}}]}",
			"rules[0]: match: is missing; only the last rule"},
		{&cv_nf_nsh_encap, RULE "'match': {'src': '10.0.0.1/8'}}]}",
			"rules[0]: src: \"10.0.0.1/8\": host bits are set"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++)
		packet_refused(rows[i].nf, rows[i].config, rows[i].words);
}

static void metadata_has_a_bound(void **state)
{
	const struct cv_nf *nf = &cv_nf_nsh_encap;
	char config[4000] = RULE "'tlvs': [";
	size_t at = strlen(config);

	// 8 + 61 * 4 = 252 bytes fit; one more does not.
	for (unsigned i = 0; i < 61; i++)
		at += (size_t)snprintf(config + at, sizeof(config) - at,
			"%s{'metadata_class': 1, 'type': 1}", i > 0 ? ", " : "");
	snprintf(config + at, sizeof(config) - at, "]}]}");
	cv_nf_destroy(nf, packet_nf(nf, config, NULL));
	snprintf(config + at, sizeof(config) - at, ", {'metadata_class': 1, 'type': 1}]}]}");
	packet_refused(nf, config, "tlvs[61]: the header has more than 252 bytes with it");
}

static void finds_every_path(void **state)
{
	struct cv_nsh_path_table paths;

	assert_int_equal(cv_nsh_path_table_init(&paths, 5000), 0);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(cv_nsh_path_add(&paths, i * 257, i), 0);
	assert_int_equal(cv_nsh_path_add(&paths, 257, 1), -EEXIST);
	for (uint32_t i = 0; i < 5000; i++) {
		assert_int_equal(cv_nsh_path_find(&paths, i * 257), i);
		assert_int_equal(cv_nsh_path_find(&paths, i * 257 + 1), CV_NSH_NO_PATH);
	}
	cv_nsh_path_table_free(&paths);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards),
		cmocka_unit_test(decapsulates),
		cmocka_unit_test(oam_is_forwarded_where_allowed),
		cmocka_unit_test(proxies),
		cmocka_unit_test(proxies_what_it_can),
		cmocka_unit_test(encapsulates),
		cmocka_unit_test(refuses),
		cmocka_unit_test(metadata_has_a_bound),
		cmocka_unit_test(finds_every_path),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("nsh", 255, 0, 0, 4096, SOCKET_ID_ANY);
	assert_non_null(pool);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
