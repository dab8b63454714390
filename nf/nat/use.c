// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/use.h"

#include <errno.h>
#include <netinet/in.h>

#include "flow/hash.h"

#define TRIES 4 // ports that are tried for a new mapping

struct cv_nat_worker *cv_nat_use_holder(const struct cv_nat_worker *own, uint32_t number)
{
	struct cv_nat_state *state = own->state;
	struct cv_nat_worker *of = &state->workers[own->index];

	if (number - own->first >= state->mappings_each)
		for (of = state->workers;
			of->mappings == NULL || number - of->first >= state->mappings_each;)
			of++;
	return of;
}

struct cv_nat_mapping *cv_nat_use_at(const struct cv_nat_worker *own, uint32_t number)
{
	const struct cv_nat_worker *of = cv_nat_use_holder(own, number);

	return cv_nat_mapping_at(of->mappings, number - of->first);
}

struct cv_nat_worker *cv_nat_use_home(struct cv_nat_worker *own,
	const struct cv_flow_packet *packet, const union cv_flow_address *address)
{
	const struct cv_flow_homes *homes = cv_flow_homes_of(packet);

	if (homes == NULL)
		return own;
	return &own->state->workers[cv_flow_home_of_address(homes, 4, address)];
}

static struct cv_nat_key key_of(const struct cv_nat *nat, const struct cv_flow_tuple *tuple)
{
	struct cv_nat_key key;

	if (nat->per_remote)
		cv_flow_key_write(&key, tuple->src.ipv4, tuple->dst.ipv4, tuple->sport,
			tuple->dport, tuple->proto);
	else
		cv_flow_key_write(&key, tuple->src.ipv4, 0, tuple->sport, 0, tuple->proto);
	return key;
}

// Takes a port that no flow has: one that a flow has is tried no more, and given back.
static int take_port(struct cv_nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple,
	enum cv_nat_kind kind, struct cv_nat_port *port)
{
	struct cv_nat_port tried[TRIES];
	unsigned count = 0;
	int rc;

	for (;;) {
		struct cv_flow_tuple outside = *tuple;

		rc = cv_nat_blocks_take(
			own->blocks, tuple->src.ipv4, kind, tuple->sport, worker->now, port);
		if (rc != 0)
			break;
		outside.src.ipv4 = port->address;
		outside.sport = port->port;
		if (cv_flow_is_free(packet, &outside))
			break;
		tried[count++] = *port;
		if (count == TRIES) {
			rc = -ENOSPC;
			break;
		}
	}
	for (unsigned i = 0; i < count; i++)
		cv_nat_blocks_give(own->blocks, kind, &tried[i], worker->now);
	return rc;
}

// What the permit of a remote address is found by, beside its mapping.
static struct cv_nat_key permit_key(const struct cv_nat_mapping *mapping, rte_be32_t remote)
{
	struct cv_nat_key key = mapping->key;

	key.remote = remote;
	return key;
}

bool cv_nat_use_may_send(const struct cv_nat_worker *own, uint32_t number, rte_be32_t remote)
{
	const struct cv_nat_key key = permit_key(cv_nat_use_at(own, number), remote);
	struct cv_nat_worker *of = cv_nat_use_holder(own, number);
	uint32_t permit;

	if (own->nat->filtering != CV_NAT_FROM_ADDRESSES)
		return own->nat->filtering == CV_NAT_FROM_ANYWHERE;
	cv_nat_lock(of);
	permit = cv_nat_mappings_by_key(of->mappings, &key);
	cv_nat_unlock(of);
	return permit != CV_NAT_NONE;
}

// A flow uses a mapping, or a permit, no more. By who holds the lock, as below.
static void give_back(struct cv_nat_worker *own, uint32_t index, uint64_t now)
{
	struct cv_nat_mapping *mapping = cv_nat_mapping_at(own->mappings, index);
	const struct cv_nat_mapping was = *mapping;
	const struct cv_nat_port port = {
		.address = was.external, .port = was.external_port, .block = was.block};

	if (--mapping->flows > 0)
		return;
	cv_nat_mappings_remove(own->mappings, index);
	if (was.is_permit)
		give_back(own, was.block, now);
	else
		cv_nat_blocks_give(
			own->blocks, (enum cv_nat_kind)cv_nat_kind_of(was.key.proto), &port, now);
}

uint32_t cv_nat_use_from_outside(
	struct cv_nat_worker *own, uint32_t number, rte_be32_t remote, uint64_t now)
{
	struct cv_nat_worker *of;
	struct cv_nat_key key;
	uint32_t permit;

	if (own->nat->filtering != CV_NAT_FROM_ADDRESSES)
		return own->nat->filtering == CV_NAT_FROM_ANYWHERE ? number : CV_NAT_NONE;
	of = cv_nat_use_holder(own, number);
	key = permit_key(cv_nat_use_at(own, number), remote);
	cv_nat_lock(of);
	permit = cv_nat_mappings_by_key(of->mappings, &key);
	if (permit != CV_NAT_NONE) {
		cv_nat_mapping_at(of->mappings, permit)->flows++;
		give_back(of, number - of->first, now); // that permit uses it already
	}
	cv_nat_unlock(of);
	return permit == CV_NAT_NONE ? CV_NAT_NONE : of->first + permit;
}

