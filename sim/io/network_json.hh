// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The network as JSON ("convoy.sim.network/1", written by `convoy sim`) and results as JSON.
#pragma once

#include <iosfwd>
#include <string>

#include "model/network.hh"
#include "model/result.hh"

namespace sim
{

// Throws InputError naming `name`, the place and the fix.
Network read_network(std::istream &in, const std::string &name);

struct RunFacts {
	std::string engine;
	double wall_s, cpu_s;
	uint64_t peak_bytes; // resident memory
};

// One object, schema "convoy.sim.result/1". Times in seconds, sizes in bytes.
void write_result(
	std::ostream &out, const Network &network, const Result &result, const RunFacts &facts);

} // namespace sim
