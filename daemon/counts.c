// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "daemon/counts.h"
#include "daemon/scale.h"
#include "daemon/sandbox/capabilities.h"
#include "daemon/standby.h"

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

// The sum over workers of one counter of a port.
static uint64_t port_sum(const struct cv_node *node, unsigned port, size_t offset)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		const void *counters = &node->workers[i].paths.ports_counters[port];

		sum += cv_counted(RTE_PTR_ADD(counters, offset));
	}
	return sum;
}

static uint64_t function_sum(const struct cv_node *node, unsigned function, size_t offset)
{
	unsigned workers = node->plan->workers_count;
	uint64_t sum = 0;

	for (unsigned i = 0; i < workers; i++) {
		const void *counters = &node->function_counters[function][i];

		sum += cv_counted(RTE_PTR_ADD(counters, offset));
	}
	return sum;
}

#define PORT_SUM(node, port, field) port_sum(node, port, offsetof(struct cv_port_counters, field))
#define FUNCTION_SUM(node, function, field) \
	function_sum(node, function, offsetof(struct cv_nf_counters, field))

static uint64_t port_drops(const struct cv_node *node, unsigned port, enum cv_drop_reason why)
{
	return port_sum(
		node, port, offsetof(struct cv_port_counters, drops) + why * sizeof(uint64_t));
}

static uint64_t function_drops(const struct cv_node *node, unsigned function, unsigned why)
{
	return function_sum(
		node, function, offsetof(struct cv_nf_counters, drops) + why * sizeof(uint64_t));
}

// What frames carried, of the sum of several workers' counters: packets, frames, and how many of
// these were convoys.
static json_t *frames_of(const uint64_t *sizes)
{
	json_t *object = json_object();
	uint64_t packets = 0;
	uint64_t frames = 0;

	for (unsigned n = 0; n <= CV_CONVOY_PACKETS_MAX; n++) {
		packets += n * sizes[n];
		frames += sizes[n];
	}
	set(object, "packets", packets);
	set(object, "frames", frames);
	set(object, "convoys", frames - sizes[1]);
	return object;
}

// Numbers of frames by packets, {"1": 12, "23": 4711}; those that never were are left out.
static json_t *histogram_of(const uint64_t *sizes)
{
	json_t *object = json_object();

	for (unsigned n = 0; n <= CV_CONVOY_PACKETS_MAX; n++) {
		char key[8];

		if (sizes[n] == 0)
			continue;
		snprintf(key, sizeof(key), "%u", n);
		set(object, key, sizes[n]);
	}
	return object;
}

// What compression did, of the sum of several workers' counters.
static json_t *compression_of(const struct cv_compression_counters *sums)
{
	json_t *object = json_object();

	set(object, "frames", sums->frames);
	set(object, "not_smaller", sums->not_smaller);
	set(object, "bytes_before", sums->bytes_before);
	set(object, "bytes_after", sums->bytes_after);
	return object;
}

static void add_compression(
	struct cv_compression_counters *sums, const struct cv_compression_counters *counters)
{
	sums->frames += cv_counted(&counters->frames);
	sums->not_smaller += cv_counted(&counters->not_smaller);
	sums->bytes_before += cv_counted(&counters->bytes_before);
	sums->bytes_after += cv_counted(&counters->bytes_after);
}

static void add_sizes(uint64_t *sizes, const struct cv_frame_counters *counters)
{
	for (unsigned n = 0; n <= CV_CONVOY_PACKETS_MAX; n++)
		sizes[n] += cv_counted(&counters->sizes[n]);
}

// Convoys to each NFI-ID that a chain of the port matches, {"7": 4711}.
static json_t *nfis_of(const struct cv_node *node, unsigned port)
{
	const struct cv_plan *plan = node->plan;
	json_t *object = json_object();

	for (unsigned i = 0; i < plan->chains_count; i++) {
		const struct cv_plan_chain *chain = &plan->chains[i];
		uint64_t convoys = 0;
		char key[8];

		if (chain->nfi < 0 || chain->in != port)
			continue;
		for (unsigned w = 0; w < plan->workers_count; w++)
			convoys += cv_counted(&node->convoy_rx[port * plan->workers_count + w]
						       .nfi_convoys[chain->nfi]);
		snprintf(key, sizeof(key), "%u", (unsigned)chain->nfi);
		set(object, key, convoys);
	}
	return object;
}

