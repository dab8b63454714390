// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "chain/repack.h"
#include "daemon/claims.h"
#include "daemon/node.h"
#include "daemon/node_workers.h"
#include "daemon/scale.h"
#include "daemon/stop_signals.h"
#include "dpdk/table_memory.h"
#include "port/packet_pool.h"
#include "shared/pool.h"

#define DEVICE_BUFFERS 8192 // of each queue where devices or other processes have packets in rings
#define PORT_BUFFERS 512 // of each queue of a port that copies
// Under way in each worker: what its functions make at a time, a frame for each next hop, what waits
// for neighbours, its cache.
#define WORKER_BUFFERS 4096
#define POOL_CACHE 512
#define JUMBO_MTU 9216 // of ports for whose longer frames no buffers are made
#define RING_BUFFERS 1024 // of each ring of a pipeline
#define RING_VIEWS (2 * CV_CONVOYS_VIEWS) // of one that convoys may pass

static void pause_ms(unsigned ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
}

// Bytes of layer 3 that the node's buffers must hold for a port.
static unsigned mtu_of(const struct cv_port_config *port)
{
	if (!port->any_length)
		return port->mtu;
	return port->mtu_given ? RTE_MIN(port->mtu, JUMBO_MTU) : 1500;
}

// Whether somebody else reads packets where they lie.
static bool shares_packets(const struct cv_plan *plan)
{
	bool shares = false;

	for (unsigned i = 0; i < plan->ports_count; i++)
		shares |= plan->ports[i]->needs.shared_packets;
	return shares;
}

// Whether other processes have the buffers mapped.
static bool shares_pool(const struct cv_plan *plan)
{
	bool shares = false;

	for (unsigned i = 0; i < plan->ports_count; i++)
		shares |= plan->ports[i]->needs.shared_pool;
	return shares;
}

static struct rte_mempool *make_pool(const struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	const unsigned rings = plan->rings_count + node->handoff.rings_count;
	unsigned packets = plan->workers_count * WORKER_BUFFERS + rings * RING_BUFFERS;
	unsigned room = RTE_MBUF_DEFAULT_BUF_SIZE;
	struct rte_mempool *pool;

	for (unsigned i = 0; i < plan->ports_count; i++) {
		const struct cv_port_needs *needs = &plan->ports[i]->needs;

		packets += plan->ports[i]->queues *
			   (needs->drivers || needs->shared_pool ? DEVICE_BUFFERS : PORT_BUFFERS);
		room = RTE_MAX(room, RTE_PKTMBUF_HEADROOM + mtu_of(plan->ports[i]) + CV_ETHER_LEN +
					     2 * CV_VLAN_LEN + 4);
	}
	room = RTE_ALIGN_CEIL(room, RTE_CACHE_LINE_SIZE);
	if (shares_pool(plan) && !shares_packets(plan))
		return cv_shared_pool_create(
			"packets", packets - 1, POOL_CACHE, (uint16_t)room, error);
	pool = cv_packet_pool_create(
		"packets", packets - 1, POOL_CACHE, (uint16_t)room, shares_packets(plan));
	if (pool == NULL)
		cv_error_set(error,
			"no memory for %u packets of %u bytes: %s; raise memory.mb (a plan's "
			"eal.memory_mb), which is %u",
			packets, room, rte_strerror(rte_errno), plan->memory_mb);
	return pool;
}

struct cv_nf_env cv_node_function_env(const struct cv_node *node, unsigned function)
{
	const struct cv_plan *plan = node->plan;

	return (struct cv_nf_env){
		.name = plan->functions[function].name,
		.workers = plan->workers_count,
		.runners = cv_node_handoff_workers(plan, function),
		.socket = SOCKET_ID_ANY,
		.ports = plan->port_names,
		.ports_count = plan->ports_count,
		.outputs = plan->functions[function].outputs,
		.outputs_count = plan->functions[function].outputs_count,
	};
}

static int make_functions(struct cv_node *node, struct cv_error *error)
{
	static const struct cv_files none = {.count = 0};
	const struct cv_plan *plan = node->plan;

	node->functions = calloc(plan->functions_count + 1, sizeof(*node->functions));
	node->configs = calloc(plan->functions_count + 1, sizeof(*node->configs));
	if (node->functions == NULL || node->configs == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->functions_count; i++) {
		const struct cv_plan_function *function = &plan->functions[i];
		const struct cv_nf_env env = cv_node_function_env(node, i);

		cv_function_config_set(&node->configs[i], function->nf, function->config, &none);
		node->functions[i] = cv_nf_create(function->nf, function->config, &env, error);
		if (node->functions[i] == NULL)
			return -EINVAL;
	}
	return 0;
}