void cv_nat_use_expect_end(struct cv_nat_worker *own, const uint32_t *numbers, unsigned n)
{
	uint32_t indices[CV_BURST_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++)
		if (numbers[i] - own->first < own->state->mappings_each)
			indices[count++] = numbers[i] - own->first;
	if (count == 0)
		return;
	cv_nat_lock(own);
	cv_nat_mappings_expect_remove(own->mappings, indices, count);
	for (unsigned i = 0; i < count; i++) {
		const struct cv_nat_mapping *mapping = cv_nat_mapping_at(own->mappings, indices[i]);

		if (!mapping->is_permit)
			cv_nat_blocks_expect_give(own->blocks, mapping->block);
	}
	cv_nat_unlock(own);
}

void cv_nat_use_end(const struct cv_nat_worker *own, uint32_t number, uint64_t now)
{
	struct cv_nat_worker *of = cv_nat_use_holder(own, number);

	cv_nat_lock(of);
	give_back(of, number - of->first, now);
	cv_nat_unlock(of);
}

uint32_t cv_nat_use_permit(
	struct cv_nat_worker *own, uint32_t index, rte_be32_t remote, uint64_t now)
{
	struct cv_nat_mapping permit = *cv_nat_mapping_at(own->mappings, index);
	uint32_t known;

	permit.key = permit_key(&permit, remote);
	known = cv_nat_mappings_by_key(own->mappings, &permit.key);
	if (known != CV_NAT_NONE) {
		cv_nat_mapping_at(own->mappings, known)->flows++;
		give_back(own, index, now); // that permit uses it already
		return known;
	}
	if (!cv_nat_mappings_have_room(own->mappings, 1))
		return CV_NAT_NONE;
	permit.is_permit = true;
	permit.block = index;
	permit.flows = 1;
	return cv_nat_mappings_add(own->mappings, &permit, true);
}

uint8_t cv_nat_use_source(const struct cv_nat *nat, struct cv_nat_worker *own,
	const struct cv_nf_worker *worker, const struct cv_flow_packet *packet,
	const struct cv_flow_tuple *tuple, enum cv_nat_kind kind, uint32_t *index)
{
	const bool with_permit = nat->filtering == CV_NAT_FROM_ADDRESSES;
	struct cv_nat_mapping mapping = {.key = key_of(nat, tuple)};
	struct cv_nat_port port;
	uint32_t *bucket;
	int rc;

	*index = cv_nat_mappings_find(own->mappings, &mapping.key, &bucket);
	if (*index == CV_NAT_NONE) {
		// Asked first: a block that is taken and given back rests, and nobody has it.
		if (!cv_nat_mappings_have_room(own->mappings, 1u + with_permit))
			return CV_DROP(CV_NAT_MAPPINGS_FULL);
		rc = take_port(own, worker, packet, tuple, kind, &port);
		if (rc != 0)
			return CV_DROP(rc == -EDQUOT ? CV_NAT_SUBSCRIBER_LIMIT : CV_NAT_NO_PORT);
		mapping.external = port.address;
		mapping.external_port = port.port;
		mapping.block = port.block;
		*index = cv_nat_mappings_add_to(own->mappings, &mapping, bucket);
	}
	cv_nat_mapping_at(own->mappings, *index)->flows++;
	if (with_permit) {
		const uint32_t used = cv_nat_use_permit(own, *index, tuple->dst.ipv4, worker->now);

		if (used == CV_NAT_NONE) {
			give_back(own, *index, worker->now);
			return CV_DROP(CV_NAT_MAPPINGS_FULL);
		}
		*index = used;
	}
	return CV_NEXT;
}

void cv_nat_use_expect(const struct cv_nat *nat, struct cv_nat_worker *own,
	const struct cv_flow_tuple *tuples, unsigned n)
{
	struct cv_nat_key keys[CV_BURST_MAX];
	rte_be32_t subscribers[CV_BURST_MAX];
	const uint32_t *bucket[CV_BURST_MAX];
	uint32_t at[CV_BURST_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		if (tuples[i].family != 4 || !cv_nat_is_inside(nat, tuples[i].src.ipv4))
			continue;
		keys[count] = key_of(nat, &tuples[i]);
		subscribers[count++] = tuples[i].src.ipv4;
	}
	cv_nat_lock(own);
	cv_nat_mappings_expect(own->mappings, keys, count, bucket);
	cv_nat_blocks_expect(own->blocks, subscribers, count, at);
	cv_nat_mappings_expect_first(own->mappings, bucket, count);
	cv_nat_blocks_expect_first(own->blocks, at, count);
	cv_nat_unlock(own);
}

uint32_t cv_nat_use_destination(struct cv_nat_worker *own, const struct cv_flow_tuple *tuple)
{
	struct cv_nat_worker *of = own;
	uint32_t index;

	if (tuple->proto == IPPROTO_ICMP)
		return CV_NAT_NONE;
	if (own->state->shared) {
		const uint8_t owner = cv_nat_owner(own->state, tuple->dport);

		if (owner == CV_FLOW_HOME_BY_TUPLE)
			return CV_NAT_NONE;
		of = &own->state->workers[owner];
	}
	cv_nat_lock(of);
	index = cv_nat_mappings_by_external(
		of->mappings, tuple->dst.ipv4, tuple->dport, tuple->proto);
	if (index != CV_NAT_NONE)
		cv_nat_mapping_at(of->mappings, index)->flows++;
	cv_nat_unlock(of);
	return index == CV_NAT_NONE ? CV_NAT_NONE : of->first + index;
}
