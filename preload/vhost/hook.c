// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// libconvoy_vhost.so: preloaded under a program that moves a guest's packets with rte_vhost (a
// virtual switch, testpmd). What the guest sends reaches the program in convoys; convoys that the
// program sends reach the guest packet by packet. CONVOY_VHOST says how, in the words of `convoy
// preload ethdev`; without a next hop nothing is aggregated, and convoys are still disaggregated.
//
// Here are the functions of rte_vhost that the program finds first.
#include <stdio.h>
#include <stdlib.h>

#include <rte_version.h>

#include "preload/ethdev/config.h"
#include "preload/dpdk/host.h"
#include "preload/vhost/connection.h"

#define EXPORT __attribute__((visibility("default")))
#define NAME "vhost"
#define ENV "CONVOY_VHOST"

static struct cv_outer outer; // convoys to the program; len 0: none

static uint16_t (*real_dequeue)(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t n);
static uint16_t (*real_enqueue)(int vid, uint16_t queue, struct rte_mbuf **packets, uint16_t n);
static int (*real_register)(const char *path, const struct rte_vhost_device_ops *ops);
static int (*real_stats)(int vid, uint16_t queue, struct rte_vhost_stat *stats, unsigned n);

__attribute__((constructor)) static void begin(void)
{
	static struct cv_ethdev_config config;
	struct cv_error error = {""};

	cv_host_check(NAME);
	real_dequeue = cv_host_function(NAME, "rte_vhost_dequeue_burst");
	real_enqueue = cv_host_function(NAME, "rte_vhost_enqueue_burst");
	real_register = cv_host_function(NAME, "rte_vhost_driver_callback_register");
	real_stats = cv_host_function(NAME, "rte_vhost_vring_stats_get");
	if (cv_ethdev_config_read(&config, ENV, getenv(ENV), &error) != 0 ||
		(config.fixed && cv_outer_set(&outer, &config.next_hop, &error) != 0))
		cv_host_refuse(NAME, "%s", error.text);
	if (config.wait_ns > 0 && outer.len == 0)
		cv_host_refuse(
			NAME, ENV ": wait= needs a next hop: without one no convoys are made");
	if (config.across && config.wait_ns == 0)
		cv_host_refuse(NAME, ENV ": across=yes needs wait=: what is it to wait for?");
	cv_connection_config.set_handlers =
		cv_host_function(NAME, "rte_vhost_extern_callback_register");
	cv_connection_config.outer = &outer;
	cv_connection_config.port = rte_cpu_to_be_16(config.port);
	cv_connection_config.wait_ns = config.wait_ns;
	cv_connection_config.across = config.across;
	cv_connection_config.networks = config.networks;
	fprintf(stderr,
		"convoy: vhost: rte_vhost_dequeue_burst, rte_vhost_enqueue_burst of %s: %s, UDP "
		"port %u, MTU %u\n",
		rte_version(),
		outer.len > 0 ? "guests' packets leave in convoys, convoys are disaggregated"
			      : "convoys are disaggregated; no next hop: none are made",
		config.port, config.mtu);
}

EXPORT int rte_vhost_driver_callback_register(
	const char *path, const struct rte_vhost_device_ops *const ops)
{
	return real_register(path, cv_connection_wrap(path, ops));
}

// The program's own handlers of messages take the place of ours.
EXPORT int rte_vhost_extern_callback_register(
	int vid, const struct rte_vhost_user_extern_ops *const ops, void *context)
{
	cv_connection_leave(vid);
	return cv_connection_config.set_handlers(vid, ops, context);
}

// What is held for the guest whose other queue is polled: it may have room by now.
static void flush(struct cv_connection *connection, uint16_t pair)
{
	struct cv_guest_queue *queue = &connection->device.queues[2 * pair];

	if (!cv_revocable_enter(&queue->access))
		return;
	cv_to_guest_flush(&connection->to[pair], &queue->vring);
	cv_vring_notify(&queue->vring);
	cv_revocable_leave(&queue->access);
}

// From a guest that is left to rte_vhost.
static uint16_t take_theirs(
	int vid, uint16_t index, struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	struct cv_connection *connection = cv_connection_at(vid);
	struct cv_from_guest other = {.port = cv_connection_config.port}; // not known by us

	n = real_dequeue(vid, index, pool, frames, n);
	if (connection != NULL && connection->network)
		return n;
	return cv_from_guest_sift(connection != NULL && index / 2 < CV_GUEST_PAIRS_MAX
					  ? &connection->from[index / 2]
					  : &other,
		frames, n);
}

