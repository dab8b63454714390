// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the feed-forward engine runs in order, a chunk of time each: functions, sinks, and the
// sending ports of fabric nodes (each alone, so that up and down the same switch is no cycle).
#pragma once

#include <vector>

#include "engine/merge.hh"
#include "engine/port.hh"
#include "engine/steady_feeds.hh"
#include "engine/stream.hh"
#include "model/network.hh"
#include "model/result.hh"

namespace sim
{

class Station
{
      public:
	virtual ~Station() = default;

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
	// feeds the station ever aggregates. The lone packets are the callee's to change.
	virtual void lones(Lone *first, size_t count) = 0;
	virtual void arrivals(const Arrival *first, size_t count) = 0;
	virtual void settle(Ps)
	{
	}

      private:
	void make_packets(Ps until);
	Run<Lone> merged_lones(Ps until);
	Run<Arrival> merged_arrivals(Ps until);

	std::vector<Feed> feeds_;
	std::vector<Stream *> streams_;
	bool all_lone_ = true;
	bool steady_ = false;
	SteadyFeeds steady_feeds_;
	Fifo<Lone> made_; // by the sources, one after the other, or all in order
	std::vector<size_t> made_count_; // of each such run
	Fifo<Arrival> as_arrivals_; // lone packets among frames
	std::vector<Run<Lone>> lone_runs_;
	std::vector<Run<Arrival>> arrival_runs_;
	Merge<Lone> merge_lones_;
	Merge<Arrival> merge_arrivals_;
};

class SinkStation final : public Station
{
      public:
	explicit SinkStation(NodeCount &count) : count_(count)
	{
	}

      private:
	void lones(Lone *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;

	NodeCount &count_;
};

// One sending port of a fabric node: frames pass whole, the link's queue is the only queue.
class FabricStation final : public Station
{
      public:
	FabricStation(Port &port, NodeCount &count) : port_(port), count_(count)
	{
	}

      private:
	void lones(Lone *first, size_t count) override;
	void arrivals(const Arrival *first, size_t count) override;

	Port &port_;
	NodeCount &count_;
};

} // namespace sim
