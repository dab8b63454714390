// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "replay.h"
#include "stamp.h"

#define STREAMS_MAX (GEN_MAX_PATHS * GEN_MAX_QUEUES)

// What becomes due in a turn of the loop longer than this was kept waiting by the tester.
#define PAUSE_NS 20000
// How much of its longest pause the tester may make good after the trial's time.
#define CATCH_UP_NS 10000000
// A turn of the loop longer than this is lost time.
#define GAP_NS 10000
// How long what an earlier trial left in the device's queues may take to go away.
#define SETTLE_NS 1000000000ull
#define QUIET_NS 10000000ull
// Copies may follow the last packet.
#define LINGER_NS 1000000

struct loop {
	struct gen_tester *tester;
	const struct gen_spec *spec;
	struct gen_trial *trial;
	struct gen_stream *streams;
	uint32_t stream_count;
	uint64_t start, duration, grace, catch_up, pause;
	bool paused; // before this turn
	uint32_t wire_count;
	struct gen_wire *wires[GEN_MAX_PORTS * GEN_MAX_QUEUES];
	uint8_t wire_port[GEN_MAX_PORTS * GEN_MAX_QUEUES];
	rte_be16_t convoy_port;
};

static uint64_t descheduled_ns(void)
{
	char path[64];
	unsigned long long run, wait;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return UINT64_MAX;
	const int fields = fscanf(file, "%llu %llu", &run, &wait);
	fclose(file);
	return fields == 2 ? wait : UINT64_MAX;
}

// Counts what has become due since the turn before. What did so while the tester paused is its
// debt: that may wait for room until all is caught up, so that a pause costs the device nothing.
static inline void count_due(struct loop *loop, struct gen_stream *stream, uint64_t now)
{
	uint64_t fresh = 0;

	while (gen_pace_due(&stream->arrivals) <= now &&
		gen_pace_due(&stream->arrivals) < loop->duration) {
		gen_pace_advance(&stream->arrivals);
		fresh++;
	}
	stream->backlog += fresh;
	if (__builtin_expect(loop->paused, 0))
		stream->debt += fresh;
}

// Refuses what is due beyond the debt, the oldest first, as a full NIC queue would. These packets
// get no sequence number: they never are on the wire.
static void refuse_due(struct gen_stream *stream)
{
	if (stream->backlog <= stream->debt)
		return;
	const uint64_t refused = stream->backlog - stream->debt;
	for (uint64_t i = 0; i < refused; i++)
		gen_pace_advance(&stream->pace);
	stream->is_ahead = false;
	cv_histogram_record(stream->refused_bursts, refused);
	stream->refused += refused;
	stream->backlog = stream->debt;
}

// When the next frame is due: a convoy when the last of its packets is.
static inline uint64_t next_due(struct gen_stream *stream)
{
	if (stream->pool.convoys == NULL)
		return gen_pace_due(&stream->pace);
	if (!stream->is_ahead) {
		stream->ahead = stream->pace;
		for (uint32_t k = 1; k < stream->pool.convoys[stream->next_frame].packets; k++)
			gen_pace_advance(&stream->ahead);
		stream->is_ahead = true;
	}
	return gen_pace_due(&stream->ahead);
}

static inline void advance_frame(struct gen_stream *stream)
{
	const struct gen_pool *pool = &stream->pool;
	const uint32_t frames = pool->convoys != NULL ? pool->convoy_count : pool->count;

	stream->next_frame = stream->next_frame + 1 == frames ? 0 : stream->next_frame + 1;
}

// Its turn is over; next_due was asked before. Returns of how many packets.
static inline uint32_t pass_next(struct gen_stream *stream)
{
	if (stream->pool.convoys == NULL) {
		gen_pace_advance(&stream->pace);
		return 1;
	}
	stream->pace = stream->ahead;
	gen_pace_advance(&stream->pace);
	stream->is_ahead = false;
	return stream->pool.convoys[stream->next_frame].packets;
}

