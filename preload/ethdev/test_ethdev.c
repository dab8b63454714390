// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// A program that does to its packets whatever programs do, on a port that the library stands in
// front of: what comes out must be what the program sent, byte for byte and in its order, and every
// buffer must come back. Runs once for each mode (CONVOY_ETHDEV).

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "convoy/frame.h"
#include "dpdk/compat.h"
#include "preload/ethdev/mbuf_set.h"
#include "preload/ethdev/hook.h"
#include "preload/ethdev/report.h"
#include "tests/support/test_eal.h"

#define PACKETS_MAX 65536
#define LONGEST 1514
#define HELD 64

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

struct packet {
	uint16_t len;
	uint8_t bytes[LONGEST];
};

// Everything around one port.
struct world {
	uint16_t port;
	struct rte_ring *to, *from; // the port receives from `to`, and sends to `from`
	struct rte_mempool *pool; // the program's
	struct rte_mempool *outside;
	unsigned pool_count, outside_count;
	struct packet *expected; // sent by the program, not yet seen outside
	uint32_t sent, seen;
	uint32_t got; // packets that the program received
	uint32_t offered; // packets put into convoys
	struct rte_mbuf *held[HELD]; // kept back by the program
	uint32_t held_count;
	struct rte_mbuf *clone; // of a packet that was sent meanwhile
	struct packet clone_shows;
};

static struct world world;

static bool has_mode(const char *mode)
{
	const char *text = getenv(CV_ETHDEV_ENV);

	return text != NULL && strstr(text, mode) != NULL;
}

static bool copies(void)
{
	return has_mode("copy");
}

static int begin(void **unused)
{
	struct rte_eth_conf config = {0};
	int port;

	test_eal_begin("test_ethdev");
	world.pool = rte_pktmbuf_pool_create("program", 4095, 32, 64, 2176, SOCKET_ID_ANY);
	world.outside = rte_pktmbuf_pool_create("outside", 4095, 32, 0, 2176, SOCKET_ID_ANY);
	world.to = rte_ring_create("to", 64, SOCKET_ID_ANY, 0);
	world.from = rte_ring_create("from", 64, SOCKET_ID_ANY, 0);
	world.expected = calloc(PACKETS_MAX, sizeof(*world.expected));
	if (world.pool == NULL || world.outside == NULL || world.to == NULL || world.from == NULL ||
		world.expected == NULL)
		return -1;
	port = rte_eth_from_rings("program", &world.to, 1, &world.from, 1, 0);
	world.port = (uint16_t)port;
	if (port < 0 || rte_eth_dev_configure(world.port, 1, 1, &config) != 0 ||
		rte_eth_rx_queue_setup(world.port, 0, 64, 0, NULL, world.pool) != 0 ||
		rte_eth_tx_queue_setup(world.port, 0, 64, 0, NULL) != 0 ||
		rte_eth_dev_start(world.port) != 0)
		return -1;
	world.pool_count = rte_mempool_avail_count(world.pool);
	world.outside_count = rte_mempool_avail_count(world.outside);
	return 0;
}

static int end(void **unused)
{
	rte_eth_dev_stop(world.port);
	free(world.expected);
	test_eal_end();
	return 0;
}

// Frames from outside lie in the program's buffers, as a driver fills them.
static struct rte_mbuf *make_frame(const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(world.pool);
	uint32_t cut = draw(8) == 0 && len > 100 ? 50 + draw(len - 60) : len;

	if (frame == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(frame, (uint16_t)cut), bytes, cut);
	if (cut < len) { // in two pieces
		struct rte_mbuf *rest = rte_pktmbuf_alloc(world.pool);

		if (rest == NULL) {
			rte_pktmbuf_free(frame);
			return NULL;
		}
		memcpy(rte_pktmbuf_append(rest, (uint16_t)(len - cut)), bytes + cut, len - cut);
		rte_pktmbuf_chain(frame, rest);
	}
	frame->port = world.port;
	return frame;
}

