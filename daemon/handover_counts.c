// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/handover_counts.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/counts.h"
#include "daemon/errands.h"

// Counters of the first worker, and what is added to each.
struct additions {
	struct addition {
		uint64_t *counter, more;
	} * all;
	size_t count, room;
	bool failed;
};

uint64_t cv_handover_held(const struct cv_node *node)
{
	json_t *accounting = cv_counts_accounting(node);
	const uint64_t held = (uint64_t)json_integer_value(json_object_get(accounting, "held"));

	json_decref(accounting);
	return held;
}

json_t *cv_handover_counts(const struct cv_node *node)
{
	return json_pack("{s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I}}", "ports",
		cv_counts_ports(node), "functions", cv_counts_functions(node), "next_hops",
		cv_counts_next_hops(node), "gone", "received", (json_int_t)node->gone.received,
		"sent", (json_int_t)node->gone.sent, "originated",
		(json_int_t)(node->gone.originated + cv_node_flows_originated(node)), "absorbed",
		(json_int_t)node->gone.absorbed, "dropped",
		(json_int_t)(node->gone.dropped + cv_node_flows_drops(node) +
			     cv_handover_held(node)));
}

// Our port of a name, or -1.
static int port_of(const struct cv_node *node, const char *name)
{
	for (unsigned i = 0; i < node->plan->ports_count; i++)
		if (strcmp(node->plan->port_names[i], name) == 0)
			return (int)i;
	return -1;
}

// Our function of a name and of the same type as what was counted, or -1.
static int function_of(const struct cv_node *node, const char *name, const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));

	for (unsigned i = 0; i < node->plan->functions_count; i++)
		if (strcmp(node->plan->functions[i].name, name) == 0)
			return type != NULL && strcmp(node->plan->functions[i].nf->name, type) == 0
				       ? (int)i
				       : -1;
	return -1;
}

static void add_value(struct additions *to, uint64_t *counter, const json_t *value)
{
	const json_int_t more = json_integer_value(value);
	struct addition *all = to->all;

	if (more <= 0)
		return;
	if (to->count == to->room) {
		to->room = to->room == 0 ? 256 : 2 * to->room;
		all = realloc(to->all, to->room * sizeof(*all));
		if (all == NULL) {
			to->room = to->count;
			to->failed = true;
			return;
		}
		to->all = all;
	}
	to->all[to->count++] = (struct addition){counter, (uint64_t)more};
}

static void add(struct additions *to, uint64_t *counter, const json_t *object, const char *key)
{
	add_value(to, counter, json_object_get(object, key));
}

// Frames by packets: {"1": 12, "23": 4711}.
static void add_sizes(struct additions *to, uint64_t *sizes, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const unsigned long n = strtoul(key, NULL, 10);

		if (n <= CV_CONVOY_PACKETS_MAX)
			add_value(to, &sizes[n], value);
	}
}

// Convoys by NFI-ID: {"7": 4711}.
static void add_nfis(struct additions *to, uint64_t *convoys, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const unsigned long nfi = strtoul(key, NULL, 10);

		if (nfi < CV_NFIS)
			add_value(to, &convoys[nfi], value);
	}
}

// Receptions by their most frames: {"1": 12, "4": 4711}.
static void add_bursts(struct additions *to, uint64_t *bursts, const json_t *object)
{
	for (unsigned i = 0; i < CV_RX_BURST_BUCKETS; i++) {
		char key[8];

		snprintf(key, sizeof(key), "%u", 1u << i);
		add(to, &bursts[i], object, key);
	}
}

static void add_compression(
	struct additions *to, struct cv_compression_counters *counters, const json_t *object)
{
	add(to, &counters->frames, object, "frames");
	add(to, &counters->not_smaller, object, "not_smaller");
	add(to, &counters->bytes_before, object, "bytes_before");
	add(to, &counters->bytes_after, object, "bytes_after");
}

static void add_port(
	struct additions *to, const struct cv_node *node, unsigned port, const json_t *object)
{
	struct cv_port_counters *counters = &node->workers[0].paths.ports_counters[port];
	const json_t *drops = json_object_get(object, "drops");
	struct cv_frame_counters *frames;

