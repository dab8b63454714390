// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Mappings and permits as flows use them: each lives as long as a flow does. A mapping has a number
// among those of all workers; mostly this worker has it, or the other end's of a hairpin.
#ifndef CV_NAT_USE_H
#define CV_NAT_USE_H

#include "nf/nat/nat.h"

// Who has the mapping of a number, of those that there are.
struct cv_nat_worker *cv_nat_use_holder(const struct cv_nat_worker *own, uint32_t number);

// The mapping of a number that a flow has: it stays as it is for as long.
struct cv_nat_mapping *cv_nat_use_at(const struct cv_nat_worker *own, uint32_t number);

// Who has the mappings of an internal address: this worker, but for a hairpin's other end.
struct cv_nat_worker *cv_nat_use_home(struct cv_nat_worker *own,
	const struct cv_flow_packet *packet, const union cv_flow_address *address);

// Finds or makes the mapping of a tuple's source, at its home, under its lock; a flow uses it from now
// on, by its index there, or its permit. Returns CV_NEXT or a drop.
uint8_t cv_nat_use_source(const struct cv_nat *nat, struct cv_nat_worker *own,
	const struct cv_nf_worker *worker, const struct cv_flow_packet *packet,
	const struct cv_flow_tuple *tuple, enum cv_nat_kind kind, uint32_t *index);

// The permit of a remote address that a flow uses in place of its mapping, which it uses itself. Returns its
// index; CV_NAT_NONE: there is no room for it. At the mapping's home, under its lock.
uint32_t cv_nat_use_permit(
	struct cv_nat_worker *own, uint32_t index, rte_be32_t remote, uint64_t now);

// Asks for the memory that cv_nat_use_source() will read for those of n <= CV_BURST_MAX tuples that
// come from inside.
void cv_nat_use_expect(const struct cv_nat *nat, struct cv_nat_worker *own,
	const struct cv_flow_tuple *tuples, unsigned n);

// The mapping that an external destination is, which a flow uses from now on: its number;
// CV_NAT_NONE.
uint32_t cv_nat_use_destination(struct cv_nat_worker *own, const struct cv_flow_tuple *tuple);

// A flow from outside, from a remote address, uses the mapping of a number: its number, or that of
// its permit, which the flow uses in place of it. CV_NAT_NONE: that address may not send.
uint32_t cv_nat_use_from_outside(
	struct cv_nat_worker *own, uint32_t number, rte_be32_t remote, uint64_t now);

// Whether what a flow from outside uses, a mapping or a permit, is still for this remote address.
bool cv_nat_use_may_send(const struct cv_nat_worker *own, uint32_t number, rte_be32_t remote);

// Asks for the memory that cv_nat_use_end() will read for n <= CV_BURST_MAX numbers.
void cv_nat_use_expect_end(struct cv_nat_worker *own, const uint32_t *numbers, unsigned n);

// A flow uses a mapping, or a permit, no more.
void cv_nat_use_end(const struct cv_nat_worker *own, uint32_t number, uint64_t now);

#endif
