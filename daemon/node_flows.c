// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/node_flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "daemon/node.h"

#define OUTPUTS_MAX 32u // of one step of a path

// The functions of a group, ascending.
struct set {
	unsigned functions[CV_PATH_MAX];
	unsigned count;
};

static bool has(const struct set *set, unsigned function)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->functions[i] == function)
			return true;
	return false;
}

static void insert(struct set *set, unsigned function)
{
	unsigned at = set->count++;

	for (; at > 0 && set->functions[at - 1] > function; at--)
		set->functions[at] = set->functions[at - 1];
	set->functions[at] = function;
}

static bool is_stateful(const struct cv_node *node, unsigned function)
{
	return cv_flow_is_stateful(node->plan->functions[function].nf, node->functions[function]);
}

// The group that begins in a stage's path, as a set.
static struct set set_from(
	const struct cv_node *node, const struct cv_plan_stage *stage, unsigned at)
{
	struct set set = {.count = 0};

	for (; at < stage->path_length && is_stateful(node, stage->path[at]) &&
		!has(&set, stage->path[at]);
		at++)
		insert(&set, stage->path[at]);
	return set;
}

unsigned cv_node_flows_group(
	const struct cv_node *node, const struct cv_plan_stage *stage, unsigned at)
{
	return set_from(node, stage, at).count;
}

static bool is_of(const struct cv_node_zone *zone, const struct set *set)
{
	return zone->count == set->count &&
	       memcmp(zone->functions, set->functions, set->count * sizeof(set->functions[0])) == 0;
}

// Are they of the same functions?
static bool are_alike(const struct cv_node_zone *a, const struct cv_node_zone *b)
{
	return a->count == b->count &&
	       memcmp(a->functions, b->functions, a->count * sizeof(a->functions[0])) == 0;
}

static struct cv_node_zone *find(const struct cv_node *node, unsigned worker, const struct set *set)
{
	for (unsigned i = 0; i < node->zones_count; i++)
		if (node->zones[i].worker == worker && is_of(&node->zones[i], set))
			return &node->zones[i];
	return NULL;
}

static void members_of(const struct cv_node *node, const unsigned *functions, unsigned count,
	struct cv_flow_member *members)
{
	for (unsigned i = 0; i < count; i++)
		members[i] = (struct cv_flow_member){
			.nf = node->plan->functions[functions[i]].nf,
			.instance = node->functions[functions[i]],
		};
}

static unsigned outputs_of(const struct cv_node *node, const struct set *set)
{
	unsigned outputs = 0;

	for (unsigned i = 0; i < set->count; i++)
		outputs += node->plan->functions[set->functions[i]].outputs_count;
	return outputs;
}

static int add_zone(
	struct cv_node *node, unsigned worker, const struct set *set, struct cv_error *error)
{
	struct cv_flow_member members[CV_PATH_MAX];
	struct cv_node_zone *zones;
	unsigned bytes;

	if (find(node, worker, set) != NULL)
		return 0;
	members_of(node, set->functions, set->count, members);
	bytes = cv_flow_slots_bytes(members, set->count);
	if (set->count > CV_FLOW_MEMBERS_MAX || bytes > CV_FLOW_SLOTS_MAX) {
		cv_error_set(error,
			"function \"%s\" and %u more stateful ones in a row keep %u bytes of a "
			"flow; %u functions and %u bytes are possible: put one that is not "
			"stateful between them",
			node->plan->functions[set->functions[0]].name, set->count - 1, bytes,
			CV_FLOW_MEMBERS_MAX, CV_FLOW_SLOTS_MAX);
		return -EINVAL;
	}
	if (outputs_of(node, set) > OUTPUTS_MAX) {
		cv_error_set(error,
			"function \"%s\" and %u more stateful ones in a row have %u outputs; %u "
			"are "
			"possible: put one that is not stateful between them",
			node->plan->functions[set->functions[0]].name, set->count - 1,
			outputs_of(node, set), OUTPUTS_MAX);
		return -EINVAL;
	}
	zones = realloc(node->zones, (node->zones_count + 1) * sizeof(*zones));
	if (zones == NULL)
		return -ENOMEM;
	node->zones = zones;
	zones[node->zones_count] = (struct cv_node_zone){.worker = worker, .count = set->count};
	memcpy(zones[node->zones_count++].functions, set->functions,
		set->count * sizeof(set->functions[0]));
	return 0;
}

