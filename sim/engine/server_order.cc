// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/server_order.hh"

#include <algorithm>
#include <optional>

namespace sim
{

namespace
{

// missing: of each server, how many that feed it were not run.
[[noreturn]] void refuse_cycle(const Network &network, const std::vector<Feeding> &servers,
	const std::vector<uint32_t> &missing)
{
	// Every server left is on a cycle or behind one: walk back until one repeats.
	std::vector<uint32_t> feeder(servers.size(), UINT32_MAX);
	uint32_t at = 0;
	for (uint32_t i = 0; i < servers.size(); i++) {
		if (!missing[i])
			continue;
		at = i;
		for (auto to : servers[i].feeds)
			feeder[to] = i;
	}
	std::vector<bool> seen(servers.size(), false);
	while (!seen[at]) {
		seen[at] = true;
		at = feeder[at];
	}
	std::string names = network.nodes[servers[at].node].name;
	for (uint32_t i = feeder[at];; i = feeder[i]) {
		names = network.nodes[servers[i].node].name + " -> " + names;
		if (i == at)
			break;
	}
	throw CycleError("network '" + network.name + "': cycle " + names +
			 "; the feed-forward engine needs an acyclic network, use --engine "
			 "event-heap");
}

} // namespace

// Kahn's algorithm.
std::vector<uint32_t> order_servers(const Network &network, const std::vector<Feeding> &servers)
{
	std::vector<uint32_t> missing(servers.size(), 0), order;
	for (const auto &server : servers)
		for (auto to : server.feeds)
			missing[to]++;
	for (uint32_t i = 0; i < servers.size(); i++)
		if (missing[i] == 0)
			order.push_back(i);
	for (size_t done = 0; done < order.size(); done++)
		for (auto to : servers[order[done]].feeds)
			if (--missing[to] == 0)
				order.push_back(to);
	if (order.size() < servers.size())
		refuse_cycle(network, servers, missing);
	return order;
}

// Which link follows which at fabric nodes, for the frames that really flow.
std::vector<std::set<uint32_t>> fabric_turns(const Network &network)
{
	size_t links = network.links.size();
	std::vector<std::set<uint32_t>> turns(links);
	std::vector<std::pair<uint32_t, uint32_t>> todo; // (link, dst)
	std::vector<std::vector<uint32_t>> seen(links);
	auto follow = [&](uint32_t node, uint32_t dst, std::optional<uint32_t> from) {
		for (const auto &route : network.nodes[node].routes) {
			if (route.dst != dst)
				continue;
			for (auto link : route.links) {
				if (from)
					turns[*from].insert(link);
				auto &dsts = seen[link];
				if (std::find(dsts.begin(), dsts.end(), dst) == dsts.end()) {
					dsts.push_back(dst);
					todo.push_back({link, dst});
				}
			}
		}
	};
	for (uint32_t i = 0; i < network.nodes.size(); i++)
		for (const auto &hop : network.nodes[i].next_hops)
			for (const auto &choice : hop.choices)
				follow(i, choice.dst, std::nullopt);
	while (!todo.empty()) {
		auto [link, dst] = todo.back();
		todo.pop_back();
		if (network.links[link].to != dst)
			follow(network.links[link].to, dst, link);
	}
	return turns;
}

} // namespace sim
