// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Random rules, random packets: the firewall against a loop over the rules that knows what each
// packet was meant to be (and so shares no line with the code that reads packets). Numbers are
// drawn from few, so that rules overlap and packets hit their edges. The seed is fixed; another
// one is CV_TEST_SEED in the environment.
#include <rte_common.h>
#include <rte_vect.h>

#include "tests/support/test_eal.h"
#include "tests/support/test_packets.h"

enum part { WHOLE, FIRST, LATER };

struct tuple {
	int family; // 4, 6
	uint32_t src, dst; // the last 32 bits; the others are the same for all
	int proto;
	int sport, dport;
	enum part part;
	unsigned offset; // of a non-first fragment
	bool common; // without options
	int flags; // of TCP
	int dscp;
	int vlan; // -1: untagged
	int length; // of the IP packet
};

struct rule {
	bool allow;
	int family; // 0: no addresses
	uint32_t src, dst;
	int src_bits, dst_bits; // of the last 32; -1: any
	int proto; // -1: any
	int sport[2], dport[2]; // first -1: any
	int flags, flags_mask; // of TCP; mask 0: any
	int type, code, dscp, vlan; // -1: any; vlan -2: untagged
	int length[2]; // first -1: any
	const char *fragment; // NULL: any packet
};

static uint64_t random_state;