int cv_node_flows_find(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;

	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		for (unsigned at = 0; at < stage->path_length;) {
			const struct set set = set_from(node, stage, at);
			const int rc =
				set.count == 0 ? 0 : add_zone(node, stage->worker, &set, error);

			if (rc != 0)
				return rc;
			at += set.count + (set.count == 0);
		}
	}
	return 0;
}

// Zones of the same functions: one on each worker that runs them.
static unsigned zones_like(const struct cv_node *node, const struct cv_node_zone *zone)
{
	unsigned count = 0;

	for (unsigned i = 0; i < node->zones_count; i++)
		count += are_alike(&node->zones[i], zone);
	return count;
}

// Each worker's share of the limits.
static struct cv_flow_limits limits_of(const struct cv_node *node, const struct cv_node_zone *zone)
{
	struct cv_flow_limits limits = node->plan->flows;
	const unsigned workers = zones_like(node, zone);

	limits.max = (limits.max + workers - 1) / workers;
	limits.max_ipv6 = (limits.max_ipv6 + workers - 1) / workers;
	return limits;
}

// Whether a zone before this one, on the same worker, is of the function, too.
static bool has_before(const struct cv_node *node, unsigned index, unsigned function)
{
	for (unsigned i = 0; i < index; i++)
		for (unsigned j = 0; j < node->zones[i].count; j++)
			if (node->zones[i].worker == node->zones[index].worker &&
				node->zones[i].functions[j] == function)
				return true;
	return false;
}

// Whether a zone is of the same functions as a running node's, with as many outputs.
static bool is_same_zone(const struct cv_node *node, const struct cv_node_zone *zone,
	const struct cv_node *running, const struct cv_node_zone *other, const int *from)
{
	if (zone->worker != other->worker || zone->count != other->count)
		return false;
	for (unsigned i = 0; i < zone->count; i++)
		if (from[zone->functions[i]] != (int)other->functions[i] ||
			node->plan->functions[zone->functions[i]].outputs_count !=
				running->plan->functions[other->functions[i]].outputs_count)
			return false;
	return true;
}

void cv_node_flows_adopt(struct cv_node *node, const struct cv_node *running, const int *from)
{
	for (unsigned i = 0; i < node->zones_count; i++)
		for (unsigned j = 0; j < running->zones_count; j++) {
			struct cv_node_zone *zone = &node->zones[i];
			const struct cv_node_zone *other = &running->zones[j];

			if (!is_same_zone(node, zone, running, other, from))
				continue;
			zone->zone = other->zone;
			zone->adopted = true;
			memcpy(zone->groups, other->groups, sizeof(zone->groups));
			zone->groups_count = other->groups_count;
		}
}

int cv_node_flows_make(struct cv_node *node, struct cv_error *error)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		struct cv_node_zone *zone = &node->zones[i];
		const struct cv_flow_limits limits = limits_of(node, zone);
		struct cv_flow_member members[CV_FLOW_MEMBERS_MAX];

		if (zone->adopted)
			continue;
		members_of(node, zone->functions, zone->count, members);
		zone->zone =
			cv_flow_zone_create(members, zone->count, &limits, rte_get_tsc_hz(), error);
		if (zone->zone == NULL)
			return -ENOMEM;
		cv_flow_zone_share(zone->zone, cv_node_handoff_homes(node, zone->functions[0]));
		for (unsigned j = 0; j < zone->count; j++)
			if (has_before(node, i, zone->functions[j]))
				cv_flow_zone_set_tick(zone->zone, j, NULL);
	}
	return 0;
}

void cv_node_flows_free(struct cv_node *node)
{
	for (unsigned i = 0; i < node->zones_count; i++)
		if (!node->zones[i].adopted)
			cv_flow_zone_destroy(node->zones[i].zone);
	free(node->zones);
}

