// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Merges sorted inputs: a tournament tree over the time of each input's next item. Equal times
// go to the lower index, as in every engine.
#pragma once

#include <cstdint>
#include <vector>

#include "../model/packet.hh"

namespace sim
{

class Merge
{
      public:
	explicit Merge(size_t inputs)
	{
		while (leaves_ < inputs)
			leaves_ *= 2;
		times_.assign(leaves_, never);
		winner_.resize(2 * leaves_);
		rebuild();
	}

	uint32_t first() const
	{
		return winner_[1];
	}
	Ps time() const
	{
		return times_[winner_[1]];
	}

	// Sets a time without re-playing the games: call rebuild() after the last.
	void set(uint32_t input, Ps time)
	{
		times_[input] = time;
	}
	void rebuild()
	{
		for (size_t i = 0; i < leaves_; i++)
			winner_[leaves_ + i] = static_cast<uint32_t>(i);
		for (size_t i = leaves_ - 1; i >= 1; i--)
			play(i);
	}
	void update(uint32_t input, Ps time)
	{
		times_[input] = time;
		for (size_t i = (leaves_ + input) / 2; i >= 1; i /= 2)
			play(i);
	}

      private:
	void play(size_t game)
	{
		uint32_t left = winner_[2 * game], right = winner_[2 * game + 1];
		// No branch: which input is next can hardly be predicted.
		uint32_t take = -static_cast<uint32_t>(times_[right] < times_[left]);
		winner_[game] = left ^ ((left ^ right) & take);
	}

	size_t leaves_ = 1;
	std::vector<Ps> times_;
	std::vector<uint32_t> winner_;
};

} // namespace sim