static unsigned draw(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

#define DRAW(array) (array)[draw(RTE_DIM(array))]

static uint32_t draw_address(void)
{
	static const uint32_t bases[] = {
		0x0a000000, 0x0a0000ff, 0x0a010000, 0xc0000201, 0x0affffff};

	return DRAW(bases) ^ (draw(3) == 0 ? 1u << draw(32) : 0);
}

static int draw_port(void)
{
	static const int ports[] = {0, 1, 79, 80, 81, 255, 256, 1024, 32768, 65534, 65535};

	return DRAW(ports);
}

static int draw_proto(void)
{
	static const int protos[] = {6, 6, 17, 17, 132, 33, 136, 1, 58, 47, 255};

	return DRAW(protos);
}

static bool has_ports(int proto)
{
	return proto == 6 || proto == 17 || proto == 132 || proto == 33 || proto == 136;
}

static void draw_prefix(uint32_t *address, int *bits)
{
	static const int lengths[] = {0, 1, 7, 8, 9, 16, 24, 31, 32};

	*bits = draw(3) == 0 ? -1 : DRAW(lengths);
	*address = *bits <= 0 ? 0 : draw_address() & ~(uint32_t)((1ull << (32 - *bits)) - 1);
}

static void draw_ports(int ports[2])
{
	int a = draw_port(), b = draw(2) ? draw_port() : a;

	ports[0] = draw(2) ? -1 : RTE_MIN(a, b);
	ports[1] = RTE_MAX(a, b);
}

static bool is_icmp(int proto)
{
	return proto == 1 || proto == 58;
}

static bool asks_l4(const struct rule *rule)
{
	return rule->sport[0] >= 0 || rule->dport[0] >= 0 || rule->flags_mask != 0 ||
	       rule->type >= 0;
}

static const int dscps[] = {0, 1, 46, 63};

static void draw_fields(struct rule *rule)
{
	static const char *const fragments[] = {"none", "first", "later", "any"};
	static const int l4_protos[] = {6, 1, 58};

	if (draw(4) == 0)
		rule->proto = DRAW(l4_protos);
	if (rule->proto == 6 && draw(2)) {
		rule->flags_mask = 1 + (int)draw(255);
		rule->flags = (int)draw(256) & rule->flags_mask;
	}
	if (is_icmp(rule->proto) && draw(2)) {
		rule->type = draw_port() >> 8; // as the packets' first bytes are drawn
		rule->code = draw(2) ? draw_port() & 255 : -1;
	}
	if (draw(4) == 0)
		rule->dscp = DRAW(dscps);
	if (draw(4) == 0)
		rule->vlan = (int)draw(3) == 0 ? -2 : draw(2) ? 5 : 0;
	if (draw(4) == 0) {
		rule->length[0] = 30 + (int)draw(80);
		rule->length[1] = draw(4) == 0 ? rule->length[0] : rule->length[0] + (int)draw(60);
	}
	if (draw(4) == 0)
		rule->fragment = DRAW(fragments);
	if (asks_l4(rule) && rule->fragment != NULL && strcmp(rule->fragment, "later") == 0)
		rule->fragment = NULL; // has none of it
}

static struct rule draw_rule(bool with_fields)
{
	struct rule rule = {.allow = draw(2), .proto = draw(3) == 0 ? -1 : draw_proto()};

	draw_prefix(&rule.src, &rule.src_bits);
	draw_prefix(&rule.dst, &rule.dst_bits);
	rule.family = rule.src_bits < 0 && rule.dst_bits < 0 ? 0 : draw(2) ? 4 : 6;
	draw_ports(rule.sport);
	draw_ports(rule.dport);
	rule.type = rule.code = rule.dscp = rule.vlan = rule.length[0] = -1;
	if (with_fields)
		draw_fields(&rule);
	if (rule.proto >= 0 && !has_ports(rule.proto))
		rule.sport[0] = rule.dport[0] = -1;
	return rule;
}

// common: the common case, which the firewall reads eight at a time.
static struct tuple draw_tuple(bool common)
{
	struct tuple tuple = {
		.family = draw(2) ? 4 : 6,
		.src = draw_address(),
		.dst = draw_address(),
		.proto = draw_proto(),
		.sport = draw_port(),
		.dport = draw_port(),
		.part = draw(2)   ? WHOLE
			: draw(2) ? FIRST
				  : LATER,
		.offset = 1 + draw(3),
		.common = common,
		.flags = (int)draw(256),
		.dscp = DRAW(dscps),
		.vlan = (int)draw(3) == 0 ? -1
			: draw(2)         ? 5
					  : 0,
	};

	if (common) {
		tuple.family = 4;
		tuple.proto = draw(2) ? 6 : 17;
		tuple.part = WHOLE;
	}
	return tuple;
}

static bool fragment_matches(const char *fragment, enum part part)
{
	if (fragment == NULL)
		return true;
	if (strcmp(fragment, "any") == 0)
		return part != WHOLE;
	return part == (strcmp(fragment, "none") == 0           ? WHOLE
			       : strcmp(fragment, "first") == 0 ? FIRST
								: LATER);
}

static bool fields_match(const struct rule *rule, const struct tuple *tuple)
{
	if ((rule->dscp >= 0 && rule->dscp != tuple->dscp) ||
		(rule->vlan != -1 && (rule->vlan == -2 ? -1 : rule->vlan) != tuple->vlan) ||
		(rule->length[0] >= 0 &&
			(tuple->length < rule->length[0] || tuple->length > rule->length[1])) ||
		!fragment_matches(rule->fragment, tuple->part))
		return false;
	if (rule->flags_mask == 0 && rule->type < 0)
		return true;
	if (tuple->part == LATER)
		return !rule->allow;
	return (rule->flags_mask == 0 || (tuple->flags & rule->flags_mask) == rule->flags) &&
	       (rule->type < 0 || tuple->sport >> 8 == rule->type) &&
	       (rule->code < 0 || (tuple->sport & 255) == rule->code);
}

// What the documentation says, once more.
static bool ports_match(const struct rule *rule, const struct tuple *tuple)
{
	bool all_sport = rule->sport[0] < 0 || (rule->sport[0] == 0 && rule->sport[1] == 65535);
	bool all_dport = rule->dport[0] < 0 || (rule->dport[0] == 0 && rule->dport[1] == 65535);

	if (all_sport && all_dport)
		return true;
	if (!has_ports(tuple->proto))
		return false;
	if (tuple->part == LATER)
		return !rule->allow;
	return (all_sport || (tuple->sport >= rule->sport[0] && tuple->sport <= rule->sport[1])) &&
	       (all_dport || (tuple->dport >= rule->dport[0] && tuple->dport <= rule->dport[1]));
}

static bool address_match(uint32_t prefix, int bits, uint32_t address)
{
	return bits <= 0 || (prefix ^ address) >> (32 - bits) == 0;
}

static const char *expect(const struct rule *rules, unsigned count, const struct tuple *tuple)
{
	// Where flags are asked for, a fragment that could write over them is dropped.
	for (unsigned i = 0; i < count; i++)
		if (rules[i].flags_mask != 0 && tuple->family == 4 && tuple->proto == 6 &&
			tuple->part == LATER && tuple->offset == 1)
			return "fragment";
	for (unsigned i = 0; i < count; i++) {
		const struct rule *rule = &rules[i];

		if ((rule->family == 0 || rule->family == tuple->family) &&
			address_match(rule->src, rule->src_bits, tuple->src) &&
			address_match(rule->dst, rule->dst_bits, tuple->dst) &&
			(rule->proto < 0 || rule->proto == tuple->proto) &&
			ports_match(rule, tuple) && fields_match(rule, tuple))
			return rule->allow ? "next" : "denied";
	}
	return "default_denied";
}

static const char *address_text(int family, uint32_t address, char *text)
{
	if (family == 4)
		sprintf(text, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
			address & 255);
	else
		sprintf(text, "2001:db8::%x:%x", address >> 16, address & 0xffff);
	return text;
}

static void prefix_json(json_t *json, const char *key, int family, uint32_t address, int bits)
{
	char text[64];

	if (bits < 0)
		return;
	address_text(family, address, text);
	sprintf(text + strlen(text), "/%d", family == 4 ? bits : 96 + bits);
	json_object_set_new(json, key, json_string(text));
}

static void ports_json(json_t *json, const char *key, const int ports[2])
{
	char text[32];

	sprintf(text, "%d-%d", ports[0], ports[1]);
	if (ports[0] >= 0)
		json_object_set_new(json, key, json_string(text));
}

static void number_json(json_t *json, const char *key, int number)
{
	if (number >= 0)
		json_object_set_new(json, key, json_integer(number));
}

static json_t *rule_json(const struct rule *rule)
{
	json_t *json = json_pack("{s:s}", "action", rule->allow ? "allow" : "deny");

	prefix_json(json, "src", rule->family, rule->src, rule->src_bits);
	prefix_json(json, "dst", rule->family, rule->dst, rule->dst_bits);
	if (rule->proto >= 0)
		json_object_set_new(json, "proto", json_integer(rule->proto));
	ports_json(json, "sport", rule->sport);
	ports_json(json, "dport", rule->dport);
	ports_json(json, "length", rule->length);
	if (rule->flags_mask != 0)
		json_object_set_new(json, "tcp_flags",
			json_sprintf("0x%02x/0x%02x", (unsigned)rule->flags,
				(unsigned)rule->flags_mask));
	number_json(json, "icmp_type", rule->type);
	number_json(json, "icmp_code", rule->code);
	number_json(json, "dscp", rule->dscp);
	number_json(json, "vlan", rule->vlan);
	if (rule->vlan == -2)
		json_object_set_new(json, "vlan", json_string("none"));
	if (rule->fragment != NULL)
		json_object_set_new(json, "fragment", json_string(rule->fragment));
	return json;
}

static struct packet tuple_packet(const struct tuple *tuple)
{
	const char *tag = tuple->vlan < 0 ? "" : tuple->vlan > 0 ? "vlan id=5 " : "qinq vlan ";
	static const char *const options[] = {"", "opt=01010100 "};
	static const char *const extensions[] = {"", "hbh ", "dstopt size=24 ", "hbh rth ah "};
	char src[64], dst[64], fragment[32] = "", text[512];
	unsigned offset = tuple->part == LATER ? tuple->offset : 0;
	unsigned ecn = draw(4);
	unsigned more = tuple->part == WHOLE ? 0 : tuple->part == FIRST ? 1 : draw(2);

	address_text(tuple->family, tuple->src, src);
	address_text(tuple->family, tuple->dst, dst);
	if (tuple->family == 4) {
		snprintf(text, sizeof(text), "%sip4 src=%s dst=%s tos=%u proto=%d off=%u mf=%u %s",
			tag, src, dst, (unsigned)tuple->dscp << 2 | ecn, tuple->proto, offset, more,
			tuple->common ? "" : DRAW(options));
	} else {
		const char *chain = DRAW(extensions);

		if (tuple->part != WHOLE || draw(4) == 0)
			snprintf(fragment, sizeof(fragment), "frag off=%u mf=%u ", offset, more);
		// The last header names the protocol: the IPv6 header itself if there is no other.
		snprintf(text, sizeof(text), "%sip6 src=%s dst=%s tc=%u %s%snh=%d", tag, src, dst,
			(unsigned)tuple->dscp << 2 | ecn, chain, fragment, tuple->proto);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
		" hex=%04x%04x000000000000000050%02x0000 data=%u", (unsigned)tuple->sport,
		(unsigned)tuple->dport, (unsigned)tuple->flags, draw(3) * 17);
	return packet_make(text);
}

static void check(unsigned count, bool with_fields)
{
	const struct cv_nf *nf = cv_nf_find("firewall");
	struct rule rules[256];
	json_t *array = json_array(),
	       *config = json_pack("{s:s, s:o}", "default", "deny", "rules", array);
	struct cv_error error = {""};
	void *firewall;

	for (unsigned i = 0; i < count; i++) {
		rules[i] = draw_rule(with_fields);
		json_array_append_new(array, rule_json(&rules[i]));
	}
	firewall = cv_nf_create(nf, config, packet_env(), &error);
	if (firewall == NULL)
		fail_msg("%s", error.text);
	for (unsigned round = 0; round < 8; round++) {
		struct tuple tuples[CV_BURST_MAX];
		struct packet packets[CV_BURST_MAX];
		struct cv_view views[CV_BURST_MAX];
		uint8_t verdicts[CV_BURST_MAX];
		uint16_t n = (uint16_t)draw(CV_BURST_MAX + 1);
		uint16_t dropped;
		unsigned rare = draw(3); // outside of the common case: all, one in twenty, none

		for (unsigned i = 0; i < n; i++) {
			tuples[i] = draw_tuple(rare > 0 && (rare > 1 || draw(20) > 0));
			packets[i] = tuple_packet(&tuples[i]);
			cv_view_set(&views[i], packets[i].bytes, packets[i].len);
			tuples[i].length = views[i].len - views[i].l3;
		}
		memset(verdicts, 0x7f, sizeof(verdicts));
		dropped = nf->process(
			firewall, &(struct cv_nf_worker){.index = 1}, views, verdicts, n);
		for (unsigned i = n; i < CV_BURST_MAX; i++)
			assert_int_equal(verdicts[i], 0x7f); // views of an earlier round
		for (unsigned i = 0; i < n; i++) {
			const char *want = expect(rules, count, &tuples[i]);

			dropped -= verdicts[i] != CV_NEXT;
			if (verdicts[i] == packet_verdict(nf, want))
				continue;
			fail_msg("%s\nfamily %d src %08x dst %08x proto %d ports %d %d part %d "
				 "flags %02x dscp %d vlan %d length %d: not %s but %s",
				json_dumps(config, 0), tuples[i].family, tuples[i].src,
				tuples[i].dst, tuples[i].proto, tuples[i].sport, tuples[i].dport,
				tuples[i].part, (unsigned)tuples[i].flags, tuples[i].dscp,
				tuples[i].vlan, tuples[i].length, want,
				verdicts[i] == CV_NEXT ? "next" : nf->drops[verdicts[i] - 1]);
		}
		assert_int_equal(dropped, 0);
	}
	nf->destroy(firewall);
	json_decref(config);
}

static void check_all(void)
{
	static const unsigned counts[] = {0, 1, 2, 5, 10, 20, 40, 100, 250};
	const char *seed = getenv("CV_TEST_SEED");

	random_state = seed != NULL ? strtoull(seed, NULL, 0) : 1;
	for (unsigned round = 0; round < 20; round++)
		for (size_t i = 0; i < RTE_DIM(counts); i++)
			check(counts[i], round % 2);
}

static void random_rules(void **state)
{
	check_all();
}

// As on a processor whose vectors are shorter.
static void random_rules_short_vectors(void **state)
{
	uint16_t before = rte_vect_get_max_simd_bitwidth();

	assert_int_equal(rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_128), 0);
	check_all();
	assert_int_equal(rte_vect_set_max_simd_bitwidth(before), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_rules),
		cmocka_unit_test(random_rules_short_vectors),
	};
	int failed;

	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
