// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What bench-nf can measure, and what it is told to.
#ifndef CV_BENCH_OPTIONS_H
#define CV_BENCH_OPTIONS_H

#include <stdbool.h>

#include "tests/bench/bench.h"

#define BENCH_KINDS 30
#define BENCH_SIZES_MAX 8

// What a row's cost depends on.
enum bench_size {
	BENCH_NO_SIZE,
	BENCH_ENTRIES, // of tables
	BENCH_FLOWS, // that are known
	BENCH_FEW_FLOWS, // the first number of these
};

struct bench_kind {
	const char *name;
	enum bench_size size;
	unsigned usual_most; // entries where --entries does not say; 0: all of the usual ones
	bool two_cores; // the pipeline
	unsigned bytes; // of packets, with FCS; 0: the usual ones
	unsigned patterns; // of ids; 0: another function
	const char *needs; // a function that may have been left out of this build
	// Where it is not a path of functions.
	int (*create)(struct bench_subject *, const struct bench_tables *, struct cv_error *);
	bool rewrites, meters; // the reference of flows
	unsigned path_length;
	const char *path[4];
};

extern const struct bench_kind bench_kinds[BENCH_KINDS];

struct bench_sizes {
	unsigned count;
	unsigned of[BENCH_SIZES_MAX];
};

struct bench_options {
	bool wanted[BENCH_KINDS];
	struct bench_sizes entries, flows;
	bool usual; // no number of entries was given
	unsigned repeats;
	int core, other_core; // -1: the first that may be used, and the next
	bool hugepages;
};

// Reads the command line. Ends the program, with exit code 2, where it is wrong.
void bench_options_read(struct bench_options *options, int argc, char **argv);

// Ends the program with one line.
void bench_die(int code, const char *text) __attribute__((noreturn));

#endif
