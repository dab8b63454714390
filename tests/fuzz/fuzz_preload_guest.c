// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious guest (hostile_guest.h) behind a program with libconvoy_vhost.so: what it sends is
// coalesced into the program's buffers, and frames, convoys or not, are put into its own. No byte
// outside of either is touched, frames are whole, and every buffer comes back.
#include "preload/vhost/from_guest.h"
#include "preload/vhost/to_guest.h"
#include "tests/fuzz/hostile_guest.h"
#include "tests/support/test_eal.h"

#define BUFFERS 512u
#define FRAMES 16u
#define LONG 1200u

enum kind {
	TAKE = HOSTILE_KINDS,
	PUT,
	PUT_CONVOY,
	FLUSH,
	TAKE_WAITING,
	KINDS,
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static struct rte_mempool *pool;
static struct cv_outer outer;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_outer_config config = {
		.version = 4, .dst_mac = {2, 1}, .src = {192, 0, 2, 1}, .dst = {192, 0, 2, 2}};

	(void)argc;
	(void)argv;
	test_eal_begin("fuzz_preload_guest");
	atexit(test_dir_remove);
	pool = rte_pktmbuf_pool_create("fuzz", BUFFERS - 1, 0, 0, 2176, SOCKET_ID_ANY);
	require(pool != NULL && cv_outer_set(&outer, &config, NULL) == 0, "buffers");
	return 0;
}

// waiting: NULL, or what a frame that is not full waits in.
static void take(struct cv_from_guest *from, struct cv_vring *vring, uint16_t n,
	struct cv_waiting_frame *waiting)
{
	struct rte_mbuf *frames[CV_FROM_BURST];
	const uint16_t got =
		waiting == NULL ? cv_from_guest_take(from, vring, pool, frames, n)
				: cv_from_guest_take_waiting(from, vring, pool, frames, n, waiting);

	require(got <= n, "no more frames than asked for");
	for (uint16_t i = 0; i < got; i++) {
		const struct rte_mbuf *frame = frames[i];
		volatile uint8_t last;

		require(frame->pkt_len == frame->data_len && frame->nb_segs == 1 &&
				frame->data_len >= 14 &&
				frame->data_off + frame->data_len <= frame->buf_len,
			"a frame lies in its buffer");
		require(frame->data_len <= outer.frame_max ||
				frame->data_len > outer.frame_max - outer.len - 2,
			"a convoy is no longer than its next hop takes");
		last = rte_pktmbuf_mtod(frame, const uint8_t *)[frame->data_len - 1];
		(void)last;
	}
	rte_pktmbuf_free_bulk(frames, got);
}

// Frames wait for ever, or, one time in four, have waited long enough.
static void wait_and_take(struct cv_from_guest *from, struct cv_vring *vring, const uint8_t *step)
{
	struct cv_waiting_frame *waiting = &from->waiting;

	if (step[2] % 4 == 0)
		waiting->due = 0;
	take(from, vring, step[1] % CV_FROM_BURST + 1, waiting);
}

// A frame of len bytes, or a convoy of so many packets of that length.
static struct rte_mbuf *make(unsigned packets, uint16_t len)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
	uint32_t at = outer.len;
	uint8_t *bytes;

	if (frame == NULL)
		return NULL;
	bytes = rte_pktmbuf_mtod(frame, uint8_t *);
	memset(bytes, 0, LONG + 14); // the longest of either
	if (packets < 2) {
		rte_pktmbuf_append(frame, len);
		return frame;
	}
	for (unsigned i = 0; i < packets; i++) {
		bytes[at] = (uint8_t)(len >> 8);
		bytes[at + 1] = (uint8_t)len;
		at += 2u + len;
	}
	cv_outer_write(&outer, bytes, (uint8_t)packets, at - outer.len, 0);
	rte_pktmbuf_append(frame, (uint16_t)at);
	return frame;
}

static void put(struct cv_to_guest *to, struct cv_vring *vring, const uint8_t *step, bool convoys)
{
	const uint16_t n = step[1] % FRAMES + 1;
	const uint16_t len = convoys ? 14 + step[2] % 100 : 14 + number_at(step + 2) % LONG;
	struct rte_mbuf *frames[FRAMES];
	uint16_t made = 0;

	while (made < n && (frames[made] = make(convoys ? 2 + step[3] % 9 : 1, len)) != NULL)
		made++;
	require(cv_to_guest_put(to, vring, frames, made) <= made, "no more frames than given");
	rte_pktmbuf_free_bulk(frames, made);
	require(to->count <= CV_HELD_MAX, "what is held has room");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_from_guest from = {
		.outer = &outer, .port = RTE_BE16(CV_CONVOY_PORT), .waiting.ticks = UINT64_MAX / 2};
	struct cv_to_guest to = {.port = RTE_BE16(CV_CONVOY_PORT)};
	struct hostile guest;

	if (size < HOSTILE_HEADER)
		return 0;
	if (hostile_begin(&guest, data)) {
		for (size_t at = HOSTILE_HEADER; at + HOSTILE_STEP <= size; at += HOSTILE_STEP) {
			uint8_t step[HOSTILE_STEP];

			memcpy(step, data + at, sizeof(step));
			step[0] %= KINDS;
			if (step[0] == TAKE)
				take(&from, &guest.vring, step[1] % CV_FROM_BURST + 1, NULL);
			else if (step[0] == TAKE_WAITING)
				wait_and_take(&from, &guest.vring, step);
			else if (step[0] == PUT || step[0] == PUT_CONVOY)
				put(&to, &guest.vring, step, step[0] == PUT_CONVOY);
			else if (step[0] == FLUSH)
				cv_to_guest_flush(&to, &guest.vring);
			else
				hostile_play(&guest, step);
		}
	}
	cv_from_guest_drop(&from);
	cv_to_guest_drop(&to);
	hostile_end(&guest);
	require(rte_mempool_avail_count(pool) == BUFFERS - 1, "every buffer comes back");
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return hostile_mutate(data, size, max_size, seed, KINDS);
}
