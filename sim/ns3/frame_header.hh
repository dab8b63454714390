// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A simulated frame as real bytes in an ns-3 packet: Ethernet, IPv4, UDP, and then either one
// original packet's payload or the convoy header with the packets embedded behind it.
#pragma once

#include <vector>

#include <ns3/header.h>
#include <ns3/packet.h>

#include "model/network.hh"

namespace sim
{

// Version 1. Type 0 is the convoy frame of the dataplane: each packet behind its 16-bit
// length. Type 1 has no lengths: all packets are equally long. It exists only here, for topologies whose packet_overhead is 0, as in the papers' tables.
enum class FrameType : uint8_t { lengths = 0, equal = 1 };

constexpr uint16_t convoy_port = 51966;
constexpr uint32_t outer_bytes = 14 + 20 + 8; // Ethernet, IPv4, UDP
constexpr uint32_t convoy_bytes = 4;

class FrameHeader : public ns3::Header
{
      public:
	FrameHeader() = default;
	// Borrows nothing: copies the packets. `a` is how the sender aggregates.
	FrameHeader(uint32_t dst, const std::vector<Packet> &packets, const Aggregation &a);

	static ns3::TypeId GetTypeId();
	ns3::TypeId GetInstanceTypeId() const override;
	uint32_t GetSerializedSize() const override;
	void Serialize(ns3::Buffer::Iterator start) const override;
	uint32_t Deserialize(ns3::Buffer::Iterator start) override;
	void Print(std::ostream &out) const override;

	uint32_t dst() const
	{
		return dst_;
	}
	const std::vector<Packet> &packets() const
	{
		return packets_;
	}
	// Bytes of the frame behind this header: payload's rest, padding, FCS.
	uint32_t trailer() const
	{
		return trailer_;
	}

      private:
	void write_outer(ns3::Buffer::Iterator &at, uint16_t ip_bytes, uint16_t port) const;

	uint32_t dst_ = 0;
	FrameType type_ = FrameType::lengths;
	uint32_t trailer_ = 0;
	std::vector<Packet> packets_;
};

// The whole frame; its GetSize() is what links carry.
ns3::Ptr<ns3::Packet> make_packet(
	uint32_t dst, const std::vector<Packet> &packets, const Aggregation &a);

// Throws InputError naming the node whose frames cannot be real ones.
void check_real_frames(const Network &network);

} // namespace sim
