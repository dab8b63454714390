// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A plan changed by hand: what is wrong with it, and where, is said in one line.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/plan.h"

// A good plan, in single quotes: two chains of one port, one of them a pipeline.
static const char good[] =
	"{'schema': 'convoy.plan/1',"
	" 'ports': [{'name': 'left', 'kind': 'null'}, {'name': 'right', 'kind': 'null'}],"
	" 'functions': [{'name': 'a', 'type': 'l2fwd', 'config': {}},"
	"               {'name': 'b', 'type': 'l2fwd', 'config': {'mode': 'swap'}}],"
	" 'chains': [{'name': 'one', 'match': {'vlan': 7}, 'in': 'left', 'out': 'right'},"
	"            {'name': 'two', 'match': {}, 'in': 'left', 'out': 'right'}],"
	" 'stages': [{'worker': 0, 'chain': 'one', 'source': {'port': 'left', 'queue': 0},"
	"             'path': ['a', 'b'], 'sink': {'port': 'right'}},"
	"            {'worker': 0, 'chain': 'two', 'source': {'port': 'left'}, 'path': ['a'],"
	"             'sink': {'ring': 'two.1'}},"
	"            {'worker': 1, 'chain': 'two', 'source': {'ring': 'two.1'}, 'path': ['b'],"
	"             'sink': {'port': 'right'}}],"
	" 'workers': [{'core': 0}, {'core': 0, 'idle': 'yield'}],"
	" 'eal': {'hugepages': false, 'memory_mb': 256}}";

