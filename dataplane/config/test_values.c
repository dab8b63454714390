// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/values.h"

static const char *const words[] = {"stop", "go", NULL};
static const char *const keys[] = {"text", "number", "flag", "list", "table", "word", NULL};

// Reads one key of everything, and says what came of it.
static const char *read_all(
	const char *json, const char *where, struct cv_error *error, int64_t *number)
{
	json_t *object = json_loads(json, JSON_DECODE_ANY, NULL);
	const char *text = "fallback";
	const json_t *list, *table;
	static char copy[64];
	unsigned word = 0;
	bool flag = false;

	assert_non_null(object);
	memset(error, 0, sizeof(*error));
	*number = 7;
	if (cv_config_keys(object, keys, where, error) != 0 ||
		cv_config_string(object, "text", where, &text, error) != 0 ||
		cv_config_integer(object, "number", where, -2, 1000, number, error) != 0 ||
		cv_config_bool(object, "flag", where, &flag, error) != 0 ||
		cv_config_array(object, "list", where, &list, error) != 0 ||
		cv_config_object(object, "table", where, &table, error) != 0 ||
		cv_config_word(object, "word", where, words, &word, error) != 0)
		assert_true(error->text[0] != '\0');
	else
		snprintf(copy, sizeof(copy), "%s %s %d %d %s", text, words[word], flag,
			list != NULL ? (int)json_array_size(list) : -1,
			table != NULL ? "table" : "-");
	json_decref(object);
	return error->text[0] != '\0' ? error->text : copy;
}

static void reads_or_says_why(void **state)
{
	static const struct {
		const char *json, *where, *says;
	} rows[] = {
		{"{}", "", "fallback stop 0 -1 -"},
		{"{\"text\": \"a\", \"number\": -2, \"flag\": true, \"list\": [1], \"table\": {}, "
		 "\"word\": \"go\"}",
			"", "a go 1 1 table"},
		{"3", "", "must be an object, { ... }"},
		{"[]", "fw", "fw: must be an object, { ... }"},
		{"{\"colour\": 1}", "fw",
			"fw: colour: unknown; known are: text number flag list table word"},
		{"{\"text\": 5}", "", "text: 5: must be a string"},
		{"{\"text\": null}", "fw: rules[3]", "fw: rules[3]: text: null: must be a string"},
		{"{\"number\": 1001}", "", "number: 1001: must be a whole number from -2 to 1000"},
		{"{\"number\": -3}", "", "number: -3: must be a whole number from -2 to 1000"},
		{"{\"number\": 1.5}", "", "number: 1.5: must be a whole number from -2 to 1000"},
		{"{\"number\": \"1\"}", "",
			"number: \"1\": must be a whole number from -2 to 1000"},
		{"{\"flag\": 0}", "", "flag: 0: must be true or false"},
		{"{\"list\": {\"a\": 1}}", "", "list: {\"a\":1}: must be an array, [ ... ]"},
		{"{\"table\": [1]}", "", "table: [1]: must be an object, { ... }"},
		{"{\"word\": \"Go\"}", "", "word: \"Go\": must be one of: stop go"},
		{"{\"word\": 1}", "", "word: 1: must be one of: stop go"},
	};
	struct cv_error error;
	int64_t number;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
			read_all(rows[i].json, rows[i].where, &error, &number), rows[i].says);
	read_all("{\"number\": -2}", "", &error, &number);
	assert_int_equal(number, -2);
}

// A message is cut between characters, and never written past its end.
static void long_values_are_cut(void **state)
{
	struct cv_error error = {0};
	char text[600];
	json_t *value;

	// From the second byte on, every character has two.
	text[0] = 'x';
	for (size_t i = 1; i < sizeof(text) - 1; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(cv_config_cut(text, 80), 79);
	assert_int_equal(cv_config_cut(text, 81), 81);
	assert_int_equal(cv_config_cut("abc", 80), 3);
	value = json_string(text);
	assert_non_null(value);
	assert_int_equal(cv_config_wrong(text, text, value, &error, "%s", text), -EINVAL);
	json_decref(value);
	memset(&error, 0, sizeof(error));
	value = json_string(text);
	cv_config_wrong("", "key", value, &error, "must be short");
	json_decref(value);
	value = json_string(error.text);
	assert_non_null(value);
	assert_non_null(strstr(error.text, ": must be short"));
	json_decref(value);
}

static void missing_is_said(void **state)
{
	struct cv_error error = {0};

	assert_int_equal(cv_config_missing("fw", "default", &error), -EINVAL);
	assert_string_equal(error.text, "fw: default: is missing; add it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_or_says_why),
		cmocka_unit_test(long_values_are_cut),
		cmocka_unit_test(missing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