// Frames of the stream that are due at `now`, at most `most`, into burst. Returns how many packets.
static inline __attribute__((always_inline)) uint32_t fill_frames(const struct loop *loop,
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
static uint32_t fill_convoys(struct loop *loop, struct gen_stream *stream, struct gen_tx *burst,
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
			due = next_due(stream);
			if (due > now || due >= loop->duration)
				break;
			pass_next(stream);
		}
		burst->frame[n] = convoy->frame;
		burst->convoys[n] = convoy;
		burst->seq[n] = stream->seq + packets;
		burst->ticks[n] = due;
		// The convoy's bytes less all headers but the packets' own.
		for (uint32_t k = 0; k < convoy->packets; k++)
			bytes += pool->frames[convoy->first + k].bytes;
		packets += convoy->packets;
		loop->trial->convoys.sent += convoy->packets > 1;
		advance_frame(stream);
		n++;
	}
	burst->count = n;
	burst->packets = pool->frames;
	stream->sent_bytes += bytes;
	return packets;
}

// Sends up to a burst of what is due at `now`. Returns how many packets.
static inline uint32_t send_due(struct loop *loop, struct gen_stream *stream, uint64_t now)
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
		if (next_due(stream) <= now && next_due(stream) < end)
			stream->full_events++;
		if (drops)
			refuse_due(stream);
	} else if (room == 0) {
		stream->full_events++;
	}
	return n;
}

static inline void take(struct loop *loop, const struct gen_rx *frame, uint32_t port, uint64_t now)
{
	struct gen_trial *trial = loop->trial;

	if (__builtin_expect(frame->bytes < GEN_STAMP_BYTES, 0)) {
		trial->foreign++;
		return;
	}
	const struct gen_stamp stamp = gen_stamp_read(frame->data + gen_stamp_offset(frame->bytes));
	const uint32_t index = (uint16_t)(stamp.magic - trial->magic);
	if (__builtin_expect(index >= loop->stream_count, 0)) {
		// Magics count on from trial to trial, so those just below are earlier ones.
		if ((uint16_t)(trial->magic - 1 - stamp.magic) < 4096 &&
			(gen_sum_equal(stamp.sum, 0) || loop->spec->capture != NULL))
			trial->earlier++;
		else
			trial->foreign++;
		return;
	}
	struct gen_stream *stream = &loop->streams[index];
	struct gen_account *account = stream->account;
	const uint16_t sum = __builtin_expect(loop->spec->capture != NULL, 0)
				     ? stream->pool.frames[stamp.seq % stream->pool.count].sum
				     : 0;
	if (__builtin_expect(
		    stamp.seq >= stream->seq || stamp.ticks > now || !gen_sum_equal(stamp.sum, sum),
		    0)) {
		account->corrupt++;
		return;
	}
	if (__builtin_expect(port != stream->to, 0)) {
		account->misrouted++;
		return;
	}
	const uint64_t latency = now - stamp.ticks;
	const uint64_t before = account->last_latency;
	if (__builtin_expect(account->received == 0, 0))
		account->first_rx = now;
	else
		account->jitter_sum += latency > before ? latency - before : before - latency;
	account->last_latency = latency;
	account->last_rx = now;
	account->received_bytes += frame->bytes;
	cv_histogram_record(account->latency, gen_ticks_to_ns(&loop->tester->clock, latency));
	gen_account_seq(account, stamp.seq);
}

// All of a convoy at once, where its packets are a run of the stream that nothing is missing
// before: what takes them one by one would find each of them as expected. False: nothing done.
static inline bool take_run(
	struct loop *loop, const struct cv_view *views, uint32_t count, uint32_t port, uint64_t now)
{
	struct gen_trial *trial = loop->trial;
	struct gen_stamp first;
	uint32_t bytes = 0, differ = 0;

