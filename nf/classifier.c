// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// classifier: the first rule that matches a packet says what it is marked with and where it goes.
//
//   {"rules": [
//      {"match": {"proto": "udp",        as a firewall rule's: src, dst, proto, sport, dport, name
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

#include <rte_malloc.h>

#include "chain/nf.h"
#include "nf/firewall/table.h"
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
	struct cv_firewall_table table;
	struct cv_firewall_rules rules; // for info()
	struct action *actions; // by rule + 1; 0: none matched
	unsigned workers;
	uint64_t *hits[CV_WORKERS_MAX]; // packets likewise; written by the worker
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
	uint64_t *hits = classifier->hits[worker->index];
	uint32_t rule[CV_BURST_MAX];
	uint16_t others = 0;

	cv_firewall_table_find(&classifier->table, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		uint64_t *hit = &hits[rule[i]];

		__atomic_store_n(hit, *hit + 1, __ATOMIC_RELAXED); // with the load in hits_of()
		verdict[i] = apply(worker, &view[i], &classifier->actions[rule[i]]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
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
		return cv_where_error(at,
			"%s: no output is called \"%.64s\"; add it to the function's outputs", key,
			name);
	*verdict = CV_OUTPUT(output);
	return 0;
}

// Reads the rules' actions, and their matches as firewall rules, which are appended to matches.
static int read_rules(struct classifier *classifier, const json_t *rules, json_t *matches,
	const struct cv_where *top, const struct cv_nf_env *env)
{
	const json_t *value;
	size_t i;

	json_array_foreach (rules, i, value) {
		const struct cv_where at = cv_where_item(top, "rules", i);
		struct action *action = &classifier->actions[i + 1];
		struct rule_config rule;
		json_t *match;

		if (cv_params_read(&at, value, rule_params, &rule) != 0 ||
			find_output(&at, "output", rule.output, env, &action->verdict) != 0)
			return -EINVAL;
		action->dscp = rule.dscp;
		action->vlan = rule.vlan;
		match = json_copy((json_t *)(uintptr_t)rule.match);
		json_object_set_new(match, "action", json_string("allow"));
		if (json_array_append_new(matches, match) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int configure(struct classifier *classifier, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	const size_t count = json_array_size(config->rules);
	json_t *matches = json_array();
	int rc;

	classifier->actions = calloc(count + 1, sizeof(*classifier->actions));
	if (classifier->actions == NULL || matches == NULL) {
		json_decref(matches);
		return -ENOMEM;
	}
	classifier->actions[0] = (struct action){.dscp = -1, .vlan = -1};
	rc = find_output(&top, "rest", config->rest, env, &classifier->actions[0].verdict);
	if (rc == 0)
		rc = read_rules(classifier, config->rules, matches, &top, env);
	if (rc == 0)
		rc = cv_firewall_rules_add(&classifier->rules, matches, env->name, error);
	json_decref(matches);
	if (rc == 0)
		rc = cv_firewall_table_build(&classifier->table, &classifier->rules,
			CV_FIREWALL_FIND, env->name, env->socket, error);
	return rc;
}

static void destroy(void *instance)
{
	struct classifier *classifier = instance;

	for (unsigned i = 0; i < classifier->workers; i++)
		rte_free(classifier->hits[i]);
	cv_firewall_table_free(&classifier->table);
	cv_firewall_rules_clear(&classifier->rules);
	free(classifier->actions);
	free(classifier);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct classifier *classifier = calloc(1, sizeof(*classifier));

	if (classifier == NULL)
		return NULL;
	if (configure(classifier, config, env, error) != 0) {
		destroy(classifier);
		return NULL;
	}
	for (; classifier->workers < env->workers; classifier->workers++) {
		uint64_t *hits = rte_calloc_socket("classifier", classifier->rules.count + 1,
			sizeof(*hits), RTE_CACHE_LINE_SIZE, env->socket);

		if (hits == NULL) {
			destroy(classifier);
			return NULL;
		}
		classifier->hits[classifier->workers] = hits;
	}
	return classifier;
}

static uint64_t hits_of(const struct classifier *classifier, size_t rule)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < classifier->workers; i++)
		sum += __atomic_load_n(&classifier->hits[i][rule], __ATOMIC_RELAXED);
	return sum;
}

static json_t *info(const void *instance)
{
	const struct classifier *classifier = instance;
	json_t *rules = json_array();

	for (size_t i = 0; i < classifier->rules.count; i++) {
		json_t *rule = json_pack("{s:I, s:I}", "index", (json_int_t)i, "packets",
			(json_int_t)hits_of(classifier, i + 1));

		if (classifier->rules.rule[i].name != NULL)
			json_object_set_new(
				rule, "name", json_string(classifier->rules.rule[i].name));
		json_array_append_new(rules, rule);
	}
	return json_pack(
		"{s:o, s:I}", "rules", rules, "rest_packets", (json_int_t)hits_of(classifier, 0));
}

const struct cv_nf cv_nf_classifier = {
	.name = "classifier",
	.summary = "Marks packets (DSCP, VLAN) and sends them to other chains, by ordered 5-tuple "
		   "rules.",
	.drops = drops,
	.branches = true,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.destroy = destroy,
	.process = process,
	.info = info,
};
