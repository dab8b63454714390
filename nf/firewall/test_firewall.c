// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_common.h>

#include "tests/support/test_eal.h"
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_firewall;

// The rules that most tables below apply, so that each row shows one thing.
#define RULES                                                                                \
	"{'action': 'deny', 'src': '10.66.0.0/16', 'name': 'bad people'},"                   \
	"{'action': 'deny', 'proto': 'tcp', 'dport': 23},"                                   \
	"{'action': 'allow', 'proto': 'udp', 'sport': '1000-2000', 'dport': 53},"            \
	"{'action': 'allow', 'src': '10.0.0.0/8', 'proto': 'tcp'},"                          \
	"{'action': 'allow', 'src': '2001:db8::/32', 'dst': '2001:db8:1::/48', 'proto': 6}," \
	"{'action': 'allow', 'proto': 'icmp'},"                                              \
	"{'action': 'allow', 'proto': 'icmpv6'},"                                            \
	"{'action': 'allow', 'dst': '10.9.9.9', 'dport': 8080}"

// The same packets are matched by few rules, which are scanned, and by many, which are a trie:
// these fill up the table and match nothing that the tests send.
static char *config_of(const char *settings, const char *rules, unsigned more)
{
	size_t size = strlen(rules) + strlen(settings) + 100 + more * 100;
	char *text = malloc(size), *at;

	assert_non_null(text);
	at = text + sprintf(text, "{%s, 'rules': [%s", settings, rules);
	for (unsigned i = 0; i < more; i++)
		at += sprintf(at, "%s{'action': 'allow', 'src': '%s', 'proto': 'udp', 'dport': %u}",
			i == 0 && *rules == '\0' ? "" : ",",
			i % 2 ? "203.0.113.7" : "2001:db8:dead::7", 10000 + i);
	strcpy(at, "]}");
	return text;
}

static void *firewall_of(const char *settings, const char *rules, unsigned more)
{
	char *text = config_of(settings, rules, more);
	json_t *json;
	struct cv_error error = {""};
	void *firewall;

	for (char *c = text; *c != '\0'; c++)
		*c = *c == '\'' ? '"' : *c;
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	firewall = cv_nf_create(&cv_nf_firewall, json, packet_env(), &error);
	if (firewall == NULL)
		fail_msg("%s", error.text);
	json_decref(json);
	free(text);
	return firewall;
}

static const unsigned fillers[] = {0, 200}; // scanned, trie

// A packet and what becomes of it. No byte of it changes.
struct row {
	const char *name;
	const char *in;
	const char *verdict;
};

static void check(const char *settings, const char *rules, const struct row *row, size_t count)
{
	struct packet_row rows[64];

	assert_true(count <= RTE_DIM(rows));
	for (size_t i = 0; i < count; i++)
		rows[i] = (struct packet_row){row[i].name, row[i].in, row[i].verdict, NULL, 0, 1};
	for (size_t i = 0; i < RTE_DIM(fillers); i++) {
		void *firewall = firewall_of(settings, rules, fillers[i]);

		packet_table(&cv_nf_firewall, firewall, rows, count);
		cv_nf_firewall.destroy(firewall);
	}
}

#define CHECK(settings, rules, rows) check(settings, rules, rows, RTE_DIM(rows))

