// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The golden vectors: every frame is what they say, and its packets make the same frame again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "convoy/fragment.h"
#include "convoy/frame_inline.h"
#include "convoy/may_be.h"
#include "convoy/test_json.h"

static const json_t *vectors;
static const json_t *fragments; // for who reassembles packets
static const json_t *expanded; // for who expands; dataplane/compress/test_vectors.c

static void packets_are(const json_t *vector, const struct cv_convoy *convoy,
	const struct cv_view *views, const struct cv_view *frame)
{
	const json_t *packets = json_object_get(vector, "packets");
	const uint8_t *end = frame->data + convoy->packets_at;

	assert_int_equal(convoy->nfi, json_number(vector, "nfi"));
	assert_int_equal(convoy->count, json_array_size(packets));
	assert_ptr_equal(convoy->data, frame->data);
	assert_int_equal(convoy->len, frame->len);
	for (size_t i = 0; i < json_array_size(packets); i++) {
		size_t len;
		uint8_t *bytes = hex_bytes(json_string_value(json_array_get(packets, i)), &len);
		struct cv_view same = {.in = frame->in, .out = frame->out};

		assert_int_equal(views[i].len, len);
		assert_ptr_equal(views[i].data, end + CV_CONVOY_PREFIX_LEN);
		assert_memory_equal(views[i].data, bytes, len);
		cv_view_set(&same, views[i].data, views[i].len);
		assert_memory_equal(&same, &views[i], sizeof(same));
		end = views[i].data + views[i].len;
		free(bytes);
	}
	assert_ptr_equal(end, frame->data + frame->len);
}

static void is_the_frame(struct cv_frame *built, const struct cv_view *frame)
{
	uint16_t len;
	uint8_t *data = cv_frame_close(built, &len);

	assert_int_equal(len, frame->len);
	assert_memory_equal(data, frame->data, len);
}

// The packets are built into the frame in every way: copied there, and added to those that lie in
// the buffer already, one by one and all at once.
static void packed_is_the_frame(
	const json_t *vector, const struct cv_view *views, uint16_t n, const struct cv_view *frame)
{
	struct cv_outer_config config;
	struct cv_outer outer;
	struct cv_frame built;
	uint8_t *buffer = malloc(frame->len), *end = buffer + frame->len;
	uint8_t *begin;

	assert_true(json_outer(&config, vector));
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	begin = buffer + outer.len;
	cv_frame_begin(&built, &outer, buffer, frame->len);
	assert_int_equal(cv_frame_add(&built, views, n), n);
	is_the_frame(&built, frame);
	for (uint16_t there = 1; there <= n; there++) {
		const uint8_t *run = views[there - 1].data + views[there - 1].len;
		const uint32_t bytes = (uint32_t)(run - (frame->data + outer.len));
		const uint32_t left = frame->len - outer.len - bytes;

		for (int at_once = 0; at_once < 2; at_once++) {
			memset(buffer, 0xee, frame->len);
			memcpy(begin, frame->data + outer.len, bytes);
			if (there == 1)
				memset(begin, 0xee, CV_CONVOY_PREFIX_LEN); // not yet needed
			cv_frame_adopt(&built, &outer, begin, begin + bytes,
				(uint32_t)(end - begin) - bytes, (uint8_t)there, views);
			if (at_once)
				assert_true(cv_frame_add_run(&built, run, left, n - there));
			for (uint16_t i = there; !at_once && i < n; i++)
				assert_true(cv_frame_append(&built, &views[i]));
			is_the_frame(&built, frame);
			assert_false(cv_frame_append(&built, &views[0]));
			assert_false(cv_frame_add_run(&built, run, 1, 1));
		}
	}
	free(buffer);
}

static void frames_are_what_the_vectors_say(void **state)
{
	const json_t *vector;
	size_t i;

	assert_true(json_array_size(vectors) > 70);
	json_array_foreach (vectors, i, vector) {
		struct cv_view views[CV_CONVOY_PACKETS_MAX];
		struct cv_view frame = {.in = 3, .out = 4};
		struct cv_convoy convoy;
		enum cv_convoy_reason reason;
		unsigned port = json_number(vector, "port");
		size_t len;
		uint8_t *bytes = hex_bytes(json_text(vector, "frame"), &len);

		print_message("%s\n", json_text(vector, "name"));
		cv_view_set(&frame, bytes, (uint16_t)len);
		reason = cv_convoy_walk(&convoy, views, &frame,
			rte_cpu_to_be_16(port != 0 ? port : CV_CONVOY_PORT));
		assert_string_equal(cv_convoy_reason_names[reason], json_text(vector, "reason"));
		assert_int_equal(cv_may_be_convoy(&frame,
					 rte_cpu_to_be_16(port != 0 ? port : CV_CONVOY_PORT)),
			reason != CV_CONVOY_NOT_A_CONVOY);
		if (reason == CV_CONVOY_OK) {
			packets_are(vector, &convoy, views, &frame);
			if (json_is_true(json_object_get(vector, "packed")))
				packed_is_the_frame(vector, views, convoy.count, &frame);
		}
		free(bytes);
	}
}

