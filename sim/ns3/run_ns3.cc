// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The ns-3 engine: every node an ns-3 node with an application, every link two devices and a
// channel, every frame an ns-3 packet whose bytes are written by the sender and read by the
// receiver. ns-3 orders events of one time by when they were scheduled; so that ties fall as in
// the other engines, a node collects what happens at one time and handles it at that time's end.
#include <algorithm>
#include <map>

#include <ns3/application.h>
#include <ns3/node.h>
#include <ns3/simulator.h>

#include "engine/engine.hh"
#include "engine/queue_node.hh"
#include "model/source.hh"
#include "ns3/frame_header.hh"
#include "ns3/link_device.hh"

namespace sim
{

namespace
{

Ps now()
{
	return ns3::Simulator::Now().GetTimeStep();
}

ns3::Time after(Ps time)
{
	return ns3::TimeStep(static_cast<uint64_t>(time - now()));
}

// What runs on a node, whichever kind it is.
class NodeApp : public ns3::Application, public Host
{
      public:
	NodeApp(const Network &network, uint32_t index, Result &result)
	    : network_(network), index_(index), result_(result), count_(result.nodes[index]),
	      routes_(network.nodes[index])
	{
		if (network.nodes[index].kind == NodeKind::function)
			queue_ = std::make_unique<QueueNode>(network, index, *this, count_);
	}

	void sends_by(uint32_t link, ns3::Ptr<LinkDevice> device)
	{
		devices_[link] = device;
	}

	void from_source(uint32_t source, ns3::Ptr<ns3::Packet> frame)
	{
		FrameHeader header;
		frame->PeekHeader(header);
		inbox_.push_back({source, index_, header.packets(), frame});
		wake();
	}

	// Inputs from links are numbered behind all sources.
	void from_link(uint32_t link, ns3::Ptr<ns3::Packet> frame)
	{
		FrameHeader header;
		frame->PeekHeader(header);
		auto &count = result_.links[link];
		auto packets = static_cast<uint32_t>(header.packets().size());
		count.arrive(now(), packets, frame->GetSize());
		count.in_flight_frames--;
		auto first_link = static_cast<uint32_t>(network_.sources.size());
		inbox_.push_back({first_link + link, header.dst(), header.packets(), frame});
		wake();
	}

	void finish()
	{
		if (queue_)
			queue_->finish();
	}

      private:
	struct Arrival {
		uint32_t input;
		uint32_t dst;
		std::vector<Packet> packets;
		ns3::Ptr<ns3::Packet> frame; // as it came
	};

	void DoDispose() override
	{
		devices_.clear();
		inbox_.clear();
		ns3::Application::DoDispose();
	}

	// Handles this time's events when all of them have been seen.
	void wake()
	{
		if (awake_)
			return;
		awake_ = true;
		ns3::Simulator::ScheduleNow(&NodeApp::handle, this);
	}

	void handle()
	{
		awake_ = false;
		auto flushes = std::move(flushes_);
		flushes_.clear();
		std::sort(flushes.begin(), flushes.end()); // by slot, as the other engines
		for (auto [slot, generation] : flushes)
			queue_->on_flush(now(), slot, generation);
		if (served_) {
			served_ = false;
			queue_->on_service_end(now());
		}
		auto inbox = std::move(inbox_);
		inbox_.clear();
		std::stable_sort(inbox.begin(), inbox.end(),
			[](const Arrival &a, const Arrival &b) { return a.input < b.input; });
		for (auto &arrival : inbox)
			take(arrival);
	}

	void take(Arrival &arrival)
	{
		auto &packets = arrival.packets;
		if (queue_) {
			queue_->on_arrival(now(), packets);
			return;
		}
		count_.received_frames++;
		count_.received_packets += packets.size();
		if (network_.nodes[index_].kind == NodeKind::sink) {
			count_.delivered_packets += packets.size();
			for (const auto &packet : packets) {
				count_.delivered_bytes += packet.bytes;
				count_.latency->add(now() - packet.born);
			}
			return;
		}
		count_.sent_frames++;
		count_.sent_packets += packets.size();
		transmit(routes_.link(arrival.dst, packets[0].flow), arrival.frame, packets.size());
	}

	void service_ends_at(uint32_t, Ps time) override
	{
		ns3::Simulator::Schedule(after(time), &NodeApp::service_ended, this);
	}
	void service_ended()
	{
		served_ = true;
		wake();
	}

	void flush_at(uint32_t, uint32_t slot, uint32_t generation, Ps time) override
	{
		ns3::Simulator::Schedule(after(time), &NodeApp::flush_due, this, slot, generation);
	}
	void flush_due(uint32_t slot, uint32_t generation)
	{
		flushes_.push_back({slot, generation});
		wake();
	}

	void send(uint32_t link, const FrameHead &head, std::vector<Packet> &packets) override
	{
		const auto &aggregation = network_.nodes[index_].aggregation;
		transmit(link, make_packet(head.dst, packets, aggregation), packets.size());
	}

