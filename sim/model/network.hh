// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The simulated network as plain data: what the JSON says, with every name resolved to an index.
// `check_network` refuses what no engine could run; an engine takes a checked network.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/packet.hh"

namespace sim
{

// The user's input is wrong: what() names the node, the value and the fix. Exit code 2.
struct InputError : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// The network has a cycle, which only some engines can run.
struct CycleError : InputError {
	using InputError::InputError;
};

struct SizeWeight {
	uint32_t bytes;
	uint32_t weight;
};

enum class SourceKind { cbr, poisson, on_off, pareto_on_off, pcap };

struct Source {
	std::string name;
	SourceKind kind = SourceKind::cbr;
	uint32_t node = 0; // where its packets enter
	uint16_t label = 0;
	uint32_t flows = 1;
	std::vector<SizeWeight> sizes; // one entry: fixed size
	Ps gap = 0; // cbr, on_off, pareto_on_off: between packets; poisson: mean
	Ps on = 0; // on_off: length; pareto_on_off: mean length
	Ps off_min = 0, off_max = 0; // on_off: uniform between; pareto_on_off: mean is off_min
	double shape = 1.5; // pareto_on_off
	bool random_phase = true; // else all sources start together at time 0
	std::string path; // pcap
	bool loop = false; // pcap
	// One source may feed several nodes: as so many sources with the same generator, each of
	// which gives its share of the packets, by flow or in turn.
	uint32_t shares = 1, share = 0;
	bool by_flow = false;
	uint64_t generator = own_generator; // else: of the source with this number
	static constexpr uint64_t own_generator = UINT64_MAX;
};

enum class ServiceKind { fixed, exponential };

// Work per original packet, at least 1 ps: fixed part (or mean) + bytes * per_byte.
struct Service {
	ServiceKind kind = ServiceKind::fixed;
	Ps per_packet = 1;
	Ps per_byte = 0;
	// Only with Aggregation::Mode::queue: once per burst; for each frame of several packets
	// that comes; for each that leaves; and of a packet that comes by itself, in place of
	// per_packet and per_frame (0: these).
	Ps per_burst = 0, per_frame = 0, per_sent = 0, per_single = 0;
};

struct BatchStep {
	uint64_t from_pps;
	uint32_t packets;
};

struct Aggregation {
	enum class Mode {
		none, // every packet leaves as it came
		table, // packets per frame follow the measured rate (the papers' simulation)
		queue, // what lies in the queue when the server comes round is aggregated
	} mode = Mode::none;
	std::vector<BatchStep> steps; // table: ascending, first from_pps is 0
	Ps window = 0; // table: the rate is counted over this, then holds for the next
	uint32_t weight_ppm = 1000000; // table: of the newest window in the rate, in millionths
	// A frame that is not full waits no longer than this for more packets. table: from when its
	// first one was served; queue: from when the burst of that one began, 0: not at all.
	Ps flush = 0;
	uint32_t burst = 32; // queue: packets taken at once
	uint32_t mtu = 1500; // of the IP packet
	uint32_t frame_overhead = 50; // Ethernet 14, IP 20, UDP 8, convoy 4, FCS 4
	uint32_t packet_overhead = 2; // length field of each embedded packet
	uint32_t max_packets = 255;
};

enum class Policy { round_robin, hash, weighted };

struct Choice {
	uint32_t dst; // the node that opens the frame
	uint16_t label;
	uint32_t weight = 1;
};

struct NextHop {
	uint16_t label;
	Policy policy = Policy::round_robin;
	std::vector<Choice> choices;
};

// Frames for dst leave by one of these links (equal cost: by hash of the first packet's flow).
struct Route {
	uint32_t dst;
	std::vector<uint32_t> links;
};

enum class NodeKind { function, fabric, sink };

struct Node {
	std::string name;
	NodeKind kind = NodeKind::function;
	Service service;
	Aggregation aggregation;
	uint64_t queue_packets = 0; // in the node, served one included; 0: without limit
	std::vector<NextHop> next_hops;
	std::vector<Route> routes;
};

struct Link {
	std::string name;
	uint32_t from = 0, to = 0;
	uint64_t rate_bps = 0;
	Ps delay = 1; // at least 1 ps
	uint32_t gap_bytes = 20; // preamble and inter-frame gap, on the wire with each frame
	uint64_t queue_frames = 0; // at the sending port, the sent one included; 0: without limit
};

struct Network {
	std::string name;
	uint64_t seed = 1;
	Ps duration = ps_per_s;
	Ps chunk = ps_per_s / 1000; // feed-forward: how far each node runs before the next does
	std::vector<Node> nodes;
	std::vector<Link> links;
	std::vector<Source> sources;
};

// Ethernet header and FCS, which the MTU does not count.
constexpr uint32_t l2_bytes = 18;
constexpr uint32_t fcs_bytes = 4;

// Throws InputError. Includes: indices in range, rates and delays above zero, MTU not below one
// packet, every label resolvable, and a path from every source to a sink.
void check_network(const Network &network);

} // namespace sim