	add(to, &counters->rx_packets, object, "rx_packets");
	add(to, &counters->rx_frames, object, "rx_frames");
	add(to, &counters->rx_bytes, object, "rx_bytes");
	add(to, &counters->tx_packets, object, "tx_packets");
	add(to, &counters->tx_frames, object, "tx_frames");
	add(to, &counters->tx_bytes, object, "tx_bytes");
	for (unsigned why = 0; why < CV_DROP_REASONS; why++)
		add(to, &counters->drops[why], drops, cv_drop_reason_names[why]);
	add_bursts(to, counters->rx_bursts, json_object_get(object, "rx_bursts"));
	if (!node->plan->port_convoys[port].carries)
		return;
	frames = &node->rx_frames[port * node->plan->workers_count];
	add_sizes(to, frames->sizes, json_object_get(object, "convoy_sizes"));
	add_nfis(to, node->convoy_rx[port * node->plan->workers_count].nfi_convoys,
		json_object_get(object, "convoys_by_nfi"));
	add_compression(to, &frames->compression, json_object_get(object, "expanded"));
	for (unsigned why = CV_CONVOY_FRAGMENTED; why < CV_CONVOY_REASONS; why++)
		add(to, &frames->refused[why], json_object_get(object, "convoys_refused"),
			cv_convoy_reason_names[why]);
}

static void add_function(
	struct additions *to, const struct cv_node *node, unsigned function, const json_t *object)
{
	const struct cv_plan_function *of = &node->plan->functions[function];
	struct cv_nf_counters *counters = &node->function_counters[function][0];

	add(to, &counters->packets, object, "packets");
	add(to, &counters->bytes, object, "bytes");
	add(to, &counters->originated, object, "originated");
	add(to, &counters->absorbed, object, "absorbed");
	add(to, &counters->copied_out, object, "copied_out");
	for (unsigned why = 0; of->nf->drops[why] != NULL; why++)
		add(to, &counters->drops[why], json_object_get(object, "drops"),
			of->nf->drops[why]);
	for (unsigned i = 0; i < of->outputs_count; i++)
		add(to, &counters->outputs[i], json_object_get(object, "outputs"), of->outputs[i]);
}

static void add_next_hops(struct additions *to, const struct cv_node *node, const json_t *objects)
{
	for (unsigned i = 0; node->next_hop_set != NULL && i < CV_NEXT_HOPS_MAX; i++) {
		const char *name = node->next_hop_set->next_hops[i].name;
		const json_t *object = name[0] == '\0' ? NULL : json_object_get(objects, name);
		struct cv_frame_counters *counters = &node->workers[0].tx->next_hop_counters[i];

		if (object == NULL)
			continue;
		add_sizes(to, counters->sizes, json_object_get(object, "sizes"));
		add_compression(to, &counters->compression, json_object_get(object, "compressed"));
	}
}

static void add_drops(struct additions *to, struct cv_node_gone *gone, const json_t *object)
{
	const char *why;
	json_t *value;

	json_object_foreach (json_object_get(object, "drops"), why, value)
		add_value(to, &gone->dropped, value);
}

// What is in no port's and no function's counters any more stays in the sums.
static void add_gone(
	struct additions *to, struct cv_node *node, const json_t *ports, const json_t *functions)
{
	struct cv_node_gone *gone = &node->gone;
	const char *name;
	json_t *object;

	json_object_foreach ((json_t *)(uintptr_t)ports, name, object) {
		if (port_of(node, name) >= 0)
			continue;
		add(to, &gone->received, object, "rx_packets");
		add(to, &gone->sent, object, "tx_packets");
		add_drops(to, gone, object);
	}
	json_object_foreach ((json_t *)(uintptr_t)functions, name, object) {
		if (function_of(node, name, object) >= 0)
			continue;
		add(to, &gone->originated, object, "originated");
		add(to, &gone->absorbed, object, "absorbed");
		add_drops(to, gone, object);
	}
}

