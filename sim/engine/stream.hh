// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What is on its way from one sender to one server of the feed-forward engine, in order of
// arrival. A sender that never aggregates fills a stream of single packets: they need no frame.
#pragma once

#include <algorithm>

#include "engine/fifo.hh"
#include "model/packet.hh"

namespace sim
{

// Part of a sorted sequence.
template <typename T> struct Run {
	T *first;
	size_t count;
};

// A frame, and where its packets lie.
struct Arrival {
	Ps time;
	const Packet *packets;
	uint32_t count, bytes, dst;
	uint32_t packet_bytes; // of all packets, on their own
};

class Stream
{
      public:
	explicit Stream(bool singles_only) : singles_only_(singles_only)
	{
	}

	bool singles_only() const
	{
		return singles_only_;
	}

	void push(Ps time, uint32_t count, uint32_t bytes, uint32_t dst, const Packet *packets)
	{
		if (singles_only_) {
			singles_.push({time, *packets});
			return;
		}
		Packet *to = packets_.room(count);
		uint32_t packet_bytes = 0;
		for (uint32_t i = 0; i < count; i++) {
			to[i] = packets[i];
			packet_bytes += packets[i].bytes;
		}
		packets_.commit(count);
		arrivals_.push({time, nullptr, count, bytes, dst, packet_bytes});
	}

	// In two steps: the packets are written where they will lie, then the frame is there. The
	// room is valid until the next open().
	Packet *open(uint32_t most)
	{
		return packets_.room(most);
	}
	void close(Ps time, uint32_t count, uint32_t bytes, uint32_t packet_bytes)
	{
		arrivals_.push({time, nullptr, count, bytes, 0, packet_bytes});
		packets_.commit(count);
	}
	// The last n frames that came.
	const Arrival *last(size_t n)
	{
		return arrivals_.data() + arrivals_.size() - n;
	}

	// singles_only(): to write packets in one piece.
	Fifo<Single> &singles()
	{
		return singles_;
	}

	// What arrives before `until`. Stays until forget().
	Run<Single> singles_before(Ps until)
	{
		return {singles_.data(), read_ = before(singles_, until)};
	}
	Run<Arrival> arrivals_before(Ps until)
	{
		read_ = before(arrivals_, until);
		const Packet *packets = packets_.data();
		Arrival *first = arrivals_.data();
		for (Arrival *a = first; a < first + read_; a++) {
			a->packets = packets;
			packets += a->count;
		}
		read_packets_ = static_cast<size_t>(packets - packets_.data());
		return {first, read_};
	}
	void forget()
	{
		if (singles_only_) {
			singles_.drop(read_);
			singles_.rewind();
		} else {
			arrivals_.drop(read_);
			arrivals_.rewind();
			packets_.drop(read_packets_);
		}
		read_ = read_packets_ = 0;
	}

      private:
	template <typename T> static size_t before(Fifo<T> &items, Ps until)
	{
		T *first = items.data();
		T *last = std::partition_point(first, first + items.size(),
			[until](const T &item) { return item.time < until; });
		return static_cast<size_t>(last - first);
	}

	bool singles_only_;
	Fifo<Single> singles_;
	Fifo<Arrival> arrivals_;
	Fifo<Packet> packets_;
	size_t read_ = 0, read_packets_ = 0;
};

} // namespace sim
