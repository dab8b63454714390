// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An ns-3 network device at one end of a link, and the channel between two of them. Unlike
// ns-3's own point-to-point device it adds no bytes and its times are exact to the picosecond.
#pragma once

#include <ns3/channel.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>
#include <ns3/nstime.h>
#include <ns3/packet.h>

#include "engine/link_time.hh"

namespace sim
{

class LinkDevice;

class LinkChannel : public ns3::Channel
{
      public:
	static ns3::TypeId GetTypeId();
	void connect(ns3::Ptr<LinkDevice> from, ns3::Ptr<LinkDevice> to, Ps delay);
	void transmit(ns3::Ptr<ns3::Packet> packet);

	std::size_t GetNDevices() const override;
	ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;

      private:
	void DoDispose() override; // lets go of the devices, which hold it too

	ns3::Ptr<LinkDevice> from_, to_;
	ns3::Time delay_;
};

class LinkDevice : public ns3::NetDevice
{
      public:
	static ns3::TypeId GetTypeId();

	void set_link(const Link &link, ns3::Ptr<LinkChannel> channel);
	void receive(ns3::Ptr<ns3::Packet> packet);

	// False: the queue is full and the packet is dropped.
	bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address &to, uint16_t protocol) override;
	bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address &from,
		const ns3::Address &to, uint16_t protocol) override;

	void SetIfIndex(uint32_t index) override;
	uint32_t GetIfIndex() const override;
	ns3::Ptr<ns3::Channel> GetChannel() const override;
	void SetAddress(ns3::Address address) override;
	ns3::Address GetAddress() const override;
	bool SetMtu(uint16_t mtu) override;
	uint16_t GetMtu() const override;
	bool IsLinkUp() const override;
	void AddLinkChangeCallback(ns3::Callback<void> callback) override;
	bool IsBroadcast() const override;
	ns3::Address GetBroadcast() const override;
	bool IsMulticast() const override;
	ns3::Address GetMulticast(ns3::Ipv4Address group) const override;
	ns3::Address GetMulticast(ns3::Ipv6Address group) const override;
	bool IsBridge() const override;
	bool IsPointToPoint() const override;
	ns3::Ptr<ns3::Node> GetNode() const override;
	void SetNode(ns3::Ptr<ns3::Node> node) override;
	bool NeedsArp() const override;
	void SetReceiveCallback(ReceiveCallback callback) override;
	void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override;
	bool SupportsSendFrom() const override;

      private:
	void DoDispose() override;
	void transmit(ns3::Ptr<ns3::Packet> packet);
	void sent();

	std::unique_ptr<LinkTime> time_;
	uint64_t limit_ = 0; // frames, the sent one included; 0: none
	ns3::Ptr<ns3::Queue<ns3::Packet>> queue_;
	ns3::Ptr<ns3::Packet> sending_;
	ns3::Ptr<LinkChannel> channel_;
	ns3::Ptr<ns3::Node> node_;
	ReceiveCallback receive_;
	ns3::Mac48Address address_;
	uint32_t index_ = 0;
	uint16_t mtu_ = 65535;
};

} // namespace sim