static void ipv4(void **state)
{
	static const struct row rows[] = {
		{"allowed", "ip4 src=10.1.2.3 tcp dport=80", "next"},
		{"out of the prefix", "ip4 src=11.1.2.3 tcp dport=80", "default_denied"},
		{"an earlier rule denies", "ip4 src=10.1.2.3 tcp dport=23", "denied"},
		{"the first rule denies", "ip4 src=10.66.2.3 tcp dport=80", "denied"},
		{"just out of it", "ip4 src=10.67.0.0 tcp dport=80", "next"},
		{"range below", "ip4 udp sport=999 dport=53", "default_denied"},
		{"range first", "ip4 udp sport=1000 dport=53", "next"},
		{"range last", "ip4 udp sport=2000 dport=53", "next"},
		{"range above", "ip4 udp sport=2001 dport=53", "default_denied"},
		{"other port", "ip4 udp sport=1500 dport=54", "default_denied"},
		{"bytes not swapped", "ip4 udp sport=1500 dport=13568", "default_denied"},
		{"icmp", "ip4 icmp kind=8", "next"},
		{"ports without protocol: tcp", "ip4 dst=10.9.9.9 tcp dport=8080", "next"},
		{"udp", "ip4 dst=10.9.9.9 udp dport=8080", "next"},
		{"sctp", "ip4 dst=10.9.9.9 sctp dport=8080", "next"},
		{"dccp", "ip4 dst=10.9.9.9 proto=33 hex=00001f90", "next"},
		{"udp-lite", "ip4 dst=10.9.9.9 proto=136 hex=00001f90", "next"},
		{"gre has no ports", "ip4 dst=10.9.9.9 proto=47 hex=00001f90", "default_denied"},
		{"options", "ip4 src=10.1.2.3 opt=01010100 tcp", "next"},
		{"options are not ports", "ip4 opt=05dc0035 udp dport=54", "default_denied"},
		{"most options",
			"ip4 src=10.1.2.3 opt=" //
			"01010101010101010101010101010101010101010101010101010101010101010101010101"
			"010101"
			" tcp",
			"next"},
		{"vlan", "vlan id=10 ip4 src=10.1.2.3 tcp", "next"},
		{"qinq", "qinq id=9 vlan id=10 ip4 src=10.66.2.3 tcp", "denied"},
		{"three tags hide it", "qinq vlan vlan ip4 src=10.1.2.3 tcp", "bad_header"},
		{"padding is not the packet", "ip4 src=10.1.2.3 tcp pad=6", "next"},
		{"padding is not ports", "ip4 src=10.1.2.3 proto=6 pad=26", "bad_header"},
		{"two bytes of ports", "ip4 src=10.1.2.3 proto=6 hex=0050 pad=24", "bad_header"},
		{"only ports", "ip4 src=10.1.2.3 proto=6 hex=00500050", "next"},
		{"version", "ip4 src=10.1.2.3 ver=6 tcp", "bad_header"},
		{"header below 20", "ip4 src=10.1.2.3 ihl=4 tcp", "bad_header"},
		{"header beyond the packet", "ip4 src=10.1.2.3 ihl=15 len=40 tcp", "bad_header"},
		{"longer than the frame", "ip4 src=10.1.2.3 len=41 tcp", "bad_header"},
		{"shorter than its header", "ip4 src=10.1.2.3 len=19 tcp", "bad_header"},
		{"wrong checksum is the router's", "ip4 src=10.1.2.3 sum=1234 tcp", "next"},
	};

	CHECK("'default': 'deny'", RULES, rows);
}

static void ipv6(void **state)
{
	static const struct row rows[] = {
		{"allowed", "ip6 dst=2001:db8:1::5 tcp", "next"},
		{"other prefix", "ip6 dst=2001:db8:2::5 tcp", "default_denied"},
		{"other source", "ip6 src=2001:db9::1 dst=2001:db8:1::5 tcp", "default_denied"},
		{"an IPv4 rule is not for it", "ip6 src=a00::1 tcp dport=80", "default_denied"},
		{"a rule without addresses is", "ip6 udp sport=1500 dport=53", "next"},
		{"so is one that denies", "ip6 dst=2001:db8:1::5 tcp dport=23", "denied"},
		{"icmpv6", "ip6 icmp6 kind=135", "next"},
		{"hop-by-hop", "ip6 hbh udp sport=1500 dport=53", "next"},
		{"hop-by-hop before a denied port", "ip6 hbh size=16 tcp dport=23", "denied"},
		{"many", "ip6 hbh dstopt size=24 rth size=24 ah size=24 dstopt tcp dport=23",
			"denied"},
		{"authentication", "ip6 ah udp sport=1500 dport=53", "next"},
		{"eight", "ip6 hbh dstopt dstopt dstopt dstopt dstopt dstopt dstopt tcp dport=23",
			"denied"},
		{"nine",
			"ip6 hbh dstopt dstopt dstopt dstopt dstopt dstopt dstopt dstopt tcp "
			"dport=23",
			"bad_header"},
		{"no next header", "ip6 nh=59", "default_denied"},
		{"no next header, with a rest", "ip6 nh=59 data=20", "default_denied"},
		{"esp", "ip6 nh=50 data=20", "default_denied"},
		{"whole in a fragment header", "ip6 frag udp sport=1500 dport=53", "next"},
		{"vlan", "vlan id=10 ip6 udp sport=1500 dport=53", "next"},
		{"qinq", "qinq vlan ip6 hbh tcp dport=23", "denied"},
		{"version", "ip6 ver=4 tcp", "bad_header"},
		{"longer than the frame", "ip6 len=21 tcp", "bad_header"},
		{"two bytes of ports", "ip6 nh=17 hex=05dc pad=10", "bad_header"},
		{"no ports", "ip6 nh=17", "bad_header"},
		{"extension cut", "ip6 nh=0 hex=11000000 pad=20", "bad_header"},
		{"extension longer than the packet", "ip6 nh=0 hex=1101000000000000 pad=20",
			"bad_header"},
		{"nothing behind the extension", "ip6 nh=0 hex=1100000000000000", "bad_header"},
		{"jumbogram", "ip6 nh=0 len=0 hex=1100c20400010000 data=20", "bad_header"},
	};

	CHECK("'default': 'deny'", RULES, rows);
}

