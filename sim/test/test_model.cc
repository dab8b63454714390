// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The parts that all engines share: sources, next hops, batch sizes, times, histograms, checks.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>

#include <unistd.h>

#include "engine/link_time.hh"
#include "engine/merge.hh"
#include "engine/ring.hh"
#include "engine/periodic_feeds.hh"
#include "model/aggregate.hh"
#include "model/next_hop.hh"
#include "model/result.hh"
#include "model/source.hh"
#include "test/cmocka_cc.hh"
#include "test/small_network.hh"

using namespace sim;

namespace
{

// Packets per second of a source over 2 s, as its kind promises.
void sources_keep_their_rate(void **)
{
	const struct {
		const char *name;
		SourceKind kind;
		Ps gap, on, off_min, off_max;
		double pps, tolerance;
	} rows[] = {
		{"cbr", SourceKind::cbr, 10000000, 0, 0, 0, 1e5, 0.0001},
		{"poisson", SourceKind::poisson, 10000000, 0, 0, 0, 1e5, 0.01},
		{"on-off", SourceKind::on_off, 1000000, 1000000000, 100000000, 1000000000,
			1e6 / 1.55, 0.01},
		{"pareto", SourceKind::pareto_on_off, 1000000, 1000000000, 1000000000, 0, 5e5, 0.1},
	};
	for (const auto &row : rows) {
		Source spec;
		spec.kind = row.kind;
		spec.gap = row.gap;
		spec.on = row.on;
		spec.off_min = row.off_min;
		spec.off_max = row.off_max;
		spec.shape = 1.9;
		spec.sizes = {{64, 1}};
		SourceState source(spec, 1, 0);
		uint64_t count = 0;
		Ps last = 0;
		while (source.time() < 2 * ps_per_s) {
			Packet packet = source.take();
			assert_true(packet.born >= last);
			last = packet.born;
			count++;
		}
		double pps = static_cast<double>(count) / 2;
		if (std::fabs(pps / row.pps - 1) > row.tolerance)
			fail_msg("%s: %g pps instead of %g", row.name, pps, row.pps);
	}
}

void same_seed_same_packets(void **)
{
	Source spec;
	spec.kind = SourceKind::poisson;
	spec.gap = 1000000;
	spec.flows = 100;
	spec.sizes = {{64, 28}, {570, 16}, {1518, 4}};
	SourceState a(spec, 5, 3), b(spec, 5, 3), other(spec, 5, 4);
	std::map<uint16_t, int> sizes;
	int differ = 0;
	for (int i = 0; i < 48000; i++) {
		Packet p = a.take(), q = b.take(), r = other.take();
		assert_int_equal(p.born, q.born);
		assert_int_equal(p.flow, q.flow);
		assert_int_equal(p.bytes, q.bytes);
		differ += p.born != r.born;
		sizes[p.bytes]++;
	}
	assert_true(differ > 47000);
	assert_in_range(sizes[64], 27500, 28500);
	assert_in_range(sizes[570], 15500, 16500);
	assert_in_range(sizes[1518], 3700, 4300);
}

// Three shares of a source are its packets, each once: in turn, or by flow.
void shares_make_the_whole(void **)
{
	for (bool by_flow : {false, true}) {
		Source spec;
		spec.kind = SourceKind::poisson;
		spec.gap = 1000000;
		spec.flows = 100;
		spec.sizes = {{64, 28}, {570, 16}};
		spec.generator = 4;
		SourceState whole(spec, 5, 0, ps_per_s);
		std::vector<std::unique_ptr<SourceState>> shares;
		std::vector<Source> specs(3, spec);
		for (uint32_t i = 0; i < 3; i++) {
			specs[i].shares = 3;
			specs[i].share = i;
			specs[i].by_flow = by_flow;
			shares.push_back(
				std::make_unique<SourceState>(specs[i], 5, 7 + i, ps_per_s));
		}
		std::map<uint32_t, uint32_t> share_of_flow;
		for (uint32_t n = 0; n < 10000; n++) {
			Packet want = whole.take();
			uint32_t from = 0;
			for (uint32_t i = 1; i < 3; i++)
				if (shares[i]->time() < shares[from]->time())
					from = i;
			Packet got = shares[from]->take();
			assert_memory_equal(&got, &want, sizeof(got));
			if (by_flow)
				assert_int_equal(
					share_of_flow.emplace(got.flow, from).first->second, from);
			else
				assert_int_equal(from, n % 3);
		}
	}
}

// A share that never has a packet ends with the network.
void empty_share_ends(void **)
{
	Source spec;
	spec.gap = 1000;
	spec.sizes = {{64, 1}};
	spec.shares = 2;
	spec.by_flow = true; // of one flow
	int none = 0;
	for (spec.share = 0; spec.share < 2; spec.share++)
		none += SourceState(spec, 1, 1, 1000000).time() == never;
	assert_int_equal(none, 1);
}

void next_hops(void **)
{
	const struct {
		const char *name;
		Policy policy;
		std::vector<uint32_t> weights;
		const char *order; // of destinations, for flows 0, 1, 2, …
	} rows[] = {
		{"round robin", Policy::round_robin, {1, 1, 1}, "123123123"},
		{"weights", Policy::weighted, {3, 1, 1}, "121311213"},
		{"one", Policy::round_robin, {1}, "111111111"},
	};
	for (const auto &row : rows) {
		Node node;
		NextHop hop = {4, row.policy, {}};
		for (uint32_t i = 0; i < row.weights.size(); i++)
			hop.choices.push_back({i + 1, 9, row.weights[i]});
		node.next_hops = {hop};
		NextHops hops(node);
		std::string order;
		for (uint32_t flow = 0; flow < 9; flow++) {
			auto pick = hops.pick({0, flow, 64, 4});
			assert_int_equal(pick.label, 9);
			order += static_cast<char>('0' + hops.slot_dst()[pick.slot]);
		}
		if (order != row.order)
			fail_msg("%s: %s instead of %s", row.name, order.c_str(), row.order);
	}
}

void hash_keeps_a_flow_together(void **)
{
	Node node;
	node.next_hops = {{0, Policy::hash, {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}}}};
	NextHops hops(node);
	int count[3] = {};
	for (uint32_t flow = 0; flow < 3000; flow++) {
		auto slot = hops.pick({0, flow, 64, 0}).slot;
		assert_int_equal(hops.pick({1, flow, 1500, 0}).slot, slot);
		count[slot]++;
	}
	for (int n : count)
		assert_in_range(n, 900, 1100);
}

