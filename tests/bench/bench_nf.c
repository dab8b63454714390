// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of each network function, in memory, beside plain DPDK doing the same job.
//
//   bench-nf [--function NAME,...] [--entries N,...] [--repeats N] [--core N] [--other-core N]
//            [--hugepages]
//
// Prints one JSON object per line: {"event": "progress", ...} and at last the result,
// {"schema": "convoy.bench.nf/2", ...}. Exit code 0 done, 1 failed, 2 bad option.
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "chain/nf.h"
#include "tests/bench/arena.h"
#include "tests/bench/bench.h"

#define PASSES 8 // over all packets, per repeat: 1 to 5 ms
#define ENTRIES_MAX 8
#define REPEATS_MAX 1001

static const struct kind {
	const char *name;
	bool sized; // its cost may depend on the number of entries
	bool two_cores; // the pipeline
	// Where it is not a path of functions.
	int (*create)(struct bench_subject *, const struct bench_tables *, struct cv_error *);
	unsigned path_length;
	const char *path[4];
} kinds[] = {
	{"path", .path_length = 0},
	{"ring", .create = bench_ring_create},
	{"ring-2-cores", .two_cores = true},
	{"l2fwd", .path_length = 1, .path = {"l2fwd"}},
	{"router", .sized = true, .path_length = 1, .path = {"router"}},
	{"reference-router", .sized = true, .create = bench_reference_router_create},
	{"firewall", .sized = true, .path_length = 1, .path = {"firewall"}},
	{"reference-firewall", .sized = true, .create = bench_reference_firewall_create},
	{"chain", .sized = true, .path_length = 3, .path = {"firewall", "router", "l2fwd"}},
};

struct options {
	bool wanted[RTE_DIM(kinds)];
	unsigned entries[ENTRIES_MAX];
	unsigned entries_count;
	unsigned repeats;
	int core, other_core; // -1: the first that may be used, and the next
	bool hugepages;
};

// One row of the result.
struct measured {
	const struct kind *kind;
	unsigned entries; // 0: there are none
	const struct bench_tables *tables;
	struct bench_subject subject;
	double *ticks; // per packet, by repeat
	double *busy; // of these the functions' own, as the node counts; of two cores, the second's
};

static void die(int code, const char *text)
{
	fprintf(stderr, "bench-nf: %s\n", text);
	exit(code);
}

static unsigned number(const char *option, const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	char message[160];

	if (end != text && *end == '\0' && text[0] != '-' && value >= least && value <= most)
		return value;
	snprintf(message, sizeof(message), "%s: '%.40s' is not a number from %u to %u", option,
		text, least, most);
	die(2, message);
	return 0;
}

static void want(struct options *options, const char *name)
{
	char message[256];
	int length;

	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		if (strcmp(name, kinds[i].name) == 0) {
			options->wanted[i] = true;
			return;
		}
	}
	length = snprintf(message, sizeof(message), "--function: '%.40s' is none of", name);
	for (unsigned i = 0; i < RTE_DIM(kinds); i++)
		length +=
			snprintf(message + length, sizeof(message) - length, " %s", kinds[i].name);
	die(2, message);
}

