// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of each network function, in memory, beside plain DPDK doing the same job.
//
//   bench-nf [--function NAME,...] [--entries N,...] [--flows N,...] [--repeats N] [--core N]
//            [--other-core N] [--hugepages]
//
// Prints one JSON object per line: {"event": "progress", ...} and at last the result,
// {"schema": "convoy.bench.nf/3", ...}. Exit code 0 done, 1 failed, 2 bad option.
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include "chain/nf.h"
#include "dpdk/table_memory.h"
#include "tests/bench/arena.h"
#include "tests/bench/options.h"

#define PASSES 8 // over all packets, per repeat: 1 to 5 ms
#define ROWS_MAX 256
#define FCS_BYTES 4
#define MEMORY_MB "4096" // DPDK's
#define ARENAS 4 // by the length of packets
#ifdef CV_HAVE_IDS
#define CREATE_IDS(...) bench_ids_create(__VA_ARGS__)
#else
#define CREATE_IDS(...) -1
#endif

// One row of the result.
struct measured {
	struct bench_arena *arena; // its packets
	const struct bench_kind *kind;
	unsigned entries; // 0: there are none
	const struct bench_tables *tables;
	struct bench_flows flows; // of none: known is 0
	uint64_t again; // TSC from which on new ones may be opened
	struct bench_subject subject;
	size_t functions_bytes; // that making it took, beside its flow table
	double *ticks; // per packet, by repeat
	double *busy; // of these the functions' own, as the node counts; of two cores, the second's
	double *fresh, *ended; // per flow
};

static void start_eal(const struct bench_options *options)
{
	char prefix[32], core[16];
	char *argv[16] = {"bench-nf", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level",
		"error", "--file-prefix", prefix, "-m", MEMORY_MB};
	int argc = 10;

	snprintf(prefix, sizeof(prefix), "bench-nf-%d", getpid());
	snprintf(core, sizeof(core), "%d", options->core);
	if (!options->hugepages)
		argv[argc++] = "--no-huge";
	argv[argc++] = "-l";
	argv[argc++] = core;
	if (rte_eal_init(argc, argv) < 0)
		bench_die(1, options->hugepages
				     ? "DPDK did not start: are 4 GiB of hugepages free?"
				     : "DPDK did not start: are the core and 4 GiB there?");
}

static void progress(const char *what, unsigned done, unsigned of)
{
	printf("{\"event\": \"progress\", \"what\": \"%s\", \"done\": %u, \"of\": %u}\n", what,
		done, of);
	fflush(stdout);
}

static int create(struct measured *row, const struct bench_options *options, struct cv_error *error)
{
	const struct bench_kind *kind = row->kind;

	if (kind->size == BENCH_FLOWS || kind->size == BENCH_FEW_FLOWS)
		return kind->path_length > 0
			       ? bench_stateful_create(
					 &row->subject, kind->path, &row->flows, error)
			       : bench_reference_flows_create(&row->subject, kind->rewrites,
					 kind->meters, &row->flows, error);
	if (kind->two_cores)
		return bench_pipeline_create(
			&row->subject, row->tables, options->other_core, error);
	if (kind->patterns > 0)
		return CREATE_IDS(&row->subject, kind->patterns, kind->path_length == 0, error);
	if (kind->create != NULL)
		return kind->create(&row->subject, row->tables, error);
	return bench_path_create(&row->subject, kind->path, kind->path_length, row->tables, error);
}

// Bytes that malloc() and DPDK have given away.
static size_t taken_bytes(void)
{
	const struct mallinfo2 libc = mallinfo2();
	const int tables_at = cv_table_memory(0);
	struct rte_malloc_socket_stats dpdk = {0}, tables = {0};

	rte_malloc_get_socket_stats((int)rte_socket_id(), &dpdk);
	if (tables_at != SOCKET_ID_ANY)
		rte_malloc_get_socket_stats(tables_at, &tables);
	return libc.uordblks + libc.hblkhd + dpdk.heap_allocsz_bytes + tables.heap_allocsz_bytes;
}

