// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which node opens a packet next, and under which label it travels on.
#pragma once

#include <cstdint>
#include <vector>

#include "model/network.hh"
#include "model/random.hh"

namespace sim
{

// The label table of one node. Destinations become slots: dense indices of the node's
// aggregation buffers, one per node that opens frames.
class NextHops
{
      public:
	struct Pick {
		uint32_t slot;
		uint16_t label;
	};

	explicit NextHops(const Node &node);

	// Chooses for one packet; round robin and weights keep state, so order matters.
	Pick pick(const Packet &packet)
	{
		Entry &entry =
			entries_[packet.label < of_label_.size() ? of_label_[packet.label] : 0];
		switch (entry.policy) {
		case Policy::round_robin: {
			Pick pick = entry.picks[entry.turn];
			entry.turn = entry.turn + 1 == entry.picks.size() ? 0 : entry.turn + 1;
			return pick;
		}
		case Policy::hash:
			return entry.picks[mix64(packet.flow) % entry.picks.size()];
		case Policy::weighted:
			break;
		}
		return pick_weighted(entry);
	}

	const std::vector<uint32_t> &slot_dst() const
	{
		return slot_dst_;
	}

      private:
	struct Entry {
		Policy policy;
		size_t turn = 0;
		std::vector<Pick> picks;
		std::vector<int64_t> weights, credits;
		int64_t total = 0;
	};

	// Smooth weighted round robin: the richest choice is taken and pays the sum of weights.
	static Pick pick_weighted(Entry &entry)
	{
		size_t best = 0;
		for (size_t i = 0; i < entry.picks.size(); i++) {
			entry.credits[i] += entry.weights[i];
			if (entry.credits[i] > entry.credits[best])
				best = i;
		}
		entry.credits[best] -= entry.total;
		return entry.picks[best];
	}

	std::vector<uint32_t> of_label_; // label -> index in entries_
	std::vector<Entry> entries_;
	std::vector<uint32_t> slot_dst_; // slot -> node index
};

// The outgoing link of a frame at a node: by destination, equal-cost links by flow.
class Routes
{
      public:
	explicit Routes(const Node &node);

	uint32_t link(uint32_t dst, uint32_t flow) const
	{
		const auto &links = *links_[dst - first_];
		if (links.size() == 1)
			return links[0];
		return links[mix64(flow ^ (static_cast<uint64_t>(dst) << 32)) % links.size()];
	}

      private:
	uint32_t first_ = 0;
	std::vector<const std::vector<uint32_t> *> links_;
};

} // namespace sim
