// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/spec/spec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/spec/parts.h"

static int read_rate(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	static const struct cv_param number = {
		"rate_pps", CV_NUMBER, CV_AT(struct gen_spec, rate_pps), .low = 0.01, .high = 1e9};
	struct gen_spec *spec = of;

	if (!json_is_string(value))
		return cv_param_read(at, &number, value, spec);
	if (strcmp(json_string_value(value), "max") != 0)
		return cv_where_wrong(at, key, value, "must be packets per second, or \"max\"");
	spec->rate_pps = 0;
	return 0;
}

static int read_seed(const struct cv_where *at, const char *key, const json_t *value, void *seed)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return cv_where_wrong(at, key, value, "must be a whole number, 0 or more");
	*(uint64_t *)seed = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_path(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct gen_spec *spec = of;
	struct gen_path *path = &spec->paths[spec->path_count++];
	const char *text = json_string_value(value);
	int end = 0;

	if (text == NULL || sscanf(text, "%2u>%2u%n", &path->from, &path->to, &end) != 2 ||
		text[end] != '\0' || path->from >= spec->ports || path->to >= spec->ports)
		return cv_where_wrong(at, key, value, "must be FROM>TO with ports 0 to %u (--port)",
			spec->ports - 1);
	return 0;
}

static int read_size(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	static const struct cv_param fixed = {
		"size", CV_INTEGER, CV_AT(struct gen_spec, frame_bytes), .low = 64, .high = 65535};
	static const struct cv_param params[] = {
		{"file", CV_FILE, CV_AT(struct gen_spec, size_file), .required = true}, {0}};
	const struct cv_where here = cv_where_key(at, key);
	struct gen_spec *spec = of;

	if (json_is_integer(value))
		return cv_param_read(at, &fixed, value, spec);
	if (json_is_object(value)) {
		spec->sizes = GEN_SIZE_FILE;
		return cv_params_read(&here, value, params, spec);
	}
	if (!json_is_string(value) || strcmp(json_string_value(value), "imix") != 0)
		return cv_where_wrong(at, key, value,
			"must be bytes with FCS (64), \"imix\", or {\"file\": \"sizes.csv\"}");
	spec->sizes = GEN_SIZE_IMIX;
	return 0;
}

#define AT(member) CV_AT(struct gen_spec, member)

static const char *const timings[] = {"rate", "original", NULL};
static const char *const on_full[] = {"wait", "drop", NULL};

static const struct cv_param pacing_params[] = {
	{"burst_pkts", CV_INTEGER, AT(burst), .low = 1, .high = 65536, .fallback = 1},
	{"on_us", CV_NUMBER, AT(on_us), .low = 1, .high = 1e7},
	{"off_us", CV_NUMBER, AT(off_us), .high = 1e7},
	{0},
};

static const struct cv_param capture_params[] = {
	{"file", CV_FILE, AT(capture), .required = true},
	{"timing", CV_WORD, AT(capture_timing), .words = timings, .fallback = true},
	{"speed", CV_NUMBER, AT(capture_speed), .low = 1e-6, .high = 1e6, .fallback = 1},
	{"loops", CV_INTEGER, AT(capture_loops), .high = 1e9},
	{0},
};

static int read_translated(
	const struct cv_where *at, const char *key, const json_t *value, void *range)
{
	const char *text = json_string_value(value);

	if (text == NULL || !gen_range_parse(text, AF_INET, 0, range))
		return cv_where_wrong(at, key, value,
			"must be the IPv4 addresses that the device writes as sources: "
			"\"192.0.2.0/24\"");
	return 0;
}

static const struct cv_param spec_params[] = {
	{"id", CV_TEXT, AT(id)},
	{"duration_s", CV_NUMBER, AT(duration_s), .low = 0.000001, .high = 86400, .fallback = 1},
	{"warmup_s", CV_NUMBER, AT(warmup_s), .high = 3600},
	{"drain_s", CV_NUMBER, AT(drain_s), .high = 60, .fallback = 0.2},
	{"rate_pps", CV_CUSTOM, .read = read_rate},
	{"tolerance", CV_NUMBER, AT(tolerance), .high = 1, .fallback = 0.001},
	{"seed", CV_CUSTOM, AT(seed), .read = read_seed},
	{"on_full", CV_WORD, AT(drop_when_full), .words = on_full},
	{"paths", CV_EACH, .low = 1, .high = GEN_MAX_PATHS, .read = read_path},
	{"packets", CV_INTEGER, AT(packets), .high = UINT32_MAX - 1},
	{"answers", CV_BOOL, AT(answers)},
	{"translated", CV_CUSTOM, AT(translated), .read = read_translated},
	{"keep", CV_INTEGER, AT(keep), .high = GEN_KEPT_MAX},
	{"convoys", CV_CUSTOM, .read = gen_spec_convoys},
	{"pacing", CV_PARAMS, .params = pacing_params},
	{"size", CV_CUSTOM, .read = read_size},
	{"flows", CV_PARAMS, AT(flows), .params = gen_flows_params},
	{"capture", CV_PARAMS, .params = capture_params},
	{0},
};

// Before it is read: what no row of a table has a default for.
static void set_defaults(struct gen_spec *spec, uint32_t ports)
{
	*spec = (struct gen_spec){
		.rate_pps = 100000,
		.seed = 1,
		.ports = ports,
		.frame_bytes = 64,
		.flows = {.ip = 4,
			.protocol = GEN_UDP,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2}},
		// Addresses for documentation: RFC 5737.
		.convoy_outer = {.version = 4,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2},
			.src = {192, 0, 2, 1},
			.dst = {192, 0, 2, 2}},
	};
}

