// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What holds of packing for any packets: they come out of the frames byte by byte, in their order,
// and no frame is larger than its next hop's MTU.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "convoy/flow.h"
#include "convoy/frame.h"

#define PORT RTE_BE16(CV_CONVOY_PORT)
#define BURST 600

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % below;
}

static struct cv_outer make_outer(struct cv_outer_config config)
{
	struct cv_error error = {""};
	struct cv_outer outer;

	if (cv_outer_set(&outer, &config, &error) != 0)
		fail_msg("%s", error.text);
	return outer;
}

// A packet in memory of its own size.
static void make_packet(struct cv_view *view, uint16_t len)
{
	uint8_t *bytes = malloc(len + !len);

	for (uint16_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)draw(256);
	cv_view_set(view, bytes, len);
}

static void same_packet(const struct cv_view *got, const struct cv_view *sent)
{
	assert_int_equal(got->len, sent->len);
	assert_memory_equal(got->data, sent->data, sent->len);
}

// Sends n packets as a sender does, and disaggregates as a receiver does.
static void round_trip(const struct cv_outer *outer, const struct cv_view *sent, uint16_t n)
{
	uint16_t done = 0;

	while (done < n) {
		uint16_t fit = cv_frame_fit(outer, sent + done, n - done);
		uint8_t *buffer = malloc(outer->frame_max), *bytes;
		struct cv_view frame = {0}, views[CV_CONVOY_PACKETS_MAX];
		struct cv_convoy convoy;
		struct cv_frame built;
		uint16_t taken = 0, len;

		cv_frame_begin(&built, outer, buffer, outer->frame_max);
		// In pieces, as packets come.
		while (taken < fit) {
			uint16_t piece = (uint16_t)(1 + draw(fit - taken));

			assert_int_equal(cv_frame_add(&built, sent + done + taken, piece), piece);
			taken += piece;
		}
		if (done + taken < n)
			assert_int_equal(cv_frame_add(&built, sent + done + taken, 1), 0);
		bytes = cv_frame_close(&built, &len);
		if (taken == 0) {
			// It is sent as it is.
			assert_null(bytes);
			assert_int_equal(len, 0);
			assert_true(sent[done].len < CV_CONVOY_PACKET_MIN ||
				    sent[done].len > outer->packet_max);
			taken = 1;
		} else if (taken == 1) {
			struct cv_view single = {.data = bytes, .len = len};

			same_packet(&single, &sent[done]);
		} else {
			assert_in_range(len, 0, outer->frame_max);
			cv_view_set(&frame, bytes, len);
			assert_int_equal(
				cv_convoy_walk(&convoy, views, &frame, PORT), CV_CONVOY_OK);
			assert_int_equal(convoy.count, taken);
			assert_int_equal(convoy.nfi, 77);
			assert_in_range(rte_be_to_cpu_16(convoy.sport), 49152, 65535);
			for (uint16_t i = 0; i < taken; i++)
				same_packet(&views[i], &sent[done + i]);
		}
		free(buffer);
		done += taken;
	}
	assert_int_equal(done, n);
}

static void any_packets_come_out_as_they_went_in(void **state)
{
	static const uint16_t mtus[] = {128, 576, 1500, 9000, 65500};
	static const uint16_t longest[] = {16, 64, 130, 600, 1514, 9000};
	static const uint16_t counts[] = {0, 1, 2, 31, 32, 33, 65, BURST};
	static struct cv_view sent[BURST];

	for (unsigned round = 0; round < 240; round++) {
		struct cv_outer_config config = {.version = round & 1 ? 4 : 6,
			.nfi = 77,
			.mtu = mtus[draw(5)],
			.vlans = (uint8_t)draw(3),
			.vlan = {{0x88a8, 20}, {0x8100, 10}}};
		struct cv_outer outer;
		uint16_t n = counts[draw(8)], most = longest[draw(6)];
		bool equal = draw(3) == 0;

		for (unsigned i = 0; i < 16; i++) {
			config.src[i] = (uint8_t)draw(256);
			config.dst[i] = (uint8_t)draw(256);
		}
		outer = make_outer(config);
		for (uint16_t i = 0; i < n; i++)
			make_packet(&sent[i],
				equal ? most : (uint16_t)(draw(20) != 0 ? 14 : 0) + draw(most));
		round_trip(&outer, sent, n);
		for (uint16_t i = 0; i < n; i++)
			free(sent[i].data);
	}
}

