// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The meters against the RFCs' words, in exact arithmetic; the rates that they really have; the
// table of hosts.
#include "tests/support/test_packets.h"

#include <math.h>

#include "nf/policer/meter.h"
#include "nf/policer/table.h"

static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 24) % below;
}

// One bucket, by the RFCs: so many tokens at each multiple of the period, up to its size.
struct bucket {
	uint64_t size, period, per_period;
	uint64_t tokens, until; // number of the last period
};

// Returns the tokens that did not fit.
static uint64_t refill(struct bucket *bucket, uint64_t now)
{
	const uint64_t periods = now / bucket->period;
	unsigned __int128 sum =
		bucket->tokens + (unsigned __int128)(periods - bucket->until) * bucket->per_period;
	uint64_t over = sum > bucket->size ? (uint64_t)(sum - bucket->size) : 0;

	bucket->until = periods;
	bucket->tokens = (uint64_t)(sum - over);
	return over;
}

static bool take(struct bucket *bucket, uint32_t tokens)
{
	if (bucket->tokens < tokens)
		return false;
	bucket->tokens -= tokens;
	return true;
}

static enum rte_color by_rfc(enum cv_meter_kind kind, struct bucket *first, struct bucket *second,
	uint64_t now, uint32_t tokens, enum rte_color in)
{
	const uint64_t over = refill(first, now);

	if (kind == CV_METER_SRTCM)
		second->tokens = RTE_MIN(second->tokens + over, second->size);
	else
		refill(second, now);
	if (kind == CV_METER_TRTCM) { // RFC 2698: the peak rate comes first
		if (in == RTE_COLOR_RED || second->tokens < tokens)
			return RTE_COLOR_RED;
		take(second, tokens);
		return in == RTE_COLOR_GREEN && take(first, tokens) ? RTE_COLOR_GREEN
								    : RTE_COLOR_YELLOW;
	}
	if (in == RTE_COLOR_GREEN && take(first, tokens))
		return RTE_COLOR_GREEN;
	return in != RTE_COLOR_RED && take(second, tokens) ? RTE_COLOR_YELLOW : RTE_COLOR_RED;
}

// DPDK's meters, with the same periods and tokens.
struct theirs {
	struct rte_meter_srtcm_profile srtcm_profile;
	struct rte_meter_trtcm_profile trtcm_profile;
	struct rte_meter_trtcm_rfc4115_profile rfc4115_profile;
	struct rte_meter_srtcm srtcm;
	struct rte_meter_trtcm trtcm;
	struct rte_meter_trtcm_rfc4115 rfc4115;
};

static void like_rte_meter(const struct cv_meter_profile *of, uint64_t now, struct theirs *theirs)
{
	const struct cv_meter_bucket_rate *first = &of->committed, *second = &of->second;
	const uint64_t first_time = now - now % first->period;
	const uint64_t second_time = now - now % second->period;

	*theirs = (struct theirs){
		.srtcm_profile = {.cbs = first->burst,
			.ebs = second->burst,
			.cir_period = first->period,
			.cir_bytes_per_period = first->tokens},
		.trtcm_profile = {.cbs = first->burst,
			.pbs = second->burst,
			.cir_period = first->period,
			.cir_bytes_per_period = first->tokens,
			.pir_period = second->period,
			.pir_bytes_per_period = second->tokens},
		.rfc4115_profile = {.cbs = first->burst,
			.ebs = second->burst,
			.cir_period = first->period,
			.cir_bytes_per_period = first->tokens,
			.eir_period = second->period,
			.eir_bytes_per_period = second->tokens},
		.srtcm = {.time = first_time, .tc = first->burst, .te = second->burst},
		.trtcm = {.time_tc = first_time,
			.time_tp = second_time,
			.tc = first->burst,
			.tp = second->burst},
		.rfc4115 = {.time_tc = first_time,
			.time_te = second_time,
			.tc = first->burst,
			.te = second->burst},
	};
}