static void fragments(void **state)
{
	// Default deny: only what rules without ports allow comes through in non-first fragments.
	static const struct row deny[] = {
		{"first, its ports are there", "ip4 mf=1 udp sport=1500 dport=53 data=16", "next"},
		{"first, denied by its ports", "ip4 src=10.1.1.1 mf=1 tcp dport=23 data=4",
			"denied"},
		{"first, too short for ports", "ip4 src=10.1.1.1 mf=1 proto=6 hex=0017",
			"fragment"},
		{"first, empty", "ip4 src=10.1.1.1 mf=1 proto=6 pad=26", "fragment"},
		{"later: an allowing rule with ports is no help",
			"ip4 mf=1 off=3 proto=17 hex=05dc003500080000", "default_denied"},
		{"last", "ip4 off=3 proto=17 hex=05dc003500080000", "default_denied"},
		{"later: a denying rule with ports stops it",
			"ip4 src=10.1.1.1 off=1 proto=6 data=8", "denied"},
		{"later, another protocol", "ip4 src=10.1.1.1 off=1 proto=1 data=8", "next"},
		{"later, empty", "ip4 src=10.66.1.1 off=1 proto=1", "denied"},
		{"later, largest offset", "ip4 off=8191 proto=1 data=8", "next"},
		{"first without ports", "ip4 mf=1 icmp data=8", "next"},
		{"do not fragment is no fragment", "ip4 df=1 udp sport=1500 dport=53", "next"},
		{"6: first", "ip6 frag mf=1 udp sport=1500 dport=53", "next"},
		{"6: first behind others", "ip6 hbh frag mf=1 dstopt udp sport=1500 dport=53",
			"next"},
		{"6: first, too short for ports", "ip6 frag mf=1 nh=17 hex=05dc", "fragment"},
		{"6: first, headers cut", "ip6 frag mf=1 nh=60 hex=11010000", "fragment"},
		{"6: first, headers longer", "ip6 frag mf=1 nh=60 hex=1101000000000000",
			"fragment"},
		{"6: later", "ip6 frag off=3 nh=17 hex=05dc003500080000", "default_denied"},
		{"6: later, without ports", "ip6 frag off=3 nh=58 data=8", "next"},
		{"6: later, hides its protocol", "ip6 frag off=3 nh=60 data=8", "fragment"},
		{"6: later, ends before the fragment", "ip6 frag off=3 nh=58", "next"},
		{"6: two fragment headers", "ip6 frag frag udp sport=1500 dport=53", "fragment"},
		{"6: two, the second later", "ip6 frag mf=1 frag off=3 nh=58 data=8", "fragment"},
	};
	// Default allow: a non-first fragment is stopped only where a denying rule could have
	// matched.
	static const struct row allow[] = {
		{"could be to port 23", "ip4 off=1 proto=6 data=8", "denied"},
		{"could be from port 9", "ip4 off=1 proto=17 data=8", "next"},
		{"could be, and to there", "ip4 dst=10.5.0.1 off=1 proto=17 data=8", "denied"},
		{"6: could be to port 23", "ip6 frag off=1 nh=6 data=8", "denied"},
		{"6: not tcp", "ip6 frag off=1 nh=17 data=8", "next"},
		{"first, to there", "ip4 dst=10.5.0.1 mf=1 udp sport=8", "next"},
		{"first, from that port", "ip4 dst=10.5.0.1 mf=1 udp sport=9", "denied"},
	};
	// A rule without ports before others decides for all fragments of a packet.
	static const struct row order[] = {
		{"allowed before it is denied", "ip4 src=10.1.1.1 off=1 proto=6 data=8", "next"},
		{"others are denied", "ip4 src=11.1.1.1 off=1 proto=6 data=8", "denied"},
	};

	CHECK("'default': 'deny'", RULES, deny);
	CHECK("'default': 'allow'",
		"{'action': 'deny', 'proto': 'tcp', 'dport': 23},"
		"{'action': 'deny', 'dst': '10.5.0.0/16', 'sport': 9}",
		allow);
	CHECK("'default': 'allow'",
		"{'action': 'allow', 'src': '10.0.0.0/8', 'proto': 'tcp'},"
		"{'action': 'deny', 'proto': 'tcp', 'dport': 23}",
		order);
}

