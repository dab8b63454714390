// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets on their way: each has a track, which knows where its bytes are.
#include <rte_cycles.h>

#include "chain/trace_state.h"
#include "convoy/next_hop.h"

static unsigned chain_of(const struct cv_trace *trace, const struct cv_path *path)
{
	for (unsigned i = 0; i < trace->config.chains_count; i++)
		if (trace->config.chains[i].path == path)
			return trace->config.chains[i].chain;
	return UINT_MAX;
}

// Which of a record's two packets.
enum { AS_IT_CAME, AS_IT_LEFT };

static void copy_bytes(const struct cv_trace *trace, struct cv_trace_record *record,
	const struct cv_view *view, unsigned which)
{
	const uint32_t len = cv_view_packet_len(view);
	const uint16_t snap = (uint16_t)RTE_MIN(len, (uint32_t)trace->config.snap);

	record->len[which] = (uint16_t)len;
	record->snap[which] = snap;
	memcpy(record->bytes + which * trace->config.snap, cv_view_packet(view), snap);
}

// How many packets are passed over until the next one: by chance, so that no pattern of traffic is
// always met or missed; one of sample in the mean.
static uint64_t next_skip(struct cv_trace *trace)
{
	const uint64_t sample = trace->config.sample;

	if (sample <= 1)
		return 0;
	trace->random ^= trace->random << 13;
	trace->random ^= trace->random >> 7;
	trace->random ^= trace->random << 17;
	return trace->random % (2 * sample - 1);
}

static struct cv_track *new_track(struct cv_trace *trace)
{
	if (trace->taken < CV_TRACE_TRACKS_MAX)
		return cv_trace_track(trace, trace->taken++);
	cv_count(&trace->lost, 1);
	return NULL;
}

// A packet begins its way, if the filter may take it. NULL: it is not traced.
static struct cv_track *begin_one(struct cv_trace *trace, const struct cv_path *path, unsigned step,
	unsigned chain, const struct cv_view *view, enum cv_trace_origin origin)
{
	const struct cv_filter *filter = trace->config.filter;
	struct cv_track *track;
	uint32_t terms;

	if (trace->skip > 0) {
		trace->skip--;
		return NULL;
	}
	trace->skip = next_skip(trace);
	terms = cv_filter_test(filter, view, chain);
	if (!cv_filter_may_take(filter, terms))
		return NULL;
	track = new_track(trace);
	if (track == NULL)
		return NULL;
	track->state = CV_TRACK_ON;
	track->data = cv_view_packet(view);
	track->frame = NULL;
	track->rest = 0;
	track->record = (struct cv_trace_record){.begin = rte_rdtsc(),
		.path = path,
		.first = (uint16_t)step,
		.origin = (uint8_t)origin,
		.in = view->in,
		.out = view->out,
		.next_hop = CV_NEXT_HOP_NONE,
		.terms = terms};
	copy_bytes(trace, &track->record, view, AS_IT_CAME);
	trace->on++;
	return track;
}

void cv_trace_begin(const struct cv_path *path, unsigned step, const struct cv_burst *burst,
	enum cv_trace_origin origin)
{
	struct cv_trace *trace = cv_trace_here;
	const unsigned chain = chain_of(trace, path);

	trace->running = true;
	trace->first = trace->cursor = trace->taken;
	if (trace->skip >= burst->n) {
		trace->skip -= burst->n;
		return;
	}
	for (unsigned i = 0; i < burst->n; i++)
		begin_one(trace, path, step, chain, &burst->views[i], origin);
}

bool cv_trace_follows(void)
{
	return cv_trace_here->on > 0;
}

void cv_trace_end(void)
{
	struct cv_trace *trace = cv_trace_here;

	// What did neither leave nor end was lost on the way, which happens for want of a buffer alone.
	for (unsigned i = trace->first; trace->on > 0 && i < trace->taken; i++) {
		struct cv_track *track = cv_trace_track(trace, i);

		if (track->state == CV_TRACK_ON)
			cv_trace_finish(trace, track, CV_TRACE_DROPPED, CV_DROP_NO_BUFFER);
	}
	while (trace->taken > 0 && cv_trace_track(trace, trace->taken - 1)->state == CV_TRACK_FREE)
		trace->taken--;
	trace->running = false;
}

// The track of a packet that is on its way. They are asked for in the order of their burst.
static struct cv_track *find_on(struct cv_trace *trace, const uint8_t *data)
{
	const unsigned count = trace->taken - trace->first;