// Where a frame of this queue waits. NULL: none does.
static CV_INLINE struct cv_waiting_frame *waiting_for(struct cv_from_guest *from)
{
	if (CV_LIKELY(cv_connection_config.wait_ns == 0))
		return NULL;
	return cv_connection_config.across ? cv_waiting_frame_here(from->waiting.ticks)
					   : &from->waiting;
}

static __rte_noinline uint16_t take_waiting(struct cv_connection *connection, uint16_t index,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n,
	struct cv_waiting_frame *waiting)
{
	struct cv_guest_queue *queue = &connection->device.queues[index];
	struct cv_from_guest *from = &connection->from[index / 2];
	uint16_t took;

	rte_spinlock_lock(&waiting->lock);
	if (cv_revocable_enter(&queue->access)) {
		took = cv_from_guest_take_waiting(from, &queue->vring, pool, frames, n, waiting);
		cv_vring_notify(&queue->vring);
		cv_revocable_leave(&queue->access);
	} else {
		took = n > 0 ? cv_from_guest_take_due(from, frames, waiting) : 0;
	}
	rte_spinlock_unlock(&waiting->lock);
	return took;
}

EXPORT uint16_t rte_vhost_dequeue_burst(
	int vid, uint16_t index, struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	struct cv_connection *connection = cv_connection_ours(vid, index);
	struct cv_waiting_frame *waiting;
	struct cv_guest_queue *queue;
	uint16_t took;

	if (connection == NULL)
		return take_theirs(vid, index, pool, frames, n);
	if (CV_UNLIKELY(cv_to_guest_holds(&connection->to[index / 2])))
		flush(connection, index / 2);
	n = RTE_MIN(n, CV_FROM_BURST);
	waiting = waiting_for(&connection->from[index / 2]);
	if (CV_UNLIKELY(waiting != NULL))
		return take_waiting(connection, index, pool, frames, n, waiting);
	queue = &connection->device.queues[index];
	if (!cv_revocable_enter(&queue->access))
		return 0;
	took = cv_from_guest_take(&connection->from[index / 2], &queue->vring, pool, frames, n);
	cv_vring_notify(&queue->vring);
	cv_revocable_leave(&queue->access);
	return took;
}

EXPORT uint16_t rte_vhost_enqueue_burst(
	int vid, uint16_t index, struct rte_mbuf **frames, uint16_t n)
{
	struct cv_connection *connection = cv_connection_ours(vid, index);
	struct cv_guest_queue *queue;
	uint16_t took;

	if (connection == NULL)
		return real_enqueue(vid, index, frames, n);
	queue = &connection->device.queues[index];
	if (!cv_revocable_enter(&queue->access))
		return 0;
	took = cv_to_guest_put(&connection->to[index / 2], &queue->vring, frames, n);
	cv_vring_notify(&queue->vring);
	cv_revocable_leave(&queue->access);
	return took;
}

// The program's counters of a port come from here: packets, not convoys.
EXPORT int rte_vhost_vring_stats_get(
	int vid, uint16_t index, struct rte_vhost_stat *stats, unsigned n)
{
	const struct cv_connection *connection = cv_connection_ours(vid, index);
	struct rte_vhost_stat_name names[64];
	const int count = real_stats(vid, index, stats, n);
	int named;

	if (connection == NULL || stats == NULL || count <= 0)
		return count;
	named = rte_vhost_vring_stats_get_names(vid, index, names, RTE_DIM(names));
	for (int i = 0; i < count && (unsigned)i < n; i++) {
		const struct cv_vring_counters *counters =
			&connection->device.queues[index].vring.counters;

		if (named <= 0 || stats[i].id >= (uint64_t)RTE_MIN(named, (int)RTE_DIM(names)))
			continue;
		if (strstr(names[stats[i].id].name, "good_packets") != NULL)
			stats[i].value += counters->packets;
		if (strstr(names[stats[i].id].name, "good_bytes") != NULL)
			stats[i].value += counters->bytes;
	}
	return count;
}
