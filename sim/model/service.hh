// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How long a node works on a packet.
#pragma once

#include <algorithm>

#include "model/network.hh"
#include "model/random.hh"

namespace sim
{

class ServiceTime
{
      public:
	ServiceTime(const Service &service, uint64_t seed, uint64_t stream)
	    : service_(&service), random_(seed, stream)
	{
	}

	// Drawn once per packet, in the order they are served; at least 1 ps.
	Ps next(uint32_t bytes)
	{
		return next(bytes, service_->per_packet);
	}

	// Of a packet whose frame came with it, as the first or not.
	Ps next(uint32_t bytes, uint32_t in_frame, bool first)
	{
		if (in_frame == 1 && service_->per_single)
			return next(bytes, service_->per_single);
		return next(bytes) + (first ? service_->per_frame : 0);
	}

      private:
	Ps next(uint32_t bytes, Ps part)
	{
		if (service_->kind == ServiceKind::exponential)
			part = std::max<Ps>(1, random_.exponential(static_cast<double>(part)));
		return part + static_cast<Ps>(bytes) * service_->per_byte;
	}

	const Service *service_;
	Random random_;
};

// Streams of random numbers: sources take 0, 1, ...; nodes take these.
constexpr uint64_t node_stream(uint64_t node)
{
	return (1ull << 40) + node;
}

} // namespace sim
