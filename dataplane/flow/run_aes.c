// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#define CV_FLOW_RUN cv_flow_run_aes
#define CV_FLOW_HOME_RUN cv_flow_home_run_aes
#include "flow/home_run.h"
#include "flow/run.h"

uint64_t cv_flow_hash_aes(const struct cv_flow_secret *secret, const void *key, size_t bytes)
{
	return cv_flow_aes(secret, key, bytes);
}
