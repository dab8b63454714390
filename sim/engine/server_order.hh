// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// In which order the feed-forward engine can run its servers.
#pragma once

#include <set>
#include <vector>

#include "model/network.hh"

namespace sim
{

// A server as the order sees it.
struct Feeding {
	uint32_t node; // for messages
	std::vector<uint32_t> feeds; // servers
};

// Every server after all that feed it. Throws CycleError naming the nodes of a cycle.
std::vector<uint32_t> order_servers(const Network &network, const std::vector<Feeding> &servers);

// Which links follow which at fabric nodes, for the frames that really flow.
std::vector<std::set<uint32_t>> fabric_turns(const Network &network);

} // namespace sim