	void transmit(uint32_t link, ns3::Ptr<ns3::Packet> frame, size_t packets)
	{
		auto &count = result_.links[link];
		count.offered_frames++;
		if (devices_[link]->Send(frame, ns3::Address(), 0x0800)) {
			count.in_flight_frames++;
			return;
		}
		count.dropped_frames++;
		count.dropped_packets += packets;
	}

	const Network &network_;
	uint32_t index_;
	Result &result_;
	NodeCount &count_;
	Routes routes_;
	std::unique_ptr<QueueNode> queue_;
	std::map<uint32_t, ns3::Ptr<LinkDevice>> devices_;
	std::vector<Arrival> inbox_;
	std::vector<std::pair<uint32_t, uint32_t>> flushes_;
	bool served_ = false;
	bool awake_ = false;
};

class SourceApp : public ns3::Application
{
      public:
	SourceApp(const Source &spec, uint64_t seed, uint32_t index, Ps end, ns3::Ptr<NodeApp> node,
		SourceCount &count)
	    : spec_(spec), source_(spec, seed, index, end), index_(index), node_(node),
	      count_(count)
	{
	}

	void start()
	{
		if (source_.time() != never)
			ns3::Simulator::Schedule(after(source_.time()), &SourceApp::emit, this);
	}

      private:
	void DoDispose() override
	{
		node_ = nullptr;
		ns3::Application::DoDispose();
	}

	void emit()
	{
		while (source_.time() <= now()) {
			Packet packet = source_.take();
			count_.packets++;
			count_.bytes += packet.bytes;
			node_->from_source(
				index_, make_packet(spec_.node, {packet}, Aggregation()));
		}
		start();
	}

	const Source &spec_;
	SourceState source_;
	uint32_t index_;
	ns3::Ptr<NodeApp> node_;
	SourceCount &count_;
};

class Ns3Run
{
      public:
	Ns3Run(const Network &network, const Watch &watch)
	    : network_(network), watch_(watch), result_(make_result(network))
	{
		for (uint32_t i = 0; i < network.nodes.size(); i++) {
			nodes_.push_back(ns3::CreateObject<ns3::Node>());
			apps_.push_back(ns3::CreateObject<NodeApp>(network, i, result_));
			nodes_[i]->AddApplication(apps_[i]);
		}
		for (uint32_t i = 0; i < network.links.size(); i++)
			add_link(i);
		for (uint32_t i = 0; i < network.sources.size(); i++) {
			const auto &source = network.sources[i];
			auto app = ns3::CreateObject<SourceApp>(source, network.seed, i,
				network.duration, apps_[source.node], result_.sources[i]);
			nodes_[source.node]->AddApplication(app);
			sources_.push_back(app);
		}
	}

	Result run()
	{
		// First, so that nothing else at the end's time comes before it.
		ns3::Simulator::Stop(ns3::TimeStep(static_cast<uint64_t>(network_.duration)));
		for (auto &source : sources_)
			source->start();
		result_.simulated = network_.duration;
		tick();
		ns3::Simulator::Run();
		for (auto &app : apps_)
			app->finish();
		result_.events = ns3::Simulator::GetEventCount();
		ns3::Simulator::Destroy();
		return std::move(result_);
	}

      private:
	void add_link(uint32_t index)
	{
		const Link &link = network_.links[index];
		auto channel = ns3::CreateObject<LinkChannel>();
		auto from = ns3::CreateObject<LinkDevice>(), to = ns3::CreateObject<LinkDevice>();
		for (auto &device : {from, to}) {
			device->set_link(link, channel);
			device->SetAddress(ns3::Mac48Address::Allocate());
		}
		nodes_[link.from]->AddDevice(from);
		nodes_[link.to]->AddDevice(to);
		channel->connect(from, to, link.delay);
		apps_[link.from]->sends_by(index, from);
		auto app = apps_[link.to];
		to->SetReceiveCallback(
			[app, index](ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> packet,
				uint16_t, const ns3::Address &) {
				app->from_link(index, ns3::ConstCast<ns3::Packet>(packet));
				return true;
			});
	}

	void tick()
	{
		if (watch_.progress)
			watch_.progress(now(), result_);
		if (watch_.stopped()) {
			result_.complete = false;
			result_.simulated = now();
			ns3::Simulator::Stop();
			return;
		}
		ns3::Simulator::Schedule(
			ns3::TimeStep(static_cast<uint64_t>(network_.chunk)), &Ns3Run::tick, this);
	}

	const Network &network_;
	const Watch &watch_;
	Result result_;
	std::vector<ns3::Ptr<ns3::Node>> nodes_;
	std::vector<ns3::Ptr<NodeApp>> apps_;
	std::vector<ns3::Ptr<SourceApp>> sources_;
};

} // namespace

Result run_ns3(const Network &network, const Watch &watch)
{
	check_real_frames(network);
	// Setting it twice blocks for ever in ns-3.37.
	if (ns3::Time::GetResolution() != ns3::Time::PS)
		ns3::Time::SetResolution(ns3::Time::PS);
	return Ns3Run(network, watch).run();
}

} // namespace sim