	if (loop->spec->capture != NULL || views[0].len < GEN_STAMP_BYTES)
		return false;
	first = gen_stamp_read(views[0].data + gen_stamp_offset(views[0].len));
	const uint32_t index = (uint16_t)(first.magic - trial->magic);
	if (index >= loop->stream_count)
		return false;
	struct gen_stream *stream = &loop->streams[index];
	struct gen_account *account = stream->account;
	if (port != stream->to || account->missing > 0 || account->next != first.seq ||
		first.ticks > now || first.seq + count > stream->seq)
		return false;
	for (uint32_t k = 0; k < count; k++) {
		struct gen_stamp stamp;

		if (__builtin_expect(views[k].len < GEN_STAMP_BYTES, 0))
			return false;
		stamp = gen_stamp_read(views[k].data + gen_stamp_offset(views[k].len));
		differ |= (uint32_t)(stamp.magic ^ first.magic) | (stamp.seq ^ (first.seq + k)) |
			  (stamp.ticks != first.ticks) | !gen_sum_equal(stamp.sum, 0);
		bytes += views[k].len;
	}
	if (differ != 0)
		return false;
	const uint64_t latency = now - first.ticks;
	const uint64_t before = account->last_latency;
	if (__builtin_expect(account->received == 0, 0))
		account->first_rx = now;
	else
		account->jitter_sum += latency > before ? latency - before : before - latency;
	account->last_latency = latency;
	account->last_rx = now;
	account->received_bytes += bytes;
	account->received += count;
	account->next += count;
	cv_histogram_record_n(
		account->latency, gen_ticks_to_ns(&loop->tester->clock, latency), count);
	return true;
}

// A frame that may be a convoy.
static void take_apart(struct loop *loop, const struct gen_rx *frame, uint32_t port, uint64_t now)
{
	struct gen_convoy_counts *counts = &loop->trial->convoys;
	struct cv_view views[CV_CONVOY_PACKETS_MAX], view;
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;

	if (!frame->whole || frame->bytes > UINT16_MAX) {
		take(loop, frame, port, now);
		return;
	}
	cv_view_set(&view, (uint8_t *)(uintptr_t)frame->data, (uint16_t)frame->bytes);
	view.in = view.out = 0;
	reason = cv_convoy_walk(&convoy, views, &view, loop->convoy_port);
	if (reason == CV_CONVOY_NOT_A_CONVOY) {
		take(loop, frame, port, now);
		return;
	}
	if (__builtin_expect(reason != CV_CONVOY_OK, 0)) {
		counts->refused[reason]++;
		return;
	}
	counts->received++;
	counts->received_pkts += convoy.count;
	counts->packets[convoy.count]++;
	if (take_run(loop, views, convoy.count, port, now))
		return;
	for (uint32_t k = 0; k < convoy.count; k++) {
		const struct gen_rx packet = {views[k].data, views[k].len, true};

		take(loop, &packet, port, now);
	}
}

// The lines of a frame, on their way from the other core while another is examined.
static inline void prefetch(const struct gen_rx *frame)
{
	for (uint32_t at = 0; at < frame->bytes && frame->whole; at += GEN_CACHE_LINE)
		__builtin_prefetch(frame->data + at);
}

static inline uint32_t receive(struct loop *loop)
{
	struct gen_rx frames[GEN_BURST];
	uint32_t total = 0;

	for (uint32_t i = 0; i < loop->wire_count; i++) {
		struct gen_wire *wire = loop->wires[i];
		const uint32_t count = wire->ops->rx(wire, frames);

		if (count == 0)
			continue;
		const uint64_t now = gen_ticks() - loop->start;
		if (__builtin_expect(loop->spec->convoy_packets > 0, 0)) {
			prefetch(&frames[0]);
			for (uint32_t j = 0; j < count; j++) {
				if (j + 1 < count)
					prefetch(&frames[j + 1]);
				take_apart(loop, &frames[j], loop->wire_port[i], now);
			}
		} else {
			for (uint32_t j = 0; j < count; j++)
				take(loop, &frames[j], loop->wire_port[i], now);
		}
		wire->ops->rx_release(wire);
		total += count;
	}
	return total;
}

// Whether a stream has nothing left to send.
static bool is_done(const struct loop *loop, struct gen_stream *stream, uint64_t now)
{
	const uint64_t pause = loop->trial->gap_max;
	const uint64_t catch_up = pause < loop->catch_up ? pause : loop->catch_up;

	if (loop->spec->rate_pps == 0 && stream->pace.gaps == NULL)
		return now >= loop->duration || stream->seq == stream->limit;
	return stream->seq == stream->limit || next_due(stream) >= loop->duration ||
	       now >= loop->duration + loop->grace + catch_up;
}

