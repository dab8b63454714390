// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "config/params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "packet/ether.h"

#define DOCUMENT_SHOWN 160 // bytes of a name in a message
#define KEY_SHOWN 64 // of a key
#define VALUE_SHOWN 80 // of a value

// How many bytes of a text, at most max, are whole characters: half of one (UTF-8) would make a
// message that is no JSON string.
static int cut(const char *text, size_t max)
{
	const size_t length = strnlen(text, max + 1);

	if (length <= max)
		return (int)length;
	while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
		max--;
	return (int)max;
}

struct cv_where cv_where_top(const char *document, struct cv_error *error)
{
	return (struct cv_where){.document = document, .error = error};
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

int cv_where_error(const struct cv_where *at, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cv_error_set(at->error, "%.*s%s%s%s%s", cut(at->document, DOCUMENT_SHOWN), at->document,
		at->document[0] != '\0' ? ": " : "", at->path, at->path[0] != '\0' ? ": " : "",
		text);
	return -EINVAL;
}

int cv_where_wrong(
	const struct cv_where *at, const char *key, const json_t *value, const char *format, ...)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = text != NULL ? text : "?";
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	cv_where_error(at, "%.*s%s%.*s: %s", cut(key, KEY_SHOWN), key, key[0] != '\0' ? ": " : "",
		cut(shown, VALUE_SHOWN), shown, what);
	free(text);
	return -EINVAL;
}

static bool has_key(const struct cv_param *params, const char *key)
{
	for (; params->type != CV_PARAMS_END; params++) {
		if (params->key == NULL ? has_key(params->params, key)
					: strcmp(params->key, key) == 0)
			return true;
	}
	return false;
}

static size_t list_keys(const struct cv_param *params, char *text, size_t used, size_t size)
{
	for (; params->type != CV_PARAMS_END && used < size; params++) {
		if (params->key == NULL)
			used = list_keys(params->params, text, used, size);
		else
			used += (size_t)snprintf(text + used, size - used, " %s", params->key);
	}
	return used;
}

// Every key of the object is in the table.
static int check_keys(
	const struct cv_where *at, const json_t *object, const struct cv_param *params)
{
	char list[256] = "";
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		if (has_key(params, key))
			continue;
		list_keys(params, list, 0, sizeof(list));
		return cv_where_error(
			at, "%.*s: unknown; known are:%s", cut(key, KEY_SHOWN), key, list);
	}
	return 0;
}

static void store(const struct cv_param *param, void *member, int64_t value)
{
	switch (param->size) {
	case 1:
		*(uint8_t *)member = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)member = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)value;
		break;
	default:
		*(uint64_t *)member = (uint64_t)value;
	}
}

static void set_defaults(const struct cv_param *params, void *target)
{
	for (; params->type != CV_PARAMS_END; params++) {
		char *member = (char *)target + params->offset;

		switch (params->type) {
		case CV_EACH:
		case CV_CUSTOM:
			break;
		case CV_PARAMS:
			set_defaults(params->params, member);
			break;
		case CV_BOOL:
			*(bool *)member = params->fallback != 0;
			break;
		case CV_NUMBER:
			*(double *)member = params->fallback;
			break;
		case CV_INTEGER:
		case CV_WORD:
			store(params, member, (int64_t)params->fallback);
			break;
		default:
			memset(member, 0, params->size);
		}
	}
}

static int read_integer(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *member)
{
	const json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || (double)number < param->low ||
		(double)number > param->high ||
		(param->power_of_two && (number & (number - 1)) != 0))
		return cv_where_wrong(at, param->key, value, "must be a %s from %.15g to %.15g",
			param->power_of_two ? "power of two" : "whole number", param->low,
			param->high);
	store(param, member, number);
	return 0;
}

static int read_number(const struct cv_where *at, const struct cv_param *param, const json_t *value,
	double *member)
{
	*member = json_number_value(value);
	if (json_is_number(value) && *member >= param->low && *member <= param->high)
		return 0;
	return cv_where_wrong(at, param->key, value, "must be a number from %.15g to %.15g",
		param->low, param->high);
}

static int read_text(const struct cv_where *at, const struct cv_param *param, const json_t *value,
	const char **member)
{
	const double length = (double)json_string_length(value);

	if (!json_is_string(value))
		return cv_where_wrong(at, param->key, value, "must be a string");
	if (length == 0)
		return cv_where_wrong(at, param->key, value, "must not be empty");
	if (param->high > 0 && length > param->high)
		return cv_where_wrong(at, param->key, value,
			"has %.0f bytes; at most %.0f are possible", length, param->high);
	*member = json_string_value(value);
	return 0;
}

static int read_word(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *member)
{
	const char *text = json_string_value(value);
	char list[128] = "";
	size_t used = 0;

	for (unsigned i = 0; text != NULL && param->words[i] != NULL; i++) {
		if (strcmp(text, param->words[i]) == 0) {
			store(param, member, i);
			return 0;
		}
	}
	for (const char *const *word = param->words; *word != NULL && used < sizeof(list); word++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, " %s", *word);
	return cv_where_wrong(at, param->key, value, "must be one of:%s", list);
}

