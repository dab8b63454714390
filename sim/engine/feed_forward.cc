// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The feed-forward engine. When no packet ever comes back to where it was, nodes can run one
// after the other, each a chunk of time: first all that feed it, then the node itself. There is
// no event heap; a queue is a recursion on times (Lindley's), and a link a sorted stream.
#include <memory>

#include "engine/engine.hh"
#include "engine/function_server.hh"
#include "engine/server.hh"
#include "engine/server_order.hh"

namespace sim
{

namespace
{

class FeedForward
{
      public:
	explicit FeedForward(const Network &network)
	    : network_(network), result_(make_result(network)), turns_(fabric_turns(network))
	{
		for (size_t i = 0; i < network.links.size(); i++)
			ports_.emplace_back(network.links[i], result_.links[i], network.duration);
		for (size_t i = 0; i < network.sources.size(); i++)
			sources_.emplace_back(
				network.sources[i], network.seed, i, network.duration);
		build_servers();
		wire();
		order_ = order_servers(network, feeding_);
	}

	Result run(const Watch &watch)
	{
		Ps now = 0;
		while (now < network_.duration && !watch.stopped()) {
			now = std::min(now + network_.chunk, network_.duration);
			for (auto index : order_)
				servers_[index]->run(now);
			if (watch.progress)
				watch.progress(now, result_);
		}
		for (auto &server : servers_)
			server->finish();
		result_.simulated = now;
		result_.complete = now == network_.duration;
		return std::move(result_);
	}

      private:
	void build_servers()
	{
		of_node_.assign(network_.nodes.size(), 0);
		of_port_.assign(network_.links.size(), 0);
		for (uint32_t i = 0; i < network_.nodes.size(); i++) {
			const Node &node = network_.nodes[i];
			of_node_[i] = static_cast<uint32_t>(servers_.size());
			auto &count = result_.nodes[i];
			if (node.kind == NodeKind::sink)
				add(std::make_unique<SinkServer>(count), i);
			else if (node.kind == NodeKind::function)
				add(make_function_server(network_, i, ports_, count), i);
		}
		for (uint32_t i = 0; i < network_.links.size(); i++) {
			uint32_t from = network_.links[i].from;
			if (network_.nodes[from].kind == NodeKind::fabric) {
				of_port_[i] = static_cast<uint32_t>(servers_.size());
				add(std::make_unique<FabricServer>(ports_[i], result_.nodes[from]),
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

	void add(std::unique_ptr<Server> server, uint32_t node)
	{
		servers_.push_back(std::move(server));
		feeding_.push_back({node, {}});
	}

	// Single packets only, where nothing in between has to know whom they are for.
	Stream *stream(uint32_t from, uint32_t to, std::vector<std::vector<Stream *>> &inputs)
	{
		const Node &sender = network_.nodes[feeding_[from].node];
		const Node &receiver = network_.nodes[feeding_[to].node];
		bool singles_only = sender.kind == NodeKind::function &&
				    sender.aggregation.mode == Aggregation::Mode::none &&
				    receiver.kind != NodeKind::fabric;
		streams_.push_back(std::make_unique<Stream>(singles_only));
		feeding_[from].feeds.push_back(to);
		inputs[to].push_back(streams_.back().get());
		return streams_.back().get();
	}

	void wire()
	{
		std::vector<std::vector<Stream *>> inputs(servers_.size());
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
		std::vector<std::vector<Feed>> sources(servers_.size());
		for (size_t i = 0; i < sources_.size(); i++)
			sources[of_node_[network_.sources[i].node]].push_back(
				{&sources_[i], &result_.sources[i]});
		for (size_t i = 0; i < servers_.size(); i++)
			servers_[i]->inputs(std::move(sources[i]), std::move(inputs[i]));
	}

	const Network &network_;
	Result result_;
	std::vector<std::set<uint32_t>> turns_;
	std::vector<Port> ports_;
	std::vector<Routes> routes_;
	std::vector<SourceState> sources_;
	std::vector<std::unique_ptr<Stream>> streams_;
	std::vector<std::unique_ptr<Server>> servers_;
	std::vector<Feeding> feeding_; // the same in its order
	std::vector<uint32_t> of_node_, of_port_; // node, link -> server
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
