// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-workers [REPEATS [FLOWS]]: what a second worker adds, in memory, on cores 0 and 1: packets per
// second of a chain that runs both ways between two ports, with one worker and with two: of which each
// polls a port, so that half of its packets are of flows that the other keeps; or each polls a queue of
// both ports by which its own flows come ("by_flows"), as from a card with a symmetric hash. Chains:
// l2fwd, which remembers nothing; a stateful firewall, whose flows the workers share by a hash of both
// ends; the same and a NAT, by the internal address.
//
// The node is the real one (daemon/node.h); only its ports are not. They write one of FLOWS packets,
// by chance, into a new buffer, and free what they are given. A port waits while a worker behind it
// has no room, so nothing is dropped. Repeats alternate. One line of JSON for each chain: millions of
// packets per second, medians with the least and the most, and cycles per packet of one worker.
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "daemon/node.h"
#include "daemon/node_workers.h"
#include "packet/ipv4.h"

#define REPEATS_MAX 99
#define RUN_MS 200
#define FRAME 60
#define WORKERS 2
#define SUBSCRIBERS 1024
#define LEFT 0
#define RIGHT 1

// A frame of each flow as it comes in by a port, and whether it is known.
struct frame {
	uint8_t bytes[64];
};

// A port of one node.
struct memory_port {
	struct cv_port port; // first: it takes the null port's place
	struct bench *bench;
	unsigned side;
	// Of these each packet received writes. Who sends by the port, another worker, reads what is above.
	struct memory_queue {
		uint64_t state; // of chance
		uint32_t next; // when all flows are begun, in turn
		uint32_t first, count; // of the port's frames, which one is drawn from
	} __rte_cache_aligned queues[WORKERS];
};

struct bench {
	struct cv_plan *plan;
	struct cv_node *node;
	struct frame *frames[2]; // by side
	uint8_t *known; // flows whose reply is known, or about to be
	uint32_t flows, known_count;
	bool learns;
	struct memory_port ports[2];
	struct cv_port *list[2];
};

static void die(const char *text)
{
	fprintf(stderr, "bench-workers: %s\n", text);
	exit(1);
}

static uint32_t draw(struct memory_queue *queue)
{
	queue->state ^= queue->state << 13;
	queue->state ^= queue->state >> 7;
	queue->state ^= queue->state << 17;
	return queue->first + (uint32_t)((queue->state >> 32) * queue->count >> 32);
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;
	struct memory_queue *from_queue = &memory->queues[queue];
	const struct bench *bench = memory->bench;
	const struct frame *from[CV_BURST_MAX];

	if (bench->learns && memory->side == RIGHT)
		return 0;
	if (from_queue->count == 0) // its worker keeps no flow
		return 0;
	if (n == 0 || rte_mempool_get_bulk(bench->node->pool, (void **)packets, n) != 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const uint32_t flow =
			bench->learns ? from_queue->next++ % bench->flows : draw(from_queue);

		from[i] = &bench->frames[memory->side][flow];
		rte_prefetch0(from[i]);
	}
	for (unsigned i = 0; i < n; i++) { // as cv_buffers_free() left it
		packets[i]->data_off = RTE_PKTMBUF_HEADROOM;
		packets[i]->data_len = FRAME;
		packets[i]->pkt_len = FRAME;
		packets[i]->ol_flags = 0;
		memcpy(rte_pktmbuf_mtod(packets[i], uint8_t *), from[i]->bytes, FRAME);
	}
	return n;
}

