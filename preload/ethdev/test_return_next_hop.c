// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Who gets what is sent back: those who sent convoys to this port, however many others send some.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "convoy/frame.h"
#include "preload/ethdev/return_next_hop.h"

#define PORT RTE_BE16(CV_CONVOY_PORT)

static const uint8_t ours[6] = {2, 0, 0, 0, 0, 9}, none[6];
static const struct cv_ethdev_config config = {.port = CV_CONVOY_PORT, .mtu = 1500};
static struct cv_return_next_hops *next_hops;

static int begin(void **unused)
{
	next_hops = aligned_alloc(64, RTE_ALIGN(sizeof(*next_hops), 64));
	if (next_hops != NULL)
		memset(next_hops, 0, sizeof(*next_hops));
	return next_hops != NULL ? 0 : -1;
}

static int end(void **unused)
{
	free(next_hops);
	return 0;
}

static const struct cv_outer_config from_a = {.version = 4,
	.dst_mac = {2, 0, 0, 0, 0, 9},
	.src_mac = {2, 0, 0, 0, 0, 1},
	.src = {192, 0, 2, 1},
	.dst = {192, 0, 2, 9},
	.nfi = 7};

// Learns from a convoy with such a header; of how many packets, and how long, is no matter.
static uint32_t learn(const struct cv_outer_config *header, const uint8_t mac[6])
{
	static unsigned sizes;
	struct cv_view views[CV_CONVOY_PACKETS_MAX], packets[3] = {0}, frame = {0};
	uint8_t bytes[60] = {0}, buffer[400];
	uint16_t n = (uint16_t)(2 + sizes++ % 2);
	struct cv_convoy convoy;
	struct cv_outer outer;
	struct cv_frame built;

	assert_int_equal(cv_outer_set(&outer, header, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		cv_view_set(&packets[i], bytes, (uint16_t)(40 + sizes % 20));
	cv_frame_begin(&built, &outer, buffer, sizeof(buffer));
	assert_int_equal(cv_frame_add(&built, packets, n), n);
	frame.data = cv_frame_close(&built, &frame.len);
	cv_view_set(&frame, frame.data, frame.len);
	assert_int_equal(cv_convoy_walk(&convoy, views, &frame, PORT), CV_CONVOY_OK);
	return cv_return_next_hop_learn(next_hops, mac, &config, &convoy);
}

static uint32_t learn_number(uint32_t number)
{
	struct cv_outer_config forged = from_a;

	memcpy(forged.src, &number, sizeof(number));
	return learn(&forged, ours);
}

static void what_is_learned_is_the_way_back(void **unused)
{
	struct cv_outer_config back = from_a;
	struct cv_outer outer, expected;
	uint32_t id = learn(&from_a, ours);

	memcpy(back.dst_mac, from_a.src_mac, 6);
	memcpy(back.src_mac, from_a.dst_mac, 6);
	memcpy(back.dst, from_a.src, 16);
	memcpy(back.src, from_a.dst, 16);
	assert_int_equal(cv_outer_set(&expected, &back, NULL), 0);
	assert_int_not_equal(id, 0);
	assert_true(cv_return_next_hop_read(next_hops, id, &outer));
	assert_memory_equal(&outer, &expected, sizeof(outer));
	assert_int_equal(learn(&from_a, ours), id);
	assert_false(cv_return_next_hop_read(next_hops, 0, &outer));
}

static void only_what_was_sent_to_us_is_learned(void **unused)
{
	static const struct {
		const char *description;
		uint8_t dst[6], src[6];
		const uint8_t *mac;
		bool learned;
	} rows[] = {
		{"to us", {2, 0, 0, 0, 0, 9}, {2, 0, 0, 0, 0, 1}, ours, true},
		{"to another", {2, 0, 0, 0, 0, 8}, {2, 0, 0, 0, 0, 1}, ours, false},
		{"to all", {255, 255, 255, 255, 255, 255}, {2, 0, 0, 0, 0, 1}, ours, false},
		{"from a set", {2, 0, 0, 0, 0, 9}, {3, 0, 0, 0, 0, 1}, ours, false},
		{"our own, come back", {2, 0, 0, 0, 0, 9}, {2, 0, 0, 0, 0, 9}, ours, false},
		{"to any, without an address", {2, 0, 0, 0, 0, 8}, {2, 0, 0, 0, 0, 1}, none, true},
		{"to a set, without one", {3, 0, 0, 0, 0, 8}, {2, 0, 0, 0, 0, 1}, none, false},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct cv_outer_config header = from_a;

		print_message("%s\n", rows[i].description);
		begin(NULL);
		memcpy(header.dst_mac, rows[i].dst, 6);
		memcpy(header.src_mac, rows[i].src, 6);
		assert_int_equal(learn(&header, rows[i].mac) != 0, rows[i].learned);
		end(NULL);
	}
}

// Forged senders take the places of others, and not for good.
static void those_who_are_not_seen_make_room(void **unused)
{
	uint32_t first = learn(&from_a, ours), id;
	struct cv_outer outer;

	for (uint32_t i = 1; i < CV_RETURN_NEXT_HOPS; i++)
		assert_int_not_equal(learn_number(i), 0);
	assert_true(cv_return_next_hop_read(next_hops, first, &outer));
	id = learn_number(CV_RETURN_NEXT_HOPS);
	assert_int_not_equal(id, 0);
	assert_false(cv_return_next_hop_read(next_hops, first, &outer));
	assert_true(cv_return_next_hop_read(next_hops, id, &outer));
	id = learn(&from_a, ours);
	assert_int_not_equal(id, first);
	assert_true(cv_return_next_hop_read(next_hops, id, &outer));
}

static void who_is_seen_among_them_stays(void **unused)
{
	uint32_t id = learn(&from_a, ours);

	for (uint32_t i = 1; i < 100 * CV_RETURN_NEXT_HOPS; i++) {
		learn_number(i);
		if (i % (CV_RETURN_NEXT_HOPS / 2) == 0)
			assert_int_equal(learn(&from_a, ours), id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_learned_is_the_way_back, begin, end),
		cmocka_unit_test(only_what_was_sent_to_us_is_learned),
		cmocka_unit_test_setup_teardown(those_who_are_not_seen_make_room, begin, end),
		cmocka_unit_test_setup_teardown(who_is_seen_among_them_stays, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
