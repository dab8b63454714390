// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ids behind the flow path's look-up: what a flow's packets have in common, and TCP as streams.
#include "flow/flow.h"

#include <string.h>

#include "nf/ids/ids.h"
#include "packet/checksum.h"
#include "packet/tuple.h"

#define SYN 2
#define RST 4
#define ACK 16

// States of a flow.
#define REPLIED 1
#define ESTABLISHED 2
#define BLOCKED 4 // a drop rule has matched its stream
#define PASSED 8 // a pass rule has
#define OVER_BUDGET 16 // blocked: a segment had too few steps

struct slot {
	uint32_t number; // of the instance whose connection it has
	uint32_t connection; // from 1; 0: none
	uint8_t state;
};

static bool is_stateful(const void *instance)
{
	return ((const struct cv_ids *)instance)->stateful;
}

static enum cv_flow_answers answers(const void *instance)
{
	return CV_FLOW_ANSWERS_MEET;
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *of)
{
	struct cv_ids *ids = instance;
	struct cv_ids_lane *lane = &ids->lane[worker->index];
	struct slot *slot = of;

	actions->follow = true;
	if (slot->number == ids->number)
		return CV_NEXT;
	slot->number = ids->number;
	slot->state &= REPLIED | ESTABLISHED;
	slot->connection = 0;
	if (actions->tuple.proto == IPPROTO_TCP && ids->streams.hs != NULL) {
		slot->connection = cv_ids_streams_take(&lane->streams);
		cv_ids_count(lane,
			slot->connection != 0 ? CV_IDS_COUNT_STREAMS : CV_IDS_COUNT_STREAMS_REFUSED,
			1);
	}
	return CV_NEXT;
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *of)
{
	struct cv_ids *ids = instance;
	const struct slot *slot = of;

	// Another instance's connections went with it.
	if (slot->number == ids->number && slot->connection != 0)
		cv_ids_streams_give(&ids->lane[worker->index].streams, slot->connection);
}

static uint8_t learn_state(struct slot *slot, const struct cv_flow_followed *packet)
{
	if (packet->direction == CV_FLOW_REPLY)
		slot->state |= REPLIED;
	if ((slot->state & REPLIED) && !(packet->tcp_flags & SYN))
		slot->state |= ESTABLISHED;
	return (packet->direction == CV_FLOW_FORWARD ? CV_IDS_TO_SERVER : CV_IDS_TO_CLIENT) |
	       (slot->state & ESTABLISHED ? CV_IDS_ESTABLISHED : 0);
}

// Whether a segment's checksum is right: its receiver throws it away if not.
static bool is_whole(const struct cv_ids_packet *packet, const uint8_t *l4)
{
	const uint32_t len = (uint32_t)(packet->payload + packet->len - l4);
	uint64_t sum = cv_checksum_add(0, packet->src, packet->v6 ? 32 : 8); // and dst

	sum += rte_cpu_to_be_16(packet->l4);
	sum += rte_cpu_to_be_16((uint16_t)len);
	return cv_checksum_fold(cv_checksum_add(sum, l4, len)) == 0xffff;
}

// What a SYN's payload is to the stream of its direction.
enum opening { OPENS, REPEATS, IS_APART, CONTRADICTS };

static void begin_anew(struct cv_ids_streams *streams, struct cv_ids_stream *stream, uint32_t first)
{
	cv_ids_stream_clear(streams, stream);
	cv_ids_stream_begin(stream, first);
}

// A SYN, which asks for a connection. One amid a connection is not heeded by its receiver, one that
// comes when the connection is over is, and only the answer tells: so streams stay as they are.
static enum opening ask(struct cv_ids_stream *own, uint32_t seq, uint32_t len)
{
	own->syn_waits = true;
	if (!own->begun || (seq == own->first && own->next == own->opening))
		return OPENS;
	return len > 0 ? CONTRADICTS : IS_APART; // its sender sends the payload again without it
}

// A SYN that answers one: both streams begin here, as its sender has the numbers. The other end does not
// get an answer that nobody asked for: it could go on with a connection whose beginning is not known.
static enum opening answer(struct cv_ids_streams *streams, struct cv_ids_stream *own,
	struct cv_ids_stream *other, uint32_t seq, uint32_t ack)
{
	const bool fits = other->begun && (ack == other->first || ack == other->opening);

	if (fits && own->begun && seq == own->first) {
		other->syn_waits = false;
		return REPEATS;
	}
	if (own->begun && other->begun && !other->syn_waits)
		return CONTRADICTS;
	if (!fits || other->next != other->opening)
		begin_anew(streams, other, ack);
	if (own->begun)
		cv_ids_stream_clear(streams, own);
	other->syn_waits = other->unheard = false;
	return OPENS;
}

static CV_NOINLINE enum opening open_streams(struct cv_ids_streams *streams,
	struct cv_ids_connection *connection, const struct cv_flow_followed *of, uint32_t seq,
	uint32_t ack, uint32_t len)
{
	struct cv_ids_stream *own = &connection->way[of->direction];
	const enum opening is =
		of->tcp_flags & ACK
			? answer(streams, own, &connection->way[!of->direction], seq, ack)
			: ask(own, seq, len);

	if (is == OPENS && !own->begun) {
		cv_ids_stream_begin(own, seq);
		own->unheard = true;
	}
	return is;
}