// What left by the right port, turned around, is a reply. Where both workers receive all flows, the one that
// is first learns it.
static void learn(struct bench *bench, const uint8_t *data)
{
	uint8_t *reply;
	uint32_t flow;

	memcpy(&flow, data + 44, sizeof(flow));
	if (flow >= bench->flows)
		die("a packet was not forwarded as it came");
	if (__atomic_exchange_n(&bench->known[flow], 1, __ATOMIC_RELAXED) != 0)
		return;
	reply = bench->frames[RIGHT][flow].bytes;
	memcpy(reply, data, FRAME);
	memcpy(reply + 26, data + 30, 4);
	memcpy(reply + 30, data + 26, 4);
	memcpy(reply + 34, data + 36, 2);
	memcpy(reply + 36, data + 34, 2);
	__atomic_add_fetch(&bench->known_count, 1, __ATOMIC_RELAXED);
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;

	if (memory->bench->learns && memory->side == RIGHT)
		for (unsigned i = 0; i < n; i++)
			learn(memory->bench, rte_pktmbuf_mtod(packets[i], const uint8_t *));
	cv_buffers_free(packets, n);
	return n;
}

static void write_frames(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->flows; i++) {
		uint8_t *frame = bench->frames[LEFT][i].bytes;
		struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + 14);
		const rte_be16_t ports[2] = {
			rte_cpu_to_be_16((uint16_t)(1024 + i / SUBSCRIBERS)), RTE_BE16(443)};

		frame[12] = 8;
		*ip = (struct cv_ipv4){.version_ihl = 0x45,
			.total_len = RTE_BE16(FRAME - 14),
			.ttl = 64,
			.proto = IPPROTO_UDP,
			.src = rte_cpu_to_be_32(10u << 24 | i % SUBSCRIBERS),
			.dst = RTE_BE32(0xc6336401)};
		ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
		memcpy(frame + 34, ports, 4);
		frame[39] = FRAME - 34;
		frame[40] = 1; // there is a checksum
		memcpy(frame + 44, &i, sizeof(i));
	}
}

// A plan of a chain both ways, with a queue of each port for each worker, or one port each.
static json_t *make_plan(
	const char *path, const char *back, unsigned workers, bool by_flows, uint32_t flows)
{
	static const char functions[] =
		"[{\"name\": \"l2\", \"type\": \"l2fwd\", \"config\": {}},"
		" {\"name\": \"fw\", \"type\": \"firewall\", \"config\": {\"stateful\": true,"
		"  \"rules\": [{\"action\": \"allow\", \"src\": \"10.0.0.0/8\"}]}},"
		" {\"name\": \"nat\", \"type\": \"nat\", \"config\": {\"outside\": [\"right\"],"
		"  \"inside\": [\"10.0.0.0/8\"], \"pool\": [\"192.0.2.0/26\"],"
		"  \"mappings\": 4194304}}]";
	static const char stage[] =
		"{\"worker\": %u, \"chain\": \"%s\", \"source\": %s, \"path\": %s,"
		" \"sink\": {\"port\": \"%s\"}}";
	json_t *stages = json_array(), *list = json_array(), *plan;
	const bool shared = workers > 1 && strstr(path, "l2") == NULL;
	const unsigned queues = by_flows ? workers : 1;
	char text[512];

	for (unsigned way = 0; way < 2; way++) {
		const char *name = way == 0 ? "go" : "back";
		const char *sink = way == 0 ? "right" : "left";
		const char *steps = way == 0 ? path : back;

		for (unsigned q = 0; q < queues; q++) {
			char from[64];

			snprintf(from, sizeof(from), "{\"port\": \"%s\", \"queue\": %u}",
				way == 0 ? "left" : "right", q);
			snprintf(text, sizeof(text), stage, by_flows ? q : way % workers, name,
				from, steps, sink);
			json_array_append_new(stages, json_loads(text, 0, NULL));
		}
		for (unsigned w = 0; shared && w < workers; w++) {
			snprintf(text, sizeof(text), stage, w, name, "{\"handoff\": true}", steps,
				sink);
			json_array_append_new(stages, json_loads(text, 0, NULL));
		}
	}
	for (unsigned w = 0; w < workers; w++)
		json_array_append_new(list, json_pack("{s:i}", "core", (int)w));
	plan = json_pack("{s:s, s:[{s:s,s:s,s:i},{s:s,s:s,s:i}], s:o,"
			 " s:[{s:s,s:{},s:s,s:s},{s:s,s:{},s:s,s:s}], s:o, s:o, s:{s:i}}",
		"schema", "convoy.plan/1", "ports", "name", "left", "kind", "null", "queues",
		(int)queues, "name", "right", "kind", "null", "queues", (int)queues, "functions",
		json_loads(functions, 0, NULL), "chains", "name", "go", "match", "in", "left",
		"out", "right", "name", "back", "match", "in", "right", "out", "left", "stages",
		stages, "workers", list, "flows", "max", (int)(flows * 4));
	return plan;
}

