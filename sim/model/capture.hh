// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A capture as a sequence of (time since its first packet, size, flow); looped if asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/capture_file.hh"

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

	// Throws InputError when the file is no Ethernet capture.
	Capture(const std::string &path, bool loop)
	    : path_(path), loop_(loop), file_(CaptureFile::open(path))
	{
	}

	// False at the end. Throws InputError on a truncated or damaged file, or an empty one.
	bool next(Record &record);

      private:
	bool read_record(Record &record);
	Ps since_first(const CapturedPacket &packet);

	std::string path_;
	bool loop_;
	std::unique_ptr<CaptureFile> file_;
	bool have_first_ = false;
	int64_t first_s_ = 0; // time of the first packet
	Ps first_fraction_ = 0;
	Ps offset_ = 0; // of this round
	Ps last_ = 0; // time given out last
};

} // namespace sim
