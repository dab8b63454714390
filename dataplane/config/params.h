// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reading JSON that somebody may have written by hand: a plan, a port, a function's parameters, a
// trial. A table binds the keys of an object to the members of a struct:
//
//	static const struct cv_param params[] = {
//		{"min", CV_INTEGER, CV_AT(struct config, min), .low = 1, .high = 255, .fallback = 1,
//			.doc = "lowest TTL that passes"},
//		{0},
//	};
//
// Every error is one line, "PLACE: KEY: VALUE: what it must be": VALUE is as it was written. The
// first error wins (error.h).
#ifndef CV_PARAMS_H
#define CV_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "packet/error.h"

// Where something stands in a document, for messages: "plan.json: stages[2].source".
struct cv_where {
	const char *document; // may be empty
	char path[160]; // "stages[2].source"; empty: the whole document
	struct cv_error *error;
};

struct cv_where cv_where_top(const char *document, struct cv_error *error);
struct cv_where cv_where_key(const struct cv_where *in, const char *key);
struct cv_where cv_where_item(const struct cv_where *in, const char *key, size_t index);

// Sets the error, behind the place. Returns -EINVAL.
__attribute__((format(printf, 2, 3))) int cv_where_error(
	const struct cv_where *at, const char *format, ...);

// Refuses the value of a key (of an element of an array: ""): the text says what it must be. Returns
// -EINVAL.
__attribute__((format(printf, 4, 5))) int cv_where_wrong(
	const struct cv_where *at, const char *key, const json_t *value, const char *format, ...);

// What a value is, and the member that it goes to. Strings, lists and objects are borrowed from
// the JSON.
enum cv_param_type {
	CV_PARAMS_END, // of a table
	CV_BOOL, // bool
	CV_INTEGER, // any integer: low to high
	CV_NUMBER, // double: low to high
	CV_TEXT, // const char *: not empty, at most high bytes unless high is 0
	CV_FILE, // const char *: the path of a file to read
	CV_WORD, // unsigned or an enum: the index of one of words
	CV_MAC, // uint8_t[6]: a unicast address
	CV_LIST, // const json_t *: low to high elements unless high is 0
	CV_MAP, // const json_t *: an object
	CV_PARAMS, // a struct with a table of its own; without a key, its keys stand beside these
	CV_EACH, // low to high elements, each of which read() takes, without a key, at its own place
	CV_CUSTOM, // what read() makes of it
};

struct cv_param {
	const char *key;
	enum cv_param_type type;
	size_t offset, size; // of the member: CV_AT()
	bool required;
	bool power_of_two; // of CV_INTEGER: no other
	double low, high;
	// For a missing boolean, number or word (its index). An integer without a default has one
	// outside of its range. Everything else becomes NULL or zero.
	double fallback;
	const char *const *words; // NULL at the end
	const struct cv_param *params; // of CV_PARAMS
	const char *doc; // one line: what it does
	// Reads into the member; without CV_AT() into the struct. 0, or a negative errno with at's
	// error set. What it sets has no default: the caller initializes it.
	int (*read)(const struct cv_where *at, const char *key, const json_t *value, void *member);
};

#define CV_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

// Fills *target: every member of the table, but those that a read() would set and whose key is
// missing; other members stay as they are. Keys are read in the table's order: a read() may rely on
// those before it. Keys that no row has are errors. Returns 0, or a negative errno with at's error
// set: -EINVAL, or what a read() returned.
int cv_params_read(const struct cv_where *at, const json_t *object, const struct cv_param *params,
	void *target);

// Reads one value as a row says, for a read() that takes values of several types. Returns as above.
int cv_param_read(
	const struct cv_where *at, const struct cv_param *param, const json_t *value, void *target);

// The table as a new JSON array, for people and for whoever checks parameters before we do.
json_t *cv_params_describe(const struct cv_param *params);

#endif