static bool interrupted(struct loop *loop)
{
	struct gen_trial *trial = loop->trial;

	if (__builtin_expect(loop->tester->stop, 0)) {
		strcpy(trial->reason_code, "interrupted");
		strcpy(trial->reason, "interrupted by a signal");
		return true;
	}
	for (uint32_t i = 0; i < loop->tester->port_count; i++) {
		struct gen_port *port = loop->tester->ports[i];
		// Pairs with the release store of whoever noticed.
		if (__builtin_expect(atomic_load_explicit(&port->gone, memory_order_acquire), 0)) {
			strcpy(trial->reason_code, "peer_gone");
			snprintf(trial->reason, sizeof(trial->reason), "port %u (%.80s): %s", i,
				port->name, port->gone_reason);
			return true;
		}
	}
	return false;
}

// Copies, stragglers: until nothing more is expected, or the drain time is over.
static bool drained(const struct loop *loop, uint64_t now, uint64_t since, uint64_t complete)
{
	const struct gen_clock *clock = &loop->tester->clock;

	if (complete != 0 && now - complete >= gen_ns_to_ticks(clock, LINGER_NS))
		return true;
	return now - since >= gen_ns_to_ticks(clock, loop->spec->drain_s * 1e9);
}

static void run(struct loop *loop)
{
	struct gen_trial *trial = loop->trial;
	const uint64_t gap_limit = gen_ns_to_ticks(&loop->tester->clock, GAP_NS);
	uint64_t now, last, complete = 0;
	bool sending = true;

	trial->start = loop->start = gen_ticks();
	last = 0;
	for (;;) {
		uint32_t moved = 0;
		bool all_done = true;

		now = gen_ticks() - loop->start;
		const uint64_t turn = now - last;
		if (__builtin_expect(turn > gap_limit, 0)) {
			trial->gaps++;
			trial->gap_ticks += turn;
		}
		trial->gap_max = turn > trial->gap_max ? turn : trial->gap_max;
		trial->loops++;
		loop->paused = turn > loop->pause;
		last = now;

		if (sending) {
			for (uint32_t i = 0; i < loop->stream_count; i++) {
				struct gen_stream *stream = &loop->streams[i];

				if (stream->done)
					continue;
				moved += send_due(loop, stream, now);
				stream->done = is_done(loop, stream, now);
				all_done &= stream->done;
			}
			if (all_done) {
				sending = false;
				trial->send_end = now;
			}
		}
		moved += receive(loop);
		if (moved > 0) {
			trial->busy_ticks += gen_ticks() - loop->start - now;
		} else {
			// A device that slept off while we published must be told.
			for (uint32_t i = 0; i < loop->stream_count; i++)
				loop->streams[i].wire->ops->tx_idle(loop->streams[i].wire);
		}
		if (!sending) {
			if (complete == 0) {
				bool all = true;
				for (uint32_t i = 0; i < loop->stream_count; i++)
					all &= loop->streams[i].account->received ==
					       loop->streams[i].sent;
				complete = all ? now : 0;
			}
			if (drained(loop, now, trial->send_end, complete))
				break;
		}
		if (__builtin_expect(interrupted(loop), 0))
			break;
	}
	trial->end = gen_ticks() - loop->start;
	if (sending)
		trial->send_end = trial->end;
}

// Frames of an earlier trial are gone: those to be sent were taken (their memory is about to be
// written), and what waits to be received was received, unless the device never stops sending.
static bool settle(struct loop *loop)
{
	const struct gen_clock *clock = &loop->tester->clock;
	const uint64_t begin = gen_ticks();
	struct gen_rx frames[GEN_BURST];

	for (;;) {
		const uint64_t waited = gen_ticks() - begin;
		bool sent = true, quiet = true;

		for (uint32_t i = 0; i < loop->wire_count; i++) {
			struct gen_wire *wire = loop->wires[i];

			sent &= wire->ops->tx_idle(wire);
			if (wire->ops->rx(wire, frames) > 0) {
				wire->ops->rx_release(wire);
				quiet = false;
			}
		}
		if (sent && (quiet || waited > gen_ns_to_ticks(clock, QUIET_NS)))
			return true;
		if (waited > gen_ns_to_ticks(clock, SETTLE_NS) || interrupted(loop))
			return false;
	}
}

