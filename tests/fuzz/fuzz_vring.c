// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious guest: any bytes as its memory, rings and all, changed as it goes. The vring never
// touches anything else, never hangs, and what it says it took or put adds up.
//
//   features, size, bases (2 x 2 bytes), number of steps, steps (4 bytes each), memory
#include <stdio.h>
#include <stdlib.h>

#include "vring/vring.h"

#define FIRST_BYTES 2048u // holds the rings at these offsets
#define AVAIL_AT 512u
#define USED_AT 768u
#define SECOND_BYTES 512u
#define BASE 0x1000u // the guest's address of the first region; the second follows it
#define ROOM 700u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

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

static void gather(struct cv_vring *vring, uint16_t n)
{
	struct cv_vring_bin bin[3];
	struct cv_view views[64];
	uint16_t bins = 3, got, view = 0;

	for (unsigned i = 0; i < 3; i++)
		bin[i] = (struct cv_vring_bin){malloc(ROOM), ROOM, 500, 0, 0};
	got = cv_vring_gather(vring, views, n, bin, &bins);
	require(got <= n && bins <= 3, "no more than asked for");
	for (uint16_t i = 0; i < bins; i++) {
		uint32_t at = 0;

		require(bin[i].packets > 0, "no bin is empty");
		require(bin[i].packets == 1 || bin[i].len <= 500, "gathered packets fit");
		for (uint16_t j = 0; j < bin[i].packets; j++, view++) {
			require(bin[i].data[at] << 8 == (views[view].len & 0xff00) &&
					bin[i].data[at + 1] == (views[view].len & 0xff),
				"the length before a packet");
			require(views[view].data == bin[i].data + at + 2, "where it lies");
			at += 2u + views[view].len;
		}
		require(at == bin[i].len && at <= ROOM, "the bin's length");
	}
	require(view == got, "every view lies in a bin");
	for (unsigned i = 0; i < 3; i++)
		free(bin[i].data);
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

static void log_bytes(void *context, uint64_t guest, uint64_t bytes)
{
	require(guest >= BASE && guest + bytes <= BASE + FIRST_BYTES + SECOND_BYTES,
		"only the guest's memory is logged");
}

static void log_used(void *context, uint64_t offset, uint64_t bytes)
{
}

static void play(struct cv_vring *vring, uint64_t features, const uint8_t *step)
{
	const struct cv_guest_region *first = &vring->memory->regions[0];
	const uint16_t number = (uint16_t)(step[2] | step[3] << 8);

	switch (step[0] % 8) {
	case 0:
		dequeue(vring, step[1] % 8 + 1);
		break;
	case 1:
		gather(vring, step[1] % 64 + 1);
		break;
	case 2:
		enqueue(vring, step[1] % 64 + 1, number % 1600);
		break;
	case 3: // the guest writes into its memory
		first->host[number % FIRST_BYTES] = step[1];
		break;
	case 4: // and makes buffers available
		if (!vring->is_packed)
			vring->avail->idx = (uint16_t)(vring->avail->idx + step[1]);
		else
			vring->packed[number % vring->size].flags = (uint16_t)(step[1] << 7);
		break;
	case 5:
		cv_vring_notify(vring);
		break;
	case 6:
		require(cv_vring_begin(vring, features, cv_vring_base(vring)) == 0 ||
				vring->broken || vring->is_packed,
			"a ring goes on");
		break;
	default:
		require(cv_vring_ready(vring) <= vring->size, "no more buffers than descriptors");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t bits[8] = {CV_VIRTIO_NET_F_MRG_RXBUF, CV_VIRTIO_RING_F_INDIRECT_DESC,
		CV_VIRTIO_RING_F_EVENT_IDX, CV_VIRTIO_F_VERSION_1, CV_VIRTIO_F_RING_PACKED,
		CV_VIRTIO_F_IN_ORDER, 0, 0};
	struct cv_guest_memory memory = {
		2, {{BASE, FIRST_BYTES, NULL}, {BASE + FIRST_BYTES, SECOND_BYTES, NULL}}};
	struct cv_vring vring = {.memory = &memory, .call_fd = -1};
	struct cv_vring_base base;
	uint64_t features = 0;
	size_t steps, at = 7;

	if (size < at || size - at < (steps = data[6]) * 4)
		return 0;
	for (unsigned i = 0; i < 6; i++)
		features |= (uint64_t)(data[0] >> i & 1) << bits[i];
	for (unsigned i = 0; i < 2; i++) {
		const size_t bytes = memory.regions[i].size;
		size_t from = at + steps * 4 + i * FIRST_BYTES;

		memory.regions[i].host = calloc(1, bytes);
		if (from < size)
			memcpy(memory.regions[i].host, data + from,
				size - from < bytes ? size - from : bytes);
	}
	vring.desc = (struct vring_desc *)memory.regions[0].host;
	vring.avail = (struct vring_avail *)(memory.regions[0].host + AVAIL_AT);
	vring.used = (struct vring_used *)(memory.regions[0].host + USED_AT);
	vring.size = data[1] % 33;
	if (data[0] & 0x80) {
		vring.log = log_bytes;
		vring.log_used = log_used;
	}
	base.avail = (uint16_t)(data[2] | data[3] << 8);
	base.used = (uint16_t)(data[4] | data[5] << 8);
	if (cv_vring_begin(&vring, features, base) == 0) {
		for (size_t i = 0; i < steps; i++) {
			play(&vring, features, data + at + 4 * i);
			require(!vring.is_packed || (vring.next_avail < vring.size &&
							    vring.next_used < vring.size),
				"places are inside the ring");
		}
	}
	free(memory.regions[0].host);
	free(memory.regions[1].host);
	return 0;
}
