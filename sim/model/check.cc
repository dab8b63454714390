// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Refuses networks that no engine could run; every message names the node, link or source.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "model/network.hh"

namespace sim
{

namespace
{

[[noreturn]] void refuse(const std::string &what, const std::string &name, const std::string &why)
{
	throw InputError(what + " '" + name + "': " + why);
}

void check_aggregation(const Node &node)
{
	const auto &a = node.aggregation;
	if (a.mode == Aggregation::Mode::none)
		return;
	if (a.max_packets < 1 || a.max_packets > 255)
		refuse("node", node.name,
			"max_packets must be 1 to 255: the header counts in 8 bits");
	if (a.mode == Aggregation::Mode::queue) {
		if (a.burst < 1)
			refuse("node", node.name, "burst must be at least 1 packet");
		if (a.flush < 0)
			refuse("node", node.name, "the flush time must not be negative");
		return;
	}
	if (a.window <= 0)
		refuse("node", node.name, "the rate window must be above zero");
	if (a.weight_ppm < 1 || a.weight_ppm > 1000000)
		refuse("node", node.name, "the newest window's weight must be above 0, at most 1");
	if (a.flush <= 0)
		refuse("node", node.name, "the flush time must be above zero");
	if (a.steps.empty() || a.steps[0].from_pps != 0)
		refuse("node", node.name, "the batch table must begin at 0 pps");
	for (size_t i = 0; i < a.steps.size(); i++) {
		if (a.steps[i].packets < 1)
			refuse("node", node.name, "a batch must be at least 1 packet");
		if (i && a.steps[i].from_pps <= a.steps[i - 1].from_pps)
			refuse("node", node.name, "the batch table must ascend by rate");
	}
}

void check_node(const Network &network, uint32_t index)
{
	const Node &node = network.nodes[index];
	if (node.service.per_packet < 1)
		refuse("node", node.name,
			"the service time must be at least 1 ps: is its rate zero?");
	const Service &s = node.service;
	if (std::min({s.per_byte, s.per_burst, s.per_frame, s.per_sent, s.per_single}) < 0)
		refuse("node", node.name, "service times must not be negative");
	if (node.kind != NodeKind::fabric && node.next_hops.empty() && node.kind != NodeKind::sink)
		refuse("node", node.name, "has no next hop; only a sink may end a chain");
	check_aggregation(node);
	for (const auto &route : node.routes) {
		if (route.dst >= network.nodes.size() || route.links.empty())
			refuse("node", node.name, "has a route to nowhere");
		for (auto link : route.links)
			if (link >= network.links.size() || network.links[link].from != index)
				refuse("node", node.name,
					"routes over a link that does not leave it");
	}
	std::set<uint16_t> labels;
	for (const auto &hop : node.next_hops) {
		if (!labels.insert(hop.label).second)
			refuse("node", node.name,
				"has two next hops for label " + std::to_string(hop.label));
		if (hop.choices.empty())
			refuse("node", node.name, "has a label without a next hop");
		for (const auto &choice : hop.choices) {
			if (choice.weight < 1)
				refuse("node", node.name, "a next hop's weight must be at least 1");
			if (choice.dst >= network.nodes.size() ||
				network.nodes[choice.dst].kind == NodeKind::fabric)
				refuse("node", node.name,
					"a next hop must be a function or a sink");
		}
	}
}

void check_link(const Network &network, const Link &link)
{
	if (link.from >= network.nodes.size() || link.to >= network.nodes.size())
		refuse("link", link.name, "ends at a node that does not exist");
	if (network.nodes[link.from].kind == NodeKind::sink)
		refuse("link", link.name, "leaves a sink");
	if (link.rate_bps == 0)
		refuse("link", link.name, "its rate is zero; give bits per second");
	if (link.delay < 1)
		refuse("link", link.name, "its delay must be at least 1 ps");
}

void check_source(const Network &network, const Source &source)
{
	if (source.node >= network.nodes.size() ||
		network.nodes[source.node].kind == NodeKind::fabric)
		refuse("source", source.name, "must feed a function or a sink");
	if (source.flows < 1 || source.flows > 65536)
		refuse("source", source.name, "flows must be 1 to 65536");
	if (source.share >= source.shares)
		refuse("source", source.name, "its share must be below the number of shares");
	if (source.kind == SourceKind::pcap)
		return;
	if (source.gap < 1)
		refuse("source", source.name, "its rate is zero or above 10^12 packets per second");
	if (source.sizes.empty())
		refuse("source", source.name, "has no packet size");
	for (const auto &size : source.sizes)
		if (size.bytes < 64 || size.bytes > 9018 || size.weight < 1)
			refuse("source", source.name,
				"packet sizes are 64 to 9018 bytes (with FCS), weights at least 1");
	bool on_off = source.kind == SourceKind::on_off || source.kind == SourceKind::pareto_on_off;
	if (on_off && (source.on < 1 || source.off_min < 0))
		refuse("source", source.name, "on and off times must be above zero");
	if (source.kind == SourceKind::on_off && source.off_max < source.off_min)
		refuse("source", source.name, "off time: the largest is below the smallest");
	if (source.kind == SourceKind::pareto_on_off && !(source.shape > 1))
		refuse("source", source.name, "a Pareto shape of 1 or less has no mean");
}

// Follows every label from every source: each must be known at its node, and each frame must
// find its way through the fabric. A packet as long as `largest` must fit where it is embedded.
class Walk
{
      public:
	explicit Walk(const Network &network) : network_(network)
	{
	}

