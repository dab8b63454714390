// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <string.h>
#include <unistd.h>

#include "nf/router/kernel.h"
#include "packet/ipv6.h"

#define WAIT_MS 1000 // for a neighbour's address; the kernel's protocols send again

static void wake(struct cv_kernel *kernel)
{
	const uint64_t one = 1;
	ssize_t rc;

	// Pairs with woken() in kernel_thread.c.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&kernel->asleep, __ATOMIC_RELAXED) == 0 ||
		__atomic_exchange_n(&kernel->asleep, 0, __ATOMIC_SEQ_CST) == 0)
		return;
	rc = write(kernel->wake.fd, &one, sizeof(one));
	(void)rc; // it cannot be full: the thread empties it
}

uint8_t cv_kernel_punt(struct cv_router_packet packet, uint8_t otherwise)
{
	struct cv_kernel *kernel = packet.network->kernel;
	const struct cv_view *view = packet.view;
	struct cv_frame_ring *ring;
	struct cv_frame *frame;

	// The interfaces have no VLANs, and a tunnel's packets are not the router's own.
	if (kernel == NULL || view->before != 0 || view->l3 != CV_ETHER_LEN ||
		kernel->tap[view->in].watch.fd < 0)
		return otherwise;
	ring = &kernel->up[packet.worker->index];
	frame = cv_frame_ring_next(ring);
	if (frame == NULL || view->len > ring->frame_bytes)
		return CV_DROP(CV_ROUTER_PUNT_FULL);
	memcpy(frame->bytes, view->data, view->len);
	frame->len = view->len;
	frame->port = view->in;
	cv_frame_ring_push(ring);
	wake(kernel);
	cv_network_count(&cv_network_worker_of(packet.network, packet.worker)->to_kernel);
	return CV_ABSORBED;
}

enum sent {
	SENT,
	LOST, // it leads nowhere
	WAITS, // for its neighbour
	NO_ROOM, // to make a packet now
};

static enum sent send_frame(
	struct cv_network *network, struct cv_nf_worker *worker, struct cv_frame *frame)
{
	const struct cv_neighbour_tags none = {0};
	struct cv_view view = {.in = frame->port, .out = frame->port};
	struct cv_adjacency next_hop = {.port = frame->port};
	enum cv_resolved resolved = CV_RESOLVED;
	struct cv_address to;
	uint8_t *l3;
	bool v6;

	cv_view_set(&view, frame->bytes, frame->len);
	v6 = view.proto == CV_PROTO_IPV6;
	to = cv_router_address(v6, frame->bytes + CV_ETHER_LEN + (v6 ? 24 : 16));
	memcpy(next_hop.mac, frame->bytes, CV_MAC_LEN);
	if (!cv_mac_group(frame->bytes))
		resolved = cv_network_resolve(
			(struct cv_router_packet){network, worker, &view}, &to, &next_hop);
	if (resolved != CV_RESOLVED)
		return resolved == CV_ASKED ? WAITS : LOST;
	l3 = cv_network_make(network, worker, &none, next_hop.port, next_hop.mac, view.proto,
		frame->len - CV_ETHER_LEN);
	if (l3 == NULL)
		return NO_ROOM;
	memcpy(l3, frame->bytes + CV_ETHER_LEN, frame->len - CV_ETHER_LEN);
	cv_network_count(&cv_network_worker_of(network, worker)->from_kernel);
	return SENT;
}

// The frame waits for its neighbour, out of the way of others. The oldest makes room.
static void wait_on(struct cv_kernel *kernel, const struct cv_frame *frame, uint64_t now)
{
	struct cv_frame_ring *ring = &kernel->waiting;
	struct cv_frame *copy = cv_frame_ring_next(ring);

	if (copy == NULL) {
		cv_frame_ring_at(ring, ring->tail)->taken = true;
		cv_frame_ring_pop(ring, ring->head);
		copy = cv_frame_ring_next(ring);
	}
	memcpy(copy->bytes, frame->bytes, frame->len);
	copy->len = frame->len;
	copy->port = frame->port;
	copy->since = now;
	cv_frame_ring_push(ring);
}

static void send_waiting(struct cv_network *network, struct cv_nf_worker *worker)
{
	struct cv_frame_ring *ring = &network->kernel->waiting;

	for (uint32_t at = ring->tail; at != ring->head; at++) {
		struct cv_frame *frame = cv_frame_ring_at(ring, at);
		enum sent sent = frame->taken ? SENT : send_frame(network, worker, frame);

		frame->taken = sent == SENT || sent == LOST ||
			       worker->now - frame->since > network->hz / 1000 * WAIT_MS;
	}
	cv_frame_ring_pop(ring, ring->head);
}

void cv_kernel_send(struct cv_network *network, struct cv_nf_worker *worker, bool due)
{
	struct cv_kernel *kernel = network->kernel;
	struct cv_frame_ring *ring = &kernel->down;
	uint32_t none = UINT32_MAX, end;

	// The first worker that comes is the one.
	if (CV_UNLIKELY(__atomic_load_n(&kernel->sender, __ATOMIC_RELAXED) != worker->index) &&
		!__atomic_compare_exchange_n(&kernel->sender, &none, worker->index, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	if (due && kernel->waiting.tail != kernel->waiting.head)
		send_waiting(network, worker);
	end = cv_frame_ring_end(ring);
	if (CV_LIKELY(end == ring->tail))
		return;
	for (uint32_t at = ring->tail; at != end; at++) {
		struct cv_frame *frame = cv_frame_ring_at(ring, at);
		enum sent sent = send_frame(network, worker, frame);

		if (sent == NO_ROOM) {
			end = at;
			break;
		}
		if (sent == WAITS)
			wait_on(kernel, frame, worker->now);
		frame->taken = true;
	}
	cv_frame_ring_pop(ring, end);
}