	for (unsigned i = 0; trace->on > 0 && i < count; i++) {
		const unsigned at = trace->cursor + i < trace->taken ? trace->cursor + i
								     : trace->cursor + i - count;
		struct cv_track *track = cv_trace_track(trace, at);

		if (track->state != CV_TRACK_ON || track->data != data)
			continue;
		trace->cursor = at + 1 < trace->taken ? at + 1 : trace->first;
		return track;
	}
	return NULL;
}

// The track of a packet that left by itself, the newest one: its buffer may have been another's before.
static struct cv_track *find_left(const struct cv_trace *trace, const uint8_t *data)
{
	struct cv_track *newest = NULL;

	for (unsigned i = 0; i < trace->taken; i++) {
		struct cv_track *track = cv_trace_track(trace, i);

		if (track->state == CV_TRACK_LEFT && track->frame == NULL && track->data == data &&
			(newest == NULL || track->placed > newest->placed))
			newest = track;
	}
	return newest;
}

void cv_trace_before(const struct cv_path *path, unsigned step, const struct cv_nf_worker *worker,
	const struct cv_burst *burst)
{
	struct cv_trace *trace = cv_trace_here;
	const struct cv_step *of = &path->steps[step];

	trace->path = path;
	trace->step = step;
	trace->views = burst->views;
	memset(trace->position, CV_TRACE_NO_POSITION, burst->n);
	for (unsigned i = 0; i < burst->n; i++) {
		trace->here[i] = find_on(trace, cv_view_packet(&burst->views[i]));
		if (trace->here[i] == NULL)
			continue;
		trace->because[i] = (struct cv_nf_because){.row = 0};
		trace->stated_by[i] = NULL;
		if (of->explain != NULL)
			of->explain(of->instance, worker, &burst->views[i], &trace->because[i]);
	}
}

static void add_step(const struct cv_trace *trace, struct cv_trace_record *record,
	const struct cv_trace_step *step)
{
	if (record->steps_count == CV_TRACE_STEPS_MAX)
		record->steps_more++;
	else
		record->steps_count++;
	record->steps[record->steps_count - 1] = *step;
}

// A step gave a packet its verdict.
static void take_verdict(struct cv_trace *trace, struct cv_track *track, const struct cv_view *view,
	const struct cv_trace_step *step)
{
	struct cv_trace_record *record = &track->record;

	add_step(trace, record, step);
	record->out = view->out;
	track->data = cv_view_packet(view);
	if (step->verdict == CV_NEXT || step->verdict >= CV_OUTPUT(0))
		return;
	copy_bytes(trace, record, view, AS_IT_LEFT);
	if (step->verdict == CV_HELD)
		cv_trace_finish(trace, track, CV_TRACE_HELD, 0);
	else if (step->verdict == CV_ABSORBED ||
		 (step->position != CV_TRACE_NO_POSITION && step->decision == CV_ABSORBED))
		cv_trace_finish(trace, track, CV_TRACE_ABSORBED, 0);
	else
		cv_trace_finish(trace, track, CV_TRACE_FUNCTION_DROPPED, 0);
}

void cv_trace_after(const struct cv_burst *burst, const uint8_t *verdicts, uint64_t cycles)
{
	struct cv_trace *trace = cv_trace_here;
	const uint32_t each = (uint32_t)(cycles / burst->n);

	for (unsigned i = 0; i < burst->n; i++) {
		const struct cv_trace_step step = {.path = trace->path,
			.step = (uint16_t)trace->step,
			.bytes = (uint16_t)cv_view_packet_len(&burst->views[i]),
			.cycles = each,
			.verdict = verdicts[i],
			.position = trace->position[i],
			.decision = trace->decision[i],
			.because = trace->because[i],
			.stated_by = trace->stated_by[i],
			.stated = trace->stated[i]};

		if (trace->here[i] != NULL)
			take_verdict(trace, trace->here[i], &burst->views[i], &step);
	}
}

void cv_trace_because(
	const struct cv_view *view, const void *instance, const struct cv_nf_because *because)
{
	struct cv_trace *trace = cv_trace_here;
	const size_t at = (size_t)(view - trace->views);

	if (trace->views == NULL || at >= RTE_DIM(trace->stated))
		return;
	trace->stated_by[at] = instance;
	trace->stated[at] = *because;
}

