// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The words of a route as they are written, in the plan and in files alike: each error says where,
// what and how to fix it. All return 0, or -EINVAL with error set.
#ifndef CV_ROUTE_TEXT_H
#define CV_ROUTE_TEXT_H

#include "chain/nf.h"
#include "packet/prefix.h"

int cv_route_text_prefix(
	const char *text, const char *where, struct cv_prefix *prefix, struct cv_error *error);

// A unicast address: of a next hop or a neighbour. text may be NULL: missing.
int cv_route_text_via(
	const char *text, const char *where, struct cv_address *via, struct cv_error *error);

int cv_route_text_port(const struct cv_nf_env *env, const char *name, const char *where,
	uint8_t *port, struct cv_error *error);

int cv_route_text_mac(const char *text, const char *where, uint8_t *mac, struct cv_error *error);

#endif