static int build_pool(struct gen_tester *tester, const struct gen_spec *spec, struct gen_part part,
	const struct gen_room *room, struct gen_stream *stream, char *error, size_t error_size)
{
	struct gen_pool *pool = &stream->pool;

	if (spec->capture == NULL)
		return gen_pool_build(pool, spec, part, room, error, error_size);
	if (gen_replay_build(pool, spec, room, error, error_size) < 0)
		return -1;
	pool->flow_count = 1;
	if (spec->capture_loops > 0 &&
		(uint64_t)pool->pass_count * spec->capture_loops < stream->limit)
		stream->limit = pool->pass_count * spec->capture_loops;
	if (!spec->capture_timing)
		return 0;
	stream->gaps = calloc(pool->count, sizeof(*stream->gaps));
	if (stream->gaps == NULL) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	for (uint32_t i = 0; i < pool->count; i++)
		stream->gaps[i] = (uint64_t)((double)pool->gaps_ns[i] / spec->capture_speed *
					     tester->clock.ticks_per_ns * 65536.0);
	stream->pace = gen_pace_gaps(stream->gaps, pool->count);
	return 0;
}

static int build_streams(struct gen_tester *tester, const struct gen_spec *spec, double duration_s,
	struct gen_trial *trial, char *error, size_t error_size)
{
	size_t used[GEN_MAX_PORTS] = {0};
	const double hz = (double)tester->clock.hz;

	trial->streams = calloc(STREAMS_MAX, sizeof(*trial->streams));
	if (trial->streams == NULL) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	for (uint32_t i = 0; i < spec->path_count; i++) {
		const struct gen_path *path = &spec->paths[i];
		struct gen_port *port = tester->ports[path->from];
		const uint32_t flows = spec->capture != NULL ? 1 : spec->flows.count;
		const uint32_t parts = port->wire_count < flows ? port->wire_count : flows;

		for (uint32_t part = 0; part < parts; part++) {
			struct gen_stream *stream = &trial->streams[trial->stream_count++];
			const struct gen_room room = {
				.memory = port->memory + used[path->from],
				.bytes = port->memory_bytes - used[path->from],
				.frame_max = port->frame_bytes_max,
				.frames_min = port->queue_frames,
			};

			stream->from = path->from;
			stream->to = path->to;
			stream->queue = part;
			stream->wire = &port->wires[part];
			stream->limit = UINT32_MAX - 1;
			if (build_pool(tester, spec, (struct gen_part){part, parts}, &room, stream,
				    error, error_size) < 0)
				return -1;
			used[path->from] += stream->pool.used_bytes;
			stream->account = gen_account_create(stream->pool.flow_of,
				stream->pool.flow_of != NULL ? stream->pool.count
							     : stream->pool.flow_count);
			stream->refused_bursts = cv_histogram_create(3, UINT32_MAX);
			if (stream->account == NULL || stream->refused_bursts == NULL) {
				snprintf(error, error_size, "out of memory");
				return -1;
			}
			if (spec->rate_pps > 0 && stream->gaps == NULL)
				stream->pace = gen_pace_rate(hz,
					spec->rate_pps * stream->pool.flow_count / flows,
					spec->burst, spec->on_us * 1e3, spec->off_us * 1e3);
			stream->arrivals = stream->pace;
		}
	}
	return 0;
}

static void judge(struct loop *loop)
{
	struct gen_trial *trial = loop->trial;
	const struct gen_spec *spec = loop->spec;
	// A trial that was cut short offered what was due until then.
	const uint64_t end = trial->reason_code[0] != '\0' && trial->end < loop->duration
				     ? trial->end
				     : loop->duration;
	uint64_t offered = 0, unsent = 0, full = 0;

	for (uint32_t i = 0; i < trial->stream_count; i++) {
		struct gen_stream *stream = &trial->streams[i];

		stream->offered = stream->seq + stream->refused;
		// What was scheduled, but never got its turn.
		if (spec->rate_pps > 0 || stream->pace.gaps != NULL)
			while (next_due(stream) < end &&
				stream->offered - stream->refused < stream->limit) {
				stream->offered += pass_next(stream);
				advance_frame(stream);
			}
		gen_account_close(stream->account, stream->seq);
		offered += stream->offered;
		unsent += stream->offered - stream->seq - stream->refused;
		full += stream->full_events;
	}
	for (uint32_t i = 0; i < loop->wire_count; i++) {
		trial->ring_errors += loop->wires[i]->ring_errors;
		trial->kicks += loop->wires[i]->kicks;
	}
	if (trial->reason_code[0] != '\0')
		return;
	const double allowed = spec->tolerance * (double)offered;
	if (trial->ring_errors > 0) {
		strcpy(trial->reason_code, "ring_error");
		snprintf(trial->reason, sizeof(trial->reason),
			"the device wrote %llu used entries that are out of bounds",
			(unsigned long long)trial->ring_errors);
	} else if ((double)unsent > allowed) {
		strcpy(trial->reason_code, "rate_not_reached");
		snprintf(trial->reason, sizeof(trial->reason),
			"offered %llu packets, sent only %llu: %s", (unsigned long long)offered,
			(unsigned long long)(offered - unsent),
			full > 0 ? "the device did not take more (its queue was full)"
				 : "the tester was too slow");
	} else {
		trial->ok = true;
	}
}

