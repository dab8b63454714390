// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Trials in, results out: one JSON object each.
#ifndef GEN_INPUT_H
#define GEN_INPUT_H

#include "gen/trial/result.h"

struct gen_input {
	struct gen_tester *tester;
	const struct gen_context *context;
	double attach_timeout_s; // how long a trial waits for a peer that is away
};

// The one trial in a file. Returns the exit status.
int gen_input_file(const struct gen_input *input, const char *path);

// A trial per line of standard input, until it ends; between them, ports whose peer went away are
// attached again. Returns the exit status.
int gen_input_lines(const struct gen_input *input);

// One line on standard output; takes over the reference.
void gen_print(json_t *object);

#endif