// A packet that the next hop would take for a convoy is not sent as it is.
static void what_looks_like_a_convoy_leaves_in_one(void **state)
{
	struct cv_outer outer = make_outer((struct cv_outer_config){.version = 4, .nfi = 7});
	struct cv_outer other = make_outer((struct cv_outer_config){.version = 6, .port = 4000});
	uint8_t inner[2][60] = {{0}}, first[200], second[300], third[300], *bytes;
	struct cv_view views[CV_CONVOY_PACKETS_MAX], packets[2] = {0}, frame = {0};
	struct cv_convoy convoy;
	struct cv_frame built;
	uint16_t len;

	for (int i = 0; i < 2; i++)
		cv_view_set(&packets[i], inner[i], sizeof(inner[i]));
	cv_frame_begin(&built, &outer, first, sizeof(first));
	assert_int_equal(cv_frame_add(&built, packets, 2), 2);
	bytes = cv_frame_close(&built, &len);
	cv_view_set(&frame, bytes, len);
	assert_true(cv_looks_like_convoy(&outer, &frame));
	assert_false(cv_looks_like_convoy(&other, &frame));

	cv_frame_begin(&built, &outer, second, sizeof(second));
	assert_int_equal(cv_frame_add(&built, &frame, 1), 1);
	bytes = cv_frame_close(&built, &len);
	assert_int_equal(len, outer.len + CV_CONVOY_PREFIX_LEN + frame.len);
	cv_view_set(&packets[0], bytes, len);
	assert_int_equal(cv_convoy_walk(&convoy, views, &packets[0], PORT), CV_CONVOY_OK);
	assert_int_equal(convoy.count, 1);
	same_packet(&views[0], &frame);

	// To a next hop with another port it is a packet like any.
	cv_frame_begin(&built, &other, third, sizeof(third));
	assert_int_equal(cv_frame_add(&built, &frame, 1), 1);
	packets[0].data = cv_frame_close(&built, &packets[0].len);
	same_packet(&packets[0], &frame);
}

