// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A stream: what one send queue of a path carries, and when its frames are due.
#ifndef GEN_TRIAL_STREAM_H
#define GEN_TRIAL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/machine/clock.h"
#include "gen/spec/spec.h"
#include "gen/traffic/convoys.h"
#include "gen/traffic/pool.h"
#include "gen/traffic/wire.h"
#include "gen/trial/account.h"
#include "gen/trial/pace.h"

// All times are ticks since the trial began.
struct gen_stream {
	uint32_t from, to, queue; // to: where its packets, or the answers to them, are received
	uint32_t answered_at; // the port that answers them; UINT32_MAX: none
	struct gen_wire *wire;
	struct gen_pool pool;
	struct gen_pace pace; // of sending
	struct gen_pace ahead; // convoys: of sending, when the last packet of the next one is due
	bool is_ahead; // it is valid
	struct gen_pace arrivals; // on_full drop: of becoming due
	uint64_t backlog, debt; // due and not sent; how much of it may wait
	uint64_t *gaps; // replay: the pool's, in 48.16 ticks
	struct gen_account *account;
	uint32_t next_frame; // of the pool: frame, or convoy where there are some
	uint32_t seq; // next; all below were sent
	uint32_t limit; // of seq
	uint64_t offered; // scheduled
	uint64_t sent, sent_bytes;
	uint64_t refused; // scheduled, but the send queue was full (on_full: drop)
	struct cv_histogram *refused_bursts; // lengths of runs of refused packets
	uint64_t full_events; // times the send queue had no room for a packet that was due
	uint64_t late_max; // longest delay from schedule to send queue
	uint64_t first_tx, last_tx; // scheduled time of the first, sending time of the last
	bool done;
};

// When the next frame is due: a convoy when the last of its packets is.
static inline uint64_t gen_stream_next_due(struct gen_stream *stream)
{
	uint32_t before;

	if (stream->pool.convoys == NULL)
		return gen_pace_due(&stream->pace);
	before = stream->pool.convoys[stream->next_frame].packets - 1;
	if (CV_LIKELY(gen_pace_is_even(&stream->pace)))
		return (stream->pace.at + before * stream->pace.step) >> 16;
	if (!stream->is_ahead) {
		stream->ahead = stream->pace;
		gen_pace_skip(&stream->ahead, before);
		stream->is_ahead = true;
	}
	return gen_pace_due(&stream->ahead);
}

static inline void gen_stream_advance(struct gen_stream *stream)
{
	const struct gen_pool *pool = &stream->pool;
	const uint32_t frames = pool->convoys != NULL ? pool->convoy_count : pool->count;

	stream->next_frame = stream->next_frame + 1 == frames ? 0 : stream->next_frame + 1;
}

// The next frame is sent, or was not to be. Returns of how many packets.
static inline uint32_t gen_stream_pass(struct gen_stream *stream)
{
	const uint32_t packets =
		stream->pool.convoys == NULL ? 1 : stream->pool.convoys[stream->next_frame].packets;

	gen_pace_skip(&stream->pace, packets);
	stream->is_ahead = false;
	return packets;
}

// The streams of a specification over ports that are attached, for a clock. 0, or a negative errno
// with error set: it does not fit. gen_streams_free afterwards in both cases.
int gen_streams_build(const struct gen_spec *spec, const struct gen_clock *clock,
	struct gen_port *const *ports, struct gen_stream **streams, uint32_t *count,
	struct cv_error *error);

void gen_streams_free(struct gen_stream *streams, uint32_t count);

#endif
