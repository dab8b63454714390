// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config.h"

static const char *type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a fraction";
	case JSON_NULL:
		return "null";
	default:
		return "a boolean";
	}
}

// Appends to a text of size bytes that is cut, never overrun.
static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", more);
}

int cv_config_keys(
	const json_t *object, const char *const *known, const char *where, struct cv_error *error)
{
	char list[256] = "";
	const char *key;
	json_t *value;

	if (!json_is_object(object)) {
		cv_error_set(error, "%s: expected an object with settings", where);
		return -EINVAL;
	}
	json_object_foreach ((json_t *)object, key, value) {
		const char *const *name = known;

		while (*name != NULL && strcmp(*name, key) != 0)
			name++;
		if (*name != NULL)
			continue;
		for (name = known; *name != NULL; name++)
			append(list, sizeof(list), *name);
		cv_error_set(error, "%s: unknown key \"%s\"; known are %s", where, key, list);
		return -EINVAL;
	}
	return 0;
}

int cv_config_string(const json_t *object, const char *key, const char *where, const char **value,
	struct cv_error *error)
{
	const json_t *found = json_object_get(object, key);

	if (found == NULL)
		return 0;
	if (!json_is_string(found)) {
		cv_error_set(
			error, "%s: %s is %s; it must be a string", where, key, type_name(found));
		return -EINVAL;
	}
	*value = json_string_value(found);
	return 0;
}

int cv_config_integer(const json_t *object, const char *key, const char *where, int64_t low,
	int64_t high, int64_t *value, struct cv_error *error)
{
	const json_t *found = json_object_get(object, key);

	if (found == NULL)
		return 0;
	if (!json_is_integer(found)) {
		cv_error_set(error, "%s: %s is %s; it must be a whole number", where, key,
			type_name(found));
		return -EINVAL;
	}
	if (json_integer_value(found) < low || json_integer_value(found) > high) {
		cv_error_set(error,
			"%s: %s is %" JSON_INTEGER_FORMAT "; it must be from %" PRId64
			" to %" PRId64,
			where, key, json_integer_value(found), low, high);
		return -EINVAL;
	}
	*value = json_integer_value(found);
	return 0;
}

int cv_config_array(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error)
{
	*value = json_object_get(object, key);
	if (*value != NULL && !json_is_array(*value)) {
		cv_error_set(
			error, "%s: %s is %s; it must be an array", where, key, type_name(*value));
		return -EINVAL;
	}
	return 0;
}

int cv_config_no_port(
	const char *where, const char *name, const struct cv_nf_env *env, struct cv_error *error)
{
	char list[256] = "";

	for (unsigned i = 0; i < env->ports_count; i++)
		append(list, sizeof(list), env->ports[i]);
	cv_error_set(error, "%s: no port is called \"%s\"; the ports are %s", where, name,
		env->ports_count == 0 ? "none" : list);
	return -EINVAL;
}

int cv_config_port(const json_t *object, const char *key, const char *where,
	const struct cv_nf_env *env, int *port, struct cv_error *error)
{
	const char *name = NULL;
	int found;

	if (cv_config_string(object, key, where, &name, error) != 0)
		return -EINVAL;
	if (name == NULL)
		return 0;
	found = cv_nf_env_port(env, name);
	if (found < 0)
		return cv_config_no_port(where, name, env, error);
	*port = found;
	return 0;
}
