// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A traffic source: a sequence of packets in time order, the same for every engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/network.hh"
#include "model/random.hh"

namespace sim
{

class Capture;

class SourceState
{
      public:
	// `spec` must outlive the state. `stream` picks the generator. Throws InputError (pcap).
	// Nothing at or after `end` is asked for: a share's packets are not searched for there.
	SourceState(const Source &spec, uint64_t seed, uint64_t stream, Ps end = never);
	~SourceState();
	SourceState(SourceState &&) noexcept;

	// When the next packet comes; `never` after the last.
	Ps time() const
	{
		return shared_ ? mine_.time : time_;
	}

	// The next packet, and moves on; only while time() != never.
	Packet take()
	{
		if (!shared_)
			return take_any();
		Packet packet = mine_.packet;
		find_mine();
		return packet;
	}

	// As take() while time() < until, at most `room` packets; returns how many.
	size_t fill(Ps until, Single *out, size_t room);

	const Source &spec() const
	{
		return *spec_;
	}
	// Whether a burst's packets are equal and come at equal gaps. The rest is for such sources.
	bool periodic() const
	{
		return !capture_ && !shared_ && spec_->flows == 1 && spec_->sizes.size() == 1 &&
		       spec_->kind != SourceKind::poisson;
	}
	uint16_t periodic_bytes() const
	{
		return next_bytes_;
	}
	// How many packets of the burst come before `until`, at least one; only if time() < until.
	size_t periodic_before(Ps until) const;
	// As take() for so many packets of the burst, the i-th into out[i * stride].
	void take_periodic(size_t count, Single *out, size_t stride);

      private:
	// Of all shares.
	Packet take_any()
	{
		Packet packet = make_original(time_, flow(), bytes(), spec_->label);
		advance();
		return packet;
	}
	void begin();
	void find_mine();
	size_t fill_periodic(Ps until, Single *out, size_t room);
	uint32_t flow()
	{
		if (capture_)
			return next_flow_;
		if (spec_->flows == 1)
			return first_flow_;
		return first_flow_ + static_cast<uint32_t>(random_.below(spec_->flows));
	}
	uint16_t bytes()
	{
		if (!cumulative_.empty())
			return drawn_bytes();
		return next_bytes_;
	}
	void advance()
	{
		if (spec_->kind == SourceKind::cbr) {
			time_ += spec_->gap;
			return;
		}
		if (spec_->kind == SourceKind::on_off || spec_->kind == SourceKind::pareto_on_off) {
			time_ += spec_->gap;
			if (time_ >= burst_end_)
				start_burst();
			return;
		}
		advance_other();
	}
	void start_burst();
	void advance_other();
	uint16_t drawn_bytes();

	const Source *spec_;
	Random random_;
	Ps time_ = 0;
	Ps burst_end_ = 0;
	uint32_t first_flow_;
	uint32_t next_flow_ = 0;
	uint16_t next_bytes_ = 0;
	std::vector<uint64_t> cumulative_; // of the size weights, when there are several sizes
	std::unique_ptr<Capture> capture_;
	bool shared_;
	Ps end_;
	uint32_t turn_ = 0; // whose the next packet is
	Single mine_ = {}; // the next of this share
};

} // namespace sim
