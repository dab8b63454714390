// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a convoy: the walk never looks outside of them, gives the reason that a slow and
// plain reading of the specification gives, and what it accepts is packed again, the same.
#include <stdio.h>
#include <stdlib.h>

#include "convoy/frame.h"
#include "convoy/may_be.h"
#include "packet/checksum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static unsigned be16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

// docs/convoy-frame.md, "Receiving", step by step.
static enum cv_convoy_reason plain_reading(const uint8_t *frame, size_t size)
{
	size_t at = 14, header, ip_len, end;
	unsigned type, tags = 0, count;
	const uint8_t *ip;

	if (size < 14)
		return CV_CONVOY_NOT_A_CONVOY;
	for (type = be16(frame + 12); type == 0x8100 || type == 0x88a8; at += 4) {
		if (++tags > 2 || size < at + 4)
			return CV_CONVOY_NOT_A_CONVOY;
		type = be16(frame + at + 2);
	}
	ip = frame + at;
	header = type == 0x0800 ? 20 : 40;
	if ((type != 0x0800 && type != 0x86dd) || size - at < header + 8)
		return CV_CONVOY_NOT_A_CONVOY;
	if (type == 0x0800 ? ip[0] != 0x45 || ip[9] != 17 || (be16(ip + 6) & 0x1fff) != 0
			   : ip[0] >> 4 != 6 || ip[6] != 17)
		return CV_CONVOY_NOT_A_CONVOY;
	if (be16(ip + header + 2) != CV_CONVOY_PORT)
		return CV_CONVOY_NOT_A_CONVOY;
	if (type == 0x0800 && be16(ip + 6) & 0x2000)
		return CV_CONVOY_FRAGMENTED;
	if (type == 0x0800 && cv_checksum_fold(cv_checksum_add(0, ip, 20)) != 0xffff)
		return CV_CONVOY_BAD_CHECKSUM;
	ip_len = type == 0x0800 ? be16(ip + 2) : 40 + be16(ip + 4);
	if (ip_len < header + 12)
		return CV_CONVOY_BAD_LENGTH;
	if (ip_len != size - at)
		return ip_len > size - at ? CV_CONVOY_TRUNCATED : CV_CONVOY_TRAILING_BYTES;
	if (be16(ip + header + 4) != ip_len - header)
		return CV_CONVOY_BAD_LENGTH;
	at += header + 8;
	end = size;
	if (frame[at] >> 4 != 1)
		return CV_CONVOY_BAD_VERSION;
	if ((frame[at] & 15) != 0)
		return CV_CONVOY_BAD_TYPE;
	count = frame[at + 1];
	if (count == 0)
		return CV_CONVOY_BAD_COUNT;
	at += 4;
	while (count-- > 0) {
		if (end - at < 2)
			return CV_CONVOY_BAD_COUNT;
		if (be16(frame + at) < 14)
			return CV_CONVOY_RUNT_PACKET;
		if (be16(frame + at) > end - at - 2)
			return CV_CONVOY_BAD_LENGTH;
		at += 2 + be16(frame + at);
	}
	return at == end ? CV_CONVOY_OK : CV_CONVOY_TRAILING_BYTES;
}

static void pack_again(const struct cv_convoy *convoy, const struct cv_view *views)
{
	struct cv_outer outer;
	struct cv_frame built;
	uint32_t room = convoy->len - convoy->packets_at + 46u;
	uint8_t *buffer = malloc(room), *packed;
	uint16_t len;

	require(cv_outer_set(&outer,
			&(struct cv_outer_config){.version = 4, .mtu = CV_OUTER_MTU_MAX},
			NULL) == 0,
		"an outer header");
	cv_frame_begin(&built, &outer, buffer, room);
	require(cv_frame_add(&built, views, convoy->count) == convoy->count, "all fit");
	packed = cv_frame_close(&built, &len);
	if (convoy->count == 1 && !cv_looks_like_convoy(&outer, &views[0])) {
		require(len == views[0].len && memcmp(packed, views[0].data, len) == 0,
			"unaggregated");
	} else {
		require(len == room, "the length");
		require(memcmp(packed + outer.len, convoy->data + convoy->packets_at,
				len - outer.len) == 0,
			"the packets");
	}
	free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_view frame = {0}, views[CV_CONVOY_PACKETS_MAX];
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;
	uint8_t *bytes = malloc(size + !size);

	memcpy(bytes, data, size);
	cv_view_set(&frame, bytes, (uint16_t)size);
	reason = cv_convoy_walk(&convoy, views, &frame, RTE_BE16(CV_CONVOY_PORT));
	require(reason == plain_reading(data, size), "the reason is the plain reading's");
	require(cv_may_be_convoy(&frame, RTE_BE16(CV_CONVOY_PORT)) ==
			(reason != CV_CONVOY_NOT_A_CONVOY),
		"what may be a convoy is what is not an ordinary packet");
	require(memcmp(bytes, data, size) == 0, "the frame is as it was");
	if (reason == CV_CONVOY_OK)
		pack_again(&convoy, views);
	free(bytes);
	return 0;
}
