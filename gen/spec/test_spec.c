// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gen/spec/spec.h"

// Each message names the field and the value (or what is wrong with both), and the fix.
static void bad_specifications_are_refused(void **state)
{
	static const struct {
		const char *text, *names, *fix;
	} rows[] = {
		{"[]", "spec", "must be an object"},
		{"{\"rate\": 5}", "rate: unknown", "rate_pps"},
		{"{\"rate_pps\": \"fast\"}", "rate_pps: \"fast\"", "\"max\""},
		{"{\"rate_pps\": 0}", "rate_pps: 0", "from 0.01"},
		{"{\"rate_pps\": -1}", "rate_pps: -1", "from 0.01"},
		{"{\"rate_pps\": null}", "rate_pps: null", "number"},
		{"{\"duration_s\": 0}", "duration_s: 0", "from 1e-06"},
		{"{\"duration_s\": \"1\"}", "duration_s: \"1\"", "number"},
		{"{\"duration_s\": 1e9}", "duration_s", "to 86400"},
		{"{\"rate_pps\": 1e8, \"duration_s\": 60}", "duration_s: 60", "sequence numbers"},
		{"{\"size\": 63}", "size: 63", "from 64"},
		{"{\"size\": 64.5}", "size: 64.5", "bytes with FCS"},
		{"{\"size\": \"jumbo\"}", "size: \"jumbo\"", "imix"},
		{"{\"size\": {\"csv\": \"x\"}}", "size: csv: unknown", "file"},
		{"{\"size\": {\"file\": 1}}", "size: file: 1", "string"},
		{"{\"seed\": -1}", "seed: -1", "whole number"},
		{"{\"tolerance\": 2}", "tolerance: 2", "from 0 to 1"},
		{"{\"on_full\": \"cry\"}", "on_full: \"cry\"", "wait drop"},
		{"{\"paths\": []}", "paths: has 0 elements", "1 to 16"},
		{"{\"paths\": \"0>1\"}", "paths: \"0>1\"", "array"},
		{"{\"paths\": [\"0>2\"]}", "paths[0]: \"0>2\"", "ports 0 to 1"},
		{"{\"paths\": [\"0-1\"]}", "paths[0]: \"0-1\"", "FROM>TO"},
		{"{\"paths\": [\"0>1 \"]}", "paths", "FROM>TO"},
		{"{\"convoys\": 0}", "convoys: 0", "from 1 to 255"},
		{"{\"convoys\": 256}", "convoys: 256", "from 1 to 255"},
		{"{\"convoys\": \"all\"}", "convoys: \"all\"", "how many packets"},
		{"{\"convoys\": {\"mtu\": 9000}}", "convoys: packets", "is missing"},
		{"{\"convoys\": {\"packets\": 2, \"mtu\": 100}}", "convoys: mtu: 100", "from 128"},
		{"{\"convoys\": {\"packets\": 2, \"src\": \"::1\", \"dst\": \"10.0.0.1\"}}",
			"convoys: dst", "one kind"},
		{"{\"convoys\": {\"packets\": 2, \"src\": \"here\"}}", "convoys: src: \"here\"",
			"IPv6"},
		{"{\"convoys\": {\"packets\": 2, \"src_mac\": \"2\"}}", "convoys: src_mac",
			"02:00"},
		{"{\"convoys\": {\"packets\": 2, \"nfi\": -1}}", "convoys: nfi: -1", "from 0"},
		{"{\"convoys\": 2, \"capture\": {\"file\": \"x\"}}", "convoys: 2",
			"timing: \"rate\""},
		{"{\"pacing\": {\"off_us\": 5}}", "pacing: off_us: 5", "needs on_us"},
		{"{\"pacing\": {\"burst_pkts\": 0}}", "pacing: burst_pkts: 0", "from 1"},
		{"{\"rate_pps\": \"max\", \"pacing\": {\"on_us\": 5, \"off_us\": 5}}",
			"pacing: off_us", "rate_pps"},
		{"{\"flows\": {\"count\": 0}}", "flows: count: 0", "from 1"},
		{"{\"flows\": {\"count\": 70000}}", "flows: count: 70000", "widen"},
		{"{\"flows\": {\"ip\": 5}}", "flows: ip: 5", "4 or 6"},
		{"{\"flows\": {\"protocol\": \"icmp\"}}", "flows: protocol: \"icmp\"", "\"udp\""},
		{"{\"flows\": {\"src_mac\": \"02:00\"}}", "flows: src_mac: \"02:00\"", "02:00:00"},
		{"{\"flows\": {\"vlan\": 4095}}", "flows: vlan: 4095", "0-4094"},
		{"{\"flows\": {\"vlan\": \"20-10\"}}", "flows: vlan: \"20-10\"", "range"},
		{"{\"flows\": {\"dst_port\": 65536}}", "flows: dst_port: 65536", "0-65535"},
		{"{\"flows\": {\"dst_port\": \"1-\"}}", "flows: dst_port: \"1-\"", "range"},
		{"{\"flows\": {\"src_ip\": \"10.0.0.0/33\"}}", "flows: src_ip", "IPv4"},
		{"{\"flows\": {\"src_ip\": \"::1\"}}", "flows: src_ip: \"::1\"", "flows.ip to 6"},
		{"{\"flows\": {\"ip\": 6, \"src_ip\": \"10.0.0.1\"}}", "flows: src_ip", "IPv6"},
		{"{\"flows\": {\"ip\": 6, \"src_ip\": \"2001::/64\"}}", "flows: src_ip", "/96"},
		{"{\"flows\": {\"order\": \"up\"}}", "flows: order: \"up\"", "shuffle"},
		{"{\"flows\": [1]}", "flows: [1]", "object"},
		{"{\"flows\": {\"written\": \"later\"}}", "flows: written: \"later\"", "sending"},
		{"{\"flows\": {\"first\": -1}}", "flows: first: -1", "from 0"},
		{"{\"flows\": {\"written\": \"sending\", \"ip\": 6}}", "flows: written",
			"\"before\""},
		{"{\"flows\": {\"written\": \"sending\", \"vlan\": \"1-2\"}}", "flows: written",
			"\"before\""},
		{"{\"flows\": {\"written\": \"sending\"}, \"size\": \"imix\"}", "flows: written",
			"\"before\""},
		{"{\"answers\": 1}", "answers: 1", "true or false"},
		{"{\"answers\": true, \"convoys\": 2}", "answers: true", "leave them out"},
		{"{\"answers\": true, \"paths\": [\"1>1\"]}", "answers: true: path 1>1",
			"another port"},
		{"{\"packets\": -1}", "packets: -1", "from 0"},
		{"{\"translated\": \"192.0.2.0/24\"}", "translated", "answers: true"},
		{"{\"translated\": \"here\"}", "translated: \"here\"", "192.0.2.0/24"},
		{"{\"keep\": 5}", "keep: 5", "give a capture"},
		{"{\"keep\": 5000, \"capture\": {\"file\": \"x\"}}", "keep: 5000", "4096"},
		{"{\"capture\": {\"timing\": \"original\"}}", "capture: file", "is missing"},
		{"{\"capture\": {\"file\": \"x\", \"timing\": \"x\"}}", "capture: timing: \"x\"",
			"original"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *json = json_loads(rows[i].text, 0, NULL);
		struct gen_spec spec;
		struct cv_error error = {0};

		assert_non_null(json);
		print_message("%s\n", rows[i].text);
		assert_int_equal(gen_spec_parse(&spec, json, 2, &error), -EINVAL);
		print_message("    %s\n", error.text);
		assert_non_null(strstr(error.text, rows[i].names));
		assert_non_null(strstr(error.text, rows[i].fix));
		gen_spec_free(&spec);
		json_decref(json);
	}
}

static void parse(struct gen_spec *spec, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);
	struct cv_error error = {0};

	assert_non_null(json);
	if (gen_spec_parse(spec, json, 2, &error) < 0)
		fail_msg("%s: %s", text, error.text);
	json_decref(json);
}