// Windows of 1 ms: the batch follows the rate of the window before, and an empty window forgets.
void rate_window(void **)
{
	Aggregation a;
	a.window = ps_per_s / 1000;
	a.steps = {{0, 2}, {1000000, 3}, {3000000, 5}};
	RateWindow rate(a);
	auto fill = [&](Ps from, int packets) {
		uint32_t batch = 0;
		for (int i = 0; i < packets; i++)
			batch = rate.count(from + i);
		return batch;
	};
	assert_int_equal(fill(0, 999), 2);
	assert_int_equal(fill(1 * a.window, 1000), 2); // 999,000 pps before
	assert_int_equal(fill(2 * a.window, 3000), 3); // 1,000,000
	assert_int_equal(fill(3 * a.window, 1), 5);
	assert_int_equal(fill(5 * a.window, 5000), 2); // nothing in between
	assert_int_equal(fill(6 * a.window - 1, 1), 2); // still the same window
	assert_int_equal(fill(6 * a.window, 1), 5);
}

// With half the weight, from 0: 2, 3, 1.5 and 0.75 M; then what is below 2 pps stays.
void rate_window_with_memory(void **)
{
	Aggregation a;
	a.window = ps_per_s / 1000;
	a.weight_ppm = 500000;
	a.steps = {{0, 1}, {750000, 2}, {1500000, 3}, {2000000, 4}, {3000000, 5}};
	RateWindow rate(a);
	for (int window = 0; window < 2; window++)
		for (int i = 0; i < 4000; i++)
			assert_int_equal(rate.count(window * a.window + i), window ? 4 : 1);
	RateWindow other = rate, third = rate;
	rate.count(2 * a.window);
	assert_int_equal(rate.batch(), 5);
	other.count(3 * a.window);
	assert_int_equal(other.batch(), 3);
	third.count(4 * a.window);
	assert_int_equal(third.batch(), 2);
	third.count(4000000 * a.window);
	assert_int_equal(third.batch(), 1);
}