// Makes a row's subject, and opens its flows. Ends the program where that fails.
static void set_up(struct measured *row, const struct bench_options *options)
{
	struct cv_error error = {0};
	int rc = 0;

	row->ticks = calloc(options->repeats, 4 * sizeof(double));
	if (row->ticks == NULL)
		bench_die(1, "out of memory");
	row->busy = row->ticks + options->repeats;
	row->fresh = row->busy + options->repeats;
	row->ended = row->fresh + options->repeats;
	if (row->flows.known > 0)
		rc = bench_flows_create(&row->flows, row->flows.known, &error);
	row->functions_bytes = taken_bytes();
	if (rc == 0)
		rc = create(row, options, &error);
	row->functions_bytes = taken_bytes() - row->functions_bytes;
	if (rc == 0 && row->flows.known > 0)
		rc = bench_flows_open(&row->flows, row->arena, &row->subject, &error);
	if (rc != 0) {
		fprintf(stderr, "bench-nf: %s: ", row->kind->name);
		bench_die(1, error.text);
	}
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

static double median_of(const json_t *summary)
{
	return json_real_value(json_object_get(summary, "median"));
}

// What a row has that flows belong to. A new flow is one that also ends.
static void flows_json(const struct measured *row, unsigned repeats, json_t *json)
{
	const double max = BENCH_FLOWS_TABLE(row->flows.known);
	json_t *fresh = summary(row->fresh, repeats), *ended = summary(row->ended, repeats);
	const double cycles = median_of(fresh) + median_of(ended);

	json_object_set_new(json, "flows", json_integer(row->flows.known));
	json_object_set_new(
		json, "table_bytes_per_flow", json_real((double)row->subject.table_bytes / max));
	json_object_set_new(
		json, "functions_bytes_per_flow", json_real((double)row->functions_bytes / max));
	json_object_set_new(json, "new_flows_per_second",
		json_integer((json_int_t)((double)rte_get_tsc_hz() / cycles)));
	json_object_set_new(json, "cycles_per_new_flow", fresh);
	json_object_set_new(json, "cycles_per_ended_flow", ended);
}

// A function's own cycles, and those with the path that loads its packets; the path, the rings and
// the references are what they are, whole.
static json_t *row_json(const struct measured *row, unsigned repeats)
{
	json_t *json = json_pack("{ss si}", "function", row->kind->name, "entries", row->entries);
	json_t *whole = summary(row->ticks, repeats);

	if (row->kind->bytes > 0)
		json_object_set_new(json, "bytes", json_integer(row->kind->bytes));
	if (row->kind->patterns > 0)
		json_object_set_new(json, "patterns", json_integer(row->kind->patterns));
	if (row->flows.known > 0)
		flows_json(row, repeats, json);
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

static json_t *host_json(
	const struct bench_options *options, const struct bench_arena *arena, long l2)
{
	struct utsname kernel = {0};

	uname(&kernel);
	return json_pack("{ss ss ss sI si sb si si si sI sI}", "cpu", cpu_name(), "dpdk",
		rte_version(), "kernel", kernel.release, "tsc_hz", (json_int_t)rte_get_tsc_hz(),
		"core", options->core, "hugepages", options->hugepages, "frame_bytes",
		BENCH_FRAME_BYTES + 4, "burst_packets", CV_BURST_MAX, "packets",
		arena->packets_count, "l2_bytes", (json_int_t)l2, "working_set_bytes",
		(json_int_t)arena->touched_bytes);
}

// Passes over packets that are written before each of so many fills. TSC ticks per packet, or -1 with
// error set.
static double run_filled(struct measured *row, unsigned fills, unsigned passes, double *busy_ticks,
	struct cv_error *error)
{
	struct bench_arena *arena = row->arena;
	const struct bench_subject *subject = &row->subject;
	double ticks = 0;
	uint64_t busy = 0;

	for (unsigned fill = 0; fill < fills && ticks >= 0; fill++) {
		double taken;

		bench_arena_fill(arena, subject, row->tables);
		if (subject->busy != NULL)
			busy -= subject->busy(subject->state);
		taken = bench_arena_run(arena, subject, passes, error);
		if (subject->busy != NULL)
			busy += subject->busy(subject->state);
		ticks = taken < 0 ? taken : ticks + taken / fills;
	}
	*busy_ticks = (double)busy / fills / passes / arena->packets_count;
	return ticks;
}

// One repeat of a row, after a pass that brings its own tables into the caches. Of flows each pass
// has other packets; what is used up is written anew.
static void measure(struct measured *row, unsigned repeat)
{
	const bool flows = row->flows.known > 0, anew = flows || row->subject.uses_up;
	struct cv_error error = {0};
	double unused;

	if (run_filled(row, 1, 1, &unused, &error) >= 0)
		row->ticks[repeat] = run_filled(
			row, anew ? PASSES : 1, anew ? 1 : PASSES, &row->busy[repeat], &error);
	if (flows && error.text[0] == '\0') {
		while (rte_rdtsc() < row->again)
			usleep(1000);
		row->fresh[repeat] =
			bench_flows_open_fresh(&row->flows, row->arena, &row->subject, &error);
		row->ended[repeat] = row->subject.end_fresh(row->subject.state, &row->again);
	}
	if (error.text[0] != '\0') {
		fprintf(stderr, "bench-nf: %s with %u entries: ", row->kind->name, row->entries);
		bench_die(1, error.text);
	}
}

static bool is_of_flows(const struct bench_kind *kind)
{
	return kind->size == BENCH_FLOWS || kind->size == BENCH_FEW_FLOWS;
}

// Whether a kind has a row of the size at this place.
static bool has_row(const struct bench_options *options, unsigned kind, bool of_flows, unsigned at)
{
	const struct bench_kind *of = &bench_kinds[kind];

	if (!options->wanted[kind] || is_of_flows(of) != of_flows)
		return false;
	if (of->size == BENCH_NO_SIZE || of->size == BENCH_FEW_FLOWS)
		return at == 0;
	return of->size == BENCH_FLOWS || !options->usual || of->usual_most == 0 ||
	       options->entries.of[at] <= of->usual_most;
}

// The packets of a kind, which has the usual ones or those of one of arena_bytes.
static const unsigned arena_bytes[ARENAS] = {BENCH_FRAME_BYTES + FCS_BYTES, 97, 306, 1400};

static struct bench_arena *arena_of(struct bench_arena *arenas, const struct bench_kind *kind)
{
	for (unsigned i = 1; i < ARENAS; i++)
		if (kind->bytes == arena_bytes[i])
			return &arenas[i];
	return &arenas[0];
}

// Makes all rows of tables, or of flows. Returns how many.
static unsigned make_rows(const struct bench_options *options, bool of_flows,
	struct bench_arena arenas[ARENAS], struct bench_tables **tables, struct measured *rows)
{
	const struct bench_sizes *sizes = of_flows ? &options->flows : &options->entries;
	unsigned count = 0;

	for (unsigned at = 0; at < sizes->count; at++)
		for (unsigned k = 0; k < BENCH_KINDS; k++) {
			struct measured *row = &rows[count];

			if (!has_row(options, k, of_flows, at))
				continue;
			*row = (struct measured){.arena = arena_of(arenas, &bench_kinds[k]),
				.kind = &bench_kinds[k],
				.tables = tables[0]};
			if (of_flows) {
				row->flows.known = sizes->of[at];
			} else {
				row->tables = tables[at];
				row->entries =
					bench_kinds[k].size == BENCH_ENTRIES ? sizes->of[at] : 0;
			}
			progress("set-up", k + at * BENCH_KINDS, sizes->count * BENCH_KINDS);
			set_up(row, options);
			count++;
		}
	return count;
}

int main(int argc, char **argv)
{
	static struct measured rows[ROWS_MAX];
	struct bench_options options = {.repeats = 11, .core = -1, .other_core = -1};
	struct bench_tables *tables[BENCH_SIZES_MAX];
	struct bench_arena arenas[ARENAS];
	struct cv_error error = {0};
	unsigned rows_count;
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	json_t *results = json_array();
	json_t *document;

	_Static_assert(BENCH_KINDS * BENCH_SIZES_MAX <= ROWS_MAX, "each kind in each size");
	bench_options_read(&options, argc, argv);
	if (l2 <= 0)
		l2 = 1 << 20;
	start_eal(&options);
	for (unsigned i = 0; i < ARENAS; i++)
		if (bench_arena_create(
			    &arenas[i], (uint16_t)(arena_bytes[i] - FCS_BYTES), l2, &error) != 0)
			bench_die(1, error.text);
	for (unsigned e = 0; e < options.entries.count; e++) {
		tables[e] = bench_tables_create(options.entries.of[e]);
		if (tables[e] == NULL)
			bench_die(1, "out of memory");
	}
	rows_count = make_rows(&options, false, arenas, tables, rows);
	rows_count += make_rows(&options, true, arenas, tables, rows + rows_count);

	// Alternating, so that a slow moment of the machine meets every row.
	for (unsigned repeat = 0; repeat < options.repeats; repeat++) {
		for (unsigned i = 0; i < rows_count; i++)
			measure(&rows[i], repeat);
		progress("repeats", repeat + 1, options.repeats);
	}

	for (unsigned i = 0; i < rows_count; i++) {
		json_array_append_new(results, row_json(&rows[i], options.repeats));
		rows[i].subject.destroy(rows[i].subject.state);
		bench_flows_destroy(&rows[i].flows);
		free(rows[i].ticks);
	}
	document = json_pack("{ss so so}", "schema", "convoy.bench.nf/3", "results", results,
		"host", host_json(&options, &arenas[0], l2));
	json_dumpf(document, stdout, JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(document);
	for (unsigned i = 0; i < RTE_DIM(arenas); i++)
		bench_arena_destroy(&arenas[i]);
	for (unsigned e = 0; e < options.entries.count; e++)
		bench_tables_destroy(tables[e]);
	rte_eal_cleanup();
	return 0;
}
