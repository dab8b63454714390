// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Aggregation by a table in the commonest case: one next node, a service time that is the same
// for all packets, and room for all. Packets are handled together as long as nothing can happen
// between them: no flush, no end of a rate window, no full frame.
#pragma once

#include "engine/function_server.hh"

namespace sim
{

class SingleNextHopServer final : public FunctionServer
{
      public:
	static bool can_be(const Node &node);

	SingleNextHopServer(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);
	void finish() override;

      private:
	// The frame that is being filled. Its packets lie where the port's frames do (or, where
	// that cannot be, here).
	struct Builder {
		Packet *packets;
		uint32_t count;
		uint32_t packet_bytes;
		Ps flush_at; // never: it holds no packet
	};

	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;
	void advance(Ps until) override;

	template <typename Item> void serve_all(const Item *items, size_t count);
	template <typename Item> size_t serve_uninterrupted(const Item *items, size_t count);
	void count_uninterrupted(uint64_t packets, uint64_t waited);
	void serve(Ps now, const Packet &packet);
	Builder begin_frame();
	Builder emit(const Builder &builder, Ps now);

	Ps work_;
	uint16_t label_;
	uint32_t dst_;
	Port *port_; // nullptr: it is not ours alone
	FrameBytes frame_;
	std::vector<Packet> own_;
	Builder builder_ = {nullptr, 0, 0, never};
	RateWindow rate_;
};

} // namespace sim