// Chooses the cores that were not given. A pipeline that nobody asked for by name is left out where
// there is one core.
static void choose_cores(struct options *options, bool by_name)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &allowed))
			continue;
		if (options->core < 0 && core != options->other_core)
			options->core = core;
		else if (options->other_core < 0 && core != options->core)
			options->other_core = core;
	}
	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		if (!kinds[i].two_cores || !options->wanted[i] || options->other_core >= 0)
			continue;
		if (by_name)
			die(2, "--function: ring-2-cores needs a second core");
		options->wanted[i] = false;
	}
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{"function", required_argument, NULL, 'f'},
		{"entries", required_argument, NULL, 'e'},
		{"repeats", required_argument, NULL, 'r'},
		{"core", required_argument, NULL, 'c'},
		{"other-core", required_argument, NULL, 'o'},
		{"hugepages", no_argument, NULL, 'H'},
		{NULL},
	};
	bool all = true;
	int option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'f':
			all = false;
			for (char *at = strtok(optarg, ","); at != NULL; at = strtok(NULL, ","))
				want(options, at);
			break;
		case 'e':
			for (char *at = strtok(optarg, ","); at != NULL; at = strtok(NULL, ",")) {
				if (options->entries_count == ENTRIES_MAX)
					die(2, "--entries: more than 8 numbers");
				options->entries[options->entries_count++] =
					number("--entries", at, 1, 1000000);
			}
			break;
		case 'r':
			options->repeats = number("--repeats", optarg, 1, REPEATS_MAX);
			break;
		case 'c':
			options->core = number("--core", optarg, 0, 1023);
			break;
		case 'o':
			options->other_core = number("--other-core", optarg, 0, 1023);
			break;
		case 'H':
			options->hugepages = true;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc)
		die(2, "takes options only");
	if (options->entries_count == 0) {
		options->entries_count = 3;
		memcpy(options->entries, (unsigned[]){10, 1000, 100000}, 3 * sizeof(unsigned));
	}
	for (unsigned i = 0; i < RTE_DIM(kinds); i++)
		options->wanted[i] |= all;
	choose_cores(options, !all);
}

static void start_eal(const struct options *options)
{
	char prefix[32], core[16];
	char *argv[16] = {"bench-nf", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level",
		"error", "--file-prefix", prefix, "-m", "3072"};
	int argc = 10;

	snprintf(prefix, sizeof(prefix), "bench-nf-%d", getpid());
	snprintf(core, sizeof(core), "%d", options->core);
	if (!options->hugepages)
		argv[argc++] = "--no-huge";
	argv[argc++] = "-l";
	argv[argc++] = core;
	if (rte_eal_init(argc, argv) < 0)
		die(1, options->hugepages ? "DPDK did not start: are 3 GiB of hugepages free?"
					  : "DPDK did not start: are the core and 3 GiB there?");
}

static void progress(const char *what, unsigned done, unsigned of)
{
	printf("{\"event\": \"progress\", \"what\": \"%s\", \"done\": %u, \"of\": %u}\n", what,
		done, of);
	fflush(stdout);
}

static int create(struct measured *row, const struct options *options, struct cv_error *error)
{
	if (row->kind->two_cores)
		return bench_pipeline_create(
			&row->subject, row->tables, options->other_core, error);
	if (row->kind->create != NULL)
		return row->kind->create(&row->subject, row->tables, error);
	return bench_path_create(
		&row->subject, row->kind->path, row->kind->path_length, row->tables, error);
}

static int ascending(const void *one, const void *two)
{
	double a = *(const double *)one, b = *(const double *)two;

	return (a > b) - (a < b);
}

// The median, the extremes, and every value in the order of measuring. Sorts the values.
static json_t *summary(double *values, unsigned n)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all, json_real(values[i]));
	qsort(values, n, sizeof(*values), ascending);
	return json_pack("{sf sf sf so}", "median", (values[(n - 1) / 2] + values[n / 2]) / 2,
		"min", values[0], "max", values[n - 1], "repeats", all);
}

// A function's own cycles, and those with the path that loads its packets; the path, the rings and
// the references are what they are, whole.
static json_t *row_json(const struct measured *row, unsigned repeats)
{
	json_t *json = json_pack("{ss si}", "function", row->kind->name, "entries", row->entries);
	json_t *whole = summary(row->ticks, repeats);

	if (row->kind->path_length > 0) {
		json_object_set_new(json, "cycles_per_packet", summary(row->busy, repeats));
		json_object_set_new(json, "with_path_cycles_per_packet", whole);
		return json;
	}
	json_object_set_new(json, "cycles_per_packet", whole);
	if (row->kind->two_cores)
		json_object_set_new(
			json, "second_core_cycles_per_packet", summary(row->busy, repeats));
	return json;
}

// The processor's name, as the kernel has it.
static const char *cpu_name(void)
{
	static char line[256] = "unknown";
	FILE *file = fopen("/proc/cpuinfo", "r");
	const char *name = NULL;

	while (file != NULL && name == NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL)
			name = strchr(line, ':') + 2;
	}
	if (file != NULL)
		fclose(file);
	return name != NULL ? name : "unknown";
}

