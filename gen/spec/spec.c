// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/spec/spec.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/spec/parts.h"
#include "gen/spec/range.h"

static int __attribute__((format(printf, 2, 3)))
fail(struct gen_reader *reader, const char *format, ...)
{
	char text[sizeof(reader->error.text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cv_error_set(&reader->error, "spec: %s", text);
	return -1;
}

static int read_rate(struct gen_reader *reader, const char *key, json_t *value)
{
	const struct gen_field bounds = {.key = key, .type = GEN_NUMBER, .min = 0.01, .max = 1e9};

	if (json_is_string(value) && strcmp(json_string_value(value), "max") == 0) {
		gen_spec_of(reader)->rate_pps = 0;
		return 0;
	}
	if (json_is_string(value))
		return gen_fields_wrong(
			reader, key, value, "must be packets per second, or \"max\"");
	return gen_fields_number(reader, &bounds, value, &gen_spec_of(reader)->rate_pps);
}

static int read_seed(struct gen_reader *reader, const char *key, json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return gen_fields_wrong(reader, key, value, "must be a whole number, 0 or more");
	gen_spec_of(reader)->seed = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_on_full(struct gen_reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	gen_spec_of(reader)->drop_when_full = text != NULL && strcmp(text, "drop") == 0;
	if (!gen_spec_of(reader)->drop_when_full && (text == NULL || strcmp(text, "wait") != 0))
		return gen_fields_wrong(reader, key, value, "must be \"wait\" or \"drop\"");
	return 0;
}

static int read_paths(struct gen_reader *reader, const char *key, json_t *value)
{
	struct gen_spec *spec = gen_spec_of(reader);
	json_t *entry;
	size_t i;

	spec->path_count = 0;
	if (!json_is_array(value) || json_array_size(value) == 0 ||
		json_array_size(value) > GEN_MAX_PATHS)
		return gen_fields_wrong(
			reader, key, value, "must be a list of 1 to 16 paths like \"0>1\"");
	json_array_foreach (value, i, entry) {
		struct gen_path *path = &spec->paths[spec->path_count++];
		const char *text = json_string_value(entry);
		int end = 0;

		if (text == NULL || sscanf(text, "%2u>%2u%n", &path->from, &path->to, &end) != 2 ||
			text[end] != '\0' || path->from >= reader->ports ||
			path->to >= reader->ports) {
			char fix[96];
			snprintf(fix, sizeof(fix), "must be FROM>TO with ports 0 to %u (--port)",
				reader->ports - 1);
			return gen_fields_wrong(reader, key, entry, fix);
		}
	}
	return 0;
}

static int read_pacing(struct gen_reader *reader, const char *key, json_t *value)
{
	static const struct gen_field fields[] = {
		{"burst_pkts", GEN_UNSIGNED, GEN_SPEC_AT(burst), 1, 65536, NULL},
		{"on_us", GEN_NUMBER, GEN_SPEC_AT(on_us), 1, 1e7, NULL},
		{"off_us", GEN_NUMBER, GEN_SPEC_AT(off_us), 0, 1e7, NULL},
		{0},
	};

	if (gen_fields_read(reader, key, value, fields) < 0)
		return -1;
	if (gen_spec_of(reader)->off_us > 0 && gen_spec_of(reader)->on_us == 0)
		return gen_fields_wrong(reader, key, value, "off_us needs on_us");
	return 0;
}

static int read_sizes(struct gen_reader *reader, const char *key, json_t *value)
{
	static const struct gen_field fixed = {"size", GEN_UNSIGNED, 0, 64, 65535, NULL};
	static const struct gen_field fields[] = {
		{"file", GEN_STRING, GEN_SPEC_AT(size_file), 0, 0, NULL}, {0}};
	struct gen_spec *spec = gen_spec_of(reader);
	double number;

	if (json_is_string(value) && strcmp(json_string_value(value), "imix") == 0) {
		spec->sizes = GEN_SIZE_IMIX;
		return 0;
	}
	if (json_is_object(value) && json_object_get(value, "file") != NULL) {
		spec->sizes = GEN_SIZE_FILE;
		return gen_fields_read(reader, key, value, fields);
	}
	if (!json_is_integer(value))
		return gen_fields_wrong(reader, key, value,
			"must be bytes with FCS (64), \"imix\", or {\"file\": \"sizes.csv\"}");
	if (gen_fields_number(reader, &fixed, value, &number) < 0)
		return -1;
	spec->sizes = GEN_SIZE_FIXED;
	spec->frame_bytes = (uint32_t)number;
	return 0;
}

static int read_timing(struct gen_reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	gen_spec_of(reader)->capture_timing = text != NULL && strcmp(text, "original") == 0;
	if (!gen_spec_of(reader)->capture_timing && (text == NULL || strcmp(text, "rate") != 0))
		return gen_fields_wrong(reader, key, value, "must be \"original\" or \"rate\"");
	return 0;
}

static int read_capture(struct gen_reader *reader, const char *key, json_t *value)
{
	static const struct gen_field fields[] = {
		{"file", GEN_STRING, GEN_SPEC_AT(capture), 0, 0, NULL},
		{"timing", GEN_CUSTOM, 0, 0, 0, read_timing},
		{"speed", GEN_NUMBER, GEN_SPEC_AT(capture_speed), 1e-6, 1e6, NULL},
		{"loops", GEN_UNSIGNED, GEN_SPEC_AT(capture_loops), 0, 1e9, NULL},
		{0},
	};

	if (gen_fields_read(reader, key, value, fields) < 0)
		return -1;
	if (gen_spec_of(reader)->capture == NULL)
		return gen_fields_wrong(reader, key, value, "needs \"file\"");
	return 0;
}

static const struct gen_field top[] = {
	{"id", GEN_STRING, GEN_SPEC_AT(id), 0, 0, NULL},
	{"duration_s", GEN_NUMBER, GEN_SPEC_AT(duration_s), 0.000001, 86400, NULL},
	{"warmup_s", GEN_NUMBER, GEN_SPEC_AT(warmup_s), 0, 3600, NULL},
	{"drain_s", GEN_NUMBER, GEN_SPEC_AT(drain_s), 0, 60, NULL},
	{"rate_pps", GEN_CUSTOM, 0, 0, 0, read_rate},
	{"tolerance", GEN_NUMBER, GEN_SPEC_AT(tolerance), 0, 1, NULL},
	{"seed", GEN_CUSTOM, 0, 0, 0, read_seed},
	{"on_full", GEN_CUSTOM, 0, 0, 0, read_on_full},
	{"paths", GEN_CUSTOM, 0, 0, 0, read_paths},
	{"convoys", GEN_CUSTOM, 0, 0, 0, gen_spec_convoys},
	{"pacing", GEN_CUSTOM, 0, 0, 0, read_pacing},
	{"size", GEN_CUSTOM, 0, 0, 0, read_sizes},
	{"flows", GEN_CUSTOM, 0, 0, 0, gen_spec_flows},
	{"capture", GEN_CUSTOM, 0, 0, 0, read_capture},
	{0},
};

static void set_defaults(struct gen_spec *spec, uint32_t ports, bool ip6)
{
	*spec = (struct gen_spec){
		.duration_s = 1,
		.drain_s = 0.2,
		.rate_pps = 100000,
		.tolerance = 0.001,
		.seed = 1,
		.burst = 1,
		.sizes = GEN_SIZE_FIXED,
		.frame_bytes = 64,
		.path_count = 1,
		.paths = {{0, ports > 1 ? 1 : 0}},
		.flows = {.count = 1,
			.ip = 4,
			.protocol = GEN_UDP,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2}},
		.capture_timing = true,
		.capture_speed = 1,
		// Addresses for documentation: RFC 5737.
		.convoy_outer = {.version = 4,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2},
			.src = {192, 0, 2, 1},
			.dst = {192, 0, 2, 2}},
	};
	// The addresses set aside for benchmarks: RFC 2544 (198.18.0.0/15), RFC 5180 (2001:2::/48).
	gen_range_parse(
		ip6 ? "2001:2::1" : "198.18.0.1", ip6 ? AF_INET6 : AF_INET, 0, &spec->flows.src_ip);
	gen_range_parse(ip6 ? "2001:2:0:1::1" : "198.19.0.1", ip6 ? AF_INET6 : AF_INET, 0,
		&spec->flows.dst_ip);
	gen_range_parse("1024-65535", 0, 65535, &spec->flows.src_port);
	gen_range_parse("4096", 0, 65535, &spec->flows.dst_port);
}

static int check_together(struct gen_reader *reader)
{
	struct gen_spec *spec = gen_spec_of(reader);
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
		return fail(reader,
			"flows.count: %u: the ranges give only %" PRIu64
			" different flows; widen src_ip, dst_ip, src_port, dst_port or vlan",
			flows->count, distinct);
	if (spec->rate_pps * spec->duration_s >= UINT32_MAX ||
		spec->rate_pps * spec->warmup_s >= UINT32_MAX)
		return fail(reader,
			"duration_s: %g: at %g packets/s a trial of more than %g s "
			"runs out of sequence numbers; make it shorter",
			spec->duration_s, spec->rate_pps, UINT32_MAX / spec->rate_pps);
	if (spec->convoy_packets > 1 && spec->capture != NULL)
		return fail(reader,
			"convoys: %u: captures are replayed packet by packet; use 1 to take "
			"received convoys apart",
			spec->convoy_packets);
	if (spec->off_us > 0 && spec->rate_pps == 0)
		return fail(reader, "pacing.off_us: on-off traffic needs a rate_pps, not "
				    "\"max\"");
	return 0;
}

int gen_spec_parse(
	struct gen_spec *spec, const json_t *json, uint32_t ports, char *error, size_t error_size)
{
	struct gen_reader reader = {
		.document = "spec", .where = "", .target = spec, .ports = ports};
	const json_t *flows = json_object_get(json, "flows");
	int rc;

	set_defaults(spec, ports, json_integer_value(json_object_get(flows, "ip")) == 6);
	spec->json = json_deep_copy(json);
	if (!json_is_object(json))
		rc = fail(&reader, "must be one JSON object {…} per line");
	else
		rc = gen_fields_read(&reader, "", spec->json, top);
	if (rc == 0)
		rc = check_together(&reader);
	if (rc < 0)
		snprintf(error, error_size, "%s", reader.error.text);
	return rc;
}

void gen_spec_free(struct gen_spec *spec)
{
	json_decref(spec->json);
	spec->json = NULL;
}
