// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// Frames that get their flow when they are sent are, byte for byte, those written before.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/traffic/pool.h"
#include "gen/traffic/template.h"

#define BYTES 68u

static void parse(struct gen_spec *spec, const char *flows)
{
	struct cv_error error = {0};
	json_t *json = json_pack("{s:i, s:o}", "size", (int)BYTES + 4, "flows", //
		json_loads(flows, 0, NULL));

	json_object_set_new(json_object_get(json, "flows"), "written", json_string("sending"));
	if (gen_spec_parse(spec, json, 2, &error) < 0)
		fail_msg("%s: %s", flows, error.text);
	json_decref(json);
}

static void frames_are_as_if_written_before(void **state)
{
	static const char *const rows[] = {
		"{\"count\": 1}",
		"{\"count\": 1000}",
		"{\"count\": 1000, \"first\": 997}",
		"{\"count\": 1000, \"protocol\": \"tcp\"}",
		"{\"count\": 1000, \"vlan\": 7}",
		"{\"count\": 4000, \"src_ip\": \"10.255.255.250-11.0.0.60\", \"src_port\": "
		"\"1000-1062\"}",
		"{\"count\": 4000, \"order\": \"shuffle\", \"src_ip\": \"10.0.0.0-10.0.0.63\", "
		"\"src_port\": \"1000-1062\", \"dst_ip\": \"198.19.0.0/22\"}",
		// Sums that are 0 or all ones on the way.
		"{\"count\": 65535, \"src_ip\": \"0.0.0.0\", \"dst_ip\": \"255.255.255.255\", "
		"\"src_port\": \"1-65535\", \"dst_port\": 0}",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint32_t parts = 1; parts <= 3; parts += 2) {
			uint8_t frame[BYTES], expected[BYTES];
			struct gen_spec spec;

			parse(&spec, rows[i]);
			const uint32_t part = spec.flows.count > 1 ? parts - 1 : 0;
			const uint32_t flows = (spec.flows.count - part + parts - 1) / parts;
			bool *seen = calloc(spec.flows.count, sizeof(*seen));
			gen_template_write(frame, BYTES, &spec.flows, 5);
			struct gen_walk walk =
				gen_walk_begin(&spec, flows, part, parts, frame, BYTES);
			const struct gen_walk fresh = walk;
			print_message("%s, part %u of %u\n", rows[i], part, parts);
			for (uint32_t seq = 0; seq < 2 * flows; seq++) {
				const uint64_t j =
					(fresh.first + (uint64_t)seq * fresh.step) % flows;
				const uint32_t flow = (uint32_t)(j * parts + part);
				const struct gen_walk_tuple tuple = gen_walk_tuple(&fresh, seq);

				gen_walk_write(&walk, frame);
				gen_template_write(expected, BYTES, &spec.flows, flow);
				assert_memory_equal(frame, expected, BYTES);
				assert_memory_equal(frame + walk.l4,
					((uint8_t[]){(uint8_t)(tuple.field[GEN_WALK_SRC_PORT] >> 8),
						(uint8_t)tuple.field[GEN_WALK_SRC_PORT]}),
					2);
				assert_int_equal(seen[flow], seq >= flows);
				seen[flow] = true;
			}
			free(seen);
			gen_spec_free(&spec);
		}
	}
}

// Or what the flows' entries cost would be hidden by whoever fetches lines in order.
static void shuffled_flows_are_far_from_each_other(void **state)
{
	uint8_t frame[BYTES];

	for (uint32_t count = 100; count < 300; count++) {
		struct gen_spec spec;
		char text[64];

		snprintf(text, sizeof(text), "{\"count\": %u, \"order\": \"shuffle\"}", count);
		parse(&spec, text);
		gen_template_write(frame, BYTES, &spec.flows, 0);
		const struct gen_walk walk = gen_walk_begin(&spec, count, 0, 1, frame, BYTES);
		const uint32_t back = count - walk.step;
		assert_in_range(walk.step < back ? walk.step : back, count / 4, count / 2);
		gen_spec_free(&spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_as_if_written_before),
		cmocka_unit_test(shuffled_flows_are_far_from_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
