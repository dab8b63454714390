// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ids: searches payloads for the patterns of rules, by Hyperscan. Rules are written in a subset of
// Suricata's language, which docs/functions.md states.
//
//   {"rules_file": "local.rules", "variables": {"HOME_NET": "10.0.0.0/8"},
//    "unsupported": "error",                    a rule beyond the subset; "skip" leaves it out
//    "alerts_file": "eve.json"}                 or "alerts_socket"; without both, rules are counted only
//
// A packet that a drop rule matches is dropped, and told of. One that a pass rule matches passes, and
// nothing is told. Packets are not changed. What is not IP passes.
//
// With "stateful": true TCP is matched as streams (stream.h), and rules may ask for flow.
//
// Drops: rule, bad_header (lengths that do not add up), fragment (with "fragments": "drop"),
// tcp_overlap (other bytes than those that came first), reassembly_full (too much waits for a gap),
// over_budget (its bytes make rules cost more than a packet may; or with "over_budget": "pass" it passes
// by what was found until then).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "nf/ids/ids.h"

static const char *const drops[] = {
	"rule", "bad_header", "fragment", "tcp_overlap", "reassembly_full", "over_budget", NULL};
static const char *const unsupported[] = {"error", "skip", NULL};
static const char *const checksums[] = {"verify", "ignore", NULL};
static const char *const fragments[] = {"match", "drop", NULL};
static const char *const over_budget[] = {"drop", "pass", NULL};

struct config {
	const char *rules_file, *alerts_file, *alerts_socket;
	const json_t *variables;
	unsigned unsupported, fragments, checksums, over_budget;
	bool stateful;
	uint32_t streams, segments, window, budget;
	uint64_t depth;
};

static const struct cv_param params[] = {
	{"rules_file", CV_FILE, CV_AT(struct config, rules_file), .required = true,
		.doc = "rules, in the subset of Suricata's language that ids knows"},
	{"variables", CV_MAP, CV_AT(struct config, variables),
		.doc = "what $NAME means in the rules: addresses or ports"},
	{"unsupported", CV_WORD, CV_AT(struct config, unsupported), .words = unsupported,
		.doc = "a rule beyond the subset is an error, or is left out"},
	{"alerts_file", CV_TEXT, CV_AT(struct config, alerts_file),
		.doc = "file to append alerts to, as EVE JSON"},
	{"alerts_socket", CV_TEXT, CV_AT(struct config, alerts_socket),
		.doc = "unix datagram socket to send alerts to, as EVE JSON"},
	{"fragments", CV_WORD, CV_AT(struct config, fragments), .words = fragments,
		.doc = "each fragment is matched by itself, or dropped"},
	{"stateful", CV_BOOL, CV_AT(struct config, stateful),
		.doc = "remember flows: match TCP as streams"},
	{"streams", CV_INTEGER, CV_AT(struct config, streams), .low = 1, .high = 1000000,
		.fallback = 4096,
		.doc = "stateful: TCP connections of each worker that are streams"},
	{"segments", CV_INTEGER, CV_AT(struct config, segments), .low = 1, .high = 65535,
		.fallback = 1024, .doc = "stateful: segments of each worker that wait for a gap"},
	{"window", CV_INTEGER, CV_AT(struct config, window), .low = 512, .high = 16384,
		.fallback = 2048,
		.doc = "stateful: bytes of a stream in which a rule's contents are"},
	{"depth", CV_INTEGER, CV_AT(struct config, depth), .low = 0, .high = 1e15,
		.fallback = 1048576,
		.doc = "stateful: bytes of a stream's direction that are matched; 0: all"},
	{"checksums", CV_WORD, CV_AT(struct config, checksums), .words = checksums,
		.doc = "stateful: a segment with a wrong one is no part of its stream, or is"},
	{"budget", CV_INTEGER, CV_AT(struct config, budget), .low = 1, .high = 1000, .fallback = 4,
		.doc = "steps of a packet's rules for each byte of it, and of 1,024 more"},
	{"over_budget", CV_WORD, CV_AT(struct config, over_budget), .words = over_budget,
		.doc = "what becomes of a packet whose rules need more steps"},
	{0},
};

static void free_lane(struct cv_ids_lane *lane)
{
	hs_free_scratch(lane->scratch);
	free(lane->mask);
	free(lane->touched);
	free(lane->matched);
	free(lane->places);
	free(lane->thresholds);
	cv_ids_streams_free(&lane->streams);
}

static void destroy(void *instance)
{
	struct cv_ids *ids = instance;

	if (ids->log_owners != NULL) {
		cv_ids_alert_log_flush(ids->log);
		if (--*ids->log_owners == 0) {
			cv_ids_alert_log_destroy(ids->log);
			free(ids->log_owners);
		}
	}
	for (unsigned i = 0; ids->lane != NULL && i < ids->workers; i++)
		free_lane(&ids->lane[i]);
	free(ids->lane);
	for (unsigned i = 0; i < CV_IDS_PROTOS; i++)
		cv_ids_database_free(&ids->packets[i]);
	cv_ids_database_free(&ids->streams);
	cv_row_counters_free(&ids->hits);
	cv_ids_rules_free(&ids->rules);
	free(ids);
}

