// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The feed-forward engine. When no packet ever comes back to where it was, nodes can run one
// after the other, each a chunk of time: first all that feed it, then the node itself. There is
// no event heap; a queue is a recursion on times (Lindley's), and a link a sorted stream.
//
// Stations are what is run in order: functions, sinks, and the sending ports of fabric nodes
// (each alone, so that up and down the same switch is no cycle).
#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "engine.hh"
#include "link_time.hh"
#include "merge.hh"
#include "ring.hh"
#include "../model/aggregate.hh"
#include "../model/next_hop.hh"
#include "../model/service.hh"
#include "../model/source.hh"

namespace sim
{

namespace
{

// Frames in order of arrival, from one sender to one station.
class Stream
{
      public:
	Ps time() const
	{
		return head_at_ < heads_.size() ? heads_[head_at_].time : never;
	}
	const FrameHead &head() const
	{
		return heads_[head_at_];
	}
	const Packet *packets() const
	{
		return &packets_[packet_at_];
	}
	void pop()
	{
		packet_at_ += heads_[head_at_++].count;
	}
	void push(const FrameHead &head, const Packet *packets)
	{
		heads_.push_back(head);
		packets_.insert(packets_.end(), packets, packets + head.count);
	}
	// Forgets what was read, once it is the larger part.
	void compact()
	{
		if (head_at_ < heads_.size() / 2)
			return;
		heads_.erase(heads_.begin(), heads_.begin() + static_cast<ptrdiff_t>(head_at_));
		packets_.erase(
			packets_.begin(), packets_.begin() + static_cast<ptrdiff_t>(packet_at_));
		head_at_ = packet_at_ = 0;
	}

      private:
	std::vector<FrameHead> heads_;
	std::vector<Packet> packets_;
	size_t head_at_ = 0, packet_at_ = 0;
};

// The sending port and the wire behind it. Its far end is a station's stream, or, at a fabric
// node, one of several: chosen here, because the choice needs only the frame.
class Port
{
      public:
	Port(const Link &link, LinkCount &count, Ps end)
	    : time_(link), delay_(link.delay), end_(end), queue_(link.queue_frames), count_(&count)
	{
	}

	void ends_at(Stream *stream)
	{
		single_ = stream;
	}
	// by_exit: in the order of the fabric node's outgoing links; exit_of: link -> that order.
	void ends_at(const Routes *routes, const std::vector<uint32_t> *exit_of,
		std::vector<Stream *> by_exit)
	{
		routes_ = routes;
		exit_of_ = exit_of;
		by_exit_ = std::move(by_exit);
	}

	// head.time is when the frame is handed over, never earlier than the last one's.
	void send(FrameHead head, const Packet *packets)
	{
		count_->offered_frames++;
		if (queue_.full(head.time)) {
			count_->dropped_frames++;
			count_->dropped_packets += head.count;
			return;
		}
		free_at_ = std::max(free_at_, head.time) + time_.of(head.bytes);
		queue_.enter(free_at_);
		head.time = free_at_ + delay_;
		if (head.time >= end_) {
			count_->in_flight_frames++;
			return;
		}
		count_->arrive(head);
		if (routes_)
			single_ = by_exit_[(*exit_of_)[routes_->link(head.dst, packets->flow)]];
		single_->push(head, packets);
	}

      private:
	LinkTime time_;
	Ps delay_, end_;
	Ps free_at_ = 0;
	Occupancy queue_;
	LinkCount *count_;
	Stream *single_ = nullptr;
	const Routes *routes_ = nullptr;
	const std::vector<uint32_t> *exit_of_ = nullptr;
	std::vector<Stream *> by_exit_;
};

// Something that is run a chunk at a time after everything that feeds it.
class Station
{
      public:
	virtual ~Station() = default;

	// The inputs in order of precedence: sources, then streams. Called once, before run().
	void inputs(std::vector<std::pair<SourceState *, SourceCount *>> sources,
		std::vector<Stream *> streams)
	{
		sources_ = std::move(sources);
		streams_ = std::move(streams);
		merge_.emplace(sources_.size() + streams_.size());
	}

	// Handles everything that comes, or becomes due, before `until`.
	void run(Ps until)
	{
		auto sources = static_cast<uint32_t>(sources_.size());
		for (uint32_t i = 0; i < sources; i++)
			merge_->set(i, sources_[i].first->time());
		for (uint32_t i = 0; i < streams_.size(); i++)
			merge_->set(sources + i, streams_[i]->time());
		merge_->rebuild();
		for (;;) {
			Ps now = merge_->time();
			if (now >= until)
				break;
			uint32_t input = merge_->first();
			if (input < sources) {
				auto &[source, count] = sources_[input];
				Packet packet = source->take();
				count->packets++;
				count->bytes += packet.bytes;
				arrive({now, 1, packet.bytes, 0}, &packet);
				merge_->update(input, source->time());
			} else {
				Stream &stream = *streams_[input - sources];
				arrive(stream.head(), stream.packets());
				stream.pop();
				merge_->update(input, stream.time());
			}
		}
		settle(until);
		for (auto *stream : streams_)
			stream->compact();
	}

