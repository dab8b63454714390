// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Mappings and ports go along to another process with the flows that use them: both map the memory that
// those of all workers are in. Other pools, ports, blocks or limits, or another number of workers, are another
// layout.
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>

#include "flow/hash.h"
#include "nf/nat/nat.h"

#define LAYOUT_VERSION 1 // grows when what is in the memory means something else

struct cv_nat_worker *cv_nat_next_worker(struct cv_nat_state *state, unsigned *from)
{
	for (; *from < state->workers_count; (*from)++)
		if (state->workers[*from].mappings != NULL)
			return &state->workers[*from];
	return NULL;
}

static uint64_t layout(const void *instance)
{
	const struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const struct cv_nat_config *config = &state->config;
	const uint64_t numbers[] = {LAYOUT_VERSION, sizeof(struct cv_nat_mapping),
		state->memory.bytes, config->ports.first, config->ports.last, config->block_size,
		config->blocks_per_subscriber, config->block_rest_s, config->mappings,
		state->mappings_each, state->pool_count};
	struct cv_flow_secret none = {.aes = false};
	uint64_t digest = 0;

	for (unsigned i = 0; i < RTE_DIM(numbers); i++)
		digest = cv_flow_sip(&none, &(uint64_t[]){digest, numbers[i]}, 16);
	for (unsigned i = 0; i < state->pool_count; i++)
		digest = cv_flow_sip(&none, &(uint64_t[]){digest, state->pool[i]}, 16);
	return digest;
}

static int give(void *instance)
{
	return ((const struct cv_nat *)instance)->state->memory.fd;
}

static void freeze(void *instance)
{
	struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const struct cv_nat_worker *own;

	for (unsigned i = 0; (own = cv_nat_next_worker(state, &i)) != NULL; i++) {
		cv_nat_mappings_freeze(own->mappings);
		cv_nat_blocks_freeze(own->blocks);
	}
}

// Whether a mapping can be given back: its port is one of its block, or, of a permit, its mapping is there.
// One that never was has neither.
static bool mapping_leads_inside(const struct cv_nat_worker *own, uint32_t index)
{
	const struct cv_nat_mapping *mapping = cv_nat_mapping_at(own->mappings, index);
	const struct cv_nat_port port = {.address = mapping->external,
		.port = mapping->external_port,
		.block = mapping->block};

	if (mapping->is_permit)
		return mapping->block < own->state->mappings_each;
	return (mapping->external == 0 && mapping->flows == 0) ||
	       (cv_nat_kind_of(mapping->key.proto) >= 0 && cv_nat_blocks_have(own->blocks, &port));
}

// One that is being made is whole a moment later.
static bool mappings_lead_inside(const struct cv_nat_worker *own)
{
	for (uint32_t i = 0; i < own->state->mappings_each; i++)
		for (unsigned tries = 0; !mapping_leads_inside(own, i); tries++) {
			if (tries == 100)
				return false;
			sched_yield();
		}
	return true;
}

static int take(void *instance, int fd, struct cv_error *error)
{
	struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const int rc = cv_flow_memory_replace(&state->memory, fd, error);
	const struct cv_nat_worker *own;
	bool inside = true;

	for (unsigned i = 0; rc == 0 && (own = cv_nat_next_worker(state, &i)) != NULL; i++)
		inside = inside && cv_nat_mappings_lead_inside(own->mappings) &&
			 cv_nat_blocks_lead_inside(own->blocks) && mappings_lead_inside(own);
	if (inside)
		return rc;
	cv_error_set(error, "its mappings lead out of their table");
	return -EPROTO;
}

static int taken(void *instance, struct cv_error *error)
{
	struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const struct cv_nat_worker *own;
	bool whole = true;

	for (unsigned i = 0; (own = cv_nat_next_worker(state, &i)) != NULL; i++)
		whole = whole && cv_nat_mappings_thaw(own->mappings) &&
			cv_nat_blocks_thaw(own->blocks);
	if (whole)
		return 0;
	cv_error_set(error, "its mappings did not come whole");
	return -EPROTO;
}

const struct cv_flow_kept cv_nat_kept = {
	.layout = layout,
	.give = give,
	.freeze = freeze,
	.take = take,
	.leads_inside = cv_nat_slot_leads_inside,
	.taken = taken,
	.store = give,
	.restore_begin = cv_nat_restore_begin,
	.restore = cv_nat_restore,
	.restore_end = cv_nat_restore_end,
	.later = CV_FLOW_LATER_ALONE,
};
