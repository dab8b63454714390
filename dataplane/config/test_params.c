// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/params.h"

static const char *const words[] = {"stop", "go", NULL};

struct inner {
	int8_t small;
	uint64_t large;
};

struct all {
	const char *text;
	int32_t number;
	uint16_t unset;
	double share;
	bool flag, on;
	const json_t *list, *table;
	unsigned word;
	uint8_t mac[6];
	struct inner inner, beside;
	char custom;
	unsigned even, sum;
};

static int read_custom(
	const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	struct all *all = target;

	if (json_string_length(value) != 1)
		return cv_where_wrong(at, key, value, "must be one character");
	all->custom = json_string_value(value)[0];
	return 0;
}

static int add(const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	struct all *all = target;

	if (!json_is_integer(value))
		return cv_where_wrong(at, key, value, "must be a number");
	if (json_integer_value(value) == 13)
		return -ENOMEM;
	all->sum = 10 * all->sum + (unsigned)json_integer_value(value);
	return 0;
}

static const struct cv_param inner[] = {
	{"small", CV_INTEGER, CV_AT(struct inner, small), .low = -128, .high = 127, .fallback = -1},
	{0},
};
static const struct cv_param beside[] = {
	{"large", CV_INTEGER, CV_AT(struct inner, large), .high = 1e12, .fallback = 1e11},
	{0},
};
static const struct cv_param all[] = {
	{"text", CV_TEXT, CV_AT(struct all, text), .high = 8},
	{"number", CV_INTEGER, CV_AT(struct all, number), .low = -2, .high = 1000, .fallback = 7},
	{"unset", CV_INTEGER, CV_AT(struct all, unset), .low = 1, .high = 9},
	{"share", CV_NUMBER, CV_AT(struct all, share), .high = 1, .fallback = 0.5},
	{"flag", CV_BOOL, CV_AT(struct all, flag)},
	{"on", CV_BOOL, CV_AT(struct all, on), .fallback = true},
	{"list", CV_LIST, CV_AT(struct all, list), .low = 1, .high = 2},
	{"table", CV_MAP, CV_AT(struct all, table)},
	{"word", CV_WORD, CV_AT(struct all, word), .words = words, .doc = "whether it moves"},
	{"mac", CV_MAC, CV_AT(struct all, mac)},
	{"inner", CV_PARAMS, CV_AT(struct all, inner), .params = inner},
	{NULL, CV_PARAMS, CV_AT(struct all, beside), .params = beside},
	{"custom", CV_CUSTOM, .read = read_custom},
	{"even", CV_INTEGER, CV_AT(struct all, even), .low = 4, .high = 64, .fallback = 8,
		.power_of_two = true},
	{"each", CV_EACH, .low = 1, .high = 3, .read = add},
	{0},
};

// Reads one key of everything, and says what came of it.
static const char *read_all(const char *json, const char *document, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(document, error);
	json_t *object = json_loads(json, JSON_DECODE_ANY, NULL);
	static char copy[128];
	struct all to;

	memset(&to, 0xff, sizeof(to));
	to.custom = '-';
	to.sum = 0;
	assert_non_null(object);
	memset(error, 0, sizeof(*error));
	if (cv_params_read(&top, object, all, &to) != 0) {
		assert_true(error->text[0] != '\0');
	} else {
		assert_string_equal(error->text, "");
		snprintf(copy, sizeof(copy), "%s %d %d %g %d%d %d %s %s %x %d %lld %c %u %u",
			to.text != NULL ? to.text : "-", to.number, to.unset, to.share, to.flag,
			to.on, to.list != NULL ? (int)json_array_size(to.list) : -1,
			to.table != NULL ? "table" : "-", words[to.word], to.mac[5], to.inner.small,
			(long long)to.beside.large, to.custom, to.even, to.sum);
	}
	json_decref(object);
	return error->text[0] != '\0' ? error->text : copy;
}

