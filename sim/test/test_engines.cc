// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One network, three engines, one result: by hand for a line, by comparison for random networks.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "engine/engine.hh"
#include "test/cmocka_cc.hh"
#include "test/small_network.hh"

using namespace sim;

namespace
{

using Engine = Result (*)(const Network &, const Watch &);

const struct {
	const char *name;
	Engine run;
} engines[] = {
	{"feed-forward", run_feed_forward},
	{"event-heap", run_event_heap},
#ifdef CONVOY_HAVE_NS3
	{"ns3", run_ns3},
#endif
};

// Everything counted, as text: the first difference is what a failed test shows.
std::string text_of(const Network &network, const Result &result)
{
	std::string text;
	auto add = [&](const char *name, uint64_t value) {
		text += std::string(" ") + name + "=" + std::to_string(value);
	};
	for (size_t i = 0; i < result.sources.size(); i++) {
		text += "\nsource " + network.sources[i].name;
		add("packets", result.sources[i].packets);
		add("bytes", result.sources[i].bytes);
	}
	for (size_t i = 0; i < result.nodes.size(); i++) {
		const auto &n = result.nodes[i];
		text += "\nnode " + network.nodes[i].name;
		add("received_frames", n.received_frames);
		add("received", n.received_packets);
		add("dropped", n.dropped_packets);
		add("served", n.served_packets);
		add("sent_frames", n.sent_frames);
		add("sent", n.sent_packets);
		add("held", n.held_packets);
		add("busy", static_cast<uint64_t>(n.busy));
		add("waited", static_cast<uint64_t>(n.waited));
		add("delivered", n.delivered_packets);
		add("delivered_bytes", n.delivered_bytes);
		if (n.latency) {
			add("latency_max", n.latency->max());
			text += " latency_mean=" + std::to_string(n.latency->mean());
		}
	}
	for (size_t i = 0; i < result.links.size(); i++) {
		const auto &l = result.links[i];
		text += "\nlink " + network.links[i].name;
		add("offered", l.offered_frames);
		add("dropped", l.dropped_frames);
		add("dropped_packets", l.dropped_packets);
		add("in_flight", l.in_flight_frames);
		add("frames", l.frames);
		add("packets", l.packets);
		add("bytes", l.bytes);
		add("times", l.digest);
		for (const auto &[bytes, frames] : l.sizes.counts())
			add(std::to_string(bytes).c_str(), frames);
	}
	return text;
}

// 10 packets born at 0, 1, … 9 us; each leaves the node 100 ns later, is sent in 64 ns and
// arrives after 500 ns: 664 ns in all. The last one, born at 9 us, arrives before the end.
void line_by_hand(void **)
{
	Network network = line_network();
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.sources[0].packets, 10);
		assert_int_equal(result.links[0].frames, 10);
		assert_int_equal(result.links[0].sizes.counts().at(64), 10);
		assert_int_equal(result.nodes[1].delivered_packets, 10);
		assert_int_equal(result.nodes[1].latency->max(), 664 * 1000);
		assert_true(result.nodes[1].latency->mean() == 664 * 1000);
		assert_int_equal(result.nodes[0].busy, 10 * 100 * 1000);
		assert_int_equal(result.nodes[0].waited, 0);
		check_conservation(network, result);
	}
}

// Two per frame: 46 + 2 * 60 bytes; the second packet of each pair makes the frame leave, so
// the first has waited 1 us for it. 166 ns on the wire.
void line_in_pairs(void **)
{
	Network network = line_network();
	auto &a = network.nodes[0].aggregation;
	a.mode = Aggregation::Mode::table;
	a.steps = {{0, 2}};
	a.window = ps_per_s;
	a.flush = 5 * 1000 * 1000;
	a.frame_overhead = 46;
	a.packet_overhead = 0;
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.links[0].frames, 5);
		assert_int_equal(result.links[0].packets, 10);
		assert_int_equal(result.links[0].sizes.counts().at(166), 5);
		assert_int_equal(result.nodes[1].latency->max(), (1000 + 100 + 166 + 500) * 1000);
	}
}

