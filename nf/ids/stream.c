// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/stream.h"

#include <string.h>

#include "nf/ids/ids.h"

// What a segment is searched with.
struct feed {
	struct cv_ids *ids;
	struct cv_ids_lane *lane;
	const struct cv_ids_packet *packet;
	struct cv_ids_stream *stream;
};

// Puts bytes behind the window's, of which the last stay.
static void append(struct feed *feed, const uint8_t *data, uint32_t len)
{
	struct cv_ids_stream *stream = feed->stream;
	const uint32_t window = feed->ids->window;

	if (stream->filled + len > 2 * window) {
		const uint32_t keep = stream->filled < window ? stream->filled : window;

		memmove(stream->window, stream->window + stream->filled - keep, keep);
		stream->filled = keep;
	}
	memcpy(stream->window + stream->filled, data, len);
	stream->filled += len;
}

// Once for each segment, however often it matches.
static void add_match(struct cv_ids_lane *lane, uint32_t rule)
{
	if (!cv_ids_step(lane, CV_IDS_MATCH_STEPS + lane->matched_count / 4))
		return;
	for (uint32_t i = 0; i < lane->matched_count; i++)
		if (lane->matched[i] == rule)
			return;
	lane->matched[lane->matched_count++] = rule;
}

// Whether there is anything left to know about a rule of which all patterns but perhaps not all
// contents were found. Puts it into matched if it matches. Without steps it stays as it is.
static bool goes_on(struct feed *feed, struct cv_ids_pending *pending)
{
	const struct cv_ids_rule *rule = &feed->ids->rules.rule[pending->rule];
	const struct cv_ids_stream *stream = feed->stream;
	const bool is_near = stream->position - pending->since <= feed->ids->window;
	bool is;

	if (!is_near && rule->parts == 1)
		return false;
	if (pending->mask != rule->parts || pending->done || !is_near)
		return true;
	if (!cv_ids_step(feed->lane, rule->header_steps))
		return true;
	if (!cv_ids_header_fits(rule, feed->packet))
		return false;
	if (rule->exact) {
		cv_ids_count(feed->lane, CV_IDS_COUNT_CANDIDATES, 1);
		add_match(feed->lane, pending->rule);
		return false;
	}
	is = cv_ids_is_confirmed(feed->lane, rule, stream->window, stream->filled,
		stream->position - stream->filled);
	if (is) {
		cv_ids_count(feed->lane, CV_IDS_COUNT_CANDIDATES, 1);
		cv_ids_count(feed->lane, CV_IDS_COUNT_CONFIRMED, 1);
		add_match(feed->lane, pending->rule);
		pending->done = true;
	}
	return true;
}

// Keeps what is not yet over. The oldest goes where there is no room.
static void keep(struct feed *feed, const struct cv_ids_pending *pending)
{
	struct cv_ids_pending *all = feed->stream->pending, *to = &all[0];

	for (unsigned i = 0; i < CV_IDS_PENDING_MAX; i++) {
		if (all[i].mask == 0) {
			to = &all[i];
			break;
		}
		if (all[i].since < to->since)
			to = &all[i];
	}
	if (to->mask != 0 && !to->done)
		cv_ids_count(feed->lane, CV_IDS_COUNT_FORGOTTEN, 1);
	*to = *pending;
}

// Rules that patterns were found of, in these bytes or before.
static void consider(struct feed *feed)
{
	struct cv_ids_lane *lane = feed->lane;

	for (unsigned i = 0; i < CV_IDS_PENDING_MAX; i++) {
		struct cv_ids_pending *pending = &feed->stream->pending[i];

		if (pending->mask == 0)
			continue;
		if (lane->mask[pending->rule] != 0) {
			pending->mask |= lane->mask[pending->rule];
			pending->since = feed->stream->position;
			lane->mask[pending->rule] = 0;
		}
		if (!goes_on(feed, pending))
			pending->mask = 0;
	}
	for (uint32_t i = 0; i < lane->touched_count; i++) {
		struct cv_ids_pending pending = {.rule = lane->touched[i],
			.mask = lane->mask[lane->touched[i]],
			.since = feed->stream->position};

		lane->mask[pending.rule] = 0;
		if (pending.mask != 0 && goes_on(feed, &pending))
			keep(feed, &pending);
	}
	lane->touched_count = 0;
}

// Searches the stream's next bytes.
static void search(struct feed *feed, const uint8_t *data, uint32_t len)
{
	struct cv_ids_stream *stream = feed->stream;

	stream->next += len;
	if (feed->ids->depth != 0 && stream->position >= feed->ids->depth) {
		cv_ids_count(feed->lane, CV_IDS_COUNT_BYPASSED_BYTES, len);
		stream->filled = 0; // the window ends at next, and these are not kept
		return;
	}
	while (len > 0 && !feed->lane->over) {
		const uint32_t now = len < feed->ids->window ? len : feed->ids->window;

		append(feed, data, now);
		stream->position += now;
		feed->lane->database = &feed->ids->streams;
		hs_scan_stream(stream->hs, (const char *)data, now, 0, feed->lane->scratch,
			cv_ids_found, feed->lane);
		consider(feed);
		data += now;
		len -= now;
	}
}

// Whether bytes that came before, as far as they are kept, are the same. ago: how many bytes before the
// next ones they begin.
static bool agrees(
	const struct cv_ids_stream *stream, uint32_t ago, const uint8_t *data, uint32_t len)
{
	const uint32_t skip = ago > stream->filled ? ago - stream->filled : 0;

	return skip >= len ||
	       memcmp(stream->window + stream->filled - (ago - skip), data + skip, len - skip) == 0;
}

