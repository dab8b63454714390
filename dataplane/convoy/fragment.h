// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames of type 2 (docs/convoy-frame.md): the packet that does not fit into a frame any more is cut
// in two. It begins behind the last packet of the frame, and its rest comes first in the next one.
// A receiver keeps the beginning, one of each stream, until the next frame of the stream has come.
#ifndef CV_CONVOY_FRAGMENT_H
#define CV_CONVOY_FRAGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "convoy/walk.h"

// Fewer bytes of a packet than these are not worth a fragment.
#define CV_FRAGMENT_MIN 64u

// Of a frame that was walked.
struct cv_fragments {
	uint32_t stream, sequence;
	uint16_t rest_len; // of the first packet, which is the rest of one; 0: it is whole
	uint16_t beginning_len, total; // of the packet that begins, here and in all; 0: none does
	const uint8_t *rest, *beginning;
};

// Walks a frame of this type as cv_convoy_walk() does one of type 0. Where the first packet is a
// rest, so is what the first view shows. count may be 0.
enum cv_convoy_reason cv_convoy_walk_fragments(struct cv_convoy *convoy,
	struct cv_fragments *fragments, struct cv_view *views, const struct cv_view *frame,
	rte_be16_t port);

// The number of a stream's next frame, and what its source port is unless the next hop has one.
struct cv_fragment_stream {
	uint32_t id; // drawn by the sender
	uint32_t sequence;
};

static CV_INLINE rte_be16_t cv_fragment_sport(uint32_t stream)
{
	return rte_cpu_to_be_16(CV_CONVOY_SPORT_MIN | (stream & CV_CONVOY_SPORT_MASK));
}

// Bytes that the rest of a packet may have, for it must fit into a frame.
static CV_INLINE uint32_t cv_fragment_rest_max(const struct cv_outer *outer)
{
	return outer->packet_max - CV_FRAGMENTS_LEN;
}

// Makes what lies from begin to end a frame of this type: count packets with their lengths, the first of
// which is a rest if so said; and, if total is not 0, behind them the beginning of a packet of so many
// bytes. CV_FRAGMENTS_LEN + outer->len bytes before begin may be written. Returns its first byte.
uint8_t *cv_fragment_make(const struct cv_outer *outer, struct cv_fragment_stream *stream,
	uint8_t *begin, const uint8_t *end, uint8_t count, bool rest, uint16_t total);

// Beginnings that a receiver keeps: at most one of each of CV_REASSEMBLY_STREAMS streams of each sender.
// What has more, or is not followed by its rest at once, loses the packets that were cut, and no others.
#define CV_REASSEMBLY_SENDERS 16u
#define CV_REASSEMBLY_STREAMS 16u

struct cv_reassembly;
struct cv_beginning;

// For packets of at most so many bytes. NULL: no memory.
struct cv_reassembly *cv_reassembly_make(uint32_t packet_max);
void cv_reassembly_free(struct cv_reassembly *reassembly); // NULL is allowed

// The place for a stream's beginning. Sender: below CV_REASSEMBLY_SENDERS, senders with the same one share
// its streams; address: IPv4's first 4 bytes, the others 0.
struct cv_beginning *cv_reassembly_find(struct cv_reassembly *reassembly, unsigned sender,
	const uint8_t address[16], uint32_t stream);

// Does the rest in a frame complete the packet that began before? Returns the packet's bytes; 0: no.
uint16_t cv_reassembly_completes(
	const struct cv_beginning *beginning, const struct cv_fragments *fragments);

// The whole packet, if so.
void cv_reassembly_complete(
	const struct cv_beginning *beginning, const struct cv_fragments *fragments, uint8_t *to);

// Whatever was kept of the stream is over, and what begins in the frame, if anything, is kept.
void cv_reassembly_keep(const struct cv_reassembly *reassembly, struct cv_beginning *beginning,
	const struct cv_fragments *fragments);

#endif
