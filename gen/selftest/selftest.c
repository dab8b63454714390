// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/selftest/selftest.h"

#define NOISE_PPS 1000000.0 // or a quarter of the baseline rate, where that is less

// One trial of a specification made here: a new reference to its result, or NULL.
static json_t *trial(struct gen_tester *tester, const struct gen_context *context,
	json_t *specification, struct cv_error *error)
{
	struct gen_trial trial;
	struct gen_spec spec;
	json_t *result = NULL;

	if (gen_spec_parse(&spec, specification, tester->port_count, error) == 0) {
		if (gen_trial_run(tester, &spec, spec.duration_s, &trial, error) == 0)
			result = gen_result(tester, context, &spec, &trial);
		gen_trial_free(&trial);
	}
	gen_spec_free(&spec);
	json_decref(specification);
	return result;
}

// As a new reference; null where there is no result.
static json_t *value_of(const json_t *result, const char *part, const char *key)
{
	json_t *value = json_object_get(json_object_get(result, part), key);

	return value != NULL ? json_incref(value) : json_null();
}

static json_t *run(struct gen_tester *inner, const struct gen_context *context,
	const struct gen_loopback *loopback, struct cv_error *error)
{
	json_t *oneway = NULL, *both = NULL, *noise = NULL, *report = NULL;

	json_decref(trial(inner, context,
		json_pack("{s:f, s:s}", "duration_s", 0.2, "rate_pps", "max"), error));
	oneway = trial(inner, context,
		json_pack("{s:f, s:s}", "duration_s", 1.0, "rate_pps", "max"), error);
	if (loopback->port_count == 2)
		both = trial(inner, context,
			json_pack("{s:f, s:s, s:[s,s]}", "duration_s", 1.0, "rate_pps", "max",
				"paths", "0>1", "1>0"),
			error);
	const json_t *baseline = json_object_get(json_object_get(oneway, "total"), "received_pps");
	const double quarter = json_number_value(baseline) / 4;
	const double noise_pps = quarter > 1 && quarter < NOISE_PPS ? quarter : NOISE_PPS;
	noise = trial(inner, context,
		json_pack("{s:f, s:f}", "duration_s", 1.0, "rate_pps", noise_pps), error);
	if (oneway != NULL && noise != NULL && (both != NULL || loopback->port_count == 1))
		report = json_pack(
			"{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o}", //
			"schema", "convoy.self-test/2", "kind", loopback->kind->name, //
			"frame_bytes", 64, "core", (int)context->core, //
			"baseline_pps", value_of(oneway, "total", "received_pps"), //
			"baseline_sent_pps", value_of(oneway, "total", "sent_pps"), //
			"baseline_both_paths_pps", value_of(both, "total", "received_pps"), //
			"lost_pkts", value_of(oneway, "total", "lost_pkts"), //
			"noise_pps", noise_pps, //
			"noise_latency", value_of(noise, "total", "latency"), //
			"noise_lost_time", value_of(noise, "tester", "lost_time"), //
			"line_round_trip_ns", value_of(oneway, "probe", "before_ns"));
	json_decref(oneway);
	json_decref(both);
	json_decref(noise);
	return report;
}

json_t *gen_self_test(struct gen_tester *tester, const struct gen_context *context,
	const struct gen_loopback_kind *kind, uint32_t reflector_core, struct cv_error *error)
{
	struct gen_tester inner = {.clock = tester->clock, .next_magic = tester->next_magic};
	// Elsewhere no other core takes part.
	inner.probe = kind->needs_reflector ? tester->probe : NULL;
	struct gen_loopback loopback;
	json_t *report = NULL;

	if (gen_loopback_open(&loopback, kind, reflector_core, error) == 0) {
		for (; inner.port_count < loopback.port_count; inner.port_count++)
			inner.ports[inner.port_count] = loopback.ports[inner.port_count];
		report = run(&inner, context, &loopback, error);
	}
	gen_loopback_close(&loopback);
	if (report == NULL)
		return NULL;
	tester->next_magic = inner.next_magic;
	json_object_set_new(report, "reflector_core",
		kind->needs_reflector ? json_integer(reflector_core) : json_null());
	return report;
}
