// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The golden vectors, from C++: the simulator's arithmetic gives the real frames' sizes, and the
// dataplane's headers can be used as they are.
#include <cstdio>
#include <string>
#include <vector>

#include <jansson.h>

#include "convoy/walk.h"
#include "model/aggregate.hh"
#include "test/cmocka_cc.hh"

namespace
{

json_t *vectors;

std::string text_of(const json_t *vector, const char *key)
{
	return json_string_value(json_object_get(vector, key));
}

std::vector<uint8_t> bytes_of(const std::string &hex)
{
	std::vector<uint8_t> bytes;

	bytes.reserve(1 + hex.size() / 2); // one of none is in memory too, as a frame is
	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

// Sizes in the simulator are those on the wire, with FCS; overhead is that of IPv4 without tags.
void simulated_sizes_are_the_frames(void **)
{
	const sim::Aggregation aggregation;
	unsigned compared = 0;
	const json_t *vector, *packet;
	size_t i, j;

	json_array_foreach (vectors, i, vector) {
		const json_t *outer = json_object_get(vector, "outer");

		if (text_of(vector, "reason") != "ok" || json_object_get(outer, "vlans") ||
			text_of(outer, "src").find(':') != std::string::npos)
			continue;
		uint32_t bytes = aggregation.frame_overhead;
		json_array_foreach (json_object_get(vector, "packets"), j, packet) {
			auto on_the_wire = json_string_length(packet) / 2 + sim::fcs_bytes;
			bytes += sim::embedded_bytes(
				aggregation, static_cast<uint32_t>(on_the_wire));
		}
		assert_int_equal(bytes, text_of(vector, "frame").size() / 2 + sim::fcs_bytes);
		compared++;
	}
	assert_true(compared > 8);
}

void frames_are_walked(void **)
{
	const json_t *vector, *packet;
	size_t i, j;

	json_array_foreach (vectors, i, vector) {
		auto bytes = bytes_of(text_of(vector, "frame"));
		const json_t *other = json_object_get(vector, "port");
		auto port =
			static_cast<uint16_t>(other ? json_integer_value(other) : CV_CONVOY_PORT);
		cv_view views[CV_CONVOY_PACKETS_MAX], frame{};
		cv_convoy convoy{};

		cv_view_set(&frame, bytes.data(), static_cast<uint16_t>(bytes.size()));
		auto reason = cv_convoy_walk(&convoy, views, &frame, rte_cpu_to_be_16(port));
		assert_string_equal(
			cv_convoy_reason_names[reason], text_of(vector, "reason").c_str());
		if (reason != CV_CONVOY_OK)
			continue;
		const json_t *packets = json_object_get(vector, "packets");
		assert_int_equal(convoy.count, json_array_size(packets));
		json_array_foreach (packets, j, packet) {
			auto expected = bytes_of(json_string_value(packet));

			assert_int_equal(views[j].len, expected.size());
			assert_memory_equal(views[j].data, expected.data(), expected.size());
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	const CMUnitTest tests[] = {
		cmocka_unit_test(simulated_sizes_are_the_frames),
		cmocka_unit_test(frames_are_walked),
	};

	if (argc != 2) {
		std::fprintf(stderr, "usage: test_frame_vectors FILE\n");
		return 2;
	}
	json_error_t error;
	json_t *document = json_load_file(argv[1], 0, &error);
	vectors = json_object_get(document, "vectors");
	if (vectors == nullptr) {
		std::fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text);
		return 2;
	}
	int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
	json_decref(document);
	return failed;
}
