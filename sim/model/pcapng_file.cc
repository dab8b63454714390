// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// pcapng: blocks of type, length, content, length; in sections of one byte order each, which
// begin with a header and describe their interfaces. Simple packet blocks have no time: refused.
#include <vector>

#include "model/capture_file.hh"

namespace sim
{

namespace
{

constexpr uint32_t section_header = 0x0a0d0d0a, interface_description = 1, old_packet = 2,
		   simple_packet = 3, enhanced_packet = 6;
constexpr uint16_t end_of_options = 0, if_tsresol = 9, if_tsoffset = 14;

struct Interface {
	uint64_t per_second = 1000000; // units of time
	int64_t offset_s = 0;
};

class PcapngFile final : public CaptureFile
{
      public:
	PcapngFile(const std::string &path, FILE *file) : CaptureFile(path, file)
	{
	}

	bool next(CapturedPacket &packet) override
	{
		unsigned char head[8];
		while (read(head, sizeof(head))) {
			bool got = false;
			// This block's type reads the same in either byte order.
			if (load32(head, false) == section_header) {
				begin_section(head);
				continue;
			}
			uint64_t length = load32(head + 4, swapped_);
			if (!in_section_ || length < 12 || length % 4 != 0)
				refuse_damaged();
			left_ = length - 12;
			switch (load32(head, swapped_)) {
			case interface_description:
				describe_interface();
				break;
			case enhanced_packet:
			case old_packet:
				read_block(packet, load32(head, swapped_) == old_packet);
				got = true;
				break;
			case simple_packet:
				refuse("has packets without a time (simple packet blocks); give "
				       "one with times");
			}
			skip(left_);
			end_block(length);
			if (got)
				return true;
		}
		return false;
	}

	void rewind() override
	{
		std::rewind(file_.get());
		in_section_ = false;
	}

      private:
	// Some of the block's content.
	void take(void *to, size_t length)
	{
		if (length > left_ || (length && !read(to, length)))
			refuse_damaged();
		left_ -= length;
	}

	void end_block(uint64_t length)
	{
		unsigned char again[4];
		if (!read(again, sizeof(again)) || load32(again, swapped_) != length)
			refuse_damaged();
	}

	void begin_section(const unsigned char *head)
	{
		unsigned char order[4];
		if (!read(order, sizeof(order)))
			refuse_damaged();
		swapped_ = load32(order, false) == 0x4d3c2b1a;
		uint64_t length = load32(head + 4, swapped_);
		if (load32(order, swapped_) != 0x1a2b3c4d || length < 28 || length % 4 != 0)
			refuse_damaged();
		skip(length - 16);
		end_block(length);
		in_section_ = true;
		interfaces_.clear();
	}

	void describe_interface()
	{
		unsigned char fixed[8];
		take(fixed, sizeof(fixed));
		need_ethernet(load16(fixed, swapped_));
		Interface described;
		while (left_ >= 4) {
			unsigned char head[4], value[8] = {};
			take(head, sizeof(head));
			uint16_t code = load16(head, swapped_), length = load16(head + 2, swapped_);
			if (code == end_of_options)
				break;
			size_t padded = (length + 3u) & ~3u;
			size_t kept = padded < sizeof(value) ? padded : sizeof(value);
			take(value, kept);
			if (padded - kept > left_)
				refuse_damaged();
			skip(padded - kept);
			left_ -= padded - kept;
			if (code == if_tsresol)
				described.per_second = units_per_second(value[0]);
			else if (code == if_tsoffset)
				described.offset_s = static_cast<int64_t>(
					load32(value + (swapped_ ? 4 : 0), swapped_) |
					static_cast<uint64_t>(
						load32(value + (swapped_ ? 0 : 4), swapped_))
						<< 32);
		}
		interfaces_.push_back(described);
	}

	// A power of ten, or, with the highest bit, of two.
	uint64_t units_per_second(unsigned char resolution)
	{
		unsigned power = resolution & 0x7f;
		bool two = (resolution & 0x80) != 0;
		if (power > (two ? 40 : 12))
			refuse("measures time in units below a picosecond");
		uint64_t units = 1;
		for (unsigned i = 0; i < power; i++)
			units *= two ? 2 : 10;
		return units;
	}

	void read_block(CapturedPacket &packet, bool old)
	{
		unsigned char fixed[20];
		take(fixed, sizeof(fixed));
		uint32_t number = old ? load16(fixed, swapped_) : load32(fixed, swapped_);
		if (number >= interfaces_.size())
			refuse_damaged();
		const Interface &from = interfaces_[number];
		uint64_t units = static_cast<uint64_t>(load32(fixed + 4, swapped_)) << 32 |
				 load32(fixed + 8, swapped_);
		packet.seconds =
			static_cast<int64_t>(units / from.per_second + // may wrap: so did the file
					     static_cast<uint64_t>(from.offset_s));
		packet.fraction =
			static_cast<Ps>(static_cast<unsigned __int128>(units % from.per_second) *
					ps_per_s / from.per_second);
		packet.length = load32(fixed + 16, swapped_);
		uint32_t captured = load32(fixed + 12, swapped_);
		if (captured > left_)
			refuse_damaged();
		read_packet(packet, captured);
		left_ -= captured;
	}

	bool swapped_ = false, in_section_ = false;
	uint64_t left_ = 0; // of the block's content
	std::vector<Interface> interfaces_; // of the section
};

} // namespace

std::unique_ptr<CaptureFile> open_pcapng(const std::string &path, FILE *file)
{
	return std::make_unique<PcapngFile>(path, file);
}

} // namespace sim
