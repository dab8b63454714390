// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/pack.h"

#include "convoy/flow.h"
#include "convoy/may_be.h"

// Short packets are copied by two or four loads and stores of which the last overlaps the one
// before: no loop, no call, and not a byte outside of either packet. len >= 8.
static CV_INLINE void copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (CV_LIKELY(len > 32 && len <= 64)) {
		memcpy(to, from, 32);
		memcpy(to + len - 32, from + len - 32, 32);
	} else if (len > 64 && len <= 128) {
		memcpy(to, from, 64);
		memcpy(to + len - 64, from + len - 64, 64);
	} else if (len > 128) {
		memcpy(to, from, len);
	} else if (len > 16) {
		memcpy(to, from, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	}
}

// Where room bytes are left, does a packet fit, with its length before it?
static CV_INLINE bool fits(uint32_t len, uint32_t room)
{
	return len >= CV_CONVOY_PACKET_MIN && len + CV_CONVOY_PREFIX_LEN <= room;
}

bool cv_looks_like_convoy(const struct cv_outer *outer, const struct cv_view *packet)
{
	return cv_may_be_convoy(packet, outer->udp_port);
}

uint16_t cv_pack_fit(const struct cv_outer *outer, const struct cv_view *views, uint16_t n)
{
	uint32_t room = outer->frame_max - outer->len;
	uint16_t i;

	for (i = 0; i < n && i < CV_CONVOY_PACKETS_MAX && fits(views[i].len, room); i++)
		room -= CV_CONVOY_PREFIX_LEN + views[i].len;
	return i;
}

void cv_pack_begin(
	struct cv_pack *pack, const struct cv_outer *outer, uint8_t *buffer, uint32_t room)
{
	pack->outer = outer;
	pack->data = buffer;
	pack->len = outer->len;
	pack->limit = room < outer->frame_max ? room : outer->frame_max;
	pack->first_len = 0;
	pack->count = 0;
	pack->sport = 0;
}

CV_HOT uint16_t cv_pack_add(struct cv_pack *pack, const struct cv_view *views, uint16_t n)
{
	uint32_t room = pack->limit - pack->len;
	uint8_t *at = pack->data + pack->len;
	uint16_t most = CV_CONVOY_PACKETS_MAX - pack->count;
	uint16_t i;

	if (n < most)
		most = n;
	if (pack->count == 0 && n > 0) {
		// Of the packet and not of its copy: that would wait for the copy's last store.
		pack->first_len = views[0].len;
		pack->sport = rte_cpu_to_be_16(
			CV_CONVOY_SPORT_MIN | (cv_flow_hash(&views[0]) & CV_CONVOY_SPORT_MASK));
	}
	for (i = 0; i < most && fits(views[i].len, room); i++) {
		uint16_t len = views[i].len;
		rte_be16_t prefix = rte_cpu_to_be_16(len);

		memcpy(at, &prefix, sizeof(prefix));
		copy(at + CV_CONVOY_PREFIX_LEN, views[i].data, len);
		at += CV_CONVOY_PREFIX_LEN + len;
		room -= CV_CONVOY_PREFIX_LEN + len;
	}
	pack->count += i;
	pack->len = (uint32_t)(at - pack->data);
	return i;
}

// By its copy: the packet itself may be somebody's who changes it meanwhile.
static bool is_lookalike(const struct cv_pack *pack)
{
	struct cv_view copy = {0};

	cv_view_set(&copy, pack->data + pack->outer->len + CV_CONVOY_PREFIX_LEN, pack->first_len);
	return cv_looks_like_convoy(pack->outer, &copy);
}

uint8_t *cv_pack_finish(struct cv_pack *pack, uint16_t *len)
{
	uint32_t header = pack->outer->len;

	if (CV_UNLIKELY(pack->count == 0)) {
		*len = 0;
		return NULL;
	}
	if (pack->count == 1 && !is_lookalike(pack)) {
		*len = pack->first_len;
		return pack->data + header + CV_CONVOY_PREFIX_LEN;
	}
	cv_outer_write(pack->outer, pack->data, pack->count, pack->len - header, pack->sport);
	*len = (uint16_t)pack->len;
	return pack->data;
}
