// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/function_server.hh"

#include "engine/single_next_hop_server.hh"

namespace sim
{

FunctionServer::FunctionServer(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
    : spec_(network.nodes[index]), aggregation_(spec_.aggregation), end_(network.duration),
      hops_(spec_), routes_(spec_), ports_(ports),
      service_(spec_.service, network.seed, node_stream(index)),
      occupancy_(aggregation_.mode == Aggregation::Mode::queue ? 0 : spec_.queue_packets),
      count_(count)
{
}

void FunctionServer::count_received(const Arrival *first, size_t count)
{
	count_.received_frames += count;
	for (const Arrival *a = first; a < first + count; a++)
		count_.received_packets += a->count;
}

std::unique_ptr<Server> make_function_server(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
{
	switch (network.nodes[index].aggregation.mode) {
	case Aggregation::Mode::none:
		return std::make_unique<PlainServer>(network, index, ports, count);
	case Aggregation::Mode::table:
		if (SingleNextHopServer::can_be(network.nodes[index]))
			return std::make_unique<SingleNextHopServer>(network, index, ports, count);
		return std::make_unique<TableServer>(network, index, ports, count);
	case Aggregation::Mode::queue:
		break;
	}
	return std::make_unique<QueueServer>(network, index, ports, count);
}

} // namespace sim