// Every prefix of a packet: it is matched by what is there, and nothing behind it is read (each
// lies in memory of its own size).
static void truncated(void **state)
{
	static const struct {
		const char *packet;
		const char *verdict; // until the frame is whole
	} packets[] = {
		{"vlan id=3 ip4 src=10.1.2.3 opt=01010100 tcp data=8", "bad_header"},
		{"ip4 src=10.1.2.3 mf=1 tcp data=8", "bad_header"},
		{"qinq vlan ip6 hbh dstopt size=16 ah udp sport=1500 dport=53 data=3",
			"bad_header"},
		{"ip6 frag mf=1 dstopt udp sport=1500 dport=53 data=3", "bad_header"},
	};

	for (size_t i = 0; i < RTE_DIM(packets); i++) {
		uint16_t len = packet_make(packets[i].packet).len;

		for (uint16_t cut = 0; cut <= len; cut++) {
			char text[256];
			struct row row = {text, text, cut < len ? packets[i].verdict : "next"};

			snprintf(text, sizeof(text), "%s cut=%u", packets[i].packet, cut);
			check("'default': 'deny'", RULES, &row, 1);
		}
	}
}

static void non_ip(void **state)
{
	static const struct row pass[] = {
		{"arp", "type=0806 data=28", "next"},
		{"tagged arp", "vlan type=0806 data=28", "next"},
		{"802.3 length", "type=0026 data=38", "next"},
		{"only an Ethernet header", "type=88cc", "next"},
		{"a byte short", "type=88cc cut=13", "bad_header"},
		{"nothing", "cut=0", "bad_header"},
		{"tag cut", "vlan type=0806 cut=17", "bad_header"},
		{"ip is matched", "ip4 proto=1", "default_denied"},
		{"9100 tag", "type=9100 data=64", "bad_header"},
		{"9200 tag", "type=9200 data=64", "bad_header"},
		{"9300 tag", "type=9300 data=64", "bad_header"},
		{"9100 tag behind another", "vlan type=9100 data=64", "bad_header"},
		{"ip behind a 9100 tag", "qinq vlan type=9100 hex=000a0800 data=40", "bad_header"},
		{"next to 9100", "type=9101 data=64", "next"},
	};
	static const struct row drop[] = {
		{"arp", "type=0806 data=28", "non_ip"},
		{"802.3 length", "type=0026 data=38", "non_ip"},
		{"a byte short", "cut=13", "bad_header"},
		{"three tags", "vlan vlan vlan ip4", "bad_header"},
		{"ip is matched", "ip4 proto=1", "next"},
	};

	CHECK("'default': 'deny', 'non_ip': 'pass'", "", pass);
	CHECK("'default': 'allow', 'non_ip': 'drop'", "", drop);
	CHECK("'default': 'allow', 'non_ip': 'drop', 'rules_file_action': 'deny'", "", drop);
}

