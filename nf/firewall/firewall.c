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
//       "name": "web"}],             for the counters
//    "rules_file": "acl1.rules",     a ClassBench filter set, behind the rules above
//    "rules_file_action": "allow",   what its rules do: allow (default), deny
//    "non_ip": "pass",               ARP, LLDP, MPLS ...: pass (default), drop
//    "stateful": false,            the rules are about flows, not packets
//    "tcp_loose": false}           a flow of TCP may begin without a SYN
//
// A rule that asks for ports matches TCP, UDP, SCTP, DCCP and UDP-Lite only, named or not. A
// range of 0-65535 is the same as none. ICMP and ICMPv6 are matched by protocol number, whatever
// the family. Frames pass unchanged; VLAN tags (up to two) are skipped, not matched.
//
// Fragments, without state: a first fragment carries the ports and is matched like a packet. A
// non-first fragment has none: a rule with ports that allows does not match it, a rule with ports
// that denies does, as far as its addresses and protocol match (fails closed). So a chain of rules
// that lets fragments through must say so without ports.
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
// Not done: checksums (the router verifies IPv4's), TCP flags.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "nf/firewall/read.h"
#include "nf/firewall/table.h"
#include "nf/firewall/trie.h"

// As enum cv_firewall_drop has them.
static const char *const drops[] = {
	"denied", "default_denied", "bad_header", "fragment", "non_ip", "invalid", NULL};

#define HITS_LISTED_MAX 100 // rules that info() lists, those with most packets

struct firewall {
	struct cv_firewall_table table;
	uint8_t default_verdict;
	uint8_t non_ip_verdict;
	bool stateful, tcp_loose;
	unsigned workers;
	// Of each worker: packets by rule index + 1, and at 0 those that no rule matched. Written by
	// the worker, read by info().
	uint64_t *hits[CV_WORKERS_MAX];
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
	uint64_t *hit = &hits[CV_FIREWALL_RULE(result)];

	__atomic_store_n(hit, *hit + n, __ATOMIC_RELAXED); // with the load in hits_sum()
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

// The places of the bits that are set. Returns how many.
static CV_INLINE uint32_t places(uint64_t bits, uint8_t *place)
{
	uint32_t n = 0;

	if (CV_LIKELY((bits & (bits + 1)) == 0)) { // the first n of them, as most often
		for (uint32_t i = 0; i < CV_BURST_MAX; i++)
			place[i] = (uint8_t)i;
		return (uint32_t)__builtin_popcountll(bits);
	}
	for (; bits != 0; bits &= bits - 1)
		place[n++] = (uint8_t)__builtin_ctzll(bits);
	return n;
}

static CV_INLINE uint16_t drop(uint8_t *verdict, uint64_t packets, uint8_t what)
{
	uint8_t place[CV_BURST_MAX];
	uint32_t n;

	if (CV_LIKELY(packets == 0 || what == CV_NEXT))
		return 0;
	n = places(packets, place);
	for (uint32_t i = 0; i < n; i++)
		verdict[place[i]] = what;
	return (uint16_t)n;
}

// Asks one family's rules. Returns how many packets are dropped.
static CV_INLINE uint16_t apply_rules_to_family(const struct firewall *firewall, uint64_t *hits,
	const struct cv_firewall_family *family, uint64_t packets, bool later, const void *tuple,
	uint32_t tuple_bytes, const struct cv_firewall_transposed *transposed, uint16_t n,
	uint8_t *verdict)
{
	struct cv_firewall_scanned scanned;

	if (family->trie != NULL) {
		uint8_t place[CV_BURST_MAX];
		uint32_t result[CV_BURST_MAX];
		uint32_t count = places(packets, place);

		cv_firewall_trie_lookup(family->trie, tuple, tuple_bytes, place, result, count);
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
	uint64_t *hits = firewall->hits[worker->index];
	struct cv_firewall_read read;
	uint16_t dropped = cv_firewall_read_all(
		&firewall->table, firewall->non_ip_verdict, view, n, &read, verdict);

	if (CV_LIKELY(read.ipv4.packets != 0))
		dropped += apply_rules_to_family(firewall, hits, &firewall->table.ipv4,
			read.ipv4.packets, read.ipv4.later, read.ipv4.tuple,
			sizeof(read.ipv4.tuple[0]), &read.ipv4.transposed, n, verdict);
	if (read.ipv6.packets != 0)
		dropped += apply_rules_to_family(firewall, hits, &firewall->table.ipv6,
			read.ipv6.packets, read.ipv6.later, read.ipv6.tuple,
			sizeof(read.ipv6.tuple[0]), &read.ipv6.transposed, n, verdict);
	return dropped;
}

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

// The rules' verdict of a flow, by its tuple: one packet of a burst of one.
static uint8_t match_flow(
	const struct firewall *firewall, uint64_t *hits, const struct cv_flow_tuple *tuple)
{
	const bool ports = cv_proto_has_ports(tuple->proto);
	const uint8_t class = cv_firewall_class(
		&firewall->table, tuple->proto, ports ? CV_TUPLE_PORTS : CV_TUPLE_NO_PORTS);
	struct cv_firewall_transposed transposed;
	uint8_t verdict = CV_NEXT;

	if (tuple->family == 4) {
		struct cv_tuple_ipv4 eight[8] = {{.proto = class,
			.src = tuple->src.ipv4,
			.dst = tuple->dst.ipv4,
			.sport = ports ? tuple->sport : 0,
			.dport = ports ? tuple->dport : 0}};

		cv_firewall_transpose_tuples_x8(eight, CV_FIREWALL_IPV4_WORDS, &transposed, 0);
		apply_rules_to_family(firewall, hits, &firewall->table.ipv4, 1, false, eight,
			sizeof(eight[0]), &transposed, 1, &verdict);
	} else {
		struct cv_tuple_ipv6 eight[8] = {{.proto = class,
			.sport = ports ? tuple->sport : 0,
			.dport = ports ? tuple->dport : 0}};

		memcpy(eight[0].src, tuple->src.ipv6, 16);
		memcpy(eight[0].dst, tuple->dst.ipv6, 16);
		cv_firewall_transpose_tuples_x8(eight, CV_FIREWALL_IPV6_WORDS, &transposed, 0);
		apply_rules_to_family(firewall, hits, &firewall->table.ipv6, 1, false, eight,
			sizeof(eight[0]), &transposed, 1, &verdict);
	}
	return verdict;
}

static uint8_t firewall_decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	const struct firewall *firewall = instance;
	const uint8_t flags = packet->tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK);

