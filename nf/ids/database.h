// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The patterns of rules as Hyperscan has them: each once, however many rules have it.
#ifndef CV_IDS_DATABASE_H
#define CV_IDS_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hs.h>

#include "nf/ids/rule.h"

// What a pattern that matches says.
struct cv_ids_part {
	uint32_t rule; // its index
	uint8_t bit; // of its parts
};

struct cv_ids_database {
	hs_database_t *hs; // NULL: there is no pattern
	uint32_t patterns;
	uint32_t *first; // by pattern, its first part; one more behind
	struct cv_ids_part *part;
	uint32_t bare_count;
	uint32_t *bare; // rules without a pattern, in order
};

// Makes the database of what a protocol's packets, or a direction of its streams, are searched for.
// Returns 0, -ENOMEM, -ENOTSUP: Hyperscan does not take a pattern of *wrong, a rule's index; or
// -EINVAL: it takes none of them, for the reason in problem. Either way *database, which was zero, is
// to be freed.
int cv_ids_database_make(struct cv_ids_database *database, const struct cv_ids_rules *rules,
	enum cv_ids_proto proto, bool streams, uint32_t *wrong, struct cv_ids_problem *problem);
void cv_ids_database_free(struct cv_ids_database *database);

#endif
