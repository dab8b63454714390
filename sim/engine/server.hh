// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the feed-forward engine runs in order, a chunk of time each: functions, sinks, and the
// sending ports of fabric nodes (each alone, so that up and down the same switch is no cycle).
#pragma once

#include <vector>

#include "engine/merge.hh"
#include "engine/port.hh"
#include "engine/periodic_feeds.hh"
#include "engine/stream.hh"
#include "model/network.hh"
#include "model/result.hh"

namespace sim
{

class Server
{
      public:
	virtual ~Server() = default;

	// The inputs in order of precedence: sources, then streams. Called once, before run().
	void inputs(std::vector<Feed> feeds, std::vector<Stream *> streams);

	// Handles everything that comes, or becomes due, before `until`.
	void run(Ps until);

	// After the last run: counts what is still inside.
	virtual void finish()
	{
	}

      protected:
	// What comes in a chunk, in order. One of the two is called: the first where nothing that
	// feeds the server ever aggregates. The single packets are the callee's to change.
	virtual void singles(Single *first, size_t count) = 0;
	virtual void arrivals(const Arrival *first, size_t count) = 0;
	// Then: what time alone brings before `until`.
	virtual void advance(Ps)
	{
	}

      private:
	void make_packets(Ps until);
	Run<Single> merged_singles(Ps until);
	Run<Arrival> merged_arrivals(Ps until);

	std::vector<Feed> feeds_;
	std::vector<Stream *> streams_;
	bool singles_only_ = true;
	bool periodic_ = false;
	PeriodicFeeds periodic_feeds_;
	Fifo<Single> made_; // by the sources, one after the other, or all in order
	std::vector<size_t> made_count_; // of each such run
	Fifo<Arrival> as_arrivals_; // single packets among frames
	std::vector<Run<Single>> single_runs_;
	std::vector<Run<Arrival>> arrival_runs_;
	Merge<Single> merge_singles_;
	Merge<Arrival> merge_arrivals_;
};

class SinkServer final : public Server
{
      public:
	explicit SinkServer(NodeCount &count) : count_(count)
	{
	}

      private:
	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;

	NodeCount &count_;
};

// One sending port of a fabric node: frames pass whole, the link's queue is the only queue.
class FabricServer final : public Server
{
      public:
	FabricServer(Port &port, NodeCount &count) : port_(port), count_(count)
	{
	}

      private:
	void singles(Single *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;

	Port &port_;
	NodeCount &count_;
};

} // namespace sim
