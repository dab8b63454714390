// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// From a received frame to views of the packets in it, where they lie. A frame is checked whole
// before the first of its packets is shown to anybody; one that does not add up is refused whole.
//
// The bytes may lie in memory that another side can change at any time (a guest's): every length
// is read once, and validated and used as that copy. What has been walked is known from the copies
// in cv_convoy and the views alone; nobody reads a length in the frame again.
#ifndef CV_CONVOY_WALK_H
#define CV_CONVOY_WALK_H

#include <stdint.h>

#include <rte_byteorder.h>

#include "convoy/format.h"
#include "packet/view.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a frame is, and why it is refused. docs/convoy-frame.md has the order of the checks: the
// first that fails names the reason, so that every implementation gives the same one.
enum cv_convoy_reason {
	CV_CONVOY_OK,
	CV_CONVOY_NOT_A_CONVOY, // an ordinary packet, not refused: not UDP, or to another port
	CV_CONVOY_FRAGMENTED, // the first fragment of an IPv4 packet; convoys are never fragmented
	CV_CONVOY_BAD_CHECKSUM, // of the outer IPv4 header
	CV_CONVOY_TRUNCATED, // the frame ends before its IP packet does
	CV_CONVOY_BAD_LENGTH, // the IP, UDP and packet lengths contradict each other
	CV_CONVOY_TRAILING_BYTES, // behind the IP packet, or in it behind the last counted packet
	CV_CONVOY_BAD_VERSION,
	CV_CONVOY_BAD_TYPE,
	CV_CONVOY_BAD_COUNT, // no packets, or fewer than counted
	CV_CONVOY_RUNT_PACKET, // a packet without a whole Ethernet header
	CV_CONVOY_BAD_CODEC, // compressed by what this receiver does not have
	CV_CONVOY_WRONG_DICTIONARY, // compressed with a dictionary that this receiver does not have
	CV_CONVOY_BAD_BLOCK, // does not expand to as many bytes as it says
	CV_CONVOY_BAD_FRAGMENT, // nothing in it is a fragment, or more than the rest of its packet
	CV_CONVOY_REASONS // how many there are
};

// Names of the reasons, as counters and tests write them: "ok", "not_a_convoy", "truncated" ...
extern const char *const cv_convoy_reason_names[CV_CONVOY_REASONS];

// A frame that was walked. Does not own the bytes.
struct cv_convoy {
	uint8_t *data; // the outer Ethernet header
	uint16_t len; // bytes of the whole frame
	uint16_t packets_at; // offset of the first packet's length
	uint16_t nfi; // NFI-ID, host order
	rte_be16_t sport; // UDP source port: the first flow's hash
	uint8_t count; // packets, 1 to 255
	uint16_t each; // bytes of each packet; 0: they differ
};

// Walks the frame that a view shows; port is the UDP destination port of convoys. Where the
// answer is CV_CONVOY_OK, convoy is filled in, and so are convoy->count views, in the frame's
// order, with in and out as the frame's view has them; otherwise what they hold means nothing.
// There must be room for CV_CONVOY_PACKETS_MAX views. The frame's bytes stay as they are.
enum cv_convoy_reason cv_convoy_walk(struct cv_convoy *convoy, struct cv_view *views,
	const struct cv_view *frame, rte_be16_t port);

// The headers of a frame of type CV_CONVOY_COMPRESSED, the compression header not included: packets_at
// is where that would begin. convoy->each is not set, and no packet is looked at. CV_CONVOY_BAD_TYPE:
// it is of another type.
enum cv_convoy_reason cv_convoy_walk_compressed(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port);

// The same of a frame of type CV_CONVOY_FRAGMENTS, whose count may be 0 (convoy/fragment.h).
enum cv_convoy_reason cv_convoy_walk_fragments_header(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port);

// cv_convoy_walk() for a function that only wants the packets: those of a convoy to the default port, or
// the frame itself where it is an ordinary packet. Returns how many; 0: the frame does not add up,
// has no Ethernet header, or is longer than 65,535 bytes, and nobody should see anything of it.
static CV_INLINE unsigned cv_convoy_packets(struct cv_view *packets, uint8_t *frame, uint32_t len)
{
	struct cv_convoy convoy;
	struct cv_view whole;

	if (len < CV_ETHER_LEN || len > UINT16_MAX)
		return 0;
	whole.in = whole.out = 0;
	cv_view_set(&whole, frame, (uint16_t)len);
	switch (cv_convoy_walk(&convoy, packets, &whole, RTE_BE16(CV_CONVOY_PORT))) {
	case CV_CONVOY_OK:
		return convoy.count;
	case CV_CONVOY_NOT_A_CONVOY:
		packets[0] = whole;
		return 1;
	default:
		return 0;
	}
}

#ifdef __cplusplus
}
#endif

#endif
