// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/source.hh"

#include <algorithm>

#include "model/capture.hh"

namespace sim
{

// Whose sequence of random numbers.
static uint64_t generator(const Source &spec, uint64_t stream)
{
	return spec.generator == Source::own_generator ? stream : spec.generator;
}

SourceState::SourceState(const Source &spec, uint64_t seed, uint64_t stream, Ps end)
    : spec_(&spec), random_(seed, generator(spec, stream)),
      first_flow_(static_cast<uint32_t>(mix64(generator(spec, stream)) & 0xffff0000u)),
      shared_(spec.shares > 1), end_(end)
{
	begin();
	if (shared_)
		find_mine();
}

// The time of the first packet.
void SourceState::begin()
{
	const Source &spec = *spec_;
	if (spec.kind == SourceKind::pcap) {
		capture_ = std::make_unique<Capture>(spec.path, spec.loop);
		advance_other();
		return;
	}
	next_bytes_ = static_cast<uint16_t>(spec.sizes[0].bytes);
	if (spec.sizes.size() > 1) {
		uint64_t sum = 0;
		for (const auto &size : spec.sizes)
			cumulative_.push_back(sum += size.weight);
	}
	Ps cycle = spec.gap;
	switch (spec.kind) {
	case SourceKind::poisson:
		time_ = random_.exponential(static_cast<double>(spec.gap));
		return;
	case SourceKind::on_off:
		cycle = spec.on + (spec.off_min + spec.off_max) / 2;
		break;
	case SourceKind::pareto_on_off:
		cycle = spec.on + spec.off_min;
		break;
	default:
		break;
	}
	if (spec.random_phase)
		time_ = static_cast<Ps>(random_.below(static_cast<uint64_t>(cycle) + 1));
	if (spec.kind == SourceKind::on_off)
		burst_end_ = time_ + spec.on;
	else if (spec.kind == SourceKind::pareto_on_off)
		burst_end_ = time_ + random_.pareto(static_cast<double>(spec.on), spec.shape);
}

// Goes on to the next packet of this share.
void SourceState::find_mine()
{
	while (time_ < end_) {
		Ps time = time_;
		Packet packet = take_any();
		uint32_t whose = turn_;
		if (spec_->by_flow)
			whose = static_cast<uint32_t>(mix64(packet.flow) % spec_->shares);
		turn_ = turn_ + 1 == spec_->shares ? 0 : turn_ + 1;
		if (whose == spec_->share) {
			mine_ = {time, packet};
			return;
		}
	}
	mine_.time = never;
}

SourceState::~SourceState() = default;
SourceState::SourceState(SourceState &&) noexcept = default;

// The old burst has ended: the next packet is the first of the next one.
void SourceState::start_burst()
{
	if (spec_->kind == SourceKind::on_off) {
		auto spread = static_cast<uint64_t>(spec_->off_max - spec_->off_min);
		time_ = burst_end_ + spec_->off_min + static_cast<Ps>(random_.below(spread + 1));
		burst_end_ = time_ + spec_->on;
		return;
	}
	time_ = burst_end_ + random_.pareto(static_cast<double>(spec_->off_min), spec_->shape);
	burst_end_ = time_ + random_.pareto(static_cast<double>(spec_->on), spec_->shape);
}

size_t SourceState::fill(Ps until, Single *out, size_t room)
{
	if (periodic())
		return fill_periodic(until, out, room);
	size_t n = 0;
	for (; n < room && time() < until; n++) {
		out[n].time = time();
		out[n].packet = take();
	}
	return n;
}

size_t SourceState::fill_periodic(Ps until, Single *out, size_t room)
{
	size_t n = 0;
	while (n < room && time_ < until) {
		size_t some = std::min(room - n, periodic_before(until));
		take_periodic(some, out + n, 1);
		n += some;
	}
	return n;
}

// One division for all of them.
size_t SourceState::periodic_before(Ps until) const
{
	if (spec_->kind != SourceKind::cbr)
		until = std::min(until, burst_end_);
	// A burst without length still has its first packet.
	return static_cast<size_t>(std::max<Ps>(1, (until - time_ + spec_->gap - 1) / spec_->gap));
}

void SourceState::take_periodic(size_t count, Single *out, size_t stride)
{
	Packet packet = make_original(time_, first_flow_, next_bytes_, spec_->label);
	for (size_t i = 0; i < count; i++) {
		out[i * stride] = {packet.born, packet};
		packet.born += spec_->gap;
	}
	time_ = packet.born;
	if (spec_->kind != SourceKind::cbr && time_ >= burst_end_)
		start_burst();
}

void SourceState::advance_other()
{
	if (spec_->kind == SourceKind::poisson) {
		time_ += random_.exponential(static_cast<double>(spec_->gap));
		return;
	}
	Capture::Record record;
	if (!capture_->next(record)) {
		time_ = never;
		return;
	}
	time_ = record.time;
	next_bytes_ = record.bytes;
	next_flow_ = record.flow;
}

uint16_t SourceState::drawn_bytes()
{
	uint64_t draw = random_.below(cumulative_.back());
	size_t i = 0;
	while (cumulative_[i] <= draw)
		i++;
	return static_cast<uint16_t>(spec_->sizes[i].bytes);
}

} // namespace sim
