// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows of a process that was killed have the same external ports in this one. Its mappings are read as they
// are found, and may be anything: each is made anew, its port claimed from the blocks, when a flow is
// restored that uses it.
#include "nf/nat/nat.h"
#include "nf/nat/use.h"

int cv_nat_restore_begin(void *instance, int fd, struct cv_error *error)
{
	struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const int rc = cv_flow_memory_look(&state->before, state->memory.bytes, fd, error);
	struct cv_nat_worker *own;

	for (unsigned i = 0; (own = cv_nat_next_worker(state, &i)) != NULL; i++) {
		own->nat = instance;
		if (rc == 0)
			cv_nat_blocks_restore(own->blocks);
	}
	return rc;
}

// The memory of a worker's mappings there.
static const void *mappings_before(const struct cv_nat_worker *own)
{
	return RTE_PTR_ADD(own->state->before.start, own->at);
}

void cv_nat_restore_end(void *instance, struct cv_nf_worker *worker)
{
	struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const struct cv_nat_worker *own;

	for (unsigned i = 0; (own = cv_nat_next_worker(state, &i)) != NULL; i++)
		cv_nat_blocks_rest(own->blocks,
			RTE_PTR_ADD(
				mappings_before(own), cv_nat_mappings_bytes(state->mappings_each)),
			worker->now);
	cv_flow_memory_free(&state->before);
}

// The mapping that a flow of the process before used, which one of this one uses now: its index, or
// CV_NAT_NONE. By who holds the lock.
static uint32_t restore_mapping_locked(struct cv_nat_worker *own, const struct cv_nat_mapping *was)
{
	static const uint8_t zero[sizeof(was->key.zero)];
	const uint32_t known = cv_nat_mappings_by_key(own->mappings, &was->key);
	const int kind = cv_nat_kind_of(was->key.proto);
	struct cv_nat_port port = {.address = was->external, .port = was->external_port};
	struct cv_nat_mapping *mapping;

	if (known != CV_NAT_NONE) {
		mapping = cv_nat_mapping_at(own->mappings, known);
		if (mapping->is_permit || mapping->external != was->external ||
			mapping->external_port != was->external_port)
			return CV_NAT_NONE;
		mapping->flows++;
		return known;
	}
	if (kind < 0 || memcmp(was->key.zero, zero, sizeof(zero)) != 0 ||
		!cv_nat_mappings_have_room(own->mappings, 1) ||
		!cv_nat_blocks_claim(own->blocks, was->key.internal, (enum cv_nat_kind)kind, &port))
		return CV_NAT_NONE;
	return cv_nat_mappings_add(own->mappings,
		&(struct cv_nat_mapping){.key = was->key,
			.external = was->external,
			.external_port = was->external_port,
			.block = port.block,
			.flows = 1},
		true);
}

static uint32_t restore_mapping(struct cv_nat_worker *own, const struct cv_nat_mapping *was)
{
	uint32_t index;

	cv_nat_lock(own);
	index = restore_mapping_locked(own, was);
	cv_nat_unlock(own);
	return index;
}

// The same of a permit, and of its mapping.
static uint32_t restore_permit(
	struct cv_nat_worker *own, const struct cv_nat_mapping *was, uint64_t now)
{
	struct cv_nat_mapping of;
	struct cv_nat_key key;
	uint32_t mapping, permit;

	if (was->block >= own->state->mappings_each)
		return CV_NAT_NONE;
	of = cv_nat_mappings_before(mappings_before(own), was->block);
	key = of.key;
	key.remote = was->key.remote;
	if (of.is_permit != 0 || memcmp(&key, &was->key, sizeof(key)) != 0)
		return CV_NAT_NONE;
	mapping = restore_mapping(own, &of);
	if (mapping == CV_NAT_NONE)
		return CV_NAT_NONE;
	cv_nat_lock(own);
	permit = cv_nat_use_permit(own, mapping, key.remote, now);
	cv_nat_unlock(own);
	if (permit == CV_NAT_NONE)
		cv_nat_use_end(own, own->first + mapping, now);
	return permit;
}

// By the number there, which its flow's protocol goes with: the number here, or CV_NAT_NONE. A hairpin has a
// mapping of another worker.
static uint32_t restore_number(
	const struct cv_nat_worker *flows, uint32_t number, uint8_t proto, uint64_t now)
{
	struct cv_nat_worker *own;
	struct cv_nat_mapping was;
	uint32_t index;

	if (number >= flows->state->mappings_all)
		return CV_NAT_NONE;
	own = cv_nat_use_holder(flows, number);
	was = cv_nat_mappings_before(mappings_before(own), number - own->first);
	if (was.key.proto != proto || was.is_permit > 1)
		return CV_NAT_NONE;
	index = was.is_permit ? restore_permit(own, &was, now) : restore_mapping(own, &was);
	return index == CV_NAT_NONE ? CV_NAT_NONE : own->first + index;
}

// Whether what is not read of mappings can be.
static bool makes_sense(
	const struct cv_nat *nat, const struct cv_flow_tuple *tuple, const struct cv_nat_slot *slot)
{
	if (slot->is_address)
		return !slot->from_forward && cv_nat_kind_of(tuple->proto) < 0 &&
		       cv_nat_is_external(nat, slot->source);
	return true;
}

// The other way that a flow has a mapping: that of its destination, whose port must be the flow's;
// or, of a flow from outside, the permit of its source.
static bool is_destination(const struct cv_nat_worker *own, uint32_t number,
	const struct cv_flow_tuple *tuple, const struct cv_nat_slot *slot)
{
	const struct cv_nat_mapping *mapping = cv_nat_use_at(own, number);

	if (mapping->is_permit && (slot->is_hairpin || mapping->key.remote != tuple->src.ipv4))
		return false;
	return mapping->external_port == tuple->dport;
}

bool cv_nat_restore(
	void *instance, struct cv_nf_worker *worker, struct cv_flow_tuple *tuple, void *kept)
{
	struct cv_nat_worker *own =
		&((const struct cv_nat *)instance)->state->workers[worker->index];
	struct cv_nat_slot *slot = kept;
	const struct cv_nat_slot was = *slot;
	uint32_t source = CV_NAT_NONE, destination = CV_NAT_NONE;
	bool known;

	if (tuple->family != 4)
		return slot->source == 0 && slot->destination == 0;
	known = makes_sense(instance, tuple, slot);
	if (known && cv_nat_has_source(&was)) {
		source = restore_number(own, was.source - 1, tuple->proto, worker->now);
		known = source != CV_NAT_NONE;
		slot->source = source + 1;
	}
	if (known && cv_nat_has_destination(&was)) {
		destination = restore_number(own, was.destination - 1, tuple->proto, worker->now);
		known = destination != CV_NAT_NONE && is_destination(own, destination, tuple, &was);
		slot->destination = (destination + 1) & 0xfffffff;
	}
	if (known && cv_nat_repeat(own, tuple, slot))
		return true;
	if (source != CV_NAT_NONE)
		cv_nat_use_end(own, source, worker->now);
	if (destination != CV_NAT_NONE)
		cv_nat_use_end(own, destination, worker->now);
	return false;
}
