// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Four headers at once say what one at a time says; compiled for AVX2 (test_ipv4_x8), eight, which
// must begin at one offset.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "packet/ipv4_x8.h"

#ifdef __AVX2__
#define AT_ONCE 8
#define HOP cv_ipv4_hop_x8
#else
#define AT_ONCE 4
#define HOP cv_ipv4_hop_x4
#endif

#define FRAME 60

// By port: 0 takes all but groups, 1 one address.
static struct cv_mac_match match[2];

// What a packet must be for the shortcut, said one test at a time.
static bool plain(const struct cv_view *view)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(view->data + view->l3);

	if (view->len >= 8 && cv_mac_differs(&match[view->in], view->data) != 0)
		return false;
	return view->proto == CV_PROTO_IPV4 && cv_ipv4_check(ip, view->len - view->l3) == 20 &&
	       ip->ttl > 1 && !cv_ipv4_martian(ip->src) && !cv_ipv4_martian(ip->dst) &&
	       !cv_mac_group(view->data);
}

// Whether the shortcut takes packets whose headers begin there.
static bool fit(const struct cv_view *view)
{
	bool same = true;

	for (unsigned i = 1; i < AT_ONCE; i++)
		same = same && view[i].l3 == view[0].l3;
	return same || AT_ONCE == 4;
}

// One VLAN tag or none, for a round.
static size_t draw_l3(void)
{
	return rand() % 4 == 0 ? 18 : 14;
}

// A sound frame whose identification, and so its checksum, is anything.
static void write_frame(uint8_t *frame, struct cv_view *view, size_t l3)
{
	struct cv_ipv4 ip = {.version_ihl = 0x45,
		.total_len = rte_cpu_to_be_16((uint16_t)(FRAME - l3)),
		.id = (rte_be16_t)rand(),
		.ttl = (uint8_t)(2 + rand() % 254),
		.proto = 17,
		.src = RTE_BE32(0xc0000201),
		.dst = RTE_BE32(0x0a000000) + (uint32_t)rand() * 256};

	memset(frame, 0, FRAME);
	frame[0] = frame[6] = 2;
	memcpy(frame + 12, l3 == 18 ? "\x81\0\0\x05\x08\0" : "\x08\0", l3 - 12);
	ip.checksum = cv_checksum((const uint8_t *)&ip, 20);
	memcpy(frame + l3, &ip, 20);
	view->in = 0;
	cv_view_set(view, frame, FRAME);
	view->before = rand() % 2 ? 50 : 0; // a tunnel, which is none of its business
}

// One of the frames is changed in one byte, at every place and to every value; the checksum is
// updated every other time, so that faults behind it are seen.
static void one_changed_byte(void **state)
{
	uint8_t frame[AT_ONCE][FRAME], before[AT_ONCE][FRAME];
	struct cv_view view[AT_ONCE];
	uint32_t destination[AT_ONCE];
	unsigned taken = 0, left = 0;

	srand(4);
	for (unsigned round = 0; round < 40 * 256 * 2; round++) {
		unsigned lane = rand() % AT_ONCE, at = round / 2 % 40;
		uint32_t longest = round % 50, expected = longest;
		const bool mixed = rand() % 8 == 0;
		const size_t l3 = draw_l3();
		bool want = true, got;

		for (unsigned i = 0; i < AT_ONCE; i++)
			write_frame(frame[i], &view[i], mixed ? draw_l3() : l3);
		for (unsigned i = 0; i < AT_ONCE; i++)
			view[i].in = round / 80 % 2; // as a burst's packets are, in the common case
		frame[lane][at] = (uint8_t)(round / 80);
		cv_view_set(&view[lane], frame[lane], FRAME);
		if (round % 2 == 0 && view[lane].proto == CV_PROTO_IPV4) {
			struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame[lane] + view[lane].l3);

			ip->checksum = 0;
			ip->checksum = cv_checksum((const uint8_t *)ip, 20);
		}
		memcpy(before, frame, sizeof(frame));
		for (unsigned i = 0; i < AT_ONCE; i++)
			want = want && plain(&view[i]);
		want = want && fit(view);
		got = HOP(view, match, destination, &longest);
#ifndef __SSE4_1__
		want = false;
#endif
		assert_int_equal(got, want);
		taken += got;
		left += !got;
		for (unsigned i = 0; got && i < AT_ONCE; i++) {
			struct cv_ipv4 *ip = (struct cv_ipv4 *)(before[i] + view[i].l3);
			uint32_t bytes = view[i].len - view[i].l3;

			expected = bytes > expected ? bytes : expected;
			assert_int_equal(destination[i], rte_be_to_cpu_32(ip->dst));
			cv_ipv4_ttl_decrement(ip);
		}
		assert_int_equal(longest, expected);
		assert_memory_equal(frame, before, sizeof(frame));
	}
	print_message("%u taken, %u left\n", taken, left);
	assert_true(left > 1000);
}

// Frames cut at every length, in memory of their own exact size.
static void truncated(void **state)
{
	for (uint16_t len = 0; len <= FRAME; len++) {
		for (unsigned lane = 0; lane < AT_ONCE; lane++) {
			struct cv_view view[AT_ONCE];
			uint32_t destination[AT_ONCE], longest = 0;
			uint8_t whole[AT_ONCE][FRAME], *exact = malloc(len + !len);
			const size_t l3 = draw_l3();
			bool want;

			for (unsigned i = 0; i < AT_ONCE; i++)
				write_frame(whole[i], &view[i], l3);
			memcpy(exact, whole[lane], len);
			cv_view_set(&view[lane], exact, len);
			want = plain(&view[lane]) && fit(view);
#ifndef __SSE4_1__
			want = false;
#endif
			assert_int_equal(HOP(view, match, destination, &longest), want);
			free(exact);
		}
	}
}

// Packets that came in by several ports are not taken: each has its own match.
static void several_ports(void **state)
{
	for (unsigned lane = 1; lane < AT_ONCE; lane++) {
		struct cv_view view[AT_ONCE];
		uint32_t destination[AT_ONCE], longest = 0;
		uint8_t frame[AT_ONCE][FRAME];

		for (unsigned i = 0; i < AT_ONCE; i++)
			write_frame(frame[i], &view[i], 14);
		view[lane].in = 1;
		assert_false(HOP(view, match, destination, &longest));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_changed_byte),
		cmocka_unit_test(truncated),
		cmocka_unit_test(several_ports),
	};

	match[0] = cv_mac_match_any();
	match[1] = cv_mac_match_one((const uint8_t[]){2, 0, 0, 0, 0, 0});
#ifdef __AVX2__
	if (!__builtin_cpu_supports("avx2"))
		return 77; // skipped
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
