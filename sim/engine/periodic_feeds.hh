// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Several sources of one server that send equal packets at one common gap. While none of them
// begins or ends a burst their packets come in a fixed turn, so that they are written in order at
// once: nothing is compared, and nothing merged.
#pragma once

#include <vector>

#include "engine/fifo.hh"
#include "model/result.hh"
#include "model/source.hh"

namespace sim
{

// A source, and what it has sent.
struct Feed {
	SourceState *source;
	SourceCount *count;
};

class PeriodicFeeds
{
      public:
	// Whether this is right for them, and quicker: few sources, bursts of many packets.
	static bool can_be(const std::vector<Feed> &feeds);

	// Appends what all of them send before `until`: in time order, equal times in the order of
	// the feeds.
	void fill(const std::vector<Feed> &feeds, Ps until, Fifo<Single> &out);

      private:
	struct Turn {
		const Feed *feed;
		Ps time; // of its next packet
	};

	Ps find_turns(const std::vector<Feed> &feeds, Ps until);
	size_t rounds_before(Ps until) const;

	std::vector<Turn> turns_; // who sends in a round, in order
};

} // namespace sim