// What a port that carries convoys received.
static void set_convoys(json_t *object, const struct cv_node *node, unsigned port)
{
	const struct cv_frame_counters *counters =
		&node->rx_frames[port * node->plan->workers_count];
	uint64_t sizes[CV_CONVOY_PACKETS_MAX + 1] = {0};
	struct cv_compression_counters compression = {0};
	json_t *refused = json_object();

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		add_sizes(sizes, &counters[i]);
		add_compression(&compression, &counters[i].compression);
	}
	if (node->plan->port_convoys[port].expander.on)
		json_object_set_new(object, "expanded", compression_of(&compression));
	json_object_set_new(object, "convoys", frames_of(sizes));
	json_object_set_new(object, "convoy_sizes", histogram_of(sizes));
	json_object_set_new(object, "convoys_by_nfi", nfis_of(node, port));
	for (unsigned why = CV_CONVOY_FRAGMENTED; why < CV_CONVOY_REASONS; why++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < node->plan->workers_count; i++)
			sum += cv_counted(&counters[i].refused[why]);
		set(refused, cv_convoy_reason_names[why], sum);
	}
	json_object_set_new(object, "convoys_refused", refused);
}

uint64_t cv_counts_next_hop_packets(const struct cv_node *node, unsigned next_hop)
{
	uint64_t sizes[CV_CONVOY_PACKETS_MAX + 1] = {0}, packets = 0;

	for (unsigned w = 0; w < node->plan->workers_count; w++)
		add_sizes(sizes, &node->workers[w].tx->next_hop_counters[next_hop]);
	for (unsigned i = 0; i <= CV_CONVOY_PACKETS_MAX; i++)
		packets += i * sizes[i];
	return packets;
}

static json_t *counts_of_controllers(const struct cv_of_server *openflow)
{
	const struct cv_of_counters counters = cv_of_server_count(openflow);

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "entries",
		(json_int_t)counters.entries, "changes", (json_int_t)counters.changes, "refused",
		(json_int_t)counters.refused, "connections", (json_int_t)counters.connections,
		"controllers", (json_int_t)counters.controllers, "frames",
		(json_int_t)counters.frames, "frames_refused", (json_int_t)counters.frames_refused);
}

json_t *cv_counts_next_hops(const struct cv_node *node)
{
	json_t *next_hops = json_object();

	for (unsigned i = 0; node->next_hop_set != NULL && i < CV_NEXT_HOPS_MAX; i++) {
		const struct cv_plan_next_hop *next_hop = &node->next_hop_set->next_hops[i];
		uint64_t sizes[CV_CONVOY_PACKETS_MAX + 1] = {0};
		struct cv_compression_counters compression = {0};
		json_t *object;

		if (next_hop->name[0] == '\0')
			continue;
		for (unsigned w = 0; w < node->plan->workers_count; w++) {
			const struct cv_frame_counters *counters =
				&node->workers[w].tx->next_hop_counters[i];

			add_sizes(sizes, counters);
			add_compression(&compression, &counters->compression);
		}
		object = frames_of(sizes);
		if (next_hop->dictionary != NULL)
			json_object_set_new(object, "compressed", compression_of(&compression));
		json_object_set_new(
			object, "port", json_string(node->plan->port_names[next_hop->port]));
		set(object, "nfi", next_hop->outer.nfi);
		set(object, "mtu", next_hop->outer.mtu);
		set(object, "scids", next_hop->keys_count);
		set(object, "weight", next_hop->weight);
		json_object_set_new(object, "sizes", histogram_of(sizes));
		json_object_set_new(next_hops, next_hop->name, object);
	}
	return next_hops;
}