static void defaults_are_what_the_manual_says(void **state)
{
	struct gen_spec spec;

	parse(&spec, "{}");
	assert_true(spec.duration_s == 1 && spec.rate_pps == 100000 && spec.tolerance == 0.001);
	assert_int_equal(spec.frame_bytes, 64);
	assert_int_equal(spec.path_count, 1);
	assert_int_equal(spec.paths[0].from, 0);
	assert_int_equal(spec.paths[0].to, 1);
	assert_int_equal(spec.flows.count, 1);
	assert_false(spec.drop_when_full);
	gen_spec_free(&spec);
}

static void ranges(void **state)
{
	struct gen_spec spec;

	parse(&spec, "{\"flows\": {\"count\": 512, \"src_ip\": \"10.1.2.77/24\", \"dst_ip\": "
		     "\"10.0.0.250-10.0.1.1\", \"vlan\": \"100-103\", \"dst_port\": 53}}");
	assert_memory_equal(spec.flows.src_ip.low + 12, ((uint8_t[]){10, 1, 2, 0}), 4);
	assert_int_equal(spec.flows.src_ip.span, 256);
	assert_int_equal(spec.flows.dst_ip.span, 8);
	assert_int_equal(spec.flows.vlan.span, 4);
	assert_int_equal(spec.flows.vlan.low[15], 100);
	assert_int_equal(spec.flows.dst_port.low[15], 53);
	assert_int_equal(spec.flows.dst_port.span, 1);
	assert_true(spec.flows.tagged);
	gen_spec_free(&spec);

	parse(&spec,
		"{\"flows\": {\"ip\": 6, \"src_ip\": \"2001:db8::/112\"}, \"rate_pps\": \"max\", "
		"\"size\": 128, \"paths\": [\"0>1\", \"1>0\"], \"seed\": 7, \"on_full\": "
		"\"drop\"}");
	assert_int_equal(spec.flows.src_ip.span, 65536);
	assert_true(spec.rate_pps == 0);
	assert_int_equal(spec.seed, 7);
	assert_int_equal(spec.path_count, 2);
	assert_true(spec.drop_when_full);
	gen_spec_free(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_specifications_are_refused),
		cmocka_unit_test(defaults_are_what_the_manual_says),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