void link_times(void **)
{
	const struct {
		uint64_t rate_bps;
		uint32_t gap, bytes;
		Ps time;
	} rows[] = {
		{40000000000, 20, 64, 16800},
		{10000000000, 20, 1518, 1230400},
		{3000000000, 0, 64, 170667}, // rounded up
		{1, 0, 64, 512 * ps_per_s},
	};
	for (const auto &row : rows) {
		Link link;
		link.rate_bps = row.rate_bps;
		link.gap_bytes = row.gap;
		LinkTime time(link);
		assert_int_equal(time.of(row.bytes), row.time);
		assert_int_equal(time.of(row.bytes), row.time);
	}
}

void histogram_buckets(void **)
{
	for (uint64_t v : {0ull, 1ull, 127ull, 128ull, 129ull, 255ull, 256ull, 1000000007ull,
		     123456789012345ull, (1ull << 62) + 5}) {
		uint32_t bucket = TimeHistogram::bucket(v);
		assert_true(TimeHistogram::lowest(bucket) <= v);
		assert_true(v < TimeHistogram::lowest(bucket + 1));
		double width = static_cast<double>(
			TimeHistogram::lowest(bucket + 1) - TimeHistogram::lowest(bucket));
		assert_true(v < 128 || width / static_cast<double>(v) < 0.017);
	}
}

// Runs of all lengths against a stable sort: few different times, so that most are ties.
void merge_is_a_stable_sort(void **)
{
	Random random(1, 1);
	Merge<Single> merge;
	for (int round = 0; round < 500; round++) {
		std::vector<std::vector<Single>> all(random.below(7));
		std::vector<Run<Single>> runs;
		std::vector<Single> want;
		for (auto &run : all) {
			run.resize(random.below(40));
			for (auto &single : run)
				single = {static_cast<Ps>(random.below(20)), Packet()};
			std::sort(run.begin(), run.end(),
				[](const Single &a, const Single &b) { return a.time < b.time; });
			for (auto &single : run) {
				single.packet.flow = static_cast<uint32_t>(want.size());
				want.push_back(single);
			}
			runs.push_back({run.data(), run.size()});
		}
		std::stable_sort(want.begin(), want.end(),
			[](const Single &a, const Single &b) { return a.time < b.time; });
		auto merged = merge.merge(runs);
		assert_int_equal(merged.count, want.size());
		for (size_t i = 0; i < want.size(); i++)
			assert_int_equal(merged.first[i].packet.flow, want[i].packet.flow);
	}
}

