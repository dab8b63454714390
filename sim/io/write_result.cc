// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "io/network_json.hh"

#include <ostream>

#include <nlohmann/json.hpp>

namespace sim
{

namespace
{

using OrderedJson = nlohmann::ordered_json;

double seconds(double ps)
{
	return ps / static_cast<double>(ps_per_s);
}

// Value below which `share` of the counts lie: the middle of its bucket.
double quantile_s(const TimeHistogram &histogram, double share)
{
	uint64_t before = 0;
	auto wanted = static_cast<uint64_t>(share * static_cast<double>(histogram.count()));
	for (uint32_t i = 0; i < histogram.buckets().size(); i++) {
		before += histogram.buckets()[i];
		if (before > wanted)
			return seconds(0.5 * static_cast<double>(TimeHistogram::lowest(i) +
								 TimeHistogram::lowest(i + 1)));
	}
	return seconds(static_cast<double>(histogram.max()));
}

OrderedJson latency_json(const TimeHistogram &histogram)
{
	if (histogram.count() == 0)
		return nullptr; // missing is missing, not zero
	OrderedJson buckets = OrderedJson::array();
	for (uint32_t i = 0; i < histogram.buckets().size(); i++)
		if (histogram.buckets()[i])
			buckets.push_back({TimeHistogram::lowest(i), histogram.buckets()[i]});
	return {{"mean_s", seconds(histogram.mean())}, {"p50_s", quantile_s(histogram, 0.5)},
		{"p90_s", quantile_s(histogram, 0.9)}, {"p99_s", quantile_s(histogram, 0.99)},
		{"p999_s", quantile_s(histogram, 0.999)},
		{"max_s", seconds(static_cast<double>(histogram.max()))}, {"buckets_ps", buckets}};
}

OrderedJson link_json(const Network &network, size_t index, const LinkCount &count)
{
	const Link &link = network.links[index];
	OrderedJson sizes = OrderedJson::object();
	for (const auto &[bytes, frames] : count.sizes.counts())
		sizes[std::to_string(bytes)] = frames;
	return {{"name", link.name}, {"from", network.nodes[link.from].name},
		{"to", network.nodes[link.to].name}, {"frames", count.frames},
		{"packets", count.packets}, {"bytes", count.bytes},
		{"offered_frames", count.offered_frames}, {"dropped_frames", count.dropped_frames},
		{"dropped_packets", count.dropped_packets},
		{"in_flight_frames", count.in_flight_frames}, {"sizes", sizes},
		{"digest", count.digest}};
}

OrderedJson node_json(const Node &node, const NodeCount &count, double simulated)
{
	static const char *const kinds[] = {"function", "fabric", "sink"};
	OrderedJson json = {{"name", node.name}, {"kind", kinds[static_cast<int>(node.kind)]},
		{"received_frames", count.received_frames},
		{"received_packets", count.received_packets}};
	if (node.kind == NodeKind::sink) {
		json["delivered_packets"] = count.delivered_packets;
		json["delivered_bytes"] = count.delivered_bytes;
		json["latency"] = latency_json(*count.latency);
		return json;
	}
	json["dropped_packets"] = count.dropped_packets;
	json["sent_frames"] = count.sent_frames;
	json["sent_packets"] = count.sent_packets;
	json["held_packets"] = count.held_packets;
	if (node.kind == NodeKind::function) {
		auto served = static_cast<double>(count.served_packets);
		json["served_packets"] = count.served_packets;
		json["busy_share"] = static_cast<double>(count.busy) / simulated;
		json["mean_wait_s"] =
			count.served_packets
				? OrderedJson(seconds(static_cast<double>(count.waited) / served))
				: OrderedJson(nullptr);
	}
	return json;
}

} // namespace

void write_result(
	std::ostream &out, const Network &network, const Result &result, const RunFacts &facts)
{
	auto simulated = static_cast<double>(result.simulated);
	uint64_t packets = 0;
	OrderedJson sources = OrderedJson::array();
	for (size_t i = 0; i < network.sources.size(); i++) {
		packets += result.sources[i].packets;
		sources.push_back(
			{{"name", network.sources[i].name}, {"packets", result.sources[i].packets},
				{"bytes", result.sources[i].bytes}});
	}
	OrderedJson json = {{"schema", "convoy.sim.result/1"}, {"name", network.name},
		{"engine", facts.engine}, {"seed", network.seed}, {"complete", result.complete},
		{"duration_s", seconds(static_cast<double>(network.duration))},
		{"simulated_s", seconds(simulated)}, {"original_packets", packets},
		{"run", {{"wall_s", facts.wall_s}, {"cpu_s", facts.cpu_s},
				{"peak_bytes", facts.peak_bytes},
				{"packets_per_cpu_s",
					facts.cpu_s > 0 ? static_cast<double>(packets) / facts.cpu_s
							: 0}}}};
	json["sources"] = sources;
	for (size_t i = 0; i < network.nodes.size(); i++)
		json["nodes"].push_back(
			node_json(network.nodes[i], result.nodes[i], simulated ? simulated : 1));
	json["links"] = OrderedJson::array();
	for (size_t i = 0; i < network.links.size(); i++)
		json["links"].push_back(link_json(network, i, result.links[i]));
	out << json.dump() << '\n';
}

} // namespace sim
