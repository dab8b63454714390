// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/result.hh"

#include <stdexcept>

#include "model/network.hh"

namespace sim
{

Result make_result(const Network &network)
{
	Result result;
	result.links.resize(network.links.size());
	result.nodes.resize(network.nodes.size());
	result.sources.resize(network.sources.size());
	size_t sinks = 0;
	for (const auto &node : network.nodes)
		sinks += node.kind == NodeKind::sink;
	result.latencies.resize(sinks);
	sinks = 0;
	for (size_t i = 0; i < network.nodes.size(); i++)
		if (network.nodes[i].kind == NodeKind::sink)
			result.nodes[i].latency = &result.latencies[sinks++];
	return result;
}

void check_conservation(const Network &network, const Result &result)
{
	for (size_t i = 0; i < network.nodes.size(); i++) {
		const auto &n = result.nodes[i];
		uint64_t out = n.dropped_packets + n.sent_packets + n.held_packets;
		if (network.nodes[i].kind == NodeKind::sink)
			out = n.delivered_packets;
		if (n.received_packets != out)
			throw std::logic_error("node '" + network.nodes[i].name + "': received " +
					       std::to_string(n.received_packets) +
					       " packets, accounted for " + std::to_string(out));
	}
	for (size_t i = 0; i < network.links.size(); i++) {
		const auto &l = result.links[i];
		uint64_t out = l.frames + l.dropped_frames + l.in_flight_frames;
		if (l.offered_frames != out)
			throw std::logic_error("link '" + network.links[i].name + "': offered " +
					       std::to_string(l.offered_frames) +
					       " frames, accounted for " + std::to_string(out));
	}
}

} // namespace sim
