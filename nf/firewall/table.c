// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "nf/firewall/table.h"
#include "nf/firewall/trie.h"

// Classes of the protocols that have ports: 2 i for their packets, 2 i + 1 for their non-first
// fragments, so that a mask selects one, both, or those of all of them.
#define CLASS_PORTS_MASK 0xf0 // class & this == 0: some protocol with ports
#define CLASS_LATER 1
#define CLASS_OTHER 16 // protocols without ports that no rule names; those named follow

static const uint8_t ports_proto[] = {
	[CV_FIREWALL_CLASS_TCP / 2] = 6, [CV_FIREWALL_CLASS_UDP / 2] = 17, 33, 132, 136};

#define PORTS_PROTOS (sizeof(ports_proto) / sizeof(ports_proto[0]))

// Gives every protocol its classes. Returns 0, or -EINVAL with error set.
static int classes_set(struct cv_firewall_table *table, const struct cv_firewall_rules *rules,
	const char *name, struct cv_error *error)
{
	bool named[256] = {false};
	unsigned next = CLASS_OTHER + 1;

	for (size_t i = 0; i < rules->count; i++)
		if (rules->rule[i].proto >= 0)
			named[rules->rule[i].proto] = true;
	for (unsigned proto = 0; proto < 256; proto++) {
		unsigned class = CLASS_OTHER;

		if (named[proto] && !cv_proto_has_ports((uint8_t)proto))
			class = next++;
		if (class > UINT8_MAX) {
			cv_error_set(error,
				"%s: rules name more than %d protocols without ports; leave out "
				"proto "
				"in some",
				name, UINT8_MAX - CLASS_OTHER);
			return -EINVAL;
		}
		table->classes[0][proto] = table->classes[1][proto] = (uint8_t) class;
	}
	for (unsigned i = 0; i < PORTS_PROTOS; i++) {
		table->classes[0][ports_proto[i]] = (uint8_t)(2 * i);
		table->classes[1][ports_proto[i]] = (uint8_t)(2 * i + CLASS_LATER);
	}
	return 0;
}

// The words that a prefix asks for, from word on.
static void prefix_set(struct cv_firewall_entry *entry, unsigned word, unsigned bytes,
	const struct cv_prefix *prefix)
{
	struct cv_prefix mask = {.length = prefix->length};

	memset(mask.address.bytes, 0xff, sizeof(mask.address.bytes));
	cv_prefix_mask(&mask);
	memcpy(&entry->value[word], prefix->address.bytes, bytes);
	memcpy(&entry->mask[word], mask.address.bytes, bytes);
}

// What rule asks of a tuple's class. later: of a non-first fragment's, the rule having ports.
static void class_test(const struct cv_firewall_table *table, const struct cv_firewall_rule *rule,
	bool later, uint8_t *value, uint8_t *mask)
{
	bool has_ports = cv_firewall_rule_has_ports(rule);

	*value = *mask = 0;
	if (rule->proto >= 0) {
		*value = table->classes[later][rule->proto];
		*mask = *value < CLASS_OTHER && !has_ports ? (uint8_t)~CLASS_LATER : 0xff;
	} else if (has_ports) {
		*value = later;
		*mask = CLASS_PORTS_MASK | CLASS_LATER;
	}
}

// The ports, in the word that holds both: one is asked here if it is the only one wanted.
static void ports_set(
	struct cv_firewall_entry *entry, unsigned word, const struct cv_firewall_rule *rule)
{
	const struct cv_firewall_ports *ports[] = {&rule->sport, &rule->dport};
	rte_be16_t value[2] = {0}, mask[2] = {0};

	for (unsigned i = 0; i < 2; i++) {
		if (ports[i]->first == ports[i]->last) {
			value[i] = rte_cpu_to_be_16(ports[i]->first);
			mask[i] = UINT16_MAX;
		} else if (ports[i]->first != 0 || ports[i]->last != UINT16_MAX) {
			entry->ranged = true;
		}
	}
	memcpy(&entry->value[word], value, sizeof(value));
	memcpy(&entry->mask[word], mask, sizeof(mask));
	entry->sport = rule->sport;
	entry->dport = rule->dport;
}

// Rule number index as an entry of one family; later: as it applies to non-first fragments, which
// have no ports.
static void entry_set(struct cv_firewall_entry *entry, bool ipv4,
	const struct cv_firewall_table *table, const struct cv_firewall_rule *rule, size_t index,
	bool later)
{
	static const struct cv_firewall_rule any = {
		.sport = {0, UINT16_MAX}, .dport = {0, UINT16_MAX}};
	unsigned bytes = ipv4 ? 4 : 16;
	uint8_t class, class_mask;

	*entry = (struct cv_firewall_entry){.result = (uint32_t)(index + 1) << 1 | !rule->allow};
	class_test(table, rule, later, &class, &class_mask);
	memcpy(&entry->value[0], &class, 1);
	memcpy(&entry->mask[0], &class_mask, 1);
	prefix_set(entry, 1, bytes, &rule->src);
	prefix_set(entry, 1 + bytes / 4, bytes, &rule->dst);
	ports_set(entry, 1 + bytes / 2, later ? &any : rule);
}

// The rules of one family as entries; later: with what is about non-first fragments only. Returns
// their number.
static uint32_t entries_set(struct cv_firewall_entry *entry, bool ipv4,
	const struct cv_firewall_table *table, const struct cv_firewall_rules *rules, bool later)
{
	unsigned other = ipv4 ? 6 : 4;
	uint32_t count = 0;

	for (size_t i = 0; i < rules->count; i++) {
		const struct cv_firewall_rule *rule = &rules->rule[i];

		if (rule->family == other)
			continue;
		entry_set(&entry[count++], ipv4, table, rule, i, false);
		if (later && !rule->allow && cv_firewall_rule_has_ports(rule))
			entry_set(&entry[count++], ipv4, table, rule, i, true);
	}
	return count;
}

