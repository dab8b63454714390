// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/single_next_hop_server.hh"

#include <type_traits>

namespace sim
{

bool SingleNextHopServer::can_be(const Node &node)
{
	const auto &hops = node.next_hops;
	return hops.size() == 1 && hops[0].choices.size() == 1 &&
	       node.service.kind == ServiceKind::fixed && node.service.per_byte == 0 &&
	       node.queue_packets == 0;
}

SingleNextHopServer::SingleNextHopServer(
	const Network &network, uint32_t index, std::vector<Port> &ports, NodeCount &count)
    : FunctionServer(network, index, ports, count), work_(spec_.service.per_packet),
      label_(spec_.next_hops[0].choices[0].label), dst_(spec_.next_hops[0].choices[0].dst),
      port_(nullptr), frame_(aggregation_), own_(aggregation_.max_packets), rate_(aggregation_)
{
	for (const auto &route : spec_.routes)
		if (route.dst == dst_ && route.links.size() == 1)
			port_ = &ports[route.links[0]];
}

void SingleNextHopServer::finish()
{
	count_.held_packets += builder_.count;
}

// A single packet is a frame of one.
static uint32_t count_of(const Single &)
{
	return 1;
}
static uint32_t count_of(const Arrival &arrival)
{
	return arrival.count;
}
static const Packet *packets_of(const Single &single)
{
	return &single.packet;
}
static const Packet *packets_of(const Arrival &arrival)
{
	return arrival.packets;
}
static uint32_t bytes_of(const Single &single)
{
	return single.packet.bytes;
}
static uint32_t bytes_of(const Arrival &arrival)
{
	return arrival.packet_bytes;
}

void SingleNextHopServer::singles(Single *first, size_t count)
{
	serve_all(first, count);
}

void SingleNextHopServer::arrivals(const Arrival *first, size_t count)
{
	serve_all(first, count);
}

void SingleNextHopServer::advance(Ps until)
{
	if (builder_.flush_at < until)
		builder_ = emit(builder_, builder_.flush_at);
	if (port_)
		port_->count_frames();
}

template <typename Item> void SingleNextHopServer::serve_all(const Item *items, size_t count)
{
	if (!builder_.packets)
		builder_ = begin_frame();
	count_.received_frames += count;
	for (size_t i = 0; i < count; i++)
		count_.received_packets += count_of(items[i]);
	for (size_t i = 0; i < count; i++) {
		i += serve_uninterrupted(items + i, count - i);
		if (i == count)
			break;
		for (uint32_t j = 0; j < count_of(items[i]); j++)
			serve(items[i].time, packets_of(items[i])[j]);
	}
}

// What comes, as long as its packets only join a frame or complete it, and nothing else can
// happen meanwhile: no flush, no end of a rate window, no frame that is too long. A frame's packets
// come at once, and are served without a pause. Returns how many items that were.
template <typename Item>
size_t SingleNextHopServer::serve_uninterrupted(const Item *items, size_t count)
{
	constexpr bool single = std::is_same_v<Item, Single>;
	const Ps window_ends = std::min(rate_.end(), end_), work = work_;
	const Ps flush = aggregation_.flush;
	const uint32_t batch = rate_.batch();
	const uint16_t label = label_;
	const FrameBytes frame = frame_;
	Builder builder = builder_;
	if (builder.count >= batch || batch > aggregation_.max_packets)
		return 0;
	Ps done = done_, limit = std::min(window_ends, builder.flush_at);
	uint64_t waited = 0, served = 0;
	size_t i = 0;
	for (; i < count; i++) {
		const Packet *packet = packets_of(items[i]);
		uint32_t left = count_of(items[i]);
		const uint32_t bytes = builder.packet_bytes + bytes_of(items[i]);
		Ps start = std::max(items[i].time, done), work_on_all = left * work;
		if (start + work_on_all >= limit || (!single && work_on_all >= flush) ||
			frame.too_long(builder.count + left, bytes))
			break;
		waited += static_cast<uint64_t>(
			left * (start - items[i].time) + work * (left * (left - 1ll) / 2));
		served += left;
		done = start;
		do {
			if (builder.count == 0) {
				builder.flush_at = done + work + flush;
				limit = std::min(window_ends, builder.flush_at);
			}
			// There is room for one.
			const uint32_t many = single ? 1 : std::min(left, batch - builder.count);
			Packet *to = builder.packets + builder.count;
			for (uint32_t j = 0; j < many; j++) {
				to[j] = relabelled(packet[j], label);
				builder.packet_bytes += packet[j].bytes;
			}
			left -= many;
			packet += many;
			builder.count += many;
			done += many * work;
			if (builder.count == batch) {
				builder = emit(builder, done);
				limit = window_ends;
			}
		} while (left > 0);
	}
	builder_ = builder;
	done_ = done;
	count_uninterrupted(served, waited);
	return i;
}

void SingleNextHopServer::count_uninterrupted(uint64_t packets, uint64_t waited)
{
	rate_.more(packets);
	count_.served_packets += packets;
	count_.busy += static_cast<Ps>(packets) * work_;
	count_.waited += waited;
}

// The same for one packet, whatever happens meanwhile.
void SingleNextHopServer::serve(Ps now, const Packet &packet)
{
	Ps start = std::max(now, done_);
	done_ = start + work_;
	if (done_ >= end_) {
		count_.held_packets++;
		return;
	}
	count_served(start - now, work_);
	if (builder_.flush_at <= done_)
		builder_ = emit(builder_, builder_.flush_at);
	uint32_t batch = rate_.count(done_);
	if (builder_.count != 0 &&
		(builder_.count >= aggregation_.max_packets ||
			frame_.too_long(builder_.count + 1, builder_.packet_bytes + packet.bytes)))
		builder_ = emit(builder_, done_);
	if (builder_.count == 0)
		builder_.flush_at = done_ + aggregation_.flush;
	builder_.packets[builder_.count++] = relabelled(packet, label_);
	builder_.packet_bytes += packet.bytes;
	if (builder_.count >= batch)
		builder_ = emit(builder_, done_);
}

// An empty frame.
inline SingleNextHopServer::Builder SingleNextHopServer::begin_frame()
{
	Packet *packets = nullptr;
	if (port_)
		packets = port_->begin_frame(aggregation_.max_packets);
	if (!packets) {
		port_ = nullptr;
		packets = own_.data();
	}
	return {packets, 0, 0, never};
}

// Sends a frame; returns the next. Inlined, so that callers keep theirs in registers.
[[gnu::always_inline]] inline SingleNextHopServer::Builder SingleNextHopServer::emit(
	const Builder &builder, Ps now)
{
	uint32_t bytes = builder.count == 1 ? builder.packet_bytes
					    : frame_.of(builder.count, builder.packet_bytes);
	if (port_) {
		count_.sent_frames++;
		count_.sent_packets += builder.count;
		port_->send_frame(now, builder.count, bytes, builder.packet_bytes);
	} else {
		send(now, builder.count, bytes, dst_, builder.packets);
	}
	return begin_frame();
}

} // namespace sim
