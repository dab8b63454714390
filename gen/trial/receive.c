// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/stamp.h"
#include "gen/trial/answer.h"
#include "gen/trial/loop.h"
#include "packet/compiler.h"

static inline void take(struct gen_loop *loop, const struct gen_rx *frame, uint32_t port,
	struct gen_wire *wire, uint64_t now)
{
	struct gen_trial *trial = loop->trial;

	if (CV_UNLIKELY(frame->bytes < GEN_STAMP_BYTES)) {
		trial->foreign++;
		return;
	}
	const struct gen_stamp stamp = gen_stamp_read(frame->data + gen_stamp_offset(frame->bytes));
	const uint32_t index = (uint16_t)(stamp.magic - trial->magic);
	if (CV_UNLIKELY(index >= loop->stream_count)) {
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
	uint16_t sum = 0;
	if (CV_UNLIKELY(loop->spec->capture != NULL)) {
		sum = stream->pool.frames[stamp.seq % stream->pool.count].sum;
		if (trial->kept != NULL && port == stream->to)
			gen_kept_add(trial->kept, frame);
	}
	if (CV_UNLIKELY(stamp.seq >= stream->seq || stamp.ticks > now ||
			!gen_sum_equal(stamp.sum, sum))) {
		account->corrupt++;
		return;
	}
	if (CV_UNLIKELY(port != stream->to && port != stream->answered_at)) {
		account->misrouted++;
		return;
	}
	if (stream->answered_at != UINT32_MAX &&
		!gen_answer(loop, stream, frame, port, wire, &stamp))
		return;
	if (CV_UNLIKELY(!gen_account_seq(account, stamp.seq)))
		return;
	const uint64_t latency = now - stamp.ticks;
	const uint64_t before = account->last_latency;
	if (CV_UNLIKELY(account->received == 1))
		account->first_rx = now;
	else
		account->jitter_sum += latency > before ? latency - before : before - latency;
	account->last_latency = latency;
	account->last_rx = now;
	account->received_bytes += frame->bytes;
	cv_histogram_record(account->latency, gen_ticks_to_ns(&loop->tester->clock, latency));
}

// All of a convoy at once, where its packets are a run of the stream that nothing is missing
// before: what takes them one by one would find each of them as expected. False: nothing done.
static inline bool take_run(struct gen_loop *loop, const struct cv_view *views, uint32_t count,
	uint32_t port, uint64_t now)
{
	struct gen_trial *trial = loop->trial;
	struct gen_stamp first;
	uint64_t differ = 0;
	uint32_t bytes = 0;

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
	struct gen_stamp_run run = gen_stamp_run(first.magic, first.seq, first.ticks);
	for (uint32_t k = 0; k < count; k++) {
		if (CV_UNLIKELY(views[k].len < GEN_STAMP_BYTES))
			return false;
		differ |=
			gen_stamp_run_differs(&run, views[k].data + gen_stamp_offset(views[k].len));
		bytes += views[k].len;
	}
	if (differ != 0)
		return false;
	const uint64_t latency = now - first.ticks;
	const uint64_t before = account->last_latency;
	if (CV_UNLIKELY(account->received == 0))
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

// Is a frame as long as the packet was whose stamp is at its end? Then it is that packet,
// unaggregated: a convoy is longer than its last one. That takes nothing but its last line.
static inline bool is_unaggregated(const struct gen_loop *loop, const struct gen_rx *frame)
{
	if (frame->bytes < GEN_STAMP_BYTES)
		return true;
	const struct gen_stamp stamp = gen_stamp_read(frame->data + gen_stamp_offset(frame->bytes));
	const uint32_t index = (uint16_t)(stamp.magic - loop->trial->magic);
	if (index >= loop->stream_count)
		return false;
	const struct gen_pool *pool = &loop->streams[index].pool;
	return pool->frames[stamp.seq % pool->count].bytes == frame->bytes;
}

// A frame that may be a convoy.
static void take_apart(
	struct gen_loop *loop, const struct gen_rx *frame, uint32_t port, uint64_t now)
{
	struct gen_convoy_counts *counts = &loop->trial->convoys;
	struct cv_view views[CV_CONVOY_PACKETS_MAX], view;
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;

	if (!frame->whole || frame->bytes > UINT16_MAX) {
		take(loop, frame, port, NULL, now);
		return;
	}
	cv_view_set(&view, (uint8_t *)(uintptr_t)frame->data, (uint16_t)frame->bytes);
	view.in = view.out = 0;
	reason = cv_convoy_walk(&convoy, views, &view, loop->convoy_port);
	if (reason == CV_CONVOY_NOT_A_CONVOY) {
		take(loop, frame, port, NULL, now);
		return;
	}
	if (CV_UNLIKELY(reason != CV_CONVOY_OK)) {
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

		take(loop, &packet, port, NULL, now);
	}
}

// The lines of a frame, on their way from the other core while another is examined. Those that nobody
// reads stay with the device, which will write them again.
static inline void prefetch(const struct gen_rx *frame)
{
	for (uint32_t at = 0; at < frame->bytes && frame->whole; at += GEN_CACHE_LINE)
		__builtin_prefetch(frame->data + at);
}

// Frames of which some may be convoys.
static void receive_convoys(struct gen_loop *loop, const struct gen_rx *frames, uint32_t count,
	uint32_t port, uint64_t now)
{
	bool unaggregated = is_unaggregated(loop, &frames[0]);

	if (!unaggregated)
		prefetch(&frames[0]);
	for (uint32_t j = 0; j < count; j++) {
		const bool next_unaggregated =
			j + 1 == count || is_unaggregated(loop, &frames[j + 1]);

		if (!next_unaggregated)
			prefetch(&frames[j + 1]);
		if (unaggregated)
			take(loop, &frames[j], port, NULL, now);
		else
			take_apart(loop, &frames[j], port, now);
		unaggregated = next_unaggregated;
	}
}

uint32_t gen_loop_receive(struct gen_loop *loop)
{
	struct gen_rx frames[GEN_BURST];
	uint32_t total = 0;

	for (uint32_t i = 0; i < loop->wire_count; i++) {
		struct gen_wire *wire = loop->wires[i];
		const uint32_t count = wire->ops->rx(wire, frames);

		if (count == 0)
			continue;
		const uint64_t now = gen_ticks() - loop->start;
		if (CV_UNLIKELY(loop->spec->convoy_packets > 0))
			receive_convoys(loop, frames, count, loop->wire_port[i], now);
		else
			for (uint32_t j = 0; j < count; j++)
				take(loop, &frames[j], loop->wire_port[i], wire, now);
		if (CV_UNLIKELY(loop->answers != NULL))
			gen_answers_send(loop->answers);
		wire->ops->rx_release(wire);
		total += count;
	}
	return total;
}
