// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gen/trial/answer.h"
#include "gen/trial/loop.h"
#include "packet/compiler.h"

// What becomes due in a poll iteration longer than this was kept waiting by the tester.
#define PAUSE_NS 20000
#define PAUSE_IN_CALLS_NS 1000000 // where ports make system calls, which take their time
// How much of its longest pause the tester may make good after the trial's time.
#define CATCH_UP_NS 10000000
// A poll iteration longer than this is lost time.
#define GAP_NS 10000
// How long what an earlier trial left in the device's queues may take to go away.
#define SETTLE_NS 1000000000ull
#define QUIET_NS 10000000ull
// Copies may follow the last packet.
#define LINGER_NS 1000000

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

// Time in which the device may have found no room for what it sent: that of iterations that found a
// receive queue full. `elapsed` is the time since the iteration before, and counts once.
static void note_full(struct gen_loop *loop, uint64_t elapsed)
{
	uint64_t full = 0;

	for (uint32_t i = 0; i < loop->wire_count; i++)
		full += loop->wires[i]->rx_full;
	const bool is_full = full != loop->rx_full;
	if (CV_UNLIKELY(is_full || loop->was_full))
		loop->trial->full_ticks += elapsed;
	loop->rx_full = full;
	loop->was_full = is_full;
}

// Whether a stream has nothing left to send.
static bool is_done(const struct gen_loop *loop, struct gen_stream *stream, uint64_t now)
{
	const uint64_t pause = loop->trial->gap_max;
	const uint64_t catch_up = pause < loop->catch_up ? pause : loop->catch_up;

	if (loop->spec->rate_pps == 0 && stream->pace.gaps == NULL)
		return now >= loop->duration || stream->seq == stream->limit;
	return stream->seq == stream->limit || gen_stream_next_due(stream) >= loop->duration ||
	       now >= loop->duration + loop->grace + catch_up;
}

static bool interrupted(struct gen_loop *loop)
{
	struct gen_trial *trial = loop->trial;

	if (CV_UNLIKELY(loop->tester->stop)) {
		strcpy(trial->reason_code, "interrupted");
		strcpy(trial->reason, "interrupted by a signal");
		return true;
	}
	for (uint32_t i = 0; i < loop->tester->port_count; i++) {
		struct gen_port *port = loop->tester->ports[i];
		// Pairs with the release store of whoever noticed.
		if (CV_UNLIKELY(atomic_load_explicit(&port->gone, memory_order_acquire))) {
			strcpy(trial->reason_code, "peer_gone");
			snprintf(trial->reason, sizeof(trial->reason), "port %u (%.80s): %s", i,
				port->name, port->gone_reason);
			return true;
		}
	}
	return false;
}

// The wait after the last packet.
struct drain {
	uint64_t complete; // since when nothing more is expected; 0: it is
	uint64_t over; // when its time was found to be over; 0: it is not
};

// Copies, stragglers: until nothing more is expected, or the drain time is over. What waits to be received
// then came in time as far as we know, who may not have run meanwhile: it is, for as long again at most.
static bool drained(
	const struct gen_loop *loop, struct drain *drain, uint64_t now, uint64_t since, bool moved)
{
	const struct gen_clock *clock = &loop->tester->clock;
	const uint64_t time = gen_ns_to_ticks(clock, loop->spec->drain_s * 1e9);

	if (drain->complete != 0 && now - drain->complete >= gen_ns_to_ticks(clock, LINGER_NS))
		return true;
	if (now - since < time)
		return false;
	if (drain->over == 0)
		drain->over = now;
	return !moved || now - drain->over > RTE_MAX(time, gen_ns_to_ticks(clock, QUIET_NS));
}

static uint64_t pause_ns(const struct gen_tester *tester)
{
	for (uint32_t i = 0; i < tester->port_count; i++)
		if (tester->ports[i]->calls)
			return PAUSE_IN_CALLS_NS;
	return PAUSE_NS;
}

static void run(struct gen_loop *loop)
{
	struct gen_trial *trial = loop->trial;
	const uint64_t gap_limit = gen_ns_to_ticks(&loop->tester->clock, GAP_NS);
	struct drain drain = {0, 0};
	uint64_t now, last;
	bool sending = true;

	trial->start = loop->start = gen_ticks();
	last = 0;
	for (;;) {
		uint32_t moved = 0;
		bool all_done = true;

		now = gen_ticks() - loop->start;
		const uint64_t elapsed = now - last;
		if (CV_UNLIKELY(elapsed > gap_limit)) {
			trial->gaps++;
			trial->gap_ticks += elapsed;
		}
		trial->gap_max = elapsed > trial->gap_max ? elapsed : trial->gap_max;
		trial->loops++;
		loop->paused = elapsed > loop->pause;
		last = now;

		if (sending) {
			for (uint32_t i = 0; i < loop->stream_count; i++) {
				struct gen_stream *stream = &loop->streams[i];

				if (stream->done)
					continue;
				moved += gen_loop_send(loop, stream, now);
				stream->done = is_done(loop, stream, now);
				all_done &= stream->done;
			}
			if (all_done) {
				sending = false;
				trial->send_end = now;
			}
		}
		moved += gen_loop_receive(loop);
		note_full(loop, elapsed);
		if (moved > 0) {
			trial->busy_ticks += gen_ticks() - loop->start - now;
		} else {
			// A device that slept off while we published must be told.
			for (uint32_t i = 0; i < loop->stream_count; i++)
				loop->streams[i].wire->ops->tx_idle(loop->streams[i].wire);
		}
		if (!sending) {
			if (drain.complete == 0) {
				bool all = true;
				for (uint32_t i = 0; i < loop->stream_count; i++)
					all &= loop->streams[i].account->received ==
					       loop->streams[i].sent;
				drain.complete = all ? now : 0;
			}
			if (drained(loop, &drain, now, trial->send_end, moved > 0))
				break;
		}
		if (CV_UNLIKELY(interrupted(loop)))
			break;
	}
	trial->end = gen_ticks() - loop->start;
	if (sending)
		trial->send_end = trial->end;
	trial->duration = trial->send_end;
}