	void from(const Source &source)
	{
		uint32_t largest = 64;
		for (const auto &size : source.sizes)
			largest = std::max(largest, size.bytes);
		if (network_.nodes[source.node].kind == NodeKind::sink ||
			!done_.insert({source.node, source.label, largest}).second)
			return;
		came_from_.clear();
		std::vector<State> todo = {{source.node, source.label}};
		std::vector<State> ends;
		came_from_[todo[0]];
		while (!todo.empty()) {
			State state = todo.back();
			todo.pop_back();
			if (network_.nodes[state.first].kind == NodeKind::sink)
				ends.push_back({state.first, state.second});
			else
				expand(state, largest, todo);
		}
		need_way_out(std::move(ends));
	}

      private:
	using State = std::pair<uint32_t, uint16_t>; // node, label

	// From every state that packets can be in, a sink must be reachable.
	void need_way_out(std::vector<State> todo)
	{
		std::set<State> good(todo.begin(), todo.end());
		while (!todo.empty()) {
			State state = todo.back();
			todo.pop_back();
			for (const auto &before : came_from_[state])
				if (good.insert(before).second)
					todo.push_back(before);
		}
		for (const auto &entry : came_from_)
			if (!good.count(entry.first))
				refuse("node", network_.nodes[entry.first.first].name,
					"no sink can be reached from here");
	}

	void expand(const State &state, uint32_t largest, std::vector<State> &todo)
	{
		auto [index, label] = state;
		const Node &node = network_.nodes[index];
		auto hop = std::find_if(node.next_hops.begin(), node.next_hops.end(),
			[&state](const NextHop &h) { return h.label == state.second; });
		if (hop == node.next_hops.end())
			refuse("node", node.name, "does not know label " + std::to_string(label));
		const auto &a = node.aggregation;
		if (a.mode != Aggregation::Mode::none && largest > a.mtu + l2_bytes)
			refuse("node", node.name,
				"MTU " + std::to_string(a.mtu) + " is below one packet of " +
					std::to_string(largest) +
					" bytes; raise mtu or send smaller packets");
		for (const auto &choice : hop->choices) {
			route(index, choice.dst, node.name);
			State next = {choice.dst, choice.label};
			if (came_from_.find(next) == came_from_.end())
				todo.push_back(next);
			came_from_[next].push_back(state);
		}
	}

	void route(uint32_t at, uint32_t dst, const std::string &origin)
	{
		std::set<uint32_t> on_path;
		route_step(at, dst, origin, on_path);
	}

	void route_step(
		uint32_t at, uint32_t dst, const std::string &origin, std::set<uint32_t> &on_path)
	{
		if (!routed_.insert({at, dst}).second && on_path.count(at) == 0)
			return;
		const Node &node = network_.nodes[at];
		auto route = std::find_if(node.routes.begin(), node.routes.end(),
			[dst](const Route &r) { return r.dst == dst; });
		const auto &goal = network_.nodes[dst].name;
		if (route == node.routes.end())
			refuse("node", node.name,
				"has no route to '" + goal + "' (needed by '" + origin + "')");
		if (!on_path.insert(at).second)
			refuse("node", node.name, "routes to '" + goal + "' run in a circle");
		for (auto link : route->links) {
			uint32_t next = network_.links[link].to;
			if (next == dst)
				continue;
			if (network_.nodes[next].kind != NodeKind::fabric)
				refuse("node", network_.nodes[next].name,
					"lies on the route to '" + goal +
						"' but is no fabric node");
			route_step(next, dst, origin, on_path);
		}
		on_path.erase(at);
	}

	const Network &network_;
	std::set<std::tuple<uint32_t, uint16_t, uint32_t>>
		done_; // where sources were followed from
	std::map<State, std::vector<State>> came_from_;
	std::set<std::pair<uint32_t, uint32_t>> routed_;
};

} // namespace

void check_network(const Network &network)
{
	if (network.duration < 1)
		throw InputError("network '" + network.name + "': the duration must be above zero");
	if (network.chunk < 1)
		throw InputError("network '" + network.name + "': the chunk must be above zero");
	if (network.sources.empty())
		throw InputError("network '" + network.name + "': has no source");
	for (const auto &link : network.links)
		check_link(network, link);
	for (uint32_t i = 0; i < network.nodes.size(); i++)
		check_node(network, i);
	for (const auto &source : network.sources)
		check_source(network, source);
	Walk walk(network);
	for (const auto &source : network.sources)
		walk.from(source);
}

} // namespace sim