// In the worker, which is the counters' only writer.
static void add_all(void *argument)
{
	const struct additions *additions = argument;

	for (size_t i = 0; additions != NULL && i < additions->count; i++)
		cv_count(additions->all[i].counter, additions->all[i].more);
}

bool cv_handover_add_counts(struct cv_node *node, const json_t *counts)
{
	const json_t *ports = json_object_get(counts, "ports");
	const json_t *functions = json_object_get(counts, "functions");
	const json_t *gone = json_object_get(counts, "gone");
	struct additions additions = {.all = NULL};
	const char *name;
	json_t *object;
	void *arguments[CV_WORKERS_MAX] = {&additions};

	json_object_foreach ((json_t *)(uintptr_t)ports, name, object)
		if (port_of(node, name) >= 0)
			add_port(&additions, node, (unsigned)port_of(node, name), object);
	json_object_foreach ((json_t *)(uintptr_t)functions, name, object)
		if (function_of(node, name, object) >= 0)
			add_function(&additions, node, (unsigned)function_of(node, name, object),
				object);
	add_gone(&additions, node, ports, functions);
	add_next_hops(&additions, node, json_object_get(counts, "next_hops"));
	add(&additions, &node->gone.received, gone, "received");
	add(&additions, &node->gone.sent, gone, "sent");
	add(&additions, &node->gone.originated, gone, "originated");
	add(&additions, &node->gone.absorbed, gone, "absorbed");
	add(&additions, &node->gone.dropped, gone, "dropped");
	if (!additions.failed)
		cv_errands_do(node, add_all, arguments);
	free(additions.all);
	return !additions.failed;
}

uint64_t cv_handover_digest(const json_t *plan)
{
	char *text = json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS);
	uint64_t hash = 0xcbf29ce484222325; // FNV-1a

	for (const char *c = text; c != NULL && *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	free(text);
	return hash;
}

uint64_t cv_handover_function_id(const struct cv_node *node, unsigned function)
{
	const struct cv_plan_function *of = &node->plan->functions[function];
	json_t *id = json_pack("[s, s]", of->name, of->nf->name);
	const uint64_t digest = cv_handover_digest(id);

	json_decref(id);
	return digest;
}

static bool are_alike(const struct cv_node_zone *a, const struct cv_node_zone *b)
{
	return a->count == b->count &&
	       memcmp(a->functions, b->functions, a->count * sizeof(a->functions[0])) == 0;
}

// By its functions, and as which of so many workers that have flows of the same ones.
static uint64_t zone_id(const struct cv_node *node, const struct cv_node_zone *zone, unsigned rank,
	unsigned workers)
{
	json_t *id = json_array();
	uint64_t digest;

	for (unsigned i = 0; i < zone->count; i++) {
		const struct cv_plan_function *function =
			&node->plan->functions[zone->functions[i]];

		json_array_append_new(id, json_string(function->name));
		json_array_append_new(id, json_string(function->nf->name));
	}
	json_array_append_new(id, json_integer(rank));
	json_array_append_new(id, json_integer(workers));
	digest = cv_handover_digest(id);
	json_decref(id);
	return digest;
}

// How many workers have flows of the same functions; rank: how many of them are before this one's.
static unsigned count_workers(const struct cv_node *node, unsigned zone, unsigned *rank)
{
	const struct cv_node_zone *its = &node->zones[zone];
	unsigned workers = 0;

	*rank = 0;
	for (unsigned i = 0; i < node->zones_count; i++) {
		if (!are_alike(&node->zones[i], its))
			continue;
		workers++;
		*rank += node->zones[i].worker < its->worker;
	}
	return workers;
}

uint64_t cv_handover_zone_id(const struct cv_node *node, unsigned zone)
{
	unsigned rank;
	const unsigned workers = count_workers(node, zone, &rank);

	return zone_id(node, &node->zones[zone], rank, workers);
}

uint64_t cv_handover_zone_id_of(const struct cv_node *node, unsigned zone, unsigned workers)
{
	unsigned rank;

	count_workers(node, zone, &rank);
	return rank == 0 ? zone_id(node, &node->zones[zone], 0, workers) : 0;
}
