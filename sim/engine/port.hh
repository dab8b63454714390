// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The sending port and the wire behind it, in the feed-forward engine: a queue known by times.
// Its far end is a server's stream, or, at a fabric node, one of several: chosen here, because
// the choice needs only the frame.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/link_time.hh"
#include "engine/ring.hh"
#include "engine/stream.hh"
#include "model/next_hop.hh"
#include "model/result.hh"

namespace sim
{

class Port
{
      public:
	Port(const Link &link, LinkCount &count, Ps end)
	    : time_(link), delay_(link.delay), end_(end), queue_(link.queue_frames), count_(&count)
	{
	}

	void ends_at(Stream *stream)
	{
		stream_ = stream;
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
	// struct: read back in one piece, what was written in several would stall.
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
			stream_ = by_exit_[(*exit_of_)[routes_->link(dst, packets->flow)]];
		stream_->push(arrives, count, bytes, dst, packets);
	}

	// A frame in two steps, its packets written where they will lie: for a sender that has the
	// port to itself. nullptr: not with this port, use send(). After begin_frame() either
	// send_frame(), or nothing at all: what was written is forgotten at the next one. Frames so
	// sent are counted by count_frames(), to be called at the end of each chunk.
	Packet *begin_frame(uint32_t most)
	{
		if (queue_.limited() || routes_ || stream_->singles_only())
			return nullptr;
		return stream_->open(most);
	}
	void send_frame(Ps now, uint32_t count, uint32_t bytes, uint32_t packet_bytes)
	{
		free_at_ = std::max(free_at_, now) + time_.of(bytes);
		Ps arrives = free_at_ + delay_;
		if (arrives < end_) {
			stream_->close(arrives, count, bytes, packet_bytes);
			uncounted_++;
		} else {
			count_->in_flight_frames++;
			count_->offered_frames++;
		}
	}
	void count_frames()
	{
		const Arrival *first = stream_->last(uncounted_);
		uint64_t digest = 0, packets = 0;
		size_t same_size = 0;
		for (size_t i = 0; i < uncounted_; i++) {
			const Arrival &a = first[i];
			if (a.bytes != first[same_size].bytes) {
				count_sizes(i - same_size, first[same_size].bytes);
				same_size = i;
			}
			digest += arrival_digest(a.time, a.count, a.bytes);
			packets += a.count;
		}
		if (uncounted_)
			count_sizes(uncounted_ - same_size, first[same_size].bytes);
		count_->digest += digest;
		count_->packets += packets;
		count_->offered_frames += uncounted_;
		uncounted_ = 0;
	}

	// Many single packets, each at its time. relabel: with this label, in place of their own.
	void send_singles(const Single *singles, size_t n, uint32_t dst)
	{
		send_singles_as(singles, n, dst, [](const Packet &packet) { return packet; });
	}
	void send_singles(const Single *singles, size_t n, uint32_t dst, uint16_t label)
	{
		send_singles_as(singles, n, dst,
			[label](const Packet &packet) { return relabelled(packet, label); });
	}

      private:
	template <typename Relabel>
	void send_singles_as(const Single *singles, size_t n, uint32_t dst, Relabel relabel)
	{
		if (queue_.limited() || routes_ || !stream_->singles_only()) {
			for (size_t i = 0; i < n; i++) {
				Packet packet = relabel(singles[i].packet);
				send(singles[i].time, 1, packet.bytes, dst, &packet);
			}
			return;
		}
		Single *out = stream_->singles().room(n);
		Ps free_at = free_at_, delay = delay_, end = end_;
		uint64_t digest = 0;
		size_t i = 0, same_size = 0; // from same_size on, all are as large as this one
		uint32_t bytes = n ? singles[0].packet.bytes : 0;
		Ps time = time_.of(bytes);
		for (; i < n; i++) {
			if (singles[i].packet.bytes != bytes) {
				count_sizes(i - same_size, bytes);
				same_size = i;
				bytes = singles[i].packet.bytes;
				time = time_.of(bytes);
			}
			free_at = std::max(free_at, singles[i].time) + time;
			Ps arrives = free_at + delay;
			if (arrives >= end)
				break;
			digest += arrival_digest(arrives, 1, bytes);
			out[i] = {arrives, relabel(singles[i].packet)};
		}
		count_sizes(i - same_size, bytes);
		stream_->singles().commit(i);
		free_at_ = free_at;
		count_->digest += digest;
		count_->packets += i;
		count_->offered_frames += n;
		count_->in_flight_frames += n - i; // what comes later arrives later still
	}

	void count_sizes(size_t n, uint32_t bytes)
	{
		if (n == 0)
			return;
		count_->frames += n;
		count_->bytes += n * bytes;
		count_->sizes.add(bytes, n);
	}

	LinkTime time_;
	Ps delay_, end_;
	Ps free_at_ = 0;
	size_t uncounted_ = 0;
	Occupancy queue_;
	LinkCount *count_;
	Stream *stream_ = nullptr;
	const Routes *routes_ = nullptr;
	const std::vector<uint32_t> *exit_of_ = nullptr;
	std::vector<Stream *> by_exit_;
};

} // namespace sim