static void replace_port(struct bench *bench, unsigned side)
{
	struct memory_port *memory = &bench->ports[side];
	struct cv_node *node = bench->node;

	memory->bench = bench;
	memory->side = side;
	for (unsigned q = 0; q < WORKERS; q++)
		memory->queues[q] = (struct memory_queue){
			.state = side + 1 + WORKERS * q, .count = bench->flows};
	node->ports[side]->rx = rx;
	node->ports[side]->tx = tx;
	memory->port = *node->ports[side];
	bench->list[side] = &memory->port;
	for (unsigned w = 0; w < node->plan->workers_count; w++)
		for (unsigned s = 0; s < node->workers[w].sources_count; s++) {
			struct cv_source *source = &node->workers[w].sources[s];

			if (source->port == node->ports[side]) {
				source->port = &memory->port;
				source->waits = true;
			}
		}
}

static void run(struct bench *bench)
{
	bench->node->phase = CV_WORKER_RUN;
	cv_node_forward(bench->node);
}

static uint64_t sent(const struct bench *bench)
{
	uint64_t sum = 0;

	for (unsigned w = 0; w < bench->plan->workers_count; w++)
		for (unsigned p = 0; p < 2; p++)
			sum += cv_counted(
				&bench->node->workers[w].paths.ports_counters[p].tx_packets);
	return sum;
}

static void sleep_ms(unsigned ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
}

// What the first worker finds homes with of packets by a port; NULL: nothing is handed over.
static struct cv_flow_home *finder_of(const struct bench *bench, unsigned side)
{
	for (unsigned i = 0; i < bench->plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &bench->plan->stages[i];

		if (bench->node->handoff.finders[i] != NULL && stage->worker == 0 &&
			bench->plan->chains[stage->chain].in == side)
			return bench->node->handoff.finders[i];
	}
	return NULL;
}

// Whether the first worker keeps the flow of a frame that comes by a port.
static bool is_first(struct cv_flow_home *finder, unsigned side, const struct frame *frame)
{
	struct frame copy = *frame; // of a flow that is known it is rewritten, whoever keeps it
	struct cv_view view = {.in = (uint8_t)side};
	uint8_t keeps;

	cv_view_set(&view, copy.bytes, FRAME);
	cv_flow_home_find(finder, &view, &keeps, 1);
	return keeps == 0 && (view.in & CV_VIEW_DONE) == 0;
}

// Puts the frames of the first worker's flows first, and has each queue draw from its worker's: half of
// them, where nobody keeps any.
static void divide(struct bench *bench, unsigned side)
{
	struct cv_flow_home *finder = finder_of(bench, side);
	struct memory_queue *queues = bench->ports[side].queues;
	struct frame *frames = bench->frames[side];
	uint32_t first = 0, behind = bench->flows;

	while (finder != NULL && first < behind) {
		if (is_first(finder, side, &frames[first])) {
			first++;
		} else {
			const struct frame other = frames[--behind];

			frames[behind] = frames[first];
			frames[first] = other;
		}
	}
	if (finder == NULL)
		first = bench->flows / WORKERS;
	queues[0].count = first;
	queues[1].first = first;
	queues[1].count = bench->flows - first;
}

