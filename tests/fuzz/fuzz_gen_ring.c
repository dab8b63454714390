// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious device: any index, id and length in the used rings of the tester's queue, which it
// may also sit on or hand back as often as it likes. The tester reads frames out of its own buffers
// only, gives away no more descriptors than it has, and never writes outside of its rings.
//
//   features (1: VERSION_1, 2: IN_ORDER), ring size, steps of 8 bytes
#include <linux/virtio_config.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/port/vhost_queue.h"

#define FRAME_MOST 128u
#define STRIDE (FRAME_MOST + 2 * GEN_CACHE_LINE)
#define STEP 8u
#define POOL_FRAMES 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

struct tester {
	struct gen_vhost_queue queue;
	struct gen_wire wire;
	uint8_t *rings, *buffers, *pool;
	uint16_t *ids;
	uint32_t size;
	uint32_t sent; // frames given to tx
	bool received; // and not released
};

static void begin(struct tester *tester, uint64_t features, uint32_t size)
{
	// Rings begin on a cache line, as in the tester; each part ends where it ends.
	*tester = (struct tester){.size = size};
	if (posix_memalign((void **)&tester->rings, GEN_CACHE_LINE, 2 * gen_vring_bytes(size)) != 0)
		abort();
	tester->buffers = malloc(GEN_CACHE_LINE + (size_t)size * STRIDE);
	tester->pool = calloc(POOL_FRAMES, STRIDE);
	tester->ids = calloc(2 * size, sizeof(*tester->ids));
	tester->queue = (struct gen_vhost_queue){.buffers = tester->buffers + GEN_CACHE_LINE,
		.stride = STRIDE,
		.frame_max = FRAME_MOST,
		.rx_kick = -1,
		.tx_kick = -1,
		.call = -1};
	tester->wire =
		gen_vhost_queue_begin(&tester->queue, size, tester->rings, tester->ids, features);
}

static void end(struct tester *tester)
{
	free(tester->rings);
	free(tester->buffers);
	free(tester->pool);
	free(tester->ids);
}

// The device says that it used a buffer: id and length from a few that matter, or any.
static void use(struct gen_vring *ring, const uint8_t *step)
{
	const uint32_t lengths[] = {
		0, 9, 10, 12, 13, 72, FRAME_MOST + 12, FRAME_MOST + 13, 65536, UINT32_MAX};
	const uint32_t at = (uint16_t)(ring->used->idx + step[2]) & (ring->size - 1);
	uint32_t id = at;

	if (step[3] == 1)
		id = step[4];
	else if (step[3] > 1)
		id = (uint32_t)step[4] << 24 | (uint32_t)step[3] << 8 | step[5];
	ring->used->ring[at] = (struct vring_used_elem){
		id, lengths[step[6] % (sizeof(lengths) / sizeof(lengths[0]))] + step[7] / 128u};
	ring->used->idx = (uint16_t)(ring->used->idx + step[1] % 4);
}

static void receive(struct tester *tester)
{
	struct gen_rx frames[GEN_BURST];
	const uint8_t *first = tester->queue.buffers;
	uint32_t got;

	if (tester->received)
		tester->wire.ops->rx_release(&tester->wire);
	got = tester->wire.ops->rx(&tester->wire, frames);
	require(got <= tester->wire.rx_most && got <= tester->size, "no more than it offered");
	for (uint32_t i = 0; i < got; i++) {
		const size_t offset = (size_t)(frames[i].data - first);
		volatile uint8_t last = frames[i].data[frames[i].bytes - 1];

		(void)last;
		require(frames[i].data >= first && offset % STRIDE == 0 &&
				offset / STRIDE < tester->size,
			"a frame lies in a buffer");
		require(frames[i].bytes > 0 && frames[i].bytes <= FRAME_MOST, "and ends in it");
	}
	tester->received = got > 0;
}

static void transmit(struct tester *tester, uint32_t n)
{
	static const uint16_t magic = 0x4711;
	struct gen_tx burst = {.base = tester->pool, .magic = magic, .count = n};
	const uint32_t room = tester->wire.ops->tx_room(&tester->wire, n);
	uint32_t took;

	require(room <= n && room <= tester->size, "room in the ring");
	for (uint32_t i = 0; i < n; i++) {
		burst.frame[i] =
			(struct gen_frame){(i % POOL_FRAMES) * STRIDE + GEN_CACHE_LINE, 60, 0};
		burst.seq[i] = tester->sent + i;
	}
	took = tester->wire.ops->tx(&tester->wire, &burst);
	require(took <= n, "no more frames than it was given");
	tester->sent += took;
}

static void play(struct tester *tester, const uint8_t *step)
{
	switch (step[0] % 8) {
	case 0:
	case 1:
		use(&tester->queue.rx, step);
		break;
	case 2:
		use(&tester->queue.tx, step);
		break;
	case 3:
		receive(tester);
		break;
	case 4:
		transmit(tester, step[1] % GEN_BURST + 1);
		break;
	case 5:
		tester->wire.ops->tx_idle(&tester->wire);
		break;
	case 6: // any index
		(step[1] % 2 ? &tester->queue.rx : &tester->queue.tx)->used->idx =
			(uint16_t)(step[2] | step[3] << 8);
		break;
	default:
		tester->queue.rx.used->flags = tester->queue.tx.used->flags = step[1];
	}
	require(tester->queue.tx.in_order || tester->queue.tx.free_count <= tester->size,
		"no more free descriptors than there are");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tester tester;

	if (size < 2)
		return 0;
	begin(&tester,
		(data[0] & 1 ? 1ull << VIRTIO_F_VERSION_1 : 0) |
			(data[0] & 2 ? 1ull << VIRTIO_F_IN_ORDER : 0),
		1u << data[1] % 9);
	for (size_t at = 2; at + STEP <= size; at += STEP)
		play(&tester, data + at);
	end(&tester);
	return 0;
}
