// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reading JSON that somebody may have written by hand: a plan, a port, a function's settings, a
// trial. Every error is one line, "WHERE: KEY: VALUE: what it must be": WHERE is the caller's name
// for the object ("fw", "plan.json: stages[2]"; empty: KEY stands first), VALUE is as it was
// written. The first error wins (error.h).
#ifndef CV_VALUES_H
#define CV_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "packet/error.h"

// Refuses a value: sets the error, with the text of format behind it. Returns -EINVAL.
__attribute__((format(printf, 5, 6))) int cv_config_wrong(const char *where, const char *key,
	const json_t *value, struct cv_error *error, const char *format, ...);

// A missing key that must be there. Returns -EINVAL.
int cv_config_missing(const char *where, const char *key, struct cv_error *error);

// Checks that object is one, and has no key but the known ones (NULL at the end). Returns 0, or
// -EINVAL with error set.
int cv_config_keys(
	const json_t *object, const char *const *known, const char *where, struct cv_error *error);

// The readers below leave *value as it is where the key is missing. What they return belongs to
// object. All return 0, or -EINVAL with error set.
int cv_config_string(const json_t *object, const char *key, const char *where, const char **value,
	struct cv_error *error);
int cv_config_integer(const json_t *object, const char *key, const char *where, int64_t low,
	int64_t high, int64_t *value, struct cv_error *error);
int cv_config_bool(const json_t *object, const char *key, const char *where, bool *value,
	struct cv_error *error);

// These make *value NULL where the key is missing.
int cv_config_array(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error);
int cv_config_object(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error);

// One of some words, NULL at the end: *value becomes its index.
int cv_config_word(const json_t *object, const char *key, const char *where,
	const char *const *words, unsigned *value, struct cv_error *error);

// Writes words (NULL at the end) one after the other with separator between, cut at size bytes.
// Returns text.
const char *cv_config_list(
	const char *const *words, const char *separator, char *text, size_t size);

// How many bytes of a text, at most max, are whole characters: half of one (UTF-8) would make a
// message that is no JSON string.
size_t cv_config_cut(const char *text, size_t max);

#endif
