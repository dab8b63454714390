// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/result.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include <rte_version.h>

#ifndef CONVOY_VERSION
#define CONVOY_VERSION "unknown"
#endif

// Sums over the streams of a path, or over all.
struct sums {
	uint64_t offered, sent, sent_bytes, refused, full_events, late_max;
	uint64_t received, received_bytes, lost, duplicated, reordered, stale, misrouted, corrupt;
	uint64_t first_tx, last_tx, first_rx, last_rx, jitter_sum, jitter_count;
	struct cv_histogram *latency, *bursts, *refused_bursts;
};

static void least(uint64_t *into, uint64_t value)
{
	*into = value < *into ? value : *into;
}

static void most(uint64_t *into, uint64_t value)
{
	*into = value > *into ? value : *into;
}

static void add(struct sums *sums, const struct gen_stream *stream)
{
	const struct gen_account *account = stream->account;

	sums->offered += stream->offered;
	sums->sent += stream->sent;
	sums->sent_bytes += stream->sent_bytes;
	sums->refused += stream->refused;
	sums->full_events += stream->full_events;
	most(&sums->late_max, stream->late_max);
	if (stream->sent > 0) {
		least(&sums->first_tx, stream->first_tx);
		most(&sums->last_tx, stream->last_tx);
	}
	sums->received += account->received;
	sums->received_bytes += account->received_bytes;
	sums->lost += account->lost;
	sums->duplicated += account->duplicated;
	sums->reordered += account->reordered;
	sums->stale += account->stale;
	sums->misrouted += account->misrouted;
	sums->corrupt += account->corrupt;
	if (account->received > 0) {
		least(&sums->first_rx, account->first_rx);
		most(&sums->last_rx, account->last_rx);
		sums->jitter_sum += account->jitter_sum;
		sums->jitter_count += account->received - 1;
	}
	if (sums->latency == NULL) {
		sums->latency =
			cv_histogram_create(account->latency->digits, account->latency->highest);
		sums->bursts =
			cv_histogram_create(account->bursts->digits, account->bursts->highest);
		sums->refused_bursts =
			cv_histogram_create(account->bursts->digits, account->bursts->highest);
	}
	if (sums->latency != NULL && sums->bursts != NULL && sums->refused_bursts != NULL) {
		cv_histogram_merge(sums->latency, account->latency);
		cv_histogram_merge(sums->bursts, account->bursts);
		cv_histogram_merge(sums->refused_bursts, stream->refused_bursts);
	}
}

static json_t *pairs(const struct cv_histogram *h)
{
	json_t *list = json_array();

	for (size_t i = 0; h != NULL && i < h->buckets; i++)
		if (h->counts[i] > 0)
			json_array_append_new(
				list, json_pack("[I, I]", (json_int_t)cv_histogram_lowest(h, i),
					      (json_int_t)h->counts[i]));
	return list;
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *latency(const struct sums *sums, const struct gen_clock *clock)
{
	const struct cv_histogram *h = sums->latency;

	if (h == NULL || h->count == 0)
		return json_null();
	return json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:i, s:o}", //
		"count", (json_int_t)h->count, "min_ns", (json_int_t)h->min, "mean_ns",
		(double)h->sum / (double)h->count, //
		"p50_ns", (json_int_t)cv_histogram_percentile(h, 50), //
		"p90_ns", (json_int_t)cv_histogram_percentile(h, 90), //
		"p99_ns", (json_int_t)cv_histogram_percentile(h, 99), //
		"p99_9_ns", (json_int_t)cv_histogram_percentile(h, 99.9), //
		"max_ns", (json_int_t)h->max, //
		"jitter_mean_abs_diff_ns",
		sums->jitter_count == 0 ? json_null()
					: json_real((double)sums->jitter_sum / clock->ticks_per_ns /
						    (double)sums->jitter_count),
		"significant_digits", (int)h->digits, //
		"histogram_ns", pairs(h));
}

// Packets per second over a window in ticks that holds `count` packets; null if it has no length.
static json_t *rate(uint64_t count, uint64_t ticks, const struct gen_clock *clock)
{
	if (ticks == 0)
		return json_null();
	return json_real((double)count * (double)clock->hz / (double)ticks);
}

static json_t *accounting(
	struct sums *sums, const struct gen_trial *trial, const struct gen_clock *clock)
{
	const uint64_t missing = sums->offered - sums->received;
	const uint64_t unsent = sums->offered - sums->sent - sums->refused;
	const uint64_t lost = missing - unsent;
	json_t *object = json_object();

