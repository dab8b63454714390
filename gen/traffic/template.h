// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One flow's frame: Ethernet, VLAN, IPv4 or IPv6, UDP or TCP, payload, with valid checksums that
// a stamp does not change.
#ifndef GEN_TRAFFIC_TEMPLATE_H
#define GEN_TRAFFIC_TEMPLATE_H

#include <stdint.h>

#include "gen/spec/spec.h"

#define GEN_TCP_SEQ 0x10000000u // of the first octet behind a SYN

// Smallest frame (without FCS) that holds these headers and a stamp.
uint32_t gen_template_min(const struct gen_flows *flows);

// Writes `bytes` (>= gen_template_min, without FCS) of flow number `flow` to `frame`.
void gen_template_write(
	uint8_t *frame, uint32_t bytes, const struct gen_flows *flows, uint32_t flow);

#endif