// Receptions by the most frames that they had, {"1": 12, "4": 4711}; those that never were are left out.
static json_t *bursts_of(const struct cv_node *node, unsigned port)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < CV_RX_BURST_BUCKETS; i++) {
		const uint64_t count = port_sum(node, port,
			offsetof(struct cv_port_counters, rx_bursts) + i * sizeof(uint64_t));
		char key[8];

		if (count == 0)
			continue;
		snprintf(key, sizeof(key), "%u", 1u << i);
		set(object, key, count);
	}
	return object;
}

// Packets by their time in ns, at most so long: {"packets": 5, "ns": 1280, "up_to_ns": {"128": 1, "512": 4}}.
static void set_latency(json_t *object, const char *key, const struct cv_latency *latency)
{
	json_t *buckets = json_object();
	uint64_t packets = 0;

	for (unsigned i = 0; i < CV_LATENCY_BUCKETS; i++) {
		char bound[12];

		if (latency->buckets[i] == 0)
			continue;
		packets += latency->buckets[i];
		snprintf(bound, sizeof(bound), "%u", 1u << (CV_LATENCY_SHORTEST_BITS + i));
		set(buckets, bound, latency->buckets[i]);
	}
	json_object_set_new(object, key,
		json_pack("{s:I, s:I, s:o}", "packets", (json_int_t)packets, "ns",
			(json_int_t)latency->ns, "up_to_ns", buckets));
}

static void set_port_latencies(json_t *object, const struct cv_node *node, unsigned port)
{
	struct cv_latency wait = {0}, rx = {0}, tx = {0};

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		const struct cv_port_counters *counters =
			&node->workers[i].paths.ports_counters[port];

		cv_latency_merge(&wait, &counters->rx_wait);
		cv_latency_merge(&rx, &counters->rx_latency);
		cv_latency_merge(&tx, &counters->tx_latency);
	}
	set_latency(object, "rx_wait", &wait);
	set_latency(object, "rx_latency", &rx);
	set_latency(object, "tx_latency", &tx);
}

// Whether packets come to it out of a ring: of its chain's stage before, or of other workers.
static bool is_behind_ring(const struct cv_plan *plan, unsigned function)
{
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		if ((stage->source_ring >= 0 || stage->handed) && stage->path_length > 0 &&
			stage->path[0] == function)
			return true;
	}
	return false;
}

static void set_function_latencies(json_t *object, const struct cv_node *node, unsigned function)
{
	struct cv_latency in_ring = {0}, latency = {0};

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		const struct cv_nf_counters *counters = &node->function_counters[function][i];

		cv_latency_merge(&in_ring, &counters->ring_latency);
		cv_latency_merge(&latency, &counters->latency);
	}
	cv_node_flows_latency(node, function, &in_ring, &latency);
	if (is_behind_ring(node->plan, function))
		set_latency(object, "ring_latency", &in_ring);
	set_latency(object, "latency", &latency);
}

json_t *cv_counts_ports(const struct cv_node *node)
{
	json_t *ports = json_object();

	for (unsigned i = 0; i < node->plan->ports_count; i++) {
		const struct cv_port *port = node->ports[i];
		json_t *object = json_object();
		json_t *drops = json_object();

		json_object_set_new(object, "kind", json_string(port->kind));
		set(object, "rx_packets", PORT_SUM(node, i, rx_packets));
		set(object, "rx_frames", PORT_SUM(node, i, rx_frames));
		set(object, "rx_bytes", PORT_SUM(node, i, rx_bytes));
		set(object, "tx_packets", PORT_SUM(node, i, tx_packets));
		set(object, "tx_frames", PORT_SUM(node, i, tx_frames));
		set(object, "tx_bytes", PORT_SUM(node, i, tx_bytes));
		for (unsigned why = 0; why < CV_DROP_REASONS; why++)
			set(drops, cv_drop_reason_names[why], port_drops(node, i, why));
		json_object_set_new(object, "drops", drops);
		json_object_set_new(object, "rx_bursts", bursts_of(node, i));
		set_port_latencies(object, node, i);
		if (node->plan->port_convoys[i].carries)
			set_convoys(object, node, i);
		if (port->info != NULL)
			json_object_set_new(object, "device", port->info(port));
		json_object_set_new(ports, node->plan->port_names[i], object);
	}
	return ports;
}

