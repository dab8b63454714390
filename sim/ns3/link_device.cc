// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "ns3/link_device.hh"

#include <ns3/node.h>
#include <ns3/simulator.h>

namespace sim
{

ns3::TypeId LinkChannel::GetTypeId()
{
	static ns3::TypeId id = ns3::TypeId("convoy::LinkChannel")
					.SetParent<ns3::Channel>()
					.AddConstructor<LinkChannel>();
	return id;
}

void LinkChannel::connect(ns3::Ptr<LinkDevice> from, ns3::Ptr<LinkDevice> to, Ps delay)
{
	from_ = from;
	to_ = to;
	delay_ = ns3::TimeStep(static_cast<uint64_t>(delay));
}

void LinkChannel::transmit(ns3::Ptr<ns3::Packet> packet)
{
	ns3::Simulator::ScheduleWithContext(
		to_->GetNode()->GetId(), delay_, &LinkDevice::receive, to_, packet);
}

std::size_t LinkChannel::GetNDevices() const
{
	return 2;
}

ns3::Ptr<ns3::NetDevice> LinkChannel::GetDevice(std::size_t i) const
{
	return i == 0 ? from_ : to_;
}

void LinkChannel::DoDispose()
{
	from_ = nullptr;
	to_ = nullptr;
	ns3::Channel::DoDispose();
}

ns3::TypeId LinkDevice::GetTypeId()
{
	static ns3::TypeId id = ns3::TypeId("convoy::LinkDevice")
					.SetParent<ns3::NetDevice>()
					.AddConstructor<LinkDevice>();
	return id;
}

void LinkDevice::set_link(const Link &link, ns3::Ptr<LinkChannel> channel)
{
	time_ = std::make_unique<LinkTime>(link);
	limit_ = link.queue_frames;
	channel_ = channel;
	queue_ = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
	queue_->SetMaxSize(ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, UINT32_MAX));
}

void LinkDevice::DoDispose()
{
	queue_ = nullptr;
	sending_ = nullptr;
	channel_ = nullptr;
	node_ = nullptr;
	receive_ = ReceiveCallback();
	ns3::NetDevice::DoDispose();
}

bool LinkDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address &, uint16_t)
{
	if (limit_ && queue_->GetNPackets() + (sending_ ? 1 : 0) >= limit_)
		return false;
	if (sending_)
		return queue_->Enqueue(packet);
	transmit(packet);
	return true;
}

bool LinkDevice::SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address &,
	const ns3::Address &to, uint16_t protocol)
{
	return Send(packet, to, protocol);
}

void LinkDevice::transmit(ns3::Ptr<ns3::Packet> packet)
{
	sending_ = packet;
	auto time = static_cast<uint64_t>(time_->of(packet->GetSize()));
	ns3::Simulator::Schedule(ns3::TimeStep(time), &LinkDevice::sent, this);
}

void LinkDevice::sent()
{
	channel_->transmit(sending_);
	sending_ = nullptr;
	if (!queue_->IsEmpty())
		transmit(queue_->Dequeue());
}

void LinkDevice::receive(ns3::Ptr<ns3::Packet> packet)
{
	receive_(this, packet, 0x0800, address_);
}

void LinkDevice::SetIfIndex(uint32_t index)
{
	index_ = index;
}
uint32_t LinkDevice::GetIfIndex() const
{
	return index_;
}
ns3::Ptr<ns3::Channel> LinkDevice::GetChannel() const
{
	return channel_;
}
void LinkDevice::SetAddress(ns3::Address address)
{
	address_ = ns3::Mac48Address::ConvertFrom(address);
}
ns3::Address LinkDevice::GetAddress() const
{
	return address_;
}
bool LinkDevice::SetMtu(uint16_t mtu)
{
	mtu_ = mtu;
	return true;
}
uint16_t LinkDevice::GetMtu() const
{
	return mtu_;
}
bool LinkDevice::IsLinkUp() const
{
	return true;
}
void LinkDevice::AddLinkChangeCallback(ns3::Callback<void>)
{
}
bool LinkDevice::IsBroadcast() const
{
	return false;
}
ns3::Address LinkDevice::GetBroadcast() const
{
	return ns3::Mac48Address::GetBroadcast();
}
bool LinkDevice::IsMulticast() const
{
	return false;
}
ns3::Address LinkDevice::GetMulticast(ns3::Ipv4Address) const
{
	return address_;
}
ns3::Address LinkDevice::GetMulticast(ns3::Ipv6Address) const
{
	return address_;
}
bool LinkDevice::IsBridge() const
{
	return false;
}
bool LinkDevice::IsPointToPoint() const
{
	return true;
}
ns3::Ptr<ns3::Node> LinkDevice::GetNode() const
{
	return node_;
}
void LinkDevice::SetNode(ns3::Ptr<ns3::Node> node)
{
	node_ = node;
}
bool LinkDevice::NeedsArp() const
{
	return false;
}
void LinkDevice::SetReceiveCallback(ReceiveCallback callback)
{
	receive_ = callback;
}
void LinkDevice::SetPromiscReceiveCallback(PromiscReceiveCallback)
{
}
bool LinkDevice::SupportsSendFrom() const
{
	return true;
}

} // namespace sim