	json_object_set_new(object, "offered_pkts", number(sums->offered));
	json_object_set_new(object, "sent_pkts", number(sums->sent));
	json_object_set_new(object, "refused_pkts", number(sums->refused));
	json_object_set_new(object, "unsent_pkts", number(unsent));
	json_object_set_new(object, "received_pkts", number(sums->received));
	json_object_set_new(object, "lost_pkts", number(lost));
	json_object_set_new(object, "loss_ratio",
		sums->offered == unsent
			? json_null()
			: json_real((double)lost / (double)(sums->offered - unsent)));
	json_object_set_new(object, "duplicated_pkts", number(sums->duplicated));
	json_object_set_new(object, "reordered_pkts", number(sums->reordered));
	json_object_set_new(object, "stale_pkts", number(sums->stale));
	json_object_set_new(object, "misrouted_pkts", number(sums->misrouted));
	json_object_set_new(object, "corrupt_pkts", number(sums->corrupt));
	json_object_set_new(object, "loss_bursts_pkts", pairs(sums->bursts));
	json_object_set_new(object, "refused_bursts_pkts", pairs(sums->refused_bursts));
	json_object_set_new(object, "sent_bytes", number(sums->sent_bytes));
	json_object_set_new(object, "received_bytes", number(sums->received_bytes));
	json_object_set_new(object, "mean_frame_bytes",
		sums->sent == 0
			? json_null()
			: json_real((double)sums->sent_bytes / (double)sums->sent + GEN_FCS_BYTES));
	json_object_set_new(object, "tx_full_events", number(sums->full_events));
	json_object_set_new(object, "late_max_ns", number(gen_ticks_to_ns(clock, sums->late_max)));
	json_object_set_new(object, "send_window_ns",
		sums->sent == 0 ? json_null()
				: number(gen_ticks_to_ns(clock, sums->last_tx - sums->first_tx)));
	json_object_set_new(object, "receive_window_ns",
		sums->received == 0
			? json_null()
			: number(gen_ticks_to_ns(clock, sums->last_rx - sums->first_rx)));
	json_object_set_new(object, "offered_pps", rate(sums->offered, trial->duration, clock));
	json_object_set_new(object, "sent_pps", rate(sums->sent, trial->duration, clock));
	json_object_set_new(object, "received_pps",
		sums->received < 2
			? json_null()
			: rate(sums->received - 1, sums->last_rx - sums->first_rx, clock));
	json_object_set_new(object, "latency", latency(sums, clock));
	free(sums->latency);
	free(sums->bursts);
	free(sums->refused_bursts);
	return object;
}

static json_t *all_paths(const struct gen_spec *spec, const struct gen_trial *trial,
	const struct gen_clock *clock, json_t **total)
{
	struct sums all = {.first_tx = UINT64_MAX, .first_rx = UINT64_MAX};
	json_t *list = json_array();
	uint32_t at = 0;

	for (uint32_t i = 0; i < spec->path_count; i++) {
		struct sums sums = {.first_tx = UINT64_MAX, .first_rx = UINT64_MAX};
		const struct gen_stream *first = &trial->streams[at];
		const uint32_t begin = at;

		// The streams of a path follow each other and count their queues up from 0.
		while (at < trial->stream_count && trial->streams[at].from == first->from &&
			trial->streams[at].to == first->to &&
			trial->streams[at].queue == at - begin) {
			add(&sums, &trial->streams[at]);
			add(&all, &trial->streams[at]);
			at++;
		}
		json_t *path = json_pack("{s:i, s:i, s:i}", "from", (int)spec->paths[i].from, "to",
			(int)spec->paths[i].to, "queues", (int)(at - begin));
		json_t *counts = accounting(&sums, trial, clock);
		json_object_update(path, counts);
		json_decref(counts);
		json_array_append_new(list, path);
	}
	*total = accounting(&all, trial, clock);
	return list;
}

static void sent_and_lost(const struct gen_trial *trial, uint64_t *sent, uint64_t *lost)
{
	*sent = *lost = 0;
	for (uint32_t i = 0; i < trial->stream_count; i++) {
		*sent += trial->streams[i].sent;
		*lost += trial->streams[i].account->lost;
	}
}

// The most packets that the tester itself may have lost: those that came while its receive queues
// were full. Null: these do not tell.
static json_t *own_losses(const struct gen_trial *trial)
{
	uint64_t sent, lost;

	if (!trial->sees_full)
		return json_null();
	sent_and_lost(trial, &sent, &lost);
	if (trial->send_end == 0)
		return json_integer(0);
	const double came = (double)sent * (double)trial->full_ticks / (double)trial->send_end;
	return number(came < (double)lost ? (uint64_t)(came + 0.5) : lost);
}

