// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// In which order the feed-forward engine can run its stations.
#pragma once

#include <set>
#include <vector>

#include "model/network.hh"

namespace sim
{

// A station as the order sees it.
struct Feeding {
	uint32_t node; // for messages
	std::vector<uint32_t> feeds; // stations
};

// Every station after all that feed it. Throws CycleError naming the nodes of a cycle.
std::vector<uint32_t> order_stations(const Network &network, const std::vector<Feeding> &stations);

// Which links follow which at fabric nodes, for the frames that really flow.
std::vector<std::set<uint32_t>> fabric_turns(const Network &network);

} // namespace sim
