// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// firewall: a packet filter. Rules are ordered and the first that matches decides.
//
//   {"default": "deny",              what happens to IP packets that no rule matches: deny
//                                  (default) or allow
//    "rules": [
//      {"action": "allow",           or "deny"
//       "src": "10.0.0.0/8",         IPv4 or IPv6 prefix; a rule without addresses is for both
//       "dst": "192.0.2.1",
//       "proto": "tcp",              or udp, icmp, icmpv6 ..., or a number 0 to 255
//       "sport": 80,                 a port
//       "dport": "1000-2000",        or a range, both ends included
//       "tcp_flags": "syn,!ack",     TCP: set and not set; or VALUE/MASK, "0x02/0x12"
//       "icmp_type": 8,              ICMP or ICMPv6, and
//       "icmp_code": 0,
//       "dscp": 46,
//       "length": "40-1500",         bytes of the IP packet
//       "fragment": "none",          or first, later, any (first or later)
//       "vlan": 10,                  id of the outermost tag; "none": untagged
//       "name": "web"}],             for the counters
//    "rules_file": "acl1.rules",     a ClassBench filter set, behind the rules above
//    "rules_file_action": "allow",   what its rules do: allow (default), deny
//    "non_ip": "pass",               ARP, LLDP, MPLS ...: pass (default), drop
//    "stateful": false,            the rules are about flows, not packets
//    "tcp_loose": false,           a flow of TCP may begin without a SYN
//    "tcp_window": "none"}         which packets of TCP are dropped for their sequence numbers: none,
//                                  resets that their receiver would not believe, or all
//
// A rule that asks for ports matches TCP, UDP, SCTP, DCCP and UDP-Lite only, named or not. A
// range of 0-65535 is the same as none. ICMP and ICMPv6 are matched by protocol number, whatever
// the family. Frames pass unchanged; VLAN tags (up to two) are skipped.
//
// Fragments, without state: a first fragment carries the ports and is matched like a packet. A
// non-first fragment has none, and no TCP flags or ICMP type: a rule that asks for any of these and
// allows does not match it, one that denies does, as far as the rest matches (fails closed). So a
// chain of rules that lets fragments through must say so without them.
//
// Stateful: the rules match the first packet of a flow. The others of the flow, its answers, ICMP
// errors about it and its fragments pass, or are dropped, without asking them. So a rule that allows
// one direction is enough, and a rule's counter counts flows. TCP must begin with a SYN.
//
// Drops: denied (by a rule), default_denied (no rule matched), bad_header (lengths, version, a
// third VLAN tag, a tag of EtherType 0x9100, 0x9200 or 0x9300, EtherType 0, ports that should be
// there and are not), fragment (a first fragment too short to show its ports or its IPv6 headers;
// a later one that hides its protocol behind an extension header; two fragment headers), non_ip, invalid
// (stateful: TCP of no connection, an ICMP error about no flow). Stateful, bad fragments are
// bad_header.
//
// Not done: checksums (the router verifies IPv4's).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "nf/firewall/first.h"
#include "nf/firewall/read.h"
#include "nf/firewall/table.h"
#include "nf/firewall/unchanged.h"

// As enum cv_firewall_drop has them.
static const char *const drops[] = {
	"denied", "default_denied", "bad_header", "fragment", "non_ip", "invalid", NULL};

#define HITS_LISTED_MAX 100 // rules that info() lists: those with a name, and with most packets

struct firewall {
	struct cv_firewall_table table;
	uint8_t default_verdict;
	uint8_t non_ip_verdict;
	bool stateful, tcp_loose;
	enum cv_flow_windows windows;
	struct cv_row_counters hits; // packets by rule index + 1; at 0 those that no rule matched
	struct cv_firewall_rules rules; // for info()
};

// Did one entry, or none, decide all of them?
static CV_INLINE bool are_alike(const uint32_t *result, uint32_t n)
{
	uint32_t differ = 0;

	for (uint32_t i = 1; i < n; i++)
		differ |= result[i] ^ result[0];
	return differ == 0;
}

static CV_INLINE uint8_t verdict_of(const struct firewall *firewall, uint32_t result)
{
	uint8_t what = CV_FIREWALL_DENIES(result) ? CV_DROP(CV_FIREWALL_DENIED) : CV_NEXT;

	return result == 0 ? firewall->default_verdict : what;
}

