// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "capture.hh"

#include <algorithm>
#include <cstring>

#include "network.hh"
#include "random.hh"

namespace sim
{

namespace
{

uint32_t load32(const unsigned char *p, bool swapped)
{
	uint32_t value;
	std::memcpy(&value, p, 4);
	return swapped ? __builtin_bswap32(value) : value;
}

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

Capture::Capture(const std::string &path, bool loop)
    : path_(path), loop_(loop), file_(std::fopen(path.c_str(), "rb"))
{
	if (!file_)
		throw InputError(
			"source: cannot open capture '" + path + "': " + std::strerror(errno));
	unsigned char header[24];
	if (!read(header, sizeof(header)))
		throw InputError("source: '" + path + "' is shorter than a pcap header");
	switch (load32(header, false)) {
	case 0xa1b2c3d4:
		break;
	case 0xd4c3b2a1:
		swapped_ = true;
		break;
	case 0xa1b23c4d:
		tick_ = 1000;
		break;
	case 0x4d3cb2a1:
		swapped_ = true;
		tick_ = 1000;
		break;
	case 0x0a0d0d0a:
		throw InputError("source: '" + path + "' is pcapng; convert it: editcap -F pcap '" +
				 path + "' out.pcap");
	default:
		throw InputError("source: '" + path + "' is not a pcap file");
	}
	if ((load32(header + 20, swapped_) & 0xffff) != 1)
		throw InputError("source: '" + path + "' does not hold Ethernet frames");
}

bool Capture::read(void *to, size_t length)
{
	return std::fread(to, 1, length, file_.get()) == length;
}

bool Capture::read_record(Record &record)
{
	unsigned char header[16];
	size_t got = std::fread(header, 1, sizeof(header), file_.get());
	if (got == 0)
		return false;
	unsigned char bytes[128];
	uint32_t captured = load32(header + 8, swapped_);
	size_t look = std::min<size_t>(captured, sizeof(bytes));
	if (got != sizeof(header) || captured > 262144 || !read(bytes, look) ||
		std::fseek(file_.get(), static_cast<long>(captured - look), SEEK_CUR) != 0)
		throw InputError("source: capture '" + path_ + "' is truncated or damaged");
	Ps time = static_cast<Ps>(load32(header, swapped_)) * ps_per_s +
		  static_cast<Ps>(load32(header + 4, swapped_)) * tick_;
	if (!have_first_) {
		have_first_ = true;
		first_ = time;
	}
	// A capture's clock may step back; simulated time may not.
	last_ = std::max(last_, time - first_ + offset_);
	uint32_t length = load32(header + 12, swapped_) + fcs_bytes;
	record = {last_, static_cast<uint16_t>(std::clamp<uint32_t>(length, 64, 9018)),
		flow_of(bytes, look)};
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
	std::fseek(file_.get(), 24, SEEK_SET);
	return read_record(record);
}

} // namespace sim