struct cv_flow_zone *cv_node_flows_zone(
	const struct cv_node *node, const struct cv_plan_stage *stage, unsigned worker)
{
	const struct set set = set_from(node, stage, 0);
	const struct cv_node_zone *zone = set.count == 0 ? NULL : find(node, worker, &set);

	return zone == NULL ? NULL : zone->zone;
}

static void list_group(struct cv_node_zone *zone, struct cv_flow_group *group)
{
	for (unsigned i = 0; i < zone->groups_count; i++)
		if (zone->groups[i] == group)
			return;
	zone->groups[zone->groups_count++] = group;
}

int cv_node_flows_step(struct cv_node *node, const struct cv_plan_stage *stage, unsigned at,
	unsigned count, struct cv_step *step)
{
	const struct set set = set_from(node, stage, at);
	struct cv_node_zone *zone = find(node, stage->worker, &set);
	struct cv_nf_counters *counters[CV_FLOW_MEMBERS_MAX];
	uint8_t order[CV_FLOW_MEMBERS_MAX], first_outputs[CV_FLOW_MEMBERS_MAX], outputs = 0;
	struct cv_flow_group *group;

	for (unsigned i = 0; i < count; i++) {
		const unsigned function = stage->path[at + i];

		order[i] = 0;
		while (zone->functions[order[i]] != function)
			order[i]++;
		counters[i] = &node->function_counters[function][stage->worker];
		first_outputs[i] = outputs;
		outputs += (uint8_t)node->plan->functions[function].outputs_count;
	}
	group = zone->adopted ? cv_flow_group_find(zone->zone, order) : NULL;
	if (group == NULL) {
		group = cv_flow_group_create(zone->zone, order, counters);
		if (group == NULL)
			return -ENOMEM;
		cv_flow_group_set_outputs(group, first_outputs);
	}
	*step = (struct cv_step){
		.process = cv_flow_process,
		.explain = cv_flow_explain,
		.instance = group,
		.counters = cv_flow_group_counters(group),
	};
	list_group(zone, group);
	if (zone->ticks)
		return 0;
	zone->ticks = true;
	return 1;
}

void cv_node_flows_set(const struct cv_node *node, unsigned worker)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		const struct cv_node_zone *zone = &node->zones[i];

		for (unsigned j = 0; zone->worker == worker && j < zone->count; j++) {
			const unsigned function = zone->functions[j];

			cv_flow_zone_replace(zone->zone, j, node->functions[function]);
			cv_flow_zone_set_tick(zone->zone, j,
				has_before(node, i, function)
					? NULL
					: node->plan->functions[function].nf->tick);
		}
	}
}

static bool is_first(const struct cv_node *node, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (are_alike(&node->zones[i], &node->zones[index]))
			return false;
	return true;
}

// The names of its functions: "fw+nat".
static void name_of(const struct cv_node *node, const struct cv_node_zone *zone, char *name)
{
	*name = '\0';
	for (unsigned i = 0; i < zone->count; i++) {
		if (i > 0)
			strcat(name, "+");
		strcat(name, node->plan->functions[zone->functions[i]].name);
	}
}

static json_t *plan_of(const struct cv_node *node, const struct cv_node_zone *zone)
{
	const unsigned workers = zones_like(node, zone);
	const struct cv_flow_limits limits = limits_of(node, zone);
	struct cv_flow_member members[CV_FLOW_MEMBERS_MAX];
	size_t bytes;

	members_of(node, zone->functions, zone->count, members);
	bytes = workers * cv_flow_zone_bytes(members, zone->count, &limits);
	return json_pack("{s:i, s:I, s:I, s:I}", "workers", (int)workers, "max",
		(json_int_t)limits.max * workers, "max_ipv6", (json_int_t)limits.max_ipv6 * workers,
		"bytes", (json_int_t)bytes);
}

json_t *cv_node_flows_plan(const struct cv_node *node)
{
	char name[CV_FLOW_MEMBERS_MAX * CV_NAME_MAX];
	json_t *all = json_object();

	for (unsigned i = 0; i < node->zones_count; i++) {
		if (!is_first(node, i))
			continue;
		name_of(node, &node->zones[i], name);
		json_object_set_new(all, name, plan_of(node, &node->zones[i]));
	}
	return all;
}

