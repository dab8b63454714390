// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/server.hh"

namespace sim
{

void Server::inputs(std::vector<Feed> feeds, std::vector<Stream *> streams)
{
	feeds_ = std::move(feeds);
	streams_ = std::move(streams);
	periodic_ = PeriodicFeeds::can_be(feeds_);
	made_count_.resize(periodic_ ? 1 : feeds_.size());
	for (auto *stream : streams_)
		singles_only_ &= stream->singles_only();
}

void Server::run(Ps until)
{
	make_packets(until);
	if (singles_only_) {
		auto run = merged_singles(until);
		singles(run.first, run.count);
	} else {
		auto run = merged_arrivals(until);
		arrivals(run.first, run.count);
	}
	advance(until);
	for (auto *stream : streams_)
		stream->forget();
}

// The sources' packets, one source after the other where they cannot be made in order.
void Server::make_packets(Ps until)
{
	constexpr size_t at_once = 512;
	made_.drop(made_.size());
	if (periodic_) {
		periodic_feeds_.fill(feeds_, until, made_);
		made_count_[0] = made_.size();
		return;
	}
	for (size_t i = 0; i < feeds_.size(); i++) {
		auto &[source, count] = feeds_[i];
		made_count_[i] = 0;
		size_t made = at_once;
		while (made == at_once) {
			Single *out = made_.room(at_once);
			made = source->fill(until, out, at_once);
			made_.commit(made);
			made_count_[i] += made;
			for (size_t j = 0; j < made; j++)
				count->bytes += out[j].packet.bytes;
		}
		count->packets += made_count_[i];
	}
}

Run<Single> Server::merged_singles(Ps until)
{
	single_runs_.clear();
	Single *made = made_.data();
	for (auto count : made_count_) {
		single_runs_.push_back({made, count});
		made += count;
	}
	for (auto *stream : streams_)
		single_runs_.push_back(stream->singles_before(until));
	return merge_singles_.merge(single_runs_);
}

// Where some inputs carry frames, single packets become frames of one.
Run<Arrival> Server::merged_arrivals(Ps until)
{
	size_t singles = made_.size();
	for (auto *stream : streams_)
		if (stream->singles_only())
			singles += stream->singles_before(until).count;
	Arrival *out = as_arrivals_.room(singles);
	auto convert = [&out](const Single *first, size_t count) {
		Run<Arrival> run = {out, count};
		for (size_t i = 0; i < count; i++)
			*out++ = {first[i].time, &first[i].packet, 1, first[i].packet.bytes, 0,
				first[i].packet.bytes};
		return run;
	};
	arrival_runs_.clear();
	const Single *made = made_.data();
	for (auto count : made_count_) {
		arrival_runs_.push_back(convert(made, count));
		made += count;
	}
	for (auto *stream : streams_) {
		if (stream->singles_only()) {
			auto run = stream->singles_before(until);
			arrival_runs_.push_back(convert(run.first, run.count));
		} else {
			arrival_runs_.push_back(stream->arrivals_before(until));
		}
	}
	return merge_arrivals_.merge(arrival_runs_);
}

void SinkServer::singles(Single *first, size_t count)
{
	count_.received_frames += count;
	count_.received_packets += count;
	count_.delivered_packets += count;
	for (size_t i = 0; i < count; i++)
		count_.delivered_bytes += first[i].packet.bytes;
	count_.latency->add_all(
		count, [first](size_t i) { return first[i].time - first[i].packet.born; });
}

void SinkServer::arrivals(const Arrival *first, size_t count)
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
void FabricServer::singles(Single *, size_t)
{
}

void FabricServer::arrivals(const Arrival *first, size_t count)
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