// The same of segments that wait, whose sequence numbers are ahead.
static bool agrees_with_waiting(const struct cv_ids_streams *streams,
	const struct cv_ids_stream *stream, uint32_t seq, const uint8_t *data, uint32_t len)
{
	for (unsigned i = 0; i < stream->waiting_count; i++) {
		const struct cv_ids_waiting *other = &stream->waiting[i];
		const uint8_t *bytes =
			streams->buffers + (size_t)other->buffer * CV_IDS_SEGMENT_MAX;
		const int64_t from = (int32_t)(other->seq - seq); // of data
		const int64_t first = from > 0 ? from : 0;
		const int64_t last = from + other->len < len ? from + other->len : len;

		if (first < last &&
			memcmp(data + first, bytes + (first - from), (size_t)(last - first)) != 0)
			return false;
	}
	return true;
}

// Copies a segment that came too early. What waits already is not copied again: what is left of it goes
// to the front, between or behind. False: there is no room for it.
static bool wait_for_others(struct cv_ids_streams *streams, struct cv_ids_stream *stream,
	uint32_t seq, const uint8_t *data, uint32_t len)
{
	unsigned at = 0;

	while (len > 0) {
		uint32_t now = len;
		struct cv_ids_waiting *to;

		// Behind those that end before it.
		while (at < stream->waiting_count &&
			(int32_t)(stream->waiting[at].seq + stream->waiting[at].len - seq) <= 0)
			at++;
		if (at < stream->waiting_count) {
			const int32_t gap = (int32_t)(stream->waiting[at].seq - seq);

			if (gap <= 0) { // its beginning waits already
				const uint32_t known = (uint32_t)(stream->waiting[at].len + gap);

				now = known < len ? known : len;
				seq += now, data += now, len -= now;
				continue;
			}
			now = (uint32_t)gap < len ? (uint32_t)gap : len;
		}
		now = now < CV_IDS_SEGMENT_MAX ? now : CV_IDS_SEGMENT_MAX;
		if (stream->waiting_count == CV_IDS_WAITING_MAX || streams->free_buffers == 0)
			return false;
		to = &stream->waiting[at];
		memmove(to + 1, to, (stream->waiting_count - at) * sizeof(*to));
		*to = (struct cv_ids_waiting){.seq = seq,
			.len = (uint16_t)now,
			.buffer = streams->free_buffer[--streams->free_buffers]};
		stream->waiting_count++;
		memcpy(streams->buffers + (size_t)to->buffer * CV_IDS_SEGMENT_MAX, data, now);
		seq += now, data += now, len -= now;
	}
	return true;
}

// Searches what waits and is next.
static void go_on(struct feed *feed, struct cv_ids_streams *streams)
{
	struct cv_ids_stream *stream = feed->stream;

	while (stream->waiting_count > 0 && !feed->lane->over) {
		const struct cv_ids_waiting first = stream->waiting[0];
		const int32_t old = (int32_t)(stream->next - first.seq);

		if (old < 0)
			return;
		if (old < first.len)
			search(feed,
				streams->buffers + (size_t)first.buffer * CV_IDS_SEGMENT_MAX + old,
				first.len - (uint32_t)old);
		streams->free_buffer[streams->free_buffers++] = first.buffer;
		stream->waiting_count--;
		memmove(stream->waiting, stream->waiting + 1,
			stream->waiting_count * sizeof(stream->waiting[0]));
	}
}

enum cv_ids_segment cv_ids_stream_segment(struct cv_ids *ids, struct cv_ids_lane *lane,
	struct cv_ids_stream *stream, const struct cv_ids_packet *packet, uint32_t seq)
{
	struct feed feed = {.ids = ids, .lane = lane, .packet = packet, .stream = stream};
	const uint8_t *data = packet->payload;
	uint32_t len = packet->len;
	int32_t ahead;

	if (!stream->begun)
		cv_ids_stream_begin(stream, seq);
	ahead = (int32_t)(seq - stream->next);
	if (ahead > CV_IDS_REACH || ahead < -CV_IDS_REACH)
		return CV_IDS_SEGMENT_ELSEWHERE;
	cv_ids_count(lane, CV_IDS_COUNT_SEGMENTS, 1);
	if (ahead < 0) {
		const uint32_t old = (uint32_t)-ahead < len ? (uint32_t)-ahead : len;

		// A probe whether the other end is alive may have one byte of anything.
		if (!(len == 1 && ahead == -1) && !agrees(stream, (uint32_t)-ahead, data, old))
			return CV_IDS_SEGMENT_CONTRADICTS;
		data += old, len -= old, seq += old;
	}
	if (len == 0)
		return CV_IDS_SEGMENT_TAKEN;
	if (!agrees_with_waiting(&lane->streams, stream, seq, data, len))
		return CV_IDS_SEGMENT_CONTRADICTS;
	if (ahead > 0) {
		cv_ids_count(lane, CV_IDS_COUNT_EARLY, 1);
		return wait_for_others(&lane->streams, stream, seq, data, len)
			       ? CV_IDS_SEGMENT_TAKEN
			       : CV_IDS_SEGMENT_NO_ROOM;
	}
	search(&feed, data, len);
	go_on(&feed, &lane->streams);
	return CV_IDS_SEGMENT_TAKEN;
}
