// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind shared: a link to another convoyd that has the same pool of buffers mapped; packets change
// hands where they lie. Both trust each other.
// path: the socket; role: server (owns the pool, and makes the socket) or client; link: its name, the
// same at both ends: the two may be any two processes at that path. One queue each way. The other end
// may come later, go away and come back.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/kind.h"
#include "port/packet_pool.h"
#include "port/port_log.h"
#include "port/socket_path.h"
#include "shared/member.h"
#include "shared/owner.h"
#include "socket/lost_memory.h"

#define BATCH 64

static const char *const roles[] = {"server", "client", NULL};

enum { SERVER, CLIENT };

struct keys {
	struct cv_socket_config socket;
	unsigned role;
	const char *link;
};

static const struct cv_param params[] = {
	{NULL, CV_PARAMS, CV_AT(struct keys, socket), .params = cv_socket_params},
	{"role", CV_WORD, CV_AT(struct keys, role), .words = roles},
	{"link", CV_TEXT, CV_AT(struct keys, link), .high = CV_SHARED_NAME_BYTES - 1,
		.required = true},
	{0},
};

struct shared_port {
	struct cv_port port;
	struct cv_shared_port end;
	struct cv_shared_owner *owner; // one of the two
	struct cv_shared_member *member;
	struct rte_mempool
		*own; // that received packets are copied into; NULL: they stay where they lie
	uint64_t no_buffer, unfit; // of sending: for want of a buffer; too long or short. Atomic
	uint64_t rx_no_buffer, rx_unfit; // of receiving; these packets are lost. Atomic
};

static int check(struct cv_port_config *config, struct cv_error *error)
{
	const struct keys *keys = config->own;

	config->needs.shared_pool = keys->role == SERVER;
	return cv_socket_check(&keys->socket, keys->role == SERVER, error);
}

// Copies of packets, which are freed. Returns how many there are.
static __rte_noinline uint16_t copy_into_own(
	struct shared_port *shared, struct rte_mbuf **packets, uint16_t n)
{
	const uint32_t room = rte_pktmbuf_data_room_size(shared->own) - RTE_PKTMBUF_HEADROOM;
	uint16_t copied = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i], *copy = NULL;
		const uint16_t len = packet->data_len;

		if (CV_UNLIKELY(len > room))
			cv_count(&shared->rx_unfit, 1);
		else if (CV_UNLIKELY((copy = rte_pktmbuf_alloc(shared->own)) == NULL))
			cv_count(&shared->rx_no_buffer, 1);
		if (CV_LIKELY(copy != NULL)) {
			cv_mbuf_set(copy, RTE_PKTMBUF_HEADROOM, len);
			memcpy(rte_pktmbuf_mtod(copy, uint8_t *),
				rte_pktmbuf_mtod(packet, const uint8_t *), len);
			packets[copied++] = copy;
		}
		rte_pktmbuf_free(packet);
	}
	return copied;
}

static CV_HOT uint16_t rx(
	struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct shared_port *shared = (struct shared_port *)port;
	struct cv_shared_queue *ring = &shared->end.rx;
	uint16_t got = 0;

	(void)queue;
	if (shared->owner != NULL)
		cv_shared_owner_polls(shared->owner);
	if (!cv_revocable_enter(&ring->access))
		return 0;
	if (CV_LIKELY(!ring->broken))
		got = cv_shared_take(ring, packets, n);
	cv_revocable_leave(&ring->access);
	if (CV_UNLIKELY(shared->own != NULL))
		return copy_into_own(shared, packets, got);
	return got;
}

// A packet that does not lie in the pool, or that others refer to, in a buffer of the pool. NULL: there
// is none now.
static __rte_noinline struct rte_mbuf *copy_of(
	struct shared_port *shared, const struct rte_mbuf *packet)
{
	struct rte_mbuf *copy = shared->owner != NULL
					? rte_pktmbuf_alloc(shared->owner->pool->buffers.pool)
					: cv_shared_member_buffer(shared->member);
	const uint16_t len = (uint16_t)packet->pkt_len;
	uint8_t *to;
	const uint8_t *from;

	if (copy == NULL) {
		cv_count(&shared->no_buffer, 1);
		return NULL;
	}
	cv_mbuf_set(copy, RTE_PKTMBUF_HEADROOM, len);
	to = rte_pktmbuf_mtod(copy, uint8_t *);
	from = rte_pktmbuf_read(packet, 0, len, to); // copies where it lies in several segments
	if (from != to)
		memcpy(to, from, len);
	return copy;
}

static bool fits(const struct cv_shared_buffers *buffers, const struct rte_mbuf *packet)
{
	return packet->pkt_len >= CV_SHARED_PACKET_MIN &&
	       packet->pkt_len + RTE_PKTMBUF_HEADROOM <= buffers->room;
}

// Packets of which some need a copy. Returns how many were taken.
static __rte_noinline uint16_t put_any(
	struct shared_port *shared, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_shared_queue *ring = &shared->end.tx;
	const struct cv_shared_buffers *buffers = ring->buffers;
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i], *copy = packet;
		uint32_t number;

		if (CV_UNLIKELY(!fits(buffers, packet))) {
			cv_count(&shared->unfit, 1);
			rte_pktmbuf_free(packet);
			continue;
		}
		if (!cv_shared_is_ours(buffers, packet, &number)) {
			copy = copy_of(shared, packet);
			if (copy == NULL)
				break;
			rte_pktmbuf_free(packet);
			number = cv_shared_number(buffers, copy);
		}
		cv_shared_put(ring, &copy, &number, 1);
	}
	return i;
}

