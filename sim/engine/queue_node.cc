// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/queue_node.hh"

#include <algorithm>
#include <utility>

namespace sim
{

QueueNode::QueueNode(const Network &network, uint32_t index, Host &host, NodeCount &count)
    : spec_(network.nodes[index]), end_(network.duration), index_(index), host_(host),
      count_(count), hops_(spec_), routes_(spec_),
      service_(spec_.service, network.seed, node_stream(index))
{
	for (auto dst : hops_.slot_dst())
		slots_.push_back({dst, 0, RateWindow(spec_.aggregation), 0, {}});
}

void QueueNode::on_arrival(Ps now, const std::vector<Packet> &packets)
{
	count_.received_frames++;
	count_.received_packets += packets.size();
	const auto in_frame = static_cast<uint32_t>(packets.size());
	bool first = true;
	for (const auto &packet : packets) {
		if (spec_.queue_packets && queue_.size() + serving_.size() >= spec_.queue_packets) {
			count_.dropped_packets++;
			continue;
		}
		queue_.push_back({packet, now, in_frame, std::exchange(first, false)});
		// A burst begins with all that has arrived; a single packet need not wait.
		if (serving_.empty() && spec_.aggregation.mode != Aggregation::Mode::queue)
			start(now);
	}
	if (serving_.empty() && !sending_ && !queue_.empty())
		start(now);
}

void QueueNode::start(Ps now)
{
	bool burst = spec_.aggregation.mode == Aggregation::Mode::queue;
	size_t take = burst ? spec_.aggregation.burst : 1;
	work_ = burst ? spec_.service.per_burst : 0;
	waited_ = 0;
	begun_ = 0;
	while (take-- > 0 && !queue_.empty()) {
		const Waiting &next = queue_.front();
		work_ += burst ? service_.next(next.packet.bytes, next.in_frame, next.first)
			       : service_.next(next.packet.bytes);
		waited_ += now - next.since;
		serving_.push_back(next.packet);
		queue_.pop_front();
	}
	host_.service_ends_at(index_, now + work_);
}

void QueueNode::on_service_end(Ps now)
{
	sending_ = !serving_.empty() && end_service(now);
	if (!sending_ && !queue_.empty())
		start(now);
}

// Returns whether frames are still to be sent.
bool QueueNode::end_service(Ps now)
{
	count_.served_packets += serving_.size();
	count_.busy += work_;
	count_.waited += static_cast<uint64_t>(waited_);
	for (const auto &packet : serving_)
		forward(now, packet);
	serving_.clear();
	if (spec_.aggregation.mode != Aggregation::Mode::queue)
		return false;
	for (auto &slot : slots_)
		if (!slot.packets.empty() && slot.flush_at <= now)
			emit(now, slot);
	Ps sent = now + static_cast<Ps>(begun_) * spec_.service.per_sent;
	if (sent == now)
		return false;
	count_.busy += std::min(sent, end_) - now;
	host_.service_ends_at(index_, sent);
	return true;
}

bool QueueNode::fits(const Slot &slot, const Packet &packet) const
{
	const auto &a = spec_.aggregation;
	uint32_t bytes = a.frame_overhead + embedded_bytes(a, packet.bytes);
	for (const auto &held : slot.packets)
		bytes += embedded_bytes(a, held.bytes);
	return bytes <= max_frame_bytes(a) && slot.packets.size() < a.max_packets;
}

void QueueNode::forward(Ps now, const Packet &packet)
{
	const auto &a = spec_.aggregation;
	auto pick = hops_.pick(packet);
	Slot &slot = slots_[pick.slot];
	uint32_t batch = 1;
	if (a.mode == Aggregation::Mode::table)
		batch = slot.rate.count(now);
	if (!slot.packets.empty() && !fits(slot, packet))
		emit(now, slot);
	begun_ += slot.packets.empty();
	slot.packets.push_back(packet);
	slot.packets.back().label = pick.label;
	bool queue = a.mode == Aggregation::Mode::queue; // then frames go when the burst is through
	if (!queue && slot.packets.size() >= batch) {
		emit(now, slot);
	} else if (slot.packets.size() == 1) {
		slot.flush_at = (queue ? now - work_ : now) + a.flush;
		if (slot.flush_at > now)
			host_.flush_at(index_, pick.slot, slot.generation, slot.flush_at);
	}
}

void QueueNode::emit(Ps now, Slot &slot)
{
	const auto &a = spec_.aggregation;
	FrameHead head = {now, static_cast<uint32_t>(slot.packets.size()), 0, slot.dst};
	if (head.count == 1) {
		head.bytes = slot.packets[0].bytes;
	} else {
		head.bytes = a.frame_overhead;
		for (const auto &packet : slot.packets)
			head.bytes += embedded_bytes(a, packet.bytes);
	}
	slot.generation++;
	count_.sent_frames++;
	count_.sent_packets += head.count;
	uint32_t link = routes_.link(head.dst, slot.packets[0].flow);
	host_.send(link, head, slot.packets);
	slot.packets.clear();
}

void QueueNode::on_flush(Ps now, uint32_t index, uint32_t generation)
{
	Slot &slot = slots_[index];
	if (slot.generation == generation && !slot.packets.empty())
		emit(now, slot);
}

void QueueNode::finish()
{
	count_.held_packets += queue_.size() + serving_.size();
	for (const auto &slot : slots_)
		count_.held_packets += slot.packets.size();
}

} // namespace sim
