// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The tester measured against itself: how fast over a kind of port, and how much noise of its own.
#ifndef GEN_SELFTEST_SELFTEST_H
#define GEN_SELFTEST_SELFTEST_H

#include "gen/selftest/loopback.h"
#include "gen/trial/result.h"

// Runs on ports of its own. A new reference to an object of schema convoy.self-test/2, or NULL
// with a message.
json_t *gen_self_test(struct gen_tester *tester, const struct gen_context *context,
	const struct gen_loopback_kind *kind, uint32_t reflector_core, struct cv_error *error);

#endif
