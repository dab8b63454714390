// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// classifier: the first rule that matches a packet says what it is marked with and where it goes.
//
//   {"rules": [
//      {"match": {"proto": "udp",        as a firewall rule's, without action
//                 "dport": "5060-5090"},
//       "dscp": 46,                      0 to 63: of IPv4 and IPv6 packets
//       "vlan": 10,                      the outermost tag's id, 0 to 4095; a packet without a tag
//                                        gets one
//       "output": "voice"}],             the chain at this output; absent: the next function
//    "rest": "bulk"}                     output of what no rule matches; absent: the next function
//
// What is not IP, and what has no sound IP header, matches no rule. Fragments: a non-first one has
// no ports, and a rule with ports does not match it. Length, TTL and the layers behind IP stay as
// they are; IPv4's checksum is updated.
//
// Drops: no_room (for a tag: the packet would be too long, or there is no buffer).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/config.h"
#include "nf/firewall/choice.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

enum drop { NO_ROOM };
static const char *const drops[] = {"no_room", NULL};

// What happens to the packets of a rule; -1: nothing.
struct action {
	int dscp, vlan;
	uint8_t verdict;
};

struct classifier {
	struct cv_choice choice;
	struct action *actions; // by rule + 1; 0: none matched
};

// Writes the DSCP; the ECN bits beside it stay.
static void set_dscp(const struct cv_view *view, unsigned dscp)
{
	uint8_t *at = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	if (view->proto == CV_PROTO_IPV4 && room >= CV_IPV4_LEN) {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)at;
		rte_be16_t old = cv_load_be16(at);

		ip->tos = (uint8_t)(dscp << 2 | (ip->tos & 3));
		ip->checksum = cv_checksum_update(ip->checksum, old, cv_load_be16(at));
	} else if (view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN) {
		at[0] = (uint8_t)(0x60 | dscp >> 2);
		at[1] = (uint8_t)(dscp << 6 | (at[1] & 0x3f));
	}
}

// Writes the outermost tag's id; its priority stays. False: there was no room for a tag.
static bool set_vlan(struct cv_nf_worker *worker, struct cv_view *view, unsigned vlan)
{
	if (cv_view_vlan(view) < 0) {
		uint8_t *data = cv_nf_prepend(worker, view, CV_VLAN_LEN);

		if (data == NULL)
			return false;
		memmove(data, data + CV_VLAN_LEN, 12);
		memcpy(data + 12, (uint8_t[]){0x81, 0, 0, 0}, CV_VLAN_LEN);
		cv_view_parse(view);
	}
	view->data[14] = (uint8_t)((view->data[14] & 0xf0) | vlan >> 8);
	view->data[15] = (uint8_t)vlan;
	return true;
}

