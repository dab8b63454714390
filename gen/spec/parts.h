// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The parts of a trial's specification that have files of their own: readers of one key each, as
// struct gen_field calls them. Their target is the struct gen_spec, of which each fills its part.
#ifndef GEN_SPEC_PARTS_H
#define GEN_SPEC_PARTS_H

#include <stddef.h>

#include <jansson.h>

#include "gen/spec/fields.h"
#include "gen/spec/spec.h"

#define GEN_SPEC_AT(member) offsetof(struct gen_spec, member)

static inline struct gen_spec *gen_spec_of(const struct gen_reader *reader)
{
	return reader->target;
}

int gen_spec_flows(struct gen_reader *reader, const char *key, json_t *value);
// How many packets, or an object with the outer header as well.
int gen_spec_convoys(struct gen_reader *reader, const char *key, json_t *value);

#endif
