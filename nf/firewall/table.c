// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "nf/firewall/read.h"
#include "nf/firewall/table.h"
#include "nf/firewall/tree.h"
#include "nf/firewall/trie.h"

#define TREES_MIN 10000 // entries; fewer that take several trees are found faster in a trie

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
		*value &= *mask;
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

// What rule asks beside the tuple; later: of a non-first fragment, of what is in layer 4.
static void fields_set(
	struct cv_firewall_entry *entry, const struct cv_firewall_rule *rule, bool later)
{
	static const struct cv_firewall_bits fragment[] = {
		[CV_FIREWALL_FRAGMENTS_NONE] = {0, CV_FIREWALL_IS_FRAGMENT},
		[CV_FIREWALL_FRAGMENTS_FIRST] = {CV_FIREWALL_IS_FRAGMENT,
			CV_FIREWALL_IS_FRAGMENT | CV_FIREWALL_IS_LATER},
		[CV_FIREWALL_FRAGMENTS_LATER] = {CV_FIREWALL_IS_LATER, CV_FIREWALL_IS_LATER},
		[CV_FIREWALL_FRAGMENTS_ANY] = {CV_FIREWALL_IS_FRAGMENT, CV_FIREWALL_IS_FRAGMENT},
		[CV_FIREWALL_FRAGMENTS_ALL] = {0, 0},
	};
	const struct cv_firewall_extra *extra = &rule->extra;
	struct cv_firewall_bits *ip = &entry->field[CV_FIREWALL_FIELD_IP];

	entry->length = extra->length;
	*ip = fragment[extra->fragment];
	if (extra->dscp >= 0) {
		ip->value |= (uint16_t)(extra->dscp << CV_FIREWALL_DSCP_SHIFT);
		ip->mask |= 63 << CV_FIREWALL_DSCP_SHIFT;
	}
	if (extra->l4.mask != 0) {
		ip->mask |= CV_FIREWALL_IS_LATER;
		ip->value |= later ? CV_FIREWALL_IS_LATER : 0;
		if (!later)
			entry->field[CV_FIREWALL_FIELD_L4] = extra->l4;
	}
	if (extra->vlan >= 0)
		entry->field[CV_FIREWALL_FIELD_VLAN] =
			(struct cv_firewall_bits){(uint16_t)extra->vlan, UINT16_MAX};
}

// What a rule makes the packets be read for.
static unsigned needs_of(const struct cv_firewall_rule *rule)
{
	const struct cv_firewall_extra *extra = &rule->extra;
	unsigned needs = 0;

	if (extra->length.first != 0 || extra->length.last != UINT16_MAX || extra->dscp >= 0 ||
		extra->vlan >= 0 || extra->fragment != CV_FIREWALL_FRAGMENTS_ALL)
		needs |= CV_FIREWALL_NEEDS_FIELDS;
	if (extra->l4.mask != 0)
		needs |= CV_FIREWALL_NEEDS_FIELDS |
			 (rule->proto == IPPROTO_TCP ? CV_FIREWALL_NEEDS_TCP_FLAGS
						     : CV_FIREWALL_NEEDS_ICMP);
	return needs;
}

// Whether a rule is about non-first fragments in another way than about packets: fails closed. One
// that asks for whole packets or first fragments is not about them.
static bool is_twice(const struct cv_firewall_rule *rule)
{
	return !rule->allow && cv_firewall_rule_has_l4(rule) &&
	       (rule->extra.fragment == CV_FIREWALL_FRAGMENTS_ALL ||
		       rule->extra.fragment == CV_FIREWALL_FRAGMENTS_ANY);
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
	fields_set(entry, rule, later);
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
		if (later && is_twice(rule))
			entry_set(&entry[count++], ipv4, table, rule, i, true);
	}
	return count;
}

static void family_free(struct cv_firewall_family *family)
{
	cv_firewall_tree_free(family->tree);
	cv_firewall_trie_free(family->trie);
	cv_firewall_scan_free(family->scan[false]);
	cv_firewall_scan_free(family->scan[true]);
	*family = (struct cv_firewall_family){0};
}

// Makes a tree. Returns 0, -E2BIG if a trie is better, or -ENOMEM.
static int tree_make(struct cv_firewall_family *family, const struct cv_firewall_entry *entry,
	uint32_t count, bool with_fields)
{
	int rc = cv_firewall_tree_build(&family->tree, entry, count, with_fields);

	if (rc == 0 && count < TREES_MIN && !cv_firewall_tree_is_cut_well(family->tree)) {
		cv_firewall_tree_free(family->tree);
		family->tree = NULL;
		rc = -E2BIG;
	}
	return rc;
}

// Makes the scans, or if that is too much for them a tree, or if it is for that a trie. entry has room for what entries_set()
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
	if (ipv4)
		rc = tree_make(family, entry, count, table->needs != 0);
	if (rc != -E2BIG)
		return rc;
	family->trie = cv_firewall_trie_build(entry, count, ipv4, table->needs != 0, socket);
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
	for (size_t i = 0; i < rules->count; i++)
		table->needs |= needs_of(&rules->rule[i]);
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

void cv_firewall_family_lookup(const struct cv_firewall_family *family, const void *tuple,
	uint32_t bytes, const struct cv_firewall_fields *fields, const uint8_t *place,
	uint32_t *result, uint32_t n)
{
	if (CV_LIKELY(family->tree != NULL))
		cv_firewall_tree_lookup(family->tree, tuple, fields, place, result, n);
	else
		cv_firewall_trie_lookup(family->trie, tuple, bytes, fields, place, result, n);
}

// Writes the rules of the packets of one family. No scan: it costs as much for one packet as for a burst.
static CV_INLINE void find_of(const struct cv_firewall_family *family, uint64_t packets,
	const void *tuple, uint32_t bytes, const struct cv_firewall_fields *fields, uint32_t *rule)
{
	uint8_t place[CV_FIREWALL_LOOKUP_MAX];
	uint32_t result[CV_FIREWALL_LOOKUP_MAX], count;

	if (cv_firewall_is_scanned(family)) // there are no rules
		return;
	count = cv_firewall_places(packets, place);
	cv_firewall_family_lookup(family, tuple, bytes, fields, place, result, count);
	for (uint32_t i = 0; i < count; i++)
		rule[place[i]] = CV_FIREWALL_RULE(result[i]);
}

CV_HOT void cv_firewall_table_find(const struct cv_firewall_table *table,
	const struct cv_view *view, uint32_t *rule, uint16_t n)
{
	const struct cv_firewall_fields *fields = NULL;
	struct cv_firewall_read read;
	uint8_t verdict[CV_FIREWALL_LOOKUP_MAX];

	memset(rule, 0, n * sizeof(*rule));
	cv_firewall_read_all(table, CV_DROP(CV_FIREWALL_NON_IP), view, n, &read, verdict);
	if (CV_UNLIKELY(table->needs != 0)) {
		cv_firewall_read_fields(table, view, &read, verdict);
		fields = read.fields;
	}
	if (CV_LIKELY(read.ipv4.packets != 0))
		find_of(&table->ipv4, read.ipv4.packets, read.ipv4.tuple,
			sizeof(read.ipv4.tuple[0]), fields, rule);
	if (read.ipv6.packets != 0)
		find_of(&table->ipv6, read.ipv6.packets, read.ipv6.tuple,
			sizeof(read.ipv6.tuple[0]), fields, rule);
}
