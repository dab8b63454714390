// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reads the keys of a JSON object into the members of a struct, by a table that says which is
// which.
#ifndef GEN_SPEC_FIELDS_H
#define GEN_SPEC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "packet/error.h"

enum gen_field_type { GEN_NUMBER, GEN_UNSIGNED, GEN_STRING, GEN_CUSTOM };

struct gen_reader;

// One key, bound to a member: a double, a uint32_t, a borrowed const char *, or what `custom`
// makes of it.
struct gen_field {
	const char *key;
	enum gen_field_type type;
	size_t offset; // of the member
	double min, max;
	int (*custom)(struct gen_reader *reader, const char *key, json_t *value);
};

struct gen_reader {
	struct cv_error error;
	const char *document; // first in every message
	const char *where; // "" or the object's name and a dot
	void *target; // the struct
	unsigned ports; // of the tester
};

// Reads an object that has no other keys than the table's (its last has a NULL key), in the
// table's order: a field may rely on those before it. 0, or -1 with reader->error set.
int gen_fields_read(struct gen_reader *reader, const char *name, const json_t *object,
	const struct gen_field *fields);

// One value within the field's bounds. 0 or -1.
int gen_fields_number(struct gen_reader *reader, const struct gen_field *field, const json_t *value,
	double *number);

// Refuses the value of a key of the object that is being read; returns -1.
int gen_fields_wrong(
	struct gen_reader *reader, const char *key, const json_t *value, const char *fix);

#endif