static const struct cv_outer *some_outer(void)
{
	static struct cv_outer outers[4];
	struct cv_outer_config config = {.version = draw(2) != 0 ? 4 : 6,
		.vlans = (uint8_t)draw(3),
		.vlan = {{0x88a8, 7}, {0x8100, 9}},
		.nfi = (uint16_t)draw(3)};
	struct cv_outer *outer = &outers[draw(4)];

	memset(config.dst_mac, 2, 6);
	memset(config.src_mac, 4, 6);
	memset(config.src, 10, 16);
	memset(config.dst, 11, 16);
	if (outer->len == 0)
		assert_int_equal(cv_outer_set(outer, &config, NULL), 0);
	return outer;
}

// A frame comes in: a convoy, or an unaggregated packet. False: no room.
static bool offer(void)
{
	const struct cv_outer *outer = some_outer();
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	static uint8_t packets[CV_CONVOY_PACKETS_MAX][LONGEST];
	uint32_t n = draw(3) == 0 ? 1 + draw(255) : 1 + draw(24);
	uint32_t longest = draw(4) == 0 ? 700 : 80;
	uint8_t buffer[2048], *frame;
	struct rte_mbuf *mbuf;
	struct cv_frame built;
	uint16_t len;

	for (uint32_t i = 0; i < n; i++) {
		uint16_t size = (uint16_t)(CV_CONVOY_PACKET_MIN + draw(longest));

		for (uint32_t k = 0; k < size; k++)
			packets[i][k] = (uint8_t)draw(256);
		packets[i][12] = 0x99; // no IP, and so no convoy by chance
		cv_view_set(&views[i], packets[i], size);
	}
	cv_frame_begin(&built, outer, buffer, sizeof(buffer));
	n = cv_frame_add(&built, views, (uint16_t)n);
	frame = cv_frame_close(&built, &len);
	mbuf = make_frame(frame, len);
	if (mbuf == NULL || rte_ring_enqueue(world.to, mbuf) != 0) {
		rte_pktmbuf_free(mbuf);
		return false;
	}
	world.offered += n;
	return true;
}

static void read_packet(struct packet *packet, const struct rte_mbuf *mbuf)
{
	assert_true(mbuf->pkt_len <= LONGEST + 200);
	packet->len = (uint16_t)mbuf->pkt_len;
	memcpy(packet->bytes, rte_pktmbuf_read(mbuf, 0, packet->len, packet->bytes), packet->len);
}

// What comes out, against what the program sent.
static void look_outside(uint32_t most)
{
	struct rte_mbuf *frame = NULL;

	while (most-- > 0 && rte_ring_dequeue(world.from, (void **)&frame) == 0) {
		struct cv_view views[CV_CONVOY_PACKETS_MAX], view;
		struct cv_convoy convoy = {.count = 1};
		static uint8_t bytes[4096];
		enum cv_convoy_reason reason;

		assert_false(cv_is_view(frame)); // a driver never sees one
		assert_true(frame->pkt_len <= sizeof(bytes));
		memmove(bytes, rte_pktmbuf_read(frame, 0, frame->pkt_len, bytes), frame->pkt_len);
		cv_view_set(&view, bytes, (uint16_t)frame->pkt_len);
		view.in = view.out = 0;
		reason = cv_convoy_walk(&convoy, views, &view, rte_cpu_to_be_16(CV_CONVOY_PORT));
		if (reason == CV_CONVOY_NOT_A_CONVOY)
			views[0] = view;
		else
			assert_int_equal(reason, CV_CONVOY_OK);
		for (unsigned i = 0; i < convoy.count; i++) {
			const struct packet *packet = &world.expected[world.seen % PACKETS_MAX];

			assert_true(world.seen < world.sent);
			assert_int_equal(views[i].len, packet->len);
			assert_memory_equal(views[i].data, packet->bytes, packet->len);
			world.seen++;
		}
		rte_pktmbuf_free(frame);
	}
}

// Makes the program's packet something else. Returns it, or what is sent for it; NULL: nothing.
static struct rte_mbuf *treat(struct rte_mbuf *mbuf)
{
	struct rte_mbuf *other;
	uint16_t some = (uint16_t)draw(40);
	char *tail;