// A flush time shorter than the gap: nobody finds company, everybody waits for it.
void line_flushed(void **)
{
	Network network = line_network();
	auto &a = network.nodes[0].aggregation;
	a.mode = Aggregation::Mode::table;
	a.steps = {{0, 2}};
	a.window = ps_per_s;
	a.flush = 200 * 1000;
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.links[0].sizes.counts().at(64), 10);
		assert_int_equal(result.nodes[1].latency->max(), (100 + 200 + 64 + 500) * 1000);
	}
}

// Packets are served one by one, 1 us apart: a frame waits 2.5 us from when its first one's service
// began, and gets three. The last one still waits at the end.
void line_that_waits(void **)
{
	Network network = line_network();
	auto &a = network.nodes[0].aggregation;
	a.mode = Aggregation::Mode::queue;
	a.flush = 2500 * 1000;
	a.frame_overhead = 46;
	a.packet_overhead = 0;
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.links[0].frames, 3);
		assert_int_equal(result.links[0].packets, 9);
		assert_int_equal(result.links[0].sizes.counts().at(226), 3);
		assert_int_equal(result.nodes[0].held_packets, 1);
		assert_int_equal(result.nodes[1].latency->max(), (2500 + 226 + 500) * 1000);
	}
}

// Three packets at once, each a frame: the first is a burst, the other two are the next one, which
// leaves as one. A frame that comes costs 50 ns on top of its packet's 100, one that leaves 30.
void frames_of_a_burst_cost_each(void **)
{
	Network network = line_network();
	network.nodes[0].aggregation.mode = Aggregation::Mode::queue;
	network.nodes[0].service.per_frame = 50 * 1000;
	network.nodes[0].service.per_sent = 30 * 1000;
	network.sources.push_back(network.sources[0]);
	network.sources.push_back(network.sources[0]);
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.nodes[0].served_packets, 30);
		assert_int_equal(result.nodes[0].sent_frames, 20);
		assert_int_equal(result.nodes[0].busy, 10 * (150 + 300 + 2 * 30) * 1000);
		check_conservation(network, result);
	}
}

// What comes while frames are sent is one burst: five packets come in the 350 ns that the first
// takes, 250 of them to send it.
void packets_wait_while_frames_are_sent(void **)
{
	Network network = line_network();
	network.nodes[0].aggregation.mode = Aggregation::Mode::queue;
	network.nodes[0].service.per_sent = 250 * 1000;
	network.sources[0].gap = 2 * 1000 * 1000;
	network.sources.push_back(network.sources[0]);
	network.sources[1].gap = 60 * 1000;
	network.duration = 360 * 1000;
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.nodes[0].served_packets, 1);
		assert_int_equal(result.nodes[0].busy, 350 * 1000);
		check_conservation(network, result);
	}
}

