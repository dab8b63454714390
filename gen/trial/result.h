// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A trial as one JSON object, schema convoy.trial/2 (docs/tester.md has the reference).
#ifndef GEN_TRIAL_RESULT_H
#define GEN_TRIAL_RESULT_H

#include <jansson.h>

#include "gen/trial/trial.h"

struct gen_context {
	uint32_t core;
	int device_core; // of tester->probe
	char *const *argv; // of the process
	json_t *self_test; // borrowed; NULL: not run
};

// A new reference. Missing is null, not zero.
json_t *gen_result(const struct gen_tester *tester, const struct gen_context *context,
	const struct gen_spec *spec, const struct gen_trial *trial);

#endif