// A turn takes as long with convoys as without.
static uint32_t rx_most(const struct gen_spec *spec)
{
	const uint32_t most =
		spec->convoy_packets > 0 ? GEN_CONVOY_SPLIT / spec->convoy_packets : GEN_BURST;

	return most < 1 ? 1 : most < GEN_BURST ? most : GEN_BURST;
}

int gen_trial_run(struct gen_tester *tester, const struct gen_spec *spec, double duration_s,
	struct gen_trial *trial, char *error, size_t error_size)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int result = -1;

	*trial = (struct gen_trial){0};
	if (loop == NULL) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	loop->tester = tester;
	loop->spec = spec;
	loop->trial = trial;
	loop->duration = (uint64_t)(duration_s * (double)tester->clock.hz);
	loop->grace = gen_ns_to_ticks(&tester->clock, 1e6 + spec->tolerance * duration_s * 1e9);
	loop->convoy_port = rte_cpu_to_be_16(
		spec->convoy_outer.port != 0 ? spec->convoy_outer.port : CV_CONVOY_PORT);
	loop->pause = gen_ns_to_ticks(&tester->clock, PAUSE_NS);
	loop->catch_up = gen_ns_to_ticks(&tester->clock, CATCH_UP_NS);
	for (uint32_t i = 0; i < tester->port_count; i++)
		for (uint32_t j = 0; j < tester->ports[i]->wire_count; j++) {
			loop->wires[loop->wire_count] = &tester->ports[i]->wires[j];
			loop->wires[loop->wire_count]->ring_errors = 0;
			loop->wires[loop->wire_count]->kicks = 0;
			loop->wires[loop->wire_count]->rx_most = rx_most(spec);
			loop->wire_port[loop->wire_count++] = (uint8_t)i;
		}
	const bool settled = settle(loop);
	if (build_streams(tester, spec, duration_s, trial, error, error_size) < 0)
		goto out;
	result = 0;
	loop->streams = trial->streams;
	loop->stream_count = trial->stream_count;
	trial->magic = tester->next_magic;
	tester->next_magic = (uint16_t)(tester->next_magic + trial->stream_count);
	if (trial->reason_code[0] != '\0')
		goto out;
	if (!settled) {
		strcpy(trial->reason_code, "not_settled");
		strcpy(trial->reason, "frames of an earlier trial were still on their way: the "
				      "device does not take them, or sends without end");
		goto out;
	}
	const uint64_t waited = descheduled_ns();
	run(loop);
	for (uint32_t i = 0; i < tester->port_count; i++)
		if (tester->ports[i]->check != NULL)
			tester->ports[i]->check(tester->ports[i]);
	if (trial->reason_code[0] == '\0')
		interrupted(loop);
	const uint64_t waited_after = descheduled_ns();
	trial->descheduled_ns = waited == UINT64_MAX || waited_after == UINT64_MAX
					? UINT64_MAX
					: waited_after - waited;
	judge(loop);
out:
	free(loop);
	return result;
}

void gen_trial_free(struct gen_trial *trial)
{
	for (uint32_t i = 0; i < trial->stream_count; i++) {
		gen_pool_free(&trial->streams[i].pool);
		gen_account_destroy(trial->streams[i].account);
		free(trial->streams[i].gaps);
		free(trial->streams[i].refused_bursts);
	}
	free(trial->streams);
	trial->streams = NULL;
	trial->stream_count = 0;
}