// A frame of two comes every 2 us and goes to two. Packets that come by themselves cost otherwise.
void frames_that_come_and_leave_cost_each(void **)
{
	Network network = line_network();
	network.nodes.push_back(network.nodes[0]); // gets the pairs
	network.nodes.push_back(network.nodes[1]);
	network.nodes[2].name = "g";
	network.nodes[3].name = "sink2";
	network.nodes[0].next_hops = {{0, Policy::round_robin, {{2, 0, 1}}}};
	network.nodes[0].routes = {{2, {0}}};
	auto &pairs = network.nodes[0].aggregation;
	pairs.mode = Aggregation::Mode::table;
	pairs.steps = {{0, 2}};
	pairs.window = ps_per_s;
	pairs.flush = 5 * 1000 * 1000;
	network.nodes[2].aggregation.mode = Aggregation::Mode::queue;
	network.nodes[2].service.per_frame = 50 * 1000;
	network.nodes[2].service.per_sent = 20 * 1000;
	network.nodes[2].service.per_single = 70 * 1000;
	network.nodes[2].next_hops = {{0, Policy::round_robin, {{1, 0, 1}, {3, 0, 1}}}};
	network.nodes[2].routes = {{1, {1}}, {3, {2}}};
	network.links[0].to = 2;
	network.links.push_back(network.links[0]);
	network.links.push_back(network.links[0]);
	network.links[1].from = network.links[2].from = 2;
	network.links[1].to = 1;
	network.links[2].to = 3;
	check_network(network);
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		// The last pair is still served at the end.
		assert_int_equal(result.nodes[2].received_frames, 5);
		assert_int_equal(result.nodes[2].sent_frames, 8);
		assert_int_equal(result.nodes[2].busy, 4 * (2 * 100 + 50 + 2 * 20) * 1000);
		check_conservation(network, result);
	}
	pairs.steps = {{0, 1}};
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.nodes[2].sent_frames, result.nodes[2].served_packets);
		assert_int_equal(
			result.nodes[2].busy, result.nodes[2].served_packets * (70 + 20) * 1000);
	}
}

// The next packet is served exactly when the flush is due: the flush comes first.
void line_flushed_on_the_dot(void **)
{
	Network network = line_network();
	auto &a = network.nodes[0].aggregation;
	a.mode = Aggregation::Mode::table;
	a.steps = {{0, 3}};
	a.window = ps_per_s;
	a.flush = 1000 * 1000;
	for (int choices = 1; choices <= 2; choices++) {
		for (const auto &engine : engines) {
			Result result = engine.run(network, {});
			assert_int_equal(result.links[0].sizes.counts().at(64), 9);
			assert_int_equal(result.links[0].frames, 9);
			assert_int_equal(result.nodes[0].held_packets, 1);
		}
		auto &hop = network.nodes[0].next_hops[0];
		hop.choices.push_back(hop.choices[0]);
	}
}

// Three packets at once, twice as many as a queue of 2 can take in: one of each three is lost.
void line_with_full_queue(void **)
{
	Network network = line_network();
	network.nodes[0].queue_packets = 2;
	network.sources.push_back(network.sources[0]);
	network.sources.push_back(network.sources[0]);
	for (const auto &engine : engines) {
		Result result = engine.run(network, {});
		assert_int_equal(result.nodes[0].received_packets, 30);
		assert_int_equal(result.nodes[0].dropped_packets, 10);
		assert_int_equal(result.links[0].frames, 20);
	}
}

// Two links back and forth between two functions: a packet passes f, g, f, g, sink.
void cycle_needs_events(void **)
{
	Network network = line_network();
	network.nodes.push_back(network.nodes[0]);
	network.nodes[2].name = "g";
	network.nodes[0].next_hops = {
		{0, Policy::round_robin, {{2, 1, 1}}}, {2, Policy::round_robin, {{2, 3, 1}}}};
	network.nodes[0].routes = {{2, {1}}};
	network.nodes[2].next_hops = {
		{1, Policy::round_robin, {{0, 2, 1}}}, {3, Policy::round_robin, {{1, 0, 1}}}};
	network.nodes[2].routes = {{0, {2}}, {1, {0}}};
	network.links[0].from = 2;
	network.links.push_back(network.links[0]);
	network.links.push_back(network.links[0]);
	network.links[1].from = 0;
	network.links[1].to = 2;
	network.links[2].from = 2;
	network.links[2].to = 0;
	check_network(network);
	try {
		run_feed_forward(network, {});
		fail_msg("a cycle was accepted");
	} catch (const CycleError &error) {
		std::string what = error.what();
		assert_non_null(std::strstr(what.c_str(), "g -> fn -> g"));
		assert_non_null(std::strstr(what.c_str(), "--engine event-heap"));
	}
	std::string first;
	for (const auto &engine : engines) {
		if (engine.run == run_feed_forward)
			continue;
		Result result = engine.run(network, {});
		check_conservation(network, result);
		assert_true(result.nodes[1].delivered_packets >= 7);
		std::string text = text_of(network, result);
		if (first.empty())
			first = text;
		assert_string_equal(first.c_str(), text.c_str());
	}
}