// What went to each output of a function.
static json_t *outputs_of(const struct cv_node *node, unsigned function)
{
	const struct cv_plan_function *of = &node->plan->functions[function];
	json_t *outputs = json_object();

	for (unsigned i = 0; i < of->outputs_count; i++)
		set(outputs, of->outputs[i],
			function_sum(node, function,
				offsetof(struct cv_nf_counters, outputs) + i * sizeof(uint64_t)));
	return outputs;
}

// The names of the chains that each function stands in, an array for each.
static void set_chains(json_t *functions, const struct cv_plan *plan)
{
	bool(*in)[CV_CHAINS_MAX] = calloc(plan->functions_count, sizeof(*in));

	if (in == NULL)
		return;
	for (unsigned i = 0; i < plan->stages_count; i++)
		for (unsigned j = 0; j < plan->stages[i].path_length; j++)
			in[plan->stages[i].path[j]][plan->stages[i].chain] = true;
	for (unsigned i = 0; i < plan->functions_count; i++) {
		json_t *chains = json_array();

		for (unsigned j = 0; j < plan->chains_count; j++)
			if (in[i][j])
				json_array_append_new(chains, json_string(plan->chains[j].name));
		json_object_set_new(
			json_object_get(functions, plan->functions[i].name), "chains", chains);
	}
	free(in);
}

json_t *cv_counts_functions(const struct cv_node *node)
{
	json_t *functions = json_object();

	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const struct cv_plan_function *function = &node->plan->functions[i];
		json_t *object = json_object();
		json_t *drops = json_object();

		json_object_set_new(object, "type", json_string(function->nf->name));
		set(object, "packets", FUNCTION_SUM(node, i, packets));
		set(object, "bytes", FUNCTION_SUM(node, i, bytes));
		set(object, "busy_cycles",
			FUNCTION_SUM(node, i, busy_cycles) + cv_node_flows_busy(node, i));
		for (unsigned why = 0; function->nf->drops[why] != NULL; why++)
			set(drops, function->nf->drops[why], function_drops(node, i, why));
		json_object_set_new(object, "drops", drops);
		set(object, "originated", FUNCTION_SUM(node, i, originated));
		set(object, "absorbed", FUNCTION_SUM(node, i, absorbed));
		set(object, "held", FUNCTION_SUM(node, i, held) - FUNCTION_SUM(node, i, released));
		set(object, "copied_out", FUNCTION_SUM(node, i, copied_out));
		set_function_latencies(object, node, i);
		if (function->outputs_count > 0)
			json_object_set_new(object, "outputs", outputs_of(node, i));
		if (function->nf->info != NULL)
			json_object_set_new(object, "info", function->nf->info(node->functions[i]));
		json_object_set_new(functions, function->name, object);
	}
	set_chains(functions, node->plan);
	return functions;
}

json_t *cv_counts_workers(const struct cv_node *node)
{
	json_t *workers = json_array();

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		const struct cv_worker *worker = &node->workers[i];
		json_t *object = json_object();

		set(object, "core", node->plan->workers[i].core);
		set(object, "poll_iterations", cv_counted(&worker->iterations));
		set(object, "busy_cycles", cv_counted(&worker->busy_cycles));
		set(object, "total_cycles", cv_counted(&worker->total_cycles));
		set(object, "longest_iteration_ns",
			(uint64_t)((double)cv_counted(&worker->longest_cycles) * NS_PER_S /
				   (double)rte_get_tsc_hz()));
		cv_scale_count(node, i, object);
		json_array_append_new(workers, object);
	}
	return workers;
}