static void the_mtu_is_a_limit_to_the_byte(void **state)
{
	static const struct {
		const char *name;
		uint16_t mtu, len, fit;
	} rows[] = {
		{"23 packets of 60 bytes: 32 + 23 * 62 = 1458", 1500, 60, 23},
		{"22 packets of 64 bytes: 32 + 22 * 66 = 1484", 1500, 64, 22},
		{"two that fill it: 32 + 2 * 734 = 1500", 1500, 732, 2},
		{"one byte more each", 1500, 733, 1},
		{"one that fills it", 1500, 1466, 1},
		{"one that does not fit: the sender's own MTU full", 1500, 1467, 0},
		{"1514 bytes", 1500, 1514, 0},
		{"jumbo", 9000, 1514, 5},
		{"the count has 8 bits", 9000, 14, 255},
		{"shorter than an Ethernet header", 1500, 13, 0},
		{"nothing", 1500, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_outer outer = make_outer((struct cv_outer_config){
			.version = 4, .mtu = rows[i].mtu, .vlans = 1, .vlan = {{0x8100, 1}}});
		static struct cv_view views[300];
		uint8_t bytes[1514] = {0};

		print_message("%s\n", rows[i].name);
		for (unsigned k = 0; k < 300; k++)
			cv_view_set(&views[k], bytes, rows[i].len);
		assert_int_equal(cv_frame_fit(&outer, views, 300), rows[i].fit);
		assert_int_equal(outer.frame_max, 18 + rows[i].mtu);
		assert_int_equal(rows[i].fit > 0,
			rows[i].len >= CV_CONVOY_PACKET_MIN && rows[i].len <= outer.packet_max);
	}
}

static void a_buffer_smaller_than_the_mtu_is_the_limit(void **state)
{
	struct cv_outer outer = make_outer((struct cv_outer_config){.version = 6});
	uint8_t *buffer = malloc(outer.len + 62), bytes[60] = {0};
	struct cv_view views[2];
	struct cv_frame built;
	uint16_t len;

	cv_view_set(&views[0], bytes, 60);
	cv_view_set(&views[1], bytes, 60);
	cv_frame_begin(&built, &outer, buffer, outer.len + 62);
	assert_int_equal(cv_frame_add(&built, views, 2), 1);
	assert_ptr_equal(cv_frame_close(&built, &len), buffer + outer.len + 2);
	assert_int_equal(len, 60);
	free(buffer);
}

static void a_convoy_goes_on_by_another_header(void **state)
{
	const struct cv_outer from =
		make_outer((struct cv_outer_config){.version = 4, .nfi = 1, .src = {10, 0, 0, 1}});
	const struct cv_outer to[] = {
		make_outer((struct cv_outer_config){.version = 4, .nfi = 77, .src = {10, 0, 0, 2}}),
		make_outer((struct cv_outer_config){
			.version = 6, .nfi = 77, .vlans = 2, .vlan = {{0x88a8, 1}, {0x8100, 2}}}),
		make_outer((struct cv_outer_config){.version = 4, .nfi = 77, .sport = 50000}),
	};
	const struct cv_outer narrow =
		make_outer((struct cv_outer_config){.version = 4, .mtu = 155});
	struct cv_view sent[2], views[CV_CONVOY_PACKETS_MAX], frame = {0};
	uint8_t *buffer = malloc(200);
	struct cv_convoy convoy;
	struct cv_frame built;
	uint16_t len;

	make_packet(&sent[0], 60);
	make_packet(&sent[1], 60);
	cv_frame_begin(&built, &from, buffer + 30, 170);
	assert_int_equal(cv_frame_add(&built, sent, 2), 2);
	frame.data = cv_frame_close(&built, &len);
	cv_view_set(&frame, frame.data, len);
	assert_int_equal(cv_convoy_walk(&convoy, views, &frame, PORT), CV_CONVOY_OK);
	assert_null(cv_convoy_readdress(&convoy, &narrow, 30));
	assert_null(cv_convoy_readdress(&convoy, &to[1], 27));
	for (unsigned i = 0; i < 3; i++) {
		rte_be16_t sport = convoy.sport;
		const uint8_t *packets = convoy.data + convoy.packets_at;
		uint8_t *data = cv_convoy_readdress(&convoy, &to[i], 30);

		assert_ptr_equal(data, packets - to[i].len);
		cv_view_set(&frame, data, convoy.len);
		assert_int_equal(convoy.nfi, 77);
		assert_int_equal(cv_convoy_walk(&convoy, views, &frame, PORT), CV_CONVOY_OK);
		assert_int_equal(convoy.nfi, 77);
		assert_int_equal(convoy.sport, i < 2 ? sport : RTE_BE16(50000));
		assert_int_equal(convoy.count, 2);
		same_packet(&views[0], &sent[0]);
		same_packet(&views[1], &sent[1]);
	}
	free(sent[0].data);
	free(sent[1].data);
	free(buffer);
}

static void what_no_header_can_say_is_refused(void **state)
{
	static const struct {
		struct cv_outer_config config;
		const char *error;
	} rows[] = {
		{{.version = 5}, "version: 5: must be 4 or 6"},
		{{.version = 4, .vlans = 3}, "vlans: 3: must be at most 2"},
		{{.version = 4, .vlans = 1, .vlan = {{0x9100, 1}}},
			"vlan 0: type 0x9100: must be 0x8100 or 0x88a8"},
		{{.version = 4, .mtu = 127}, "mtu: 127: must be from 128 to 65500"},
		{{.version = 4, .mtu = 65501}, "mtu: 65501: must be from 128 to 65500"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {""};
		struct cv_outer outer;

		assert_true(cv_outer_set(&outer, &rows[i].config, &error) < 0);
		assert_string_equal(error.text, rows[i].error);
	}
}

// A flow has one hash, whatever else is in its packets; many flows have many.
static void flows_are_told_apart(void **state)
{
	uint8_t v4[64] = {[12] = 8, [14] = 0x45, [23] = 17, [26] = 10, [30] = 10};
	uint8_t v6[74] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 6};
	static uint8_t used[2][16384];
	unsigned distinct[2] = {0};
	struct cv_view view;
	uint32_t hash;

	for (unsigned flow = 0; flow < 1000; flow++) {
		v4[35] = v6[55] = (uint8_t)flow;
		v4[34] = v6[54] = (uint8_t)(flow >> 8);
		cv_view_set(&view, v4, sizeof(v4));
		hash = cv_flow_hash(&view);
		distinct[0] += !used[0][hash & CV_CONVOY_SPORT_MASK]++;
		v4[22]++; // TTL
		v4[50]++; // payload
		assert_int_equal(cv_flow_hash(&view), hash);
		cv_view_set(&view, v6, sizeof(v6));
		hash = cv_flow_hash(&view);
		distinct[1] += !used[1][hash & CV_CONVOY_SPORT_MASK]++;
		v6[21]++; // hop limit
		assert_int_equal(cv_flow_hash(&view), hash);
	}
	// 1,000 thrown into 16,384 hit 970 by chance.
	assert_in_range(distinct[0], 940, 1000);
	assert_in_range(distinct[1], 940, 1000);

	// First and non-first fragments have one hash: ports are not part of it.
	cv_view_set(&view, v4, sizeof(v4));
	v4[20] = 0x20;
	hash = cv_flow_hash(&view);
	v4[21] = 0x10;
	v4[35]++;
	assert_int_equal(cv_flow_hash(&view), hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_packets_come_out_as_they_went_in),
		cmocka_unit_test(what_looks_like_a_convoy_leaves_in_one),
		cmocka_unit_test(the_mtu_is_a_limit_to_the_byte),
		cmocka_unit_test(a_buffer_smaller_than_the_mtu_is_the_limit),
		cmocka_unit_test(a_convoy_goes_on_by_another_header),
		cmocka_unit_test(what_no_header_can_say_is_refused),
		cmocka_unit_test(flows_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
