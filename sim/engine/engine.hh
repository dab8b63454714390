// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The three engines: the same network gives the same Result, whichever runs it.
#pragma once

#include <atomic>
#include <functional>

#include "model/network.hh"
#include "model/result.hh"

namespace sim
{

// Told now and then how far simulated time has come; must be cheap.
using Progress = std::function<void(Ps now, const Result &)>;

struct Watch {
	Progress progress = nullptr;
	const std::atomic<bool> *stop = nullptr; // set: the engine ends with a partial Result

	bool stopped() const
	{
		return stop && stop->load(std::memory_order_relaxed);
	}
};

// Acyclic networks only: throws CycleError naming the nodes of a cycle. Runs node after node,
// a chunk of time each; without limit on length, memory stays that of a chunk and the queues.
Result run_feed_forward(const Network &network, const Watch &watch);

// Any network. One heap of events.
Result run_event_heap(const Network &network, const Watch &watch);

// Any network. ns-3's scheduler, nodes, devices, channels and packets with real headers.
// Only in builds with ns-3. Throws InputError for sizes that real headers cannot have.
Result run_ns3(const Network &network, const Watch &watch);

} // namespace sim
