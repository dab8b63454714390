// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/spec/fields.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/values.h"

#define KEYS_MAX 32

int gen_fields_wrong(
	struct gen_reader *reader, const char *key, const json_t *value, const char *fix)
{
	char place[128];

	snprintf(place, sizeof(place), "%s%s", reader->where, key);
	cv_config_wrong(reader->document, place, value, &reader->error, "%s", fix);
	return -1;
}

int gen_fields_number(struct gen_reader *reader, const struct gen_field *field, const json_t *value,
	double *number)
{
	const bool whole = field->type == GEN_UNSIGNED;
	char fix[96];

	*number = json_number_value(value);
	if (json_is_number(value) && *number >= field->min && *number <= field->max &&
		(!whole || json_is_integer(value)))
		return 0;
	snprintf(fix, sizeof(fix), "must be %s from %.15g to %.15g",
		whole ? "a whole number" : "a number", field->min, field->max);
	return gen_fields_wrong(reader, field->key, value, fix);
}

static int read_field(struct gen_reader *reader, const struct gen_field *field, json_t *value)
{
	char *member = (char *)reader->target + field->offset;
	double number;

	switch (field->type) {
	case GEN_NUMBER:
		return gen_fields_number(reader, field, value, (double *)member);
	case GEN_UNSIGNED:
		if (gen_fields_number(reader, field, value, &number) < 0)
			return -1;
		*(uint32_t *)member = (uint32_t)number;
		return 0;
	case GEN_STRING:
		if (!json_is_string(value) || json_string_length(value) == 0)
			return gen_fields_wrong(
				reader, field->key, value, "must be a string that is not empty");
		*(const char **)member = json_string_value(value);
		return 0;
	default:
		return field->custom(reader, field->key, value);
	}
}

int gen_fields_read(struct gen_reader *reader, const char *name, const json_t *object,
	const struct gen_field *fields)
{
	const char *outer = reader->where;
	const char *known[KEYS_MAX + 1] = {NULL};
	char where[64], place[128];

	if (!json_is_object(object))
		return gen_fields_wrong(reader, name, object, "must be an object, { ... }");
	snprintf(where, sizeof(where), "%s%s%s", outer, name, *name != '\0' ? "." : "");
	for (size_t i = 0; i < KEYS_MAX && fields[i].key != NULL; i++)
		known[i] = fields[i].key;
	snprintf(place, sizeof(place), "%s%s%s%s", reader->document,
		outer[0] != '\0' || *name != '\0' ? ": " : "", outer, name);
	if (cv_config_keys(object, known, place, &reader->error) != 0)
		return -1;
	reader->where = where;
	for (; fields->key != NULL; fields++) {
		json_t *value = json_object_get(object, fields->key);

		if (value != NULL && read_field(reader, fields, value) < 0)
			return -1;
	}
	reader->where = outer;
	return 0;
}
