// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-worst [--json] [--rules N] [--flows N] [--ms N] [--windows N] [CASE...]: the longest poll
// iteration of a worker, function by function, in the face of what costs it most: rules that a packet
// matches none of, flows and hosts that are all new while others end, fragments without their first,
// neighbours that are not there, names and payloads made to be slow, rules replaced meanwhile.
//
// The node is the real one (daemon/node.h); only its ports are not. One gives 64 packets of the case at
// each poll, the other frees them. An iteration is timed from the moment when the packets are there to
// the next poll. One in which the kernel took the core away says nothing and is left out. Interrupts are
// not seen: so the least of the longest iterations of all windows is what the work takes, and the most
// is printed beside it.
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "daemon/apply.h"
#include "daemon/files.h"
#include "daemon/node.h"
#include "packet/ipv4.h"
#include "tests/bench/traffic.h"

#define FRAME_MAX 1514
#define IP_AT 14
#define UDP_AT (IP_AT + CV_IPV4_LEN)
#define FRAGMENTS 128 // of a packet
#define WARM_MS 1500u // flows that were idle for a second end after that
#define ITERATIONS_LEAST 30 // in a window, however long the worker waits for its core

struct bench_case {
	const char *name;
	const char *type; // of its function; NULL: none
	const char *config; // NULL: rules
	// Writes packet i into a frame of zeros; returns its bytes.
	uint16_t (*write)(uint64_t i, uint8_t *frame);
	bool reloads; // its rules are replaced in each window
};

static struct {
	struct cv_node *node;
	const struct bench_case *of;
	uint64_t next;
	uint64_t begin; // TSC when the iteration's packets were there; 0: there was none
	long switches; // times that the worker lost its core
	uint64_t iterations, preempted; // that were timed, that were left out
	uint64_t longest; // TSC ticks; relaxed atomics: taken by the main thread
} bench;

static unsigned rules_count = 100000, flows_count = 65536, window_ms = 200, windows_count = 10;
static bool as_json;

static void die(const char *text)
{
	fprintf(stderr, "bench-worst: %s\n", text);
	exit(1);
}

// The same i gives the same number.
static uint64_t mix(uint64_t i)
{
	i += 0x9e3779b97f4a7c15;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9;
	i = (i ^ i >> 27) * 0x94d049bb133111eb;
	return i ^ i >> 31;
}

// The headers of UDP with so many bytes behind them; returns the bytes of the frame.
static uint16_t udp(uint8_t *frame, uint32_t source, uint32_t target, uint32_t ports, uint16_t data)
{
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + IP_AT);
	const rte_be16_t words[3] = {rte_cpu_to_be_16((uint16_t)ports),
		rte_cpu_to_be_16((uint16_t)(ports >> 16)), rte_cpu_to_be_16((uint16_t)(8 + data))};

	frame[0] = 2;
	frame[6] = 2;
	frame[12] = 8;
	*ip = (struct cv_ipv4){.version_ihl = 0x45,
		.total_len = rte_cpu_to_be_16((uint16_t)(CV_IPV4_LEN + 8 + data)),
		.ttl = 64,
		.proto = 17,
		.src = rte_cpu_to_be_32(source),
		.dst = rte_cpu_to_be_32(target)};
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
	memcpy(frame + UDP_AT, words, sizeof(words));
	return (uint16_t)(UDP_AT + 8 + data);
}

// An address that is no group and nobody's own.
static uint32_t host(uint64_t random)
{
	return 16u << 24 | ((uint32_t)random & 0x3fffffff);
}

static uint16_t write_new_flow(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i);

	return udp(frame, host(random), host(random >> 32), (uint32_t)mix(random), 18);
}

static uint16_t write_to_service(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i);

	return udp(frame, host(random), 203u << 24 | 113 << 8 | 1, (uint32_t)(random >> 32), 18);
}

