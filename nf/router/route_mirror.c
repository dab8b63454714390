// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/route_mirror.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_random.h>

#define NOWHERE 0u // no adjacency of a route: CV_FIB_AT_NO_ROUTE

struct cv_mirrored {
	struct cv_prefix prefix;
	bool known; // the kernel has a route there
	bool others; // it has worse ones, too
	bool fixed;
	bool queued;
	bool unfit; // a table had no room for what is wanted
	uint32_t metric;
	uint32_t generation; // of the dump that had it last
	uint32_t wanted; // adjacency
	uint32_t in[2]; // each table's
};

static_assert(CV_FIB_AT_NO_ROUTE == NOWHERE, "what is not there leads to no route");
static_assert(sizeof(struct cv_prefix) == 18, "a key without padding");

static struct rte_rcu_qsbr *make_readers(unsigned workers)
{
	struct rte_rcu_qsbr *readers = rte_zmalloc(
		"route_readers", rte_rcu_qsbr_get_memsize(workers), RTE_CACHE_LINE_SIZE);

	if (readers == NULL || rte_rcu_qsbr_init(readers, workers) != 0) {
		rte_free(readers);
		return NULL;
	}
	for (unsigned i = 0; i < workers; i++)
		rte_rcu_qsbr_thread_register(readers, i);
	return readers;
}

static struct rte_hash *make_index(uint32_t entries)
{
	static atomic_uint made;
	char name[32];
	const struct rte_hash_parameters parameters = {.name = name,
		.entries = RTE_MAX(entries, 8u),
		.key_len = sizeof(struct cv_prefix),
		.hash_func_init_val = (uint32_t)rte_rand(),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "cv-mirror-%u", atomic_fetch_add(&made, 1));
	return rte_hash_create(&parameters);
}

struct cv_route_mirror *cv_route_mirror_create(struct cv_network *network, struct cv_fib table[2],
	const struct cv_fib **now, uint32_t entries, unsigned workers)
{
	struct cv_route_mirror *mirror = calloc(1, sizeof(*mirror));

	if (mirror == NULL)
		return NULL;
	*mirror = (struct cv_route_mirror){
		.now = now,
		.table = {&table[0], &table[1]},
		.entries = entries,
		.workers = workers,
		.online = calloc(workers, sizeof(*mirror->online)),
		.entry = calloc(entries, sizeof(*mirror->entry)),
		.queue = calloc(entries, sizeof(*mirror->queue)),
		.readers = make_readers(workers),
		.index = make_index(entries),
	};
	if (cv_route_hops_init(&mirror->hops, network, &table[0]) == 0 && mirror->online != NULL &&
		mirror->entry != NULL && mirror->queue != NULL && mirror->readers != NULL &&
		mirror->index != NULL)
		return mirror;
	cv_route_mirror_destroy(mirror);
	return NULL;
}

void cv_route_mirror_destroy(struct cv_route_mirror *mirror)
{
	if (mirror == NULL)
		return;
	cv_route_hops_free(&mirror->hops);
	rte_hash_free(mirror->index);
	rte_free(mirror->readers);
	free(mirror->online);
	free(mirror->entry);
	free(mirror->queue);
	free(mirror);
}

// The entry of a prefix; make: a new one if need be. NULL: there is none, or no room.
static struct cv_mirrored *entry_of(
	struct cv_route_mirror *mirror, const struct cv_prefix *prefix, bool make)
{
	int32_t at = rte_hash_lookup(mirror->index, prefix);

	if (at < 0 && make) {
		at = rte_hash_add_key(mirror->index, prefix);
		if (at >= 0 && (uint32_t)at < mirror->entries)
			mirror->entry[at] = (struct cv_mirrored){.prefix = *prefix};
	}
	return at >= 0 && (uint32_t)at < mirror->entries ? &mirror->entry[at] : NULL;
}

int cv_route_mirror_fix(struct cv_route_mirror *mirror, const struct cv_prefix *prefix)
{
	struct cv_mirrored *entry = entry_of(mirror, prefix, true);

	if (entry == NULL)
		return -ENOSPC;
	entry->fixed = true;
	return 0;
}

static void queue(struct cv_route_mirror *mirror, struct cv_mirrored *entry)
{
	if (entry->queued)
		return;
	entry->queued = true;
	mirror->queue[(mirror->queue_head + mirror->queue_count++) % mirror->entries] =
		(uint32_t)(entry - mirror->entry);
}

// The entry's route leads there from now on. Takes over one use of the adjacency.
static void want(struct cv_route_mirror *mirror, struct cv_mirrored *entry, uint32_t adjacency)
{
	const uint32_t before = entry->wanted;

	entry->wanted = adjacency;
	cv_route_hops_release(&mirror->hops, before);
	if (before != adjacency || entry->unfit)
		queue(mirror, entry);
}

static void forget(struct cv_route_mirror *mirror, struct cv_mirrored *entry)
{
	entry->known = entry->others = false;
	mirror->routes--;
	want(mirror, entry, NOWHERE);
}

// The entry's best route is this one.
static void take(struct cv_route_mirror *mirror, struct cv_mirrored *entry,
	const struct cv_kernel_route *route, uint32_t adjacency)
{
	mirror->routes += !entry->known;
	entry->known = true;
	entry->metric = route->metric;
	entry->generation = mirror->generation;
	want(mirror, entry, adjacency);
}

// Counts what is left out. While a dump is read it is not known.
static void count_refused(struct cv_route_mirror *mirror)
{
	if (!mirror->dumps)
		mirror->refused = mirror->without_entry + mirror->unfit;
}