	if (packet->why == CV_FLOW_REPEAT)
		return CV_NEXT;
	if (packet->why == CV_FLOW_NEW && actions->tuple.proto == IPPROTO_TCP &&
		(firewall->tcp_loose ? flags & TCP_RST : flags != TCP_SYN)) {
		actions->once = true;
		return CV_DROP(CV_FIREWALL_INVALID);
	}
	return match_flow(firewall, firewall->hits[worker->index], &actions->tuple);
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

static const struct cv_nf_flow firewall_flow = {
	.is_stateful = firewall_is_stateful,
	.decide = firewall_decide,
	.other = firewall_other,
};

enum action { DENY, ALLOW };
enum non_ip { PASS, DROP };

struct config {
	enum action action, file_action;
	enum non_ip non_ip;
	bool stateful, tcp_loose;
	const json_t *rules;
	const char *rules_file;
};

static const char *const actions[] = {"deny", "allow", NULL};
static const char *const non_ip_actions[] = {"pass", "drop", NULL};

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

	for (unsigned i = 0; i < firewall->workers; i++)
		rte_free(firewall->hits[i]);
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
	for (; firewall->workers < env->workers; firewall->workers++) {
		uint64_t *hits = rte_zmalloc_socket("firewall hits",
			(firewall->rules.count + 1) * sizeof(*hits), RTE_CACHE_LINE_SIZE,
			env->socket);

		if (hits == NULL) {
			cv_error_set(error,
				"%s: no memory for the rules' counters; raise memory.mb (a plan's "
				"eal.memory_mb)",
				env->name);
			goto fail;
		}
		firewall->hits[firewall->workers] = hits;
	}
	return firewall;
fail:
	firewall_destroy(firewall);
	return NULL;
}

// Packets that the rule (index + 1; 0: none) decided, all workers together.
static uint64_t hits_sum(const struct firewall *firewall, size_t rule)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < firewall->workers; i++)
		sum += __atomic_load_n(&firewall->hits[i][rule], __ATOMIC_RELAXED);
	return sum;
}

static json_t *rule_info(const struct cv_firewall_rule *rule, size_t index, uint64_t packets)
{
	json_t *info = json_pack("{s:I, s:s, s:I}", "index", (json_int_t)index, "action",
		rule->allow ? "allow" : "deny", "packets", (json_int_t)packets);

	if (info != NULL && rule->name != NULL)
		json_object_set_new(info, "name", json_string(rule->name));
	return info;
}

// Rules in order; of more than HITS_LISTED_MAX those with most packets.
static json_t *rules_info(const struct firewall *firewall)
{
	struct {
		size_t index;
		uint64_t packets;
	} top[HITS_LISTED_MAX];
	size_t listed = 0;
	json_t *array = json_array();

	for (size_t i = 0; i < firewall->rules.count; i++) {
		uint64_t packets = hits_sum(firewall, i + 1);
		size_t least = 0;

		if (listed < HITS_LISTED_MAX) {
			top[listed].index = i;
			top[listed++].packets = packets;
			continue;
		}
		for (size_t j = 1; j < listed; j++)
			if (top[j].packets < top[least].packets)
				least = j;
		if (packets <= top[least].packets)
			continue;
		memmove(&top[least], &top[least + 1], (listed - least - 1) * sizeof(top[0]));
		top[listed - 1].index = i;
		top[listed - 1].packets = packets;
	}
	for (size_t j = 0; j < listed; j++)
		json_array_append_new(array, rule_info(&firewall->rules.rule[top[j].index],
						     top[j].index, top[j].packets));
	return array;
}

static json_t *firewall_info(const void *instance)
{
	const struct firewall *firewall = instance;

	return json_pack("{s:I, s:I, s:o, s:I}", "rules_count", (json_int_t)firewall->rules.count,
		"tcp_flags_ignored", (json_int_t)firewall->rules.flags_ignored, "rules",
		rules_info(firewall), "default_packets", (json_int_t)hits_sum(firewall, 0));
}

const struct cv_nf cv_nf_firewall = {
	.name = "firewall",
	.summary = "Allows or denies packets by ordered 5-tuple rules; the first match decides.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = firewall_create,
	.destroy = firewall_destroy,
	.process = firewall_process,
	.flow = &firewall_flow,
	.info = firewall_info,
};