static uint16_t write_new_inside(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i);

	return udp(frame, 10u << 24 | (random & 0xffff), host(random >> 32), (uint32_t)mix(random),
		18);
}

static uint16_t write_new_mac(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i);
	const uint16_t bytes = write_new_flow(i, frame);

	memcpy(frame + 1, &random, 5);
	memcpy(frame + 7, (const uint8_t *)&random + 3, 5);
	return bytes;
}

// Packets in fragments of 24 bytes, the last one first.
static uint16_t write_fragment(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i / FRAGMENTS);
	const uint16_t number = FRAGMENTS - 1 - i % FRAGMENTS;
	const uint16_t bytes = udp(frame, host(random), host(random >> 32), 53, 16);
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + IP_AT);

	ip->id = (uint16_t)random;
	ip->fragment =
		rte_cpu_to_be_16((uint16_t)(number * 3 | (number < FRAGMENTS - 1 ? 0x2000 : 0)));
	ip->checksum = 0;
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
	return bytes;
}

// To hosts of a connected network, none of which answers.
static uint16_t write_to_link(uint64_t i, uint8_t *frame)
{
	const uint64_t random = mix(i);

	return udp(frame, host(random), 10u << 24 | (random >> 32 & 0xffff), 53, 18);
}

// What begins to match every rule of ids_rules(), and does not.
static uint16_t write_payload(uint64_t i, uint8_t *frame)
{
	memset(frame + UDP_AT + 8, 'a', 1400);
	for (unsigned at = 39; at < 1400; at += 40)
		frame[UDP_AT + 8 + at] = (uint8_t)('b' + at / 40 % 20);
	return udp(frame, host(mix(i)), host(i), 53, 1400);
}

// Segments of 64 connections that have begun to match every rule for TCP of ids_rules(), and go on to.
static uint16_t write_segment(uint64_t i, uint8_t *frame)
{
	enum { CONNECTIONS = 64, BYTES = 16 };
	const uint32_t seq = rte_cpu_to_be_32((uint32_t)(i / CONNECTIONS) * BYTES);
	const uint16_t bytes = udp(frame, 10u << 24 | (i % CONNECTIONS), 192u << 24 | 2u << 8 | 1,
		80u << 16 | 4000, 12 + BYTES);
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + IP_AT);
	uint8_t *tcp = frame + UDP_AT;

	ip->proto = 6;
	ip->checksum = 0;
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN);
	memcpy(tcp + 4, &seq, sizeof(seq));
	tcp[12] = 0x50;
	tcp[13] = 0x10; // ACK
	for (unsigned at = 0; at < BYTES; at++)
		tcp[20 + at] = at % 2 ? 'b' : 'a';
	return bytes;
}

// Questions about names as long as names can be, each another.
static uint16_t write_question(uint64_t i, uint8_t *frame)
{
	uint8_t *dns = frame + UDP_AT + 8, *name = dns + 12;
	const uint64_t random = mix(i);

	memcpy(dns, &random, 2);
	dns[2] = 1; // recursion is desired
	dns[5] = 1; // question
	for (unsigned label = 0; label < 126; label++, name += 2) {
		name[0] = 1;
		name[1] = (uint8_t)('a' + (label < 16 ? random >> 4 * label & 15 : 0));
	}
	*name++ = 0;
	memcpy(name, (const uint8_t[]){0, 1, 0, 1}, 4);
	return udp(frame, 10u << 24 | (random & 0xffff), host(i), 53u << 16 | 4000,
		(uint16_t)(name + 4 - dns));
}

// What becomes fragments of IPv6.
static uint16_t write_long(uint64_t i, uint8_t *frame)
{
	return udp(frame, host(mix(i)), 192u << 24 | 2u << 8 | (i & 255), 53, 1472);
}

