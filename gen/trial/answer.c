// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/answer.h"

#include <stdlib.h>

#include "gen/traffic/template.h"
#include "gen/trial/translated.h"
#include "packet/compiler.h"

#define FIN 0x01
#define SYN 0x02
#define ACK 0x10

#define CLIENT_SEQ GEN_TCP_SEQ
#define SERVER_SEQ 0x20000000u

// Frames of a wire, sent round and round: more than its queue has places.
struct ring {
	struct gen_wire *wire;
	uint8_t *base;
	uint32_t first, stride, count, next; // stride: of a frame
};

struct gen_answers {
	struct gen_trial *trial;
	uint32_t ring_count;
	struct ring rings[GEN_MAX_PORTS * GEN_MAX_QUEUES];
	uint32_t frame_max; // bytes, at every port
	struct ring *to; // of the burst
	struct gen_tx burst;
};

// Where a port's frames for the trial end.
static size_t used(const struct gen_trial *trial, uint32_t port)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < trial->stream_count; i++)
		if (trial->streams[i].from == port)
			bytes += trial->streams[i].pool.used_bytes;
	return bytes;
}

struct gen_answers *gen_answers_create(
	const struct gen_tester *tester, struct gen_trial *trial, struct cv_error *error)
{
	struct gen_answers *answers = calloc(1, sizeof(*answers));

	if (answers == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	answers->trial = trial;
	answers->frame_max = UINT16_MAX;
	for (uint32_t p = 0; p < tester->port_count; p++) {
		struct gen_port *port = tester->ports[p];
		// A cache line before each stays free for the header of its kind of port.
		const uint32_t stride = (port->frame_bytes_max + 2 * GEN_CACHE_LINE - 1) /
					GEN_CACHE_LINE * GEN_CACHE_LINE;
		const uint32_t count = port->queue_frames + 2 * GEN_BURST;
		size_t at = used(trial, p) + GEN_CACHE_LINE;

		if (port->frame_bytes_max < answers->frame_max)
			answers->frame_max = port->frame_bytes_max;

		for (uint32_t q = 0; q < port->wire_count; q++) {
			if (at + (size_t)stride * count > port->memory_bytes || at > UINT32_MAX) {
				cv_error_set(error,
					"spec: answers: need more than the port's %zu MiB; use "
					"more memory (--port …,mem=MIB)",
					port->memory_bytes >> 20);
				free(answers);
				return NULL;
			}
			answers->rings[answers->ring_count++] = (struct ring){
				.wire = &port->wires[q],
				.base = port->memory,
				.first = (uint32_t)at,
				.stride = stride,
				.count = count,
			};
			at += (size_t)stride * count;
		}
	}
	return answers;
}

void gen_answers_send(struct gen_answers *answers)
{
	struct ring *to = answers->to;
	struct gen_tx *burst = &answers->burst;

	if (burst->count == 0)
		return;
	const uint32_t room = to->wire->ops->tx_room(to->wire, burst->count);
	const uint32_t lost = burst->count - room;

	// What finds no room takes no place: the next ones are those of frames that are on their way.
	if (CV_UNLIKELY(lost > 0))
		to->next = (to->next + to->count - lost) % to->count;
	burst->count = room;
	if (room > 0)
		to->wire->ops->tx(to->wire, burst);
	answers->trial->answered += room;
	answers->trial->unanswered += lost;
	burst->count = 0;
}

// A place for an answer by the wire that a packet came by.
static uint8_t *place(struct gen_answers *answers, struct gen_wire *wire, uint16_t magic,
	const struct gen_stamp *stamp, uint32_t bytes)
{
	struct gen_tx *burst = &answers->burst;
	struct ring *to = answers->to;

	if (burst->count == GEN_BURST ||
		(burst->count > 0 && (to->wire != wire || burst->magic != magic)))
		gen_answers_send(answers);
	if (to == NULL || to->wire != wire) {
		for (to = answers->rings; to->wire != wire; to++)
			;
		answers->to = to;
	}
	const uint32_t offset = to->first + to->next * to->stride;

	to->next = to->next + 1 == to->count ? 0 : to->next + 1;
	burst->base = to->base;
	burst->magic = magic;
	burst->frame[burst->count] = (struct gen_frame){offset, (uint16_t)bytes, 0};
	burst->seq[burst->count] = stamp->seq;
	burst->ticks[burst->count++] = stamp->ticks;
	return to->base + offset;
}

static void swap(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	memcpy(to, from + bytes, bytes);
	memcpy(to + bytes, from, bytes);
}

static void put32(uint8_t *at, uint32_t value)
{
	value = rte_cpu_to_be_32(value);
	memcpy(at, &value, 4);
}

// RFC 1624's sum of what is to be added where 16-bit words at even places change.
static void change(uint8_t *checksum, const uint8_t *old, const uint8_t *new, uint32_t bytes)
{
	uint16_t sum, from, to;
	uint64_t total;

	memcpy(&sum, checksum, 2);
	total = (uint16_t)~sum;
	for (uint32_t i = 0; i < bytes; i += 2) {
		memcpy(&from, old + i, 2);
		memcpy(&to, new + i, 2);
		total += (uint32_t)(uint16_t)~from + to;
	}
	sum = (uint16_t)~gen_fold(total);
	memcpy(checksum, &sum, 2);
}

// The other way: all checksums stay as they are. The copy's headers.
static uint8_t *turn(uint8_t *to, const uint8_t *from, uint32_t l3, uint32_t bytes)
{
	memcpy(to, from, bytes);
	swap(to, from, 6);
	swap(to + l3 + 12, from + l3 + 12, 4);
	swap(to + l3 + 20, from + l3 + 20, 2);
	return to + l3 + 20;
}

static void segment(uint8_t *tcp, uint32_t seq, uint32_t ack, uint8_t flags)
{
	uint8_t old[10];

	memcpy(old, tcp + 4, sizeof(old));
	put32(tcp + 4, seq);
	put32(tcp + 8, flags & ACK ? ack : 0);
	tcp[13] = flags;
	change(tcp + 16, old, tcp + 4, sizeof(old));
}

bool gen_answer(struct gen_loop *loop, const struct gen_stream *stream, const struct gen_rx *frame,
	uint32_t port, struct gen_wire *wire, const struct gen_stamp *stamp)
{
	const bool back = port == stream->to;
	const bool tcp = loop->spec->flows.protocol == GEN_TCP;
	const uint32_t l3 = loop->spec->flows.tagged ? 18 : 14, l4 = l3 + 20;
	const uint16_t magic = stamp->magic;

	if (CV_UNLIKELY(loop->checks))
		gen_translated_check(loop->spec, &stream->pool.walk, stamp->seq, frame, back,
			&loop->trial->translated);
	if (back && !tcp)
		return true;
	if (CV_UNLIKELY(wire == NULL || !frame->whole || frame->bytes < l4 + (tcp ? 20 : 8) ||
			frame->bytes > loop->answers->frame_max)) {
		loop->trial->unanswered++;
		return false;
	}
	const uint8_t flags = tcp ? frame->data[l4 + 13] : 0;
	const uint32_t data = frame->bytes - l4 - 20;
	if (tcp && !(flags & (SYN | FIN)))
		return false;
	uint8_t *answer = turn(place(loop->answers, wire, magic, stamp, frame->bytes), frame->data,
		l3, frame->bytes);
	if (!tcp)
		return false;
	if (!back) {
		if (flags & SYN)
			segment(answer, SERVER_SEQ - 1, CLIENT_SEQ, SYN | ACK);
		else
			segment(answer, SERVER_SEQ, CLIENT_SEQ + data + 1, FIN | ACK);
		return false;
	}
	if (flags & FIN) {
		segment(answer, CLIENT_SEQ + data + 1, SERVER_SEQ + data + 1, ACK);
		return true;
	}
	segment(answer, CLIENT_SEQ, SERVER_SEQ, ACK);
	answer = turn(place(loop->answers, wire, magic, stamp, frame->bytes), frame->data, l3,
		frame->bytes);
	segment(answer, CLIENT_SEQ, SERVER_SEQ, FIN | ACK);
	return false;
}
