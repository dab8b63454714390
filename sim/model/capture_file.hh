// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The packets of a capture file, pcap or pcapng, as they were written: the format and nothing
// else. What is damaged is refused with the file's name.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "model/packet.hh"

namespace sim
{

struct CapturedPacket {
	int64_t seconds; // since 1970
	Ps fraction; // of a second
	uint32_t length; // as it was on the wire, without FCS
	uint32_t kept; // how many of its bytes are here
	unsigned char bytes[128];
};

class CaptureFile
{
      public:
	// Opens either format, told apart by its first bytes. Throws InputError.
	static std::unique_ptr<CaptureFile> open(const std::string &path);

	virtual ~CaptureFile() = default;
	// False at the end. Throws InputError on a truncated or damaged file.
	virtual bool next(CapturedPacket &packet) = 0;
	// Begins again with the first packet.
	virtual void rewind() = 0;

      protected:
	CaptureFile(std::string path, FILE *file) : path_(std::move(path)), file_(file)
	{
	}

	// All of `length` bytes, or false at the end of the file. Throws when there are fewer.
	bool read(void *to, size_t length);
	void skip(uint64_t length);
	// Reads a packet's first bytes, and skips the others.
	void read_packet(CapturedPacket &packet, uint32_t captured);
	void need_ethernet(uint32_t link_type) const;
	[[noreturn]] void refuse(const std::string &why) const;
	[[noreturn]] void refuse_damaged() const;

	std::string path_;
	struct Close {
		void operator()(FILE *file) const
		{
			std::fclose(file);
		}
	};
	std::unique_ptr<FILE, Close> file_;
};

// The two formats; `file` stands at its begin and becomes theirs.
std::unique_ptr<CaptureFile> open_pcap(const std::string &path, FILE *file);
std::unique_ptr<CaptureFile> open_pcapng(const std::string &path, FILE *file);

inline uint32_t load32(const unsigned char *p, bool swapped)
{
	uint32_t value;
	std::memcpy(&value, p, 4);
	return swapped ? __builtin_bswap32(value) : value;
}

inline uint16_t load16(const unsigned char *p, bool swapped)
{
	uint16_t value;
	std::memcpy(&value, p, 2);
	return swapped ? __builtin_bswap16(value) : value;
}

} // namespace sim
