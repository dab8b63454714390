// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious guest (hostile_guest.h) against the vring: it never touches anything but the
// guest's memory and the buffers it was given, what it says it took or put adds up, and it looks at
// no more descriptors in one call than it may, whatever they are.
#include "tests/fuzz/hostile_guest.h"

#define ROOM 700u
#define CHAIN 64u // descriptors of the longest chain, as vring/walk.h has it

enum kind {
	DEQUEUE = HOSTILE_KINDS,
	COALESCE,
	ENQUEUE,
	NOTIFY,
	BEGIN,
	READY,
	KINDS,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void dequeue(struct cv_vring *vring, uint16_t n)
{
	uint8_t *to[8];
	uint16_t lens[8];
	uint16_t got;

	for (unsigned i = 0; i < 8; i++)
		to[i] = malloc(ROOM);
	got = cv_vring_dequeue(vring, to, ROOM, lens, n);
	require(got <= n, "no more packets than asked for");
	for (uint16_t i = 0; i < got; i++)
		require(lens[i] >= 14 && lens[i] <= ROOM, "packets that fit");
	for (unsigned i = 0; i < 8; i++)
		free(to[i]);
}

static void coalesce(struct cv_vring *vring, uint16_t n)
{
	struct cv_vring_buffer coalesced[3];
	struct cv_view views[64];
	uint16_t used = 3, got, view = 0;

	for (unsigned i = 0; i < 3; i++)
		coalesced[i] = (struct cv_vring_buffer){malloc(ROOM), ROOM, 500, 0, 0};
	got = cv_vring_coalesce(vring, views, n, coalesced, &used);
	require(got <= n && used <= 3, "no more than asked for");
	for (uint16_t i = 0; i < used; i++) {
		uint32_t at = 0;

		require(coalesced[i].packets > 0, "no buffer is empty");
		require(coalesced[i].packets == 1 || coalesced[i].len <= 500,
			"coalesced packets fit");
		for (uint16_t j = 0; j < coalesced[i].packets; j++, view++) {
			require(coalesced[i].data[at] << 8 == (views[view].len & 0xff00) &&
					coalesced[i].data[at + 1] == (views[view].len & 0xff),
				"the length before a packet");
			require(views[view].data == coalesced[i].data + at + 2, "where it lies");
			at += 2u + views[view].len;
		}
		require(at == coalesced[i].len && at <= ROOM, "the buffer's length");
	}
	require(view == got, "every view lies in a buffer");
	for (unsigned i = 0; i < 3; i++)
		free(coalesced[i].data);
}

static void enqueue(struct cv_vring *vring, uint16_t n, uint16_t len)
{
	struct cv_view views[64];
	uint8_t *packet = calloc(1, len + !len);

	for (uint16_t i = 0; i < n; i++)
		views[i] = (struct cv_view){.data = packet, .len = len};
	require(cv_vring_enqueue(vring, views, n) <= n, "no more packets than given");
	free(packet);
}

static void play(struct hostile *guest, const uint8_t *step)
{
	struct cv_vring *vring = &guest->vring;
	const uint64_t before = vring->counters.steps;
	const uint16_t n = step[1] % 64 + 1, len = number_at(step + 2) % 1600;
	uint64_t most = 0;

	switch (step[0]) {
	case DEQUEUE:
		dequeue(vring, n % 8 + 1);
		most = CV_VRING_STEPS_MAX + CHAIN + 1 + CV_VRING_STEPS_MALFORMED;
		break;
	case COALESCE:
		coalesce(vring, n);
		most = CV_VRING_STEPS_MAX + CHAIN + 1 + CV_VRING_STEPS_MALFORMED;
		break;
	case ENQUEUE:
		enqueue(vring, n, len);
		most = CV_VRING_PUT_STEPS + n * CV_VRING_PUT_STEPS_OF(len) + 2 * (CHAIN + 1);
		break;
	case NOTIFY:
		cv_vring_notify(vring);
		break;
	case BEGIN:
		require(cv_vring_begin(vring, guest->features, cv_vring_base(vring)) == 0,
			"a ring goes on");
		break;
	case READY:
		require(cv_vring_ready(vring) <= vring->size, "no more buffers than descriptors");
		break;
	default:
		hostile_play(guest, step);
	}
	require(vring->counters.steps - before <= most, "a call's steps are within its budget");
	require(!vring->is_packed ||
			(vring->next_avail < vring->size && vring->next_used < vring->size),
		"places are inside the ring");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hostile guest;

	if (size < HOSTILE_HEADER)
		return 0;
	if (hostile_begin(&guest, data)) {
		for (size_t at = HOSTILE_HEADER; at + HOSTILE_STEP <= size; at += HOSTILE_STEP) {
			uint8_t step[HOSTILE_STEP];

			memcpy(step, data + at, sizeof(step));
			step[0] %= KINDS;
			play(&guest, step);
		}
	}
	hostile_end(&guest);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return hostile_mutate(data, size, max_size, seed, KINDS);
}
