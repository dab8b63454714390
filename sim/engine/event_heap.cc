// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The event-heap engine: any network, cycles too. One heap, ordered by time; at equal times by
// kind (ends of transmission, timers, ends of service, arrivals), then by number (sources before
// links): an order that does not depend on the history of the heap.
#include <algorithm>
#include <memory>

#include "engine/engine.hh"
#include "engine/link_time.hh"
#include "engine/queue_node.hh"
#include "model/source.hh"

namespace sim
{

namespace
{

enum class Kind : uint32_t { sent, flush, served, arrival };

struct Event {
	Ps time;
	Kind kind;
	uint32_t number; // link; node; source; or sources + link
	uint32_t slot = 0, generation = 0;
};

struct Later {
	bool operator()(const Event &a, const Event &b) const
	{
		if (a.time != b.time)
			return a.time > b.time;
		if (a.kind != b.kind)
			return a.kind > b.kind;
		if (a.number != b.number)
			return a.number > b.number;
		return a.slot > b.slot;
	}
};

class EventHeap final : public Host
{
      public:
	explicit EventHeap(const Network &network)
	    : network_(network), result_(make_result(network)),
	      first_link_(static_cast<uint32_t>(network.sources.size())),
	      on_wire_(network.links.size())
	{
		for (uint32_t i = 0; i < network.nodes.size(); i++) {
			nodes_.push_back(nullptr);
			if (network.nodes[i].kind == NodeKind::function)
				nodes_[i] = std::make_unique<QueueNode>(
					network, i, *this, result_.nodes[i]);
			routes_.emplace_back(network.nodes[i]);
		}
		for (const auto &link : network.links) {
			ports_.emplace_back(link);
			times_.emplace_back(link);
		}
		for (uint32_t i = 0; i < first_link_; i++) {
			sources_.emplace_back(
				network.sources[i], network.seed, i, network.duration);
			add({sources_[i].time(), Kind::arrival, i});
		}
	}

	Result run(const Watch &watch)
	{
		Ps report = network_.chunk;
		while (!heap_.empty()) {
			std::pop_heap(heap_.begin(), heap_.end(), Later());
			Event event = heap_.back();
			heap_.pop_back();
			if (event.time >= report) {
				if (watch.progress)
					watch.progress(report, result_);
				if (watch.stopped()) {
					result_.complete = false;
					break;
				}
				report += network_.chunk;
			}
			result_.events++;
			handle(event);
		}
		result_.simulated = result_.complete ? network_.duration : report;
		for (auto &node : nodes_)
			if (node)
				node->finish();
		for (size_t i = 0; i < ports_.size(); i++)
			result_.links[i].in_flight_frames =
				ports_[i].frames().size() + on_wire_[i].size();
		return std::move(result_);
	}

      private:
	// Events at or after the end never happen.
	void add(const Event &event)
	{
		if (event.time >= network_.duration)
			return;
		heap_.push_back(event);
		std::push_heap(heap_.begin(), heap_.end(), Later());
	}

	void service_ends_at(uint32_t node, Ps time) override
	{
		add({time, Kind::served, node});
	}

	void flush_at(uint32_t node, uint32_t slot, uint32_t generation, Ps time) override
	{
		add({time, Kind::flush, node, slot, generation});
	}

	void send(uint32_t link, const FrameHead &head, std::vector<Packet> &packets) override
	{
		auto &count = result_.links[link];
		count.offered_frames++;
		if (ports_[link].full()) {
			count.dropped_frames++;
			count.dropped_packets += head.count;
			return;
		}
		auto &frames = ports_[link].frames();
		frames.push_back({head, {}});
		frames.back().packets.swap(packets);
		if (frames.size() == 1)
			transmit(link, head.time);
	}

	void transmit(uint32_t link, Ps now)
	{
		Ps time = times_[link].of(ports_[link].frames().front().head.bytes);
		add({now + time, Kind::sent, link});
	}

	void handle(const Event &event)
	{
		switch (event.kind) {
		case Kind::sent:
			sent(event.number, event.time);
			return;
		case Kind::flush:
			nodes_[event.number]->on_flush(event.time, event.slot, event.generation);
			return;
		case Kind::served:
			nodes_[event.number]->on_service_end(event.time);
			return;
		case Kind::arrival:
			if (event.number < first_link_)
				from_source(event.number);
			else
				from_link(event.number - first_link_, event.time);
			return;
		}
	}

	void sent(uint32_t link, Ps now)
	{
		auto &frames = ports_[link].frames();
		Frame frame = std::move(frames.front());
		frames.pop_front();
		frame.head.time = now + network_.links[link].delay;
		on_wire_[link].push_back(std::move(frame));
		add({on_wire_[link].back().head.time, Kind::arrival, first_link_ + link});
		if (!frames.empty())
			transmit(link, now);
	}

	void from_source(uint32_t index)
	{
		auto &source = sources_[index];
		single_.assign(1, source.take());
		result_.sources[index].packets++;
		result_.sources[index].bytes += single_[0].bytes;
		add({source.time(), Kind::arrival, index});
		Ps now = single_[0].born;
		deliver(network_.sources[index].node, {now, 1, single_[0].bytes, 0}, single_);
	}

	void from_link(uint32_t link, Ps now)
	{
		Frame frame = std::move(on_wire_[link].front());
		on_wire_[link].pop_front();
		result_.links[link].arrive(now, frame.head.count, frame.head.bytes);
		frame.head.time = now;
		deliver(network_.links[link].to, frame.head, frame.packets);
	}

	void deliver(uint32_t node, const FrameHead &head, std::vector<Packet> &packets)
	{
		auto &count = result_.nodes[node];
		switch (network_.nodes[node].kind) {
		case NodeKind::function:
			nodes_[node]->on_arrival(head.time, packets);
			return;
		case NodeKind::fabric:
			count.received_frames++;
			count.received_packets += head.count;
			count.sent_frames++;
			count.sent_packets += head.count;
			send(routes_[node].link(head.dst, packets[0].flow), head, packets);
			return;
		case NodeKind::sink:
			count.received_frames++;
			count.received_packets += head.count;
			count.delivered_packets += head.count;
			for (const auto &packet : packets) {
				count.delivered_bytes += packet.bytes;
				count.latency->add(head.time - packet.born);
			}
			return;
		}
	}

	const Network &network_;
	Result result_;
	uint32_t first_link_;
	std::vector<Event> heap_;
	std::vector<std::unique_ptr<QueueNode>> nodes_;
	std::vector<Routes> routes_;
	std::vector<PortQueue> ports_;
	std::vector<LinkTime> times_;
	std::vector<std::deque<Frame>> on_wire_;
	std::vector<SourceState> sources_;
	std::vector<Packet> single_;
};

} // namespace

Result run_event_heap(const Network &network, const Watch &watch)
{
	return EventHeap(network).run(watch);
}

} // namespace sim