static json_t *host_json(const struct options *options, const struct bench_arena *arena, long l2)
{
	struct utsname kernel = {0};

	uname(&kernel);
	return json_pack("{ss ss ss sI si sb si si si sI sI}", "cpu", cpu_name(), "dpdk",
		rte_version(), "kernel", kernel.release, "tsc_hz", (json_int_t)rte_get_tsc_hz(),
		"core", options->core, "hugepages", options->hugepages, "frame_bytes",
		BENCH_FRAME_BYTES + 4, "burst_packets", CV_BURST_MAX, "flows", arena->packets_count,
		"l2_bytes", (json_int_t)l2, "working_set_bytes", (json_int_t)arena->touched_bytes);
}

// One repeat of a row, after a pass that brings its own tables into the caches.
static void measure(struct measured *row, struct bench_arena *arena, unsigned repeat)
{
	const struct bench_subject *subject = &row->subject;
	struct cv_error error = {0};
	uint64_t busy = 0;

	bench_arena_fill(arena, row->tables);
	if (bench_arena_run(arena, subject, 1, &error) >= 0) {
		if (subject->busy != NULL)
			busy = subject->busy(subject->state);
		row->ticks[repeat] = bench_arena_run(arena, subject, PASSES, &error);
		if (subject->busy != NULL)
			row->busy[repeat] = (double)(subject->busy(subject->state) - busy) /
					    PASSES / arena->packets_count;
	}
	if (error.text[0] != '\0') {
		fprintf(stderr, "bench-nf: %s with %u entries: ", row->kind->name, row->entries);
		die(1, error.text);
	}
}

int main(int argc, char **argv)
{
	struct options options = {.repeats = 11, .core = -1, .other_core = -1};
	struct bench_tables *tables[ENTRIES_MAX];
	struct measured rows[RTE_DIM(kinds) * ENTRIES_MAX];
	struct bench_arena arena;
	struct cv_error error = {0};
	unsigned rows_count = 0;
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	json_t *results = json_array();
	json_t *document;

	parse(&options, argc, argv);
	if (l2 <= 0)
		l2 = 1 << 20;
	start_eal(&options);
	if (bench_arena_create(&arena, l2, &error) != 0)
		die(1, error.text);
	for (unsigned e = 0; e < options.entries_count; e++) {
		tables[e] = bench_tables_create(options.entries[e]);
		if (tables[e] == NULL)
			die(1, "out of memory");
		for (unsigned k = 0; k < RTE_DIM(kinds); k++) {
			struct measured *row = &rows[rows_count];

			if (!options.wanted[k] || (!kinds[k].sized && e > 0))
				continue;
			*row = (struct measured){
				.kind = &kinds[k],
				.entries = kinds[k].sized ? options.entries[e] : 0,
				.tables = tables[e],
				.ticks = calloc(options.repeats, sizeof(double)),
				.busy = calloc(options.repeats, sizeof(double)),
			};
			progress("set-up", rows_count, options.entries_count * RTE_DIM(kinds));
			if (row->ticks == NULL || row->busy == NULL ||
				create(row, &options, &error) != 0)
				die(1, error.text);
			rows_count++;
		}
	}

	// Alternating, so that a slow moment of the machine meets every row.
	for (unsigned repeat = 0; repeat < options.repeats; repeat++) {
		for (unsigned i = 0; i < rows_count; i++)
			measure(&rows[i], &arena, repeat);
		progress("repeats", repeat + 1, options.repeats);
	}

	for (unsigned i = 0; i < rows_count; i++) {
		json_array_append_new(results, row_json(&rows[i], options.repeats));
		rows[i].subject.destroy(rows[i].subject.state);
		free(rows[i].ticks);
		free(rows[i].busy);
	}
	document = json_pack("{ss so so}", "schema", "convoy.bench.nf/2", "results", results,
		"host", host_json(&options, &arena, l2));
	json_dumpf(document, stdout, JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(document);
	bench_arena_destroy(&arena);
	for (unsigned e = 0; e < options.entries_count; e++)
		bench_tables_destroy(tables[e]);
	rte_eal_cleanup();
	return 0;
}