int cv_node_check_claims(const struct cv_node *node, void *const *instances, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	struct cv_claimant *claimants = calloc(plan->functions_count + 1, sizeof(*claimants));
	int rc;

	if (claimants == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->functions_count; i++)
		claimants[i] = (struct cv_claimant){
			plan->functions[i].nf, instances[i], plan->functions[i].name};
	rc = cv_claims_check(claimants, plan->functions_count, error);
	free(claimants);
	return rc;
}

static int open_ports(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;

	node->ports = calloc(plan->ports_count, sizeof(struct cv_port *));
	if (node->ports == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->ports_count; i++) {
		struct cv_error why = {0};

		plan->ports[i]->own_packets = shares_packets(plan);
		node->ports[i] =
			cv_port_open(plan->ports[i], i, plan->workers_count, node->pool, &why);
		if (node->ports[i] == NULL) {
			cv_error_set(error, "port \"%s\": %s", plan->port_names[i], why.text);
			return -EIO;
		}
		if (node->ports[i]->rx_queues < plan->ports[i]->queues) {
			cv_error_set(error,
				"port \"%s\": queues: %u: the device has %u; ask for no more",
				plan->port_names[i], plan->ports[i]->queues,
				node->ports[i]->rx_queues);
			return -EINVAL;
		}
	}
	return 0;
}

void cv_node_start_function(
	const struct cv_node *node, unsigned function, void *instance, void *running)
{
	struct cv_nf_env env = cv_node_function_env(node, function);
	uint8_t macs[CV_PORTS_MAX][6];
	uint16_t mtus[CV_PORTS_MAX];

	for (unsigned i = 0; i < env.ports_count; i++) {
		memcpy(macs[i], node->ports[i]->mac, sizeof(macs[i]));
		mtus[i] = node->ports[i]->mtu;
	}
	env.macs = (const uint8_t(*)[6])macs;
	env.mtus = mtus;
	env.running = running;
	cv_nf_start(node->plan->functions[function].nf, instance, &env);
}

static int start_functions(const struct cv_node *node, struct cv_error *error)
{
	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const struct cv_nf *nf = node->plan->functions[i].nf;
		const struct cv_nf_env env = cv_node_function_env(node, i);

		cv_node_start_function(node, i, node->functions[i], NULL);
		if (nf->attach != NULL && nf->attach(node->functions[i], &env, error) != 0)
			return -EIO;
	}
	return 0;
}

// Whether convoys can come into a ring: those of any port may.
static unsigned ring_views(const struct cv_plan *plan)
{
	return plan->convoys ? RING_VIEWS : RING_BUFFERS;
}