bool cv_route_mirror_put(struct cv_route_mirror *mirror, const struct cv_kernel_route *route)
{
	struct cv_mirrored *entry = entry_of(mirror, &route->prefix, true);
	bool first, certain = true;
	uint32_t adjacency;

	if (entry == NULL) {
		mirror->without_entry++;
		count_refused(mirror);
		return true;
	}
	if (entry->fixed)
		return true;
	// What there was before a dump counts for nothing in it.
	first = !entry->known || (mirror->dumps && entry->generation != mirror->generation);
	if (!first && route->metric > entry->metric) {
		entry->others = true;
		return true;
	}
	adjacency = cv_route_hops_take(&mirror->hops, route);
	if (first || route->metric < entry->metric || route->replaces) {
		entry->others = !first && (entry->others || route->metric < entry->metric);
		take(mirror, entry, route, adjacency);
		return true;
	}
	// Beside one that is as good. In a dump the first is the one that the kernel takes.
	if (adjacency != entry->wanted) {
		certain = mirror->dumps;
		entry->others = true;
	}
	cv_route_hops_release(&mirror->hops, adjacency);
	return certain;
}

bool cv_route_mirror_remove(struct cv_route_mirror *mirror, const struct cv_kernel_route *route)
{
	struct cv_mirrored *entry = entry_of(mirror, &route->prefix, false);
	uint32_t adjacency;
	bool certain;

	if (entry == NULL || entry->fixed || !entry->known || route->metric != entry->metric)
		return true;
	adjacency = cv_route_hops_take(&mirror->hops, route);
	certain = adjacency == entry->wanted && !entry->others;
	if (adjacency == entry->wanted)
		forget(mirror, entry);
	cv_route_hops_release(&mirror->hops, adjacency);
	return certain;
}

void cv_route_mirror_begin(struct cv_route_mirror *mirror)
{
	mirror->generation++;
	mirror->dumps = true;
	mirror->without_entry = 0;
	mirror->room = false;
}

void cv_route_mirror_abandon(struct cv_route_mirror *mirror)
{
	mirror->dumps = false;
}

void cv_route_mirror_end(struct cv_route_mirror *mirror)
{
	mirror->dumps = false;
	for (uint32_t i = 0; i < mirror->entries; i++)
		if (mirror->entry[i].known && mirror->entry[i].generation != mirror->generation)
			forget(mirror, &mirror->entry[i]);
	count_refused(mirror);
}

static void set_unfit(struct cv_route_mirror *mirror, struct cv_mirrored *entry, bool unfit)
{
	mirror->unfit = mirror->unfit + unfit - entry->unfit;
	entry->unfit = unfit;
	count_refused(mirror);
}

// Makes a table as the entry wants it. What there is no room for stays as it was.
static void change(struct cv_route_mirror *mirror, unsigned table, struct cv_mirrored *entry)
{
	const uint32_t before = entry->in[table], wanted = entry->wanted;

	if (before != wanted) {
		if (cv_fib_change(mirror->table[table], &entry->prefix, wanted) != 0) {
			set_unfit(mirror, entry, true);
			return;
		}
		cv_route_hops_keep(&mirror->hops, wanted);
		entry->in[table] = wanted;
		cv_route_hops_release(&mirror->hops, before);
		mirror->changed++;
	}
	if (entry->unfit && entry->in[!table] == wanted)
		set_unfit(mirror, entry, false);
}

static void change_batch(struct cv_route_mirror *mirror, unsigned table)
{
	for (uint32_t i = 0; i < mirror->batch_count; i++)
		change(mirror, table, &mirror->entry[mirror->batch[i]]);
}

// Takes what is to be changed next out of the queue.
static void next_batch(struct cv_route_mirror *mirror)
{
	for (mirror->batch_count = 0;
		mirror->batch_count < CV_MIRROR_BATCH && mirror->queue_count > 0;
		mirror->queue_count--) {
		const uint32_t at = mirror->queue[mirror->queue_head];

		mirror->queue_head = (mirror->queue_head + 1) % mirror->entries;
		mirror->entry[at].queued = false;
		mirror->batch[mirror->batch_count++] = at;
	}
}

// Entries of which nothing is left make room for others.
static void free_entries(struct cv_route_mirror *mirror)
{
	for (uint32_t i = 0; i < mirror->batch_count; i++) {
		struct cv_mirrored *entry = &mirror->entry[mirror->batch[i]];

		if (!entry->known && !entry->queued && entry->in[0] == NOWHERE &&
			entry->in[1] == NOWHERE) {
			rte_hash_del_key(mirror->index, &entry->prefix);
			mirror->room |= mirror->without_entry + mirror->unfit > 0;
		}
	}
}

bool cv_route_mirror_has_room(struct cv_route_mirror *mirror)
{
	const bool room = mirror->room;

	mirror->room = false;
	return room;
}

bool cv_route_mirror_step(struct cv_route_mirror *mirror)
{
	if (mirror->waits) {
		if (rte_rcu_qsbr_check(mirror->readers, mirror->token, false) != 1)
			return true;
		mirror->waits = false;
		change_batch(mirror, !mirror->live);
		free_entries(mirror);
	}
	if (mirror->queue_count == 0)
		return false;
	next_batch(mirror);
	change_batch(mirror, !mirror->live);
	mirror->live = !mirror->live;
	// Pairs with the workers' acquire load.
	__atomic_store_n(mirror->now, mirror->table[mirror->live], __ATOMIC_RELEASE);
	mirror->token = rte_rcu_qsbr_start(mirror->readers);
	mirror->waits = true;
	return true;
}
