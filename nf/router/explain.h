// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which route a packet takes, for a trace (struct cv_nf's explain() and in_words()).
#ifndef CV_ROUTER_EXPLAIN_H
#define CV_ROUTER_EXPLAIN_H

#include <stdbool.h>

#include "chain/nf.h"
#include "nf/router/fib.h"

// By a worker that may read the tables.
void cv_fib_explain(
	const struct cv_fib *fib, const struct cv_view *view, struct cv_nf_because *because);

// changes: the tables do, and the prefix of an IPv6 route is not told. table: of learned neighbours, or
// NULL. ports: names.
void cv_fib_in_words(const struct cv_fib *fib, bool changes, const struct cv_neighbour_table *table,
	const char *const *ports, const struct cv_nf_because *because, char *words, size_t room);

#endif
