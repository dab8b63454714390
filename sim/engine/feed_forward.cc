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
	void push(Ps time, uint32_t count, uint32_t bytes, uint32_t dst, const Packet *packets)
	{
		FrameHead &head = heads_.emplace_back();
		head.time = time;
		head.count = count;
		head.bytes = bytes;
		head.dst = dst;
		if (count == 1)
			packets_.push_back(*packets);
		else
			packets_.insert(packets_.end(), packets, packets + count);
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

	// `now` is when the frame is handed over, never earlier than the last one's. Scalars, not a
	// FrameHead: read back in one piece, what was written in several would stall.
	void send(Ps now, uint32_t count, uint32_t bytes, uint32_t dst, const Packet *packets)
	{
		count_->offered_frames++;
		if (queue_.full(now)) {
			count_->dropped_frames++;
			count_->dropped_packets += count;
			return;
		}
		free_at_ = std::max(free_at_, now) + time_.of(bytes);
		queue_.enter(free_at_);
		Ps arrives = free_at_ + delay_;
		if (arrives >= end_) {
			count_->in_flight_frames++;
			return;
		}
		count_->arrive(arrives, count, bytes);
		if (routes_)
			single_ = by_exit_[(*exit_of_)[routes_->link(dst, packets->flow)]];
		single_->push(arrives, count, bytes, dst, packets);
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
	virtual void run(Ps until) = 0;

	// After the last run: counts what is still inside.
	virtual void finish()
	{
	}

      protected:
	std::vector<std::pair<SourceState *, SourceCount *>> sources_;
	std::vector<Stream *> streams_;
	std::optional<Merge> merge_;
};

// run() for a Kind with arrive(head, packets) and settle(until): no virtual call per frame.
template <typename Kind> class StationOf : public Station
{
      public:
	void run(Ps until) final
	{
		auto &kind = static_cast<Kind &>(*this);
		Merge &merge = *merge_;
		auto sources = static_cast<uint32_t>(sources_.size());
		for (uint32_t i = 0; i < sources; i++)
			merge.set(i, sources_[i].first->time());
		for (uint32_t i = 0; i < streams_.size(); i++)
			merge.set(sources + i, streams_[i]->time());
		merge.rebuild();
		for (;;) {
			Ps now = merge.time();
			if (now >= until)
				break;
			uint32_t input = merge.first();
			if (input < sources) {
				auto &[source, count] = sources_[input];
				Packet packet = source->take();
				count->packets++;
				count->bytes += packet.bytes;
				merge.update(input, source->time());
				kind.arrive({now, 1, packet.bytes, 0}, &packet);
			} else {
				Stream &stream = *streams_[input - sources];
				kind.arrive(stream.head(), stream.packets());
				stream.pop();
				merge.update(input, stream.time());
			}
		}
		kind.settle(until);
		for (auto *stream : streams_)
			stream->compact();
	}

	void settle(Ps)
	{
	}
};

class SinkStation final : public StationOf<SinkStation>
{
      public:
	explicit SinkStation(NodeCount &count) : count_(count)
	{
	}

	void arrive(const FrameHead &head, const Packet *packets)
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		count_.delivered_packets += head.count;
		for (uint32_t i = 0; i < head.count; i++) {
			count_.delivered_bytes += packets[i].bytes;
			count_.latency->add(head.time - packets[i].born);
		}
	}

      private:
	NodeCount &count_;
};

// One sending port of a fabric node: frames pass whole, the link's queue is the only queue.
class FabricStation final : public StationOf<FabricStation>
{
      public:
	FabricStation(Port &port, NodeCount &count) : port_(port), count_(count)
	{
	}

	void arrive(const FrameHead &head, const Packet *packets)
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		count_.sent_frames++;
		count_.sent_packets += head.count;
		port_.send(head.time, head.count, head.bytes, head.dst, packets);
	}

      private:
	Port &port_;
	NodeCount &count_;
};

