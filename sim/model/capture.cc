// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/capture.hh"

#include <algorithm>

#include "model/network.hh"
#include "model/random.hh"

namespace sim
{

namespace
{

// Hash of the addresses and ports of an IPv4 or IPv6 packet behind up to two VLAN tags, else of
// the MAC addresses. Only has to be the same for packets of one flow.
uint32_t flow_of(const unsigned char *p, size_t length)
{
	auto hash = [](const unsigned char *from, size_t n, uint64_t h) {
		for (size_t i = 0; i < n; i++)
			h = (h ^ from[i]) * 0x100000001b3;
		return h;
	};
	size_t at = 12;
	for (int tags = 0; tags < 2 && length >= at + 6; tags++) {
		if (!((p[at] == 0x81 && p[at + 1] == 0) || (p[at] == 0x88 && p[at + 1] == 0xa8)))
			break;
		at += 4;
	}
	uint64_t h = 0xcbf29ce484222325;
	size_t ports = 0;
	if (length >= at + 22 && p[at] == 8 && p[at + 1] == 0) {
		h = hash(p + at + 14, 8, h ^ p[at + 11]);
		bool fragment = (p[at + 8] & 0x3f) != 0 || p[at + 9] != 0;
		if (!fragment)
			ports = at + 2 + (p[at + 2] & 0xfu) * 4u;
	} else if (length >= at + 42 && p[at] == 0x86 && p[at + 1] == 0xdd) {
		h = hash(p + at + 10, 32, h ^ p[at + 8]);
		ports = at + 42;
	} else {
		h = hash(p, std::min<size_t>(length, 12), h);
	}
	if (ports && length >= ports + 4)
		h = hash(p + ports, 4, h);
	return static_cast<uint32_t>(mix64(h));
}

} // namespace

Ps Capture::since_first(const CapturedPacket &packet)
{
	if (!have_first_) {
		have_first_ = true;
		first_s_ = packet.seconds;
		first_fraction_ = packet.fraction;
	}
	int64_t seconds;
	constexpr int64_t most = 4000000; // of what picoseconds can hold, half
	if (__builtin_sub_overflow(packet.seconds, first_s_, &seconds) || seconds > most ||
		seconds < -most)
		throw InputError(
			"source: capture '" + path_ +
			"': its times differ by more than 46 days; cut it (editcap -A -B)");
	return seconds * ps_per_s + packet.fraction - first_fraction_;
}

bool Capture::read_record(Record &record)
{
	CapturedPacket packet;
	if (!file_->next(packet))
		return false;
	// A capture's clock may step back; simulated time may not.
	last_ = std::max(last_, since_first(packet) + offset_);
	uint32_t length = std::min<uint32_t>(packet.length, 9018) + fcs_bytes;
	record = {last_, static_cast<uint16_t>(std::clamp<uint32_t>(length, 64, 9018)),
		flow_of(packet.bytes, packet.kept)};
	return true;
}

bool Capture::next(Record &record)
{
	if (read_record(record))
		return true;
	if (!have_first_)
		throw InputError("source: capture '" + path_ + "' holds no packet");
	if (!loop_)
		return false;
	// The next round begins 1 us after this one's last packet.
	offset_ = last_ + 1000000;
	file_->rewind();
	return read_record(record);
}

} // namespace sim