static CV_INLINE void count_hits(uint64_t *hits, uint32_t result, uint32_t n)
{
	cv_row_count(hits, CV_FIREWALL_RULE(result), n);
}

// Of n packets, one at least, those at packet's places.
static CV_INLINE uint16_t apply_rules(const struct firewall *firewall, uint64_t *hits,
	const uint32_t *result, const uint8_t *packet, uint32_t n, uint8_t *verdict)
{
	uint16_t dropped = 0;

	// Most often one rule decides a burst, or a convoy. Counted one by one, each packet would
	// wait until the one before is in memory.
	if (CV_LIKELY(are_alike(result, n))) {
		uint8_t what = verdict_of(firewall, result[0]);

		count_hits(hits, result[0], n);
		for (uint32_t i = 0; i < n; i++)
			verdict[packet[i]] = what;
		return what != CV_NEXT ? (uint16_t)n : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint8_t what = verdict_of(firewall, result[i]);

		count_hits(hits, result[i], 1);
		verdict[packet[i]] = what;
		dropped += what != CV_NEXT;
	}
	return dropped;
}

static CV_INLINE uint16_t drop(uint8_t *verdict, uint64_t packets, uint8_t what)
{
	uint8_t place[CV_BURST_MAX];
	uint32_t n;

	if (CV_LIKELY(packets == 0 || what == CV_NEXT))
		return 0;
	n = cv_firewall_places(packets, place);
	for (uint32_t i = 0; i < n; i++)
		verdict[place[i]] = what;
	return (uint16_t)n;
}

// Asks one family's rules. Returns how many packets are dropped.
static CV_INLINE uint16_t apply_rules_to_family(const struct firewall *firewall, uint64_t *hits,
	const struct cv_firewall_family *family, uint64_t packets, bool later, const void *tuple,
	uint32_t tuple_bytes, const struct cv_firewall_fields *fields,
	const struct cv_firewall_transposed *transposed, uint16_t n, uint8_t *verdict)
{
	struct cv_firewall_scanned scanned;

	if (!cv_firewall_is_scanned(family)) {
		uint8_t place[CV_BURST_MAX];
		uint32_t result[CV_BURST_MAX];
		uint32_t count = cv_firewall_places(packets, place);

		cv_firewall_family_lookup(family, tuple, tuple_bytes, fields, place, result, count);
		return apply_rules(firewall, hits, result, place, count, verdict);
	}
	scanned = firewall->table.run(family->scan[later], transposed, n, packets, hits);
	return drop(verdict, scanned.denied, CV_DROP(CV_FIREWALL_DENIED)) +
	       drop(verdict, scanned.unmatched, firewall->default_verdict);
}

CV_HOT static uint16_t firewall_process(void *instance, struct cv_nf_worker *worker,
	struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	const struct firewall *firewall = instance;
	uint64_t *hits = firewall->hits.packets[worker->index];
	struct cv_firewall_read read;
	uint16_t dropped = cv_firewall_read_all(
		&firewall->table, firewall->non_ip_verdict, view, n, &read, verdict);
	const struct cv_firewall_fields *fields = NULL;

	if (CV_UNLIKELY(firewall->table.needs != 0)) {
		dropped += cv_firewall_read_fields(&firewall->table, view, &read, verdict);
		fields = read.fields;
	}
	if (CV_LIKELY(read.ipv4.packets != 0))
		dropped += apply_rules_to_family(firewall, hits, &firewall->table.ipv4,
			read.ipv4.packets, read.ipv4.later, read.ipv4.tuple,
			sizeof(read.ipv4.tuple[0]), fields, &read.ipv4.transposed, n, verdict);
	if (read.ipv6.packets != 0)
		dropped += apply_rules_to_family(firewall, hits, &firewall->table.ipv6,
			read.ipv6.packets, read.ipv6.later, read.ipv6.tuple,
			sizeof(read.ipv6.tuple[0]), fields, &read.ipv6.transposed, n, verdict);
	return dropped;
}

