// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ports of the tester that are joined to each other with no device between, one kind after the
// other: what the tester sends there, it receives.
#ifndef GEN_SELFTEST_LOOPBACK_H
#define GEN_SELFTEST_LOOPBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/port/ports.h"
#include "gen/port/reflector.h"
#include "gen/traffic/wire.h"

struct gen_loopback_kind {
	const char *name;
	const char *like[4]; // texts of --port options that it stands for begin so
	bool needs_reflector; // a thread on another core
	bool needs_dpdk;
};

struct gen_loopback {
	const struct gen_loopback_kind *kind;
	uint32_t port_count; // 2, or 1 that is joined to itself
	struct gen_port *ports[2];
	struct gen_reflector *reflector; // NULL: none is running
	char directory[64]; // of a socket; empty: none
};

// By its name; NULL: there is none of that name, and names has them all, with spaces between.
const struct gen_loopback_kind *gen_loopback_find(const char *name, const char **names);

// The kind that a port is of; NULL where its device cannot be joined to itself (a NIC).
const struct gen_loopback_kind *gen_loopback_of(const struct gen_port_option *option);

// Opens and attaches the ports. reflector_core: for a kind that needs it. 0, or a negative errno with
// error set. gen_loopback_close afterwards in both cases.
int gen_loopback_open(struct gen_loopback *loopback, const struct gen_loopback_kind *kind,
	uint32_t reflector_core, struct cv_error *error);
void gen_loopback_close(struct gen_loopback *loopback);

#endif