void cv_trace_decided(const struct cv_view *view, unsigned position, uint8_t verdict)
{
	struct cv_trace *trace = cv_trace_here;
	const size_t at = (size_t)(view - trace->views);

	if (trace->views == NULL || at >= RTE_DIM(trace->position))
		return;
	trace->position[at] = (uint8_t)position;
	trace->decision[at] = verdict;
}

static bool are_same(const struct cv_view *a, const struct cv_view *b)
{
	return cv_view_packet(a) == cv_view_packet(b) ||
	       (cv_view_packet_len(a) == cv_view_packet_len(b) &&
		       memcmp(cv_view_packet(a), cv_view_packet(b), cv_view_packet_len(a)) == 0);
}

void cv_trace_picked(const struct cv_burst *from, const uint8_t *classes, uint8_t class,
	const struct cv_burst *to)
{
	struct cv_trace *trace = cv_trace_here;
	unsigned at = 0;

	// In their order; what there was no buffer for is missing.
	for (unsigned i = 0; i < from->n && at < to->n; i++) {
		struct cv_track *track;

		if (classes[i] != class || !are_same(&from->views[i], &to->views[at]))
			continue;
		track = find_on(trace, cv_view_packet(&from->views[i]));
		if (track != NULL)
			track->data = cv_view_packet(&to->views[at]);
		at++;
	}
}

void cv_trace_leave(const struct cv_path *path, const struct cv_burst *burst)
{
	struct cv_trace *trace = cv_trace_here;
	const bool ring = path != NULL && path->sink != NULL;

	for (unsigned i = 0; trace->on > 0 && i < burst->n; i++) {
		const struct cv_view *view = &burst->views[i];
		struct cv_track *track = find_on(trace, cv_view_packet(view));

		if (track == NULL)
			continue;
		copy_bytes(trace, &track->record, view, AS_IT_LEFT);
		track->record.out = view->out;
		track->record.end = ring ? CV_TRACE_RING : CV_TRACE_SENT;
		track->state = CV_TRACK_LEFT;
		track->placed = ++trace->placements;
		trace->on--;
	}
}

// A packet that goes no further, and was not on its way before.
static void drop_one(struct cv_trace *trace, const struct cv_view *view, enum cv_drop_reason why)
{
	struct cv_track *track = begin_one(trace, NULL, 0, UINT_MAX, view, CV_TRACE_RECEIVED);

	if (track == NULL)
		return;
	copy_bytes(trace, &track->record, view, AS_IT_LEFT);
	cv_trace_finish(trace, track, CV_TRACE_DROPPED, why);
}

void cv_trace_dropped(const struct cv_view *views, unsigned n, enum cv_drop_reason why)
{
	struct cv_trace *trace = cv_trace_here;

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *data = cv_view_packet(&views[i]);
		struct cv_track *track = trace->running ? find_left(trace, data) : NULL;

		if (track != NULL)
			cv_trace_finish(trace, track, CV_TRACE_DROPPED, why);
		else if (!trace->running)
			drop_one(trace, &views[i], why);
	}
}

