// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Aggregation by a table in the commonest case: one next node, a service time that is the same
// for all packets, and room for all. Packets are handled together as long as nothing can happen
// between them: no flush, no end of a rate window, no full frame.
#pragma once

#include "engine/function_station.hh"

namespace sim
{

class OneHopStation final : public FunctionStation
{
      public:
	static bool can_be(const Node &node);

	OneHopStation(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);
	void finish() override;

      private:
	// The frame that is being filled. Its packets lie where the port's frames do (or, where
	// that cannot be, here).
	struct Open {
		Packet *packets;
		uint32_t count;
		uint32_t packet_bytes;
		Ps flush_at; // never: it holds no packet
	};

	void lones(Lone *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;
	void settle(Ps until) override;

	template <typename Item> void serve_all(const Item *items, size_t count);
	template <typename Item> size_t serve_calmly(const Item *items, size_t count);
	void count_calmly_served(uint64_t packets, uint64_t waited);
	void serve(Ps now, const Packet &packet);
	Open opened();
	Open emit(const Open &open, Ps now);

	Ps work_;
	uint16_t label_;
	uint32_t dst_;
	Port *port_; // nullptr: it is not ours alone
	FrameBytes frame_;
	std::vector<Packet> own_;
	Open open_ = {nullptr, 0, 0, never};
	RateWindow rate_;
};

} // namespace sim
