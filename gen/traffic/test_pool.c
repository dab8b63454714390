// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/traffic/convoys.h"
#include "gen/traffic/pool.h"

#define PLACES 256u // of the send queue
#define FRAME_MAX 1514u

static uint32_t frames_to_send(const struct gen_pool *pool)
{
	return pool->convoys != NULL ? pool->convoy_count : pool->count;
}

// There are frames for all places of the queue, and not many more: what is sent is to stay in the
// caches, with convoys as without.
static void frames_fill_the_queue_and_no_more(void **state)
{
	static const struct {
		const char *what, *spec;
		uint32_t most; // frames
	} rows[] = {
		{"unaggregated packets", "{\"size\": 64}", PLACES},
		{"of ten flows: whole rounds of them", "{\"size\": 64, \"flows\": {\"count\": 10}}",
			PLACES + 10},
		{"what is received is disaggregated", "{\"size\": 512, \"convoys\": 1}", PLACES},
		{"as many to a frame as asked for", "{\"size\": 64, \"convoys\": 4}", PLACES},
		{"as many as fit", "{\"size\": 64, \"convoys\": 100}", PLACES + PLACES / 8},
		{"five fit, 22 were asked for", "{\"size\": 256, \"convoys\": 22}",
			PLACES + PLACES / 4},
		{"two fit", "{\"size\": 512, \"convoys\": 22}", PLACES + PLACES / 2},
		{"two do not fit", "{\"size\": 1500, \"convoys\": 22}", PLACES + PLACES / 8},
		{"a frame that is longer than a convoy", "{\"size\": 1518, \"convoys\": 22}",
			PLACES},
		{"a smaller MTU", "{\"size\": 64, \"convoys\": {\"packets\": 22, \"mtu\": 256}}",
			2 * PLACES},
		// Enough packets to show their sizes.
		{"a mix", "{\"size\": \"imix\"}", 4800},
		{"a mix in convoys", "{\"size\": \"imix\", \"convoys\": 22}", 4800},
	};
	const struct gen_part all = {0, 1};
	struct gen_room room = {.bytes = 16 << 20, .frame_max = FRAME_MAX, .frames_min = PLACES};
	(void)state;

	room.memory = aligned_alloc(GEN_CACHE_LINE, room.bytes);
	assert_non_null(room.memory);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {0};
		json_t *json = json_loads(rows[i].spec, 0, NULL);
		struct gen_spec spec;
		struct gen_pool pool;

		if (gen_spec_parse(&spec, json, 2, &error) < 0 ||
			gen_pool_build(&pool, &spec, all, &room, &error) < 0)
			fail_msg("%s: %s", rows[i].what, error.text);
		const uint32_t frames = frames_to_send(&pool);
		if (frames < PLACES || frames > rows[i].most)
			fail_msg("%s: %u frames; expected %u to %u", rows[i].what, frames, PLACES,
				rows[i].most);
		assert_int_equal(pool.count % spec.flows.count, 0);
		gen_pool_free(&pool);
		gen_spec_free(&spec);
		json_decref(json);
	}
	free(room.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_fill_the_queue_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