static const struct bench_case cases[] = {
	{"wire", NULL, NULL, write_new_flow, false},
	{"firewall", "firewall", NULL, write_new_flow, false},
	{"firewall-reload", "firewall", NULL, write_new_flow, true},
	{"firewall-fragments", "firewall", NULL, write_fragment, false},
	{"flows", "firewall", "{\"stateful\": true, \"default\": \"allow\"}", write_new_flow,
		false},
	{"flows-fragments", "firewall", "{\"stateful\": true, \"default\": \"allow\"}",
		write_fragment, false},
	{"nat", "nat",
		"{\"outside\": [\"right\"], \"inside\": [\"10.0.0.0/8\"],"
		" \"pool\": [\"192.0.2.0/26\"]}",
		write_new_inside, false},
	{"balancer", "balancer",
		"{\"services\": [{\"address\": \"203.0.113.1\"}],"
		" \"backends\": [{\"address\": \"192.0.2.1\", \"mac\": \"02:00:00:00:00:01\"}]}",
		write_to_service, false},
	{"policer", "policer", "{\"cir_bps\": 1000000, \"per\": \"host\"}", write_new_flow, false},
	{"bridge", "bridge", "{\"sides\": [\"left\", \"right\"]}", write_new_mac, false},
	{"router", "router",
		"{\"addresses\": {\"right\": [\"10.0.0.1/16\"], \"left\": [\"192.0.2.1/24\"]}}",
		write_to_link, false},
	{"router-fragments", "router",
		"{\"addresses\": {\"right\": [\"10.0.0.1/16\"], \"left\": [\"192.0.2.1/24\"]},"
		" \"routes\": [{\"prefix\": \"0.0.0.0/1\", \"via\": \"10.0.0.9\"}],"
		" \"neighbours\": [{\"address\": \"10.0.0.9\", \"mac\": \"02:00:00:00:00:09\"}]}",
		write_fragment, false},
	{"cache", "cache", "{\"outside\": [\"right\"]}", write_question, false},
	{"nat64", "nat64",
		"{\"prefix\": \"2001:db8:64::/96\", \"source\": \"203.0.113.9\","
		" \"source_ipv6\": \"2001:db8:f::1\","
		" \"eam\": [{\"ipv4\": \"192.0.2.0/24\", \"ipv6\": \"2001:db8:a::/120\"}]}",
		write_long, false},
#ifdef CV_HAVE_IDS
	{"ids", "ids", "{\"rules_file\": \"\"}", write_payload, false},
	{"ids-streams", "ids",
		"{\"rules_file\": \"\", \"stateful\": true, \"checksums\": \"ignore\", \"depth\": "
		"0,"
		" \"over_budget\": \"pass\"}",
		write_segment, false},
#endif
};

static void time_iteration(void)
{
	const uint64_t ticks = rte_rdtsc() - bench.begin;
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	if (bench.begin == 0 || usage.ru_nivcsw != bench.switches) {
		bench.switches = usage.ru_nivcsw;
		cv_count(&bench.preempted, bench.begin != 0);
		return;
	}
	if (ticks > __atomic_load_n(&bench.longest, __ATOMIC_RELAXED))
		__atomic_store_n(&bench.longest, ticks, __ATOMIC_RELAXED);
	cv_count(&bench.iterations, 1);
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	time_iteration();
	if (n == 0 || rte_pktmbuf_alloc_bulk(bench.node->pool, packets, n) != 0)
		n = 0;
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(packets[i], uint8_t *);

		memset(frame, 0, 64);
		packets[i]->data_len = RTE_MAX(bench.of->write(bench.next++, frame), (uint16_t)60);
		packets[i]->pkt_len = packets[i]->data_len;
	}
	bench.begin = rte_rdtsc();
	return n;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