	switch (draw(26)) {
	case 0: // drop
		rte_pktmbuf_free(mbuf);
		return NULL;
	case 1: // cut behind
		if (mbuf->data_len > some)
			rte_pktmbuf_trim(mbuf, some);
		return mbuf;
	case 2: // cut in front
		if (mbuf->data_len > some + 1u)
			rte_pktmbuf_adj(mbuf, some);
		return mbuf;
	case 3: // grow in front: a view has no room there, and must not pretend to
		if (copies())
			assert_non_null(rte_pktmbuf_headroom(mbuf) >= 14
						? rte_pktmbuf_prepend(mbuf, 14)
						: mbuf->buf_addr);
		else if (cv_is_view(mbuf))
			assert_null(rte_pktmbuf_prepend(
				mbuf, (uint16_t)(rte_pktmbuf_headroom(mbuf) + 1)));
		return mbuf;
	case 4: // grow behind
		tail = rte_pktmbuf_append(mbuf, some);
		if (tail != NULL)
			memset(tail, 7, some);
		return mbuf;
	case 5: // rewrite in place
		memset(rte_pktmbuf_mtod(mbuf, void *), 0xaa, 12);
		return mbuf;
	case 6: // a clone that outlives it
		if (world.clone != NULL)
			return mbuf;
		world.clone = rte_pktmbuf_clone(mbuf, world.outside);
		if (world.clone != NULL)
			read_packet(&world.clone_shows, world.clone);
		return mbuf;
	case 7: // the clone instead
		other = rte_pktmbuf_clone(mbuf, world.outside);
		if (other == NULL)
			return mbuf;
		rte_pktmbuf_free(mbuf);
		return other;
	case 8: // a copy from the packet's own pool
		other = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
		if (other == NULL)
			return mbuf;
		assert_false(cv_is_view(other));
		rte_pktmbuf_free(mbuf);
		return other;
	case 9: // a header of its own in front
		other = rte_pktmbuf_alloc(world.outside);
		if (other == NULL)
			return mbuf;
		memset(rte_pktmbuf_append(other, 20), 0x55, 20);
		assert_int_equal(rte_pktmbuf_chain(other, mbuf), 0);
		return other;
	case 12: // something of its own behind
		other = rte_pktmbuf_alloc(world.outside);
		if (other == NULL)
			return mbuf;
		memset(rte_pktmbuf_append(other, 20), 0x66, 20);
		assert_int_equal(rte_pktmbuf_chain(mbuf, other), 0);
		return mbuf;
	case 10: // detached: nothing left, and nothing overwritten
		if (!cv_is_view(mbuf))
			return mbuf;
		rte_pktmbuf_detach(mbuf);
		assert_int_equal(mbuf->buf_len, 0);
		mbuf->next = NULL;
		rte_pktmbuf_free(mbuf);
		return NULL;
	case 11: // hold back, and another instead
		other = mbuf;
		if (world.held_count < HELD) {
			world.held[world.held_count++] = mbuf;
			return NULL;
		}
		some = (uint16_t)draw(HELD);
		other = world.held[some];
		world.held[some] = mbuf;
		return other;
	default:
		return mbuf;
	}
}

static void check_clone(void)
{
	struct packet now;

	if (world.clone == NULL)
		return;
	read_packet(&now, world.clone);
	assert_int_equal(now.len, world.clone_shows.len);
	assert_memory_equal(now.bytes, world.clone_shows.bytes, now.len);
	rte_pktmbuf_free(world.clone);
	world.clone = NULL;
}