static int read_mac(const struct cv_where *at, const struct cv_param *param, const json_t *value,
	uint8_t *member)
{
	static const uint8_t none[CV_MAC_LEN];
	const char *text = json_string_value(value);

	if (text != NULL && cv_mac_parse(text, member) && !cv_mac_group(member) &&
		memcmp(member, none, sizeof(none)) != 0)
		return 0;
	return cv_where_wrong(
		at, param->key, value, "must be a unicast MAC address, like 02:00:00:00:00:01");
}

static int check_list(const struct cv_where *at, const struct cv_param *param, const json_t *value)
{
	const double size = (double)json_array_size(value);

	if (!json_is_array(value))
		return cv_where_wrong(at, param->key, value, "must be an array, [ ... ]");
	if (param->high > 0 && (size < param->low || size > param->high))
		return cv_where_error(at, "%s: has %.0f elements; give %.0f to %.0f", param->key,
			size, param->low, param->high);
	return 0;
}

static int read_each(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *member)
{
	int rc = check_list(at, param, value);

	for (size_t i = 0; rc == 0 && i < json_array_size(value); i++) {
		const struct cv_where item = cv_where_item(at, param->key, i);

		rc = param->read(&item, "", json_array_get(value, i), member);
	}
	return rc;
}

static int read_params(const struct cv_where *at, const json_t *object,
	const struct cv_param *params, void *target);

static int read_nested(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *member)
{
	const struct cv_where in = cv_where_key(at, param->key);

	if (!json_is_object(value))
		return cv_where_wrong(at, param->key, value, "must be an object, { ... }");
	if (check_keys(&in, value, param->params) != 0)
		return -EINVAL;
	return read_params(&in, value, param->params, member);
}

int cv_param_read(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *target)
{
	void *member = (char *)target + param->offset;

	switch (param->type) {
	case CV_BOOL:
		if (!json_is_boolean(value))
			return cv_where_wrong(at, param->key, value, "must be true or false");
		*(bool *)member = json_is_true(value);
		return 0;
	case CV_INTEGER:
		return read_integer(at, param, value, member);
	case CV_NUMBER:
		return read_number(at, param, value, member);
	case CV_TEXT:
	case CV_FILE:
		return read_text(at, param, value, member);
	case CV_WORD:
		return read_word(at, param, value, member);
	case CV_MAC:
		return read_mac(at, param, value, member);
	case CV_LIST:
		*(const json_t **)member = value;
		return check_list(at, param, value);
	case CV_EACH:
		return read_each(at, param, value, member);
	case CV_MAP:
		if (!json_is_object(value))
			return cv_where_wrong(at, param->key, value, "must be an object, { ... }");
		*(const json_t **)member = value;
		return 0;
	case CV_PARAMS:
		return read_nested(at, param, value, member);
	default:
		return param->read(at, param->key, value, member);
	}
}

static int read_params(const struct cv_where *at, const json_t *object,
	const struct cv_param *params, void *target)
{
	int rc = 0;

	for (; rc == 0 && params->type != CV_PARAMS_END; params++) {
		const json_t *value;

		if (params->key == NULL) {
			rc = read_params(
				at, object, params->params, (char *)target + params->offset);
			continue;
		}
		value = json_object_get(object, params->key);
		if (value != NULL)
			rc = cv_param_read(at, params, value, target);
		else if (params->required)
			rc = cv_where_error(at, "%s: is missing; add it", params->key);
	}
	return rc;
}

int cv_params_read(const struct cv_where *at, const json_t *object, const struct cv_param *params,
	void *target)
{
	if (!json_is_object(object))
		return cv_where_error(at, "must be an object, { ... }");
	if (check_keys(at, object, params) != 0)
		return -EINVAL;
	set_defaults(params, target);
	return read_params(at, object, params, target);
}

static json_t *describe(const struct cv_param *param)
{
	static const char *const types[] = {"", "boolean", "integer", "number", "text", "file",
		"word", "mac", "list", "map", "params", "list", "custom"};
	json_t *row = json_pack("{s:s, s:s, s:b, s:s}", "key", param->key, "type",
		types[param->type], "required", param->required, "doc", param->doc ?: "");
	const bool whole = param->type == CV_INTEGER;
	const bool bounded = whole || param->type == CV_NUMBER;

	if (bounded) {
		json_object_set_new(row, "low",
			whole ? json_integer((json_int_t)param->low) : json_real(param->low));
		json_object_set_new(row, "high",
			whole ? json_integer((json_int_t)param->high) : json_real(param->high));
	}
	if (bounded && param->fallback >= param->low && param->fallback <= param->high)
		json_object_set_new(row, "default",
			whole ? json_integer((json_int_t)param->fallback)
			      : json_real(param->fallback));
	if (param->type == CV_BOOL)
		json_object_set_new(row, "default", json_boolean(param->fallback != 0));
	if (param->type == CV_WORD) {
		json_t *words = json_array();

		for (const char *const *word = param->words; *word != NULL; word++)
			json_array_append_new(words, json_string(*word));
		json_object_set_new(row, "words", words);
		json_object_set_new(
			row, "default", json_string(param->words[(size_t)param->fallback]));
	}
	return row;
}

json_t *cv_params_describe(const struct cv_param *params)
{
	json_t *rows = json_array();

	for (; params->type != CV_PARAMS_END; params++) {
		json_t *within = params->key == NULL ? cv_params_describe(params->params) : NULL;

		if (within == NULL)
			json_array_append_new(rows, describe(params));
		else
			json_array_extend(rows, within);
		json_decref(within);
	}
	return rows;
}
