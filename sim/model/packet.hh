// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What moves through the simulated network: original packets, unaggregated or aggregated in a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sim
{

// Simulated time, integer picoseconds since the start: exact, and 106 days long.
using Ps = int64_t;
constexpr Ps ps_per_s = 1000000000000;
constexpr Ps never = INT64_MAX;

// An original packet. Copied from stream to stream: 16 bytes, so four to a cache line.
struct Packet {
	Ps born; // when its source made it
	uint32_t flow; // what a hash next hop and equal-cost paths look at
	uint16_t bytes; // on the wire, with FCS
	uint16_t label; // where it is in its chain; each node maps label -> next hop
};

// Copies with another label. As one piece of 16 bytes: a field written alone and then read as
// part of a larger piece would stall.
inline Packet relabelled(const Packet &packet, uint16_t label)
{
	static_assert(sizeof(Packet) == 16 && offsetof(Packet, label) == 14);
	using Words = uint16_t __attribute__((vector_size(16)));
	Words words;
	std::memcpy(&words, &packet, sizeof(words));
	words[7] = label;
	Packet copy;
	std::memcpy(&copy, &words, sizeof(copy));
	return copy;
}

// The same on the way in: in two pieces of 8 bytes.
inline Packet make_original(Ps born, uint32_t flow, uint16_t bytes, uint16_t label)
{
	static_assert(offsetof(Packet, flow) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	uint64_t rest =
		flow | static_cast<uint64_t>(bytes) << 32 | static_cast<uint64_t>(label) << 48;
	Packet packet;
	packet.born = born;
	std::memcpy(&packet.flow, &rest, 8);
	return packet;
}

// An unaggregated packet, with the time it is somewhere.
struct Single {
	Ps time;
	Packet packet;
};

// What a link carries: one packet as it is, or an aggregate of several.
struct FrameHead {
	Ps time; // meaning depends on the holder: sent, or arrived
	uint32_t count; // original packets inside, at least 1
	uint32_t bytes;
	uint32_t dst; // index of the node that disaggregates the frame; switches only look at this
};

struct Frame {
	FrameHead head;
	std::vector<Packet> packets;
};

} // namespace sim