static void family_free(struct cv_firewall_family *family)
{
	cv_firewall_trie_free(family->trie);
	cv_firewall_scan_free(family->scan[false]);
	cv_firewall_scan_free(family->scan[true]);
	*family = (struct cv_firewall_family){0};
}

// Makes the scans, or if that is too much for them a trie. entry has room for what entries_set()
// writes. Returns 0 or -errno, then perhaps with something to free.
static int lookup_make(struct cv_firewall_family *family, struct cv_firewall_entry *entry,
	const struct cv_firewall_table *table, const struct cv_firewall_rules *rules,
	enum cv_firewall_use use, bool ipv4, int socket)
{
	unsigned words = ipv4 ? CV_FIREWALL_IPV4_WORDS : CV_FIREWALL_IPV6_WORDS;
	uint32_t count = entries_set(entry, ipv4, table, rules, false);
	int rc = use == CV_FIREWALL_PASS && count <= CV_FIREWALL_SCAN_MAX ? 0 : -E2BIG;

	if (use == CV_FIREWALL_FIND && count == 0)
		return 0;

	if (rc == 0)
		rc = cv_firewall_scan_make(&family->scan[false], entry, count, words);
	count = entries_set(entry, ipv4, table, rules, true);
	if (rc == 0)
		rc = cv_firewall_scan_make(&family->scan[true], entry, count, words);
	if (rc != -E2BIG)
		return rc;
	family_free(family);
	family->trie = cv_firewall_trie_build(entry, count, ipv4, socket);
	return family->trie != NULL ? 0 : -rte_errno;
}

// Returns 0 or -errno, then perhaps with something to free.
static int family_build(struct cv_firewall_family *family, const struct cv_firewall_table *table,
	const struct cv_firewall_rules *rules, enum cv_firewall_use use, bool ipv4, int socket)
{
	struct cv_firewall_entry *entry = calloc(2 * rules->count + 1, sizeof(*entry));
	int rc = -ENOMEM;

	if (entry != NULL)
		rc = lookup_make(family, entry, table, rules, use, ipv4, socket);
	free(entry);
	return rc;
}

int cv_firewall_table_build(struct cv_firewall_table *table, const struct cv_firewall_rules *rules,
	enum cv_firewall_use use, const char *name, int socket, struct cv_error *error)
{
	int rc;

	*table = (struct cv_firewall_table){.run = cv_firewall_scan_run_best()};
	rc = classes_set(table, rules, name, error);
	if (rc != 0)
		return rc;
	rc = family_build(&table->ipv4, table, rules, use, true, socket);
	if (rc == 0)
		rc = family_build(&table->ipv6, table, rules, use, false, socket);
	if (rc != 0) {
		cv_error_set(error, "%s: no table of %zu rules: %s%s", name, rules->count,
			strerror(-rc),
			rc == -ENOMEM ? "; raise memory.mb (a plan's eal.memory_mb)" : "");
		cv_firewall_table_free(table);
	}
	return rc;
}

void cv_firewall_table_free(struct cv_firewall_table *table)
{
	family_free(&table->ipv4);
	family_free(&table->ipv6);
}

// Writes the rules of the tuples at count places to the packets there.
static void find_of(const struct rte_acl_ctx *trie, const void *tuple, uint32_t bytes,
	const uint8_t *place, uint32_t count, uint32_t *rule)
{
	uint32_t result[CV_FIREWALL_LOOKUP_MAX];

	if (count == 0)
		return;
	cv_firewall_trie_lookup(trie, tuple, bytes, place, result, count);
	for (uint32_t i = 0; i < count; i++)
		rule[place[i]] = CV_FIREWALL_RULE(result[i]);
}

void cv_firewall_table_find(const struct cv_firewall_table *table, const struct cv_view *view,
	uint32_t *rule, uint16_t n)
{
	struct cv_tuple_ipv4 ipv4[CV_FIREWALL_LOOKUP_MAX];
	struct cv_tuple_ipv6 ipv6[CV_FIREWALL_LOOKUP_MAX];
	uint8_t ipv4_place[CV_FIREWALL_LOOKUP_MAX], ipv6_place[CV_FIREWALL_LOOKUP_MAX];
	uint32_t ipv4_count = 0, ipv6_count = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *ip = view[i].data + view[i].l3;
		const uint32_t len = view[i].len - view[i].l3;
		enum cv_tuple_kind kind;

		rule[i] = 0;
		if (view[i].proto == CV_PROTO_IPV4 && table->ipv4.trie != NULL) {
			kind = cv_tuple_ipv4(ip, len, &ipv4[i]);
			if (kind > CV_TUPLE_NON_FIRST)
				continue;
			ipv4[i].proto = cv_firewall_class(table, ipv4[i].proto, kind);
			ipv4_place[ipv4_count++] = (uint8_t)i;
		} else if (view[i].proto == CV_PROTO_IPV6 && table->ipv6.trie != NULL) {
			kind = cv_tuple_ipv6(ip, len, &ipv6[i]);
			if (kind > CV_TUPLE_NON_FIRST)
				continue;
			ipv6[i].proto = cv_firewall_class(table, ipv6[i].proto, kind);
			ipv6_place[ipv6_count++] = (uint8_t)i;
		}
	}
	find_of(table->ipv4.trie, ipv4, sizeof(ipv4[0]), ipv4_place, ipv4_count, rule);
	find_of(table->ipv6.trie, ipv6, sizeof(ipv6[0]), ipv6_place, ipv6_count, rule);
}