// Sends as programs do: what is not taken is sent again, or dropped.
static void send_all(struct rte_mbuf **mbufs, uint16_t n)
{
	for (unsigned tries = 0; n > 0 && tries < 20; tries++) {
		struct packet *before = malloc(n * sizeof(*before));
		uint16_t done;

		assert_non_null(before);
		for (uint16_t i = 0; i < n; i++)
			read_packet(&before[i], mbufs[i]);
		done = rte_eth_tx_burst(world.port, 0, mbufs, n);
		assert_true(done <= n);
		for (uint16_t i = 0; i < done; i++)
			world.expected[world.sent++ % PACKETS_MAX] = before[i];
		free(before);
		mbufs += done;
		n -= done;
		if (n > 0)
			look_outside(1 + draw(8));
	}
	rte_pktmbuf_free_bulk(mbufs, n);
}

static void iterate(bool nasty)
{
	struct rte_mbuf *got[256], *out[256];
	uint16_t n = (uint16_t)(1 + draw(draw(4) == 0 ? 256 : 64)), count = 0;
	uint16_t received = rte_eth_rx_burst(world.port, 0, got, n);

	assert_true(received <= n);
	world.got += received;
	for (uint16_t i = 0; i < received; i++) {
		struct rte_mbuf *mbuf;

		rte_mbuf_sanity_check(got[i], 1);
		assert_int_equal(got[i]->port, world.port);
		mbuf = nasty ? treat(got[i]) : got[i];
		if (mbuf != NULL)
			out[count++] = mbuf;
	}
	if (nasty && count > 1 && draw(8) == 0) { // out of order
		uint32_t a = draw(count), b = draw(count);
		struct rte_mbuf *swap = out[a];

		out[a] = out[b];
		out[b] = swap;
	}
	if (nasty && count > 0 && out[0]->nb_segs == 1 && draw(16) == 0) { // to two places
		rte_mbuf_refcnt_update(out[0], 1);
		send_all(out, 1);
	}
	for (uint16_t i = 0; i < count;) {
		uint16_t some = (uint16_t)(nasty ? 1 + draw(count - i) : (uint32_t)(count - i));

		send_all(out + i, some);
		i += some;
	}
}

static void drain(void)
{
	for (unsigned idle = 0; idle < 4; idle++) {
		uint32_t before = world.got + world.seen;

		iterate(false);
		look_outside(UINT32_MAX);
		if (world.got + world.seen != before)
			idle = 0;
	}
}

static void buffers_come_back(void)
{
	check_clone();
	rte_pktmbuf_free_bulk(world.held, world.held_count);
	world.held_count = 0;
	assert_int_equal(rte_mempool_avail_count(world.pool), world.pool_count);
	assert_int_equal(rte_mempool_avail_count(world.outside), world.outside_count);
	assert_int_equal(cv_mbuf_sets_in_use(), 0);
}

static void run(unsigned seed, unsigned iterations, bool nasty)
{
	world.sent = world.seen = world.got = world.offered = 0;
	state = seed;
	for (unsigned i = 0; i < iterations; i++) {
		for (uint32_t frames = draw(12); frames > 0 && offer(); frames--)
			;
		iterate(nasty);
		if (draw(4) == 0)
			look_outside(1 + draw(40));
		if (draw(16) == 0)
			check_clone();
	}
	drain();
	assert_int_equal(world.seen, world.sent);
	buffers_come_back();
}

static void packets_come_out_as_they_went_in(void **unused)
{
	struct cv_rx_counts rx;
	struct cv_tx_counts tx;

	run(1, 3000, false);
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	print_message("%u packets; %lu viewed, %lu copied, %lu in place, %lu repacked, %lu "
		      "unaggregated\n",
		world.offered, (unsigned long)rx.viewed, (unsigned long)rx.copied,
		(unsigned long)tx.in_place, (unsigned long)tx.repacked,
		(unsigned long)tx.unaggregated);
	assert_int_equal(world.got, world.offered);
	assert_int_equal(rx.pkts, world.got);
	assert_int_equal(tx.pkts, world.seen);
	if (copies()) {
		assert_int_equal(rx.viewed, 0);
		assert_int_equal(tx.in_place, 0);
	} else {
		assert_true(rx.viewed > rx.copied);
		assert_true(tx.in_place > 0);
	}
	assert_true(rx.copied > 0); // convoys of more packets than a set takes
	assert_true(tx.repacked > 0);
	assert_true(tx.unaggregated > 0);
}

