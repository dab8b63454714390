// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// convoy-sim: reads one network (JSON, made by `convoy sim`), runs it, prints one result (JSON).
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>

#include <sys/resource.h>

#include "engine/engine.hh"
#include "io/network_json.hh"

namespace
{

std::atomic<bool> stop;

void on_signal(int)
{
	stop = true;
}

struct Options {
	std::string engine = "auto";
	std::string file = "-";
	bool progress = false;
	bool help = false;
};

const char help_text[] =
	"Usage: convoy-sim [OPTIONS] [FILE]\n"
	"\n"
	"Reads a network (JSON, standard input by default; `convoy sim` makes one from a "
	"topology),\n"
	"simulates it, and prints one result (JSON). SIGINT ends the run early: the result is "
	"printed,\n"
	"and marked \"complete\": false.\n"
	"\n"
	"  --engine NAME  auto (default: feed-forward, or event-heap where there is a cycle),\n"
	"                 feed-forward, event-heap or ns3\n"
	"  --progress     write a JSON line to standard error now and then\n"
	"  -h, --help     this text\n"
	"\n"
	"Exit codes: 0 done or stopped early, 1 internal error, 2 bad input.\n";

Options parse(int argc, char **argv)
{
	Options options;
	for (int i = 1; i < argc; i++) {
		std::string arg = argv[i];
		if (arg == "--help" || arg == "-h")
			options.help = true;
		else if (arg == "--progress")
			options.progress = true;
		else if (arg == "--engine" && i + 1 < argc)
			options.engine = argv[++i];
		else if (arg == "--engine")
			throw sim::InputError(
				"--engine: give auto, feed-forward, event-heap or ns3");
		else if (arg != "-" && arg[0] == '-')
			throw sim::InputError(
				"unknown option '" + arg + "'; try 'convoy-sim --help'");
		else
			options.file = arg;
	}
	return options;
}

sim::Network load(const std::string &path)
{
	if (path == "-")
		return sim::read_network(std::cin, "standard input");
	std::ifstream in(path);
	if (!in)
		throw sim::InputError("cannot open '" + path + "': " + std::strerror(errno));
	return sim::read_network(in, path);
}

// `engine` becomes the name of the engine that ran.
sim::Result run(std::string &engine, const sim::Network &network, const sim::Watch &watch)
{
	if (engine == "auto") {
		try {
			engine = "feed-forward";
			return run_feed_forward(network, watch);
		} catch (const sim::CycleError &) {
			engine = "event-heap";
		}
	}
	if (engine == "feed-forward")
		return run_feed_forward(network, watch);
	if (engine == "event-heap")
		return run_event_heap(network, watch);
	if (engine == "ns3") {
#ifdef CONVOY_HAVE_NS3
		return run_ns3(network, watch);
#else
		throw sim::InputError(
			"--engine ns3: this build is without ns-3; install libns3-dev "
			"libgsl-dev libsqlite3-dev libxml2-dev and build again");
#endif
	}
	throw sim::InputError(
		"--engine '" + engine + "' is unknown; give auto, feed-forward, event-heap or ns3");
}

// At most two lines a second.
sim::Progress reporter(const sim::Network &network)
{
	using clock = std::chrono::steady_clock;
	auto last = std::make_shared<clock::time_point>(clock::now());
	double duration = static_cast<double>(network.duration);
	return [last, duration](sim::Ps now, const sim::Result &result) {
		auto time = clock::now();
		if (time - *last < std::chrono::milliseconds(500))
			return;
		*last = time;
		uint64_t packets = 0;
		for (const auto &source : result.sources)
			packets += source.packets;
		std::fprintf(stderr, "{\"progress\": %.4f, \"original_packets\": %llu}\n",
			static_cast<double>(now) / duration,
			static_cast<unsigned long long>(packets));
	};
}

double cpu_s()
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

int simulate(Options options)
{
	sim::Network network = load(options.file);
	check_network(network);
	sim::Watch watch;
	watch.stop = &stop;
	if (options.progress)
		watch.progress = reporter(network);
	auto wall = std::chrono::steady_clock::now();
	double cpu = cpu_s();
	sim::Result result = run(options.engine, network, watch);
	std::chrono::duration<double> took = std::chrono::steady_clock::now() - wall;
	cpu = cpu_s() - cpu;
	check_conservation(network, result);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	write_result(std::cout, network, result,
		{options.engine, took.count(), cpu, static_cast<uint64_t>(usage.ru_maxrss) * 1024});
	return std::cout.flush() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
	std::signal(SIGINT, on_signal);
	std::signal(SIGTERM, on_signal);
	try {
		Options options = parse(argc, argv);
		if (options.help) {
			std::fputs(help_text, stdout);
			return 0;
		}
		return simulate(options);
	} catch (const sim::InputError &error) {
		std::fprintf(stderr, "convoy-sim: %s\n", error.what());
		return 2;
	} catch (const std::exception &error) {
		std::fprintf(stderr, "convoy-sim: internal error: %s\n", error.what());
		return 1;
	}
}
