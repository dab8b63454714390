// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reflector.h"

#define NOISE_PPS 1000000

static const struct gen_vhost_options rings = {
	.queues = 1, .ring = 1024, .buffer = 1514, .memory = 64 << 20};

// One trial of a specification made here: a new reference to its result, or NULL.
static json_t *trial(struct gen_tester *tester, const struct gen_context *context,
	json_t *specification, char *error, size_t error_size)
{
	struct gen_trial trial;
	struct gen_spec spec;
	json_t *result = NULL;

	if (gen_spec_parse(&spec, specification, tester->port_count, error, error_size) == 0) {
		if (gen_trial_run(tester, &spec, spec.duration_s, &trial, error, error_size) == 0)
			result = gen_result(tester, context, &spec, &trial);
		gen_trial_free(&trial);
	}
	gen_spec_free(&spec);
	json_decref(specification);
	return result;
}

static json_t *rate_of(const json_t *result, const char *key)
{
	json_t *value = json_object_get(json_object_get(result, "total"), key);

	return value != NULL ? json_incref(value) : json_null();
}

json_t *gen_self_test(struct gen_tester *tester, const struct gen_context *context,
	uint32_t reflector_core, char *error, size_t error_size)
{
	struct gen_tester inner = {.clock = tester->clock, .next_magic = tester->next_magic};
	struct gen_reflector *reflector = calloc(1, sizeof(*reflector));
	struct gen_port *ports = calloc(2, sizeof(*ports));
	json_t *report = NULL, *oneway = NULL, *both = NULL, *noise = NULL;

	if (reflector == NULL || ports == NULL) {
		snprintf(error, error_size, "out of memory");
		goto out;
	}
	for (uint32_t i = 0; i < 2; i++) {
		snprintf(ports[i].name, sizeof(ports[i].name), "inside%u", i);
		const int result = gen_vhost_open_inside(&ports[i], &rings);
		if (result < 0) {
			snprintf(error, error_size, "self-test: %s", strerror(-result));
			goto out;
		}
		inner.ports[inner.port_count++] = &ports[i];
	}
	reflector->core = reflector_core;
	reflector->lane_count = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct gen_vring *unused;
		gen_vhost_rings(&ports[i], 0, &unused, &reflector->lanes[i].from);
		gen_vhost_rings(&ports[1 - i], 0, &reflector->lanes[i].to, &unused);
	}
	const int started = gen_reflector_start(reflector);
	if (started < 0) {
		snprintf(error, error_size, "self-test: cannot start a thread: %s",
			strerror(-started));
		goto out;
	}
	json_decref(trial(&inner, context,
		json_pack("{s:f, s:s}", "duration_s", 0.2, "rate_pps", "max"), error, error_size));
	oneway = trial(&inner, context,
		json_pack("{s:f, s:s}", "duration_s", 1.0, "rate_pps", "max"), error, error_size);
	both = trial(&inner, context,
		json_pack("{s:f, s:s, s:[s,s]}", "duration_s", 1.0, "rate_pps", "max", "paths",
			"0>1", "1>0"),
		error, error_size);
	noise = trial(&inner, context,
		json_pack("{s:f, s:i}", "duration_s", 1.0, "rate_pps", NOISE_PPS), error,
		error_size);
	gen_reflector_stop(reflector);
	if (oneway == NULL || both == NULL || noise == NULL)
		goto out;
	tester->next_magic = inner.next_magic;
	report = json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:O, s:O}", //
		"schema", "convoy.self-test/1", "kind", "vhost-user", "frame_bytes", 64, "core",
		(int)context->core, "reflector_core", (int)reflector_core, //
		"ceiling_pps", rate_of(oneway, "received_pps"), //
		"ceiling_sent_pps", rate_of(oneway, "sent_pps"), //
		"ceiling_both_paths_pps", rate_of(both, "received_pps"), //
		"lost_pkts", rate_of(oneway, "lost_pkts"), //
		"noise_pps", NOISE_PPS, //
		"noise_latency", json_object_get(json_object_get(noise, "total"), "latency"), //
		"noise_lost_time", json_object_get(json_object_get(noise, "tester"), "lost_time"));
out:
	json_decref(oneway);
	json_decref(both);
	json_decref(noise);
	for (uint32_t i = 0; i < inner.port_count; i++)
		inner.ports[i]->close(inner.ports[i]);
	free(ports);
	free(reflector);
	return report;
}
