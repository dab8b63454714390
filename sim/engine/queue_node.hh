// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A function node as a state machine, for engines with events: an explicit queue, a server, and
// aggregation buffers with timers. The engine calls it in this order at equal times: timers,
// end of service, arrivals by input (sources first).
#pragma once

#include <deque>
#include <vector>

#include "model/aggregate.hh"
#include "model/network.hh"
#include "model/next_hop.hh"
#include "model/result.hh"
#include "model/service.hh"

namespace sim
{

// What a node asks of the engine that runs it.
class Host
{
      public:
	virtual ~Host() = default;
	virtual void service_ends_at(uint32_t node, Ps time) = 0;
	virtual void flush_at(uint32_t node, uint32_t slot, uint32_t generation, Ps time) = 0;
	// Takes the frame's packets by swapping; hands back an empty vector.
	virtual void send(uint32_t link, const FrameHead &head, std::vector<Packet> &packets) = 0;
};

class QueueNode
{
      public:
	QueueNode(const Network &network, uint32_t index, Host &host, NodeCount &count);

	void on_arrival(Ps now, const std::vector<Packet> &packets);
	void on_service_end(Ps now);
	void on_flush(Ps now, uint32_t slot, uint32_t generation);

	// After the last event: counts what is still inside.
	void finish();

      private:
	struct Waiting {
		Packet packet;
		Ps since;
		uint32_t in_frame; // packets that its frame came with
		bool first; // of them
	};
	struct Slot {
		uint32_t dst;
		uint32_t generation;
		RateWindow rate;
		Ps flush_at; // while it holds packets
		std::vector<Packet> packets;
	};

	void start(Ps now);
	bool end_service(Ps now);
	void forward(Ps now, const Packet &packet);
	void emit(Ps now, Slot &slot);
	bool fits(const Slot &slot, const Packet &packet) const;

	const Node &spec_;
	Ps end_;
	uint32_t index_;
	Host &host_;
	NodeCount &count_;
	NextHops hops_;
	Routes routes_;
	ServiceTime service_;
	std::deque<Waiting> queue_; // not yet in service
	std::vector<Packet> serving_; // one packet, or a burst
	Ps work_ = 0; // of what is in service
	Ps waited_ = 0; // by what is in service, before
	uint64_t begun_ = 0; // frames, by the burst that is served
	bool sending_ = false; // a burst is served, and its frames are not all sent
	std::vector<Slot> slots_;
};

// The sending port of a link: what waits, and what is being sent.
class PortQueue
{
      public:
	explicit PortQueue(const Link &link) : limit_(link.queue_frames)
	{
	}

	bool full() const
	{
		return limit_ && frames_.size() >= limit_;
	}
	// The first in line is the frame being sent.
	std::deque<Frame> &frames()
	{
		return frames_;
	}

      private:
	uint64_t limit_;
	std::deque<Frame> frames_;
};

} // namespace sim
