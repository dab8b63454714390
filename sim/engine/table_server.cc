// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/function_server.hh"

namespace sim
{

SlotsServer::SlotsServer(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
    : FunctionServer(network, index, ports, count)
{
	for (auto dst : hops_.slot_dst())
		slots_.push_back(Slot(dst, aggregation_));
}

void SlotsServer::finish()
{
	for (auto &slot : slots_)
		count_.held_packets += slot.held;
}

// A packet that does not fit any more sends the others on their way first.
bool SlotsServer::put(Slot &slot, const Packet &packet, uint16_t label, Ps now, Ps since)
{
	uint32_t more = embedded_bytes(aggregation_, packet.bytes);
	if (slot.held != 0 && (slot.bytes + more > max_frame_bytes(aggregation_) ||
				      slot.held >= aggregation_.max_packets))
		emit(slot, now);
	bool begins = slot.held == 0;
	if (begins) {
		slot.flush_at = since + aggregation_.flush;
		next_flush_ = std::min(next_flush_, slot.flush_at);
	}
	slot.packets[slot.held++] = relabelled(packet, label);
	slot.bytes += more;
	return begins;
}

void SlotsServer::emit(Slot &slot, Ps now)
{
	uint32_t count = slot.held;
	uint32_t bytes = count == 1 ? slot.packets[0].bytes : slot.bytes;
	send(now, count, bytes, slot.dst, slot.packets.data());
	slot.held = 0;
	slot.bytes = aggregation_.frame_overhead;
	slot.flush_at = never;
}

// Sends the frames that have waited long enough, oldest first.
void SlotsServer::flush_before(Ps until)
{
	while (next_flush_ < until) {
		auto oldest = std::min_element(slots_.begin(), slots_.end(),
			[](const Slot &a, const Slot &b) { return a.flush_at < b.flush_at; });
		next_flush_ = oldest->flush_at;
		if (next_flush_ < until)
			emit(*oldest, next_flush_);
	}
}

void SlotsServer::advance(Ps until)
{
	flush_before(until);
}

void TableServer::singles(Single *first, size_t count)
{
	count_received(count);
	for (size_t i = 0; i < count; i++)
		serve(first[i].time, first[i].packet);
}

void TableServer::arrivals(const Arrival *first, size_t count)
{
	count_received(first, count);
	for (const Arrival *a = first; a < first + count; a++)
		for (uint32_t i = 0; i < a->count; i++)
			serve(a->time, a->packets[i]);
}

void TableServer::serve(Ps now, const Packet &packet)
{
	if (occupancy_.full(now)) {
		count_.dropped_packets++;
		return;
	}
	Ps start = std::max(now, done_);
	Ps work = service_.next(packet.bytes);
	done_ = start + work;
	occupancy_.enter(done_);
	if (done_ >= end_) {
		count_.held_packets++;
		return;
	}
	count_served(start - now, work);
	aggregate(packet);
}

// Puts a packet served at done_ to those with the same next node.
void TableServer::aggregate(const Packet &packet)
{
	flush_before(done_ + 1);
	auto pick = hops_.pick(packet);
	Slot &slot = slots_[pick.slot];
	uint32_t batch = slot.rate.count(done_);
	put(slot, packet, pick.label, done_, done_);
	if (slot.held >= batch)
		emit(slot, done_);
}

} // namespace sim
