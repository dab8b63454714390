// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What an engine counts. Everything that happens at a time below the end counts, nothing later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "model/packet.hh"
#include "model/random.hh"

namespace sim
{

// Exact counts by frame size. A link sees few sizes in a row: the last one is remembered.
class SizeCounts
{
      public:
	void add(uint32_t bytes, uint64_t frames = 1)
	{
		if (bytes != last_ || !count_) {
			last_ = bytes;
			count_ = &counts_[bytes];
		}
		*count_ += frames;
	}
	SizeCounts() = default;
	SizeCounts(const SizeCounts &other) : counts_(other.counts_)
	{
	}
	SizeCounts &operator=(const SizeCounts &) = delete;

	const std::map<uint32_t, uint64_t> &counts() const
	{
		return counts_;
	}

      private:
	uint32_t last_ = 0;
	uint64_t *count_ = nullptr; // map nodes do not move
	std::map<uint32_t, uint64_t> counts_;
};

// Log-linear histogram of picoseconds: 64 buckets per octave, so 1.6 % wide.
class TimeHistogram
{
      public:
	void add(Ps value)
	{
		auto v = static_cast<uint64_t>(value);
		buckets_[bucket(v)]++;
		count_++;
		sum_ += v;
		if (v > max_)
			max_ = v;
	}
	// The same for n values, the i-th of which is of(i).
	template <typename Of> void add_all(size_t n, Of of)
	{
		uint64_t *buckets = buckets_.data();
		unsigned __int128 sum = 0;
		uint64_t max = max_;
		for (size_t i = 0; i < n; i++) {
			auto v = static_cast<uint64_t>(of(i));
			buckets[bucket(v)]++;
			max = std::max(max, v);
			sum += v;
		}
		count_ += n;
		max_ = max;
		sum_ += sum;
	}
	static uint32_t bucket(uint64_t v)
	{
		if (v < 128)
			return static_cast<uint32_t>(v);
		auto shift = 57u - static_cast<uint32_t>(__builtin_clzll(v));
		return static_cast<uint32_t>(64 * shift + (v >> shift));
	}
	// Smallest value of a bucket.
	static uint64_t lowest(uint32_t bucket)
	{
		if (bucket < 128)
			return bucket;
		uint32_t shift = bucket / 64 - 1;
		return (static_cast<uint64_t>(bucket % 64) + 64) << shift;
	}
	uint64_t count() const
	{
		return count_;
	}
	uint64_t max() const
	{
		return max_;
	}
	double mean() const
	{
		return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
	}
	const std::vector<uint64_t> &buckets() const
	{
		return buckets_;
	}

      private:
	std::vector<uint64_t> buckets_ = std::vector<uint64_t>(64 * 59);
	uint64_t count_ = 0, max_ = 0;
	unsigned __int128 sum_ = 0;
};

// What one arrival adds to a link's digest. Arrivals on a link differ in time, so that their sum
// says as much as a chain would, and can be formed in any order. The two halves of a product.
inline uint64_t arrival_digest(Ps time, uint32_t count, uint32_t frame_bytes)
{
	uint64_t what = static_cast<uint64_t>(frame_bytes) << 32 | count;
	auto product =
		static_cast<unsigned __int128>(static_cast<uint64_t>(time) ^ 0x9e3779b97f4a7c15) *
		(what ^ 0xbf58476d1ce4e5b9);
	return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct LinkCount {
	uint64_t offered_frames = 0; // came to the sending port
	uint64_t dropped_frames = 0, dropped_packets = 0;
	uint64_t in_flight_frames = 0; // in the port's queue or on the wire at the end
	uint64_t frames = 0; // arrived
	uint64_t packets = 0; // original packets in them
	uint64_t bytes = 0;
	SizeCounts sizes;
	uint64_t digest = 0; // over (time, size, packets) of every arrival

	void arrive(Ps time, uint32_t count, uint32_t frame_bytes)
	{
		frames++;
		packets += count;
		bytes += frame_bytes;
		sizes.add(frame_bytes);
		digest += arrival_digest(time, count, frame_bytes);
	}
};

// Conservation at every node: received = dropped + sent + held (or received = delivered: sink).
struct NodeCount {
	uint64_t received_frames = 0, received_packets = 0;
	uint64_t dropped_packets = 0; // queue full
	uint64_t served_packets = 0;
	uint64_t sent_frames = 0, sent_packets = 0;
	uint64_t held_packets = 0; // queue, server and aggregation buffers at the end
	Ps busy = 0;
	unsigned __int128 waited = 0; // sum over served packets, arrival to start of service
	uint64_t delivered_packets = 0, delivered_bytes = 0;
	TimeHistogram *latency = nullptr; // sinks only; owned by Result
};

struct SourceCount {
	uint64_t packets = 0, bytes = 0;
};

struct Result {
	std::vector<LinkCount> links;
	std::vector<NodeCount> nodes;
	std::vector<SourceCount> sources;
	std::vector<TimeHistogram> latencies; // one per sink, in node order
	uint64_t events = 0;
	Ps simulated = 0;
	bool complete = true;
};

struct Network;

// Empty counts in the shape of the network.
Result make_result(const Network &network);

// Throws std::logic_error naming the node or link that does not conserve packets: an engine's bug.
void check_conservation(const Network &network, const Result &result);

} // namespace sim
