// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Routes, rules and packets that go with each other. Every packet is a flow of its own, is allowed
// by one of the rules and meets one of the routes; each rule and each route is as likely as the
// others. The same numbers give the same traffic on every machine.
#ifndef CV_BENCH_TRAFFIC_H
#define CV_BENCH_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#define BENCH_FRAME_BYTES 60 // 64 on the wire: the FCS is not in memory
#define BENCH_NEIGHBOURS 16

struct bench_route {
	uint32_t prefix; // host order
	uint8_t length;
	uint8_t neighbour; // < BENCH_NEIGHBOURS
};

// Rule i lets packets to route i through, from some network, with some ports; or denies a network
// that no packet comes from.
struct bench_rule {
	uint32_t source; // host order
	uint8_t source_length;
	uint8_t proto; // UDP or TCP
	bool allow;
	uint16_t ports_low, ports_high; // destination
};

struct bench_tables {
	unsigned entries;
	struct bench_route *routes;
	struct bench_rule *rules;
};

// NULL: out of memory.
struct bench_tables *bench_tables_create(unsigned entries);
void bench_tables_destroy(struct bench_tables *tables);

// Writes packet number i of the traffic, BENCH_FRAME_BYTES or more: an IPv4 header with TTL 255 and a good
// checksum, and a UDP header or the beginning of TCP's.
void bench_packet_write(
	const struct bench_tables *tables, uint64_t i, uint8_t *frame, uint16_t bytes);

// The neighbour's MAC address and IPv4 address (host order).
void bench_neighbour_mac(unsigned neighbour, uint8_t mac[6]);
uint32_t bench_neighbour_address(unsigned neighbour);

// The configuration of a function as the plan would hold it: a new reference.
json_t *bench_config(const char *function, const struct bench_tables *tables);

#endif
