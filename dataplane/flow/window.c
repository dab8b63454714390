// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/window.h"

#include <rte_common.h>

// Of struct cv_flow_window_end.
#define KNOWN 1 // it has sent something
#define ACKED 2 // an acknowledgement among it
#define SCALES 4 // its SYN had the option,
#define FRAGMENTED 8 // its segment up to next went in fragments: it ends up to limit
#define SCALE_SHIFT 4 // which said this

#define TCP_LEN 20
#define SCALE_MAX 14 // RFC 7323 section 2.3
#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_SCALE 3
// Acknowledgements may be so far behind, whatever the window: they are delayed, and overtake.
#define ACKS_BEHIND 66000u

struct segment {
	uint32_t seq, behind; // its first number, and that behind its last
	uint32_t ack, window;
	uint8_t flags;
	const uint8_t *options;
	unsigned options_len;
};

static bool is_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static uint32_t load32(const uint8_t *at)
{
	rte_be32_t word;

	memcpy(&word, at, sizeof(word));
	return rte_be_to_cpu_32(word);
}

// False: its header does not fit.
static bool read_segment(
	struct segment *segment, const struct cv_view *view, unsigned l4, unsigned end)
{
	const uint8_t *tcp = view->data + l4;
	const unsigned header = (tcp[12] >> 4) * 4u;

	if (header < TCP_LEN || l4 + header > end)
		return false;
	*segment = (struct segment){
		.seq = load32(tcp + 4),
		.ack = load32(tcp + 8),
		.window = rte_be_to_cpu_16(cv_load_be16(tcp + 14)),
		.flags = tcp[13],
		.options = tcp + TCP_LEN,
		.options_len = header - TCP_LEN,
	};
	segment->behind = segment->seq + (end - l4 - header) +
			  ((segment->flags & CV_TCP_SYN) != 0) +
			  ((segment->flags & CV_TCP_FIN) != 0);
	return true;
}

// The window's scale that a SYN asks for; -1: it has no such option.
static int scale_of(const struct segment *segment)
{
	for (unsigned at = 0; at < segment->options_len;) {
		const uint8_t *option = segment->options + at;

		if (option[0] == OPTION_END)
			return -1;
		if (option[0] == OPTION_NOP) {
			at++;
			continue;
		}
		if (at + 2 > segment->options_len || option[1] < 2 ||
			at + option[1] > segment->options_len)
			return -1;
		if (option[0] == OPTION_SCALE && option[1] == 3)
			return RTE_MIN(option[2], SCALE_MAX);
		at += option[1];
	}
	return -1;
}

static uint32_t window_of(const struct cv_flow_window_end *end)
{
	return (uint32_t)end->window << end->scale;
}

// Bytes, at least 1, in an end's units.
static uint16_t in_units(const struct cv_flow_window_end *end, uint32_t bytes)
{
	const uint64_t units = ((uint64_t)bytes + (1u << end->scale) - 1) >> end->scale;

	if (units == 0)
		return 1;
	return (uint16_t)RTE_MIN(units, (uint64_t)UINT16_MAX);
}

// An end's SYN: what it sends begins here. A SYN's own window is not scaled (RFC 7323 section 2.2).
static void begin(struct cv_flow_window_end *from, const struct segment *segment)
{
	const int scale = scale_of(segment);

	*from = (struct cv_flow_window_end){
		.next = segment->behind,
		.limit = segment->behind,
		.flags = (uint8_t)(scale < 0 ? KNOWN : KNOWN | SCALES | scale << SCALE_SHIFT),
	};
	from->window = in_units(from, segment->window);
}

// From now on windows are scaled, if both ends say so.
static void agree(struct cv_flow_window_end *a, struct cv_flow_window_end *b)
{
	struct cv_flow_window_end *const both[] = {a, b};

	if (!(a->flags & b->flags & SCALES))
		return;
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t bytes = window_of(both[i]);

		both[i]->scale = both[i]->flags >> SCALE_SHIFT;
		both[i]->window = in_units(both[i], bytes);
	}
}

static bool is_inside(const struct cv_flow_window_end *from, const struct cv_flow_window_end *to,
	const struct segment *segment)
{
	const uint32_t behind = RTE_MAX(window_of(from), ACKS_BEHIND);

	if (!(to->flags & KNOWN)) // what it accepts, nobody knows yet
		return true;
	return !is_after(segment->seq, from->limit) &&
	       is_after(segment->behind, from->next - window_of(to) - 1) &&
	       !is_after(segment->ack, to->next) && is_after(segment->ack, to->next - behind - 1);
}

// The other end's acknowledgement says where a segment of fragments, of which the first one was
// seen, ended. Whether it may.
static bool is_end_of_fragments(struct cv_flow_window_end *to, const struct segment *segment)
{
	if (!(to->flags & FRAGMENTED) || !is_after(segment->ack, to->next) ||
		is_after(segment->ack, to->limit))
		return false;
	to->next = segment->ack;
	return true;
}

