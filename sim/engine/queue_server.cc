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
	while (!waiting_.empty() && sent_ < until)
		start_burst(sent_);
	SlotsServer::advance(until);
}

// A burst begins with all packets of the frame that has come.
void QueueServer::arrive(Ps now, const Packet *packets, uint32_t count)
{
	while (!waiting_.empty() && sent_ <= now)
		start_burst(sent_);
	uint64_t serving = done_ > now ? serving_ : 0;
	bool first = true;
	for (const Packet *p = packets; p < packets + count; p++) {
		if (spec_.queue_packets && waiting_.size() + serving >= spec_.queue_packets)
			count_.dropped_packets++;
		else
			waiting_.push({*p, now, count, std::exchange(first, false)});
	}
	if (sent_ <= now && !waiting_.empty())
		start_burst(now);
}

void QueueServer::start_burst(Ps start)
{
	serving_ = std::min<uint64_t>(waiting_.size(), aggregation_.burst);
	Ps work = spec_.service.per_burst;
	burst_.clear();
	Ps since = 0;
	for (uint64_t i = 0; i < serving_; i++) {
		const Waiting &next = waiting_.front();
		burst_.push_back(next.packet);
		since += start - next.since;
		work += service_.next(next.packet.bytes, next.in_frame, next.first);
		waiting_.pop();
	}
	done_ = sent_ = start + work;
	if (done_ >= end_) {
		count_.held_packets += serving_;
		return;
	}
	count_.served_packets += serving_;
	count_.busy += work;
	count_.waited += static_cast<uint64_t>(since);
	flush_before(done_ + 1);
	for (const auto &packet : burst_) {
		auto pick = hops_.pick(packet);
		if (put(slots_[pick.slot], packet, pick.label, done_, start))
			sent_ += spec_.service.per_sent;
	}
	for (auto &slot : slots_)
		if (slot.flush_at <= done_)
			emit(slot, done_);
	count_.busy += std::min(sent_, end_) - done_;
}

} // namespace sim