	// After the last run: counts what is still inside.
	virtual void finish()
	{
	}

      protected:
	virtual void arrive(const FrameHead &head, const Packet *packets) = 0;
	virtual void settle(Ps)
	{
	}

      private:
	std::vector<std::pair<SourceState *, SourceCount *>> sources_;
	std::vector<Stream *> streams_;
	std::optional<Merge> merge_;
};

class SinkStation final : public Station
{
      public:
	explicit SinkStation(NodeCount &count) : count_(count)
	{
	}

      private:
	void arrive(const FrameHead &head, const Packet *packets) override
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		count_.delivered_packets += head.count;
		for (uint32_t i = 0; i < head.count; i++) {
			count_.delivered_bytes += packets[i].bytes;
			count_.latency->add(head.time - packets[i].born);
		}
	}

	NodeCount &count_;
};

// One sending port of a fabric node: frames pass whole, the link's queue is the only queue.
class FabricStation final : public Station
{
      public:
	FabricStation(Port &port, NodeCount &count) : port_(port), count_(count)
	{
	}

      private:
	void arrive(const FrameHead &head, const Packet *packets) override
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		count_.sent_frames++;
		count_.sent_packets += head.count;
		port_.send(head, packets);
	}

	Port &port_;
	NodeCount &count_;
};

class FunctionStation final : public Station
{
      public:
	FunctionStation(
		const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
	    : spec_(network.nodes[index]), aggregation_(spec_.aggregation), end_(network.duration),
	      hops_(spec_), routes_(spec_), ports_(ports),
	      service_(spec_.service, network.seed, node_stream(index)),
	      occupancy_(aggregation_.mode == Aggregation::Mode::queue ? 0 : spec_.queue_packets),
	      count_(count)
	{
		for (auto dst : hops_.slot_dst())
			slots_.push_back(Slot(dst, aggregation_));
	}

	void finish() override
	{
		for (auto &slot : slots_)
			count_.held_packets += slot.packets.size();
		count_.held_packets += waiting_.size();
	}

      private:
	// Packets on their way to one next node, waiting for company.
	struct Slot {
		Slot(uint32_t to, const Aggregation &a) : dst(to), bytes(a.frame_overhead), rate(a)
		{
		}

		uint32_t dst;
		uint32_t bytes;
		uint32_t generation = 0; // of the frame being filled: makes old timers void
		RateWindow rate;
		std::vector<Packet> packets;
	};
	struct Timer {
		Ps at;
		uint32_t slot;
		uint32_t generation;
	};
	struct Waiting {
		Packet packet;
		Ps since;
	};

	void arrive(const FrameHead &head, const Packet *packets) override
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		switch (aggregation_.mode) {
		case Aggregation::Mode::none:
			serve<false>(head.time, packets, head.count);
			return;
		case Aggregation::Mode::table:
			serve<true>(head.time, packets, head.count);
			return;
		case Aggregation::Mode::queue:
			arrive_burst(head.time, packets, head.count);
			return;
		}
	}

	void settle(Ps until) override
	{
		while (!timers_.empty() && timers_.front().at < until)
			fire();
		while (!waiting_.empty() && done_ < until)
			start_burst(done_);
	}

	// First come, first served: the queue is the recursion on done_.
	template <bool aggregate> void serve(Ps now, const Packet *packets, uint32_t count)
	{
		for (const Packet *p = packets; p < packets + count; p++) {
			if (occupancy_.full(now)) {
				count_.dropped_packets++;
				continue;
			}
			Ps start = std::max(now, done_);
			Ps work = service_.next(p->bytes);
			done_ = start + work;
			occupancy_.enter(done_);
			if (done_ >= end_) {
				count_.held_packets++;
				continue;
			}
			count_served(start - now, work);
			if (aggregate)
				gather(*p);
			else
				send_alone(*p);
		}
	}

	void count_served(Ps waited, Ps work)
	{
		count_.served_packets++;
		count_.busy += work;
		count_.waited += static_cast<uint64_t>(waited);
	}

	void send_alone(const Packet &packet)
	{
		auto pick = hops_.pick(packet);
		Packet out = packet;
		out.label = pick.label;
		send({done_, 1, packet.bytes, slots_[pick.slot].dst}, &out);
	}

	void send(const FrameHead &head, const Packet *packets)
	{
		count_.sent_frames++;
		count_.sent_packets += head.count;
		ports_[routes_.link(head.dst, packets->flow)].send(head, packets);
	}

