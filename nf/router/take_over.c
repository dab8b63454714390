// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a router takes over from the one whose place it takes: the neighbours that are known, before
// its first packet; counters and the packets that wait, once the other one has seen its last.
#include "nf/router/network.h"

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

static bool are_same_addresses(const struct cv_network *a, const struct cv_network *b)
{
	if (a->owns != b->owns)
		return false;
	for (size_t i = 0; i < a->owns; i++)
		if (cv_address_compare(&a->own[i].address, &b->own[i].address) != 0 ||
			a->own[i].port != b->own[i].port)
			return false;
	return true;
}

// An entry that other threads may change meanwhile. False: its address is not known.
static bool copy_of(const struct cv_neighbour_table *table, uint32_t at,
	struct cv_neighbour_key *key, struct cv_neighbour_heard *heard)
{
	enum cv_neighbour_state state;
	struct cv_adjacency adjacency;

	CV_UNSURE_BEGIN();
	*key = table->entry[at].key;
	CV_UNSURE_END();
	adjacency.word = __atomic_load_n(&table->adjacency[at].word, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	// Of another key by now: it says so.
	state = cv_neighbour_table_state(table, at, key);
	if (state != CV_NEIGHBOUR_REACHABLE && state != CV_NEIGHBOUR_DELAY &&
		state != CV_NEIGHBOUR_PROBE && state != CV_NEIGHBOUR_STALE)
		return false;
	*heard = (struct cv_neighbour_heard){.has_mac = true,
		.create = true,
		.advertised = true,
		.solicited = state != CV_NEIGHBOUR_STALE,
		.override = true};
	memcpy(heard->mac, adjacency.mac, sizeof(heard->mac));
	return true;
}

void cv_network_copy_neighbours(struct cv_network *network, const struct cv_network *running)
{
	const uint64_t now = rte_rdtsc();
	struct cv_neighbour_heard heard;
	struct cv_neighbour_key key;

	for (uint32_t i = 0; i < running->table.entries_count; i++)
		if (copy_of(&running->table, i, &key, &heard) &&
			cv_network_on_link(network, &key.address, key.port))
			cv_neighbour_table_hear(
				&network->table, &key, &heard, &running->table.entry[i].tags, now);
	network->announced = are_same_addresses(network, running);
}

static void add(uint64_t *to, const uint64_t *from)
{
	*to += __atomic_load_n(from, __ATOMIC_RELAXED);
}

void cv_network_inherit(struct cv_network *network, struct cv_network *before)
{
	network->counted = before->counted;
	for (unsigned i = 0; i < before->workers; i++) {
		struct cv_network_worker *own = &before->worker[i];
		struct cv_router_left *left = own->waiting_count > 0 ? malloc(sizeof(*left)) : NULL;

		add(&network->counted.errors_sent, &own->errors_sent);
		add(&network->counted.errors_limited, &own->errors_limited);
		add(&network->counted.solicitations, &own->solicitations);
		add(&network->counted.answered, &own->answered);
		add(&network->counted.fragmented, &own->fragmented);
		add(&network->counted.conflicts, &own->conflicts);
		if (left == NULL)
			continue;
		memcpy(left->waiting, own->waiting, own->waiting_count * sizeof(left->waiting[0]));
		left->count = own->waiting_count;
		own->waiting_count = 0;
		// Pairs with the acquire load in cv_network_tick().
		__atomic_store_n(&network->worker[i].left, left, __ATOMIC_RELEASE);
	}
}

// A packet waits on. False: it cannot.
static bool wait_on(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_router_waiting *waiting)
{
	struct cv_network_worker *own = cv_network_worker_of(network, worker);
	const struct cv_view view = cv_nf_held_view(&waiting->held);
	const struct cv_neighbour_tags tags = cv_network_tags(&view);
	struct cv_neighbour_event event;
	enum cv_neighbour_use result;
	uint32_t at;

	if (own->waiting_count == CV_WAIT_PACKETS ||
		!cv_network_on_link(network, &waiting->key.address, waiting->key.port))
		return false;
	result = cv_neighbour_table_use(
		&network->table, &waiting->key, &tags, worker->now, &at, &event);
	cv_network_ask(network, worker, &event);
	if (result == CV_NEIGHBOUR_NO_ROOM || own->waits[at] == CV_WAIT_EACH)
		return false;
	own->waiting[own->waiting_count] = *waiting;
	own->waiting[own->waiting_count++].at = at;
	own->waiting_bytes += cv_view_packet_len(&view);
	own->waits[at]++;
	return true;
}

void cv_network_wait_on(struct cv_network *network, struct cv_nf_worker *worker)
{
	struct cv_network_worker *own = cv_network_worker_of(network, worker);
	struct cv_router_left *left = own->left;

	own->left = NULL;
	for (uint32_t i = 0; i < left->count; i++)
		if (!wait_on(network, worker, &left->waiting[i]))
			cv_nf_drop_held(worker, &left->waiting[i].held, CV_ROUTER_WAIT_FULL);
	free(left);
	cv_network_release(network, worker);
}