static void whatever_a_program_does_to_them(void **unused)
{
	for (unsigned seed = 2; seed < 12; seed++)
		run(seed, 1000, true);
}

// A frame that says it is a convoy and does not add up is dropped, and what waits when a port
// stops is freed.
static void refused_and_stopped(void **unused)
{
	struct cv_rx_counts before, rx;
	struct rte_mbuf *mbufs[4];
	struct cv_tx_counts tx;

	state = 99;
	assert_true(cv_hook_counts(world.port, &before, &tx));
	while (rte_ring_count(world.to) < 40)
		offer();
	for (unsigned i = 0; i < 40; i++) {
		struct rte_mbuf *frame = NULL;

		assert_int_equal(rte_ring_dequeue(world.to, (void **)&frame), 0);
		// Cut behind its headers, a convoy ends too early.
		if (frame->nb_segs == 1 && frame->data_len > 90)
			rte_pktmbuf_trim(frame, 1);
		assert_int_equal(rte_ring_enqueue(world.to, frame), 0);
	}
	assert_int_equal(rte_eth_rx_burst(world.port, 0, mbufs, 4), 4);
	rte_pktmbuf_free_bulk(mbufs, 4);
	assert_int_equal(rte_eth_dev_stop(world.port), 0);
	assert_int_equal(rte_eth_dev_start(world.port), 0);
	drain();
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	assert_true(rx.refused[CV_CONVOY_TRUNCATED] > before.refused[CV_CONVOY_TRUNCATED]);
	buffers_come_back();
}

// Packets that the program makes itself came from nobody to whom they could go back.
static void packets_of_the_programs_own(void **unused)
{
	struct cv_tx_counts before, tx;
	struct rte_mbuf *mbufs[64];
	struct cv_rx_counts rx;

	world.sent = world.seen = 0;
	assert_true(cv_hook_counts(world.port, &rx, &before));
	for (unsigned i = 0; i < 64; i++) {
		mbufs[i] = rte_pktmbuf_alloc(world.outside);
		assert_non_null(mbufs[i]);
		memset(rte_pktmbuf_append(mbufs[i], 60), (int)i, 60);
		if (i == 10) // asks the hardware for something: it cannot in a convoy
			mbufs[i]->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_IPV4;
	}
	send_all(mbufs, 64);
	look_outside(UINT32_MAX);
	assert_int_equal(world.seen, 64);
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	assert_int_equal(tx.repacked, before.repacked);
	assert_int_equal(tx.unaggregated - before.unaggregated, 64);
	buffers_come_back();
}

// A frame as a sender of that number makes it, with n packets of 60 bytes.
static struct rte_mbuf *convoy_from(uint8_t number, unsigned n)
{
	const struct cv_outer_config config = {.version = 4,
		.dst_mac = {2, 2},
		.src_mac = {4, number},
		.src = {10, number},
		.dst = {11}};
	uint8_t bytes[60] = {[12] = 0x99, [20] = number}, buffer[2048], *at;
	struct cv_view views[8] = {0};
	struct cv_outer outer;
	struct cv_frame built;
	struct rte_mbuf *frame = rte_pktmbuf_alloc(world.pool);
	uint16_t len;

	assert_non_null(frame);
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		cv_view_set(&views[i], bytes, sizeof(bytes));
	cv_frame_begin(&built, &outer, buffer, sizeof(buffer));
	assert_int_equal(cv_frame_add(&built, views, (uint16_t)n), n);
	at = cv_frame_close(&built, &len);
	memcpy(rte_pktmbuf_append(frame, len), at, len);
	frame->port = world.port;
	return frame;
}

