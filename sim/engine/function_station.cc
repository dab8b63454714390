// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/function_station.hh"

#include "engine/one_hop_station.hh"

namespace sim
{

FunctionStation::FunctionStation(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
    : spec_(network.nodes[index]), aggregation_(spec_.aggregation), end_(network.duration),
      hops_(spec_), routes_(spec_), ports_(ports),
      service_(spec_.service, network.seed, node_stream(index)),
      occupancy_(aggregation_.mode == Aggregation::Mode::queue ? 0 : spec_.queue_packets),
      count_(count)
{
}

void FunctionStation::count_received(const Arrival *first, size_t count)
{
	count_.received_frames += count;
	for (const Arrival *a = first; a < first + count; a++)
		count_.received_packets += a->count;
}

std::unique_ptr<Station> make_function_station(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
{
	switch (network.nodes[index].aggregation.mode) {
	case Aggregation::Mode::none:
		return std::make_unique<PlainStation>(network, index, ports, count);
	case Aggregation::Mode::table:
		if (OneHopStation::can_be(network.nodes[index]))
			return std::make_unique<OneHopStation>(network, index, ports, count);
		return std::make_unique<TableStation>(network, index, ports, count);
	case Aggregation::Mode::queue:
		break;
	}
	return std::make_unique<QueueStation>(network, index, ports, count);
}

} // namespace sim
