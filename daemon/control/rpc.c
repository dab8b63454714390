// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/control/rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What a request would take, before it is taken: NULL, or what is too much.
static const char *too_much(const char *line, size_t bytes)
{
	unsigned depth = 0, values = 0;
	bool in_string = false;

	for (size_t i = 0; i < bytes; i++) {
		const char c = line[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth > 0)
			depth--;
		values += c == '{' || c == '[' || c == ',' || c == ':';
		if (depth > CV_RPC_DEPTH_MAX)
			return "nested too deep: 32 levels are possible";
		if (values > CV_RPC_VALUES_MAX)
			return "too many values: 4194304 are possible";
	}
	return NULL;
}

// A text of ours may have been cut in the middle of a character.
static json_t *text_of(const char *text)
{
	json_t *string = json_string(text);
	char copy[sizeof(((struct cv_error *)0)->text)];

	if (string != NULL)
		return string;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

// On one line; takes the reference.
static char *line_of(json_t *json)
{
	char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
	char *line = NULL;
	size_t length;

	json_decref(json);
	if (text == NULL)
		return NULL;
	length = strlen(text);
	line = realloc(text, length + 2);
	if (line == NULL) {
		free(text);
		return NULL;
	}
	memcpy(line + length, "\n", 2);
	return line;
}

static char *error_line(json_t *id, enum cv_rpc_error code, const char *why)
{
	return line_of(json_pack("{s:s, s:{s:i, s:o}, s:O}", "jsonrpc", "2.0", "error", "code",
		(int)code, "message", text_of(why), "id", id == NULL ? json_null() : id));
}

char *cv_rpc_refuse(enum cv_rpc_error code, const char *why)
{
	return error_line(NULL, code, why);
}

// A request, as it is read.
struct request {
	const json_t *id; // NULL: it wants no answer
	const char *method;
	const json_t *params;
};

static int read_version(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	if (json_is_string(value) && strcmp(json_string_value(value), "2.0") == 0)
		return 0;
	return cv_where_wrong(at, key, value, "must be \"2.0\"");
}

static int read_id(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	if (!json_is_integer(value) && !json_is_null(value) &&
		(!json_is_string(value) || json_string_length(value) > CV_RPC_ID_MAX))
		return cv_where_wrong(
			at, key, value, "must be an integer, null or at most 128 bytes");
	*(const json_t **)member = value;
	return 0;
}

static const struct cv_param request_params[] = {
	{"jsonrpc", CV_CUSTOM, .required = true, .read = read_version},
	{"id", CV_CUSTOM, CV_AT(struct request, id), .read = read_id},
	{"method", CV_TEXT, CV_AT(struct request, method), .required = true},
	{"params", CV_MAP, CV_AT(struct request, params)},
	{0},
};

static const struct cv_rpc_method *find(const struct cv_rpc_method *method, const char *name)
{
	while (method->name != NULL && strcmp(method->name, name) != 0)
		method++;
	return method->name != NULL ? method : NULL;
}

static enum cv_rpc_error code_of(int rc)
{
	if (rc == -EINVAL || rc == -ENOENT || rc == -ENOSPC)
		return CV_RPC_BAD_INPUT;
	return rc == -EBUSY ? CV_RPC_BUSY : CV_RPC_FAILED;
}

// Reads the parameters and calls. 0 with *result set, or the number of an error.
static int call(const struct cv_rpc *rpc, const struct cv_rpc_method *method, const json_t *params,
	int file, json_t **result, struct cv_error *error)
{
	static const struct cv_param none[] = {{0}};
	const struct cv_where at = cv_where_top("", error);
	json_t *empty = params == NULL ? json_object() : NULL;
	void *read = calloc(1, method->params_size + 1);
	int rc = -ENOMEM;

	if (read != NULL && (params != NULL || empty != NULL))
		rc = cv_params_read(&at, params != NULL ? params : empty,
			method->params != NULL ? method->params : none, read);
	if (rc == 0)
		rc = method->call(rpc->of, read, file, result, error);
	if (rc == 0 && *result == NULL)
		rc = -ENOMEM;
	if (rc == -ENOMEM)
		cv_error_set(error, "out of memory"); // unless an error says more
	free(read);
	json_decref(empty);
	return rc == 0 ? 0 : (int)code_of(rc);
}

static char *answer(const struct cv_rpc *rpc, bool may_change, const json_t *json, int file)
{
	struct request request = {.id = NULL};
	const struct cv_rpc_method *method;
	struct cv_error error = {0};
	const struct cv_where at = cv_where_top("", &error);
	json_t *result = NULL;
	char why[128];
	int code;

	if (cv_params_read(&at, json, request_params, &request) != 0)
		return error_line(NULL, CV_RPC_NO_REQUEST, error.text);
	method = find(rpc->methods, request.method);
	if (method == NULL) {
		code = CV_RPC_NO_METHOD;
		snprintf(why, sizeof(why), "%.64s: no such method; \"methods\" lists all",
			request.method);
		cv_error_set(&error, "%s", why);
	} else if (method->changes && !may_change) {
		code = CV_RPC_READ_ONLY;
		cv_error_set(&error, "%s: this socket is for reading; use control.sock beside it",
			method->name);
	} else {
		code = call(rpc, method, request.params, file, &result, &error);
	}
	if (request.id == NULL) {
		json_decref(result);
		return NULL;
	}
	if (code != 0)
		return error_line((json_t *)(uintptr_t)request.id, code, error.text);
	return line_of(
		json_pack("{s:s, s:o, s:O}", "jsonrpc", "2.0", "result", result, "id", request.id));
}

char *cv_rpc_answer(
	const struct cv_rpc *rpc, bool may_change, const char *line, size_t bytes, int file)
{
	const char *why = too_much(line, bytes);
	char text[sizeof(((json_error_t *)0)->text) + 32];
	json_error_t error;
	json_t *json;
	char *line_out;

	if (why != NULL)
		return error_line(NULL, CV_RPC_NO_REQUEST, why);
	json = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &error);
	if (json == NULL) {
		snprintf(text, sizeof(text), "byte %d: %s", error.position, error.text);
		return error_line(NULL, CV_RPC_NOT_JSON, text);
	}
	line_out = answer(rpc, may_change, json, file);
	json_decref(json);
	return line_out;
}

json_t *cv_rpc_describe(const struct cv_rpc_method *methods)
{
	json_t *all = json_array();

	for (; methods->name != NULL; methods++)
		json_array_append_new(
			all, json_pack("{s:s, s:b, s:o, s:s}", "name", methods->name, "changes",
				     methods->changes, "params",
				     methods->params != NULL ? cv_params_describe(methods->params)
							     : json_array(),
				     "doc", methods->doc));
	return all;
}
