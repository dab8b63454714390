// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/function_server.hh"

namespace sim
{

PlainServer::PlainServer(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
    : FunctionServer(network, index, ports, count)
{
	uniform_ = spec_.service.kind == ServiceKind::fixed && spec_.service.per_byte == 0 &&
		   spec_.queue_packets == 0;
	by_slot_.resize(hops_.slot_dst().size());
	for (auto dst : hops_.slot_dst()) {
		for (const auto &route : spec_.routes)
			if (route.dst == dst && route.links.size() == 1)
				port_of_slot_.push_back(&ports_[route.links[0]]);
	}
	auto sorted = port_of_slot_;
	std::sort(sorted.begin(), sorted.end());
	bool shared = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
	if (shared || sorted.size() != by_slot_.size())
		port_of_slot_.clear();
}

void PlainServer::singles(Single *first, size_t count)
{
	count_received(count);
	forward(first, serve(first, count));
}

void PlainServer::arrivals(const Arrival *first, size_t count)
{
	count_received(first, count);
	disaggregated_.drop(disaggregated_.size());
	for (const Arrival *a = first; a < first + count; a++) {
		Single *out = disaggregated_.room(a->count);
		for (uint32_t i = 0; i < a->count; i++)
			out[i] = {a->time, a->packets[i]};
		disaggregated_.commit(a->count);
	}
	forward(disaggregated_.data(), serve(disaggregated_.data(), disaggregated_.size()));
}

// Gives the packets the times at which they are served; returns how many are, before the end.
size_t PlainServer::serve(Single *singles, size_t count)
{
	if (uniform_)
		return serve_uniform(singles, count);
	size_t served = 0;
	for (size_t i = 0; i < count; i++) {
		Single single = singles[i];
		if (occupancy_.full(single.time)) {
			count_.dropped_packets++;
			continue;
		}
		Ps start = std::max(single.time, done_);
		Ps work = service_.next(single.packet.bytes);
		done_ = start + work;
		occupancy_.enter(done_);
		if (done_ >= end_) {
			count_.held_packets++;
			continue;
		}
		count_served(start - single.time, work);
		singles[served++] = {done_, single.packet};
	}
	return served;
}

size_t PlainServer::serve_uniform(Single *singles, size_t count)
{
	Ps work = spec_.service.per_packet, done = done_, end = end_;
	uint64_t waited = 0; // in a chunk: below 2^64 for 2^20 packets that wait 17 s
	size_t i = 0;
	for (; i < count; i++) {
		Ps start = std::max(singles[i].time, done);
		done = start + work;
		if (done >= end)
			break;
		waited += static_cast<uint64_t>(start - singles[i].time);
		singles[i].time = done;
	}
	done_ = done;
	count_.held_packets += count - i;
	count_.served_packets += i;
	count_.busy += static_cast<Ps>(i) * work;
	count_.waited += waited;
	return i;
}

void PlainServer::forward(const Single *singles, size_t count)
{
	const auto &hops = spec_.next_hops;
	if (port_of_slot_.empty()) {
		for (size_t i = 0; i < count; i++) {
			auto pick = hops_.pick(singles[i].packet);
			Packet out = relabelled(singles[i].packet, pick.label);
			send(singles[i].time, 1, out.bytes, hops_.slot_dst()[pick.slot], &out);
		}
		return;
	}
	count_.sent_frames += count;
	count_.sent_packets += count;
	if (hops.size() == 1 && hops[0].choices.size() == 1) {
		const auto &only = hops[0].choices[0];
		port_of_slot_[0]->send_singles(singles, count, only.dst, only.label);
		return;
	}
	for (auto &slot : by_slot_) {
		slot.drop(slot.size());
		slot.room(count);
	}
	for (size_t i = 0; i < count; i++) {
		auto pick = hops_.pick(singles[i].packet);
		by_slot_[pick.slot].push(
			{singles[i].time, relabelled(singles[i].packet, pick.label)});
	}
	for (size_t i = 0; i < by_slot_.size(); i++)
		port_of_slot_[i]->send_singles(
			by_slot_[i].data(), by_slot_[i].size(), hops_.slot_dst()[i]);
}

} // namespace sim