static uint8_t apply(struct cv_nf_worker *worker, struct cv_view *view, const struct action *action)
{
	if (action->dscp >= 0)
		set_dscp(view, (unsigned)action->dscp);
	if (action->vlan >= 0 && !set_vlan(worker, view, (unsigned)action->vlan))
		return CV_DROP(NO_ROOM);
	return action->verdict;
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	const struct classifier *classifier = instance;
	uint32_t rule[CV_BURST_MAX];
	uint16_t others = 0;

	cv_choice_find(&classifier->choice, worker, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = apply(worker, &view[i], &classifier->actions[rule[i]]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

static bool grows(const void *instance, unsigned in)
{
	const struct classifier *classifier = instance;

	(void)in;
	for (size_t i = 0; i <= classifier->choice.rules.count; i++)
		if (classifier->actions[i].vlan >= 0)
			return true;
	return false;
}

static void explain(const void *instance, const struct cv_nf_worker *worker,
	const struct cv_view *view, struct cv_nf_because *because)
{
	const struct classifier *classifier = instance;
	uint32_t rule;

	cv_firewall_table_find(&classifier->choice.table, view, &rule, 1);
	because->row = 1 + rule;
}

static void in_words(const void *instance, const struct cv_nf_env *env,
	const struct cv_nf_because *because, char *words, size_t room)
{
	const struct classifier *classifier = instance;

	cv_firewall_rules_in_words(&classifier->choice.rules, because, words, room);
}

struct config {
	const json_t *rules;
	const char *rest;
};

static const struct cv_param params[] = {
	{"rules", CV_LIST, CV_AT(struct config, rules), .doc = "rules in order"},
	{"rest", CV_TEXT, CV_AT(struct config, rest),
		.doc = "output of what no rule matches; default: the next function"},
	{0},
};

struct rule_config {
	const json_t *match;
	int dscp, vlan;
	const char *output;
};

static const struct cv_param rule_params[] = {
	{"match", CV_MAP, CV_AT(struct rule_config, match), .required = true},
	{"dscp", CV_INTEGER, CV_AT(struct rule_config, dscp), .high = 63, .fallback = -1},
	{"vlan", CV_INTEGER, CV_AT(struct rule_config, vlan), .high = 4095, .fallback = -1},
	{"output", CV_TEXT, CV_AT(struct rule_config, output)},
	{0},
};

// The verdict that a named output is; NULL: CV_NEXT. 0, or -EINVAL with at's error set.
static int find_output(const struct cv_where *at, const char *key, const char *name,
	const struct cv_nf_env *env, uint8_t *verdict)
{
	int output;

	*verdict = CV_NEXT;
	if (name == NULL)
		return 0;
	output = cv_nf_env_output(env, name);
	if (output < 0)
		return cv_config_no_output_at(at, key, name);
	*verdict = CV_OUTPUT(output);
	return 0;
}

static int read_actions(struct classifier *classifier, const json_t *rules,
	const struct cv_where *top, const struct cv_nf_env *env)
{
	const json_t *value;
	size_t i;

	json_array_foreach (rules, i, value) {
		const struct cv_where at = cv_where_item(top, "rules", i);
		struct action *action = &classifier->actions[i + 1];
		struct rule_config rule;

		if (cv_params_read(&at, value, rule_params, &rule) != 0 ||
			find_output(&at, "output", rule.output, env, &action->verdict) != 0)
			return -EINVAL;
		action->dscp = rule.dscp;
		action->vlan = rule.vlan;
	}
	return 0;
}

static int configure(struct classifier *classifier, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	const size_t count = json_array_size(config->rules);
	int rc;

	classifier->actions = calloc(count + 1, sizeof(*classifier->actions));
	if (classifier->actions == NULL)
		return -ENOMEM;
	classifier->actions[0] = (struct action){.dscp = -1, .vlan = -1};
	rc = find_output(&top, "rest", config->rest, env, &classifier->actions[0].verdict);
	if (rc == 0)
		rc = read_actions(classifier, config->rules, &top, env);
	if (rc == 0)
		rc = cv_choice_make(&classifier->choice, config->rules, count, env, error);
	return rc;
}

static void destroy(void *instance)
{
	struct classifier *classifier = instance;

	cv_choice_free(&classifier->choice);
	free(classifier->actions);
	free(classifier);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct classifier *classifier = calloc(1, sizeof(*classifier));

	if (classifier != NULL && configure(classifier, config, env, error) != 0) {
		destroy(classifier);
		return NULL;
	}
	return classifier;
}

// Counters of matches that are in both go on, whatever is done with their packets.
static void inherit(void *instance, void *before)
{
	struct classifier *classifier = instance;

	cv_choice_inherit(&classifier->choice, &((const struct classifier *)before)->choice);
}

static json_t *info(const void *instance)
{
	const struct classifier *classifier = instance;

	return cv_choice_info(&classifier->choice);
}

const struct cv_nf cv_nf_classifier = {
	.name = "classifier",
	.summary = "Marks packets (DSCP, VLAN) and sends them to other chains, by ordered rules.",
	.drops = drops,
	.branches = true,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.destroy = destroy,
	.inherit = inherit,
	.process = process,
	.grows = grows,
	.explain = explain,
	.in_words = in_words,
	.info = info,
};
