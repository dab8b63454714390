// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_common.h>
#include <rte_errno.h>

#include "nf/firewall/trie.h"
#include "packet/compiler.h"

// The class, the address words, the two ports.
#define FIELDS(words) ((words) + 1)
#define FIELDS_MAX (FIELDS(CV_FIREWALL_IPV6_WORDS) + CV_FIREWALL_FIELDS)
#define KEY_MAX (sizeof(struct cv_tuple_ipv6) + sizeof(struct cv_firewall_fields))

_Static_assert(FIELDS_MAX <= RTE_ACL_MAX_FIELDS, "rte_acl takes so many");

RTE_ACL_RULE_DEF(trie_rule, FIELDS_MAX);

// How tuples of words words, and fields behind them, look to rte_acl: one input for each word.
static void config_set(struct rte_acl_config *config, unsigned words, bool with_fields)
{
	unsigned last = words - 1;

	*config = (struct rte_acl_config){.num_categories = 1, .num_fields = FIELDS(words)};
	for (unsigned i = 0; i < FIELDS(words); i++) {
		unsigned word = RTE_MIN(i, last);

		config->defs[i] = (struct rte_acl_field_def){
			.type = i == 0     ? RTE_ACL_FIELD_TYPE_BITMASK
				: i < last ? RTE_ACL_FIELD_TYPE_MASK
					   : RTE_ACL_FIELD_TYPE_RANGE,
			.size = i == 0     ? 1
				: i < last ? 4
					   : 2,
			.field_index = (uint8_t)i,
			.input_index = (uint8_t)word,
			.offset = 4 * word + (i > last ? 2 : 0),
		};
	}
	for (unsigned i = 0; with_fields && i < CV_FIREWALL_FIELDS; i++)
		config->defs[config->num_fields++] = (struct rte_acl_field_def){
			.type = i == CV_FIREWALL_FIELD_LENGTH ? RTE_ACL_FIELD_TYPE_RANGE
							      : RTE_ACL_FIELD_TYPE_BITMASK,
			.size = 2,
			.field_index = (uint8_t)(FIELDS(words) + i),
			.input_index = (uint8_t)(words + i / 2),
			.offset = 4 * words + 2 * i,
		};
}

static void rule_set(struct trie_rule *rule, const struct cv_firewall_entry *entry, unsigned words,
	uint32_t index)
{
	unsigned last = words - 1;

	*rule = (struct trie_rule){.data = {.category_mask = 1,
					   .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - index),
					   .userdata = entry->result}};
	memcpy(&rule->field[0].value.u8, &entry->value[0], 1); // the class is the word's first byte
	memcpy(&rule->field[0].mask_range.u8, &entry->mask[0], 1);
	for (unsigned i = 1; i < last; i++) {
		rule->field[i].value.u32 = rte_be_to_cpu_32(entry->value[i]);
		rule->field[i].mask_range.u32 = (uint32_t)__builtin_popcount(entry->mask[i]);
	}
	rule->field[last].value.u16 = entry->sport.first;
	rule->field[last].mask_range.u16 = entry->sport.last;
	rule->field[last + 1].value.u16 = entry->dport.first;
	rule->field[last + 1].mask_range.u16 = entry->dport.last;
	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++) {
		rule->field[last + 2 + i].value.u16 = entry->field[i].value;
		rule->field[last + 2 + i].mask_range.u16 = entry->field[i].mask;
	}
	rule->field[last + 2 + CV_FIREWALL_FIELD_LENGTH].value.u16 = entry->length.first;
	rule->field[last + 2 + CV_FIREWALL_FIELD_LENGTH].mask_range.u16 = entry->length.last;
}

struct rte_acl_ctx *cv_firewall_trie_build(const struct cv_firewall_entry *entry, uint32_t count,
	bool ipv4, bool with_fields, int socket)
{
	static atomic_uint serial; // rte_acl finds tries by name: each has one of its own
	unsigned words = ipv4 ? CV_FIREWALL_IPV4_WORDS : CV_FIREWALL_IPV6_WORDS;
	char name[RTE_ACL_NAMESIZE];
	struct rte_acl_param param = {
		.name = name,
		.socket_id = socket,
		.rule_size =
			RTE_ACL_RULE_SZ(FIELDS(words) + (with_fields ? CV_FIREWALL_FIELDS : 0)),
		.max_rule_num = count,
	};
	struct rte_acl_config config;
	struct rte_acl_ctx *trie;
	int rc = 0;

	snprintf(name, sizeof(name), "firewall-%u", atomic_fetch_add(&serial, 1));
	trie = rte_acl_create(&param);
	if (trie == NULL)
		return NULL;
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		struct trie_rule rule;

		rule_set(&rule, &entry[i], words, i);
		rc = rte_acl_add_rules(trie, (const struct rte_acl_rule *)&rule, 1);
	}
	if (rc == 0) {
		config_set(&config, words, with_fields);
		rc = rte_acl_build(trie, &config);
	}
	if (rc != 0) {
		rte_acl_free(trie);
		rte_errno = -rc;
		return NULL;
	}
	return trie;
}

void cv_firewall_trie_free(struct rte_acl_ctx *trie)
{
	rte_acl_free(trie);
}

// A tuple and its fields one behind the other, in network order.
static void key_set(
	uint8_t *key, const void *tuple, uint32_t bytes, const struct cv_firewall_fields *fields)
{
	rte_be16_t word[CV_FIREWALL_FIELDS];

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		word[i] = rte_cpu_to_be_16(fields->word[i]);
	memcpy(key, tuple, bytes);
	memcpy(key + bytes, word, sizeof(word));
}

void cv_firewall_trie_lookup(const struct rte_acl_ctx *trie, const void *tuple, uint32_t bytes,
	const struct cv_firewall_fields *fields, const uint8_t *place, uint32_t *result, uint32_t n)
{
	uint8_t whole[CV_FIREWALL_LOOKUP_MAX][KEY_MAX];
	const uint8_t *key[CV_FIREWALL_LOOKUP_MAX];

	for (uint32_t i = 0; i < n; i++) {
		key[i] = (const uint8_t *)tuple + place[i] * bytes;
		if (fields != NULL) {
			key_set(whole[i], key[i], bytes, &fields[place[i]]);
			key[i] = whole[i];
		}
	}
	// It fails only on bad arguments; then nothing matches.
	if (CV_UNLIKELY(rte_acl_classify(trie, key, result, n, 1) != 0))
		memset(result, 0, n * sizeof(*result));
}