// What sources send in order is what each sends alone, merged; in pieces, and at equal times too.
void periodic_feeds_are_merged_sources(void **)
{
	Random random(2, 1);
	uint64_t packets = 0;
	for (int round = 0; round < 300; round++) {
		constexpr Ps end = 400000;
		size_t count = 1 + random.below(6);
		std::vector<Source> specs(count);
		std::vector<SourceState> alone, together;
		std::vector<SourceCount> counts(count);
		std::vector<Feed> feeds;
		std::vector<Single> want;
		for (size_t i = 0; i < count; i++) {
			auto &s = specs[i];
			s.kind = random.below(3) ? SourceKind::on_off : SourceKind::cbr;
			s.gap = 100;
			s.on = 1600 + static_cast<Ps>(random.below(8000));
			s.off_min = 100 + static_cast<Ps>(random.below(500));
			s.off_max = s.off_min + static_cast<Ps>(random.below(2000));
			s.random_phase = random.below(2) == 0;
			s.sizes = {{64 + static_cast<uint32_t>(i), 1}};
			alone.emplace_back(s, 3, i);
			together.emplace_back(s, 3, i);
			while (alone[i].time() < end) {
				Ps time = alone[i].time();
				want.push_back({time, alone[i].take()});
			}
		}
		for (size_t i = 0; i < count; i++)
			feeds.push_back({&together[i], &counts[i]});
		std::stable_sort(want.begin(), want.end(),
			[](const Single &a, const Single &b) { return a.time < b.time; });
		assert_true(PeriodicFeeds::can_be(feeds));
		PeriodicFeeds periodic;
		Fifo<Single> got;
		for (Ps until = 0; until < end;) {
			until = std::min(end, until + static_cast<Ps>(random.below(30000)));
			periodic.fill(feeds, until, got);
		}
		assert_int_equal(got.size(), want.size());
		for (size_t i = 0; i < want.size(); i++) {
			assert_int_equal(got.data()[i].time, want[i].time);
			assert_memory_equal(&got.data()[i].packet, &want[i].packet, sizeof(Packet));
			counts[want[i].packet.bytes - 64u].packets--;
			counts[want[i].packet.bytes - 64u].bytes -= want[i].packet.bytes;
		}
		for (const auto &left : counts) {
			assert_int_equal(left.packets, 0);
			assert_int_equal(left.bytes, 0);
		}
		packets += want.size();
	}
	assert_true(packets > 1000000);
}

// For others, each makes its own.
void periodic_feeds_know_their_kind(void **)
{
	const struct {
		const char *name;
		void (*change)(Source &);
		bool periodic;
	} rows[] = {
		{"as it is", [](Source &) {}, true},
		{"another gap", [](Source &s) { s.gap = 101; }, false},
		{"bursts of few", [](Source &s) { s.on = 1599; }, false},
		{"one endless burst", [](Source &s) { s.kind = SourceKind::cbr; }, true},
		{"a pause below a gap", [](Source &s) { s.off_min = 99; }, false},
		{"poisson", [](Source &s) { s.kind = SourceKind::poisson; }, false},
		{"pareto", [](Source &s) { s.kind = SourceKind::pareto_on_off; }, false},
		{"flows", [](Source &s) { s.flows = 2; }, false},
		{"sizes",
			[](Source &s) {
				s.sizes.push_back({65, 1});
			},
			false},
		{"a share", [](Source &s) { s.shares = 2; }, false},
	};
	for (const auto &row : rows) {
		std::vector<Source> specs(2);
		std::vector<SourceState> states;
		std::vector<Feed> feeds;
		for (auto &s : specs) {
			s.kind = SourceKind::on_off;
			s.gap = 100;
			s.on = 1600;
			s.off_min = s.off_max = 100;
			s.sizes = {{64, 1}};
		}
		row.change(specs[1]);
		for (const auto &s : specs)
			states.emplace_back(s, 1, states.size(), 1000000);
		for (auto &state : states)
			feeds.push_back({&state, nullptr});
		if (PeriodicFeeds::can_be(feeds) != row.periodic)
			fail_msg("%s: expected %d", row.name, row.periodic);
	}
}

// What was taken out makes room: a queue of at most 10 never lies in more than a few hundred.
void fifo_keeps_order_and_memory(void **)
{
	Fifo<int> fifo;
	int in = 0, out = 0;
	const int *lowest = nullptr, *highest = nullptr;
	for (int round = 0; round < 10000; round++) {
		int *to = fifo.room(3);
		for (int i = 0; i < 3; i++)
			to[i] = in + i;
		fifo.commit(round % 2 ? 3 : 2);
		in += round % 2 ? 3 : 2;
		while (in - out > 10 || (round % 7 == 0 && in > out)) {
			assert_int_equal(*fifo.data(), out++);
			fifo.drop(1);
		}
		if (round % 3 == 0)
			fifo.rewind();
		if (round == 1000)
			lowest = highest = fifo.data();
		if (round > 1000) {
			lowest = std::min<const int *>(lowest, fifo.data());
			highest = std::max<const int *>(highest, fifo.data());
		}
	}
	assert_int_equal(fifo.size(), in - out);
	assert_true(highest - lowest < 1000);
}

