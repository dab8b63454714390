// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/station.hh"

namespace sim
{

void Station::inputs(std::vector<Feed> feeds, std::vector<Stream *> streams)
{
	feeds_ = std::move(feeds);
	streams_ = std::move(streams);
	steady_ = SteadyFeeds::can_be(feeds_);
	made_count_.resize(steady_ ? 1 : feeds_.size());
	for (auto *stream : streams_)
		all_lone_ &= stream->lone();
}

void Station::run(Ps until)
{
	make_packets(until);
	if (all_lone_) {
		auto run = merged_lones(until);
		lones(run.first, run.count);
	} else {
		auto run = merged_arrivals(until);
		arrivals(run.first, run.count);
	}
	settle(until);
	for (auto *stream : streams_)
		stream->forget();
}

// The sources' packets, one source after the other where they cannot be made in order.
void Station::make_packets(Ps until)
{
	constexpr size_t at_once = 512;
	made_.drop(made_.size());
	if (steady_) {
		steady_feeds_.fill(feeds_, until, made_);
		made_count_[0] = made_.size();
		return;
	}
	for (size_t i = 0; i < feeds_.size(); i++) {
		auto &[source, count] = feeds_[i];
		made_count_[i] = 0;
		size_t made = at_once;
		while (made == at_once) {
			Lone *out = made_.room(at_once);
			made = source->fill(until, out, at_once);
			made_.commit(made);
			made_count_[i] += made;
			for (size_t j = 0; j < made; j++)
				count->bytes += out[j].packet.bytes;
		}
		count->packets += made_count_[i];
	}
}

Run<Lone> Station::merged_lones(Ps until)
{
	lone_runs_.clear();
	Lone *made = made_.data();
	for (auto count : made_count_) {
		lone_runs_.push_back({made, count});
		made += count;
	}
	for (auto *stream : streams_)
		lone_runs_.push_back(stream->lones_before(until));
	return merge_lones_.merge(lone_runs_);
}

// Where some inputs carry frames, lone packets become frames of one.
Run<Arrival> Station::merged_arrivals(Ps until)
{
	size_t lones = made_.size();
	for (auto *stream : streams_)
		if (stream->lone())
			lones += stream->lones_before(until).count;
	Arrival *out = as_arrivals_.room(lones);
	auto convert = [&out](const Lone *first, size_t count) {
		Run<Arrival> run = {out, count};
		for (size_t i = 0; i < count; i++)
			*out++ = {first[i].time, &first[i].packet, 1, first[i].packet.bytes, 0,
				first[i].packet.bytes};
		return run;
	};
	arrival_runs_.clear();
	const Lone *made = made_.data();
	for (auto count : made_count_) {
		arrival_runs_.push_back(convert(made, count));
		made += count;
	}
	for (auto *stream : streams_) {
		if (stream->lone()) {
			auto run = stream->lones_before(until);
			arrival_runs_.push_back(convert(run.first, run.count));
		} else {
			arrival_runs_.push_back(stream->arrivals_before(until));
		}
	}
	return merge_arrivals_.merge(arrival_runs_);
}

void SinkStation::lones(Lone *first, size_t count)
{
	count_.received_frames += count;
	count_.received_packets += count;
	count_.delivered_packets += count;
	for (size_t i = 0; i < count; i++)
		count_.delivered_bytes += first[i].packet.bytes;
	count_.latency->add_all(
		count, [first](size_t i) { return first[i].time - first[i].packet.born; });
}

void SinkStation::arrivals(const Arrival *first, size_t count)
{
	for (const Arrival *a = first; a < first + count; a++) {
		count_.received_packets += a->count;
		for (uint32_t i = 0; i < a->count; i++)
			count_.delivered_bytes += a->packets[i].bytes;
		count_.latency->add_all(
			a->count, [a](size_t i) { return a->time - a->packets[i].born; });
	}
	count_.received_frames += count;
	count_.delivered_packets = count_.received_packets;
}

// What comes to a fabric node is always a frame, with the node that it is for.
void FabricStation::lones(Lone *, size_t)
{
}

void FabricStation::arrivals(const Arrival *first, size_t count)
{
	count_.received_frames += count;
	count_.sent_frames += count;
	for (const Arrival *a = first; a < first + count; a++) {
		count_.received_packets += a->count;
		count_.sent_packets += a->count;
		port_.send(a->time, a->count, a->bytes, a->dst, a->packets);
	}
}

} // namespace sim