// A file of rules for ids, of which the payload begins to match many.
static const char *ids_rules(void)
{
	static char path[32];
	const int fd = memfd_create("rules", MFD_CLOEXEC); // in no folder; open until the end
	FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");

	if (file == NULL)
		die("no file for rules");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < 16; i++)
		fprintf(file,
			"alert tcp any any -> any any (content:\"ab\"; content:\"ba\"; "
			"distance:%u; "
			"content:\"bab\"; distance:0; content:\"z\"; sid:%u;)\n",
			i, i + 101);
	for (unsigned i = 0; i < 100; i++) {
		fprintf(file, "alert udp any any -> any any (msg:\"x\"; content:\"");
		for (unsigned j = 0; j < 4 + i % 28; j++)
			fputc('a', file);
		fprintf(file, "%c\"; content:\"b%u\"; sid:%u;)\n", 'b' + i % 20, i, i + 1);
	}
	fclose(file);
	return path;
}

static json_t *config_of(const struct bench_case *of)
{
	struct bench_tables *tables;
	json_t *config;

	if (of->config != NULL) {
		config = json_loads(of->config, 0, NULL);
		if (strcmp(of->type, "ids") == 0)
			json_object_set_new(config, "rules_file", json_string(ids_rules()));
		return config;
	}
	tables = bench_tables_create(rules_count);
	config = bench_config("firewall", tables);
	bench_tables_destroy(tables);
	return config;
}

static json_t *plan_of(const struct bench_case *of)
{
	json_t *plan = json_pack("{s:s, s:[{s:s,s:s},{s:s,s:s}], s:[], s:[{s:s,s:{},s:s,s:s}],"
				 " s:[{s:i,s:s,s:{s:s},s:[],s:{s:s}}], s:[{s:i}], s:{s:i,s:{s:i}}}",
		"schema", "convoy.plan/1", "ports", "name", "left", "kind", "null", "name", "right",
		"kind", "null", "functions", "chains", "name", "all", "match", "in", "left", "out",
		"right", "stages", "worker", 0, "chain", "all", "source", "port", "left", "path",
		"sink", "port", "right", "workers", "core", 0, "flows", "max", (int)flows_count,
		"timeouts", "udp_new", 1);

	if (of->type == NULL)
		return plan;
	json_array_append_new(json_object_get(plan, "functions"),
		json_pack(
			"{s:s, s:s, s:o}", "name", "f", "type", of->type, "config", config_of(of)));
	json_array_append_new(
		json_object_get(json_array_get(json_object_get(plan, "stages"), 0), "path"),
		json_string("f"));
	return plan;
}

static void make_node(const struct bench_case *of)
{
	json_t *json = plan_of(of);
	char *text = json_dumps(json, 0);
	struct cv_error error = {0};
	struct cv_plan *plan = cv_plan_parse(text, strlen(text), "plan", &error);

	bench.of = of;
	bench.node = plan == NULL ? NULL : cv_node_make(plan, &error);
	if (bench.node == NULL || cv_node_connect(bench.node, &error) != 0)
		die(error.text);
	bench.node->ports[0]->rx = rx;
	bench.node->ports[1]->tx = tx;
	json_decref(json);
	free(text);
}

// Takes a rule away, and builds all of them anew.
static void reload(void)
{
	json_t *plan = json_deep_copy(bench.node->plan->json);
	json_t *function = json_array_get(json_object_get(plan, "functions"), 0);
	const struct cv_files files = {0};
	const struct cv_apply_request request = {.plan = plan, .files = &files};
	struct cv_error error = {0};
	struct cv_apply *apply;

	json_array_remove(json_object_get(json_object_get(function, "config"), "rules"), 0);
	apply = cv_apply_begin(bench.node, &request, &error);
	if (apply == NULL)
		die(error.text);
	cv_apply_commit(apply);
	cv_apply_end(apply);
	json_decref(plan);
}

