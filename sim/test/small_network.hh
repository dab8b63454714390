// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Networks for tests: a line by hand, and random ones that use everything at once.
#pragma once

#include <algorithm>
#include <string>

#include "model/network.hh"
#include "model/random.hh"

namespace sim
{

// source -> function -> link -> sink; 64 B packets every 1,000 ns, 100 ns of service, and a link
// of 8 Gb/s (1 ns per byte) and 500 ns.
inline Network line_network()
{
	Network n;
	n.name = "line";
	n.duration = 10 * 1000 * 1000; // 10 us
	n.chunk = 1000 * 1000;
	n.nodes.resize(2);
	n.nodes[0].name = "fn";
	n.nodes[0].service.per_packet = 100 * 1000;
	n.nodes[0].next_hops = {{0, Policy::round_robin, {{1, 0, 1}}}};
	n.nodes[0].routes = {{1, {0}}};
	n.nodes[1].name = "sink";
	n.nodes[1].kind = NodeKind::sink;
	n.links.resize(1);
	n.links[0].name = "fn-sink";
	n.links[0].from = 0;
	n.links[0].to = 1;
	n.links[0].rate_bps = 8000000000;
	n.links[0].delay = 500 * 1000;
	n.links[0].gap_bytes = 0;
	n.sources.resize(1);
	n.sources[0].name = "src";
	n.sources[0].gap = 1000 * 1000;
	n.sources[0].sizes = {{64, 1}};
	n.sources[0].random_phase = false;
	return n;
}

class RandomNetwork
{
      public:
	explicit RandomNetwork(uint64_t seed) : random_(seed, 7)
	{
	}

	// Two to seven functions in a row of stages, a sink, perhaps a fabric in between, every
	// mode and policy, finite queues; times drawn so that several events fall together.
	Network make()
	{
		Network n;
		n.name = "random";
		n.seed = random_.next();
		n.duration = pick(20, 200) * 1000000;
		n.chunk = pick(1, 50) * 1000000;
		one_size_ = random_.below(3) == 0;
		auto functions = static_cast<uint32_t>(pick(2, 7));
		for (uint32_t i = 0; i < functions; i++)
			n.nodes.push_back(function("f" + std::to_string(i)));
		n.nodes.emplace_back();
		n.nodes.back().name = "sink";
		n.nodes.back().kind = NodeKind::sink;
		bool fabric = random_.below(3) == 0;
		for (uint32_t i = 0; i < functions; i++)
			connect(n, i, functions);
		if (fabric)
			route_by_fabric(n, functions);
		else
			route_directly(n, functions);
		auto sources = pick(1, 4);
		for (int64_t i = 0; i < sources; i++)
			n.sources.push_back(source(i, functions));
		if (random_.below(3) == 0)
			share_first(n, functions);
		else if (maybe())
			make_uniform(n);
		return n;
	}

      private:
	// All sources send equal packets at one gap, many in a burst.
	void make_uniform(Network &n)
	{
		Ps gap = pick(1, 5) * 50000;
		for (auto &s : n.sources) {
			if (s.kind != SourceKind::cbr)
				s.kind = SourceKind::on_off;
			s.gap = gap;
			s.flows = 1;
			s.sizes.resize(1);
			s.on += 16 * gap;
		}
	}

	// The first source feeds two or three nodes, perhaps the same one.
	void share_first(Network &n, uint32_t functions)
	{
		n.sources[0].shares = static_cast<uint32_t>(pick(2, 3));
		n.sources[0].by_flow = random_.below(2) == 0;
		n.sources[0].generator = random_.below(9);
		for (uint32_t i = 1; i < n.sources[0].shares; i++) {
			n.sources.push_back(n.sources[0]);
			n.sources.back().share = i;
			n.sources.back().node =
				static_cast<uint32_t>(random_.below(std::min(functions, 2u)));
		}
	}

	int64_t pick(int64_t least, int64_t most)
	{
		return least +
		       static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
	}
	bool maybe()
	{
		return random_.below(2) == 0;
	}