static enum rte_color by_rte_meter(enum cv_meter_kind kind, struct theirs *theirs, uint64_t now,
	uint32_t tokens, enum rte_color in)
{
	switch (kind) {
	case CV_METER_SRTCM:
		return rte_meter_srtcm_color_aware_check(
			&theirs->srtcm, &theirs->srtcm_profile, now, tokens, in);
	case CV_METER_TRTCM:
		return rte_meter_trtcm_color_aware_check(
			&theirs->trtcm, &theirs->trtcm_profile, now, tokens, in);
	default:
		return rte_meter_trtcm_rfc4115_color_aware_check(
			&theirs->rfc4115, &theirs->rfc4115_profile, now, tokens, in);
	}
}

static void colours_are_the_rfcs(void **state)
{
	static const uint64_t hz = 2000000000;

	for (unsigned round = 0; round < 300; round++) {
		const enum cv_meter_kind kind = round % 3;
		const struct cv_meter_rates rates = {
			.committed = 1000 + (double)draw(200000000),
			.second = 1000 + (double)draw(400000000),
			.committed_burst = 1 + draw(20000),
			.second_burst = 1 + draw(20000),
		};
		struct cv_meter_profile profile;
		struct cv_meter meter;
		uint64_t now = draw(1000000000000);
		struct bucket first, second;
		unsigned seen[RTE_COLORS] = {0};
		struct theirs theirs;

		cv_meter_profile_make(kind, &rates, hz, &profile);
		cv_meter_fill(&profile, now, &meter);
		first = (struct bucket){rates.committed_burst, profile.committed.period,
			profile.committed.tokens, rates.committed_burst,
			now / profile.committed.period};
		second = (struct bucket){rates.second_burst, profile.second.period,
			profile.second.tokens, rates.second_burst, now / profile.second.period};
		like_rte_meter(&profile, now, &theirs);
		for (unsigned i = 0; i < 2000; i++) {
			const uint32_t tokens = (uint32_t)draw(2000);
			const enum rte_color in = draw(2) ? RTE_COLOR_GREEN : (unsigned)draw(3);
			enum rte_color want, is;

			now += draw(4) ? draw(40000) : 0;
			want = by_rfc(kind, &first, &second, now, tokens, in);
			is = cv_meter_check(kind, &meter, &profile, now, tokens, in);
			assert_int_equal(is, want);
			assert_int_equal(is, by_rte_meter(kind, &theirs, now, tokens, in));
			assert_true(is >= in);
			seen[is]++;
		}
		assert_true(seen[RTE_COLOR_RED] > 0);
	}
}

// From one token per second to 400 Gbit/s: within a part of ten thousand, and mostly far nearer.
static void rates_are_exact(void **state)
{
	for (unsigned i = 0; i < 3000; i++) {
		const uint64_t hz = 1000000000 + draw(4000000000);
		const double rate = exp((double)draw(1000000) / 1e6 * log(5e10));
		const struct cv_meter_rates rates = {.committed = rate,
			.second = rate / 3,
			.committed_burst = 1000000000,
			.second_burst = 1000000000};
		struct cv_meter_profile profile;
		double is;

		cv_meter_profile_make(CV_METER_TRTCM, &rates, hz, &profile);
		is = (double)profile.committed.tokens / (double)profile.committed.period *
		     (double)hz;
		assert_true(fabs(is / rate - 1) < 1e-4);
		is = (double)profile.second.tokens / (double)profile.second.period * (double)hz;
		assert_true(fabs(is * 3 / rate - 1) < 1e-4);
	}
}

