// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The command line of convoy-gen.
#ifndef GEN_OPTIONS_H
#define GEN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/port/ports.h"
#include "gen/selftest/loopback.h"
#include "gen/traffic/wire.h"

// Exit statuses.
#define GEN_OK 0
#define GEN_FAILED 1
#define GEN_BAD_INPUT 2

struct gen_options {
	uint32_t port_count;
	struct gen_port_option ports[GEN_MAX_PORTS];
	const char *spec; // file; NULL: standard input
	const struct gen_loopback_kind *self_test; // NULL: none
	int core;
	int reflector_core; // -1: this process may use one core only
	int device_core; // -1: nobody said where the device is
	double attach_timeout_s;
};

// Fills *options, checked whole. -1: go on; otherwise the exit status, all said.
// gen_options_free afterwards in both cases.
int gen_options_parse(int argc, char **argv, struct gen_options *options);
void gen_options_free(struct gen_options *options);

// One line on standard error; returns status.
__attribute__((format(printf, 2, 3))) int gen_complain(int status, const char *format, ...);

#endif
