// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "model/capture_file.hh"

namespace sim
{

namespace
{

class PcapFile final : public CaptureFile
{
      public:
	PcapFile(const std::string &path, FILE *file) : CaptureFile(path, file)
	{
		unsigned char header[24];
		if (std::fread(header, 1, sizeof(header), file) != sizeof(header))
			refuse("is shorter than a pcap header");
		uint32_t magic = load32(header, false);
		swapped_ = magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
		magic = load32(header, swapped_);
		if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d)
			refuse("is not a pcap file");
		tick_ = magic == 0xa1b2c3d4 ? 1000000 : 1000;
		need_ethernet(load32(header + 20, swapped_) & 0xffff);
	}

	bool next(CapturedPacket &packet) override
	{
		unsigned char header[16];
		if (!read(header, sizeof(header)))
			return false;
		packet.seconds = load32(header, swapped_);
		packet.fraction = static_cast<Ps>(load32(header + 4, swapped_)) * tick_;
		packet.length = load32(header + 12, swapped_);
		read_packet(packet, load32(header + 8, swapped_));
		return true;
	}

	void rewind() override
	{
		std::fseek(file_.get(), 24, SEEK_SET);
	}

      private:
	bool swapped_ = false;
	Ps tick_; // of the fraction: a microsecond, or a nanosecond
};

} // namespace

std::unique_ptr<CaptureFile> open_pcap(const std::string &path, FILE *file)
{
	return std::make_unique<PcapFile>(path, file);
}

} // namespace sim