// Losses may be the tester's own: its receive queue was found full or, where nobody can tell, it
// paused for longer than that lasts. Null: they are not.
static json_t *suspicion(
	const struct gen_tester *tester, const struct gen_spec *spec, const struct gen_trial *trial)
{
	uint64_t sent, lost;

	sent_and_lost(trial, &sent, &lost);
	if (trial->sees_full) {
		if (lost == 0 || trial->full_ticks == 0)
			return json_null();
		const uint64_t ns = gen_ticks_to_ns(&tester->clock, trial->full_ticks);
		return json_sprintf(
			"a receive queue of the tester was found full, around which %llu "
			"us passed: what came then may have been lost by the tester",
			(unsigned long long)(ns / 1000));
	}
	for (uint32_t i = 0; i < spec->path_count; i++) {
		const struct gen_port *port = tester->ports[spec->paths[i].to];
		const double share = (double)sent / spec->path_count;
		const double missed = share * (double)trial->gap_max / (double)trial->send_end;

		if (lost > 0 && missed > (double)port->queue_frames * port->wire_count)
			return json_sprintf("the tester paused for %llu us, in which about %.0f "
					    "frames came: more than the %u that port %u holds, so "
					    "losses may be the tester's own",
				(unsigned long long)(gen_ticks_to_ns(
							     &tester->clock, trial->gap_max) /
						     1000),
				missed, port->queue_frames * port->wire_count, spec->paths[i].to);
	}
	return json_null();
}

static json_t *command_line(char *const *argv)
{
	json_t *list = json_array();

	for (; *argv != NULL; argv++) {
		json_t *word = json_string(*argv);
		json_array_append_new(list, word != NULL ? word : json_null());
	}
	return list;
}

static json_t *versions(void)
{
	struct utsname system;

	uname(&system);
	return json_pack("{s:s, s:s, s:s}", "convoy", CONVOY_VERSION, "dpdk", rte_version(),
		"kernel", system.release);
}

static json_t *ports(const struct gen_tester *tester)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < tester->port_count; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:i, s:i}", "name", tester->ports[i]->name, "kind",
				tester->ports[i]->kind, "queues", (int)tester->ports[i]->wire_count,
				"ring", (int)tester->ports[i]->queue_frames));
	return list;
}

// Null where the specification does not ask for any.
static json_t *convoys(const struct gen_spec *spec, const struct gen_convoy_counts *counts)
{
	json_t *refused = json_object(), *packets = json_array();

	for (int i = CV_CONVOY_NOT_A_CONVOY + 1; i < CV_CONVOY_REASONS; i++)
		if (counts->refused[i] > 0)
			json_object_set_new(
				refused, cv_convoy_reason_names[i], number(counts->refused[i]));
	for (int i = 1; i <= CV_CONVOY_PACKETS_MAX; i++)
		if (counts->packets[i] > 0)
			json_array_append_new(
				packets, json_pack("[i, I]", i, (json_int_t)counts->packets[i]));
	json_t *object = json_pack("{s:I, s:I, s:I, s:o, s:o}", //
		"sent_frames", (json_int_t)counts->sent, //
		"received_frames", (json_int_t)counts->received, //
		"received_pkts", (json_int_t)counts->received_pkts, //
		"received_by_packets", packets, "refused_frames", refused);
	if (spec->convoy_packets > 0)
		return object;
	json_decref(object);
	return json_null();
}

// The mean of two probes, or of the one that succeeded; null where none did.
static json_t *mean_ns(const struct gen_clock *clock, uint64_t before, uint64_t after)
{
	const int known = (before > 0) + (after > 0);

	return known > 0 ? json_real((double)(before + after) / known / clock->ticks_per_ns)
			 : json_null();
}

// Null where there is none.
static json_t *probe(const struct gen_tester *tester, const struct gen_context *context,
	const struct gen_trial *trial)
{
	const struct gen_probe_result *before = &trial->before, *after = &trial->after;
	const struct gen_clock *clock = &tester->clock;

	if (tester->probe == NULL)
		return json_null();
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:I}", "device_core", context->device_core,
		"before_ns", mean_ns(clock, before->round_trip, 0), "after_ns",
		mean_ns(clock, after->round_trip, 0), "tester_work_ns",
		mean_ns(clock, before->our_work, after->our_work), "device_work_ns",
		mean_ns(clock, before->device_work, after->device_work), "took_ns",
		(json_int_t)gen_ticks_to_ns(clock, trial->probe_ticks));
}

