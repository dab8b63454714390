// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames of which packets are cut. Byte 0 says what the others are:
//
//   0  a frame
//   1  behind a good outer header, the bytes from the convoy header on
//   2  a script of six bytes each: a frame's sender and stream, number, bytes of the rest, of the
//      beginning, and of the packet that begins, to a receiver that keeps packets of 200 bytes at most
//
// What is walked fills its frame; a packet is made of a beginning and the rest that followed it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convoy/fragment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PORT RTE_BE16(CV_CONVOY_PORT)
#define KEPT_MAX 200

static struct cv_outer outer;

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static void walk(const uint8_t *frame, size_t size)
{
	struct cv_view view = {.in = 1, .out = 2}, views[CV_CONVOY_PACKETS_MAX];
	uint8_t *bytes = malloc(size + !size);
	struct cv_fragments fragments;
	struct cv_convoy convoy;
	size_t used;

	memcpy(bytes, frame, size);
	cv_view_set(&view, bytes, (uint16_t)size);
	if (cv_convoy_walk_fragments(&convoy, &fragments, views, &view, PORT) == CV_CONVOY_OK) {
		used = convoy.packets_at + fragments.beginning_len;
		for (unsigned i = 0; i < convoy.count; i++) {
			require(views[i].data >= bytes &&
					views[i].data + views[i].len <= bytes + size,
				"packets are in the frame");
			require(views[i].len >= (i == 0 && fragments.rest_len > 0 ? 1 : 14),
				"no runts");
			used += CV_CONVOY_PREFIX_LEN + views[i].len;
		}
		require(used == size, "they fill it");
		require(fragments.rest_len > 0 || fragments.total > 0, "something is cut");
		require(fragments.beginning_len < fragments.total || fragments.total == 0,
			"not all");
		require(fragments.beginning_len == 0 ||
				fragments.beginning + fragments.beginning_len == bytes + size,
			"the beginning is at the end");
	}
	require(memcmp(bytes, frame, size) == 0, "the frame stays as it is");
	free(bytes);
}

static void script(const uint8_t *data, size_t size)
{
	struct cv_reassembly *reassembly = cv_reassembly_make(KEPT_MAX);

	for (; size >= 6; data += 6, size -= 6) {
		uint8_t *rest = malloc(data[2] + 1u), *beginning = malloc(data[3] + 1u);
		const uint8_t address[16] = {[15] = data[0] >> 6};
		const struct cv_fragments fragments = {.stream = data[0] & 31,
			.sequence = data[1],
			.rest = rest,
			.rest_len = data[2],
			.beginning = beginning,
			.beginning_len = data[3],
			.total = data[3] > 0
					 ? (uint16_t)(data[3] + 1 + data[4] + (data[5] & 1) * 60000)
					 : 0};
		struct cv_beginning *kept =
			cv_reassembly_find(reassembly, data[0] >> 7, address, fragments.stream);
		uint16_t len;

		memset(rest, data[1], data[2] + 1u);
		memset(beginning, data[1], data[3] + 1u);
		len = fragments.rest_len > 0 ? cv_reassembly_completes(kept, &fragments) : 0;
		require(len <= KEPT_MAX, "no longer than the receiver keeps");
		if (len > 0) {
			uint8_t *packet = malloc(len);

			cv_reassembly_complete(kept, &fragments, packet);
			for (unsigned i = 0; i < len; i++)
				require(packet[i] == (i < (unsigned)len - data[2] ? data[1] - 1
										  : data[1]),
					"a beginning of the frame before, and its rest");
			free(packet);
		}
		cv_reassembly_keep(reassembly, kept, &fragments);
		free(rest);
		free(beginning);
	}
	cv_reassembly_free(reassembly);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cv_outer_config config = {.version = 4, .mtu = CV_OUTER_MTU_MAX};
	uint8_t *frame;

	if (outer.len == 0)
		require(cv_outer_set(&outer, &config, NULL) == 0, "an outer header");
	if (size < 1 || size > 2048)
		return 0;
	switch (data[0] % 3) {
	case 0:
		walk(data + 1, size - 1);
		break;
	case 1:
		if (size < 5)
			return 0;
		frame = malloc(outer.len + size);
		cv_outer_write(&outer, frame, 1, (uint32_t)size - 5, 0);
		memcpy(frame + outer.len - CV_CONVOY_LEN, data + 1, size - 1);
		walk(frame, outer.len - CV_CONVOY_LEN + size - 1);
		free(frame);
		break;
	default:
		script(data + 1, size - 1);
		break;
	}
	return 0;
}
