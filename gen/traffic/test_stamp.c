// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gen/traffic/stamp.h"
#include "gen/traffic/template.h"

// RFC 1071 the slow way, over a whole region; 0xffff when the checksum inside is right.
static uint32_t checksum_state(const uint8_t *at, uint32_t bytes, uint32_t start)
{
	uint32_t total = start;

	for (uint32_t i = 0; i < bytes; i++)
		total += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
	while (total > 0xffff)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

// Whether the IP header's and the UDP or TCP checksum of a frame are right.
static void assert_checksums(const uint8_t *frame, uint32_t bytes)
{
	uint32_t l3 = 12;

	if (frame[l3] == 0x81 && frame[l3 + 1] == 0)
		l3 += 4;
	const bool ip6 = frame[l3] == 0x86;
	l3 += 2;
	const uint32_t header = ip6 ? 40 : 20;
	const uint32_t length = bytes - l3 - header;
	const uint32_t protocol = ip6 ? frame[l3 + 6] : frame[l3 + 9];
	const uint32_t addresses = ip6 ? 8 : 12;

	if (!ip6)
		assert_int_equal(checksum_state(frame + l3, 20, 0), 0xffff);
	const uint32_t pseudo =
		checksum_state(frame + l3 + addresses, header - addresses, length + protocol);
	assert_int_equal(checksum_state(frame + l3 + header, length, pseudo), 0xffff);
}

static const struct {
	const char *what;
	uint32_t bytes;
	struct gen_flows flows;
} frames[] = {
	{"smallest IPv4/UDP frame", 60, {.count = 1, .ip = 4, .protocol = GEN_UDP}},
	{"smallest with a VLAN tag: the stamp just fits", 60,
		{.count = 1, .ip = 4, .protocol = GEN_UDP, .tagged = true}},
	{"odd length: the last byte is not the stamp's", 61,
		{.count = 1, .ip = 4, .protocol = GEN_UDP}},
	{"odd length with a tag", 75, {.count = 1, .ip = 4, .protocol = GEN_TCP, .tagged = true}},
	{"IPv4/TCP", 68, {.count = 1, .ip = 4, .protocol = GEN_TCP}},
	{"IPv6/UDP", 76, {.count = 1, .ip = 6, .protocol = GEN_UDP}},
	{"IPv6/TCP with a tag, large and odd", 1517,
		{.count = 1, .ip = 6, .protocol = GEN_TCP, .tagged = true}},
};

static void checksums_stay_valid_whatever_is_stamped(void **state)
{
	static const struct gen_stamp stamps[] = {
		{0, 0, 0, 0},
		{1, 1, 1, 0},
		{GEN_STAMP_TICKS_MASK, UINT32_MAX, 0xffff, 0},
		{0x123456789abc, 0xdeadbeef, 0x55aa, 0},
		{0xffff0000, 0xffff, 0, 0},
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const uint32_t bytes = frames[i].bytes;
		uint8_t frame[2048];
		struct gen_flows flows = frames[i].flows;

		print_message("%s\n", frames[i].what);
		flows.src_ip.span = flows.dst_ip.span = flows.src_port.span = flows.dst_port.span =
			flows.vlan.span = 1;
		flows.src_ip.low[15] = 9;
		flows.vlan.low[15] = 7;
		assert_in_range(bytes, gen_template_min(&flows), sizeof(frame));
		gen_template_write(frame, bytes, &flows, 0);
		assert_checksums(frame, bytes);

		uint8_t *at = frame + gen_stamp_offset(bytes);
		const uint16_t sum = gen_stamp_sum(at);
		assert_true(gen_sum_equal(sum, 0));
		for (size_t j = 0; j < sizeof(stamps) / sizeof(stamps[0]); j++) {
			gen_stamp_write(at, stamps[j].magic, stamps[j].seq, stamps[j].ticks, sum);
			assert_checksums(frame, bytes);
			const struct gen_stamp read = gen_stamp_read(at);
			assert_int_equal(read.magic, stamps[j].magic);
			assert_int_equal(read.seq, stamps[j].seq);
			assert_int_equal(read.ticks, stamps[j].ticks);
			assert_true(gen_sum_equal(read.sum, sum));
		}
	}
}

// As in a replayed capture: what lay at the stamp's place had a sum of its own.
static void keeps_any_sum(void **state)
{
	uint8_t at[GEN_STAMP_BYTES];

	for (uint32_t seed = 0; seed < 1000; seed++) {
		for (uint32_t i = 0; i < sizeof(at); i++)
			at[i] = (uint8_t)(seed * 2654435761u >> (i % 24));
		const uint16_t sum = gen_stamp_sum(at);
		gen_stamp_write(at, (uint16_t)(seed * 7), seed * 77777, seed * 0x123456789ull, sum);
		assert_true(gen_sum_equal(gen_stamp_sum(at), sum));
	}
}

// As each of them by itself would be written, whatever the sums carry into.
static void a_run_of_stamps(void **state)
{
	static const struct gen_stamp firsts[] = {
		{0, 0, 0, 0},
		{4711, 0xfff0, 0x55aa, 0},
		{GEN_STAMP_TICKS_MASK, UINT32_MAX - 1000, 0xffff, 0},
		{0x123456789abc, 0x1fffff00, 1, 0},
	};

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		const struct gen_stamp *first = &firsts[i];
		struct gen_stamp_run written =
			gen_stamp_run(first->magic, first->seq, first->ticks);
		struct gen_stamp_run read = written;

		for (uint32_t k = 0; k < 1000; k++) {
			uint8_t one[GEN_STAMP_BYTES], other[GEN_STAMP_BYTES];
			const uint16_t sum = k % 3 == 0 ? 0 : (uint16_t)(k * 40503);
			struct gen_stamp_run again = read;

			gen_stamp_run_write(&written, one, sum);
			gen_stamp_write(other, first->magic, first->seq + k, first->ticks, sum);
			assert_memory_equal(one, other, sizeof(one));
			assert_int_equal(gen_stamp_run_differs(&read, one) == 0, sum == 0);
			one[k % sizeof(one)] ^= (uint8_t)(1 << k % 8);
			assert_true(gen_stamp_run_differs(&again, one) != 0);
		}
	}
}