// Afterwards: what depends on other keys.
static void complete(struct gen_spec *spec)
{
	struct gen_flows *flows = &spec->flows;
	const bool ip6 = flows->ip == 6;
	const int family = ip6 ? AF_INET6 : AF_INET;

	if (spec->path_count == 0)
		spec->paths[spec->path_count++] = (struct gen_path){0, spec->ports > 1 ? 1 : 0};
	flows->tagged = flows->vlan.span > 0;
	flows->opens = spec->answers && flows->protocol == GEN_TCP;
	// The addresses set aside for benchmarks: RFC 2544 (198.18.0.0/15), RFC 5180 (2001:2::/48).
	if (flows->src_ip.span == 0)
		gen_range_parse(ip6 ? "2001:2::1" : "198.18.0.1", family, 0, &flows->src_ip);
	if (flows->dst_ip.span == 0)
		gen_range_parse(ip6 ? "2001:2:0:1::1" : "198.19.0.1", family, 0, &flows->dst_ip);
	if (flows->src_port.span == 0)
		gen_range_parse("1024-65535", 0, 65535, &flows->src_port);
	if (flows->dst_port.span == 0)
		gen_range_parse("4096", 0, 65535, &flows->dst_port);
}

// What is written or answered packet by packet.
static int check_sending(const struct cv_where *top, const struct gen_spec *spec)
{
	const struct gen_flows *flows = &spec->flows;
	const bool plain = flows->ip == 4 && spec->capture == NULL && spec->convoy_packets == 0;

	if (flows->written_sending &&
		(!plain || spec->sizes != GEN_SIZE_FIXED || flows->vlan.span > 1))
		return cv_where_error(top,
			"flows: written: \"sending\": is for IPv4 frames of one size and at most "
			"one VLAN id, without convoys and captures; use \"before\"");
	if (spec->answers && !plain)
		return cv_where_error(top,
			"answers: true: is for IPv4, without convoys and captures; leave them out");
	if (spec->translated.span > 0 && !(spec->answers && flows->written_sending))
		return cv_where_error(
			top, "translated: needs answers: true and flows: written: \"sending\"");
	for (uint32_t i = 0; spec->answers && i < spec->path_count; i++)
		if (spec->paths[i].from == spec->paths[i].to)
			return cv_where_error(top,
				"answers: true: path %u>%u: answers need another port to come from",
				spec->paths[i].from, spec->paths[i].to);
	return 0;
}

static int check_together(const struct cv_where *top, const struct gen_spec *spec)
{
	const struct gen_flows *flows = &spec->flows;
	const uint64_t spans[] = {flows->src_ip.span, flows->dst_ip.span, flows->src_port.span,
		flows->dst_port.span, flows->tagged ? flows->vlan.span : 1};
	uint64_t distinct = 1;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]) && distinct < flows->count; i++) {
		uint64_t a = distinct, b = spans[i];
		while (b != 0) {
			const uint64_t rest = a % b;
			a = b;
			b = rest;
		}
		distinct *= spans[i] / a;
	}
	if (distinct < flows->count)
		return cv_where_error(top,
			"flows: count: %u: the ranges give only %" PRIu64
			" different flows; widen src_ip, dst_ip, src_port, dst_port or vlan",
			flows->count, distinct);
	if (check_sending(top, spec) < 0)
		return -EINVAL;
	if (spec->rate_pps * spec->duration_s >= UINT32_MAX ||
		spec->rate_pps * spec->warmup_s >= UINT32_MAX)
		return cv_where_error(top,
			"duration_s: %g: at %g packets/s a trial of more than %g s "
			"runs out of sequence numbers; make it shorter",
			spec->duration_s, spec->rate_pps, UINT32_MAX / spec->rate_pps);
	if (spec->keep > 0 && spec->capture == NULL)
		return cv_where_error(top,
			"keep: %u: the bytes of a capture's frames are kept; give a capture",
			spec->keep);
	if (spec->convoy_packets > 1 && spec->capture != NULL && spec->capture_timing)
		return cv_where_error(top,
			"convoys: %u: a capture is replayed packet by packet at its own times; use "
			"timing: \"rate\", or 1 to take received convoys apart",
			spec->convoy_packets);
	if (spec->off_us > 0 && spec->on_us == 0)
		return cv_where_error(top, "pacing: off_us: %g: needs on_us", spec->off_us);
	if (spec->off_us > 0 && spec->rate_pps == 0)
		return cv_where_error(top, "pacing: off_us: on-off traffic needs a rate_pps, not "
					   "\"max\"");
	return 0;
}

int gen_spec_parse(
	struct gen_spec *spec, const json_t *json, uint32_t ports, struct cv_error *error)
{
	const struct cv_where top = cv_where_top("spec", error);
	int rc;

	set_defaults(spec, ports);
	spec->json = json_deep_copy(json);
	rc = cv_params_read(&top, spec->json, spec_params, spec);
	if (rc != 0)
		return rc;
	complete(spec);
	return check_together(&top, spec);
}

void gen_spec_free(struct gen_spec *spec)
{
	json_decref(spec->json);
	spec->json = NULL;
}