// The file leaves no reason out: a reason that no vector shows is a reason nobody has tested.
static void fragments_are_what_the_vectors_say(void **state)
{
	const json_t *vector;
	size_t i;

	assert_true(json_array_size(fragments) > 0);
	json_array_foreach (fragments, i, vector) {
		const json_t *packets = json_object_get(vector, "packets");
		struct cv_view views[CV_CONVOY_PACKETS_MAX], frame = {0};
		struct cv_fragments read;
		enum cv_convoy_reason reason;
		struct cv_convoy convoy;
		uint8_t *bytes, *part;
		size_t len, part_len;

		print_message("%s\n", json_text(vector, "name"));
		bytes = hex_bytes(json_text(vector, "frame"), &len);
		cv_view_set(&frame, bytes, (uint16_t)len);
		assert_int_equal(cv_convoy_walk(&convoy, views, &frame, RTE_BE16(CV_CONVOY_PORT)),
			CV_CONVOY_BAD_TYPE);
		reason = cv_convoy_walk_fragments(
			&convoy, &read, views, &frame, RTE_BE16(CV_CONVOY_PORT));
		assert_string_equal(cv_convoy_reason_names[reason], json_text(vector, "reason"));
		if (reason != CV_CONVOY_OK) {
			free(bytes);
			continue;
		}
		assert_int_equal(convoy.nfi, json_number(vector, "nfi"));
		assert_true(read.stream == json_integer_value(json_object_get(vector, "stream")));
		assert_true(
			read.sequence == json_integer_value(json_object_get(vector, "sequence")));
		assert_int_equal(read.total, json_number(vector, "total"));
		part = hex_bytes(json_text(vector, "rest"), &part_len);
		assert_int_equal(read.rest_len, part_len);
		assert_true(part_len == 0 || memcmp(read.rest, part, part_len) == 0);
		free(part);
		part = hex_bytes(json_text(vector, "beginning"), &part_len);
		assert_int_equal(read.beginning_len, part_len);
		assert_true(part_len == 0 || memcmp(read.beginning, part, part_len) == 0);
		free(part);
		assert_int_equal(convoy.count, json_array_size(packets) + (read.rest_len > 0));
		for (size_t p = 0; p < json_array_size(packets); p++) {
			const struct cv_view *view = &views[p + (read.rest_len > 0)];

			part = hex_bytes(json_string_value(json_array_get(packets, p)), &part_len);
			assert_int_equal(view->len, part_len);
			assert_memory_equal(view->data, part, part_len);
			free(part);
		}
		free(bytes);
	}
}

static void every_reason_has_a_vector(void **state)
{
	for (int reason = 0; reason < CV_CONVOY_REASONS; reason++) {
		const json_t *vector;
		unsigned matches = 0;
		size_t i;

		json_array_foreach (vectors, i, vector)
			matches += strcmp(json_text(vector, "reason"),
					   cv_convoy_reason_names[reason]) == 0;
		json_array_foreach (fragments, i, vector)
			matches += strcmp(json_text(vector, "reason"),
					   cv_convoy_reason_names[reason]) == 0;
		json_array_foreach (expanded, i, vector)
			matches += strcmp(json_text(vector, "reason"),
					   cv_convoy_reason_names[reason]) == 0;
		if (matches == 0)
			fail_msg("no vector for %s", cv_convoy_reason_names[reason]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_what_the_vectors_say),
		cmocka_unit_test(fragments_are_what_the_vectors_say),
		cmocka_unit_test(every_reason_has_a_vector),
	};

	json_error_t error;
	json_t *root;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: test_vectors FILE\n");
		return 2;
	}
	root = json_load_file(argv[1], 0, &error);
	if (root == NULL) {
		fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text);
		return 2;
	}
	vectors = json_object_get(root, "vectors");
	expanded = json_object_get(root, "expanded");
	fragments = json_object_get(root, "fragments");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(root);
	return failed;
}
