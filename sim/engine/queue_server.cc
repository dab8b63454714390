// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <utility>

#include "engine/function_server.hh"

namespace sim
{

void QueueServer::finish()
{
	SlotsServer::finish();
	count_.held_packets += waiting_.size();
}

void QueueServer::singles(Single *first, size_t count)
{
	count_received(count);
	for (size_t i = 0; i < count; i++)
		arrive(first[i].time, &first[i].packet, 1);
}

void QueueServer::arrivals(const Arrival *first, size_t count)
{
	count_received(first, count);
	for (const Arrival *a = first; a < first + count; a++)
		arrive(a->time, a->packets, a->count);
}

void QueueServer::advance(Ps until)
{
	while (!waiting_.empty() && done_ < until)
		start_burst(done_);
	SlotsServer::advance(until);
}

// A burst begins with all packets of the frame that has come.
void QueueServer::arrive(Ps now, const Packet *packets, uint32_t count)
{
	while (!waiting_.empty() && done_ <= now)
		start_burst(done_);
	uint64_t serving = done_ > now ? serving_ : 0;
	bool begins = true;
	for (const Packet *p = packets; p < packets + count; p++) {
		if (spec_.queue_packets && waiting_.size() + serving >= spec_.queue_packets)
			count_.dropped_packets++;
		else
			waiting_.push({*p, now, std::exchange(begins, false)});
	}
	if (done_ <= now && !waiting_.empty())
		start_burst(now);
}

void QueueServer::start_burst(Ps start)
{
	serving_ = std::min<uint64_t>(waiting_.size(), aggregation_.burst);
	const Ps left = std::max<Ps>(0, sent_ - start);
	Ps work = left + spec_.service.per_burst;
	uint64_t taken = 0, begun = 0; // frames
	burst_.clear();
	Ps since = 0;
	for (uint64_t i = 0; i < serving_; i++) {
		burst_.push_back(waiting_.front().packet);
		since += start - waiting_.front().since;
		taken += waiting_.front().begins;
		work += service_.next(burst_.back().bytes);
		waiting_.pop();
	}
	work += static_cast<Ps>(taken) * spec_.service.per_frame;
	done_ = start + work;
	if (done_ >= end_) {
		count_.held_packets += serving_;
		return;
	}
	count_.served_packets += serving_;
	count_.busy += work - left;
	count_.waited += static_cast<uint64_t>(since);
	flush_before(done_ + 1);
	for (const auto &packet : burst_) {
		auto pick = hops_.pick(packet);
		begun += put(slots_[pick.slot], packet, pick.label, done_, start);
	}
	sent_ = done_;
	if (begun > taken)
		sent_ += static_cast<Ps>(begun - taken) * spec_.service.per_frame;
	count_.busy += std::min(sent_, end_) - done_;
	for (auto &slot : slots_)
		if (slot.flush_at <= done_)
			emit(slot, done_);
}

} // namespace sim