// Frames of an earlier trial are gone: those to be sent were taken (their memory is about to be
// written), and what waits to be received was received, unless the device never stops sending.
static bool settle(struct gen_loop *loop)
{
	const struct gen_clock *clock = &loop->tester->clock;
	const uint64_t begin = gen_ticks();
	struct gen_rx frames[GEN_BURST];

	for (;;) {
		const uint64_t waited = gen_ticks() - begin;
		bool sent = true, quiet = true;

		for (uint32_t i = 0; i < loop->wire_count; i++) {
			struct gen_wire *wire = loop->wires[i];
			uint32_t n;

			sent &= wire->ops->tx_idle(wire);
			n = wire->ops->rx(wire, frames);
			if (n > 0) {
				wire->ops->rx_release(wire);
				loop->trial->settled += n;
				quiet = false;
			}
		}
		if (sent && (quiet || waited > gen_ns_to_ticks(clock, QUIET_NS)))
			return true;
		if (waited > gen_ns_to_ticks(clock, SETTLE_NS) || interrupted(loop))
			return false;
	}
}

static void validate(struct gen_loop *loop)
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
		// What was scheduled, but not attempted before the end.
		const bool is_paced = spec->rate_pps > 0 || stream->pace.gaps != NULL;
		if (is_paced)
			while (gen_stream_next_due(stream) < end &&
				stream->offered - stream->refused < stream->limit) {
				stream->offered += gen_stream_pass(stream);
				gen_stream_advance(stream);
			}
		// Nothing more was to be sent in the rest of its time, which counts for the rate.
		if (is_paced && trial->reason_code[0] == '\0' &&
			gen_stream_next_due(stream) >= loop->duration)
			trial->duration = RTE_MAX(trial->send_end, loop->duration);
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

// An iteration takes as long with convoys as without.
static uint32_t rx_most(const struct gen_spec *spec)
{
	const uint32_t most =
		spec->convoy_packets > 0 ? GEN_CONVOY_SPLIT / spec->convoy_packets : GEN_BURST;

	return most < 1 ? 1 : most < GEN_BURST ? most : GEN_BURST;
}

int gen_trial_run(struct gen_tester *tester, const struct gen_spec *spec, double duration_s,
	struct gen_trial *trial, struct cv_error *error)
{
	struct gen_loop *loop = calloc(1, sizeof(*loop));
	int result;

	*trial = (struct gen_trial){0};
	if (loop == NULL) {
		cv_error_set(error, "out of memory");
		return -ENOMEM;
	}
	loop->tester = tester;
	loop->spec = spec;
	loop->trial = trial;
	loop->duration = (uint64_t)(duration_s * (double)tester->clock.hz);
	loop->grace = gen_ns_to_ticks(&tester->clock, 1e6 + spec->tolerance * duration_s * 1e9);
	loop->convoy_port = rte_cpu_to_be_16(
		spec->convoy_outer.port != 0 ? spec->convoy_outer.port : CV_CONVOY_PORT);
	loop->pause = gen_ns_to_ticks(&tester->clock, pause_ns(tester));
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
	trial->sees_full = true;
	for (uint32_t i = 0; i < loop->wire_count; i++) {
		loop->rx_full += loop->wires[i]->rx_full;
		trial->sees_full &= loop->wires[i]->sees_full;
	}
	result = gen_streams_build(
		spec, &tester->clock, tester->ports, &trial->streams, &trial->stream_count, error);
	if (result < 0)
		goto out;
	loop->streams = trial->streams;
	loop->stream_count = trial->stream_count;
	if (spec->answers) {
		loop->answers = gen_answers_create(tester, trial, error);
		result = loop->answers == NULL ? -EINVAL : 0;
		if (result < 0)
			goto out;
	}
	if (spec->keep > 0) {
		trial->kept = gen_kept_create(spec->keep);
		if (trial->kept == NULL) {
			cv_error_set(error, "keep: %u: out of memory", spec->keep);
			result = -ENOMEM;
			goto out;
		}
	}
	loop->checks = spec->translated.span > 0;
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
	if (tester->probe != NULL)
		trial->before = gen_probe_run(tester->probe, &trial->probe_ticks);
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
	if (tester->probe != NULL)
		trial->after = gen_probe_run(tester->probe, &trial->probe_ticks);
	validate(loop);
out:
	free(loop->answers);
	free(loop);
	return result;
}

void gen_trial_free(struct gen_trial *trial)
{
	gen_streams_free(trial->streams, trial->stream_count);
	trial->streams = NULL;
	trial->stream_count = 0;
	free(trial->kept);
	trial->kept = NULL;
}
