// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Functions in the feed-forward engine: first come, first served, with no queue and no event. A
// packet's service begins when it has come and the last one is through (Lindley's recursion).
// One class for each way to aggregate; a quicker one where all packets go the same way.
#pragma once

#include <memory>
#include <vector>

#include "engine/port.hh"
#include "engine/ring.hh"
#include "engine/server.hh"
#include "model/aggregate.hh"
#include "model/next_hop.hh"
#include "model/service.hh"

namespace sim
{

class FunctionServer : public Server
{
      public:
	FunctionServer(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);

      protected:
	void count_served(Ps waited, Ps work)
	{
		count_.served_packets++;
		count_.busy += work;
		count_.waited += static_cast<uint64_t>(waited);
	}
	void count_received(const Arrival *first, size_t count);
	void count_received(size_t singles)
	{
		count_.received_frames += singles;
		count_.received_packets += singles;
	}

	void send(Ps now, uint32_t count, uint32_t bytes, uint32_t dst, const Packet *packets)
	{
		count_.sent_frames++;
		count_.sent_packets += count;
		ports_[routes_.link(dst, packets->flow)].send(now, count, bytes, dst, packets);
	}

	const Node &spec_;
	const Aggregation &aggregation_;
	Ps end_;
	NextHops hops_;
	Routes routes_;
	std::vector<Port> &ports_;
	ServiceTime service_;
	Occupancy occupancy_;
	NodeCount &count_;
	Ps done_ = 0; // when the last packet (or burst) taken is served
};

// Aggregation::Mode::none: every packet leaves unaggregated.
class PlainServer final : public FunctionServer
{
      public:
	PlainServer(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);

      private:
	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;
	size_t serve(Single *singles, size_t count);
	size_t serve_uniform(Single *singles, size_t count);
	void forward(const Single *singles, size_t count);

	bool uniform_; // fixed service for all packets, and room for all
	std::vector<Port *> port_of_slot_; // each slot's own; empty when slots share links
	std::vector<Fifo<Single>> by_slot_;
	Fifo<Single> disaggregated_; // packets out of frames
};

// Packets for one next node, that wait for others.
struct Slot {
	Slot(uint32_t to, const Aggregation &a)
	    : dst(to), bytes(a.frame_overhead), rate(a), packets(a.max_packets)
	{
	}

	uint32_t dst;
	uint32_t bytes;
	Ps flush_at = never; // while it holds packets
	RateWindow rate;
	uint32_t held = 0;
	std::vector<Packet> packets; // as long as the longest frame
};

// What aggregating functions share: buffers, one for each next node.
class SlotsServer : public FunctionServer
{
      public:
	SlotsServer(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);
	void finish() override;

      protected:
	// since: from when the frame's wait counts, if this packet is its first. Returns that.
	bool put(Slot &slot, const Packet &packet, uint16_t label, Ps now, Ps since);
	void emit(Slot &slot, Ps now);
	void flush_before(Ps until);
	void advance(Ps until) override;

	std::vector<Slot> slots_;
	Ps next_flush_ = never; // no slot's is earlier
};

// Aggregation::Mode::table: packets per frame follow the rate.
class TableServer final : public SlotsServer
{
      public:
	using SlotsServer::SlotsServer;

      private:
	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;
	void serve(Ps now, const Packet &packet);
	void aggregate(const Packet &packet);
};

// Aggregation::Mode::queue: what is there when the server comes round is aggregated, and may wait.
class QueueServer final : public SlotsServer
{
      public:
	using SlotsServer::SlotsServer;
	void finish() override;

      private:
	struct Waiting {
		Packet packet;
		Ps since;
		uint32_t in_frame; // packets that its frame came with
		bool first; // of them
	};

	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;
	void advance(Ps until) override;
	void arrive(Ps now, const Packet *packets, uint32_t count);
	void start_burst(Ps start);

	Ring<Waiting> waiting_;
	uint64_t serving_ = 0;
	std::vector<Packet> burst_;
	Ps sent_ = 0; // when the last burst's frames are sent, too
};

// The quickest that can do what the node's specification asks for.
std::unique_ptr<Server> make_function_server(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count);

} // namespace sim