void cv_trace_refused(const struct rte_mbuf *frame, uint8_t in, enum cv_drop_reason why)
{
	struct cv_view view = {.in = in, .out = in};

	cv_view_set(&view, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
	drop_one(cv_trace_here, &view, why);
}

// A frame that was not sent: a convoy, or one packet. What had the same buffer before was sent.
static void drop_frame(struct cv_trace *trace, const struct rte_mbuf *frame)
{
	struct cv_track *single = find_left(trace, rte_pktmbuf_mtod(frame, const uint8_t *));
	const uint64_t placed = single == NULL ? 0 : single->placed;
	bool convoy = false;

	for (unsigned i = 0; i < trace->taken; i++) {
		struct cv_track *track = cv_trace_track(trace, i);

		if (track->state != CV_TRACK_LEFT || track->frame != frame ||
			track->placed < placed)
			continue;
		cv_trace_finish(trace, track, CV_TRACE_DROPPED, CV_DROP_TX_FULL);
		convoy = true;
	}
	if (!convoy && single != NULL)
		cv_trace_finish(trace, single, CV_TRACE_DROPPED, CV_DROP_TX_FULL);
}

void cv_trace_unsent(struct rte_mbuf *const *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		drop_frame(cv_trace_here, frames[i]);
}

void cv_trace_held_dropped(
	const struct cv_path *path, unsigned step, const struct cv_view *view, unsigned reason)
{
	struct cv_trace *trace = cv_trace_here;
	struct cv_track *track =
		begin_one(trace, path, step, chain_of(trace, path), view, CV_TRACE_FUNCTION);
	const struct cv_trace_step one = {.path = path,
		.step = (uint16_t)step,
		.bytes = (uint16_t)cv_view_packet_len(view),
		.verdict = CV_DROP(reason),
		.position = CV_TRACE_NO_POSITION};

	if (track != NULL)
		take_verdict(trace, track, view, &one);
}

// How many next hops a packet's flow chose among; 0: there was nothing to choose.
static uint16_t choice_of(const struct cv_next_hop_table *table, const struct cv_view *view)
{
	const uint32_t key = cv_next_hop_key_of(view);
	const struct cv_spread *spread;
	uint16_t next_hop;

	if (table == NULL)
		return 0;
	cv_next_hop_find(table, &key, &next_hop, 1);
	spread = cv_next_hop_spread_at(table, next_hop);
	return spread != NULL ? spread->group.members_count : 0;
}

void cv_trace_next_hops(const struct cv_next_hop_table *table, const struct cv_burst *burst,
	const uint16_t *next_hops, uint16_t all)
{
	const struct cv_trace *trace = cv_trace_here;

	for (unsigned i = 0; i < burst->n; i++) {
		const uint8_t *data = cv_view_packet(&burst->views[i]);
		struct cv_track *track = find_left(trace, data);

		if (track == NULL)
			continue;
		track->record.next_hop = next_hops != NULL ? next_hops[i] : all;
		track->record.next_hop_of = choice_of(table, &burst->views[i]);
	}
}

void cv_trace_moved(const struct cv_view *from, const uint8_t *to)
{
	struct cv_trace *trace = cv_trace_here;
	struct cv_track *track = find_left(trace, cv_view_packet(from));

	if (track == NULL)
		return;
	track->data = to;
	track->placed = ++trace->placements;
}

void cv_trace_cut(const struct cv_view *packet, const struct cv_view *rest)
{
	struct cv_track *track = find_left(cv_trace_here, cv_view_packet(packet));

	if (track == NULL)
		return;
	track->data = rest->data;
	track->rest = rest->len;
}

// Whether a packet that lies in a convoy is a track's.
static bool is_of(const struct cv_trace *trace, const struct cv_track *track, uint16_t next_hop,
	const uint8_t *packet, unsigned len)
{
	const struct cv_trace_record *record = &track->record;

	if (track->rest > 0)
		return track->state == CV_TRACK_LEFT && track->frame == NULL &&
		       track->data == packet && track->rest == len;
	return track->state == CV_TRACK_LEFT && track->frame == NULL &&
	       record->next_hop == next_hop && record->len[AS_IT_LEFT] == len &&
	       (track->data == packet || memcmp(record->bytes + trace->config.snap, packet,
						 record->snap[AS_IT_LEFT]) == 0);
}

void cv_trace_convoy(const struct rte_mbuf *frame, uint16_t next_hop, const uint8_t *begin,
	const uint8_t *end, unsigned count)
{
	static const struct rte_mbuf sent; // of convoys that had the buffer before
	struct cv_trace *trace = cv_trace_here;
	const uint64_t placed = ++trace->placements;

	for (unsigned i = 0; i < trace->taken; i++)
		if (cv_trace_track(trace, i)->frame == frame)
			cv_trace_track(trace, i)->frame = &sent;
	for (unsigned len; begin + CV_CONVOY_PREFIX_LEN < end;
		begin += CV_CONVOY_PREFIX_LEN + len) {
		// The length of a single packet is not written before it.
		len = count == 1 ? (unsigned)(end - begin) - CV_CONVOY_PREFIX_LEN
				 : rte_be_to_cpu_16(cv_load_be16(begin));
		for (unsigned i = 0; i < trace->taken; i++) {
			struct cv_track *track = cv_trace_track(trace, i);

			if (!is_of(trace, track, next_hop, begin + CV_CONVOY_PREFIX_LEN, len))
				continue;
			track->frame = frame;
			track->placed = placed;
			track->record.convoy = (uint8_t)count;
			break;
		}
	}
}

bool cv_trace_has_packets(void)
{
	return cv_trace_here->taken > 0;
}

void cv_trace_flush(void)
{
	struct cv_trace *trace = cv_trace_here;

	for (unsigned i = 0; i < trace->taken; i++) {
		struct cv_track *track = cv_trace_track(trace, i);

		if (track->state != CV_TRACK_FREE)
			cv_trace_finish(trace, track, track->record.end, 0);
	}
	trace->taken = trace->on = 0;
}
