// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compress/compress.h"
#include "convoy/frame.h"

#define ROOM 70000

static uint8_t dictionary_bytes[CV_DICTIONARY_MAX];
static uint8_t to[ROOM];
static uint32_t seed = 1;
static uint32_t spread = 120; // of packets' lengths

static uint32_t rnd(void)
{
	return seed = seed * 1664525 + 1013904223;
}

// Packets that resemble each other, of n bytes at most together, with their lengths.
static uint32_t write_packets(uint8_t *run, uint32_t n, unsigned *count)
{
	uint32_t at = 0;

	for (*count = 0; *count < CV_CONVOY_PACKETS_MAX; ++*count) {
		uint32_t len = 14 + rnd() / 7 % spread;

		if (at + 2 + len > n)
			break;
		run[at] = (uint8_t)(len >> 8);
		run[at + 1] = (uint8_t)len;
		for (uint32_t i = 0; i < len; i++)
			run[at + 2 + i] = (uint8_t)(rnd() >> 28 == 0 ? rnd() >> 24 : i * 37);
		at += 2 + len;
	}
	return at;
}

struct sent {
	uint8_t bytes[ROOM];
	struct cv_view view;
	uint8_t raw[ROOM];
	uint32_t raw_len;
	unsigned count;
};

// A frame of type 1, and the packets in it. False: it did not get smaller.
static bool send(struct sent *sent, struct cv_compressor *compressor, bool ipv6, uint32_t mtu)
{
	const struct cv_outer_config config = {.version = ipv6 ? 6 : 4, .mtu = (uint16_t)mtu};
	struct cv_outer outer;
	uint32_t made;

	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	sent->raw_len =
		write_packets(sent->raw, (uint32_t)outer.frame_max - outer.len, &sent->count);
	memcpy(sent->bytes + outer.len, sent->raw, sent->raw_len);
	made = cv_compress(compressor, 0, sent->bytes + outer.len, sent->raw_len);
	if (made == 0) {
		assert_memory_equal(sent->bytes + outer.len, sent->raw, sent->raw_len);
		return false;
	}
	assert_true(made < sent->raw_len);
	cv_outer_write(&outer, sent->bytes, (uint8_t)sent->count, made, 0);
	sent->bytes[outer.len - CV_CONVOY_LEN] = 0x11;
	cv_view_set(&sent->view, sent->bytes, (uint16_t)(outer.len + made));
	return true;
}

static enum cv_convoy_reason receive(const struct cv_expander *expander, const struct cv_view *view,
	uint32_t room, uint16_t *len)
{
	uint8_t *exact = malloc(room + !room); // where too much is written a sanitizer sees it
	enum cv_convoy_reason reason =
		cv_expand(expander, view, RTE_BE16(CV_CONVOY_PORT), exact, room, len);

	if (reason == CV_CONVOY_OK)
		memcpy(to, exact, *len);
	free(exact);
	return reason;
}

static void arrives(const struct cv_expander *expander, const struct sent *sent)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], expanded = {0};
	struct cv_convoy convoy;
	const uint8_t *at = sent->raw + CV_CONVOY_PREFIX_LEN;
	uint16_t len;

	assert_int_equal(receive(expander, &sent->view, ROOM, &len), CV_CONVOY_OK);
	cv_view_set(&expanded, to, len);
	assert_int_equal(
		cv_convoy_walk(&convoy, views, &expanded, RTE_BE16(CV_CONVOY_PORT)), CV_CONVOY_OK);
	assert_int_equal(convoy.count, sent->count);
	for (unsigned i = 0; i < sent->count; i++) {
		assert_memory_equal(views[i].data, at, views[i].len);
		at += views[i].len + CV_CONVOY_PREFIX_LEN;
	}
	assert_ptr_equal(at, sent->raw + sent->raw_len + CV_CONVOY_PREFIX_LEN);
}

struct ends {
	struct cv_dictionary *dictionary;
	struct cv_compressor *compressor;
	struct cv_expander expander;
};

static struct ends ends_make(uint32_t dictionary_len)
{
	struct ends ends = {.dictionary = cv_dictionary_make(dictionary_bytes, dictionary_len)};

	ends.compressor = cv_compressor_make(ends.dictionary, 1);
	ends.expander = (struct cv_expander){
		.on = true, .dictionaries_count = 1, .dictionaries = {ends.dictionary}};
	return ends;
}

static void ends_free(struct ends *ends)
{
	cv_compressor_free(ends->compressor);
	cv_dictionary_release(ends->dictionary);
}

