// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The process at the other end of a pool: any messages, and any bytes in the rings and the indices. What
// is taken is whole and lies in its buffer, no buffer is taken twice, nothing is put that there is no
// room for, and one call looks at no more than it was asked for.
//
//   message of 64 bytes, size, descriptors; then steps: kind, 3 bytes, and what the kind takes
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/message.h"
#include "shared/queue.h"

#define BUFFERS 24u
#define ROOM 256u
#define SLOTS 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

struct input {
	const uint8_t *at, *end;
};

// The next bytes; zeros behind the end.
static void take(struct input *input, void *to, size_t bytes)
{
	const size_t left = (size_t)(input->end - input->at);
	const size_t some = bytes < left ? bytes : left;

	memset(to, 0, bytes);
	memcpy(to, input->at, some);
	input->at += some;
}

static void any_message(struct input *input)
{
	struct cv_shared_message message;
	struct cv_error error = {""};
	uint8_t extra[2];

	take(input, &message, sizeof(message));
	take(input, extra, sizeof(extra));
	message.type %= 10;
	if (cv_shared_message_check(&message, extra[0] & 3 ? (int)sizeof(message) : extra[0],
		    extra[1] % 3, &error) != 0) {
		require(error.text[0] != '\0', "a refusal says why");
		return;
	}
	require(message.link < CV_SHARED_LINKS, "a link that there is");
	if (message.type == CV_SHARED_JOIN || message.type == CV_SHARED_UP)
		require(memchr(message.named.name, 0, sizeof(message.named.name)) != NULL,
			"a name ends");
	if (message.type == CV_SHARED_WELCOME) {
		uint8_t *const base = (uint8_t *)(uintptr_t)4096; // an address
		struct cv_shared_layout layout = {.buffers = message.welcome.buffers,
			.stride = message.welcome.stride,
			.first = message.welcome.first,
			.room = message.welcome.room};
		const uint64_t last =
			(uint64_t)(layout.buffers - 1) * layout.stride + layout.first + layout.room;

		require(cv_shared_layout_make(&layout), "a memory that can be");
		require(layout.data + last <= layout.size && layout.return_slots >= layout.buffers,
			"buffers lie in it, and all may be on their way back");
		require((uint8_t *)cv_shared_link(&layout, base, CV_SHARED_LINKS - 1, 1)->slots +
					CV_SHARED_SLOTS * sizeof(uint64_t) <=
				base + layout.data,
			"the last ring ends before them");
	}
}

struct pool {
	struct rte_mbuf mbufs[BUFFERS];
	uint8_t data[BUFFERS][ROOM];
	uint8_t marks[BUFFERS];
	struct cv_shared_buffers buffers;
	struct cv_shared_ring *in, *out;
	struct cv_shared_queue from, to;
};

static struct cv_shared_ring *make_ring(void)
{
	const size_t bytes = sizeof(struct cv_shared_ring) + SLOTS * sizeof(uint64_t);
	struct cv_shared_ring *ring = aligned_alloc(64, (bytes + 63) / 64 * 64);

	memset(ring, 0, bytes);
	return ring;
}

static void receive(struct pool *pool, unsigned most)
{
	const uint32_t next = pool->from.next;
	struct rte_mbuf *mbufs[64];
	bool had[BUFFERS];
	uint16_t got;

	for (unsigned i = 0; i < BUFFERS; i++)
		had[i] = pool->marks[i] != 0;
	got = pool->from.broken ? 0 : cv_shared_take(&pool->from, mbufs, (uint16_t)most);
	require(got <= most && pool->from.next - next <= most, "no more than asked for");
	for (unsigned i = 0; i < got; i++) {
		const uint32_t number = cv_shared_number(&pool->buffers, mbufs[i]);

		require(number < BUFFERS && &pool->mbufs[number] == mbufs[i], "one of the buffers");
		require(!had[number] && pool->marks[number] == 1, "one that was not here");
		had[number] = true;
		require(mbufs[i]->data_len >= CV_SHARED_PACKET_MIN &&
				mbufs[i]->data_off + mbufs[i]->data_len <= ROOM,
			"a packet within it");
		memset(rte_pktmbuf_mtod(mbufs[i], uint8_t *), 1, mbufs[i]->data_len);
	}
}

static void put(struct pool *pool, unsigned most)
{
	const uint32_t room = pool->to.broken ? 0 : cv_shared_free_slots(&pool->to, most);
	struct rte_mbuf *mbufs[BUFFERS];
	uint32_t numbers[BUFFERS], n = 0;

	require(room <= SLOTS, "no more room than slots");
	for (uint32_t i = 0; i < BUFFERS && n < room && n < most; i++)
		if (cv_shared_is_ours(&pool->buffers, &pool->mbufs[i], &numbers[n]))
			mbufs[n++] = &pool->mbufs[i];
	if (n > 0)
		cv_shared_put(&pool->to, mbufs, numbers, n);
	for (uint32_t i = 0; i < n; i++)
		require(pool->marks[numbers[i]] == 0, "what is given away is not here");
}

static void begin(struct pool *pool, struct cv_shared_queue *queue, struct cv_shared_ring *ring)
{
	queue->ring = ring;
	queue->mask = SLOTS - 1;
	queue->buffers = &pool->buffers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	struct pool *pool = aligned_alloc(64, (sizeof(*pool) + 63) / 64 * 64);

	any_message(&input);
	memset(pool, 0, sizeof(*pool));
	pool->buffers = (struct cv_shared_buffers){.pool = (struct rte_mempool *)pool, // an address
		.mbufs = (uint8_t *)pool->mbufs,
		.data = pool->data[0],
		.mbuf_stride = sizeof(struct rte_mbuf),
		.data_stride = ROOM,
		.count = BUFFERS,
		.room = ROOM,
		.reciprocal = cv_shared_reciprocal(sizeof(struct rte_mbuf)),
		.marks = pool->marks};
	for (unsigned i = 0; i < BUFFERS; i++) {
		pool->mbufs[i].buf_addr = pool->data[i];
		pool->mbufs[i].pool = pool->buffers.pool;
		pool->marks[i] = i % 2;
		cv_mbuf_set(&pool->mbufs[i], 128, 60);
	}
	pool->in = make_ring();
	pool->out = make_ring();
	begin(pool, &pool->from, pool->in);
	begin(pool, &pool->to, pool->out);
	while (input.at < input.end) {
		uint8_t step[4];

		take(&input, step, sizeof(step));
		switch (step[0] % 6) {
		case 0:
			receive(pool, step[1] % 64);
			break;
		case 1:
			put(pool, step[1] % BUFFERS);
			break;
		case 2: // any descriptor
			take(&input, &pool->in->slots[step[1] % SLOTS], sizeof(uint64_t));
			break;
		case 3: // one of values at which a check may be wrong
			pool->in->slots[step[1] % SLOTS] = (step[2] % (BUFFERS + 2)) |
							   (uint64_t)(step[2] & 128 ? 128 : step[3])
								   << 32 |
							   (uint64_t)(step[3] + 10) << 48;
			pool->in->tail++;
			break;
		case 4:
			pool->in->tail += step[1] & 1 ? step[2] : (uint32_t)step[2] << 24;
			break;
		default:
			pool->out->head += step[1] & 1 ? step[2] : (uint32_t)step[2] << 24;
		}
	}
	free(pool->in);
	free(pool->out);
	free(pool);
	return 0;
}