// Nobody gets the packets of somebody else, whoever sent last.
static void packets_go_back_to_their_own_sender(void **unused)
{
	unsigned frames = 0;

	for (unsigned round = 0; round < 300; round++) {
		struct rte_mbuf *got[64], *frame = NULL;
		uint16_t n;

		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(rte_ring_enqueue(world.to,
						 convoy_from((uint8_t)(round + i * 50), 5)),
				0);
		n = rte_eth_rx_burst(world.port, 0, got, 64);
		assert_int_equal(n, 15);
		// Two of the first, then the others, then what is left.
		if (round % 2 == 0) {
			struct rte_mbuf *moved[3] = {got[2], got[3], got[4]};

			memmove(got + 2, got + 5, 10 * sizeof(*got));
			memcpy(got + 12, moved, sizeof(moved));
		}
		assert_int_equal(rte_eth_tx_burst(world.port, 0, got, n), n);
		while (rte_ring_dequeue(world.from, (void **)&frame) == 0) {
			const uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
			struct cv_view packets[CV_CONVOY_PACKETS_MAX];
			unsigned count = cv_convoy_packets(
				packets, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);

			assert_true(count > 1);
			for (unsigned i = 0; i < count; i++) {
				assert_int_equal(data[1], packets[i].data[20]); // MAC and
				assert_int_equal(data[31], packets[i].data[20]); // IP address
			}
			rte_pktmbuf_free(frame);
			frames++;
		}
	}
	assert_true(frames >= 900);
	buffers_come_back();
}

// A packet that the program forwards and that looks like a convoy: in one of its own, or not at all.
static void what_looks_like_a_convoy(void **unused)
{
	struct cv_tx_counts before, tx;
	struct rte_mbuf *mbufs[3], *frame = NULL;
	uint8_t bytes[CV_CONVOY_PACKETS_MAX];
	struct cv_rx_counts rx;

	assert_true(cv_hook_counts(world.port, &rx, &before));
	for (unsigned i = 0; i < 3; i++) {
		mbufs[i] = i == 1 ? convoy_from(1, 2) : rte_pktmbuf_alloc(world.pool);
		assert_non_null(mbufs[i]);
		if (i != 1)
			memset(rte_pktmbuf_append(mbufs[i], 60), 0x99, 60);
	}
	assert_int_equal(rte_eth_tx_burst(world.port, 0, mbufs, 3), 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rte_ring_dequeue(world.from, (void **)&frame), 0);
		memset(bytes, 0x99, 60);
		assert_int_equal(frame->pkt_len, 60);
		assert_memory_equal(rte_pktmbuf_mtod(frame, uint8_t *), bytes, 60);
		rte_pktmbuf_free(frame);
	}
	assert_true(rte_ring_empty(world.from));
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	assert_int_equal(tx.looks_like_convoy - before.looks_like_convoy, 1);
	assert_int_equal(tx.pkts - before.pkts, 2);
	buffers_come_back();
}

// The same within a convoy: it goes back to where it came from, within one.
static void what_looks_like_a_convoy_within_one(void **unused)
{
	struct rte_mbuf *inner = convoy_from(1, 2), *frame = convoy_from(3, 1), *got[4];
	uint16_t len = inner->data_len;
	uint8_t bytes[400];
	struct cv_view packets[CV_CONVOY_PACKETS_MAX];
	struct cv_outer_config config = {
		.version = 4, .dst_mac = {2, 2}, .src_mac = {4, 3}, .src = {10}, .dst = {11}};
	struct cv_view view = {0};
	struct cv_outer outer;
	struct cv_frame built;
	uint8_t *at;

	memcpy(bytes, rte_pktmbuf_mtod(inner, uint8_t *), len);
	rte_pktmbuf_free(inner);
	rte_pktmbuf_reset(frame);
	frame->port = world.port;
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	cv_view_set(&view, bytes, len);
	cv_frame_begin(&built, &outer, rte_pktmbuf_mtod(frame, uint8_t *), 1000);
	assert_int_equal(cv_frame_add(&built, &view, 1), 1);
	at = cv_frame_close(&built, &len);
	assert_ptr_equal(at, rte_pktmbuf_append(frame, len));
	for (unsigned cut = 0; cut < 2; cut++) {
		assert_int_equal(rte_ring_enqueue(world.to, frame), 0);
		assert_int_equal(rte_eth_rx_burst(world.port, 0, got, 4), 1);
		assert_memory_equal(rte_pktmbuf_mtod(got[0], uint8_t *), bytes, view.len);
		// Cut, it cannot leave in its own frame, and must be packed.
		if (cut)
			rte_pktmbuf_trim(got[0], 1);
		assert_int_equal(rte_eth_tx_burst(world.port, 0, got, 1), 1);
		assert_int_equal(rte_ring_dequeue(world.from, (void **)&frame), 0);
		assert_int_equal(cv_convoy_packets(packets, rte_pktmbuf_mtod(frame, uint8_t *),
					 frame->data_len),
			1);
		assert_int_equal(packets[0].len, view.len - cut);
		assert_memory_equal(packets[0].data, bytes, view.len - cut);
	}
	rte_pktmbuf_free(frame);
	buffers_come_back();
}

