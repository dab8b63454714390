// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Against queueing theory where it is exact: mean waiting times of M/D/1 and M/M/1, and loss of
// M/M/1/K, within the confidence interval of independent runs. Seeds are fixed.
#include <cmath>
#include <vector>

#include "engine/engine.hh"
#include "test/cmocka_cc.hh"
#include "test/small_network.hh"

using namespace sim;

namespace
{

constexpr double service_ps = 100000;

struct Sample {
	double wait; // mean, in service times
	double loss; // share
};

Sample run_one(double load, ServiceKind kind, uint64_t queue, uint64_t seed)
{
	Network network = line_network();
	network.seed = seed;
	network.duration = ps_per_s / 50; // 200,000 service times
	network.nodes[0].service.kind = kind;
	network.nodes[0].queue_packets = queue;
	network.links[0].rate_bps = 1000000000000;
	network.sources[0].kind = SourceKind::poisson;
	network.sources[0].gap = std::llround(service_ps / load);
	Result result = run_feed_forward(network, {});
	const auto &node = result.nodes[0];
	return {static_cast<double>(node.waited) / static_cast<double>(node.served_packets) /
			service_ps,
		static_cast<double>(node.dropped_packets) /
			static_cast<double>(node.received_packets)};
}

// Mean and standard error over independent runs; begins empty, so a little low: negligible at
// 200,000 service times and loads up to 0.9.
template <typename F> void within(double theory, F sample)
{
	constexpr int runs = 30;
	double sum = 0, squares = 0;
	for (int i = 1; i <= runs; i++) {
		double x = sample(static_cast<uint64_t>(i));
		sum += x;
		squares += x * x;
	}
	double mean = sum / runs;
	double error = std::sqrt((squares / runs - mean * mean) / (runs - 1));
	// 3.66: Student's t, 29 degrees of freedom, 99.9 % two-sided.
	if (std::fabs(mean - theory) > 3.66 * error)
		fail_msg("mean %g, theory %g, standard error %g", mean, theory, error);
	// An interval so wide that it would prove nothing fails too.
	assert_true(error < 0.03 * theory);
}

void m_d_1(void **)
{
	for (double load : {0.3, 0.6, 0.9})
		within(load / (2 * (1 - load)), [load](uint64_t seed) {
			return run_one(load, ServiceKind::fixed, 0, seed).wait;
		});
}

void m_m_1(void **)
{
	for (double load : {0.3, 0.6, 0.9})
		within(load / (1 - load), [load](uint64_t seed) {
			return run_one(load, ServiceKind::exponential, 0, seed).wait;
		});
}

void m_m_1_k(void **)
{
	for (double load : {0.5, 0.9, 1.5}) {
		constexpr int k = 5;
		double loss = (1 - load) * std::pow(load, k) / (1 - std::pow(load, k + 1));
		within(loss, [load](uint64_t seed) {
			return run_one(load, ServiceKind::exponential, k, seed).loss;
		});
	}
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(m_d_1),
		cmocka_unit_test(m_m_1),
		cmocka_unit_test(m_m_1_k),
	};
	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
