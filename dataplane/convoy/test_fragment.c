// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets in two frames: what is walked is what was made, and beginnings find their rests.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "convoy/fragment.h"
#include "convoy/frame.h"

#define PORT RTE_BE16(CV_CONVOY_PORT)

static struct cv_outer outer;
static uint8_t memory[4096];

static int setup(void **state)
{
	const struct cv_outer_config config = {
		.version = 4, .src = {192, 0, 2, 1}, .nfi = 7, .fragment = true};

	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	assert_int_equal(outer.share_max, outer.packet_max);
	return 0;
}

struct made {
	uint8_t *data;
	uint16_t len;
};

// A frame of a rest of so many bytes (0: none), packets of 60, and so many bytes of one of total.
static struct made make(struct cv_fragment_stream *stream, unsigned rest, unsigned whole,
	unsigned beginning, unsigned total)
{
	uint8_t *begin = memory + 256, *at = begin;
	uint8_t count = (uint8_t)(whole + (rest > 0));

	memset(memory, 0xa5, sizeof(memory));
	if (rest > 0) {
		cv_convoy_write_len(at, rest);
		at += CV_CONVOY_PREFIX_LEN + rest;
	}
	for (unsigned i = 0; i < whole; i++) {
		cv_convoy_write_len(at, 60);
		memset(at + CV_CONVOY_PREFIX_LEN, (int)i, 60);
		at += CV_CONVOY_PREFIX_LEN + 60;
	}
	at += beginning;
	uint8_t *data =
		cv_fragment_make(&outer, stream, begin, at, count, rest > 0, (uint16_t)total);
	assert_ptr_equal(data, begin - CV_FRAGMENTS_LEN - outer.len);
	return (struct made){data, (uint16_t)(at - data)};
}

static enum cv_convoy_reason walk(struct made made, struct cv_convoy *convoy,
	struct cv_fragments *fragments, struct cv_view *views)
{
	struct cv_view frame = {.in = 3, .out = 4};

	cv_view_set(&frame, made.data, made.len);
	return cv_convoy_walk_fragments(convoy, fragments, views, &frame, PORT);
}

static void walked_is_what_was_made(void **state)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_fragments fragments;
	struct cv_convoy convoy;

	for (unsigned rest = 0; rest < 3; rest++) {
		for (unsigned whole = 0; whole < 4; whole++) {
			for (unsigned beginning = 0; beginning < 200; beginning += 40) {
				struct cv_fragment_stream stream = {
					.id = 77, .sequence = UINT32_MAX};
				struct made made = make(&stream, rest, whole, beginning,
					beginning > 0 ? beginning + 10 : 0);
				enum cv_convoy_reason reason =
					walk(made, &convoy, &fragments, views);

				assert_int_equal(stream.sequence, 0);
				if (rest == 0 && beginning == 0) {
					assert_int_equal(reason, CV_CONVOY_BAD_FRAGMENT);
					continue;
				}
				assert_int_equal(reason, CV_CONVOY_OK);
				assert_int_equal(convoy.nfi, 7);
				assert_int_equal(convoy.count, whole + (rest > 0));
				assert_int_equal(convoy.sport, cv_fragment_sport(77));
				assert_int_equal(fragments.stream, 77);
				assert_int_equal(fragments.sequence, UINT32_MAX);
				assert_int_equal(fragments.rest_len, rest);
				assert_int_equal(fragments.beginning_len, beginning);
				assert_int_equal(fragments.total, beginning ? beginning + 10 : 0);
				for (unsigned i = rest > 0; i < convoy.count; i++) {
					assert_int_equal(views[i].len, 60);
					assert_int_equal(views[i].in, 3);
					assert_int_equal(views[i].out, 4);
					assert_int_equal(views[i].data[0], i - (rest > 0));
				}
			}
		}
	}
}

// No other type's walk takes it, and it takes no other type.
static void types_are_apart(void **state)
{
	struct cv_fragment_stream stream = {.id = 1};
	struct made made = make(&stream, 5, 2, 0, 0);
	struct cv_view views[CV_CONVOY_PACKETS_MAX], frame = {0};
	struct cv_fragments fragments;
	struct cv_convoy convoy;

	cv_view_set(&frame, made.data, made.len);
	assert_int_equal(cv_convoy_walk(&convoy, views, &frame, PORT), CV_CONVOY_BAD_TYPE);
	for (unsigned type = 0; type < 16; type++) {
		made.data[outer.len - 4] = (uint8_t)(0x10 | type);
		assert_int_equal(walk(made, &convoy, &fragments, views) == CV_CONVOY_BAD_TYPE,
			type != CV_CONVOY_FRAGMENTS);
	}
}

