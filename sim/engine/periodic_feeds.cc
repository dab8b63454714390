// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "engine/periodic_feeds.hh"

#include <algorithm>

namespace sim
{

// Where a pause were shorter than a gap, a source could send twice in a round.
static bool keeps_turn(const Source &source)
{
	constexpr Ps least_packets = 16; // of a burst: for fewer it is not quicker
	if (source.kind == SourceKind::cbr)
		return true;
	return source.kind == SourceKind::on_off && source.off_min >= source.gap &&
	       source.on / source.gap >= least_packets;
}

bool PeriodicFeeds::can_be(const std::vector<Feed> &feeds)
{
	constexpr size_t most_feeds = 16;
	if (feeds.empty() || feeds.size() > most_feeds)
		return false;
	Ps gap = feeds[0].source->spec().gap;
	return std::all_of(feeds.begin(), feeds.end(), [gap](const Feed &feed) {
		const Source &spec = feed.source->spec();
		return feed.source->periodic() && spec.gap == gap && keeps_turn(spec);
	});
}

void PeriodicFeeds::fill(const std::vector<Feed> &feeds, Ps until, Fifo<Single> &out)
{
	for (;;) {
		Ps uninterrupted_until = find_turns(feeds, until);
		if (turns_.empty())
			return;
		size_t rounds = rounds_before(uninterrupted_until), each = turns_.size();
		Single *first = out.room(rounds * each);
		for (auto &turn : turns_) {
			turn.feed->source->take_periodic(rounds, first++, each);
			turn.feed->count->packets += rounds;
			turn.feed->count->bytes += rounds * turn.feed->source->periodic_bytes();
		}
		out.commit(rounds * each);
	}
}

// A round is a gap long. Those who send in it before anyone else begins; returns when that is.
Ps PeriodicFeeds::find_turns(const std::vector<Feed> &feeds, Ps until)
{
	Ps first = never;
	for (const auto &feed : feeds)
		first = std::min(first, feed.source->time());
	turns_.clear();
	if (first >= until)
		return until;
	Ps round_ends = first + feeds[0].source->spec().gap;
	for (const auto &feed : feeds) {
		Ps time = feed.source->time();
		if (time >= round_ends)
			until = std::min(until, time);
		else
			turns_.push_back({&feed, time});
	}
	std::stable_sort(turns_.begin(), turns_.end(),
		[](const Turn &a, const Turn &b) { return a.time < b.time; });
	while (turns_.back().time >= until)
		turns_.pop_back();
	return until;
}

size_t PeriodicFeeds::rounds_before(Ps until) const
{
	size_t rounds = SIZE_MAX;
	for (const auto &turn : turns_)
		rounds = std::min(rounds, turn.feed->source->periodic_before(until));
	return rounds;
}

} // namespace sim