static void reads_or_says_why(void **state)
{
	static const struct {
		const char *json, *document, *result;
	} rows[] = {
		{"{}", "", "- 7 0 0.5 01 -1 - stop 0 -1 100000000000 - 8 0"},
		{"{\"text\": \"a\", \"number\": -2, \"unset\": 9, \"share\": 1, \"flag\": true, "
		 "\"on\": false, \"list\": [1], \"table\": {}, \"word\": \"go\", \"mac\": "
		 "\"02:00:00:00:00:0b\", \"inner\": {\"small\": -128}, \"large\": 4294967296, "
		 "\"custom\": \"x\", \"even\": 32, \"each\": [1, 2, 3]}",
			"", "a -2 9 1 10 1 table go b -128 4294967296 x 32 123"},
		{"3", "", "must be an object, { ... }"},
		{"[]", "fw", "fw: must be an object, { ... }"},
		{"{\"colour\": 1}", "fw",
			"fw: colour: unknown; known are: text number unset share flag on list "
			"table word mac inner large custom even each"},
		{"{\"small\": 1}", "fw",
			"fw: small: unknown; known are: text number unset share flag on list table "
			"word mac inner large custom even each"},
		{"{\"text\": 5}", "", "text: 5: must be a string"},
		{"{\"text\": null}", "fw", "fw: text: null: must be a string"},
		{"{\"text\": \"\"}", "", "text: \"\": must not be empty"},
		{"{\"text\": \"123456789\"}", "",
			"text: \"123456789\": has 9 bytes; at most 8 are possible"},
		{"{\"number\": 1001}", "", "number: 1001: must be a whole number from -2 to 1000"},
		{"{\"number\": -3}", "", "number: -3: must be a whole number from -2 to 1000"},
		{"{\"number\": 1.5}", "", "number: 1.5: must be a whole number from -2 to 1000"},
		{"{\"number\": \"1\"}", "",
			"number: \"1\": must be a whole number from -2 to 1000"},
		{"{\"unset\": 0}", "", "unset: 0: must be a whole number from 1 to 9"},
		{"{\"share\": 1.5}", "", "share: 1.5: must be a number from 0 to 1"},
		{"{\"share\": \"1\"}", "", "share: \"1\": must be a number from 0 to 1"},
		{"{\"flag\": 0}", "", "flag: 0: must be true or false"},
		{"{\"list\": {\"a\": 1}}", "", "list: {\"a\":1}: must be an array, [ ... ]"},
		{"{\"list\": []}", "x", "x: list: has 0 elements; give 1 to 2"},
		{"{\"list\": [1,2,3]}", "", "list: has 3 elements; give 1 to 2"},
		{"{\"table\": [1]}", "", "table: [1]: must be an object, { ... }"},
		{"{\"word\": \"Go\"}", "", "word: \"Go\": must be one of: stop go"},
		{"{\"word\": 1}", "", "word: 1: must be one of: stop go"},
		{"{\"mac\": \"03:00:00:00:00:01\"}", "",
			"mac: \"03:00:00:00:00:01\": must be a unicast MAC address, like "
			"02:00:00:00:00:01"},
		{"{\"mac\": \"00:00:00:00:00:00\"}", "x",
			"x: mac: \"00:00:00:00:00:00\": must be a unicast MAC address, like "
			"02:00:00:00:00:01"},
		{"{\"mac\": 1}", "",
			"mac: 1: must be a unicast MAC address, like 02:00:00:00:00:01"},
		{"{\"inner\": 1}", "x", "x: inner: 1: must be an object, { ... }"},
		{"{\"inner\": {\"small\": 128}}", "x",
			"x: inner: small: 128: must be a whole number from -128 to 127"},
		{"{\"inner\": {\"large\": 1}}", "x", "x: inner: large: unknown; known are: small"},
		{"{\"large\": -1}", "x",
			"x: large: -1: must be a whole number from 0 to 1000000000000"},
		{"{\"custom\": \"xy\"}", "x", "x: custom: \"xy\": must be one character"},
		{"{\"even\": 24}", "", "even: 24: must be a power of two from 4 to 64"},
		{"{\"even\": 128}", "", "even: 128: must be a power of two from 4 to 64"},
		{"{\"each\": []}", "x", "x: each: has 0 elements; give 1 to 3"},
		{"{\"each\": {}}", "x", "x: each: {}: must be an array, [ ... ]"},
		{"{\"each\": [1, \"2\", 13]}", "x", "x: each[1]: \"2\": must be a number"},
	};
	struct cv_error error;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
			read_all(rows[i].json, rows[i].document, &error), rows[i].result);
}

static void a_missing_key_that_must_be_there(void **state)
{
	static const struct cv_param params[] = {
		{"text", CV_TEXT, CV_AT(struct all, text), .required = true}, {0}};
	struct cv_error error = {0};
	const struct cv_where top = cv_where_top("plan.json", &error);
	const struct cv_where item = cv_where_item(&top, "stages", 2);
	const struct cv_where at = cv_where_key(&item, "source");
	json_t *object = json_object();
	struct all to;

	assert_int_equal(cv_params_read(&at, object, params, &to), -EINVAL);
	assert_string_equal(error.text, "plan.json: stages[2].source: text: is missing; add it");
	json_decref(object);
}

// What a read() returns comes back, and what it takes may be of another row's type.
static void a_read_of_its_own(void **state)
{
	struct cv_error error = {0};
	const struct cv_where top = cv_where_top("x", &error);
	json_t *object = json_pack("{s:[i,i]}", "each", 1, 13);
	struct all to = {0};

	assert_int_equal(cv_params_read(&top, object, all, &to), -ENOMEM);
	json_decref(object);
	object = json_integer(1001);
	assert_int_equal(cv_param_read(&top, &all[1], object, &to), -EINVAL);
	assert_string_equal(error.text, "x: number: 1001: must be a whole number from -2 to 1000");
	json_decref(object);
}

// A message is cut between characters, and never written past its end.
static void long_values_are_cut(void **state)
{
	struct cv_error error = {0};
	struct cv_where at;
	char text[600];
	json_t *value, *whole;

	// From the second byte on, every character has two.
	text[0] = 'x';
	for (size_t i = 1; i < sizeof(text) - 1; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof(text) - 1] = '\0';
	value = json_string(text);
	assert_non_null(value);
	for (size_t start = 0; start < 4; start++) {
		error.text[0] = '\0';
		at = cv_where_top(text + 399 - 2 * start, &error);
		assert_int_equal(
			cv_where_wrong(&at, text + (start & 1 ? 0 : 1), value, "must be short"),
			-EINVAL);
		whole = json_string(error.text); // NULL: not UTF-8
		assert_non_null(whole);
		assert_non_null(strstr(error.text, ": must be short"));
		json_decref(whole);
	}
	json_decref(value);
}

static void a_table_describes_itself(void **state)
{
	json_t *rows = cv_params_describe(all);
	json_t *row = json_array_get(rows, 8);
	char *text = json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(text, "{\"default\":\"stop\",\"doc\":\"whether it moves\",\"key\":"
				  "\"word\",\"required\":false,\"type\":\"word\",\"words\":"
				  "[\"stop\",\"go\"]}");
	free(text);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(rows, 1), "default")), 7);
	assert_null(json_object_get(json_array_get(rows, 2), "default"));
	json_decref(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_or_says_why),
		cmocka_unit_test(a_missing_key_that_must_be_there),
		cmocka_unit_test(a_read_of_its_own),
		cmocka_unit_test(long_values_are_cut),
		cmocka_unit_test(a_table_describes_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