// A program that begins to put a header in front of each packet: some packets that it got as views
// it cannot, and then it gets none any more.
static void headers_in_front(void **unused)
{
	struct cv_rx_counts before, rx;
	struct cv_tx_counts tx;
	uint32_t refused = 0, since = 0;

	if (!has_mode("auto"))
		skip();
	world.sent = world.seen = world.got = world.offered = 0;
	assert_true(cv_hook_counts(world.port, &before, &tx));
	for (unsigned round = 0; round < 2000; round++) {
		struct rte_mbuf *got[64];
		uint16_t n;

		offer();
		n = rte_eth_rx_burst(world.port, 0, got, 64);
		for (uint16_t i = 0; i < n; i++) {
			char *front = rte_pktmbuf_prepend(got[i], 14);

			if (front != NULL)
				memset(front, 0x99, 14);
			refused += front == NULL;
			since = front == NULL ? 0 : since + 1;
		}
		send_all(got, n);
		look_outside(UINT32_MAX);
	}
	drain();
	assert_int_equal(world.seen, world.sent);
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	print_message("%u refused, then none of %u\n", refused, since);
	assert_int_equal(rx.viewed - before.viewed, refused);
	assert_true(refused > 0); // it was not known to before
	assert_true(since > 10000);
	buffers_come_back();
}

// More mempools than there are views for: packets are copied, and nobody is refused.
static void without_views(void **unused)
{
	struct rte_mempool *pools[CV_MBUF_SET_POOLS_MAX];
	struct cv_rx_counts before, rx;
	struct cv_tx_counts tx;
	char name[16];

	if (copies())
		skip();
	for (unsigned i = 0; i < CV_MBUF_SET_POOLS_MAX; i++) {
		snprintf(name, sizeof(name), "pool%u", i);
		pools[i] = rte_pktmbuf_pool_create(name, 255, 0, 0, 2176, SOCKET_ID_ANY);
		assert_non_null(pools[i]);
		cv_mbuf_set_pool_get(pools[i]);
	}
	assert_null(cv_mbuf_set_pool_get(pools[CV_MBUF_SET_POOLS_MAX - 1]));
	assert_int_equal(rte_eth_dev_stop(world.port), 0);
	assert_int_equal(rte_eth_rx_queue_setup(
				 world.port, 0, 64, 0, NULL, pools[CV_MBUF_SET_POOLS_MAX - 1]),
		0);
	assert_int_equal(rte_eth_dev_start(world.port), 0);
	assert_true(cv_hook_counts(world.port, &before, &tx));
	run(20, 300, true);
	assert_true(cv_hook_counts(world.port, &rx, &tx));
	assert_int_equal(rx.viewed, before.viewed);
	assert_true(rx.copied > before.copied);
}

static void advises_copy_mode(void **unused)
{
	static const struct {
		const char *description;
		uint64_t viewed, received, sent;
		bool advises;
	} rows[] = {
		{"nothing came", 0, 0, 0, false},
		{"all were sent", 1000, 1000, 1000, false},
		{"half of them", 1000, 1000, 500, false},
		{"fewer", 1000, 1000, 499, true},
		{"none", 1000, 1000, 0, true},
		{"no views", 0, 1000, 0, false},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *file = open_memstream(&text, &size);

		print_message("%s\n", rows[i].description);
		cv_report_advice(file, rows[i].viewed, rows[i].received, rows[i].sent);
		fclose(file);
		assert_int_equal(size > 0, rows[i].advises);
		assert_int_equal(strstr(text, "--mode auto or copy") != NULL, rows[i].advises);
		free(text);
	}
}

