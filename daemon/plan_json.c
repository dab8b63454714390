// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/plan_json.h"
#include "config/values.h"

// "plan.json", "plan.json: stages[2].source": what stands before the key in error texts.
struct place {
	char text[256];
};

static struct place place_of(const struct cv_where *at)
{
	struct place place;

	snprintf(place.text, sizeof(place.text), "%.90s%s%s", at->document,
		at->path[0] != '\0' ? ": " : "", at->path);
	return place;
}

int cv_json_keys(const struct cv_where *at, const json_t *object, const char *const *keys)
{
	return cv_config_keys(object, keys, place_of(at).text, at->error);
}

// 0 if the key is there.
static int need(const struct cv_where *at, const json_t *object, const char *key)
{
	if (json_object_get(object, key) != NULL)
		return 0;
	return cv_config_missing(place_of(at).text, key, at->error);
}

const char *cv_json_string(
	const struct cv_where *at, const json_t *object, const char *key, const char *fallback)
{
	const char *value = fallback;

	if ((fallback == NULL && need(at, object, key) != 0) ||
		cv_config_string(object, key, place_of(at).text, &value, at->error) != 0)
		return NULL;
	return value;
}

const json_t *cv_json_object(const struct cv_where *at, const json_t *object, const char *key)
{
	const json_t *value;

	if (need(at, object, key) != 0 ||
		cv_config_object(object, key, place_of(at).text, &value, at->error) != 0)
		return NULL;
	return value;
}

const json_t *cv_json_array(
	const struct cv_where *at, const json_t *object, const char *key, size_t min, size_t max)
{
	const json_t *value;

	if (need(at, object, key) != 0 ||
		cv_config_array(object, key, place_of(at).text, &value, at->error) != 0)
		return NULL;
	if (json_array_size(value) < min || json_array_size(value) > max) {
		cv_where_error(at, "%s: has %zu elements; give %zu to %zu", key,
			json_array_size(value), min, max);
		return NULL;
	}
	return value;
}

int cv_json_integer(const struct cv_where *at, const json_t *object, const char *key, int64_t min,
	int64_t max, int64_t fallback, int64_t *value)
{
	if ((fallback < min || fallback > max) && need(at, object, key) != 0)
		return -EINVAL;
	*value = fallback;
	return cv_config_integer(object, key, place_of(at).text, min, max, value, at->error);
}

int cv_json_bool(const struct cv_where *at, const json_t *object, const char *key, bool *value)
{
	return cv_config_bool(object, key, place_of(at).text, value, at->error);
}