// Random networks to compare.
uint64_t rounds()
{
	const char *text = std::getenv("CONVOY_SIM_ROUNDS");
	return text ? std::strtoull(text, nullptr, 10) : 300;
}

void random_networks_agree(void **)
{
	uint64_t delivered = 0, node_drops = 0, link_drops = 0, aggregates = 0, fabrics = 0;
	for (uint64_t seed = 1; seed <= rounds(); seed++) {
		Network network = RandomNetwork(seed).make();
		std::string first;
		for (const auto &engine : engines) {
			check_network(network);
			Result result = engine.run(network, {});
			check_conservation(network, result);
			std::string text = text_of(network, result);
			if (first.empty()) {
				first = text;
				for (const auto &node : result.nodes) {
					delivered += node.delivered_packets;
					node_drops += node.dropped_packets;
				}
				for (const auto &link : result.links) {
					link_drops += link.dropped_frames;
					aggregates += link.packets - link.frames;
				}
				fabrics += network.nodes.back().kind == NodeKind::fabric;
			}
			if (text != first)
				std::fprintf(stderr, "seed %llu, %s\n",
					static_cast<unsigned long long>(seed), engine.name);
			assert_string_equal(first.c_str(), text.c_str());
		}
	}
	// The networks were worth comparing.
	assert_true(
		delivered > 0 && node_drops > 0 && link_drops > 0 && aggregates > 0 && fabrics > 0);
}

// How far a node runs before the next does must not be seen in the result.
void chunks_do_not_matter(void **)
{
	for (uint64_t seed = 1; seed <= rounds() / 6; seed++) {
		Network network = RandomNetwork(seed).make();
		std::string first = text_of(network, run_feed_forward(network, {}));
		for (Ps chunk : {Ps(1), Ps(7777777), network.duration}) {
			if (chunk == 1)
				network.duration = std::min<Ps>(network.duration, 20000);
			network.chunk = network.duration;
			std::string whole = text_of(network, run_feed_forward(network, {}));
			network.chunk = chunk;
			std::string parts = text_of(network, run_feed_forward(network, {}));
			assert_string_equal(whole.c_str(), parts.c_str());
			network = RandomNetwork(seed).make();
		}
	}
}

void stop_gives_a_partial_result(void **)
{
	Network network = line_network();
	for (const auto &engine : engines) {
		std::atomic<bool> stop(false);
		Watch watch;
		watch.stop = &stop;
		watch.progress = [&](Ps now, const Result &) { stop = now >= 3000000; };
		Result result = engine.run(network, watch);
		assert_false(result.complete);
		assert_true(result.simulated >= 3000000 && result.simulated < network.duration);
		assert_true(result.sources[0].packets < 10);
		check_conservation(network, result);
	}
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_by_hand),
		cmocka_unit_test(line_in_pairs),
		cmocka_unit_test(line_flushed),
		cmocka_unit_test(line_that_waits),
		cmocka_unit_test(line_flushed_on_the_dot),
		cmocka_unit_test(frames_of_a_burst_cost_each),
		cmocka_unit_test(packets_wait_while_frames_are_sent),
		cmocka_unit_test(frames_that_come_and_leave_cost_each),
		cmocka_unit_test(line_with_full_queue),
		cmocka_unit_test(cycle_needs_events),
		cmocka_unit_test(random_networks_agree),
		cmocka_unit_test(chunks_do_not_matter),
		cmocka_unit_test(stop_gives_a_partial_result),
	};
	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