static json_t *answers(const struct gen_spec *spec, const struct gen_trial *trial)
{
	return spec->answers ? json_pack("{s:I, s:I}", "answered_pkts", (json_int_t)trial->answered,
				       "unanswered_pkts", (json_int_t)trial->unanswered)
			     : json_null();
}

static json_t *translated(const struct gen_spec *spec, const struct gen_translated *counts)
{
	return spec->translated.span > 0
		       ? json_pack("{s:I, s:{s:I, s:I, s:I, s:I}}", "checked_pkts",
				 (json_int_t)counts->checked, "wrong_pkts", "source",
				 (json_int_t)counts->source, "destination",
				 (json_int_t)counts->destination, "checksum",
				 (json_int_t)counts->checksum, "length", (json_int_t)counts->length)
		       : json_null();
}

// Null where the specification does not ask for any.
static json_t *kept(const struct gen_kept *kept)
{
	json_t *list = json_array();

	if (kept == NULL) {
		json_decref(list);
		return json_null();
	}
	for (uint32_t i = 0; i < kept->count; i++) {
		char text[2 * GEN_KEPT_BYTES + 1];

		json_array_append_new(list, json_string(gen_kept_hex(kept, i, text)));
	}
	return list;
}

json_t *gen_result(const struct gen_tester *tester, const struct gen_context *context,
	const struct gen_spec *spec, const struct gen_trial *trial)
{
	const struct gen_clock *clock = &tester->clock;
	json_t *total = NULL;
	json_t *paths = all_paths(spec, trial, clock, &total);
	json_t *result = json_pack("{s:s, s:s?, s:b, s:s?, s:s?}", "schema", "convoy.trial/2", "id",
		spec->id, "ok", trial->ok, "reason_code", trial->ok ? NULL : trial->reason_code,
		"reason", trial->ok ? NULL : trial->reason);

	json_object_set_new(result, "suspect", suspicion(tester, spec, trial));
	json_object_set_new(result, "suspect_pkts", own_losses(trial));
	json_object_set(result, "spec", spec->json);
	json_object_set_new(result, "intended_pps",
		spec->rate_pps > 0 && !(spec->capture != NULL && spec->capture_timing)
			? json_real(spec->rate_pps * spec->path_count)
			: json_null());
	json_t *baseline = json_object_get(context->self_test, "baseline_pps");
	json_object_set(result, "baseline_pps", baseline != NULL ? baseline : json_null());
	json_object_set_new(result, "total", total);
	json_object_set_new(result, "paths", paths);
	json_object_set_new(result, "convoys", convoys(spec, &trial->convoys));
	json_object_set_new(result, "answers", answers(spec, trial));
	json_object_set_new(result, "translated", translated(spec, &trial->translated));
	json_object_set_new(result, "kept", kept(trial->kept));
	json_object_set_new(result, "foreign_pkts", number(trial->foreign));
	json_object_set_new(result, "earlier_trial_pkts", number(trial->earlier));
	json_object_set_new(result, "settled_frames", number(trial->settled));
	json_object_set_new(result, "duration_ns", number(gen_ticks_to_ns(clock, trial->duration)));
	json_object_set_new(
		result, "drain_ns", number(gen_ticks_to_ns(clock, trial->end - trial->send_end)));
	json_object_set_new(result, "tester",
		json_pack("{s:f, s:I, s:i, s:I, s:I, s:I, s:o, s:o}", //
			"busy_share",
			trial->end > 0 ? (double)trial->busy_ticks / (double)trial->end : 0.0,
			"tsc_hz", (json_int_t)clock->hz, "core", (int)context->core, "loops",
			(json_int_t)trial->loops, "ring_errors", (json_int_t)trial->ring_errors,
			"kicks", (json_int_t)trial->kicks, "lost_time",
			json_pack("{s:I, s:I, s:I, s:o, s:o}", "longest_gap_ns",
				(json_int_t)gen_ticks_to_ns(clock, trial->gap_max),
				"gaps_over_10us", (json_int_t)trial->gaps, "gaps_over_10us_ns",
				(json_int_t)gen_ticks_to_ns(clock, trial->gap_ticks),
				"descheduled_ns",
				trial->descheduled_ns == UINT64_MAX ? json_null()
								    : number(trial->descheduled_ns),
				"receive_full_ns",
				trial->sees_full ? number(gen_ticks_to_ns(clock, trial->full_ticks))
						 : json_null()),
			"ports", ports(tester)));
	json_object_set_new(result, "probe", probe(tester, context, trial));
	json_object_set_new(result, "versions", versions());
	json_object_set_new(result, "command_line", command_line(context->argv));
	json_object_set_new(result, "finished_unix_s", number((uint64_t)time(NULL)));
	return result;
}