// Rules that ask for flows, where there are none.
static int skip_flows(struct cv_ids_rules *rules)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < rules->count; i++) {
		struct cv_ids_rule *rule = &rules->rule[i];

		if (rule->flow == 0)
			continue;
		rule->proto = CV_IDS_PROTOS;
		rc = cv_ids_rules_skip(rules, rule->line, "flow: needs stateful: true");
	}
	return rc;
}

// Makes a database, without the rules that Hyperscan does not take: they are beyond the subset, like
// others.
static int make_database(struct cv_ids *ids, struct cv_ids_database *database,
	enum cv_ids_proto proto, bool streams, const char *file, const struct cv_nf_env *env,
	struct cv_error *error)
{
	int rc;

	do {
		struct cv_ids_problem problem = {""};
		uint32_t wrong = 0;

		rc = cv_ids_database_make(database, &ids->rules, proto, streams, &wrong, &problem);
		if (rc == 0)
			return 0;
		cv_ids_database_free(database);
		if (rc == -EINVAL)
			cv_error_set(
				error, "%s: rules_file: %s: %s", env->name, file, problem.text);
		if (rc != -ENOTSUP)
			return rc;
		ids->rules.rule[wrong].proto = CV_IDS_PROTOS;
		rc = cv_ids_rules_skip(&ids->rules, ids->rules.rule[wrong].line, problem.text);
	} while (rc == 0);
	return rc;
}

// That of streams first: what it does not take, packets' do not get.
static int make_databases(struct cv_ids *ids, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	int rc = 0;

	if (ids->stateful)
		rc = make_database(
			ids, &ids->streams, CV_IDS_TCP, true, config->rules_file, env, error);
	for (unsigned i = 0; rc == 0 && i < CV_IDS_PROTOS; i++)
		rc = make_database(ids, &ids->packets[i], i, false, config->rules_file, env, error);
	if (rc != 0)
		return rc;
	if (ids->rules.skipped_count == 0 || config->unsupported == 1)
		return 0;
	cv_ids_rules_refuse_skipped(&ids->rules, config->rules_file, env->name, error);
	return -EINVAL;
}

static int make_lane(struct cv_ids *ids, struct cv_ids_lane *lane)
{
	const size_t rules = ids->rules.count + 1u;
	bool some_thresholds = false;

	for (unsigned i = 0; i < CV_IDS_PROTOS; i++)
		if (ids->packets[i].hs != NULL &&
			hs_alloc_scratch(ids->packets[i].hs, &lane->scratch) != HS_SUCCESS)
			return -ENOMEM;
	for (uint32_t i = 0; i < ids->rules.count; i++)
		some_thresholds |= ids->rules.rule[i].threshold.type != CV_IDS_UNBOUNDED;
	if (ids->streams.hs != NULL &&
		(hs_alloc_scratch(ids->streams.hs, &lane->scratch) != HS_SUCCESS ||
			cv_ids_streams_make(&lane->streams, ids->streams.hs, ids->connections,
				ids->segments, ids->window) != 0))
		return -ENOMEM;
	lane->mask = calloc(rules, sizeof(*lane->mask));
	lane->touched = calloc(rules, sizeof(*lane->touched));
	lane->matched = calloc(rules, sizeof(*lane->matched));
	lane->places = malloc(sizeof(*lane->places));
	if (lane->mask == NULL || lane->touched == NULL || lane->matched == NULL ||
		lane->places == NULL)
		return -ENOMEM;
	if (!some_thresholds)
		return 0;
	lane->thresholds = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*lane->thresholds), RTE_CACHE_LINE_SIZE));
	if (lane->thresholds == NULL)
		return -ENOMEM;
	memset(lane->thresholds, 0, sizeof(*lane->thresholds));
	return cv_flow_secret_make(&lane->thresholds->secret);
}

static int make_lanes(struct cv_ids *ids, const struct cv_nf_env *env)
{
	const uint64_t runners = cv_nf_env_runners(env);
	int rc = cv_row_counters_make(&ids->hits, ids->rules.count + 1u, env);

	if (rc != 0)
		return rc;
	ids->lane = aligned_alloc(RTE_CACHE_LINE_SIZE, env->workers * sizeof(*ids->lane));
	if (ids->lane == NULL)
		return -ENOMEM;
	memset(ids->lane, 0, env->workers * sizeof(*ids->lane));
	for (unsigned i = 0; rc == 0 && i < env->workers; i++) {
		if ((runners >> i & 1) == 0)
			continue;
		rc = make_lane(ids, &ids->lane[i]);
		ids->lane[i].hits = ids->hits.packets[i];
	}
	return rc;
}