// The first acknowledgement of the other end's bytes: of several beginnings, this is the one that was
// heard.
static CV_NOINLINE void hear(struct cv_ids_streams *streams, struct cv_ids_stream *own,
	struct cv_ids_stream *other, uint32_t ack)
{
	if (ack - other->first > other->next - other->first)
		begin_anew(streams, other, ack);
	other->unheard = false;
	own->syn_waits = false; // it was answered
}

static uint8_t match_segment(struct cv_ids *ids, struct cv_nf_worker *worker, struct slot *slot,
	const struct cv_flow_followed *of, struct cv_ids_packet *packet)
{
	struct cv_ids_lane *lane = &ids->lane[worker->index];
	struct cv_ids_connection *connection = &lane->streams.connection[slot->connection - 1];
	struct cv_ids_stream *stream = &connection->way[of->direction];
	struct cv_ids_stream *other = &connection->way[!of->direction];
	const uint8_t *l4 = of->view->data + of->l4;
	const uint32_t ack = (uint32_t)cv_tuple_load(l4 + 8) << 16 | cv_tuple_load(l4 + 10);
	uint32_t seq = (uint32_t)cv_tuple_load(l4 + 4) << 16 | cv_tuple_load(l4 + 6);
	enum opening opening = IS_APART;
	uint8_t verdict = CV_NEXT;
	bool passed = false;

	if (CV_UNLIKELY((of->tcp_flags & (SYN | RST)) == SYN)) {
		opening = open_streams(&lane->streams, connection, of, ++seq, ack, packet->len);
		if (opening == CONTRADICTS)
			return CV_DROP(CV_IDS_DROP_OVERLAP);
	} else if (CV_UNLIKELY(other->unheard) && (of->tcp_flags & (RST | ACK)) == ACK) {
		hear(&lane->streams, stream, other, ack);
	}
	packet->stream = true;
	cv_ids_begin(ids, lane, packet->len + 2 * ids->window);
	if (packet->len > 0 || !stream->begun)
		switch (cv_ids_stream_segment(ids, lane, stream, packet, seq)) {
		case CV_IDS_SEGMENT_TAKEN:
			break;
		case CV_IDS_SEGMENT_CONTRADICTS:
			return CV_DROP(CV_IDS_DROP_OVERLAP);
		case CV_IDS_SEGMENT_NO_ROOM:
			return CV_DROP(CV_IDS_DROP_NO_ROOM);
		case CV_IDS_SEGMENT_ELSEWHERE:
			packet->stream = false;
			return cv_ids_match(ids, worker, packet, &passed);
		}
	if (opening == OPENS)
		stream->opening = stream->next;
	cv_ids_consider_bare(ids, lane, packet);
	if (lane->left != lane->given)
		verdict = cv_ids_conclude(ids, worker, packet, &passed);
	if (verdict != CV_NEXT)
		slot->state |=
			verdict == CV_DROP(CV_IDS_DROP_RULE) ? BLOCKED : BLOCKED | OVER_BUDGET;
	else if (passed)
		slot->state |= PASSED;
	else if (lane->over) // begins anew with the next segment
		cv_ids_stream_clear(&lane->streams, stream);
	return verdict;
}

static uint8_t follow_one(
	struct cv_ids *ids, struct cv_nf_worker *worker, const struct cv_flow_followed *of)
{
	struct slot *slot = of->slot;
	struct cv_ids_packet packet;
	const enum cv_ids_kind kind = cv_ids_packet_of(of->view, &packet);
	const uint8_t flow = learn_state(slot, of);
	const bool has_stream = slot->connection != 0 && slot->number == ids->number;
	bool passed;

	if (slot->state & BLOCKED)
		return slot->state & OVER_BUDGET ? CV_DROP(CV_IDS_DROP_OVER_BUDGET)
						 : CV_DROP(CV_IDS_DROP_RULE);
	if (slot->state & PASSED)
		return CV_NEXT;
	if (kind == CV_IDS_IS_BAD)
		return CV_DROP(CV_IDS_DROP_BAD_HEADER);
	if (kind == CV_IDS_IS_NON_IP) // no flow has such packets
		return CV_NEXT;
	// What comes in fragments would be missing in a stream.
	if (kind == CV_IDS_IS_FRAGMENT && (ids->drop_fragments || has_stream))
		return CV_DROP(CV_IDS_DROP_FRAGMENT);
	packet.flow = flow;
	if (kind == CV_IDS_IS_PACKET && has_stream) {
		if (!ids->checks_sums || is_whole(&packet, of->view->data + of->l4))
			return match_segment(ids, worker, slot, of, &packet);
		cv_ids_count(&ids->lane[worker->index], CV_IDS_COUNT_BAD_CHECKSUMS, 1);
	}
	return cv_ids_match(ids, worker, &packet, &passed);
}

static unsigned follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	unsigned others = 0;

	for (unsigned i = 0; i < n; i++) {
		verdicts[i] = follow_one(instance, worker, &packets[i]);
		others += verdicts[i] != CV_NEXT;
	}
	return others;
}

static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	struct cv_ids_packet packet;
	bool passed;

	if (why == CV_FLOW_NON_IP)
		return CV_NEXT;
	if (why == CV_FLOW_BAD_HEADER || cv_ids_packet_of(view, &packet) != CV_IDS_IS_PACKET)
		return CV_DROP(CV_IDS_DROP_BAD_HEADER);
	return cv_ids_match(instance, worker, &packet, &passed);
}

const struct cv_nf_flow cv_ids_flow = {
	.slot_bytes = sizeof(struct slot),
	.is_stateful = is_stateful,
	.decide = decide,
	.follow = follow,
	.ended = ended,
	.other = other,
	.answers = answers,
};
