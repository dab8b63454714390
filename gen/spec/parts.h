// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The parts of a trial's specification that have files of their own.
#ifndef GEN_SPEC_PARTS_H
#define GEN_SPEC_PARTS_H

#include "config/params.h"
#include "gen/spec/spec.h"

// A cv_param's read() into uint8_t[6]: any MAC address, group addresses too.
int gen_spec_mac(const struct cv_where *at, const char *key, const json_t *value, void *mac);

// The keys of "flows", into a struct gen_flows.
extern const struct cv_param gen_flows_params[];

// "convoys", read() into a struct gen_spec: how many packets, or an object with the outer header.
int gen_spec_convoys(const struct cv_where *at, const char *key, const json_t *value, void *spec);

#endif
