// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reads a pcap file as a sequence of (time, size, flow); pcapng is refused with the fix.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "packet.hh"

namespace sim
{

class Capture
{
      public:
	struct Record {
		Ps time; // since the first packet; goes on growing when the file is looped
		uint16_t bytes; // with FCS
		uint32_t flow;
	};

	// Throws InputError when the file is not an Ethernet pcap or holds no packet.
	Capture(const std::string &path, bool loop);

	// False at the end. Throws InputError on a truncated or damaged file.
	bool next(Record &record);

      private:
	struct Close {
		void operator()(FILE *file) const
		{
			std::fclose(file);
		}
	};
	bool read(void *to, size_t length);
	bool read_record(Record &record);

	std::string path_;
	bool loop_;
	std::unique_ptr<FILE, Close> file_;
	bool swapped_ = false;
	Ps tick_ = 1000000; // of the fraction: microseconds, or nanoseconds
	bool have_first_ = false;
	Ps first_ = 0; // of the file
	Ps offset_ = 0; // of this round
	Ps last_ = 0; // time given out last
};

} // namespace sim