// After that time every bucket is full, whatever it was.
static void buckets_are_full_after_the_refill_time(void **state)
{
	for (unsigned i = 0; i < 3000; i++) {
		const enum cv_meter_kind kind = i % 3;
		const struct cv_meter_rates rates = {.committed = 1 + (double)draw(1000000),
			.second = (double)draw(1000000),
			.committed_burst = 1 + draw(100000),
			.second_burst = 1 + draw(100000)};
		struct cv_meter_profile profile;
		struct cv_meter meter;
		uint64_t now = 1000 + draw(1000000000000), refill_cycles;

		cv_meter_profile_make(kind, &rates, 2000000000, &profile);
		cv_meter_fill(&profile, now, &meter);
		for (unsigned n = 0; n < 2000; n++)
			cv_meter_check(kind, &meter, &profile, now, 400, RTE_COLOR_GREEN);
		refill_cycles = cv_meter_refill_cycles(kind, &profile);
		now += refill_cycles;
		cv_meter_check(kind, &meter, &profile, now, 0, RTE_COLOR_GREEN);
		assert_int_equal(meter.committed, rates.committed_burst);
		if (kind == CV_METER_SRTCM || rates.second > 0)
			assert_int_equal(meter.second, rates.second_burst);
	}
}

// Periods are those of a division, whatever the time.
static void periods_are_exact(void **state)
{
	for (unsigned i = 0; i < 1000000; i++) {
		struct cv_meter_bucket_rate rate = {
			.period = 1 + (i < 64 ? i : draw(1ull << draw(40)))};
		const uint64_t time = seed >> draw(64), edge = time / rate.period * rate.period;

		rate.reciprocal = UINT64_MAX / rate.period;
		assert_int_equal(cv_meter_periods(&rate, time), time / rate.period);
		assert_int_equal(cv_meter_periods(&rate, edge), edge / rate.period);
		assert_int_equal(cv_meter_periods(&rate, edge - 1), (edge - 1) / rate.period);
	}
}

#define HOSTS 4096
#define IDLE 1000000

static void a_table_keeps_who_is_not_idle(void **state)
{
	struct cv_meter *known[HOSTS];
	struct cv_meter_table table;
	unsigned refused = 0;
	uint64_t now = 5 * IDLE;
	bool is_new;

	assert_int_equal(cv_meter_table_init(&table, HOSTS, IDLE, -1), 0);
	for (uint64_t i = 0; i < HOSTS; i++) {
		const struct cv_meter_key key = {{i, 7}};

		known[i] = cv_meter_table_get(&table, &key, now, &is_new);
		refused += known[i] == NULL;
		assert_true(is_new);
		for (uint64_t j = 0; known[i] != NULL && j < i; j += 97)
			assert_ptr_not_equal(known[i], known[j]);
	}
	assert_true(refused < HOSTS / 16); // by two choices of eight places each
	assert_int_equal(table.taken, HOSTS - refused);
	// A flood of others takes nobody's place.
	for (uint64_t i = 0; i < 10 * HOSTS; i++) {
		const struct cv_meter_key key = {{i, 8}};

		cv_meter_table_get(&table, &key, now + IDLE / 2, &is_new);
	}
	for (uint64_t i = 0; i < HOSTS; i++) {
		const struct cv_meter_key key = {{i, 7}};
		struct cv_meter *meter = known[i] == NULL ? NULL
							  : cv_meter_table_get(&table, &key,
								    now + IDLE / 2, &is_new);

		assert_ptr_equal(meter, known[i]);
		assert_true(meter == NULL || !is_new);
	}
	// When they are idle it does.
	now += 3 * IDLE;
	refused = 0;
	for (uint64_t i = 0; i < HOSTS; i++) {
		const struct cv_meter_key key = {{i, 9}};

		refused += cv_meter_table_get(&table, &key, now, &is_new) == NULL;
		assert_true(is_new);
	}
	assert_true(refused < HOSTS / 16);
	assert_true(table.taken <= HOSTS);
	cv_meter_table_free(&table);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colours_are_the_rfcs),
		cmocka_unit_test(rates_are_exact),
		cmocka_unit_test(periods_are_exact),
		cmocka_unit_test(buckets_are_full_after_the_refill_time),
		cmocka_unit_test(a_table_keeps_who_is_not_idle),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