static void counters(void **state)
{
	static const char *const packets[] = {"ip4 src=10.66.2.3 tcp", "ip4 src=10.1.2.3 tcp",
		"ip4 src=10.1.2.3 off=2 proto=6", "ip6 dst=2001:db8:1::5 tcp", "ip4 proto=99",
		"ip4 ver=5", "type=0806"};
	static const unsigned want[] = {5, 0, 0, 10, 5, 0, 0, 0};

	for (size_t f = 0; f < RTE_DIM(fillers); f++) {
		void *firewall = firewall_of("'default': 'deny'",
			"{'action': 'deny', 'src': '10.66.0.0/16', 'name': 'bad people'},"
			"{'action': 'allow', 'proto': 'icmp'},"
			"{'action': 'allow', 'proto': 'tcp', 'dport': '1-9'},"
			"{'action': 'allow', 'src': '10.0.0.0/8', 'proto': 'tcp'},"
			"{'action': 'allow', 'src': '2001:db8::/32', 'proto': 6}",
			fillers[f]);
		const json_t *rules;
		json_t *info;

		// Worker 0 twice, worker 1 three times.
		for (unsigned round = 0; round < 5; round++) {
			for (size_t i = 0; i < RTE_DIM(packets); i++) {
				struct packet packet = packet_make(packets[i]);
				struct cv_view view;
				uint8_t verdict;

				cv_view_set(&view, packet.bytes, packet.len);
				cv_nf_firewall.process(firewall,
					&(struct cv_nf_worker){.index = round % 2}, &view, &verdict,
					1);
			}
		}
		info = cv_nf_firewall.info(firewall);
		rules = json_object_get(info, "rules");
		assert_int_equal(
			json_integer_value(json_object_get(info, "rules_count")), 5 + fillers[f]);
		assert_int_equal(json_integer_value(json_object_get(info, "default_packets")), 5);
		for (size_t i = 0; i < 5; i++) {
			const json_t *rule = json_array_get(rules, i);

			assert_int_equal(json_integer_value(json_object_get(rule, "index")), i);
			assert_int_equal(
				json_integer_value(json_object_get(rule, "packets")), want[i]);
		}
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(rules, 0), "name")),
			"bad people");
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(rules, 3), "action")),
			"allow");
		assert_true(json_array_size(rules) <= 100);
		json_decref(info);
		cv_nf_firewall.destroy(firewall);
	}
}

// Of many rules those with a name are listed, and those with most packets, in order.
static void counters_of_many(void **state)
{
	void *firewall = firewall_of("'default': 'deny'",
		"{'action': 'deny', 'src': '10.66.0.0/16', 'name': 'quiet'}", 300);
	const json_t *rules;
	json_t *info;

	for (unsigned i = 150; i < 300; i++) {
		for (unsigned times = 0; times < (i == 299 ? 1u : i == 151 ? 0u : 2u); times++) {
			char text[128];
			struct packet packet;
			struct cv_view view;
			uint8_t verdict;

			snprintf(text, sizeof(text), "%s udp dport=%u",
				i % 2 ? "ip4 src=203.0.113.7" : "ip6 src=2001:db8:dead::7",
				10000 + i);
			packet = packet_make(text);
			cv_view_set(&view, packet.bytes, packet.len);
			assert_int_equal(
				cv_nf_firewall.process(firewall, &(struct cv_nf_worker){.index = 0},
					&view, &verdict, 1),
				0);
		}
	}
	info = cv_nf_firewall.info(firewall);
	rules = json_object_get(info, "rules");
	assert_int_equal(json_array_size(rules), 100);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rules, 0), "name")), "quiet");
	for (size_t i = 1; i < 100; i++) {
		const json_t *rule = json_array_get(rules, i);
		json_int_t index = json_integer_value(json_object_get(rule, "index"));

		assert_int_equal(json_integer_value(json_object_get(rule, "packets")), 2);
		assert_true(index >= 151 && index < 300 && index != 152);
		assert_true(index > json_integer_value(json_object_get(
					    json_array_get(rules, i - 1), "index")));
	}
	json_decref(info);
	cv_nf_firewall.destroy(firewall);
}

// A large set loads, and each of its rules is found.
static void hundred_thousand(void **state)
{
	const unsigned count = 100000;
	json_t *rules = json_array(), *config = json_pack("{s:o}", "rules", rules);
	struct cv_error error = {""};
	void *firewall;

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(rules,
			json_pack("{s:s, s:o, s:s, s:s}", "action", i % 3 ? "allow" : "deny", "dst",
				json_sprintf(
					"20.%u.%u.%u/28", i >> 12, i >> 4 & 255, (i & 15) << 4),
				"proto", "udp", "dport", "1000-2000"));
	firewall = cv_nf_create(&cv_nf_firewall, config, packet_env(), &error);
	if (firewall == NULL)
		fail_msg("%s", error.text);
	for (unsigned i = 0; i < count; i += 997) {
		char text[128];
		struct packet_row rows[2] = {
			{text, text, i % 3 ? "next" : "denied", NULL, 0, 1},
			{"another port", "ip4 dst=20.0.0.0 udp dport=2001", "default_denied", NULL,
				0, 1},
		};

		snprintf(text, sizeof(text), "ip4 dst=20.%u.%u.%u udp dport=%u", i >> 12,
			i >> 4 & 255, (i & 15) << 4 | i % 16, 1000 + i % 1001);
		packet_table(&cv_nf_firewall, firewall, rows, 2);
	}
	json_decref(config);
	cv_nf_firewall.destroy(firewall);
}