// The rule that decides on a packet of a family, its tuple and fields as they are looked up: index + 1,
// or 0. A scan says it by counting alone.
static uint32_t find_rule(const struct firewall *firewall, const struct cv_firewall_family *family,
	bool later, const void *tuple, uint32_t tuple_bytes,
	const struct cv_firewall_fields *fields, const struct cv_firewall_transposed *transposed)
{
	const uint8_t first = 0;
	uint32_t result;
	uint64_t *hits;

	if (!cv_firewall_is_scanned(family)) {
		cv_firewall_family_lookup(family, tuple, tuple_bytes, fields, &first, &result, 1);
		return CV_FIREWALL_RULE(result);
	}
	hits = calloc(firewall->rules.count + 1, sizeof(*hits));
	result = 0;
	if (hits != NULL)
		firewall->table.run(family->scan[later], transposed, 1, 1, hits);
	while (hits != NULL && result < firewall->rules.count && hits[result] == 0)
		result++;
	free(hits);
	return result;
}

static void firewall_explain(const void *instance, const struct cv_nf_worker *worker,
	const struct cv_view *view, struct cv_nf_because *because)
{
	const struct firewall *firewall = instance;
	const struct cv_firewall_fields *fields = NULL;
	struct cv_firewall_read read = {.ipv4.packets = 0}; // eight places are looked at together
	uint8_t verdict;

	cv_firewall_read_all(&firewall->table, firewall->non_ip_verdict, view, 1, &read, &verdict);
	if (firewall->table.needs != 0) {
		cv_firewall_read_fields(&firewall->table, view, &read, &verdict);
		fields = read.fields;
	}
	if (read.ipv4.packets != 0)
		because->row = 1 + find_rule(firewall, &firewall->table.ipv4, read.ipv4.later,
					   read.ipv4.tuple, sizeof(read.ipv4.tuple[0]), fields,
					   &read.ipv4.transposed);
	else if (read.ipv6.packets != 0)
		because->row = 1 + find_rule(firewall, &firewall->table.ipv6, read.ipv6.later,
					   read.ipv6.tuple, sizeof(read.ipv6.tuple[0]), fields,
					   &read.ipv6.transposed);
}

static void firewall_in_words(const void *instance, const struct cv_nf_env *env,
	const struct cv_nf_because *because, char *words, size_t room)
{
	const struct firewall *firewall = instance;

	cv_firewall_rules_in_words(&firewall->rules, because, words, room);
}

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

// What is asked of a flow's first packet, when another of its packets stands for it: TCP begins with a
// SYN, a query with an echo request, and neither is a fragment. Where nothing was kept of the first
// one, as no rule asked for it then, this one is from now on.
static void as_first_packet(const struct cv_flow_tuple *tuple, struct cv_firewall_first *first,
	struct cv_firewall_fields *fields)
{
	if (!cv_firewall_first_tell(first, fields))
		cv_firewall_first_keep(first, fields);
	fields->word[CV_FIREWALL_FIELD_IP] &=
		(uint16_t) ~(CV_FIREWALL_IS_FRAGMENT | CV_FIREWALL_IS_LATER);
	if (tuple->proto == IPPROTO_TCP)
		fields->word[CV_FIREWALL_FIELD_L4] = TCP_SYN << 8;
	else if (tuple->proto == IPPROTO_ICMP && tuple->dport == 0)
		fields->word[CV_FIREWALL_FIELD_L4] = 8 << 8;
	else if (tuple->proto == IPPROTO_ICMPV6 && tuple->dport == 0)
		fields->word[CV_FIREWALL_FIELD_L4] = 128 << 8;
}

// Says to the trace which rule decides on a flow.
static void explain_flow(const struct firewall *firewall, const struct cv_flow_packet *packet,
	const struct cv_firewall_family *family, const void *tuple, uint32_t tuple_bytes,
	const struct cv_firewall_fields *fields, const struct cv_firewall_transposed *transposed)
{
	const struct cv_nf_because because = {.row = 1 + find_rule(firewall, family, false, tuple,
								 tuple_bytes, fields, transposed)};

	cv_flow_because(packet, firewall, &because);
}

static struct cv_tuple_ipv4 tuple_to_look_up(
	const struct firewall *firewall, const struct cv_flow_tuple *tuple)
{
	const bool ports = cv_proto_has_ports(tuple->proto);

	return (struct cv_tuple_ipv4){
		.proto = cv_firewall_class(
			&firewall->table, tuple->proto, ports ? CV_TUPLE_PORTS : CV_TUPLE_NO_PORTS),
		.src = tuple->src.ipv4,
		.dst = tuple->dst.ipv4,
		.sport = ports ? tuple->sport : 0,
		.dport = ports ? tuple->dport : 0,
	};
}