static const struct {
	const char *old; // in the good plan; its first occurrence
	const char *new;
	const char *error; // that must be in the message, behind "plan: "
} bad[] = {
	{"{'schema'", "{'schema' 1, '", "plan:1: "},
	{"'schema': 'convoy.plan/1'", "'schema': 'convoy.plan/9'", "schema: \"convoy.plan/9\""},
	{"'schema': 'convoy.plan/1'", "'schema': 1", "schema: 1: must be a string"},
	{"'schema': 'convoy.plan/1',", "", "schema: is missing; add it"},
	{"'schema'", "'telemetry': {'mode': '0660'}, 'schema'", "telemetry: mode: unknown"},
	{"'schema'", "'telemetry': {'socket_mode': '9'}, 'schema'",
		"telemetry: socket_mode: \"9\""},
	{"'schema'", "'telemetry': 1, 'schema'", "plan: telemetry: 1: must be an object"},
	{"'schema'", "'colour': 1, 'schema'", "plan: colour: unknown; known are: schema ports"},
	{"'schema'", "'schema': 'convoy.plan/1', 'schema'", "duplicate object key"},
	{"'ports': [{'name': 'left', 'kind': 'null'}, {'name': 'right', 'kind': 'null'}]",
		"'ports': []", "ports: has 0 elements"},
	{"'name': 'right', 'kind': 'null'", "'name': 'left', 'kind': 'null'",
		"ports[1]: name: there are two ports \"left\""},
	{"'name': 'right', 'kind'", "'name': '', 'kind'", "ports[1]"},
	{"'config': {}}", "'config': {}, 'outputs': [{'name': 'x', 'chain': 'two'}]}",
		"functions[0]: outputs: a l2fwd has none"},
	{"'l2fwd', 'config': {}}",
		"'classifier', 'config': {}, 'outputs': [{'name': 'x', 'chain': 'three'}]}",
		"functions[0]: outputs: x: no chain is called \"three\""},
	{"'l2fwd', 'config': {}}",
		"'classifier', 'config': {}, 'outputs': [{'name': 'x', 'chain': 'two'}]}",
		"functions[0]: outputs: x: chain \"two\" comes in by a port"},
	{"'match': {}, 'in': 'left'", "'match': {}",
		"stages[1].source: outputs: chain \"two\" has no port in"},
	{"'match': {'vlan': 7}, 'in': 'left'", "'match': {'vlan': 7}",
		"chains[0]: match: only a chain that has a port in"},
	{"'match': {'vlan': 7}, 'in': 'left'", "'match': {}, 'spread': 'round-robin'",
		"chains[0]: spread: only a chain that has a port in has one"},
	{"'match': {'vlan': 7}", "'match': {'vlan': 7}, 'spread': 'even'",
		"chains[0]: spread: \"even\": must be one of: rss round-robin"},
	{"'kind': 'null'", "'kind': 'warp'", "ports[0]: "},
	{"'type': 'l2fwd'", "'type': 'teleport'",
		"functions[0]: type: no function type \"teleport\""},
	{"'name': 'b'", "'name': 'a'", "functions[1]: name: there are two functions \"a\""},
	{"'config': {}", "'config': 3", "functions[0]: config: 3: must be an object"},
	{"'type': 'l2fwd', ", "", "functions[0]: type: is missing"},
	{"'name': 'two'", "'name': 'one'", "chains[1]: name: there are two chains \"one\""},
	{"'match': {}", "'match': {'vlan': 7}", "chains[1]: match: chain \"one\" matches the same"},
	{"'vlan': 7", "'vlan': 4096",
		"chains[0].match: vlan: 4096: must be a whole number from 0 to 4095"},
	{"'vlan': 7", "'vlan': -1", "chains[0].match: vlan: -1: must be a whole number"},
	{"'vlan': 7", "'vlan': 7, 'vni': 7", "chains[0].match: vlan and vni"},
	{"'vlan': 7", "'vni': 16777216", "chains[0].match: vni: 16777216: must be a whole number"},
	{"'vlan': 7", "'nfi': 65536", "chains[0].match: nfi: 65536: must be a whole number"},
	{"'vlan': 7", "'nfi': 7, 'vlan': 7", "chains[0].match: nfi: give it alone"},
	{"'vlan': 7", "'nfi': 7", "chains[0]: match: nfi: port \"left\" takes no convoys"},
	{"'vlan': 7", "'color': 7", "chains[0].match: color: unknown"},
	{"'in': 'left'", "'in': 'top'", "chains[0]: in: no port is called \"top\""},
	{"'out': 'right'", "'out': 5", "chains[0]: out: 5: must be a string"},
	{"'worker': 1", "'worker': 2", "stages[2]: worker: 2: must be a whole number from 0 to 1"},
	{"'chain': 'one'", "'chain': 'three'", "stages[0]: chain: no chain is called \"three\""},
	{"'path': ['a', 'b']", "'path': ['a', 'c']", "stages[0].path[1]: no function"},
	{"'path': ['a', 'b']", "'path': ['a', 1]", "stages[0].path[1]: 1: give a function's name"},
	{"'path': ['a', 'b']", "'path': 'a'", "stages[0]: path: \"a\": must be an array"},
	{"{'port': 'left', 'queue': 0}", "{'port': 'left', 'queue': 1}",
		"stages[0].source: queue: 1: port \"left\" has 1"},
	{"{'port': 'left', 'queue': 0}", "{'port': 'right'}",
		"stages[0].source: port: \"right\" is not where chain \"one\" comes in"},
	{"'sink': {'port': 'right'}", "'sink': {'port': 'left'}",
		"stages[0].sink: port: \"left\" is not where chain \"one\" goes out"},
	{"'sink': {'ring': 'two.1'}", "'sink': {'port': 'right'}",
		"ring \"two.1\" is the sink of 0 stages"},
	{"'sink': {'port': 'right'}}", "'sink': {'ring': 'two.1'}}",
		"ring \"two.1\" is the sink of 2 stages"},
	{"'source': {'ring': 'two.1'}, 'path': ['b'],             'sink': {'port': 'right'}}",
		"'source': {'ring': 'x'}, 'path': ['b'], 'sink': {'ring': 'x'}},"
		"{'worker': 1, 'chain': 'two', 'source': {'ring': 'two.1'}, 'path': [],"
		" 'sink': {'port': 'right'}}",
		"form a loop"},
	{"'chain': 'two', 'source': {'ring'", "'chain': 'one', 'source': {'ring'",
		"ring \"two.1\" joins chain \"two\" to chain \"one\""},
	{"{'worker': 0, 'chain': 'two'", "{'worker': 1, 'chain': 'two'",
		"stages[1]: worker: queue 0 of port \"left\" belongs to worker 0"},
	{"{'name': 'left', 'kind': 'null'}", "{'name': 'left', 'kind': 'null', 'queues': 0}",
		"ports[0]: "},
	{"'source': {'ring': 'two.1'}", "'source': {'ring': 'two.1', 'port': 'left'}",
		"stages[2].source: port, ring: give one of them"},
	{"'source': {'ring': 'two.1'}", "'source': {'ring': 'two.1', 'handoff': true}",
		"stages[2].source: handoff: is a source of its own"},
	{"{'port': 'left', 'queue': 0}", "{'handoff': true}",
		"chain \"one\" has 0 stages for queue 0 of port \"left\""},
	{"'sink': {'port': 'right'}},            {'worker': 0, 'chain': 'two'",
		"'sink': {'port': 'right'}},"
		"{'worker': 0, 'chain': 'one', 'source': {'handoff': true}, 'path': [],"
		" 'sink': {'port': 'right'}},"
		"{'worker': 0, 'chain': 'one', 'source': {'handoff': true}, 'path': [],"
		" 'sink': {'port': 'right'}},"
		"{'worker': 0, 'chain': 'two'",
		"stages[2]: chain \"one\" has another stage from handoff on worker 0"},
	{"'sink': {'ring': 'two.1'}", "'sink': {}", "stages[1].sink: port, ring: give one"},
	{"'name': 'two'", "'name': '12345678901234567890123456789012'",
		"chains[1]: name: \"12345678901234567890123456789012\": has 32 bytes"},
	{"'functions'", "'convoys': [{'port': 'top'}], 'functions'",
		"convoys[0]: port: no port is called \"top\""},
	{"'functions'", "'convoys': [{'port': 'left', 'ip': 'here'}], 'functions'",
		"convoys[0]: ip: \"here\": must be an IPv4 or IPv6 address"},
	{"'functions'", "'convoys': [{'port': 'left', 'from': ['::1', 5]}], 'functions'",
		"convoys[0].from[1]: 5: must be an IPv4 or IPv6 address"},
	{"'functions'", "'convoys': [{'port': 'left'}, {'port': 'left'}], 'functions'",
		"convoys[1]: port: \"left\" is there twice"},
	{"'functions'",
		"'convoys': [{'port': 'left', 'ip': '::1'}], 'next_hops': [{'name': 'n', 'port': "
		"'left', 'mac': '02:00:00:00:00:01', 'ip': '10.0.0.1', 'match': [{}]}], "
		"'functions'",
		"next_hops[0]: ip: its port has no IPv4 address"},
	{"'functions'",
		"'convoys': [{'port': 'left', 'ip': '::1'}], 'next_hops': [{'name': 'n', 'port': "
		"'left', 'mac': '03:00:00:00:00:01', 'ip': '::2', 'match': [{}]}], 'functions'",
		"next_hops[0]: mac: \"03:00:00:00:00:01\": must be a unicast MAC address"},
	{"'functions'",
		"'convoys': [{'port': 'left', 'ip': '::1'}], 'next_hops': [{'name': 'n', 'port': "
		"'left', 'mac': '02:00:00:00:00:01', 'ip': '::2', 'match': [{'vlan': 1, 'vni': "
		"1}]}], 'functions'",
		"next_hops[0].match[0]: vlan and vni: give one of them"},
	{"'functions'",
		"'convoys': [{'port': 'left', 'ip': '::1'}], 'next_hops': [{'name': 'n', 'port': "
		"'left', 'mac': '02:00:00:00:00:01', 'ip': '::2', 'match': [{}], 'leaving': "
		"['top']}], 'functions'",
		"next_hops[0].leaving[0]: no port is called \"top\""},
	{"'core': 0}", "'core': 1023}", "workers[0]: core: 1023 does not exist"},
	{"'core': 0}", "'core': 1.5}", "workers[0]: core: 1.5: must be a whole number"},
	{"'core': 0}", "'core': 0, 'nice': 1}", "workers[0]: nice: unknown"},
	{"'sink': {'ring': 'two.1'}}", "'moves': true, 'sink': {'ring': 'two.1'}}",
		"stages[1]: moves: only a stage from port to port does"},
	{"'path': ['a', 'b']", "'moves': true, 'path': ['a', 'b']",
		"stages[1]: moves: another stage of queue 0 of port \"left\" does"},
	{"'yield'", "'doze'", "workers[1]: idle: \"doze\": must be one of: poll yield sleep"},
	{"'hugepages': false", "'hugepages': 0", "eal: hugepages: 0: must be true or false"},
	{"'memory_mb': 256", "'memory_mb': 1", "eal: memory_mb: 1: must be a whole number from 64"},
};

