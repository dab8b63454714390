// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a function was made of, to see later whether that is what it is to be.
#ifndef CV_FUNCTION_CONFIG_H
#define CV_FUNCTION_CONFIG_H

#include <jansson.h>

#include "chain/nf.h"
#include "daemon/files.h"

struct cv_function_config {
	json_t *config; // owned
	json_t *files; // by key of a file: a number that stands for what was in it; owned
};

// Files lie where their paths say, unless there are copies of them.
void cv_function_config_set(struct cv_function_config *to, const struct cv_nf *nf,
	const json_t *config, const struct cv_files *files);
void cv_function_config_clear(struct cv_function_config *config);

// Stands for what is in a file; NULL: it cannot be read.
json_t *cv_function_config_digest(int fd);

// The keys that differ, as a new array. A file is what is in it, whatever its name.
json_t *cv_function_config_differences(
	const struct cv_function_config *a, const struct cv_function_config *b);

// The configuration with the copies' paths in place of its files', as a new object.
json_t *cv_function_config_made_of(
	const struct cv_nf *nf, const json_t *config, const struct cv_files *files);

#endif