	// Puts a packet served at done_ to those with the same next node.
	void gather(const Packet &packet)
	{
		while (!timers_.empty() && timers_.front().at <= done_)
			fire();
		auto pick = hops_.pick(packet);
		Slot &slot = slots_[pick.slot];
		uint32_t batch = slot.rate.count(done_);
		put(slot, packet, pick.label, done_);
		if (slot.packets.size() == 1 && batch > 1)
			timers_.push({done_ + aggregation_.flush, pick.slot, slot.generation});
		if (slot.packets.size() >= batch)
			emit(slot, done_);
	}

	void put(Slot &slot, const Packet &packet, uint16_t label, Ps now)
	{
		uint32_t more = embedded_bytes(aggregation_, packet.bytes);
		if (!slot.packets.empty() &&
			(slot.bytes + more > max_frame_bytes(aggregation_) ||
				slot.packets.size() >= aggregation_.max_packets))
			emit(slot, now);
		slot.packets.push_back(packet);
		slot.packets.back().label = label;
		slot.bytes += more;
	}

	void emit(Slot &slot, Ps now)
	{
		auto count = static_cast<uint32_t>(slot.packets.size());
		uint32_t bytes = count == 1 ? slot.packets[0].bytes : slot.bytes;
		send({now, count, bytes, slot.dst}, slot.packets.data());
		slot.packets.clear();
		slot.bytes = aggregation_.frame_overhead;
		slot.generation++;
	}

	void fire()
	{
		Timer timer = timers_.front();
		timers_.pop();
		Slot &slot = slots_[timer.slot];
		if (slot.generation == timer.generation && !slot.packets.empty())
			emit(slot, timer.at);
	}

	void arrive_burst(Ps now, const Packet *packets, uint32_t count)
	{
		while (!waiting_.empty() && done_ <= now)
			start_burst(done_);
		uint64_t serving = done_ > now ? serving_ : 0;
		for (const Packet *p = packets; p < packets + count; p++) {
			if (spec_.queue_packets && waiting_.size() + serving >= spec_.queue_packets)
				count_.dropped_packets++;
			else
				waiting_.push({*p, now});
		}
		if (done_ <= now && !waiting_.empty())
			start_burst(now);
	}

	void start_burst(Ps start)
	{
		serving_ = std::min<uint64_t>(waiting_.size(), aggregation_.burst);
		Ps work = spec_.service.per_burst;
		burst_.clear();
		Ps since = 0;
		for (uint64_t i = 0; i < serving_; i++) {
			burst_.push_back(waiting_.front().packet);
			since += start - waiting_.front().since;
			work += service_.next(burst_.back().bytes);
			waiting_.pop();
		}
		done_ = start + work;
		if (done_ >= end_) {
			count_.held_packets += serving_;
			return;
		}
		count_.served_packets += serving_;
		count_.busy += work;
		count_.waited += static_cast<uint64_t>(since);
		for (const auto &packet : burst_) {
			auto pick = hops_.pick(packet);
			put(slots_[pick.slot], packet, pick.label, done_);
		}
		for (auto &slot : slots_)
			if (!slot.packets.empty())
				emit(slot, done_);
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
	std::vector<Slot> slots_;
	Ring<Timer> timers_; // in order: every timer runs equally long
	Ring<Waiting> waiting_;
	uint64_t serving_ = 0;
	std::vector<Packet> burst_;
};

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

class FeedForward
{
      public:
	explicit FeedForward(const Network &network)
	    : network_(network), result_(make_result(network)), turns_(fabric_turns(network))
	{
		for (size_t i = 0; i < network.links.size(); i++)
			ports_.emplace_back(network.links[i], result_.links[i], network.duration);
		for (size_t i = 0; i < network.sources.size(); i++)
			sources_.emplace_back(network.sources[i], network.seed, i);
		build_stations();
		wire();
		sort();
	}

	Result run(const Watch &watch)
	{
		Ps now = 0;
		while (now < network_.duration && !watch.stopped()) {
			now = std::min(now + network_.chunk, network_.duration);
			for (auto index : order_)
				stations_[index].station->run(now);
			if (watch.progress)
				watch.progress(now, result_);
		}
		for (auto &entry : stations_)
			entry.station->finish();
		result_.simulated = now;
		result_.complete = now == network_.duration;
		return std::move(result_);
	}

      private:
	struct Entry {
		std::unique_ptr<Station> station;
		uint32_t node;
		std::vector<uint32_t> feeds; // stations
	};

