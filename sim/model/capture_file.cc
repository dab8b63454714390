// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/capture_file.hh"

#include <algorithm>
#include <cerrno>

#include "model/network.hh"

namespace sim
{

std::unique_ptr<CaptureFile> CaptureFile::open(const std::string &path)
{
	FILE *file = std::fopen(path.c_str(), "rb");
	if (!file)
		throw InputError(
			"source: cannot open capture '" + path + "': " + std::strerror(errno));
	unsigned char magic[4] = {};
	size_t got = std::fread(magic, 1, sizeof(magic), file);
	std::rewind(file);
	if (got == sizeof(magic) && load32(magic, false) == 0x0a0d0d0a)
		return open_pcapng(path, file);
	return open_pcap(path, file);
}

bool CaptureFile::read(void *to, size_t length)
{
	size_t got = std::fread(to, 1, length, file_.get());
	if (got != length && got != 0)
		refuse_damaged();
	return got == length;
}

void CaptureFile::skip(uint64_t length)
{
	if (std::fseek(file_.get(), static_cast<long>(length), SEEK_CUR) != 0)
		refuse_damaged();
}

void CaptureFile::read_packet(CapturedPacket &packet, uint32_t captured)
{
	packet.kept = std::min<uint32_t>(captured, sizeof(packet.bytes));
	if (captured > 262144 || (packet.kept && !read(packet.bytes, packet.kept)))
		refuse_damaged();
	skip(captured - packet.kept);
}

void CaptureFile::need_ethernet(uint32_t link_type) const
{
	if (link_type != 1)
		refuse("does not hold Ethernet frames");
}

void CaptureFile::refuse(const std::string &why) const
{
	throw InputError("source: '" + path_ + "' " + why);
}

void CaptureFile::refuse_damaged() const
{
	throw InputError("source: capture '" + path_ + "' is truncated or damaged");
}

} // namespace sim