static int make_rings(struct cv_node *node, struct cv_error *error)
{
	node->rings = calloc(node->plan->rings_count + 1, sizeof(struct cv_ring *));
	if (node->rings == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < node->plan->rings_count; i++) {
		node->rings[i] = cv_ring_create(
			node->plan->rings[i], RING_BUFFERS, ring_views(node->plan), error);
		if (node->rings[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

// What carries convoys: next hops, and what the ports are received with.
static int make_convoys(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	size_t count = plan->ports_count * plan->workers_count;

	if (!plan->convoys)
		return 0;
	node->next_hop_set = calloc(1, sizeof(*node->next_hop_set));
	node->convoy_rx = calloc(count, sizeof(*node->convoy_rx));
	node->rx_frames =
		rte_calloc("rx_frames", count, sizeof(*node->rx_frames), RTE_CACHE_LINE_SIZE);
	if (node->next_hop_set == NULL || node->convoy_rx == NULL || node->rx_frames == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct cv_plan_convoys *from = &plan->port_convoys[i / plan->workers_count];
		struct cv_convoy_rx *to = &node->convoy_rx[i];

		to->udp_port = rte_cpu_to_be_16(from->udp_port);
		to->address = from->address;
		memcpy(to->senders, from->senders, sizeof(to->senders));
		to->senders_count = from->senders_count;
		to->copies = node->ports[i / plan->workers_count]->rx_views != NULL;
		to->counters = &node->rx_frames[i];
		to->pool = node->pool;
		if (from->carries) {
			to->nfi_convoys = calloc(CV_NFIS, sizeof(*to->nfi_convoys));
			if (to->nfi_convoys == NULL)
				return -ENOMEM;
		}
		if (from->reassemble) {
			to->reassembly = cv_reassembly_make(
				cv_frame_max(node->ports[i / plan->workers_count]));
			if (to->reassembly == NULL)
				return -ENOMEM;
		}
		to->expander = from->expander;
		for (unsigned j = 0; j < to->expander.dictionaries_count; j++)
			cv_dictionary_hold(to->expander.dictionaries[j]);
	}
	return cv_next_hop_set_init(node->next_hop_set, plan, node->ports, error);
}

static void free_convoy_rx(struct cv_node *node)
{
	const size_t count = node->plan->ports_count * node->plan->workers_count;

	for (size_t i = 0; node->convoy_rx != NULL && i < count; i++) {
		free(node->convoy_rx[i].nfi_convoys);
		cv_reassembly_free(node->convoy_rx[i].reassembly);
		for (unsigned j = 0; j < node->convoy_rx[i].expander.dictionaries_count; j++)
			cv_dictionary_release(node->convoy_rx[i].expander.dictionaries[j]);
	}
	free(node->convoy_rx);
}

// But for the plan.
static void free_node(struct cv_node *node)
{
	const struct cv_plan *plan;

	if (node == NULL)
		return;
	plan = node->plan;
	cv_node_free_workers(node);
	cv_node_flows_free(node);
	cv_node_handoff_free(node);
	if (node->next_hop_set != NULL)
		cv_next_hop_set_fini(node->next_hop_set);
	free(node->next_hop_set);
	free_convoy_rx(node);
	rte_free(node->rx_frames);
	for (unsigned i = 0; node->rings != NULL && i < plan->rings_count; i++)
		if (node->rings[i] != NULL)
			cv_ring_free(node->rings[i]);
	free(node->rings);
	for (unsigned i = 0; node->functions != NULL && i < plan->functions_count; i++)
		if (node->functions[i] != NULL)
			cv_nf_destroy(plan->functions[i].nf, node->functions[i]);
	free(node->functions);
	for (unsigned i = 0; node->configs != NULL && i < plan->functions_count; i++)
		cv_function_config_clear(&node->configs[i]);
	free(node->configs);
	for (unsigned i = 0; node->ports != NULL && i < plan->ports_count; i++)
		if (node->ports[i] != NULL)
			node->ports[i]->close(node->ports[i]);
	free(node->ports);
	rte_mempool_free(node->pool);
	free(node);
}

struct cv_node *cv_node_make(const struct cv_plan *plan, struct cv_error *error)
{
	struct cv_node *node = calloc(1, sizeof(*node));

	// Drivers that hand DPDK's memory over to others do not know heaps beside it.
	cv_table_memory_limit(shares_packets(plan) ? 0 : (size_t)plan->memory_mb << 20);
	if (node != NULL)
		node->plan = plan;
	if (node != NULL && make_functions(node, error) == 0 &&
		cv_node_check_claims(node, node->functions, error) == 0 &&
		cv_scale_check(node, error) == 0 && cv_node_flows_find(node, error) == 0 &&
		cv_node_handoff_find(node, error) == 0)
		return node;
	cv_error_set(error, "out of memory"); // unless an error says more
	free_node(node);
	return NULL;
}

int cv_node_connect(struct cv_node *node, struct cv_error *error)
{
	int rc = 0;

	node->pool = make_pool(node, error);
	if (node->pool == NULL)
		return -ENOMEM;
	if ((rc = open_ports(node, error)) == 0 && (rc = make_rings(node, error)) == 0 &&
		(rc = make_convoys(node, error)) == 0 &&
		(rc = cv_node_handoff_make(node, error)) == 0 &&
		(rc = cv_node_flows_make(node, error)) == 0)
		rc = cv_node_make_workers(node);
	for (unsigned i = 0; rc == 0 && i < node->plan->workers_count; i++)
		cv_node_handoff_read(node, i);
	if (rc == 0)
		rc = start_functions(node, error);
	if (rc != 0)
		cv_error_set(error, "out of memory"); // unless an error says more
	return rc;
}

int cv_node_start(struct cv_node *node, struct cv_error *error)
{
	for (unsigned i = 0; i < node->plan->ports_count; i++) {
		struct cv_port *port = node->ports[i];
		struct cv_error why = {0};

		if (cv_port_start(port, &why) == 0)
			continue;
		cv_error_set(error, "port \"%s\": %s", port->name, why.text);
		while (i-- > 0)
			cv_port_stop(node->ports[i]);
		return -EIO;
	}
	return 0;
}

void cv_node_forward(struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		rte_eal_remote_launch(cv_worker_run, &node->workers[i], i + 1);
}

// The plan has the next hops that there are: object in place of that of its name, NULL for none.
static void note_next_hop(struct cv_node *node, const char *name, const json_t *object)
{
	json_t *next_hops = json_object_get(node->plan->json, "next_hops"), *element;
	size_t i;

	if (next_hops == NULL) {
		next_hops = json_array();
		json_object_set_new(node->plan->json, "next_hops", next_hops);
	}
	json_array_foreach (next_hops, i, element)
		if (strcmp(json_string_value(json_object_get(element, "name")), name) == 0) {
			json_array_remove(next_hops, i);
			break;
		}
	if (object != NULL)
		json_array_append_new(next_hops, json_deep_copy(object));
}

int cv_node_put_next_hop(struct cv_node *node, const json_t *object, struct cv_error *error)
{
	int index;

	if (node->next_hop_set == NULL) {
		cv_error_set(error, "no port of this node carries convoys");
		return -ENOENT;
	}
	index = cv_next_hop_set_put(node->next_hop_set, object, error);
	if (index >= 0)
		note_next_hop(node, node->next_hop_set->next_hops[index].name, object);
	return index;
}

int cv_node_remove_next_hop(struct cv_node *node, const char *name, struct cv_error *error)
{
	int index;

	if (node->next_hop_set == NULL) {
		cv_error_set(error, "no port of this node carries convoys");
		return -ENOENT;
	}
	index = cv_next_hop_set_remove(node->next_hop_set, name, error);
	if (index >= 0)
		note_next_hop(node, name, NULL);
	// No worker counts there any more; another next hop may get the index.
	for (unsigned i = 0; index >= 0 && i < node->plan->workers_count; i++)
		memset(&node->workers[i].tx->next_hop_counters[index], 0,
			sizeof(struct cv_frame_counters));
	return index;
}

bool cv_node_ended(const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->chains_count; i++) {
		const struct cv_plan_chain *chain = &node->plan->chains[i];
		const struct cv_port *port = node->ports[chain->in];

		if (chain->from_outputs) // nothing comes in by its port
			continue;
		if (port->ended == NULL || !port->ended(port))
			return false;
	}
	return true;
}

// Says which worker is waited for, should it be stuck.
static void name_worker(const struct cv_node *node, unsigned i)
{
	static char names[CV_WORKERS_MAX][40];

	snprintf(names[i], sizeof(names[i]), "worker %u (core %u)", i, node->plan->workers[i].core);
	cv_stop_signals_waits_for(names[i]);
}

// Waits until every worker has begun and ended a poll iteration from now on.
static void wait_for_iterations(const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		const uint64_t *iterations = &node->workers[i].iterations;
		// Pairs with the release store at the end of a poll iteration.
		uint64_t before = __atomic_load_n(iterations, __ATOMIC_ACQUIRE);

		name_worker(node, i);
		while (__atomic_load_n(iterations, __ATOMIC_ACQUIRE) < before + 2)
			pause_ms(1);
	}
}

static bool rings_empty(const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->rings_count; i++)
		if (cv_ring_count(node->rings[i]) > 0)
			return false;
	return cv_node_handoff_count(node) == 0;
}

void cv_node_stop(struct cv_node *node)
{
	// Both pair with the acquire load in cv_worker_run().
	__atomic_store_n(&node->phase, CV_WORKER_DRAIN, __ATOMIC_RELEASE);
	// A ring can look empty while its packets are in a worker's hands: each round moves them
	// one stage on at least, so as many quiet rounds as there are stages are enough.
	for (unsigned quiet = 0; quiet <= node->plan->stages_count - node->plan->spare_count;
		quiet++) {
		wait_for_iterations(node);
		if (!rings_empty(node))
			quiet = 0;
	}
	cv_node_join(node);
}

void cv_node_join(struct cv_node *node)
{
	__atomic_store_n(&node->phase, CV_WORKER_EXIT, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		name_worker(node, i);
		rte_eal_wait_lcore(i + 1);
	}
	cv_stop_signals_waits_for(NULL);
	for (unsigned i = 0; i < node->plan->ports_count; i++)
		cv_port_stop(node->ports[i]);
}

void cv_node_free(struct cv_node *node)
{
	struct cv_plan *plan = node == NULL ? NULL : (struct cv_plan *)(uintptr_t)node->plan;

	free_node(node);
	cv_plan_free(plan);
}