static void bench_make(struct bench *bench, const char *path, const char *back, unsigned workers,
	bool by_flows, uint32_t flows)
{
	json_t *json = make_plan(path, back, workers, by_flows, flows);
	char *text = json_dumps(json, 0);
	struct cv_error error = {0};

	memset(bench, 0, sizeof(*bench));
	bench->flows = flows;
	for (unsigned side = 0; side < 2; side++)
		bench->frames[side] = calloc(flows, sizeof(struct frame));
	bench->known = calloc(flows, 1);
	write_frames(bench);
	bench->plan = cv_plan_parse(text, strlen(text), "plan", &error);
	if (bench->plan == NULL)
		die(error.text);
	bench->node = cv_node_make(bench->plan, &error);
	if (bench->node == NULL || cv_node_connect(bench->node, &error) != 0)
		die(error.text);
	for (unsigned side = 0; side < 2; side++)
		replace_port(bench, side);
	for (unsigned w = 0; w < workers; w++)
		bench->node->workers[w].tx->ports = bench->list;
	for (unsigned i = 0; i < bench->plan->stages_count; i++)
		bench->node->handoff.paths[i].waits = true;
	bench->learns = true;
	run(bench);
	while (__atomic_load_n(&bench->known_count, __ATOMIC_RELAXED) < flows)
		sleep_ms(10);
	cv_node_stop(bench->node);
	bench->learns = false;
	for (unsigned side = 0; by_flows && side < 2; side++)
		divide(bench, side);
	json_decref(json);
	free(text);
}

static void bench_free(struct bench *bench)
{
	cv_node_free(bench->node);
	free(bench->frames[LEFT]);
	free(bench->frames[RIGHT]);
	free(bench->known);
}

// Millions of packets per second.
static double measure(
	const char *path, const char *back, unsigned workers, bool by_flows, uint32_t flows)
{
	static struct bench of;
	struct bench *const bench = &of;
	uint64_t begin, packets;
	double seconds;

	bench_make(bench, path, back, workers, by_flows, flows);
	run(bench);
	sleep_ms(50);
	begin = rte_rdtsc();
	packets = sent(bench);
	sleep_ms(RUN_MS);
	packets = sent(bench) - packets;
	seconds = (double)(rte_rdtsc() - begin) / (double)rte_get_tsc_hz();
	cv_node_stop(bench->node);
	bench_free(bench);
	return (double)packets / seconds / 1e6;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), ascending);
	printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", name, values[n / 2],
		values[0], values[n - 1]);
}

static void compare(const char *path, const char *back, unsigned repeats, uint32_t flows)
{
	double rates[3][REPEATS_MAX], ratios[2][REPEATS_MAX], cycles[REPEATS_MAX];

	for (unsigned r = 0; r < repeats; r++) {
		for (unsigned i = 0; i < 3; i++)
			rates[i][r] = measure(path, back, i == 0 ? 1 : WORKERS, i == 2, flows);
		for (unsigned i = 0; i < 2; i++)
			ratios[i][r] = rates[1 + i][r] / rates[0][r];
		cycles[r] = (double)rte_get_tsc_hz() / rates[0][r] / 1e6;
	}
	printf("{\"path\": %s, \"flows\": %u", path, flows);
	print("one_worker_mpps", rates[0], repeats);
	print("two_workers_mpps", rates[1], repeats);
	print("ratio", ratios[0], repeats);
	print("by_flows_mpps", rates[2], repeats);
	print("by_flows_ratio", ratios[1], repeats);
	print("one_worker_cycles_per_packet", cycles, repeats);
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"1024", "--lcores", "0@(0,1),1@0,2@1", "--log-level=error",
		"--file-prefix=bench-workers"};
	const unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
	const unsigned flows = argc > 2 ? (unsigned)atoi(argv[2]) : 65536;

	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		die("DPDK did not start: are there two cores?");
	if (repeats < 1 || repeats > REPEATS_MAX || flows < 1 || flows > 1u << 20)
		die("REPEATS: give 1 to 99; FLOWS: 1 to 1048576");
	compare("[\"l2\"]", "[\"l2\"]", repeats, flows);
	compare("[\"fw\"]", "[\"fw\"]", repeats, flows);
	compare("[\"fw\", \"nat\"]", "[\"nat\", \"fw\"]", repeats, flows);
	return 0;
}
