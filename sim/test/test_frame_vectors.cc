// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The golden vectors, from C++: the simulator's arithmetic gives the real frames' sizes, and the
// dataplane's headers can be used as they are.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "convoy/walk.h"
#include "model/aggregate.hh"
#include "test/cmocka_cc.hh"

namespace
{

nlohmann::json vectors;

std::vector<uint8_t> bytes_of(const std::string &hex)
{
	std::vector<uint8_t> bytes;

	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

// Sizes in the simulator are those on the wire, with FCS; overhead is that of IPv4 without tags.
void simulated_sizes_are_the_frames(void **)
{
	const sim::Aggregation aggregation;
	unsigned compared = 0;

	for (const auto &vector : vectors) {
		if (vector["reason"] != "ok" || vector["outer"].contains("vlans") ||
			vector["outer"]["src"].get<std::string>().find(':') != std::string::npos)
			continue;
		uint32_t bytes = aggregation.frame_overhead;
		for (const auto &packet : vector["packets"]) {
			auto on_the_wire = packet.get<std::string>().size() / 2 + sim::fcs_bytes;
			bytes += sim::embedded_bytes(
				aggregation, static_cast<uint32_t>(on_the_wire));
		}
		assert_int_equal(
			bytes, vector["frame"].get<std::string>().size() / 2 + sim::fcs_bytes);
		compared++;
	}
	assert_true(compared > 8);
}

void frames_are_walked(void **)
{
	for (const auto &vector : vectors) {
		auto bytes = bytes_of(vector["frame"]);
		uint16_t port = vector.value("port", CV_CONVOY_PORT);
		cv_view views[CV_CONVOY_PACKETS_MAX], frame{};
		cv_convoy convoy{};

		cv_view_set(&frame, bytes.data(), static_cast<uint16_t>(bytes.size()));
		auto reason = cv_convoy_walk(&convoy, views, &frame, rte_cpu_to_be_16(port));
		assert_string_equal(cv_convoy_reason_names[reason],
			vector["reason"].get<std::string>().c_str());
		if (reason != CV_CONVOY_OK)
			continue;
		assert_int_equal(convoy.count, vector["packets"].size());
		for (unsigned i = 0; i < convoy.count; i++) {
			auto packet = bytes_of(vector["packets"][i]);

			assert_int_equal(views[i].len, packet.size());
			assert_memory_equal(views[i].data, packet.data(), packet.size());
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
	std::ifstream file(argv[1]);
	vectors = nlohmann::json::parse(file)["vectors"];
	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
