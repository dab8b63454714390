// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/loop.h"

#include "packet/compiler.h"

// Counts what has become due since the iteration before. What did so while the tester paused is its
// debt: that may wait for room until all is caught up, so that a pause costs the device nothing.
static inline void count_due(struct gen_loop *loop, struct gen_stream *stream, uint64_t now)
{
	const uint64_t fresh = gen_pace_pass(&stream->arrivals, now, loop->duration);

	stream->backlog += fresh;
	if (CV_UNLIKELY(loop->paused))
		stream->debt += fresh;
}

// Refuses what is due beyond the debt, the oldest first, as a full NIC queue would. These packets
// get no sequence number: they never are on the wire.
static void refuse_due(struct gen_stream *stream)
{
	if (stream->backlog <= stream->debt)
		return;
	const uint64_t refused = stream->backlog - stream->debt;
	gen_pace_skip(&stream->pace, refused);
	stream->is_ahead = false;
	cv_histogram_record(stream->refused_bursts, refused);
	stream->refused += refused;
	stream->backlog = stream->debt;
}

// Whether a device takes what it gets. What is left over then waits for a tester that is too slow,
// and is its debt, too.
static bool keeps_up(struct gen_wire *wire)
{
	return wire->tx_half > 0 && wire->ops->tx_room(wire, wire->tx_half) == wire->tx_half;
}

// Frames of the stream that are due at `now`, at most `most`, into burst. Returns how many packets.
static inline __attribute__((always_inline)) uint32_t fill_frames(const struct gen_loop *loop,
	struct gen_stream *stream, struct gen_tx *burst, uint32_t most, uint64_t now, bool flat_out)
{
	const struct gen_frame *frames = stream->pool.frames;
	uint32_t next = stream->next_frame;
	uint32_t bytes = 0, n = 0;
	uint64_t due = now;

	if (most > stream->limit - stream->seq)
		most = stream->limit - stream->seq;
	while (n < most) {
		if (!flat_out) {
			due = gen_pace_due(&stream->pace);
			if (due > now || due >= loop->duration)
				break;
			gen_pace_advance(&stream->pace);
		}
		burst->frame[n] = frames[next];
		bytes += frames[next].bytes;
		burst->seq[n] = stream->seq + n;
		burst->ticks[n] = due;
		next = next + 1 == stream->pool.count ? 0 : next + 1;
		n++;
	}
	burst->count = n;
	burst->packets = NULL;
	stream->next_frame = next;
	stream->sent_bytes += bytes;
	return n;
}

// The same for convoys.
static uint32_t fill_convoys(struct gen_loop *loop, struct gen_stream *stream, struct gen_tx *burst,
	uint32_t most, uint64_t now, bool flat_out)
{
	const struct gen_pool *pool = &stream->pool;
	uint32_t bytes = 0, n = 0, packets = 0;
	uint64_t due = now;

	while (n < most && packets < GEN_CONVOY_SPLIT) {
		const struct gen_convoy *convoy = &pool->convoys[stream->next_frame];

		if (convoy->packets > stream->limit - stream->seq - packets)
			break;
		if (!flat_out) {
			due = gen_stream_next_due(stream);
			if (due > now || due >= loop->duration)
				break;
			gen_stream_pass(stream);
		}
		burst->frame[n] = convoy->frame;
		burst->convoys[n] = convoy;
		burst->seq[n] = stream->seq + packets;
		burst->ticks[n] = due;
		bytes += convoy->bytes;
		packets += convoy->packets;
		loop->trial->convoys.sent += convoy->packets > 1;
		gen_stream_advance(stream);
		n++;
	}
	burst->count = n;
	burst->packets = pool->frames;
	stream->sent_bytes += bytes;
	return packets;
}

uint32_t gen_loop_send(struct gen_loop *loop, struct gen_stream *stream, uint64_t now)
{
	const bool flat_out = loop->spec->rate_pps == 0 && stream->pace.gaps == NULL;
	const bool drops = loop->spec->drop_when_full && !flat_out;
	const uint64_t end = loop->duration;
	struct gen_tx burst;

	if (flat_out ? now >= end : gen_pace_due(&stream->pace) > now)
		return 0;
	if (drops)
		count_due(loop, stream, now);
	const uint32_t room = stream->wire->ops->tx_room(stream->wire, GEN_BURST);
	const uint32_t n = stream->pool.convoys != NULL
				   ? fill_convoys(loop, stream, &burst, room, now, flat_out)
				   : fill_frames(loop, stream, &burst, room, now, flat_out);

	if (n > 0) {
		burst.base = stream->pool.base;
		if (stream->pool.walk.flows > 0)
			for (uint32_t i = 0; i < n; i++)
				gen_walk_write(
					&stream->pool.walk, burst.base + burst.frame[i].offset);
		burst.magic = (uint16_t)(loop->trial->magic + (stream - loop->streams));
		stream->wire->ops->tx(stream->wire, &burst);
		if (stream->sent == 0)
			stream->first_tx = burst.ticks[0];
		const uint64_t late = now - burst.ticks[0];
		stream->late_max = late > stream->late_max ? late : stream->late_max;
		stream->last_tx = now;
		stream->sent += n;
		stream->seq += n;
		if (drops) {
			stream->backlog -= n;
			stream->debt =
				stream->debt < stream->backlog ? stream->debt : stream->backlog;
		}
	}
	if (burst.count == room && room < GEN_BURST && !flat_out && stream->seq < stream->limit) {
		// No room: what is due now waits, or is refused as a full NIC queue would.
		if (gen_stream_next_due(stream) <= now && gen_stream_next_due(stream) < end)
			stream->full_events++;
		if (drops)
			refuse_due(stream);
	} else if (room == 0) {
		stream->full_events++;
	} else if (drops && gen_stream_next_due(stream) <= now && keeps_up(stream->wire)) {
		stream->debt = stream->backlog;
	}
	return n;
}