void ring_and_occupancy(void **)
{
	Ring<int> ring;
	for (int i = 0; i < 1000; i++) {
		ring.push(i);
		if (i % 3 == 0)
			ring.pop();
	}
	assert_int_equal(ring.size(), 666);
	assert_int_equal(ring.front(), 334);

	Occupancy two(2), unlimited(0);
	assert_false(two.full(0));
	two.enter(100);
	assert_false(two.full(0));
	two.enter(200);
	assert_true(two.full(99));
	assert_false(two.full(100)); // the first leaves at 100
	unlimited.enter(5);
	assert_false(unlimited.full(0));
}

void checks_name_the_culprit(void **)
{
	const struct {
		const char *want;
		std::function<void(Network &)> spoil;
	} rows[] = {
		{"link 'fn-sink': its rate is zero", [](Network &n) { n.links[0].rate_bps = 0; }},
		{"link 'fn-sink': its delay", [](Network &n) { n.links[0].delay = 0; }},
		{"node 'fn': the service time",
			[](Network &n) { n.nodes[0].service.per_packet = 0; }},
		{"node 'fn': has no next hop", [](Network &n) { n.nodes[0].next_hops.clear(); }},
		{"node 'fn': has no route to 'sink'",
			[](Network &n) { n.nodes[0].routes.clear(); }},
		{"node 'fn': does not know label 7", [](Network &n) { n.sources[0].label = 7; }},
		{"node 'fn': no sink can be reached",
			[](Network &n) {
				n.nodes[0].next_hops[0].choices[0] = {0, 0, 1};
				n.nodes[0].routes[0].dst = 0;
				n.links[0].to = 0;
			}},
		{"node 'fn': MTU 64 is below one packet of 570 bytes",
			[](Network &n) {
				n.nodes[0].aggregation.mode = Aggregation::Mode::queue;
				n.nodes[0].aggregation.mtu = 64;
				n.sources[0].sizes = {{64, 1}, {570, 1}};
			}},
		{"node 'fn': the newest window's weight",
			[](Network &n) {
				auto &a = n.nodes[0].aggregation;
				a.mode = Aggregation::Mode::table;
				a.window = 1;
				a.weight_ppm = 0;
			}},
		{"source 'src': its rate is zero", [](Network &n) { n.sources[0].gap = 0; }},
		{"source 'src': packet sizes",
			[](Network &n) {
				n.sources[0].sizes = {{63, 1}};
			}},
		{"has no source", [](Network &n) { n.sources.clear(); }},
		{"the duration", [](Network &n) { n.duration = 0; }},
	};
	check_network(line_network());
	for (const auto &row : rows) {
		Network network = line_network();
		row.spoil(network);
		try {
			check_network(network);
			fail_msg("accepted, wanted: %s", row.want);
		} catch (const InputError &error) {
			if (!std::strstr(error.what(), row.want))
				fail_msg("'%s', wanted: %s", error.what(), row.want);
		}
	}
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_keep_their_rate),
		cmocka_unit_test(same_seed_same_packets),
		cmocka_unit_test(shares_make_the_whole),
		cmocka_unit_test(empty_share_ends),
		cmocka_unit_test(next_hops),
		cmocka_unit_test(hash_keeps_a_flow_together),
		cmocka_unit_test(rate_window),
		cmocka_unit_test(rate_window_with_memory),
		cmocka_unit_test(link_times),
		cmocka_unit_test(histogram_buckets),
		cmocka_unit_test(merge_is_a_stable_sort),
		cmocka_unit_test(periodic_feeds_are_merged_sources),
		cmocka_unit_test(periodic_feeds_know_their_kind),
		cmocka_unit_test(fifo_keeps_order_and_memory),
		cmocka_unit_test(ring_and_occupancy),
		cmocka_unit_test(checks_name_the_culprit),
	};
	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
