// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/why_json.h"

#include <time.h>

#include <rte_cycles.h>

#include "daemon/node_flows.h"

#define FLOWS "flows" // what stateful functions share a look-up of

struct cv_why_clock cv_why_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (struct cv_why_clock){.tsc = rte_rdtsc(),
		.hz = rte_get_tsc_hz(),
		.ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
}

int64_t cv_why_time(const struct cv_why_clock *clock, uint64_t tsc)
{
	const double s = (double)(int64_t)(tsc - clock->tsc) / (double)clock->hz;

	return (int64_t)clock->ns + (int64_t)(s * 1e9);
}

// The stage that a path is, or NULL.
static const struct cv_plan_stage *stage_of(const struct cv_node *node, const struct cv_path *path)
{
	for (unsigned i = 0; path != NULL && i < node->plan->stages_count; i++)
		if (node->paths[i] == path)
			return &node->plan->stages[i];
	return NULL;
}

static const char *chain_name(const struct cv_node *node, const struct cv_plan_stage *stage)
{
	return stage == NULL ? NULL : node->plan->chains[stage->chain].name;
}

// The functions of a step: where they begin in the stage's path, and how many they are.
struct functions {
	const struct cv_plan_stage *stage; // NULL: unknown
	unsigned at, count;
	bool grouped;
};

static struct functions functions_of(
	const struct cv_node *node, const struct cv_path *path, unsigned step)
{
	struct functions functions = {.stage = stage_of(node, path)};
	unsigned at = 0;

	for (unsigned i = 0; functions.stage != NULL && at < functions.stage->path_length; i++) {
		const unsigned group = cv_node_flows_group(node, functions.stage, at);

		functions.at = at;
		functions.grouped = group > 0;
		functions.count = group > 0 ? group : 1;
		if (i == step)
			return functions;
		at += functions.count;
	}
	functions.stage = NULL;
	return functions;
}

static const struct cv_plan_function *function_at(
	const struct cv_node *node, const struct functions *functions, unsigned position)
{
	return &node->plan->functions[functions->stage->path[functions->at + position]];
}

// What a function decided. reason, output: of it, or NULL.
struct decision {
	const char *verdict, *reason, *output;
};

static struct decision decision_of(const struct cv_plan_function *function, uint8_t verdict)
{
	const unsigned reason = verdict - CV_DROP(0), output = verdict - CV_OUTPUT(0);

	if (verdict == CV_NEXT)
		return (struct decision){.verdict = "next"};
	if (verdict == CV_ABSORBED)
		return (struct decision){.verdict = "absorbed"};
	if (verdict == CV_HELD)
		return (struct decision){.verdict = "held"};
	if (verdict >= CV_OUTPUT(0))
		return (struct decision){.verdict = "output",
			.output = output < function->outputs_count ? function->outputs[output]
								   : NULL};
	for (unsigned i = 0; function->nf->drops[i] != NULL; i++)
		if (i == reason)
			return (struct decision){
				.verdict = "drop", .reason = function->nf->drops[i]};
	return (struct decision){.verdict = "drop"};
}

static void add_optional(json_t *object, const char *key, const char *text)
{
	if (text != NULL)
		json_object_set_new(object, key, json_string(text));
}

#define WORDS_MAX 160 // bytes

// What a function's verdict is owed to, in its words; NULL: it did not say.
static const char *words_of(const struct cv_node *node, unsigned function,
	const struct cv_nf_because *because, char words[WORDS_MAX])
{
	const struct cv_nf *nf = node->plan->functions[function].nf;
	const struct cv_nf_env env = cv_node_function_env(node, function);

	if (because->row == 0 || nf->in_words == NULL)
		return NULL;
	words[0] = '\0';
	nf->in_words(node->functions[function], &env, because, words, WORDS_MAX);
	return words[0] == '\0' ? NULL : words;
}