json_t *cv_counts_sandbox(const struct cv_node *node)
{
	json_t *object = json_object();

	json_object_set_new(object, "on", json_boolean(node->sandbox.on));
	set(object, "landlock", node->sandbox.on ? (uint64_t)node->sandbox.landlock : 0);
	set(object, "uid", geteuid());
	set(object, "capabilities", cv_capabilities_now());
	json_object_set_new(
		object, "dumpable", json_boolean(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1));
	return object;
}

json_t *cv_counts_accounting(const struct cv_node *node)
{
	const struct cv_plan *plan = node->plan;
	json_t *accounting = json_object();
	uint64_t originated = 0;
	uint64_t received = node->gone.received;
	uint64_t absorbed = 0;
	uint64_t dropped = 0;
	uint64_t sent = node->gone.sent;
	uint64_t held = 0;

	for (unsigned i = 0; i < plan->ports_count; i++) {
		received += PORT_SUM(node, i, rx_packets);
		sent += PORT_SUM(node, i, tx_packets);
		for (unsigned why = 0; why < CV_DROP_REASONS; why++)
			dropped += port_drops(node, i, why);
	}
	for (unsigned i = 0; i < plan->functions_count; i++) {
		for (unsigned why = 0; plan->functions[i].nf->drops[why] != NULL; why++)
			dropped += function_drops(node, i, why);
		originated += FUNCTION_SUM(node, i, originated);
		absorbed += FUNCTION_SUM(node, i, absorbed);
		held += FUNCTION_SUM(node, i, held) - FUNCTION_SUM(node, i, released);
	}
	dropped += cv_node_flows_drops(node) + node->gone.dropped;
	originated += cv_node_flows_originated(node) + node->gone.originated;
	absorbed += node->gone.absorbed;
	for (unsigned i = 0; i < plan->rings_count; i++)
		held += cv_ring_count(node->rings[i]);
	held += cv_node_handoff_count(node);
	set(accounting, "received", received);
	set(accounting, "originated", originated);
	set(accounting, "sent", sent);
	set(accounting, "dropped", dropped);
	set(accounting, "absorbed", absorbed);
	set(accounting, "held", held);
	return accounting;
}

static json_int_t get(const json_t *accounting, const char *key)
{
	return json_integer_value(json_object_get(accounting, key));
}

bool cv_counts_conserved(const json_t *accounting)
{
	return get(accounting, "received") + get(accounting, "originated") ==
	       get(accounting, "sent") + get(accounting, "dropped") + get(accounting, "absorbed") +
		       get(accounting, "held");
}

// Read while workers take and give back: right to a few bursts, exact when no packet is there.
static json_t *counts_of_buffers(const struct cv_node *node)
{
	json_t *object = json_object();

	set(object, "total", node->pool->size);
	set(object, "in_use", rte_mempool_in_use_count(node->pool));
	return object;
}

json_t *cv_counts_now(const struct cv_node *node)
{
	json_t *counts = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "schema",
		"convoy.counts/3", "ports", cv_counts_ports(node), "next_hops",
		cv_counts_next_hops(node), "functions", cv_counts_functions(node), "flows",
		cv_node_flows_counts(node), "workers", cv_counts_workers(node), "accounting",
		cv_counts_accounting(node), "buffers", counts_of_buffers(node), "tsc_hz",
		(json_int_t)rte_get_tsc_hz());
	json_t *standby = cv_standby_describe();

	if (node->openflow != NULL)
		json_object_set_new(counts, "openflow", counts_of_controllers(node->openflow));
	if (standby != NULL)
		json_object_set_new(counts, "standby", standby);
	return counts;
}

json_t *cv_counts(const struct cv_node *node)
{
	json_t *counts = cv_counts_now(node);
	json_t *accounting = json_object_get(counts, "accounting");

	json_object_set_new(accounting, "conserved", json_boolean(cv_counts_conserved(accounting)));
	return counts;
}