static uint64_t drops_of(const struct cv_node_zone *zone, unsigned why)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < zone->groups_count; i++)
		sum += cv_counted(&cv_flow_group_counters(zone->groups[i])->drops[why]);
	return sum;
}

static uint64_t originated_of(const struct cv_node_zone *zone)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < zone->groups_count; i++)
		sum += cv_counted(&cv_flow_group_counters(zone->groups[i])->originated);
	return sum;
}

uint64_t cv_node_flows_originated(const struct cv_node *node)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < node->zones_count; i++)
		sum += originated_of(&node->zones[i]);
	return sum;
}

uint64_t cv_node_flows_drops(const struct cv_node *node)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < node->zones_count; i++)
		for (unsigned why = CV_FLOW_BY_FUNCTION + 1; why < CV_FLOW_DROPS; why++)
			sum += drops_of(&node->zones[i], why);
	return sum;
}

void cv_node_flows_gone(const struct cv_node *node, struct cv_node_gone *gone)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		const struct cv_node_zone *zone = &node->zones[i];

		if (zone->adopted)
			continue;
		gone->originated += originated_of(zone);
		for (unsigned why = CV_FLOW_BY_FUNCTION + 1; why < CV_FLOW_DROPS; why++)
			gone->dropped += drops_of(zone, why);
	}
}

static uint64_t busy_of(const struct cv_node_zone *zone)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < zone->groups_count; i++)
		sum += cv_counted(&cv_flow_group_counters(zone->groups[i])->busy_cycles);
	return sum;
}

uint64_t cv_node_flows_busy(const struct cv_node *node, unsigned function)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < node->zones_count; i++)
		for (unsigned j = 0; j < node->zones[i].count; j++)
			if (node->zones[i].functions[j] == function)
				sum += busy_of(&node->zones[i]) / node->zones[i].count;
	return sum;
}

void cv_node_flows_latency(const struct cv_node *node, unsigned function,
	struct cv_latency *in_ring, struct cv_latency *latency)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		const struct cv_node_zone *zone = &node->zones[i];

		for (unsigned j = 0; j < zone->groups_count; j++) {
			const struct cv_nf_counters *counters =
				cv_flow_group_counters(zone->groups[j]);

			if (zone->functions[0] == function)
				cv_latency_merge(in_ring, &counters->ring_latency);
			if (zone->functions[zone->count - 1] == function)
				cv_latency_merge(latency, &counters->latency);
		}
	}
}

static void add(json_t *object, const char *key, uint64_t more)
{
	const json_int_t before = json_integer_value(json_object_get(object, key));

	json_object_set_new(object, key, json_integer(before + (json_int_t)more));
}

// Adds what a zone counted.
static void add_counts(json_t *object, json_t *drops, const struct cv_node_zone *zone)
{
	const struct cv_flow_counters *counters = cv_flow_zone_counters(zone->zone);

	add(object, "flows_ipv4", cv_counted(&counters->flows_ipv4));
	add(object, "flows_ipv6", cv_counted(&counters->flows_ipv6));
	add(object, "denied", cv_counted(&counters->denied));
	add(object, "created", cv_counted(&counters->created));
	add(object, "timed_out", cv_counted(&counters->timed_out));
	add(object, "invalidated", cv_counted(&counters->invalidated));
	add(object, "busy_cycles", busy_of(zone));
	add(object, "originated", originated_of(zone));
	for (unsigned why = CV_FLOW_BY_FUNCTION + 1; why < CV_FLOW_DROPS; why++)
		add(drops, cv_flow_drop_names[why], drops_of(zone, why));
}

json_t *cv_node_flows_counts(const struct cv_node *node)
{
	json_t *all = cv_node_flows_plan(node);
	char name[CV_FLOW_MEMBERS_MAX * CV_NAME_MAX];

	for (unsigned i = 0; i < node->zones_count; i++) {
		json_t *object, *drops;

		name_of(node, &node->zones[i], name);
		object = json_object_get(all, name);
		drops = json_object_get(object, "drops");
		if (drops == NULL) {
			drops = json_object();
			json_object_set_new(object, "drops", drops);
		}
		add_counts(object, drops, &node->zones[i]);
	}
	return all;
}