// Appends what a function did. because: in words, or NULL. step: its cycles and bytes; NULL: another
// one's step has them.
static void add_function(json_t *way, const char *chain, const char *name,
	const struct decision *decision, const char *because, const struct cv_trace_step *step)
{
	json_t *one = json_pack(
		"{s:s, s:s, s:s}", "chain", chain, "function", name, "verdict", decision->verdict);

	add_optional(one, "reason", decision->reason);
	add_optional(one, "output", decision->output);
	add_optional(one, "because", because);
	if (step != NULL) {
		json_object_set_new(one, "cycles", json_integer(step->cycles));
		json_object_set_new(one, "bytes", json_integer(step->bytes));
	}
	json_array_append_new(way, one);
}

// What the last of a step's functions that saw the packet decided; of several that share a look-up that
// may be the flow path itself.
static struct decision decision_at(const struct cv_node *node, const struct functions *functions,
	const struct cv_trace_step *step)
{
	const unsigned reason = step->verdict - CV_DROP(0);

	if (functions->stage == NULL || step->verdict == CV_NEXT)
		return (struct decision){.verdict = "next"};
	if (!functions->grouped)
		return decision_of(function_at(node, functions, 0), step->verdict);
	if (step->position < functions->count)
		return decision_of(function_at(node, functions, step->position), step->decision);
	return (struct decision){.verdict = "drop",
		.reason = reason < CV_FLOW_DROPS ? cv_flow_drop_names[reason] : NULL};
}

// Several functions that share a look-up: those before the one that decided let the packet pass.
static void add_group(const struct cv_node *node, const struct functions *functions,
	const struct cv_trace_step *step, json_t *way)
{
	const struct decision last = decision_at(node, functions, step), next = {.verdict = "next"};
	const char *chain = chain_name(node, functions->stage);
	const char *flow = step->because.row == 0 ? NULL : cv_flow_because_words[step->because.row];
	unsigned count = functions->count;

	if (step->verdict != CV_NEXT && step->position >= count) { // the flow path itself
		add_function(way, chain, FLOWS, &last, flow, step);
		return;
	}
	if (step->verdict != CV_NEXT)
		count = step->position + 1u;
	for (unsigned i = 0; i < count; i++) {
		const struct cv_plan_function *function = function_at(node, functions, i);
		const unsigned index = (unsigned)(function - node->plan->functions);
		const bool is_last = i + 1 == count;
		const char *is = i == 0 && flow != NULL ? flow : "";
		char words[WORDS_MAX], both[2 * WORDS_MAX];
		const char *because = node->functions[index] == step->stated_by
					      ? words_of(node, index, &step->stated, words)
					      : NULL;

		snprintf(both, sizeof(both), "%s%s%s", is,
			is[0] != '\0' && because != NULL ? ", " : "",
			because == NULL ? "" : because);
		add_function(way, chain, function->name, is_last ? &last : &next,
			both[0] == '\0' ? NULL : both, is_last ? step : NULL);
	}
}

static void add_step(const struct cv_node *node, const struct cv_trace_step *step, json_t *way)
{
	const struct functions functions = functions_of(node, step->path, step->step);
	const struct decision decision = decision_at(node, &functions, step);
	const struct cv_plan_function *function;
	char words[WORDS_MAX];

	if (functions.stage == NULL)
		return;
	if (functions.grouped) {
		add_group(node, &functions, step, way);
		return;
	}
	function = function_at(node, &functions, 0);
	add_function(way, chain_name(node, functions.stage), function->name, &decision,
		words_of(node, (unsigned)(function - node->plan->functions), &step->because, words),
		step);
}

// Why a packet was dropped; NULL: it was not, or nobody knows.
static const char *reason_of(const struct cv_node *node, const struct cv_trace_record *record)
{
	const struct cv_trace_step *last;
	struct functions functions;

	if (record->end == CV_TRACE_DROPPED)
		return cv_drop_reason_names[record->why];
	if (record->end != CV_TRACE_FUNCTION_DROPPED || record->steps_count == 0)
		return NULL;
	last = &record->steps[record->steps_count - 1];
	functions = functions_of(node, last->path, last->step);
	return decision_at(node, &functions, last).reason;
}

