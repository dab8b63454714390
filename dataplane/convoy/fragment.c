// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/fragment.h"

#include <stdlib.h>
#include <string.h>

enum cv_convoy_reason cv_convoy_walk_fragments(struct cv_convoy *convoy,
	struct cv_fragments *fragments, struct cv_view *views, const struct cv_view *frame,
	rte_be16_t port)
{
	enum cv_convoy_reason reason = cv_convoy_walk_fragments_header(convoy, frame, port);
	struct cv_convoy_fragments header;
	uint32_t room;
	uint8_t *at;
	bool rest;

	if (reason != CV_CONVOY_OK)
		return reason;
	at = frame->data + convoy->packets_at;
	room = (uint32_t)(frame->len - convoy->packets_at);
	if (room < sizeof(header))
		return CV_CONVOY_BAD_LENGTH;
	memcpy(&header, at, sizeof(header));
	CV_COPIED();
	at += sizeof(header);
	room -= (uint32_t)sizeof(header);
	rest = header.flags == CV_FRAGMENTS_REST;
	*fragments = (struct cv_fragments){.stream = rte_be_to_cpu_32(header.stream),
		.sequence = rte_be_to_cpu_32(header.sequence),
		.total = rte_be_to_cpu_16(header.total)};
	if ((!rest && (header.flags != 0 || fragments->total == 0)) || (rest && convoy->count == 0))
		return CV_CONVOY_BAD_FRAGMENT;

	convoy->packets_at += (uint16_t)sizeof(header);
	convoy->each = 0;
	for (unsigned i = 0; i < convoy->count; i++) {
		rte_be16_t prefix;
		uint16_t len;

		if (room < CV_CONVOY_PREFIX_LEN)
			return CV_CONVOY_BAD_COUNT;
		memcpy(&prefix, at, sizeof(prefix));
		CV_COPIED();
		len = rte_be_to_cpu_16(prefix);
		at += CV_CONVOY_PREFIX_LEN;
		room -= CV_CONVOY_PREFIX_LEN;
		if (len < (rest && i == 0 ? 1 : CV_CONVOY_PACKET_MIN))
			return CV_CONVOY_RUNT_PACKET;
		if (len > room)
			return CV_CONVOY_BAD_LENGTH;
		views[i].in = frame->in;
		views[i].out = frame->out;
		cv_view_set(&views[i], at, len);
		at += len;
		room -= len;
	}
	if (rest) {
		fragments->rest = views[0].data;
		fragments->rest_len = views[0].len;
	}
	if (fragments->total == 0)
		return room > 0 ? CV_CONVOY_TRAILING_BYTES : CV_CONVOY_OK;
	if (fragments->total < CV_CONVOY_PACKET_MIN)
		return CV_CONVOY_RUNT_PACKET;
	if (room == 0 || room >= fragments->total)
		return CV_CONVOY_BAD_FRAGMENT;
	fragments->beginning = at;
	fragments->beginning_len = (uint16_t)room;
	return CV_CONVOY_OK;
}

uint8_t *cv_fragment_make(const struct cv_outer *outer, struct cv_fragment_stream *stream,
	uint8_t *begin, const uint8_t *end, uint8_t count, bool rest, uint16_t total)
{
	const struct cv_convoy_fragments header = {
		.stream = rte_cpu_to_be_32(stream->id),
		.sequence = rte_cpu_to_be_32(stream->sequence++),
		.flags = rest ? CV_FRAGMENTS_REST : 0,
		.total = rte_cpu_to_be_16(total),
	};
	uint8_t *data = begin - sizeof(header) - outer->len;

	cv_outer_write(outer, data, count, (uint32_t)(end - data) - outer->len,
		cv_fragment_sport(stream->id));
	data[outer->len - CV_CONVOY_LEN] = CV_CONVOY_VERSION << 4 | CV_CONVOY_FRAGMENTS;
	memcpy(begin - sizeof(header), &header, sizeof(header));
	return data;
}

struct cv_beginning {
	uint8_t address[16];
	uint32_t stream;
	uint32_t sequence; // of the frame that it is from
	uint64_t used; // when, by a count of uses; 0: never
	uint8_t *bytes;
	uint16_t have, total; // 0: there is none
};

struct cv_reassembly {
	uint32_t packet_max;
	uint64_t uses;
	struct cv_beginning beginnings[CV_REASSEMBLY_SENDERS][CV_REASSEMBLY_STREAMS];
	uint8_t bytes[]; // packet_max of each
};

struct cv_reassembly *cv_reassembly_make(uint32_t packet_max)
{
	struct cv_reassembly *made = calloc(1,
		sizeof(*made) + (size_t)packet_max * CV_REASSEMBLY_SENDERS * CV_REASSEMBLY_STREAMS);
	uint8_t *at;

	if (made == NULL)
		return NULL;
	made->packet_max = packet_max;
	at = made->bytes;
	for (unsigned i = 0; i < CV_REASSEMBLY_SENDERS; i++)
		for (unsigned j = 0; j < CV_REASSEMBLY_STREAMS; j++, at += packet_max)
			made->beginnings[i][j].bytes = at;
	return made;
}

void cv_reassembly_free(struct cv_reassembly *reassembly)
{
	free(reassembly);
}

struct cv_beginning *cv_reassembly_find(struct cv_reassembly *reassembly, unsigned sender,
	const uint8_t address[16], uint32_t stream)
{
	struct cv_beginning *of_sender = reassembly->beginnings[sender];
	struct cv_beginning *oldest = of_sender;

	reassembly->uses++;
	for (unsigned i = 0; i < CV_REASSEMBLY_STREAMS; i++) {
		struct cv_beginning *one = &of_sender[i];

		if (one->stream == stream && one->used > 0 &&
			memcmp(one->address, address, sizeof(one->address)) == 0) {
			one->used = reassembly->uses;
			return one;
		}
		if (one->used < oldest->used)
			oldest = one;
	}
	memcpy(oldest->address, address, sizeof(oldest->address));
	oldest->stream = stream;
	oldest->used = reassembly->uses;
	oldest->have = oldest->total = 0;
	return oldest;
}

uint16_t cv_reassembly_completes(
	const struct cv_beginning *beginning, const struct cv_fragments *fragments)
{
	const bool next = beginning->have > 0 && fragments->sequence == beginning->sequence + 1;

	return next && (uint32_t)beginning->have + fragments->rest_len == beginning->total
		       ? beginning->total
		       : 0;
}

void cv_reassembly_complete(
	const struct cv_beginning *beginning, const struct cv_fragments *fragments, uint8_t *to)
{
	memcpy(to, beginning->bytes, beginning->have);
	memcpy(to + beginning->have, fragments->rest, fragments->rest_len);
}

void cv_reassembly_keep(const struct cv_reassembly *reassembly, struct cv_beginning *beginning,
	const struct cv_fragments *fragments)
{
	// A frame that was overtaken, by less than a restart: its rest has come, or will not be waited for.
	if (beginning->have > 0 && beginning->sequence - fragments->sequence < 64)
		return;
	beginning->have = beginning->total = 0;
	if (fragments->total == 0 || fragments->total > reassembly->packet_max)
		return;
	memcpy(beginning->bytes, fragments->beginning, fragments->beginning_len);
	beginning->have = fragments->beginning_len;
	beginning->total = fragments->total;
	beginning->sequence = fragments->sequence;
}
