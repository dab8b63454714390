// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "plan_json.h"

struct cv_where cv_where_top(const char *name, struct cv_error *error)
{
	return (struct cv_where){.document = name, .error = error};
}

struct cv_where cv_where_key(const struct cv_where *in, const char *key)
{
	struct cv_where at = {.document = in->document, .error = in->error};

	snprintf(at.path, sizeof(at.path), "%.100s%s%.48s", in->path, in->path[0] ? "." : "", key);
	return at;
}

struct cv_where cv_where_item(const struct cv_where *in, const char *key, size_t index)
{
	char step[64];

	snprintf(step, sizeof(step), "%.32s[%zu]", key, index);
	return cv_where_key(in, step);
}

void cv_where_error(const struct cv_where *at, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cv_error_set(
		at->error, "%s: %s%s%s", at->document, at->path, at->path[0] ? ": " : "", text);
}

int cv_json_keys(const struct cv_where *at, const json_t *object, const char *const *keys)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object)) {
		cv_where_error(at, "give an object, { ... }");
		return -EINVAL;
	}
	json_object_foreach ((json_t *)object, key, value) {
		const char *const *known = keys;

		while (*known != NULL && strcmp(*known, key) != 0)
			known++;
		if (*known == NULL) {
			cv_where_error(at, "unknown key \"%.64s\"", key);
			return -EINVAL;
		}
	}
	return 0;
}

const char *cv_json_string(
	const struct cv_where *at, const json_t *object, const char *key, const char *fallback)
{
	const json_t *value = json_object_get(object, key);

	if (value == NULL && fallback != NULL)
		return fallback;
	if (!json_is_string(value)) {
		cv_where_error(
			at, "%s: %s a string", key, value == NULL ? "missing; give" : "give");
		return NULL;
	}
	return json_string_value(value);
}

const json_t *cv_json_object(const struct cv_where *at, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_object(value))
		return value;
	cv_where_error(
		at, "%s: %s an object, { ... }", key, value == NULL ? "missing; give" : "give");
	return NULL;
}

const json_t *cv_json_array(
	const struct cv_where *at, const json_t *object, const char *key, size_t min, size_t max)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_array(value)) {
		cv_where_error(at, "%s: %s an array, [ ... ]", key,
			value == NULL ? "missing; give" : "give");
		return NULL;
	}
	if (json_array_size(value) < min || json_array_size(value) > max) {
		cv_where_error(at, "%s: has %zu elements: give %zu to %zu", key,
			json_array_size(value), min, max);
		return NULL;
	}
	return value;
}

int cv_json_integer(const struct cv_where *at, const json_t *object, const char *key, int64_t min,
	int64_t max, int64_t fallback, int64_t *value)
{
	const json_t *given = json_object_get(object, key);

	if (given == NULL && fallback >= min && fallback <= max) {
		*value = fallback;
		return 0;
	}
	if (!json_is_integer(given) || json_integer_value(given) < min ||
		json_integer_value(given) > max) {
		cv_where_error(at, "%s: %s an integer from %lld to %lld", key,
			given == NULL ? "missing; give" : "give", (long long)min, (long long)max);
		return -EINVAL;
	}
	*value = json_integer_value(given);
	return 0;
}