static void hostile_frames_are_refused(void **state)
{
	static const struct {
		unsigned at; // behind the convoy header
		uint16_t value;
		enum cv_convoy_reason reason;
	} wrong[] = {
		{8, 2, CV_CONVOY_BAD_FRAGMENT}, // flags
		{8, 3, CV_CONVOY_BAD_FRAGMENT}, {8, 0x8000, CV_CONVOY_BAD_FRAGMENT},
		{8, 0, CV_CONVOY_RUNT_PACKET}, // the rest, taken for a packet
		{10, 0, CV_CONVOY_TRAILING_BYTES}, // total
		{10, 13, CV_CONVOY_RUNT_PACKET},
		{10, 40, CV_CONVOY_BAD_FRAGMENT}, // all of the packet is there, or more
		{10, 39, CV_CONVOY_BAD_FRAGMENT}, {10, 65535, CV_CONVOY_OK},
		{12, 0, CV_CONVOY_RUNT_PACKET}, // length of the rest
		{12, 65535, CV_CONVOY_BAD_LENGTH},
		{19, 61,
			CV_CONVOY_BAD_COUNT}, // that of the next packet: the one behind ends in a length
	};
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_fragments fragments;
	struct cv_convoy convoy;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cv_fragment_stream stream = {.id = 1};
		struct made made = make(&stream, 5, 2, 40, 100);
		enum cv_convoy_reason reason;

		cv_convoy_write_len(made.data + outer.len + wrong[i].at, wrong[i].value);
		reason = walk(made, &convoy, &fragments, views);
		if (wrong[i].reason == CV_CONVOY_BAD_COUNT)
			assert_int_not_equal(reason, CV_CONVOY_OK);
		else
			assert_int_equal(reason, wrong[i].reason);
	}
	// Cut anywhere: never accepted, for the IP packet says how long it is.
	struct cv_fragment_stream stream = {.id = 1};
	struct made made = make(&stream, 5, 2, 40, 100);
	const uint16_t len = made.len;

	for (made.len = 0; made.len < len; made.len++) {
		uint8_t *exact = malloc(made.len + !made.len);

		memcpy(exact, made.data, made.len);
		assert_int_not_equal(
			walk((struct made){exact, made.len}, &convoy, &fragments, views),
			CV_CONVOY_OK);
		free(exact);
	}
	// No header of fragments.
	for (unsigned bytes = 0; bytes < CV_FRAGMENTS_LEN; bytes++) {
		uint8_t *data = cv_outer_write(&outer, memory, 1, bytes, 0);

		data[outer.len - 4] = 0x12;
		assert_int_equal(walk((struct made){data, (uint16_t)(outer.len + bytes)}, &convoy,
					 &fragments, views),
			CV_CONVOY_BAD_LENGTH);
	}
}

static const uint8_t address[16] = {192, 0, 2, 1};

static struct cv_fragments frame_of(
	uint32_t stream, uint32_t sequence, unsigned rest, unsigned beginning, unsigned total)
{
	static uint8_t bytes[2048];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + sequence);
	return (struct cv_fragments){.stream = stream,
		.sequence = sequence,
		.rest_len = (uint16_t)rest,
		.rest = bytes,
		.beginning_len = (uint16_t)beginning,
		.total = (uint16_t)total,
		.beginning = bytes};
}

// What a receiver does with a frame. Returns the bytes of the packet that is whole now.
static unsigned receive(struct cv_reassembly *reassembly, struct cv_fragments frame)
{
	struct cv_beginning *beginning = cv_reassembly_find(reassembly, 0, address, frame.stream);
	unsigned len = frame.rest_len > 0 ? cv_reassembly_completes(beginning, &frame) : 0;

	if (len > 0) {
		uint8_t *to = malloc(len);

		cv_reassembly_complete(beginning, &frame, to);
		assert_int_equal(to[0], (uint8_t)(frame.sequence - 1));
		assert_int_equal(to[len - frame.rest_len], (uint8_t)frame.sequence);
		free(to);
	}
	cv_reassembly_keep(reassembly, beginning, &frame);
	return len;
}

