// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The arithmetic of aggregation, shared by all engines: how large a frame is, and how many
// packets one should hold at a rate.
#pragma once

#include <cstdint>

#include "model/network.hh"

namespace sim
{

// Bytes that an original packet adds to a frame: its length field, and itself without FCS.
inline uint32_t embedded_bytes(const Aggregation &aggregation, uint32_t packet_bytes)
{
	return aggregation.packet_overhead + packet_bytes - fcs_bytes;
}

// Largest frame, as the sizes here count it (frame_overhead says whether FCS is in them).
inline uint32_t max_frame_bytes(const Aggregation &aggregation)
{
	return aggregation.mtu + l2_bytes;
}

// How long frames are, by what is in them; as if there were several packets, also for one.
class FrameBytes
{
      public:
	explicit FrameBytes(const Aggregation &aggregation)
	    : overhead_(aggregation.frame_overhead), more_(embedded_bytes(aggregation, 0)),
	      most_(max_frame_bytes(aggregation))
	{
	}

	uint32_t of(uint32_t packets, uint32_t their_bytes) const
	{
		return overhead_ + their_bytes + packets * more_;
	}
	bool too_long(uint32_t packets, uint32_t their_bytes) const
	{
		return of(packets, their_bytes) > most_;
	}

      private:
	uint32_t overhead_;
	uint32_t more_; // of each packet: its length field, less its FCS, modulo 2^32
	uint32_t most_;
};

// Counts packets for one next hop in consecutive windows. The batch size of a window follows
// the rate known from those before it, 0 at first: each moves it by its weight towards its own.
class RateWindow
{
      public:
	explicit RateWindow(const Aggregation &aggregation)
	    : aggregation_(&aggregation), end_(aggregation.window), batch_(batch_at(0))
	{
	}

	// A packet comes at `now`, not before the last one; returns packets per frame.
	uint32_t count(Ps now)
	{
		if (now >= end_)
			roll(now);
		count_++;
		return batch_;
	}

	// More packets, all before end(), with the batch size that count() gave.
	void more(uint64_t packets)
	{
		count_ += packets;
	}

	// Packets per frame in this window.
	uint32_t batch() const
	{
		return batch_;
	}

	// When the window ends.
	Ps end() const
	{
		return end_;
	}

      private:
	void roll(Ps now)
	{
		Ps window = aggregation_->window;
		auto skipped = (now - end_) / window;
		move_rate(rate_pps(count_));
		for (auto left = skipped; left > 0 && move_rate(0); left--)
			;
		batch_ = batch_at(static_cast<uint64_t>(rate_));
		end_ += (skipped + 1) * window;
		count_ = 0;
	}

	// False: it did not change.
	bool move_rate(int64_t newest)
	{
		auto difference = static_cast<__int128>(newest - rate_);
		auto step = static_cast<int64_t>(difference * aggregation_->weight_ppm / 1000000);
		rate_ += step;
		return step != 0;
	}

	int64_t rate_pps(uint64_t count) const
	{
		auto scaled = static_cast<unsigned __int128>(count) * ps_per_s;
		return static_cast<int64_t>(scaled / static_cast<uint64_t>(aggregation_->window));
	}

	uint32_t batch_at(uint64_t pps) const
	{
		uint32_t batch = 1;
		for (const auto &step : aggregation_->steps)
			if (pps >= step.from_pps)
				batch = step.packets;
		return batch;
	}

	const Aggregation *aggregation_;
	Ps end_;
	uint32_t batch_;
	uint64_t count_ = 0;
	int64_t rate_ = 0;
};

} // namespace sim