static CV_HOT uint16_t put(struct shared_port *shared, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_shared_queue *ring = &shared->end.tx;
	const struct cv_shared_buffers *buffers = ring->buffers;
	uint32_t numbers[BATCH];
	uint32_t slots;
	bool ours = true;

	n = RTE_MIN(n, BATCH);
	slots = cv_shared_free_slots(ring, n);
	n = (uint16_t)RTE_MIN(n, slots);
	cv_shared_prefetch(ring, n, true);
	for (uint16_t i = 0; i < n; i++)
		ours &= cv_shared_is_ours(buffers, packets[i], &numbers[i]) &&
			packets[i]->data_len >= CV_SHARED_PACKET_MIN;
	if (CV_UNLIKELY(!ours))
		return put_any(shared, packets, n);
	if (n > 0)
		cv_shared_put(ring, packets, numbers, n);
	return n;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct shared_port *shared = (struct shared_port *)port;
	struct cv_shared_queue *ring = &shared->end.tx;
	uint16_t sent = 0;

	(void)tx_queue;
	if (shared->owner != NULL)
		cv_shared_owner_sends(shared->owner);
	if (!cv_revocable_enter(&ring->access))
		return 0;
	if (CV_LIKELY(!ring->broken))
		sent = put(shared, packets, n);
	cv_revocable_leave(&ring->access);
	return sent;
}

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *info(const struct cv_port *port)
{
	const struct shared_port *shared = (const struct shared_port *)port;
	const struct cv_shared_port *end = &shared->end;
	json_t *object = json_object(), *pool;

	json_object_set_new(object, "link", json_string(cv_shared_is_up(end) ? "up" : "down"));
	set(object, "rx_pkts", cv_counted(&end->rx.counters.packets));
	set(object, "tx_pkts", cv_counted(&end->tx.counters.packets));
	set(object, "rx_errors",
		cv_counted(&end->rx.counters.malformed) + cv_counted(&shared->rx_unfit));
	set(object, "rx_no_buffer", cv_counted(&shared->rx_no_buffer));
	set(object, "tx_errors", cv_counted(&shared->unfit));
	set(object, "tx_no_buffer", cv_counted(&shared->no_buffer));
	set(object, "broken_queues",
		(uint64_t)__atomic_load_n(&end->rx.broken, __ATOMIC_RELAXED) +
			__atomic_load_n(&end->tx.broken, __ATOMIC_RELAXED));
	set(object, "peers", cv_counted(&end->peers));
	if (shared->owner == NULL)
		return object;
	pool = json_object();
	set(pool, "buffers", shared->owner->pool->layout.buffers);
	set(pool, "given", cv_shared_owner_given(shared->owner));
	set(pool, "members", cv_counted(&shared->owner->members_came));
	set(pool, "recovered", cv_counted(&shared->owner->recovered));
	set(pool, "strays", cv_counted(&shared->owner->strays));
	json_object_set_new(object, "pool", pool);
	return object;
}

static void changed(void *context, bool up)
{
	cv_port_log(context, "peer %s", up ? "connected" : "gone");
}

static void refused(void *context, const char *why)
{
	cv_port_log(context, "peer refused: %s", why);
}

static void close_port(struct cv_port *port)
{
	struct shared_port *shared = (struct shared_port *)port;

	if (shared->owner != NULL)
		cv_shared_owner_close(shared->owner, &shared->end);
	else
		cv_shared_member_close(shared->member, &shared->end);
	free(port);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct shared_port *shared = (struct shared_port *)port;
	const struct keys *keys = args->config->own;
	const char *path = keys->socket.path;
	int rc = 0;

	if (!cv_packet_pool_fits(args->pool, port->mtu, error))
		return -EINVAL;
	// Only that is mapped where devices and their peers read.
	shared->own = args->config->own_packets ? args->pool : NULL;
	snprintf(shared->end.link, sizeof(shared->end.link), "%s", keys->link);
	shared->end.changed = changed;
	shared->end.refused = refused;
	shared->end.context = port;
	cv_lost_memory_guard(NULL);
	if (keys->role == CLIENT)
		rc = cv_shared_member_open(&shared->member, path, &shared->end, error);
	else if (!cv_shared_owner_is_here(path))
		rc = cv_socket_claim(path, error);
	if (rc == 0 && keys->role == SERVER)
		rc = cv_shared_owner_open(&shared->owner, path, args->pool, &shared->end, error);
	if (rc != 0)
		return rc;
	port->rx = rx;
	port->tx = tx;
	port->info = info;
	port->close = close_port;
	port->rx_queues = 1;
	port->sends_buffers = true;
	if (!cv_shared_is_up(&shared->end))
		cv_port_log(port, "%s %s",
			keys->role == SERVER ? "waits for a peer at" : "connects to", path);
	return 0;
}

const struct cv_port_kind cv_port_shared = {
	.name = "shared",
	.params = params,
	.config_size = sizeof(struct keys),
	.socket = true,
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(struct shared_port),
};
