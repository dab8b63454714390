// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// IPv6 hosts that nobody lists, and the IPv4 address that each has while it speaks: with a nat behind that
// shares external addresses and ports among them, they are the IPv6 side of RFC 6146's bindings. Of one worker:
// nobody else reads or writes, but for the count. Memory is taken when the table is made, and every call takes
// bounded time but for chains of a keyed hash.
#ifndef CV_NAT64_CLIENTS_H
#define CV_NAT64_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/nat64/address.h"

#define CV_NAT64_CLIENTS_SHORTEST 12 // a prefix: a million addresses

struct cv_nat64_clients;

// The IPv4 addresses of a prefix, host order. An address is another host's when it was idle for so many TSC
// cycles, and no sooner. NULL: no memory, or no random numbers.
struct cv_nat64_clients *cv_nat64_clients_create(uint32_t first, uint8_t length, uint64_t idle);

// Owners are counted: the one that made it, and each of these.
struct cv_nat64_clients *cv_nat64_clients_share(struct cv_nat64_clients *clients);
void cv_nat64_clients_release(struct cv_nat64_clients *clients);

// Whether it was made with these.
bool cv_nat64_clients_are(
	const struct cv_nat64_clients *clients, uint32_t first, uint8_t length, uint64_t idle);

// The address of a host that sends: the one that it has, or gets now. False: all are others'.
bool cv_nat64_clients_take(
	struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6, uint64_t now, uint32_t *ipv4);

// The address that a host has. False: none.
bool cv_nat64_clients_to_ipv4(
	const struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6, uint32_t *ipv4);

// Whether an address is of the prefix: it has a host, or is nobody's.
bool cv_nat64_clients_have(const struct cv_nat64_clients *clients, uint32_t ipv4);

// The host that has an address. False: nobody.
bool cv_nat64_clients_to_ipv6(
	const struct cv_nat64_clients *clients, uint32_t ipv4, struct cv_nat64_ipv6 *ipv6);

// A packet went to the host of an address, which has one.
void cv_nat64_clients_touch(struct cv_nat64_clients *clients, uint32_t ipv4, uint64_t now);

// How many addresses have had a host. May be read by any thread.
uint64_t cv_nat64_clients_count(const struct cv_nat64_clients *clients);

#endif