static void sleep_ms(unsigned ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

// Lets the worker run for so long, and so often.
static void let_run(unsigned ms)
{
	const uint64_t begin = cv_counted(&bench.iterations) + cv_counted(&bench.preempted);

	do
		sleep_ms(ms);
	while (cv_counted(&bench.iterations) + cv_counted(&bench.preempted) <
		begin + ITERATIONS_LEAST);
}

static double microseconds(uint64_t cycles)
{
	return (double)cycles * 1e6 / (double)rte_get_tsc_hz();
}

static void measure(const struct bench_case *of)
{
	uint64_t least = UINT64_MAX, most = 0, longest;

	make_node(of);
	bench.node->phase = CV_WORKER_RUN;
	cv_node_forward(bench.node);
	let_run(RTE_MIN(WARM_MS, 10 * window_ms));
	for (unsigned i = 0; i < windows_count; i++) {
		__atomic_store_n(&bench.longest, 0, __ATOMIC_RELAXED);
		if (of->reloads)
			reload();
		let_run(window_ms);
		longest = __atomic_load_n(&bench.longest, __ATOMIC_RELAXED);
		if (longest > 0) // 0: the kernel took the core away in each
			least = RTE_MIN(least, longest);
		most = RTE_MAX(most, longest);
	}
	cv_node_stop(bench.node);
	cv_node_free(bench.node);
	least = least == UINT64_MAX ? 0 : least;
	if (as_json)
		printf("{\"case\": \"%s\", \"longest_iteration_us\": %.1f, \"of_any_window_us\": "
		       "%.1f, "
		       "\"windows\": %u, \"iterations\": %lu, \"preempted\": %lu}\n",
			of->name, microseconds(least), microseconds(most), windows_count,
			bench.iterations, bench.preempted);
	else
		printf("%-20s %10.1f us %12.1f us %12lu %10lu\n", of->name, microseconds(least),
			microseconds(most), bench.iterations, bench.preempted);
	fflush(stdout);
	memset(&bench, 0, sizeof(bench));
}

static void start_eal(char *name)
{
	char lcores[48];
	char *arguments[] = {name, "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"1024", "--lcores", lcores, "--log-level=error", "--file-prefix=bench-worst"};
	cpu_set_t cores;
	int first = -1, last = -1;

	sched_getaffinity(0, sizeof(cores), &cores);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cores)) {
			first = first < 0 ? i : first;
			last = i;
		}
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", first, last);
	if (rte_eal_init(RTE_DIM(arguments), arguments) < 0)
		die("DPDK did not start");
}

static unsigned number(const char *option, unsigned least, unsigned most)
{
	char *end;
	const unsigned long value = strtoul(optarg, &end, 10);

	if (*end != 0 || end == optarg || value < least || value > most) {
		fprintf(stderr, "bench-worst: --%s: \"%s\": give %u to %u\n", option, optarg, least,
			most);
		exit(2);
	}
	return (unsigned)value;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
		{"rules", required_argument, NULL, 'r'}, {"flows", required_argument, NULL, 'f'},
		{"ms", required_argument, NULL, 'm'}, {"windows", required_argument, NULL, 'w'},
		{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'j')
			as_json = true;
		else if (c == 'r')
			rules_count = number("rules", 20, 1000000);
		else if (c == 'f')
			flows_count = number("flows", 64, 1u << 30);
		else if (c == 'm')
			window_ms = number("ms", 1, 100000);
		else if (c == 'w')
			windows_count = number("windows", 1, 10);
		else
			exit(2);
	}
}

static const struct bench_case *find(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(cases); i++)
		if (strcmp(cases[i].name, name) == 0)
			return &cases[i];
	fprintf(stderr, "bench-worst: \"%s\": no case is called so; they are", name);
	for (size_t i = 0; i < RTE_DIM(cases); i++)
		fprintf(stderr, " %s", cases[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	for (int i = optind; i < argc; i++)
		find(argv[i]);
	start_eal(argv[0]);
	if (!as_json)
		printf("%-20s %13s %15s %12s %10s\n", "longest iteration", "the work's",
			"any window's", "iterations", "preempted");
	for (int i = optind; i < argc; i++)
		measure(find(argv[i]));
	for (size_t i = 0; optind == argc && i < RTE_DIM(cases); i++)
		measure(&cases[i]);
	return 0;
}