// A log of its own, or that of the instance that runs.
static int make_log(struct cv_ids *ids, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_ids *running = env->running;

	if (running != NULL) {
		if (!cv_ids_alert_log_is_to(
			    running->log, config->alerts_file, config->alerts_socket)) {
			cv_error_set(error,
				"%s: alerts_file and alerts_socket: stay as they are while packets "
				"flow; start the node anew",
				env->name);
			return -EINVAL;
		}
		ids->log = running->log;
		ids->log_owners = running->log_owners;
		if (ids->log_owners != NULL)
			++*ids->log_owners;
		return 0;
	}
	if (config->alerts_file == NULL && config->alerts_socket == NULL)
		return 0;
	ids->log_owners = calloc(1, sizeof(*ids->log_owners));
	if (ids->log_owners == NULL)
		return -ENOMEM;
	*ids->log_owners = 1;
	ids->log = cv_ids_alert_log_create(
		config->alerts_file, config->alerts_socket, env->name, env->workers, error);
	return ids->log == NULL ? -EINVAL : 0;
}

static int make(struct cv_ids *ids, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	int rc;

	if (hs_valid_platform() != HS_SUCCESS) {
		cv_error_set(error, "%s: Hyperscan needs a processor with SSSE3", env->name);
		return -EINVAL;
	}
	if (config->alerts_file != NULL && config->alerts_socket != NULL) {
		cv_error_set(error,
			"%s: alerts_socket: \"%s\": there is alerts_file, too; "
			"remove one",
			env->name, config->alerts_socket);
		return -EINVAL;
	}
	// All that is beyond the subset is listed at once, by make_databases().
	rc = cv_ids_rules_read(
		&ids->rules, config->rules_file, env->name, config->variables, true, error);
	if (rc == 0 && !ids->stateful)
		rc = skip_flows(&ids->rules);
	if (rc == 0)
		rc = make_databases(ids, config, env, error);
	if (rc == 0)
		rc = make_lanes(ids, env);
	if (rc == 0)
		rc = make_log(ids, config, env, error);
	return rc;
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	struct cv_ids *ids = calloc(1, sizeof(*ids));

	if (ids == NULL)
		return NULL;
	ids->workers = env->workers;
	ids->hz = rte_get_tsc_hz();
	ids->drop_fragments = config->fragments == 1;
	ids->number = env->running != NULL ? ((const struct cv_ids *)env->running)->number + 1 : 1;
	ids->stateful = config->stateful;
	ids->checks_sums = config->checksums == 0;
	ids->connections = config->streams;
	ids->segments = config->segments;
	ids->window = config->window;
	ids->depth = config->depth;
	ids->budget = config->budget;
	ids->passes_over_budget = config->over_budget == 1;
	if (make(ids, config, env, error) == 0)
		return ids;
	destroy(ids);
	return NULL;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct cv_ids *ids = instance;

	// If it cannot be opened any more, alerts are counted as lost when the rings are full.
	if (ids->log != NULL && env->running == NULL)
		cv_ids_alert_log_start(ids->log);
}

// Rules that stay count on: both are in the order of their numbers.
static void inherit(void *instance, void *before)
{
	struct cv_ids *ids = instance;
	const struct cv_ids *old = before;
	uint32_t *same = calloc(ids->hits.rows, sizeof(*same));

	for (uint32_t i = 0, o = 0; same != NULL && i < ids->rules.count && o < old->rules.count;) {
		const uint32_t one = ids->rules.order[i], other = old->rules.order[o];
		const int differ =
			cv_ids_rule_compare(&ids->rules.rule[one], &old->rules.rule[other]);

		if (differ == 0)
			same[one] = other + 1;
		i += differ <= 0;
		o += differ >= 0;
	}
	cv_row_counters_inherit(&ids->hits, &old->hits, same);
	for (unsigned i = 0; i < CV_IDS_COUNTS; i++)
		ids->counted_before[i] = cv_ids_counted(old, i);
	free(same);
}

CV_HOT static uint8_t verdict_of(
	struct cv_ids *ids, struct cv_nf_worker *worker, const struct cv_view *view)
{
	struct cv_ids_packet packet;
	const enum cv_ids_kind kind = cv_ids_packet_of(view, &packet);
	bool passed;

	if (CV_UNLIKELY(kind != CV_IDS_IS_PACKET)) {
		if (kind == CV_IDS_IS_NON_IP)
			return CV_NEXT;
		if (kind == CV_IDS_IS_BAD)
			return CV_DROP(CV_IDS_DROP_BAD_HEADER);
		if (ids->drop_fragments)
			return CV_DROP(CV_IDS_DROP_FRAGMENT);
	}
	return cv_ids_match(ids, worker, &packet, &passed);
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct cv_ids *ids = instance;
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = verdict_of(ids, worker, &view[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

const struct cv_nf cv_nf_ids = {
	.name = "ids",
	.summary = "Matches payloads with rules in Suricata's language; alerts, drops and passes.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.inherit = inherit,
	.destroy = destroy,
	.process = process,
	.flow = &cv_ids_flow,
	.info = cv_ids_info,
};
