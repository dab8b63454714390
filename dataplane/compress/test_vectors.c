// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The golden vectors of compressed frames, for a receiver that expands.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compress/compress.h"
#include "convoy/test_json.h"

#define ROOM 2048

static const json_t *vectors;

// Expands a frame and walks what it expands to. The views show bytes at `to`.
static enum cv_convoy_reason take(const struct cv_expander *expander, const struct cv_view *frame,
	struct cv_convoy *convoy, struct cv_view *views, uint8_t *to)
{
	struct cv_view whole = {0};
	uint16_t len;
	enum cv_convoy_reason reason =
		cv_expand(expander, frame, RTE_BE16(CV_CONVOY_PORT), to, ROOM, &len);

	if (reason != CV_CONVOY_OK)
		return reason;
	cv_view_set(&whole, to, len);
	return cv_convoy_walk(convoy, views, &whole, RTE_BE16(CV_CONVOY_PORT));
}

static void packets_are(
	const json_t *vector, const struct cv_convoy *convoy, const struct cv_view *views)
{
	const json_t *packets = json_object_get(vector, "packets");

	assert_int_equal(convoy->nfi, json_number(vector, "nfi"));
	assert_int_equal(convoy->count, json_array_size(packets));
	for (size_t i = 0; i < json_array_size(packets); i++) {
		size_t len;
		uint8_t *bytes = hex_bytes(json_string_value(json_array_get(packets, i)), &len);

		assert_int_equal(views[i].len, len);
		assert_memory_equal(views[i].data, bytes, len);
		free(bytes);
	}
}

static void frames_are_what_the_vectors_say(void **state)
{
	const json_t *vector;
	size_t i;

	assert_true(json_array_size(vectors) > 0);
	json_array_foreach (vectors, i, vector) {
		size_t dictionary_len, len;
		uint8_t *known = hex_bytes(json_text(vector, "dictionary"), &dictionary_len);
		uint8_t *bytes = hex_bytes(json_text(vector, "frame"), &len), *to = malloc(ROOM);
		struct cv_expander expander = {.on = true,
			.dictionaries_count = 2,
			.dictionaries = {cv_dictionary_make(NULL, 0),
				cv_dictionary_make(known, (uint32_t)dictionary_len)}};
		struct cv_view views[CV_CONVOY_PACKETS_MAX], frame = {0};
		struct cv_convoy convoy;
		enum cv_convoy_reason reason;

		print_message("%s\n", json_text(vector, "name"));
		cv_view_set(&frame, bytes, (uint16_t)len);
		reason = take(&expander, &frame, &convoy, views, to);
		assert_string_equal(cv_convoy_reason_names[reason], json_text(vector, "reason"));
		if (reason == CV_CONVOY_OK)
			packets_are(vector, &convoy, views);
		cv_dictionary_release(expander.dictionaries[0]);
		cv_dictionary_release(expander.dictionaries[1]);
		free(known);
		free(bytes);
		free(to);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(frames_are_what_the_vectors_say)};
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
	vectors = json_object_get(root, "expanded");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(root);
	return failed;
}