// A driver in place of the ring's, as rte_eth_dev_start() puts one in; a port that runs is started
// again, which is nothing to DPDK.
static void put_driver_in(const struct rte_eth_fp_ops *driver)
{
	rte_eth_fp_ops[world.port] = *driver;
	assert_int_equal(rte_eth_dev_start(world.port), 0);
}

static void take_driver_out(void)
{
	assert_int_equal(rte_eth_dev_stop(world.port), 0);
	assert_int_equal(rte_eth_dev_start(world.port), 0);
}

// Whatever stands in rte_eth_fp_ops is called with our queues: members that a release of DPDK adds
// must not stay the driver's.
static void nothing_of_the_drivers_stays(void **unused)
{
	union {
		struct rte_eth_fp_ops ops;
		uintptr_t word[sizeof(struct rte_eth_fp_ops) / sizeof(uintptr_t)];
	} driver, hooked;
	void *queue = &driver;

	for (size_t i = 0; i < RTE_DIM(driver.word); i++)
		driver.word[i] = 0xd0000 + i;
	driver.ops.rxq.data = driver.ops.txq.data = &queue;
	driver.ops.rxq.clbk = driver.ops.txq.clbk = NULL; // the program's, not the driver's
	put_driver_in(&driver.ops);
	hooked.ops = rte_eth_fp_ops[world.port];
	take_driver_out();
	for (size_t i = 0; i < RTE_DIM(driver.word); i++)
		assert_true(hooked.word[i] == 0 || hooked.word[i] != driver.word[i]);
}

#ifndef CV_DPDK_NO_RECYCLING
static int its_queue;

static uint16_t receive_none(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	return 0;
}

static int count_sent(void *queue)
{
	assert_ptr_equal(queue, &its_queue);
	return 7;
}

static uint16_t reuse(void *queue, struct rte_eth_recycle_rxq_info *info)
{
	fail();
	return 1;
}

static void refill(void *queue, uint16_t n)
{
	fail();
}

static void its_functions_get_its_queue(void **unused)
{
	void *queue = &its_queue;
	struct rte_eth_recycle_rxq_info info = {0};
	struct rte_eth_fp_ops driver = {
		.rxq = {&queue, NULL},
		.txq = {&queue, NULL},
		.rx_pkt_burst = receive_none,
		.tx_queue_count = count_sent,
		.recycle_tx_mbufs_reuse = reuse,
		.recycle_rx_descriptors_refill = refill,
	};

	put_driver_in(&driver);
	assert_int_equal(rte_eth_tx_queue_count(world.port, 0), 7);
	assert_int_equal(rte_eth_recycle_mbufs(world.port, 0, world.port, 0, &info), 0);
	take_driver_out();
	assert_int_equal(rte_eth_tx_queue_count(world.port, 0), -ENOTSUP); // the ring's
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_out_as_they_went_in),
		cmocka_unit_test(whatever_a_program_does_to_them),
		cmocka_unit_test(packets_of_the_programs_own),
		cmocka_unit_test(packets_go_back_to_their_own_sender),
		cmocka_unit_test(what_looks_like_a_convoy),
		cmocka_unit_test(what_looks_like_a_convoy_within_one),
		cmocka_unit_test(refused_and_stopped),
		cmocka_unit_test(headers_in_front),
		cmocka_unit_test(without_views),
		cmocka_unit_test(advises_copy_mode),
		cmocka_unit_test(nothing_of_the_drivers_stays),
#ifndef CV_DPDK_NO_RECYCLING
		cmocka_unit_test(its_functions_get_its_queue),
#endif
	};

	return cmocka_run_group_tests(tests, begin, end);
}
