// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How long a frame occupies a link: exact, rounded up to a picosecond, one division per size.
#pragma once

#include "model/network.hh"

namespace sim
{

class LinkTime
{
      public:
	explicit LinkTime(const Link &link) : rate_(link.rate_bps), gap_(link.gap_bytes)
	{
	}

	Ps of(uint32_t bytes)
	{
		if (bytes != bytes_) {
			bytes_ = bytes;
			uint64_t scaled = (static_cast<uint64_t>(bytes) + gap_) * 8 * ps_per_s;
			time_ = static_cast<Ps>((scaled + rate_ - 1) / rate_);
		}
		return time_;
	}

      private:
	uint64_t rate_;
	uint32_t gap_;
	uint32_t bytes_ = UINT32_MAX;
	Ps time_ = 0;
};

} // namespace sim