// The rules' verdict of a flow, by its tuple and by its first packet: a burst of one.
static uint8_t match_flow(const struct firewall *firewall, uint64_t *hits,
	const struct cv_flow_tuple *tuple, const struct cv_flow_packet *packet,
	struct cv_firewall_first *first)
{
	struct cv_firewall_transposed transposed;
	struct cv_firewall_fields fields;
	const struct cv_firewall_fields *extra = firewall->table.needs != 0 ? &fields : NULL;
	uint8_t verdict = CV_NEXT;

	if (firewall->table.needs != 0) { // nothing is cut short: the flow path has looked
		cv_firewall_fields_read(packet->view, firewall->table.needs, &fields);
		if (packet->why == CV_FLOW_CHANGED)
			as_first_packet(tuple, first, &fields);
		else
			cv_firewall_first_keep(first, &fields);
		cv_firewall_fields_transpose(&fields, &transposed, 0);
	}
	if (tuple->family == 4) {
		struct cv_tuple_ipv4 eight[8] = {tuple_to_look_up(firewall, tuple)};

		cv_firewall_transpose_tuples_x8(eight, CV_FIREWALL_IPV4_WORDS, &transposed, 0);
		apply_rules_to_family(firewall, hits, &firewall->table.ipv4, 1, false, eight,
			sizeof(eight[0]), extra, &transposed, 1, &verdict);
		if (cv_flow_is_traced())
			explain_flow(firewall, packet, &firewall->table.ipv4, eight,
				sizeof(eight[0]), extra, &transposed);
	} else {
		const bool ports = cv_proto_has_ports(tuple->proto);
		struct cv_tuple_ipv6 eight[8] = {
			{.proto = cv_firewall_class(&firewall->table, tuple->proto,
				 ports ? CV_TUPLE_PORTS : CV_TUPLE_NO_PORTS),
				.sport = ports ? tuple->sport : 0,
				.dport = ports ? tuple->dport : 0}};

		memcpy(eight[0].src, tuple->src.ipv6, 16);
		memcpy(eight[0].dst, tuple->dst.ipv6, 16);
		cv_firewall_transpose_tuples_x8(eight, CV_FIREWALL_IPV6_WORDS, &transposed, 0);
		apply_rules_to_family(firewall, hits, &firewall->table.ipv6, 1, false, eight,
			sizeof(eight[0]), extra, &transposed, 1, &verdict);
		if (cv_flow_is_traced())
			explain_flow(firewall, packet, &firewall->table.ipv6, eight,
				sizeof(eight[0]), extra, &transposed);
	}
	return verdict;
}

// Whether a connection does not begin with this packet.
static bool begins_wrongly(const struct firewall *firewall, const struct cv_flow_tuple *tuple,
	const struct cv_flow_packet *packet)
{
	const uint8_t flags = packet->tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK);

	return tuple->proto == IPPROTO_TCP &&
	       (firewall->tcp_loose ? flags & TCP_RST : flags != TCP_SYN);
}

static uint8_t firewall_decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	const struct firewall *firewall = instance;

	if (packet->why == CV_FLOW_REPEAT)
		return CV_NEXT;
	if (packet->why == CV_FLOW_NEW && begins_wrongly(firewall, &actions->tuple, packet)) {
		actions->once = true;
		return CV_DROP(CV_FIREWALL_INVALID);
	}
	return match_flow(
		firewall, firewall->hits.packets[worker->index], &actions->tuple, packet, slot);
}