// Any sequence of frames, of which any are lost: what arrives is what was sent.
static void test_any_frames_arrive(void **state)
{
	static const uint32_t lens[] = {0, 1, 100, 4096, 65535, CV_DICTIONARY_MAX};
	static struct sent sent;

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct ends ends = ends_make(lens[i]);
		unsigned compressed = 0;

		for (unsigned round = 0; round < 300; round++) {
			spread = round % 3 == 0 ? 600 : 120; // each encoder's
			const uint32_t mtu =
				round % 50 == 0 ? CV_OUTER_MTU_MAX : 200 + rnd() / 3 % 1301;

			if (!send(&sent, ends.compressor, round & 1, mtu))
				continue;
			compressed++;
			if (rnd() >> 31)
				arrives(&ends.expander, &sent);
		}
		assert_true(compressed > 200);
		ends_free(&ends);
	}
	spread = 120;
}

static void test_random_bytes_do_not_get_smaller(void **state)
{
	struct ends ends = ends_make(0);
	uint8_t run[1400], before[1400];

	for (unsigned i = 0; i < sizeof(run); i++)
		run[i] = (uint8_t)(rnd() >> 24);
	memcpy(before, run, sizeof(run));
	for (uint32_t len = 0; len <= sizeof(run); len += 7)
		assert_int_equal(cv_compress(ends.compressor, 0, run, len), 0);
	assert_memory_equal(run, before, sizeof(run));
	ends_free(&ends);
}

static void test_dictionaries_are_told_apart(void **state)
{
	struct ends ends = ends_make(5000), others = ends_make(4999), none = ends_make(0);
	static struct sent sent;
	uint16_t len;

	assert_true(send(&sent, ends.compressor, false, 1500));
	assert_int_equal(
		receive(&others.expander, &sent.view, ROOM, &len), CV_CONVOY_WRONG_DICTIONARY);
	assert_int_equal(
		receive(&none.expander, &sent.view, ROOM, &len), CV_CONVOY_WRONG_DICTIONARY);
	others.expander.dictionaries[others.expander.dictionaries_count++] = ends.dictionary;
	arrives(&others.expander, &sent);
	ends_free(&ends);
	ends_free(&others);
	ends_free(&none);
}

// The compression header begins at byte 46 of a frame over IPv4 without tags.
static void test_what_does_not_add_up_is_refused(void **state)
{
	static const struct row {
		const char *name;
		uint32_t at;
		uint8_t value;
		enum cv_convoy_reason reason;
	} rows[] = {
		{"type 0", 42, 0x10, CV_CONVOY_BAD_TYPE},
		{"type 2", 42, 0x12, CV_CONVOY_BAD_TYPE},
		{"version 2", 42, 0x21, CV_CONVOY_BAD_VERSION},
		{"no packets", 43, 0, CV_CONVOY_BAD_COUNT},
		{"codec 0", 46, 0, CV_CONVOY_BAD_CODEC},
		{"codec 2", 46, 2, CV_CONVOY_BAD_CODEC},
		{"reserved", 47, 1, CV_CONVOY_BAD_CODEC},
		{"a bomb", 48, 0xff, CV_CONVOY_BAD_LENGTH},
		{"expands to less", 48, 0x0f, CV_CONVOY_BAD_BLOCK},
		{"expands to more", 48, 0x01, CV_CONVOY_BAD_BLOCK},
		{"another dictionary", 53, 1, CV_CONVOY_WRONG_DICTIONARY},
	};
	struct ends ends = ends_make(0);
	static struct sent sent;
	uint16_t len;

	assert_true(send(&sent, ends.compressor, false, 1500));
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t was = sent.bytes[rows[i].at];

		sent.bytes[rows[i].at] = rows[i].value;
		if (receive(&ends.expander, &sent.view, 8192, &len) != rows[i].reason)
			fail_msg("%s", rows[i].name);
		sent.bytes[rows[i].at] = was;
	}
	arrives(&ends.expander, &sent);
	assert_int_equal(
		receive(&ends.expander, &sent.view, 46 + sent.raw_len, &len), CV_CONVOY_OK);
	assert_int_equal(
		receive(&ends.expander, &sent.view, 45 + sent.raw_len, &len), CV_CONVOY_BAD_LENGTH);
	for (uint16_t cut = 0; cut < sent.view.len; cut++) {
		struct cv_view view = sent.view;

		view.len = cut;
		assert_int_not_equal(receive(&ends.expander, &view, ROOM, &len), CV_CONVOY_OK);
	}
	ends_free(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_frames_arrive),
		cmocka_unit_test(test_random_bytes_do_not_get_smaller),
		cmocka_unit_test(test_dictionaries_are_told_apart),
		cmocka_unit_test(test_what_does_not_add_up_is_refused),
	};
	unsigned count;

	write_packets(dictionary_bytes, sizeof(dictionary_bytes), &count);
	return cmocka_run_group_tests_name("compress", tests, NULL, NULL);
}