static void a_flipped_bit_shows(void **state)
{
	uint8_t at[GEN_STAMP_BYTES] = {0};

	gen_stamp_write(at, 0x1234, 42, 4711, 0);
	for (uint32_t bit = 0; bit < 8 * GEN_STAMP_BYTES; bit++) {
		at[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(gen_sum_equal(gen_stamp_read(at).sum, 0));
		at[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void flows_walk_their_ranges(void **state)
{
	static const struct {
		const char *what;
		uint32_t flow;
		uint8_t address[4];
		uint16_t port;
	} rows[] = {
		{"first", 0, {10, 0, 0, 255}, 1000},
		{"carries into the next byte", 1, {10, 0, 1, 0}, 1001},
		{"wraps in its range, each range for itself", 3, {10, 0, 0, 255}, 1003},
		{"port wraps", 5, {10, 0, 1, 1}, 1000},
	};
	struct gen_flows flows = {.count = 15, .ip = 4, .protocol = GEN_UDP};
	uint8_t frame[60];

	flows.dst_ip.span = flows.dst_port.span = flows.vlan.span = 1;
	memcpy(flows.src_ip.low + 12, (uint8_t[]){10, 0, 0, 255}, 4);
	flows.src_ip.span = 3;
	flows.src_port.low[14] = 1000 >> 8;
	flows.src_port.low[15] = 1000 & 255;
	flows.src_port.span = 5;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].what);
		gen_template_write(frame, sizeof(frame), &flows, rows[i].flow);
		assert_memory_equal(frame + 26, rows[i].address, 4);
		assert_int_equal(frame[34] << 8 | frame[35], rows[i].port);
		assert_checksums(frame, sizeof(frame));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_stay_valid_whatever_is_stamped),
		cmocka_unit_test(keeps_any_sum),
		cmocka_unit_test(a_run_of_stamps),
		cmocka_unit_test(a_flipped_bit_shows),
		cmocka_unit_test(flows_walk_their_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