static void rests_find_their_beginnings(void **state)
{
	struct cv_reassembly *reassembly = cv_reassembly_make(1000);

	assert_int_equal(receive(reassembly, frame_of(9, UINT32_MAX, 0, 100, 500)), 0);
	assert_int_equal(receive(reassembly, frame_of(9, 0, 400, 300, 301)), 500);
	assert_int_equal(receive(reassembly, frame_of(9, 1, 1, 0, 0)), 301);
	assert_int_equal(receive(reassembly, frame_of(9, 2, 1, 0, 0)), 0); // nothing began
	// Another length than was said.
	receive(reassembly, frame_of(9, 3, 0, 100, 500));
	assert_int_equal(receive(reassembly, frame_of(9, 4, 401, 0, 0)), 0);
	receive(reassembly, frame_of(9, 5, 0, 100, 500));
	assert_int_equal(receive(reassembly, frame_of(9, 6, 399, 0, 0)), 0);
	// Too long to be kept.
	receive(reassembly, frame_of(9, 7, 0, 900, 1001));
	assert_int_equal(receive(reassembly, frame_of(9, 8, 101, 0, 0)), 0);
	receive(reassembly, frame_of(9, 9, 0, 900, 1000));
	assert_int_equal(receive(reassembly, frame_of(9, 10, 100, 0, 0)), 1000);
	// One that is lost takes the packets that were cut, and no others.
	receive(reassembly, frame_of(9, 11, 0, 100, 500));
	assert_int_equal(receive(reassembly, frame_of(9, 13, 400, 100, 500)), 0);
	assert_int_equal(receive(reassembly, frame_of(9, 14, 400, 0, 0)), 500);
	// One that is twice there, or late, takes nothing from the others.
	receive(reassembly, frame_of(9, 20, 0, 100, 500));
	receive(reassembly, frame_of(9, 20, 0, 100, 500));
	receive(reassembly, frame_of(9, 19, 400, 10, 500));
	assert_int_equal(receive(reassembly, frame_of(9, 21, 400, 0, 0)), 500);
	assert_int_equal(receive(reassembly, frame_of(9, 21, 400, 0, 0)), 0);
	// A sender that begins anew, with the same stream: far away.
	receive(reassembly, frame_of(9, 5000, 0, 100, 500));
	receive(reassembly, frame_of(9, 1, 0, 100, 500));
	assert_int_equal(receive(reassembly, frame_of(9, 2, 400, 0, 0)), 500);
	cv_reassembly_free(reassembly);
}

// A sender has so many streams, and not those of others.
static void streams_are_bounded(void **state)
{
	struct cv_reassembly *reassembly = cv_reassembly_make(1000);
	const uint8_t other[16] = {192, 0, 2, 2};
	struct cv_fragments theirs = frame_of(1, 1, 0, 100, 500);
	struct cv_beginning *at = cv_reassembly_find(reassembly, 1, other, 1);

	cv_reassembly_keep(reassembly, at, &theirs);
	for (uint32_t stream = 0; stream < CV_REASSEMBLY_STREAMS; stream++)
		receive(reassembly, frame_of(stream, 1, 0, 100, 500));
	for (uint32_t stream = 0; stream < CV_REASSEMBLY_STREAMS; stream++)
		assert_int_equal(receive(reassembly, frame_of(stream, 2, 400, 100, 500)), 500);
	receive(reassembly, frame_of(99, 1, 0, 100, 500)); // in place of the oldest, stream 0
	assert_int_equal(receive(reassembly, frame_of(1, 3, 400, 0, 0)), 500);
	assert_int_equal(receive(reassembly, frame_of(0, 3, 400, 0, 0)), 0);
	for (uint32_t stream = 1000; stream < 100000; stream++)
		receive(reassembly, frame_of(stream, 1, 0, 100, 500));
	theirs = frame_of(1, 2, 400, 0, 0);
	assert_int_equal(
		cv_reassembly_completes(cv_reassembly_find(reassembly, 1, other, 1), &theirs), 500);
	// The same stream of another address is another one.
	receive(reassembly, frame_of(5, 1, 0, 100, 500));
	theirs = frame_of(5, 2, 400, 0, 0);
	assert_int_equal(
		cv_reassembly_completes(cv_reassembly_find(reassembly, 0, other, 5), &theirs), 0);
	cv_reassembly_free(reassembly);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walked_is_what_was_made),
		cmocka_unit_test(types_are_apart),
		cmocka_unit_test(hostile_frames_are_refused),
		cmocka_unit_test(rests_find_their_beginnings),
		cmocka_unit_test(streams_are_bounded),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