bool cv_why_is_wanted(const struct cv_node *node, const struct cv_trace_config *config,
	const struct cv_trace_record *record)
{
	const char *reason;

	if (record->end != CV_TRACE_DROPPED && record->end != CV_TRACE_FUNCTION_DROPPED)
		return true; // the worker has asked the filter
	reason = reason_of(node, record);
	return cv_filter_takes(config->filter,
		cv_filter_dropped(config->filter, record->terms, reason == NULL ? "" : reason));
}

static json_t *hex_of(const uint8_t *bytes, unsigned n)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * CV_TRACE_SNAP_MAX];

	for (unsigned i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return json_stringn_nocheck(text, 2 * (size_t)n);
}

static void add_bytes(
	json_t *packet, const struct cv_trace_config *config, const struct cv_trace_record *record)
{
	static const char *const keys[] = {"before", "after"};

	for (unsigned i = 0; i < 2; i++)
		if (record->snap[i] > 0)
			json_object_set_new(packet, keys[i],
				json_pack("{s:i, s:o}", "bytes", record->len[i], "hex",
					hex_of(record->bytes + i * config->snap, record->snap[i])));
}

static const char *const ends[] = {
	[CV_TRACE_SENT] = "sent",
	[CV_TRACE_RING] = "handed on",
	[CV_TRACE_DROPPED] = "dropped",
	[CV_TRACE_FUNCTION_DROPPED] = "dropped",
	[CV_TRACE_ABSORBED] = "absorbed",
	[CV_TRACE_HELD] = "held",
};

// How it left.
static void add_sent(
	const struct cv_node *node, const struct cv_trace_record *record, json_t *packet)
{
	add_optional(packet, "out", node->plan->port_names[record->out]);
	if (node->next_hop_set != NULL && record->next_hop < CV_NEXT_HOPS_MAX)
		add_optional(
			packet, "next_hop", node->next_hop_set->next_hops[record->next_hop].name);
	if (record->next_hop_of > 0)
		json_object_set_new(packet, "next_hop_of", json_integer(record->next_hop_of));
	if (record->convoy > 0)
		json_object_set_new(packet, "convoy", json_integer(record->convoy));
}

// The function that made or released the packet, if its path is known.
static void add_origin(
	const struct cv_node *node, const struct cv_trace_record *record, json_t *packet)
{
	struct functions functions;

	json_object_set_new(packet, "from",
		json_string(record->origin == CV_TRACE_FUNCTION ? "function" : "port"));
	if (record->origin != CV_TRACE_FUNCTION || record->first == 0)
		return;
	functions = functions_of(node, record->path, record->first - 1u);
	if (functions.stage != NULL)
		add_optional(
			packet, "by", function_at(node, &functions, functions.count - 1)->name);
}

json_t *cv_why_packet(const struct cv_node *node, const struct cv_trace_config *config,
	const struct cv_why_clock *clock, const struct cv_trace_record *record)
{
	json_t *way = json_array(), *packet;

	for (unsigned i = 0; i < record->steps_count; i++)
		add_step(node, &record->steps[i], way);
	packet = json_pack("{s:I, s:s, s:o, s:s, s:I}", "at",
		(json_int_t)cv_why_time(clock, record->begin), "in",
		node->plan->port_names[record->in], "way", way, "end", ends[record->end], "cycles",
		(json_int_t)(record->end_tsc - record->begin));
	add_optional(packet, "chain", chain_name(node, stage_of(node, record->path)));
	add_origin(node, record, packet);
	if (record->steps_more > 0)
		json_object_set_new(packet, "steps_left_out", json_integer(record->steps_more));
	add_optional(packet, "reason", reason_of(node, record));
	if (record->end == CV_TRACE_SENT || record->end == CV_TRACE_DROPPED)
		add_sent(node, record, packet);
	add_bytes(packet, config, record);
	return packet;
}