static struct cv_plan *parse(const char *text, struct cv_error *error)
{
	char json[4096];

	snprintf(json, sizeof(json), "%s", text);
	for (char *c = json; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	return cv_plan_parse(json, strlen(json), "plan", error);
}

static void accepts_the_good(void **state)
{
	struct cv_error error = {0};
	struct cv_plan *plan = parse(good, &error);

	if (plan == NULL)
		fail_msg("%s", error.text);
	assert_int_equal(plan->ports_count, 2);
	assert_int_equal(plan->stages_count, 3);
	assert_int_equal(plan->rings_count, 1);
	assert_int_equal(plan->chains[0].match.kind, CV_SCID_VLAN);
	assert_int_equal(plan->chains[0].match.id, 7);
	assert_int_equal(plan->chains[1].match.kind, CV_SCID_NONE);
	assert_int_equal(plan->stages[0].path_length, 2);
	assert_int_equal(plan->stages[0].path[1], 1);
	assert_int_equal(plan->stages[1].sink_ring, plan->stages[2].source_ring);
	assert_int_equal(plan->workers[1].idle, 1);
	assert_int_equal(plan->memory_mb, 256);
	cv_plan_free(plan);
}

static void refuses_the_bad(void **state)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cv_error error = {0};
		const char *at = strstr(good, bad[i].old);
		char text[4096];
		struct cv_plan *plan;

		if (at == NULL)
			fail_msg("the good plan has no %s", bad[i].old);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, bad[i].new,
			at + strlen(bad[i].old));
		plan = parse(text, &error);
		if (plan != NULL)
			fail_msg("accepted: %s", bad[i].new);
		if (strstr(error.text, bad[i].error) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].new, error.text,
				bad[i].error);
		if (strncmp(error.text, "plan:", 5) != 0)
			fail_msg("\"%s\" does not name the file", error.text);
	}
}

static void refuses_files_that_are_none(void **state)
{
	struct cv_error error = {0};

	assert_null(cv_plan_read("/nowhere/plan.json", &error));
	assert_non_null(strstr(error.text, "/nowhere/plan.json"));
	memset(&error, 0, sizeof(error));
	assert_null(cv_plan_read("/", &error));
	assert_true(error.text[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_the_good),
		cmocka_unit_test(refuses_the_bad),
		cmocka_unit_test(refuses_files_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