// What rules ask beside the 5-tuple.
static void fields(void **state)
{
	static const struct row flags[] = {
		{"syn", "ip4 tcp flags=2", "next"},
		{"syn, ack", "ip4 tcp flags=0x12", "denied"},
		{"ack", "ip6 tcp flags=0x10", "denied"},
		{"others do not matter", "ip6 tcp flags=0xc2", "next"},
		{"fin", "ip4 tcp flags=1", "default_denied"},
		{"only tcp", "ip4 udp data=20", "default_denied"},
		{"flags cut off", "ip4 proto=6 data=13", "bad_header"},
		{"just there", "ip4 proto=6 hex=0000000000000000000000005002", "next"},
		{"cut off in a first fragment", "ip4 mf=1 proto=6 data=8", "fragment"},
		{"cut off behind a fragment header", "ip6 frag mf=1 nh=6 data=8", "fragment"},
		{"written over", "ip4 off=1 proto=6 data=8", "fragment"},
		{"others may", "ip4 off=1 proto=17 data=8", "default_denied"},
		// The rule that denies could be about it; the one that allows is not.
		{"later", "ip4 off=2 proto=6 data=8", "denied"},
		{"later, IPv6", "ip6 frag off=1 nh=6 data=8", "denied"},
	};
	static const struct row icmp[] = {
		{"echo", "ip4 icmp kind=8", "next"},
		{"any code of it", "ip4 icmp kind=8 code=3", "next"},
		{"echo reply", "ip4 icmp", "default_denied"},
		{"type and code", "ip4 icmp kind=3 code=4", "denied"},
		{"another code", "ip4 icmp kind=3 code=3", "default_denied"},
		{"IPv6", "ip6 icmp6 kind=128", "next"},
		{"not of IPv6", "ip6 icmp6 kind=8", "default_denied"},
		{"cut off", "ip4 proto=1 data=1", "bad_header"},
		{"later", "ip4 off=2 proto=1 data=8", "denied"},
		{"later, the rule allows", "ip6 frag off=2 nh=58 data=8", "default_denied"},
	};
	static const struct row others[] = {
		{"dscp", "ip4 tos=184 udp", "next"},
		{"its neighbours do not matter", "ip4 tos=187 udp", "next"},
		{"dscp, IPv6", "ip6 tc=184 udp", "next"},
		{"dscp, behind a header", "ip6 tc=186 hbh udp", "next"},
		{"another", "ip4 tos=180 udp", "default_denied"},
		{"shortest", "ip4 proto=47 data=30 pad=9", "next"},
		{"too short", "ip4 proto=47 data=29 pad=9", "default_denied"},
		{"longest", "ip6 nh=47 data=20", "next"},
		{"too long", "ip6 nh=47 data=21", "default_denied"},
		{"vlan", "vlan id=7 ip4 icmp", "denied"},
		{"the outer tag", "qinq id=7 vlan id=8 ip6 tcp", "denied"},
		{"not the inner one", "qinq id=8 vlan id=7 ip4 tcp", "default_denied"},
		{"untagged", "ip4 src=10.0.0.1 tcp", "next"},
		{"tagged", "vlan id=0 ip4 src=10.0.0.1 tcp", "default_denied"},
	};
	static const struct row fragment[] = {
		{"whole", "ip4 tcp", "default_denied"},
		{"first", "ip4 mf=1 tcp", "next"},
		{"later", "ip4 off=9 mf=1 proto=6 data=8", "denied"},
		{"last", "ip6 frag off=9 nh=6 data=8", "denied"},
		{"any", "ip6 frag mf=1 nh=17 data=8", "denied"},
		{"whole with a header", "ip6 frag udp", "next"},
	};

	CHECK("'default': 'deny'",
		"{'action': 'allow', 'proto': 'tcp', 'tcp_flags': 'syn,!ack'},"
		"{'action': 'deny', 'proto': 'tcp', 'tcp_flags': '0x10/0x10'}",
		flags);
	CHECK("'default': 'deny'",
		"{'action': 'allow', 'proto': 'icmp', 'icmp_type': 8},"
		"{'action': 'allow', 'proto': 'icmpv6', 'icmp_type': 128},"
		"{'action': 'deny', 'proto': 'icmp', 'icmp_type': 3, 'icmp_code': 4}",
		icmp);
	CHECK("'default': 'deny'",
		"{'action': 'allow', 'dscp': 46}, {'action': 'deny', 'vlan': 7},"
		"{'action': 'allow', 'proto': 47, 'length': '50-60'},"
		"{'action': 'allow', 'src': '10.0.0.0/8', 'vlan': 'none'}",
		others);
	CHECK("'default': 'deny'",
		"{'action': 'allow', 'proto': 'tcp', 'fragment': 'first'},"
		"{'action': 'deny', 'fragment': 'any'},"
		"{'action': 'deny', 'fragment': 'later'},"
		"{'action': 'allow', 'proto': 'udp', 'fragment': 'none'}",
		fragment);
}