	void build_stations()
	{
		of_node_.assign(network_.nodes.size(), 0);
		of_port_.assign(network_.links.size(), 0);
		for (uint32_t i = 0; i < network_.nodes.size(); i++) {
			const Node &node = network_.nodes[i];
			of_node_[i] = static_cast<uint32_t>(stations_.size());
			auto &count = result_.nodes[i];
			if (node.kind == NodeKind::sink)
				add(std::make_unique<SinkStation>(count), i);
			else if (node.kind == NodeKind::function)
				add(std::make_unique<FunctionStation>(network_, i, ports_, count),
					i);
		}
		for (uint32_t i = 0; i < network_.links.size(); i++) {
			uint32_t from = network_.links[i].from;
			if (network_.nodes[from].kind == NodeKind::fabric) {
				of_port_[i] = static_cast<uint32_t>(stations_.size());
				add(std::make_unique<FabricStation>(ports_[i], result_.nodes[from]),
					from);
			} else {
				of_port_[i] = of_node_[from];
			}
		}
		for (const auto &node : network_.nodes)
			routes_.emplace_back(node);
		exits_.assign(network_.nodes.size(), 0);
		for (const auto &link : network_.links)
			exit_of_.push_back(exits_[link.from]++);
	}

	void add(std::unique_ptr<Station> station, uint32_t node)
	{
		stations_.push_back({std::move(station), node, {}});
	}

	Stream *stream(uint32_t from, uint32_t to, std::vector<std::vector<Stream *>> &inputs)
	{
		streams_.push_back(std::make_unique<Stream>());
		stations_[from].feeds.push_back(to);
		inputs[to].push_back(streams_.back().get());
		return streams_.back().get();
	}

	void wire()
	{
		std::vector<std::vector<Stream *>> inputs(stations_.size());
		for (uint32_t i = 0; i < network_.links.size(); i++) {
			uint32_t to = network_.links[i].to;
			if (network_.nodes[to].kind != NodeKind::fabric) {
				ports_[i].ends_at(stream(of_port_[i], of_node_[to], inputs));
				continue;
			}
			std::vector<Stream *> by_exit(exits_[to], nullptr);
			for (auto j : turns_[i])
				by_exit[exit_of_[j]] = stream(of_port_[i], of_port_[j], inputs);
			ports_[i].ends_at(&routes_[to], &exit_of_, std::move(by_exit));
		}
		std::vector<std::vector<std::pair<SourceState *, SourceCount *>>> sources(
			stations_.size());
		for (size_t i = 0; i < sources_.size(); i++)
			sources[of_node_[network_.sources[i].node]].push_back(
				{&sources_[i], &result_.sources[i]});
		for (size_t i = 0; i < stations_.size(); i++)
			stations_[i].station->inputs(std::move(sources[i]), std::move(inputs[i]));
	}

	// Kahn's algorithm: a station comes after all that feed it.
	void sort()
	{
		std::vector<uint32_t> missing(stations_.size(), 0);
		for (const auto &entry : stations_)
			for (auto to : entry.feeds)
				missing[to]++;
		for (uint32_t i = 0; i < stations_.size(); i++)
			if (missing[i] == 0)
				order_.push_back(i);
		for (size_t done = 0; done < order_.size(); done++)
			for (auto to : stations_[order_[done]].feeds)
				if (--missing[to] == 0)
					order_.push_back(to);
		if (order_.size() < stations_.size())
			refuse_cycle(missing);
	}

	[[noreturn]] void refuse_cycle(const std::vector<uint32_t> &missing)
	{
		// Every station left is on a cycle or behind one: walk back until one repeats.
		std::vector<uint32_t> feeder(stations_.size(), UINT32_MAX);
		uint32_t at = 0;
		for (uint32_t i = 0; i < stations_.size(); i++) {
			if (!missing[i])
				continue;
			at = i;
			for (auto to : stations_[i].feeds)
				feeder[to] = i;
		}
		std::vector<bool> seen(stations_.size(), false);
		while (!seen[at]) {
			seen[at] = true;
			at = feeder[at];
		}
		std::string names = network_.nodes[stations_[at].node].name;
		for (uint32_t i = feeder[at];; i = feeder[i]) {
			names = network_.nodes[stations_[i].node].name + " -> " + names;
			if (i == at)
				break;
		}
		throw CycleError("network '" + network_.name + "': cycle " + names +
				 "; the feed-forward engine needs an acyclic network, use --engine "
				 "event-heap");
	}

	const Network &network_;
	Result result_;
	std::vector<std::set<uint32_t>> turns_;
	std::vector<Port> ports_;
	std::vector<Routes> routes_;
	std::vector<SourceState> sources_;
	std::vector<std::unique_ptr<Stream>> streams_;
	std::vector<Entry> stations_;
	std::vector<uint32_t> of_node_, of_port_; // node, link -> station
	std::vector<uint32_t> exit_of_; // link -> which of its node's outgoing links
	std::vector<uint32_t> exits_; // node -> outgoing links
	std::vector<uint32_t> order_;
};

} // namespace

Result run_feed_forward(const Network &network, const Watch &watch)
{
	return FeedForward(network).run(watch);
}

} // namespace sim
