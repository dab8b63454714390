// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "config/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_SHOWN 80 // bytes of a value in a message

size_t cv_config_cut(const char *text, size_t max)
{
	const size_t length = strnlen(text, max + 1);

	if (length <= max)
		return length;
	while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
		max--;
	return max;
}

const char *cv_config_list(const char *const *words, const char *separator, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (; *words != NULL && used < size; words++)
		used += (size_t)snprintf(
			text + used, size - used, "%s%s", used > 0 ? separator : "", *words);
	return text;
}

int cv_config_wrong(const char *where, const char *key, const json_t *value, struct cv_error *error,
	const char *format, ...)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = text != NULL ? text : "?";
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	cv_error_set(error, "%s%s%.*s: %.*s: %s", where, where[0] != '\0' ? ": " : "",
		(int)cv_config_cut(key, 64), key, (int)cv_config_cut(shown, VALUE_SHOWN), shown,
		what);
	free(text);
	return -EINVAL;
}

int cv_config_missing(const char *where, const char *key, struct cv_error *error)
{
	cv_error_set(error, "%s%s%s: is missing; add it", where, where[0] != '\0' ? ": " : "", key);
	return -EINVAL;
}

int cv_config_keys(
	const json_t *object, const char *const *known, const char *where, struct cv_error *error)
{
	const char *separator = where[0] != '\0' ? ": " : "";
	char list[256];
	const char *key;
	json_t *value;

	if (!json_is_object(object)) {
		cv_error_set(error, "%s%smust be an object, { ... }", where, separator);
		return -EINVAL;
	}
	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const char *const *name = known;

		while (*name != NULL && strcmp(*name, key) != 0)
			name++;
		if (*name != NULL)
			continue;
		cv_error_set(error, "%s%s%.*s: unknown; known are: %s", where, separator,
			(int)cv_config_cut(key, 64), key,
			cv_config_list(known, " ", list, sizeof(list)));
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
	if (!json_is_string(found))
		return cv_config_wrong(where, key, found, error, "must be a string");
	*value = json_string_value(found);
	return 0;
}

int cv_config_integer(const json_t *object, const char *key, const char *where, int64_t low,
	int64_t high, int64_t *value, struct cv_error *error)
{
	const json_t *found = json_object_get(object, key);

	if (found == NULL)
		return 0;
	if (!json_is_integer(found) || json_integer_value(found) < low ||
		json_integer_value(found) > high)
		return cv_config_wrong(where, key, found, error,
			"must be a whole number from %" PRId64 " to %" PRId64, low, high);
	*value = json_integer_value(found);
	return 0;
}

int cv_config_bool(const json_t *object, const char *key, const char *where, bool *value,
	struct cv_error *error)
{
	const json_t *found = json_object_get(object, key);

	if (found == NULL)
		return 0;
	if (!json_is_boolean(found))
		return cv_config_wrong(where, key, found, error, "must be true or false");
	*value = json_is_true(found);
	return 0;
}

int cv_config_array(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error)
{
	*value = json_object_get(object, key);
	if (*value != NULL && !json_is_array(*value))
		return cv_config_wrong(where, key, *value, error, "must be an array, [ ... ]");
	return 0;
}

int cv_config_object(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error)
{
	*value = json_object_get(object, key);
	if (*value != NULL && !json_is_object(*value))
		return cv_config_wrong(where, key, *value, error, "must be an object, { ... }");
	return 0;
}

int cv_config_word(const json_t *object, const char *key, const char *where,
	const char *const *words, unsigned *value, struct cv_error *error)
{
	const json_t *found = json_object_get(object, key);
	const char *text = json_string_value(found);
	char list[128];

	if (found == NULL)
		return 0;
	for (unsigned i = 0; text != NULL && words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*value = i;
			return 0;
		}
	}
	return cv_config_wrong(where, key, found, error, "must be one of: %s",
		cv_config_list(words, " ", list, sizeof(list)));
}
