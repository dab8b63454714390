// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/next_hop.hh"

#include <algorithm>

namespace sim
{

NextHops::NextHops(const Node &node)
{
	for (const auto &hop : node.next_hops) {
		if (of_label_.size() <= hop.label)
			of_label_.resize(hop.label + 1u, 0);
		of_label_[hop.label] = static_cast<uint32_t>(entries_.size());
		Entry entry;
		entry.policy = hop.policy;
		for (const auto &choice : hop.choices) {
			auto place = std::find(slot_dst_.begin(), slot_dst_.end(), choice.dst);
			auto slot = static_cast<uint32_t>(place - slot_dst_.begin());
			if (place == slot_dst_.end())
				slot_dst_.push_back(choice.dst);
			entry.picks.push_back({slot, choice.label});
			entry.weights.push_back(choice.weight);
			entry.total += choice.weight;
		}
		entry.credits.assign(entry.picks.size(), 0);
		entries_.push_back(std::move(entry));
	}
}

Routes::Routes(const Node &node)
{
	if (node.routes.empty())
		return;
	auto less = [](const Route &a, const Route &b) { return a.dst < b.dst; };
	auto [low, high] = std::minmax_element(node.routes.begin(), node.routes.end(), less);
	first_ = low->dst;
	links_.assign(high->dst - first_ + 1, nullptr);
	for (const auto &route : node.routes)
		links_[route.dst - first_] = &route.links;
}

} // namespace sim
