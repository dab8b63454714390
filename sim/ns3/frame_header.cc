// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "ns3/frame_header.hh"

#include <algorithm>

namespace sim
{

namespace
{

constexpr uint32_t payload_bytes = 8 + 4 + 2; // born, flow, label: in every original packet
constexpr uint16_t original_port = 9; // discard

void write_payload(ns3::Buffer::Iterator &at, const Packet &packet)
{
	at.WriteHtonU64(static_cast<uint64_t>(packet.born));
	at.WriteHtonU32(packet.flow);
	at.WriteHtonU16(packet.label);
}

Packet read_payload(ns3::Buffer::Iterator &at, uint32_t bytes)
{
	Packet packet = {};
	packet.born = static_cast<Ps>(at.ReadNtohU64());
	packet.flow = at.ReadNtohU32();
	packet.label = at.ReadNtohU16();
	packet.bytes = static_cast<uint16_t>(bytes);
	return packet;
}

} // namespace

FrameHeader::FrameHeader(uint32_t dst, const std::vector<Packet> &packets, const Aggregation &a)
    : dst_(dst), packets_(packets)
{
	if (packets_.size() == 1) {
		trailer_ = packets_[0].bytes - outer_bytes - payload_bytes;
		return;
	}
	type_ = a.packet_overhead ? FrameType::lengths : FrameType::equal;
	trailer_ = a.frame_overhead - outer_bytes - convoy_bytes;
}

ns3::TypeId FrameHeader::GetTypeId()
{
	static ns3::TypeId id = ns3::TypeId("convoy::FrameHeader")
					.SetParent<ns3::Header>()
					.AddConstructor<FrameHeader>();
	return id;
}

ns3::TypeId FrameHeader::GetInstanceTypeId() const
{
	return GetTypeId();
}

uint32_t FrameHeader::GetSerializedSize() const
{
	if (packets_.size() == 1)
		return outer_bytes + payload_bytes;
	uint32_t bytes = outer_bytes + convoy_bytes;
	for (const auto &packet : packets_)
		bytes += (type_ == FrameType::lengths ? 2 : 0) + packet.bytes - fcs_bytes;
	return bytes;
}

void FrameHeader::write_outer(ns3::Buffer::Iterator &at, uint16_t ip_bytes, uint16_t port) const
{
	at.WriteHtonU16(0x0200); // locally administered
	at.WriteHtonU32(dst_);
	at.WriteHtonU16(0x0200);
	at.WriteHtonU32(0);
	at.WriteHtonU16(0x0800);
	at.WriteU8(0x45);
	at.WriteU8(0);
	at.WriteHtonU16(ip_bytes);
	at.WriteHtonU32(0); // id, fragment
	at.WriteHtonU16(64 << 8 | 17); // TTL, UDP
	at.WriteHtonU16(0); // checksum: left to the card
	at.WriteHtonU32(0x0a000001);
	at.WriteHtonU32(0x0a800000 + dst_);
	at.WriteHtonU16(static_cast<uint16_t>(packets_[0].flow >> 16)); // for RSS
	at.WriteHtonU16(port);
	at.WriteHtonU16(static_cast<uint16_t>(ip_bytes - 20));
	at.WriteHtonU16(0);
}

void FrameHeader::Serialize(ns3::Buffer::Iterator at) const
{
	auto count = packets_.size();
	uint32_t in_ip = GetSerializedSize() - 14;
	if (count == 1) {
		write_outer(at, static_cast<uint16_t>(packets_[0].bytes - l2_bytes), original_port);
		write_payload(at, packets_[0]);
		return;
	}
	write_outer(at, static_cast<uint16_t>(in_ip), convoy_port);
	at.WriteU8(static_cast<uint8_t>(1 << 4 | static_cast<uint8_t>(type_)));
	at.WriteU8(static_cast<uint8_t>(count));
	at.WriteHtonU16(static_cast<uint16_t>(dst_));
	for (const auto &packet : packets_) {
		uint32_t bytes = packet.bytes - fcs_bytes;
		if (type_ == FrameType::lengths)
			at.WriteHtonU16(static_cast<uint16_t>(bytes));
		write_outer(at, static_cast<uint16_t>(packet.bytes - l2_bytes), original_port);
		write_payload(at, packet);
		at.WriteU8(0, bytes - outer_bytes - payload_bytes);
	}
}

uint32_t FrameHeader::Deserialize(ns3::Buffer::Iterator start)
{
	ns3::Buffer::Iterator at = start;
	uint32_t size = start.GetRemainingSize();
	packets_.clear();
	at.Next(2);
	dst_ = at.ReadNtohU32();
	at.Next(10);
	uint32_t ip_bytes = at.ReadNtohU16();
	at.Next(18);
	uint16_t port = at.ReadNtohU16();
	at.Next(4);
	if (port != convoy_port) {
		packets_.push_back(read_payload(at, ip_bytes + l2_bytes));
		trailer_ = size - at.GetDistanceFrom(start);
		return at.GetDistanceFrom(start);
	}
	type_ = static_cast<FrameType>(at.ReadU8() & 15);
	uint32_t count = at.ReadU8();
	at.Next(2);
	uint32_t inside = ip_bytes - 28 - convoy_bytes;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes = inside / count;
		if (type_ == FrameType::lengths)
			bytes = at.ReadNtohU16();
		at.Next(outer_bytes);
		packets_.push_back(read_payload(at, bytes + fcs_bytes));
		at.Next(bytes - outer_bytes - payload_bytes);
	}
	trailer_ = size - at.GetDistanceFrom(start);
	return at.GetDistanceFrom(start);
}

void FrameHeader::Print(std::ostream &out) const
{
	out << packets_.size() << " packets to node " << dst_;
}

ns3::Ptr<ns3::Packet> make_packet(
	uint32_t dst, const std::vector<Packet> &packets, const Aggregation &a)
{
	FrameHeader header(dst, packets, a);
	auto packet = ns3::Create<ns3::Packet>(header.trailer());
	packet->AddHeader(header);
	return packet;
}

void check_real_frames(const Network &network)
{
	std::vector<uint32_t> sizes;
	for (const auto &source : network.sources) {
		if (source.kind == SourceKind::pcap)
			sizes.insert(sizes.end(), {64, 65}); // many
		for (const auto &size : source.sizes)
			sizes.push_back(size.bytes);
	}
	bool mixed = std::any_of(
		sizes.begin(), sizes.end(), [&](uint32_t bytes) { return bytes != sizes[0]; });
	for (const auto &node : network.nodes) {
		const auto &a = node.aggregation;
		if (a.mode == Aggregation::Mode::none)
			continue;
		std::string name = "node '" + node.name + "': the ns-3 engine builds real frames: ";
		if (a.frame_overhead < outer_bytes + convoy_bytes)
			throw InputError(name + "frame-overhead must be at least 46, not " +
					 std::to_string(a.frame_overhead));
		if (a.packet_overhead != 2 && (a.packet_overhead != 0 || mixed))
			throw InputError(name +
					 "packet-overhead must be 2 (or 0 where all packets are of "
					 "one size), not " +
					 std::to_string(a.packet_overhead));
	}
	if (network.nodes.size() > 65536)
		throw InputError(
			"the ns-3 engine numbers nodes in 16 bits (NFI-ID): at most 65536");
}

} // namespace sim
