// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// The tester measured against itself: how fast, and how much noise of its own.

#include "result.h"

// Runs on ports of its own, vhost-user rings in memory with a reflector on `reflector_core`. A
// new reference to an object of schema convoy.self-test/1, or NULL with a message.
json_t *gen_self_test(struct gen_tester *tester, const struct gen_context *context,
	uint32_t reflector_core, char *error, size_t error_size);