class FunctionStation final : public StationOf<FunctionStation>
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
		const auto &service = spec_.service;
		const auto &hops = spec_.next_hops;
		steady_ = hops.size() == 1 && hops[0].choices.size() == 1 &&
			  service.kind == ServiceKind::fixed && service.per_byte == 0 &&
			  spec_.queue_packets == 0;
		if (steady_)
			steady_label_ = hops[0].choices[0].label;
	}

	void arrive(const FrameHead &head, const Packet *packets)
	{
		count_.received_frames++;
		count_.received_packets += head.count;
		switch (aggregation_.mode) {
		case Aggregation::Mode::none:
			serve<false>(head.time, packets, head.count);
			return;
		case Aggregation::Mode::table:
			if (steady_)
				serve_steadily(head.time, packets, head.count);
			else
				serve<true>(head.time, packets, head.count);
			return;
		case Aggregation::Mode::queue:
			arrive_burst(head.time, packets, head.count);
			return;
		}
	}

	void settle(Ps until)
	{
		if (next_flush_ < until)
			flush_before(until);
		while (!waiting_.empty() && done_ < until)
			start_burst(done_);
	}

	void finish() override
	{
		for (auto &slot : slots_)
			count_.held_packets += slot.held;
		count_.held_packets += waiting_.size();
	}

      private:
	// Packets on their way to one next node, waiting for company.
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
	struct Waiting {
		Packet packet;
		Ps since;
	};

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
		Packet out = relabelled(packet, pick.label);
		send(done_, 1, packet.bytes, slots_[pick.slot].dst, &out);
	}

	void send(Ps now, uint32_t count, uint32_t bytes, uint32_t dst, const Packet *packets)
	{
		count_.sent_frames++;
		count_.sent_packets += count;
		ports_[routes_.link(dst, packets->flow)].send(now, count, bytes, dst, packets);
	}

	// The same for a node with one next hop and a constant service time: all packets of a frame
	// that fall into one window and one outgoing frame are handled at once.
	void serve_steadily(Ps now, const Packet *packets, uint32_t count)
	{
		Slot &slot = slots_[0];
		Ps work = spec_.service.per_packet;
		Ps start = std::max(now, done_);
		while (count > 0) {
			Ps first = start + work; // when the next packet is served
			if (first >= end_) {
				count_.held_packets += count;
				done_ = first;
				return;
			}
			if (next_flush_ <= first)
				flush_before(first + 1);
			uint32_t batch = slot.rate.count(first);
			uint32_t many = fits_at_once(slot, first, batch, packets, count);
			if (many > 1)
				slot.rate.more(many - 1);
			Ps last = first + (many - 1) * work;
			count_.served_packets += many;
			count_.busy += many * work;
			count_.waited += static_cast<uint64_t>(
				many * (start - now) + work * (many * (many - 1ll) / 2));
			put(slot, packets, many, steady_label_, first);
			if (slot.held == many)
				set_flush(slot, first);
			if (slot.held >= batch)
				emit(slot, last);
			start = done_ = last;
			packets += many;
			count -= many;
		}
	}

	// How many packets, the first served at `first`, go into the slot's frame before anything
	// else happens. At least 1: put() makes room for one.
	uint32_t fits_at_once(const Slot &slot, Ps first, uint32_t batch, const Packet *packets,
		uint32_t count) const
	{
		uint32_t held = slot.held;
		if (held + 1 >= batch)
			return 1;
		uint32_t many = std::min({count, batch - held, aggregation_.max_packets - held});
		Ps flush = held ? next_flush_ : std::min(next_flush_, first + aggregation_.flush);
		Ps limit = std::min({slot.rate.end(), flush, end_});
		if (many < 2 || first + (many - 1) * spec_.service.per_packet >= limit)
			return 1;
		uint32_t bytes = slot.bytes;
		for (uint32_t i = 0; i < many; i++)
			bytes += embedded_bytes(aggregation_, packets[i].bytes);
		return bytes <= max_frame_bytes(aggregation_) ? many : 1;
	}

	// Puts a packet served at done_ to those with the same next node.
	void gather(const Packet &packet)
	{
		if (next_flush_ <= done_)
			flush_before(done_ + 1);
		auto pick = hops_.pick(packet);
		Slot &slot = slots_[pick.slot];
		uint32_t batch = slot.rate.count(done_);
		put(slot, &packet, 1, pick.label, done_);
		if (slot.held == 1)
			set_flush(slot, done_);
		if (slot.held >= batch)
			emit(slot, done_);
	}

	// The slot's frame was begun at `now`. next_flush_ is never later than any slot's.
	void set_flush(Slot &slot, Ps now)
	{
		slot.flush_at = now + aggregation_.flush;
		next_flush_ = std::min(next_flush_, slot.flush_at);
	}

	// Sends the frames that have waited long enough, oldest first.
	void flush_before(Ps until)
	{
		for (;;) {
			auto oldest = std::min_element(
				slots_.begin(), slots_.end(), [](const Slot &a, const Slot &b) {
					return a.flush_at < b.flush_at;
				});
			next_flush_ = oldest->flush_at;
			if (next_flush_ >= until)
				return;
			emit(*oldest, oldest->flush_at);
		}
	}

	// Several packets only if the caller knows that they fit.
	void put(Slot &slot, const Packet *packets, uint32_t count, uint16_t label, Ps now)
	{
		uint32_t more = 0;
		for (uint32_t i = 0; i < count; i++)
			more += embedded_bytes(aggregation_, packets[i].bytes);
		if (slot.held != 0 && (slot.bytes + more > max_frame_bytes(aggregation_) ||
					      slot.held >= aggregation_.max_packets))
			emit(slot, now);
		Packet *to = &slot.packets[slot.held];
		if (count == 1) {
			*to = relabelled(*packets, label);
		} else {
			for (uint32_t i = 0; i < count; i++) {
				to[i] = packets[i];
				to[i].label = label;
			}
		}
		slot.held += count;
		slot.bytes += more;
	}

	void emit(Slot &slot, Ps now)
	{
		uint32_t count = slot.held;
		uint32_t bytes = count == 1 ? slot.packets[0].bytes : slot.bytes;
		send(now, count, bytes, slot.dst, slot.packets.data());
		slot.held = 0;
		slot.bytes = aggregation_.frame_overhead;
		slot.flush_at = never;
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
			put(slots_[pick.slot], &packet, 1, pick.label, done_);
		}
		for (auto &slot : slots_)
			if (slot.held != 0)
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
	Ps next_flush_ = never; // no slot's is earlier
	bool steady_ = false; // see serve_steadily
	uint16_t steady_label_ = 0;
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