	Node function(const std::string &name)
	{
		Node node;
		node.name = name;
		node.service.kind =
			random_.below(4) ? ServiceKind::fixed : ServiceKind::exponential;
		// Multiples of one unit: ties are common.
		node.service.per_packet = pick(1, 8) * 50000;
		node.service.per_byte = maybe() ? 0 : pick(0, 100);
		node.queue_packets = maybe() ? 0 : static_cast<uint64_t>(pick(1, 40));
		auto &a = node.aggregation;
		a.frame_overhead = maybe() ? 46 : 50;
		a.packet_overhead = one_size_ && maybe() ? 0 : 2;
		a.max_packets = static_cast<uint32_t>(pick(2, 30));
		a.mtu = 1500;
		switch (random_.below(3)) {
		case 0:
			break;
		case 1:
			a.mode = Aggregation::Mode::queue;
			a.burst = static_cast<uint32_t>(pick(1, 40));
			node.service.per_burst = pick(0, 4) * 50000;
			node.service.per_frame = pick(0, 4) * 50000;
			node.service.per_sent = pick(0, 4) * 50000;
			node.service.per_single = pick(0, 8) * 50000;
			a.flush = maybe() ? 0 : pick(1, 40) * 50000;
			break;
		default:
			a.mode = Aggregation::Mode::table;
			a.window = pick(1, 20) * 500000;
			a.weight_ppm = maybe() ? 1000000 : static_cast<uint32_t>(pick(1, 1000000));
			a.flush = pick(1, 20) * 50000;
			a.steps = {{0, static_cast<uint32_t>(pick(1, 3))},
				{static_cast<uint64_t>(pick(1, 2000000)),
					static_cast<uint32_t>(pick(2, 8))},
				{static_cast<uint64_t>(pick(2000001, 9000000)),
					static_cast<uint32_t>(pick(4, 30))}};
			break;
		}
		return node;
	}

	// A function sends to functions behind it, or to the sink: no cycle.
	void connect(Network &n, uint32_t i, uint32_t sink)
	{
		NextHop hop = {};
		hop.policy = static_cast<Policy>(random_.below(3));
		auto choices = maybe() ? 1 : pick(2, 3);
		for (int64_t c = 0; c < choices; c++) {
			auto dst = static_cast<uint32_t>(pick(i + 1, sink));
			hop.choices.push_back({dst, 0, static_cast<uint32_t>(pick(1, 4))});
		}
		n.nodes[i].next_hops = {hop};
	}

	Link link(const Network &n, uint32_t from, uint32_t to)
	{
		Link link;
		link.name = n.nodes[from].name + "-" + n.nodes[to].name;
		link.from = from;
		link.to = to;
		static const uint64_t rates[] = {1000000000, 3333333333, 8000000000, 40000000000};
		link.rate_bps = rates[random_.below(4)];
		link.delay = pick(1, 10) * 50000;
		link.gap_bytes = maybe() ? 0 : 20;
		link.queue_frames = maybe() ? 0 : static_cast<uint64_t>(pick(1, 10));
		return link;
	}

	void route_directly(Network &n, uint32_t functions)
	{
		for (uint32_t i = 0; i < functions; i++) {
			for (const auto &choice : n.nodes[i].next_hops[0].choices) {
				Route route = {choice.dst, {}};
				bool known = false;
				for (const auto &r : n.nodes[i].routes)
					known = known || r.dst == choice.dst;
				if (known)
					continue;
				// Sometimes two links of equal cost.
				for (int64_t k = pick(1, 2); k > 0; k--) {
					route.links.push_back(
						static_cast<uint32_t>(n.links.size()));
					n.links.push_back(link(n, i, choice.dst));
				}
				n.nodes[i].routes.push_back(route);
			}
		}
	}

	// Every function sends into one of two switches; both know every way out.
	void route_by_fabric(Network &n, uint32_t functions)
	{
		auto first = static_cast<uint32_t>(n.nodes.size());
		for (uint32_t s = 0; s < 2; s++) {
			n.nodes.emplace_back();
			n.nodes.back().name = "switch" + std::to_string(s);
			n.nodes.back().kind = NodeKind::fabric;
			for (uint32_t dst = 1; dst <= functions; dst++) {
				auto index = static_cast<uint32_t>(n.links.size());
				n.links.push_back(link(n, first + s, dst));
				n.nodes[first + s].routes.push_back({dst, {index}});
			}
		}
		for (uint32_t i = 0; i < functions; i++) {
			auto index = static_cast<uint32_t>(n.links.size());
			n.links.push_back(link(n, i, first));
			n.links.push_back(link(n, i, first + 1));
			for (uint32_t dst = i + 1; dst <= functions; dst++)
				n.nodes[i].routes.push_back({dst, {index, index + 1}});
		}
	}

	Source source(int64_t number, uint32_t functions)
	{
		Source s;
		s.name = "s" + std::to_string(number);
		s.kind = static_cast<SourceKind>(random_.below(4));
		s.node = static_cast<uint32_t>(random_.below(std::min(functions, 2u)));
		s.flows = maybe() ? 1 : static_cast<uint32_t>(pick(2, 100));
		s.gap = pick(1, 20) * 50000;
		s.on = pick(1, 20) * 500000;
		s.off_min = pick(1, 10) * 500000;
		s.off_max = s.off_min + pick(0, 10) * 500000;
		s.random_phase = maybe();
		if (one_size_)
			s.sizes = {{64, 1}};
		else
			s.sizes = {{64, 3}, {570, 2}, {1518, 1}};
		if (maybe() && !one_size_)
			s.sizes = {{static_cast<uint32_t>(pick(64, 1518)), 1}};
		return s;
	}

	Random random_;
	bool one_size_ = false;
};

} // namespace sim
