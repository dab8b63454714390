// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Eight packets at once say what one at a time says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nf/firewall/transposed.h"

#define FRAME 60

static void write_frame(uint8_t *frame, struct cv_view *view)
{
	size_t l3 = rand() % 4 == 0 ? 18 : 14;
	struct cv_ipv4 ip = {.version_ihl = 0x45,
		.total_len = rte_cpu_to_be_16((uint16_t)(FRAME - l3 - (unsigned)rand() % 16)),
		.id = (rte_be16_t)rand(),
		.fragment = rand() % 2 ? CV_IPV4_DF : 0,
		.ttl = (uint8_t)rand(),
		.proto = rand() % 2 ? IPPROTO_TCP : IPPROTO_UDP,
		.src = (rte_be32_t)rand(),
		.dst = (rte_be32_t)rand()};

	for (unsigned i = 0; i < FRAME; i++)
		frame[i] = (uint8_t)rand();
	memcpy(frame + 12, l3 == 18 ? "\x81\0\0\x05\x08\0" : "\x08\0", l3 - 12);
	memcpy(frame + l3, &ip, 20);
	cv_view_set(view, frame, FRAME);
}

// What a packet must be for the shortcut: its tuple, if it is that.
static bool common(const struct cv_view *view, struct cv_tuple_ipv4 *tuple)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(view->data + view->l3);

	if (view->proto != CV_PROTO_IPV4 ||
		cv_tuple_ipv4((const uint8_t *)ip, view->len - view->l3, tuple) != CV_TUPLE_PORTS)
		return false;
	return ip->version_ihl == 0x45 && !(ip->fragment & CV_IPV4_MF) &&
	       (ip->proto == IPPROTO_TCP || ip->proto == IPPROTO_UDP);
}

static void check(const struct cv_view *view)
{
	struct cv_firewall_transposed transposed;
	struct cv_tuple_ipv4 tuple, tuples[8];
	unsigned at = 8 * ((unsigned)rand() % 7) + (unsigned)rand() % 8;
	bool want = true;

	for (unsigned i = 0; i < 8; i++)
		want = want && common(&view[i], &tuple);
#ifndef __SSE4_1__
	want = false;
#endif
	memset(&transposed, 0x5a, sizeof(transposed));
	assert_int_equal(cv_firewall_common_x8(view, &transposed, at), want);
	assert_int_equal(cv_firewall_common_tuples_x8(view, tuples), want);
	for (unsigned i = 0; want && i < 8; i++) {
		uint16_t half[8], is[7];

		common(&view[i], &tuple);
		memcpy(half, &tuple, sizeof(half));
		for (unsigned k = 0; k < 7; k++)
			is[k] = transposed.word[k][at + i];
		tuple.proto =
			tuple.proto == IPPROTO_TCP ? CV_FIREWALL_CLASS_TCP : CV_FIREWALL_CLASS_UDP;
		assert_memory_equal(&tuples[i], &tuple, sizeof(tuple));
		assert_int_equal(is[0], tuple.proto);
		assert_memory_equal(&is[1], &half[2], 8);
		assert_int_equal(is[5], rte_be_to_cpu_16(tuple.sport));
		assert_int_equal(is[6], rte_be_to_cpu_16(tuple.dport));
	}
	for (unsigned i = 0; i < 7; i++) { // no other packet's
		if (at > 0)
			assert_int_equal(transposed.word[i][at - 1], 0x5a5a);
		if (at + 8 < CV_FIREWALL_LOOKUP_MAX)
			assert_int_equal(transposed.word[i][at + 8], 0x5a5a);
	}
}

// One of eight packets is changed in one byte, at every place and to every value.
static void one_changed_byte(void **state)
{
	uint8_t frame[8][FRAME];
	struct cv_view view[8];

	srand(8);
	for (unsigned at = 0; at < 44; at++) {
		for (unsigned value = 0; value < 256; value++) {
			unsigned lane = rand() % 8;

			for (unsigned i = 0; i < 8; i++)
				write_frame(frame[i], &view[i]);
			frame[lane][at] = (uint8_t)value;
			cv_view_set(&view[lane], frame[lane], FRAME);
			check(view);
		}
	}
}

// Packets cut at every length, in memory of their own exact size: no byte behind it is read.
static void truncated(void **state)
{
	for (uint16_t len = 0; len <= FRAME; len++) {
		for (unsigned lane = 0; lane < 8; lane++) {
			uint8_t frame[8][FRAME], *exact = malloc(len + !len);
			struct cv_view view[8];

			assert_non_null(exact);
			for (unsigned i = 0; i < 8; i++)
				write_frame(frame[i], &view[i]);
			if (len >= 20) // as long as the frame is
				frame[lane][len % 2 ? 17 : 21] = (uint8_t)(len - 14);
			memcpy(exact, frame[lane], len);
			cv_view_set(&view[lane], exact, len);
			check(view);
			free(exact);
		}
	}
}

// Tuples of either family, in memory of exactly eight.
static void tuples(void **state)
{
	static const unsigned words[] = {CV_FIREWALL_IPV4_WORDS, CV_FIREWALL_IPV6_WORDS};

	for (unsigned f = 0; f < 2; f++) {
		unsigned halves = 2 * words[f];
		uint16_t *tuple = malloc(8 * halves * sizeof(*tuple));
		struct cv_firewall_transposed transposed;

		assert_non_null(tuple);
		for (unsigned i = 0; i < 8 * halves; i++)
			tuple[i] = (uint16_t)rand();
		cv_firewall_transpose_tuples_x8(tuple, words[f], &transposed, 16);
		for (unsigned i = 0; i < 8; i++) {
			const uint16_t *half = &tuple[i * halves];

			assert_int_equal(transposed.word[0][16 + i], half[0]);
			for (unsigned k = 2; k < halves; k++)
				assert_int_equal(transposed.word[k - 1][16 + i],
					k < halves - 2 ? half[k] : rte_be_to_cpu_16(half[k]));
		}
		free(tuple);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_changed_byte),
		cmocka_unit_test(truncated),
		cmocka_unit_test(tuples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