#define RULE(keys) "{'rules': [{'action': 'deny', " keys "}]}"

static void bad_configurations(void **state)
{
	static const struct {
		const char *config;
		const char *words;
	} rows[] = {
		{"[]", "nf: must be an object"},
		{"{'rule': []}", "nf: rule: unknown; known are: default rules rules_file"},
		{"{'default': 'drop'}", "nf: default: \"drop\": must be one of: deny allow"},
		{"{'default': 1}", "nf: default: 1: must be one of"},
		{"{'non_ip': 'deny'}", "non_ip: \"deny\": must be one of: pass drop"},
		{"{'rules_file_action': 'no'}", "rules_file_action: \"no\""},
		{"{'rules': {}}", "nf: rules: {}: must be an array"},
		{"{'rules': [1]}", "nf: rules[0]: must be an object"},
		{"{'rules': [{}]}", "rules[0]: action: is missing; add it"},
		{"{'rules': [{'action': 'permit'}]}", "action: \"permit\""},
		{"{'rules': [{'action': 'deny'}, {'action': 'deny', 'port': 1}]}",
			"nf: rules[1]: port: unknown"},
		{"{'rules': [{'action': 'deny', 'src': '10.0.0.1/8'}]}",
			"rules[0]: src: \"10.0.0.1/8\": host bits are set; write \"10.0.0.0/8\""},
		{"{'rules': [{'action': 'deny', 'dst': '10.0.0.0/33'}]}",
			"dst: \"10.0.0.0/33\": write"},
		{"{'rules': [{'action': 'deny', 'dst': 'example.com'}]}",
			"dst: \"example.com\": write"},
		{"{'rules': [{'action': 'deny', 'dst': ''}]}", "dst: \"\": write"},
		{"{'rules': [{'action': 'deny', 'dst': 7}]}", "dst: 7: must be a string"},
		{"{'rules': [{'action': 'deny', 'src': '::/0', 'dst': '10.0.0.0/8'}]}",
			"src and dst must both be IPv4 or both be IPv6"},
		{"{'rules': [{'action': 'deny', 'proto': 'tpc'}]}",
			"proto: \"tpc\": write tcp, udp"},
		{"{'rules': [{'action': 'deny', 'proto': 256}]}", "proto: 256: write tcp, udp"},
		{"{'rules': [{'action': 'deny', 'proto': []}]}", "proto: []: write tcp, udp"},
		{"{'rules': [{'action': 'deny', 'sport': 65536}]}", "sport: 65536: write a port"},
		{"{'rules': [{'action': 'deny', 'sport': -1}]}", "sport: -1: write a port"},
		{"{'rules': [{'action': 'deny', 'dport': '2000-1000'}]}",
			"the range runs backwards; write \"1000-2000\""},
		{"{'rules': [{'action': 'deny', 'sport': '81-80'}]}", "write \"80-81\""},
		{"{'rules': [{'action': 'deny', 'dport': '1-70000'}]}",
			"dport: \"1-70000\": write"},
		{"{'rules': [{'action': 'deny', 'dport': '1-2-3'}]}", "dport: \"1-2-3\": write"},
		{"{'rules': [{'action': 'deny', 'dport': 'http'}]}", "dport: \"http\": write"},
		{"{'rules': [{'action': 'deny', 'dport': ''}]}", "dport: \"\": write"},
		{"{'rules': [{'action': 'deny', 'dport': '-'}]}", "dport: \"-\": write"},
		{"{'rules': [{'action': 'deny', 'proto': 'icmp', 'dport': 1}]}",
			"protocol 1 has no ports; leave out sport and dport"},
		{"{'rules': [{'action': 'deny', 'name': 1}]}", "name: 1: must be a string"},
		{RULE("'proto': 'tcp', 'tcp_flags': 'sny'"),
			"tcp_flags: \"sny\": write flags, \"syn"},
		{RULE("'proto': 'tcp', 'tcp_flags': 'syn,'"), "tcp_flags: \"syn,\": write"},
		{RULE("'proto': 'tcp', 'tcp_flags': 'syn,!syn'"), "tcp_flags: \"syn,!syn\": write"},
		{RULE("'proto': 'tcp', 'tcp_flags': ''"), "tcp_flags: \"\": write"},
		{RULE("'proto': 'tcp', 'tcp_flags': '0x02'"), "tcp_flags: \"0x02\": write"},
		{RULE("'proto': 'tcp', 'tcp_flags': '0x02/0x10'"), "write flags"},
		{RULE("'proto': 'tcp', 'tcp_flags': '0x00/0x00'"), "write flags"},
		{RULE("'proto': 'tcp', 'tcp_flags': '0x002/0x02'"), "write flags"},
		{RULE("'proto': 'tcp', 'tcp_flags': 2"), "tcp_flags: 2: write flags"},
		{RULE("'tcp_flags': 'syn'"), "tcp_flags: needs proto tcp; write it"},
		{RULE("'proto': 'icmp', 'tcp_flags': 'syn'"), "tcp_flags: needs proto tcp"},
		{RULE("'icmp_type': 8"), "icmp_type: 8: needs proto icmp or icmpv6"},
		{RULE("'proto': 'icmp', 'icmp_type': 256"), "icmp_type: 256"},
		{RULE("'proto': 'icmp', 'icmp_code': 1"), "icmp_code: 1: needs icmp_type; add it"},
		{RULE("'dscp': 64"), "dscp: 64: must be"},
		{RULE("'dscp': 'ef'"), "dscp: \"ef\": must be"},
		{RULE("'length': '1500-40'"), "length: \"1500-40\": the range runs backwards"},
		{RULE("'length': 65536"), "length: 65536: write a length, 64"},
		{RULE("'fragment': 'yes'"), "must be one of: none first later any"},
		{RULE("'fragment': 'later', 'dport': 1"), "fragment: later: has no ports"},
		{RULE("'vlan': 4096"), "vlan: 4096: write an id from 0 to 4095, or \"none\""},
		{RULE("'vlan': 'any'"), "vlan: \"any\": write an id"},
		{"{'stateful': true, 'rules': [{'action': 'deny', 'fragment': 'later'}]}",
			"rules[0]: fragment: later: of a stateful firewall they go with their "
			"flow"},
		{"{'rules_file': 1}", "rules_file: 1: must be a string"},
		{"{'rules_file': '/does/not/exist'}",
			"rules_file \"/does/not/exist\": No such file or directory"},
		{"{'rules_file': '/'}", "/: Is a directory"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++)
		packet_refused(&cv_nf_firewall, rows[i].config, rows[i].words);
}

// 239 protocols without ports can be told apart, one more cannot.
static void many_protocols(void **state)
{
	for (unsigned want = 239; want <= 240; want++) {
		json_t *rules = json_array(), *config;
		struct cv_error error = {""};
		unsigned named = 0;
		void *firewall;

		for (unsigned proto = 0; named < want; proto++) {
			if (proto == 6 || proto == 17 || proto == 33 || proto == 132 ||
				proto == 136)
				continue;
			named++;
			json_array_append_new(
				rules, json_pack("{s:s, s:i}", "action", "allow", "proto", proto));
		}
		config = json_pack("{s:o}", "rules", rules);
		firewall = cv_nf_create(&cv_nf_firewall, config, packet_env(), &error);
		if (want == 240) {
			assert_null(firewall);
			assert_non_null(strstr(error.text, "more than 239 protocols"));
		} else {
			assert_non_null(firewall);
			cv_nf_firewall.destroy(firewall);
		}
		json_decref(config);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(fragments),
		cmocka_unit_test(truncated),
		cmocka_unit_test(non_ip),
		cmocka_unit_test(counters),
		cmocka_unit_test(counters_of_many),
		cmocka_unit_test(hundred_thousand),
		cmocka_unit_test(fields),
		cmocka_unit_test(bad_configurations),
		cmocka_unit_test(many_protocols),
	};
	int failed;

	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