// The rules are asked about all IPv4 flows at once: a burst.
static void firewall_decide_all(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_opening *openings, uint8_t *verdicts, unsigned n)
{
	const struct firewall *firewall = instance;
	const uint32_t needs = firewall->table.needs;
	struct cv_firewall_fields fields[CV_BURST_MAX];
	struct cv_tuple_ipv4 tuples[CV_BURST_MAX];
	struct cv_firewall_transposed transposed;
	uint64_t packets = 0;

	memset(tuples, 0, RTE_ALIGN_CEIL(n, 8u) * sizeof(tuples[0]));
	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_opening *of = &openings[i];
		const struct cv_flow_tuple *tuple = &of->actions->tuple;

		if (tuple->family != 4 || begins_wrongly(firewall, tuple, of->packet)) {
			verdicts[i] = firewall_decide(
				instance, worker, of->packet, of->actions, of->slot);
			continue;
		}
		verdicts[i] = CV_NEXT;
		packets |= 1ull << i;
		tuples[i] = tuple_to_look_up(firewall, tuple);
		if (needs == 0)
			continue;
		cv_firewall_fields_read(of->packet->view, needs, &fields[i]);
		cv_firewall_first_keep(of->slot, &fields[i]);
		cv_firewall_fields_transpose(&fields[i], &transposed, i);
	}
	if (packets == 0)
		return;
	for (unsigned i = 0; i < n; i += 8)
		cv_firewall_transpose_tuples_x8(&tuples[i], CV_FIREWALL_IPV4_WORDS, &transposed, i);
	apply_rules_to_family(firewall, firewall->hits.packets[worker->index],
		&firewall->table.ipv4, packets, false, tuples, sizeof(tuples[0]),
		needs != 0 ? fields : NULL, &transposed, (uint16_t)n, verdicts);
}

static uint8_t firewall_other(void *instance, struct cv_nf_worker *worker,
	const struct cv_view *view, enum cv_flow_other why)
{
	const struct firewall *firewall = instance;

	switch (why) {
	case CV_FLOW_NON_IP:
		return firewall->non_ip_verdict;
	case CV_FLOW_UNRELATED:
		return CV_DROP(CV_FIREWALL_INVALID);
	case CV_FLOW_BAD_HEADER:
	default:
		return CV_DROP(CV_FIREWALL_BAD_HEADER);
	}
}

static bool firewall_is_stateful(const void *instance)
{
	return ((const struct firewall *)instance)->stateful;
}

static enum cv_flow_answers firewall_answers(const void *instance)
{
	return CV_FLOW_ANSWERS_MEET;
}

static enum cv_flow_windows firewall_windows(const void *instance)
{
	return ((const struct firewall *)instance)->windows;
}

static const struct cv_nf_flow firewall_flow = {
	.slot_bytes = sizeof(struct cv_firewall_first),
	.in_slots = true,
	.any_slot = true,
	.is_stateful = firewall_is_stateful,
	.answers = firewall_answers,
	.windows = firewall_windows,
	.decide = firewall_decide,
	.decide_all = firewall_decide_all,
	.other = firewall_other,
};

enum action { DENY, ALLOW };
enum non_ip { PASS, DROP };

struct config {
	enum action action, file_action;
	enum non_ip non_ip;
	bool stateful, tcp_loose;
	enum cv_flow_windows windows;
	const json_t *rules;
	const char *rules_file;
};

static const char *const actions[] = {"deny", "allow", NULL};
static const char *const non_ip_actions[] = {"pass", "drop", NULL};
static const char *const windows[] = {"none", "resets", "all", NULL}; // enum cv_flow_windows

static const struct cv_param params[] = {
	{"default", CV_WORD, CV_AT(struct config, action), .words = actions,
		.doc = "when no rule matches"},
	{"rules", CV_LIST, CV_AT(struct config, rules), .doc = "rules in order"},
	{"rules_file", CV_FILE, CV_AT(struct config, rules_file),
		.doc = "ClassBench filter set, matched after the rules"},
	{"rules_file_action", CV_WORD, CV_AT(struct config, file_action), .words = actions,
		.fallback = ALLOW, .doc = "what its rules do"},
	{"non_ip", CV_WORD, CV_AT(struct config, non_ip), .words = non_ip_actions,
		.doc = "what is neither IPv4 nor IPv6"},
	{"stateful", CV_BOOL, CV_AT(struct config, stateful),
		.doc = "rules match flows: answers and related ICMP errors pass"},
	{"tcp_loose", CV_BOOL, CV_AT(struct config, tcp_loose),
		.doc = "stateful: TCP may begin without a SYN"},
	{"tcp_window", CV_WORD, CV_AT(struct config, windows), .words = windows,
		.doc = "stateful: which TCP packets are dropped that their receiver would not "
		       "accept"},
	{0},
};

static int configure(struct firewall *firewall, const struct config *config, const char *where,
	struct cv_error *error)
{
	int rc = 0;