static enum cv_flow_window_verdict reset_verdict(const struct cv_flow_window_end *from,
	const struct cv_flow_window_end *to, enum cv_flow_tcp_state state, uint32_t seq)
{
	if (!(to->flags & ACKED))
		return CV_FLOW_WINDOW_INSIDE;
	if (is_after(to->acked, seq))
		return CV_FLOW_WINDOW_OUTSIDE;
	return state == CV_FLOW_TCP_OPEN || state == CV_FLOW_TCP_ANSWERED || seq == to->acked ||
			       seq == from->next
		       ? CV_FLOW_WINDOW_INSIDE
		       : CV_FLOW_WINDOW_UNSURE;
}

// What comes of an end before its SYN: a refusal, which acknowledges the other's SYN, or what is of
// another connection between these ports, which the other end resets.
static enum cv_flow_window_verdict verdict_before_syn(
	const struct cv_flow_window_end *to, const struct segment *segment, bool has_ack)
{
	if (has_ack && segment->flags & CV_TCP_RST)
		return segment->ack == to->next ? CV_FLOW_WINDOW_INSIDE : CV_FLOW_WINDOW_OUTSIDE;
	return CV_FLOW_WINDOW_UNSURE;
}

static void learn(struct cv_flow_window_end *from, struct cv_flow_window_end *to,
	const struct segment *segment, bool has_ack)
{
	const uint32_t window =
		segment->flags & CV_TCP_SYN ? segment->window : segment->window << from->scale;

	from->window = RTE_MAX(from->window, in_units(from, window));
	if (is_after(segment->behind, from->next)) {
		from->next = segment->behind;
		from->flags &= (uint8_t)~FRAGMENTED;
	}
	if (has_ack && (!(from->flags & ACKED) || is_after(segment->ack, from->acked))) {
		from->acked = segment->ack;
		from->flags |= ACKED;
	}
	if (to->flags & KNOWN && is_after(segment->behind, from->limit)) // its end is outside
		to->window = in_units(to, window_of(to) + (segment->behind - from->limit));
	if (is_after(segment->ack + window, to->limit - 1)) // a window of 0 is probed with a byte
		to->limit = segment->ack + window + (window == 0);
}

// An end's SYN. False: its receiver challenges it (RFC 5961 section 4), and nothing is known yet of what
// that leads to.
static bool open_window(struct cv_flow_window_end *from, struct cv_flow_window_end *to,
	unsigned direction, enum cv_flow_tcp_state state, const struct segment *segment)
{
	if (state == CV_FLOW_TCP_CLOSED || state == CV_FLOW_TCP_RESET) // another connection
		*from = *to = (struct cv_flow_window_end){0};
	else if (state != CV_FLOW_TCP_OPEN && state != CV_FLOW_TCP_ANSWERED)
		return false;
	if (from->flags & KNOWN && !is_after(segment->behind, from->next)) // sent again
		return true;
	begin(from, segment);
	if (direction == CV_FLOW_REPLY) {
		from->limit += window_of(to); // of the other's SYN
		agree(from, to);
	}
	return true;
}

enum cv_flow_window_verdict cv_flow_window_see(struct cv_flow_window *window, unsigned direction,
	enum cv_flow_tcp_state state, const struct cv_view *view, unsigned l4, unsigned end)
{
	struct cv_flow_window_end from = window->end[direction], to = window->end[!direction];
	struct segment segment;
	bool has_ack;

	if (!read_segment(&segment, view, l4, end))
		return CV_FLOW_WINDOW_OUTSIDE;
	has_ack = segment.flags & CV_TCP_ACK && !(segment.flags & CV_TCP_RST && segment.ack == 0);
	if (segment.flags & CV_TCP_SYN) {
		if (!open_window(&from, &to, direction, state, &segment))
			return CV_FLOW_WINDOW_UNSURE;
	} else if (!(from.flags & KNOWN)) {
		return verdict_before_syn(&to, &segment, has_ack);
	}
	if (!has_ack)
		segment.ack = to.next; // as if it were right
	if (!is_inside(&from, &to, &segment) &&
		!(is_end_of_fragments(&to, &segment) && is_inside(&from, &to, &segment)))
		return CV_FLOW_WINDOW_OUTSIDE;
	if (segment.flags & CV_TCP_RST) // the last that it says: there is nothing to learn
		return reset_verdict(&from, &to, state, segment.seq);
	learn(&from, &to, &segment, has_ack);
	window->end[direction] = from;
	window->end[!direction] = to;
	return CV_FLOW_WINDOW_INSIDE;
}

void cv_flow_window_fragmented(struct cv_flow_window *window, unsigned direction)
{
	window->end[direction].flags |= FRAGMENTED;
}