	firewall->default_verdict =
		config->action == ALLOW ? CV_NEXT : CV_DROP(CV_FIREWALL_DEFAULT_DENIED);
	firewall->non_ip_verdict = config->non_ip == PASS ? CV_NEXT : CV_DROP(CV_FIREWALL_NON_IP);
	firewall->stateful = config->stateful;
	firewall->tcp_loose = config->tcp_loose;
	firewall->windows = config->windows;
	firewall->rules.flows = config->stateful;
	if (config->rules != NULL)
		rc = cv_firewall_rules_add(&firewall->rules, config->rules, where, error);
	if (rc == 0 && config->rules_file != NULL)
		rc = cv_firewall_rules_load(
			&firewall->rules, config->rules_file, config->file_action == ALLOW, error);
	return rc;
}

static void firewall_destroy(void *instance)
{
	struct firewall *firewall = instance;

	cv_row_counters_free(&firewall->hits);
	cv_firewall_table_free(&firewall->table);
	cv_firewall_rules_clear(&firewall->rules);
	free(firewall);
}

static void *firewall_create(
	const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct firewall *firewall = calloc(1, sizeof(*firewall));

	if (firewall == NULL)
		return NULL;
	if (configure(firewall, config, env->name, error) != 0 ||
		cv_firewall_table_build(&firewall->table, &firewall->rules, CV_FIREWALL_PASS,
			env->name, env->socket, error) != 0)
		goto fail;
	if (cv_row_counters_make(&firewall->hits, firewall->rules.count + 1, env) != 0) {
		cv_error_set(error,
			"%s: no memory for the rules' counters; raise memory.mb (a plan's "
			"eal.memory_mb)",
			env->name);
		goto fail;
	}
	return firewall;
fail:
	firewall_destroy(firewall);
	return NULL;
}

// Counters of rules that are in both go on.
static void firewall_inherit(void *instance, void *before)
{
	struct firewall *firewall = instance;
	const struct firewall *old = before;

	cv_firewall_inherit_counters(&firewall->hits, &firewall->rules, &old->hits, &old->rules);
}

static json_t *rule_info(const struct cv_firewall_rule *rule, size_t index, uint64_t packets)
{
	json_t *info = json_pack("{s:I, s:s, s:I}", "index", (json_int_t)index, "action",
		rule->allow ? "allow" : "deny", "packets", (json_int_t)packets);

	if (info != NULL && rule->name != NULL)
		json_object_set_new(info, "name", json_string(rule->name));
	return info;
}

struct listed_rule {
	size_t index;
	bool named;
	uint64_t packets;
};

static bool counts_less(const struct listed_rule *a, const struct listed_rule *b)
{
	return a->named != b->named ? b->named : a->packets < b->packets;
}

// Rules in order; of more than HITS_LISTED_MAX those with a name, which somebody asked for, and
// then those with most packets.
static json_t *rules_info(const struct firewall *firewall)
{
	struct listed_rule top[HITS_LISTED_MAX];
	size_t listed = 0;
	json_t *array = json_array();

	for (size_t i = 0; i < firewall->rules.count; i++) {
		const struct listed_rule rule = {
			.index = i,
			.named = firewall->rules.rule[i].name != NULL,
			.packets = cv_row_counters_sum(&firewall->hits, i + 1),
		};
		size_t least = 0;

		if (listed < HITS_LISTED_MAX) {
			top[listed++] = rule;
			continue;
		}
		for (size_t j = 1; j < listed; j++)
			if (counts_less(&top[j], &top[least]))
				least = j;
		if (!counts_less(&top[least], &rule))
			continue;
		memmove(&top[least], &top[least + 1], (listed - least - 1) * sizeof(top[0]));
		top[listed - 1] = rule;
	}
	for (size_t j = 0; j < listed; j++)
		json_array_append_new(array, rule_info(&firewall->rules.rule[top[j].index],
						     top[j].index, top[j].packets));
	return array;
}

static json_t *firewall_info(const void *instance)
{
	const struct firewall *firewall = instance;

	return json_pack("{s:I, s:o, s:I}", "rules_count", (json_int_t)firewall->rules.count,
		"rules", rules_info(firewall), "default_packets",
		(json_int_t)cv_row_counters_sum(&firewall->hits, 0));
}

const struct cv_nf cv_nf_firewall = {
	.name = "firewall",
	.summary = "Allows or denies packets by ordered rules; the first match decides.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = firewall_create,
	.destroy = firewall_destroy,
	.inherit = firewall_inherit,
	.process = firewall_process,
	.explain = firewall_explain,
	.in_words = firewall_in_words,
	.flow = &firewall_flow,
	.info = firewall_info,
};
