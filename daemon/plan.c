// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plan.h"
#include "daemon/plan_check.h"
#include "daemon/plan_names.h"
#include "daemon/plan_next.h"
#include "daemon/plan_stages.h"
#include "port/kind.h"

#define SCHEMA "convoy.plan/1"
#define MEMORY_MB 1024 // address space, touched as it is used

// What read() takes one element of each array: of is the plan.

static int read_port(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_plan *plan = of;
	struct cv_error why = {0};
	struct cv_port_config *port = plan->ports_of != NULL
					      ? plan->ports_of->ports[plan->ports_count]
					      : cv_port_config_read(value, &why);

	if (port == NULL)
		return cv_where_error(at, "%s", why.text);
	if (cv_plan_find(plan->port_names, plan->ports_count, port->name) >= 0) {
		cv_where_error(at, "name: there are two ports \"%s\"", port->name);
		cv_port_config_free(port);
		return -EINVAL;
	}
	plan->ports[plan->ports_count] = port;
	plan->port_names[plan->ports_count++] = port->name;
	return 0;
}

static int read_convoys(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_plan *plan = of;

	plan->convoys = true;
	return cv_plan_convoys_read(
		at, value, plan->port_names, plan->ports_count, plan->port_convoys);
}

static int read_next_hop(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_plan *plan = of;
	struct cv_plan_next_hop *to = &plan->next_hops[plan->next_hops_count];
	const int rc = cv_plan_next_hop_read(
		at, value, plan->port_names, plan->ports_count, plan->port_convoys, to);

	if (rc != 0)
		return rc;
	plan->next_hops_count++; // to be freed
	for (const struct cv_plan_next_hop *other = plan->next_hops; other < to; other++)
		if (strcmp(other->name, to->name) == 0)
			return cv_where_error(at, "name: there are two next hops \"%s\"", to->name);
	return 0;
}

// A function, as it is read.
struct function_keys {
	const char *name, *type;
	const json_t *config;
	struct cv_plan_function *function;
};

static int read_output(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct keys {
		const char *name, *chain;
	} keys;
	static const struct cv_param params[] = {
		CV_PLAN_NAME(struct keys, name),
		{"chain", CV_TEXT, CV_AT(struct keys, chain), .required = true},
		{0},
	};
	struct cv_plan_function *to = ((struct function_keys *)of)->function;

	if (cv_params_read(at, value, params, &keys) != 0)
		return -EINVAL;
	if (cv_plan_find(to->outputs, to->outputs_count, keys.name) >= 0)
		return cv_where_error(at, "name: there are two outputs \"%s\"", keys.name);
	to->outputs[to->outputs_count] = keys.name;
	to->output_chains[to->outputs_count++] = keys.chain;
	return 0;
}

static int read_function(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	static const struct cv_param params[] = {
		CV_PLAN_NAME(struct function_keys, name),
		{"type", CV_TEXT, CV_AT(struct function_keys, type), .required = true},
		{"config", CV_MAP, CV_AT(struct function_keys, config), .required = true},
		{"outputs", CV_EACH, .high = CV_OUTPUTS_MAX, .read = read_output},
		{0},
	};
	struct cv_plan *plan = of;
	struct cv_plan_function *to = &plan->functions[plan->functions_count];
	struct function_keys keys = {.function = to};

	if (cv_params_read(at, value, params, &keys) != 0)
		return -EINVAL;
	if (cv_plan_find_function(plan, keys.name) >= 0)
		return cv_where_error(at, "name: there are two functions \"%s\"", keys.name);
	to->nf = cv_nf_find(keys.type);
	if (to->nf == NULL && cv_nf_left_out(keys.type) != NULL)
		return cv_where_error(at,
			"type: \"%s\": this node was built without it; install %s and build again",
			keys.type, cv_nf_left_out(keys.type));
	if (to->nf == NULL)
		return cv_where_error(at, "type: no function type \"%.64s\"", keys.type);
	if (to->outputs_count > 0 && !to->nf->branches)
		return cv_where_error(at, "outputs: a %s has none", keys.type);
	to->name = keys.name;
	to->config = keys.config;
	plan->functions_count++;
	return 0;
}

struct chain_match {
	int32_t nfi;
	struct cv_plan_scid scid;
};

// An SC-ID, or {"nfi": 7}.
static int read_match(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	static const struct cv_param params[] = {
		{"nfi", CV_INTEGER, CV_AT(struct chain_match, nfi), .high = UINT16_MAX},
		{0},
	};
	const struct cv_where here = cv_where_key(at, key);
	struct chain_match *to = of;

	to->nfi = -1;
	if (json_object_get(value, "nfi") == NULL)
		return cv_plan_scid_read(at, key, value, &to->scid);
	if (json_object_size(value) > 1)
		return cv_where_error(&here, "nfi: give it alone: it says where packets go");
	return cv_params_read(&here, value, params, to);
}

static int read_chain(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct keys {
		const char *name, *in, *out;
		struct chain_match match;
		enum spread { BY_FLOW, IN_TURN } spread;
	} keys;
	static const char *const spreads[] = {[BY_FLOW] = "rss", [IN_TURN] = "round-robin", NULL};
	static const struct cv_param params[] = {
		CV_PLAN_NAME(struct keys, name),
		{"match", CV_CUSTOM, CV_AT(struct keys, match), .required = true,
			.read = read_match},
		{"in", CV_TEXT, CV_AT(struct keys, in)},
		{"out", CV_TEXT, CV_AT(struct keys, out), .required = true},
		{"spread", CV_WORD, CV_AT(struct keys, spread), .words = spreads},
		{0},
	};
	struct cv_plan *plan = of;
	struct cv_plan_chain *to = &plan->chains[plan->chains_count];

	if (cv_params_read(at, value, params, &keys) != 0 ||
		(keys.in != NULL && cv_plan_find_port(plan, at, "in", keys.in, &to->in) != 0) ||
		cv_plan_find_port(plan, at, "out", keys.out, &to->out) != 0)
		return -EINVAL;
	to->name = keys.name;
	to->match = keys.match.scid;
	to->nfi = keys.match.nfi;
	to->from_outputs = keys.in == NULL;
	to->in_turn = keys.spread == IN_TURN;
	if (to->from_outputs && (to->match.kind != CV_SCID_NONE || to->nfi >= 0))
		return cv_where_error(at, "match: only a chain that has a port in has one");
	if (to->from_outputs && to->in_turn)
		return cv_where_error(at, "spread: only a chain that has a port in has one");
	if (cv_plan_find_chain(plan, to->name) >= 0)
		return cv_where_error(at, "name: there are two chains \"%s\"", to->name);
	for (const struct cv_plan_chain *other = plan->chains; other < to; other++)
		if (!to->from_outputs && !other->from_outputs && other->in == to->in &&
			other->nfi == to->nfi && other->match.kind == to->match.kind &&
			other->match.id == to->match.id)
			return cv_where_error(at,
				"match: chain \"%s\" matches the same packets of port \"%s\"",
				other->name, keys.in);
	plan->chains_count++;
	return 0;
}

static int read_worker(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	static const char *const idle[] = {"poll", "yield", "sleep", NULL};
	static const struct cv_param params[] = {
		{"core", CV_INTEGER, CV_AT(struct cv_plan_worker, core), .required = true,
			.high = CPU_SETSIZE - 1},
		{"idle", CV_WORD, CV_AT(struct cv_plan_worker, idle), .words = idle},
		{0},
	};
	struct cv_plan *plan = of;
	struct cv_plan_worker *to = &plan->workers[plan->workers_count];
	cpu_set_t allowed;

	if (cv_params_read(at, value, params, to) != 0)
		return -EINVAL;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_ZERO(&allowed);
	// A plan that comes next has the workers that run, and is read off their cores.
	if (plan->ports_of == NULL && !CPU_ISSET(to->core, &allowed))
		return cv_where_error(
			at, "core: %u does not exist or is not allowed to this process", to->core);
	plan->workers_count++;
	return 0;
}

static int read_schema(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	if (!json_is_string(value))
		return cv_where_wrong(at, key, value, "must be a string");
	if (strcmp(json_string_value(value), SCHEMA) != 0)
		return cv_where_wrong(at, key, value, "this node reads \"" SCHEMA "\"");
	return 0;
}

static const struct cv_param eal_params[] = {
	{"hugepages", CV_BOOL, CV_AT(struct cv_plan, hugepages)},
	{"memory_mb", CV_INTEGER, CV_AT(struct cv_plan, memory_mb), .low = 64, .high = 1 << 20,
		.fallback = MEMORY_MB},
	{0},
};

static const struct cv_param plan_params[] = {
	{"schema", CV_CUSTOM, .required = true, .read = read_schema},
	{"ports", CV_EACH, .required = true, .low = 1, .high = CV_PORTS_MAX, .read = read_port},
	{"convoys", CV_EACH, .high = CV_PORTS_MAX, .read = read_convoys},
	{"next_hops", CV_EACH, .high = CV_NEXT_HOPS_MAX, .read = read_next_hop},
	{"functions", CV_EACH, .required = true, .high = CV_FUNCTIONS_MAX, .read = read_function},
	{"chains", CV_EACH, .required = true, .low = 1, .high = CV_CHAINS_MAX, .read = read_chain},
	{"workers", CV_EACH, .required = true, .low = 1, .high = CV_WORKERS_MAX,
		.read = read_worker},
	{"stages", CV_EACH, .required = true, .low = 1, .high = CV_STAGES_MAX,
		.read = cv_plan_stage_read},
	{"flows", CV_PARAMS, CV_AT(struct cv_plan, flows), .params = cv_flow_limits_params},
	{"eal", CV_PARAMS, .params = eal_params},
	{"telemetry", CV_PARAMS, CV_AT(struct cv_plan, telemetry),
		.params = cv_socket_access_params},
	{"control", CV_PARAMS, CV_AT(struct cv_plan, control), .params = cv_socket_access_params},
	{"openflow", CV_PARAMS, CV_AT(struct cv_plan, openflow), .params = cv_of_params},
	{"standby", CV_PARAMS, CV_AT(struct cv_plan, standby), .params = cv_standby_params},
	{"run_as", CV_TEXT, CV_AT(struct cv_plan, run_as)},
	{0},
};

// Controllers say which next hop packets have: there must be a port that sends convoys.
static int check_controllers(const struct cv_plan *plan, const struct cv_where *top)
{
	const struct cv_of_config *openflow = &plan->openflow;
	bool requested = json_object_get(plan->json, "openflow") != NULL;
	bool sends = false, inband = false;

	for (unsigned i = 0; i < plan->ports_count; i++) {
		sends |= plan->port_convoys[i].address.len > 0;
		inband |= plan->ports[i]->kind == &cv_port_openflow;
	}
	if (requested && !inband && openflow->controllers_count + openflow->listen_count == 0)
		return cv_where_error(top, "openflow: give it controllers, or where to listen");
	if ((requested || inband) && !sends)
		return cv_where_error(
			top, "openflow: no port sends convoys; give one convoys with an ip");
	return 0;
}

// Convoys have NFI-IDs, nothing else has.
static int check_nfis(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned i = 0; i < plan->chains_count; i++) {
		const struct cv_plan_chain *chain = &plan->chains[i];
		const struct cv_where at = cv_where_item(top, "chains", i);

		if (chain->nfi >= 0 && !plan->port_convoys[chain->in].carries)
			return cv_where_error(&at,
				"match: nfi: port \"%s\" takes no convoys; give it convoys",
				plan->port_names[chain->in]);
	}
	return 0;
}

// Takes the reference. ports_of: whose ports it has; NULL: its own.
static struct cv_plan *plan_from_json(json_t *json, const json_error_t *why,
	const struct cv_plan *ports_of, const char *name, struct cv_error *error)
{
	struct cv_where top = cv_where_top(name, error);
	struct cv_plan *plan;

	if (json == NULL) {
		cv_error_set(error, "%s:%d: %s", name, why->line, why->text);
		return NULL;
	}
	plan = calloc(1, sizeof(*plan));
	if (plan == NULL) {
		json_decref(json);
		cv_error_set(error, "%s: out of memory", name);
		return NULL;
	}
	plan->json = json;
	plan->ports_of = ports_of;
	plan->ports_lent = ports_of != NULL;
	if (cv_params_read(&top, json, plan_params, plan) == 0 &&
		check_controllers(plan, &top) == 0 &&
		cv_standby_check(&plan->standby, json, &top) == 0 && check_nfis(plan, &top) == 0 &&
		cv_plan_find_outputs(plan, &top) == 0 && cv_plan_spare_stages(plan, &top) == 0 &&
		cv_plan_check_stages(plan, &top) == 0)
		return plan;
	cv_plan_free(plan);
	return NULL;
}

struct cv_plan *cv_plan_read(const char *path, struct cv_error *error)
{
	json_error_t why;
	json_t *json;

	if (strcmp(path, "-") == 0)
		return plan_from_json(json_loadf(stdin, JSON_REJECT_DUPLICATES, &why), &why, NULL,
			"stdin", error);
	json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	return plan_from_json(json, &why, NULL, path, error);
}

struct cv_plan *cv_plan_parse(
	const char *text, size_t length, const char *name, struct cv_error *error)
{
	json_error_t why;

	return plan_from_json(
		json_loadb(text, length, JSON_REJECT_DUPLICATES, &why), &why, NULL, name, error);
}

struct cv_plan *cv_plan_read_next(
	const struct cv_plan *running, const json_t *after, struct cv_error *error)
{
	json_t *json = cv_plan_next_json(running->json, after, error);

	if (json == NULL)
		return NULL;
	return plan_from_json(json, NULL, running, "plan", error);
}

void cv_plan_take_ports(struct cv_plan *plan, struct cv_plan *from)
{
	plan->ports_of = NULL;
	plan->ports_lent = false;
	from->ports_lent = true;
}

void cv_plan_free(struct cv_plan *plan)
{
	if (plan == NULL)
		return;
	for (unsigned i = 0; i < plan->next_hops_count; i++)
		cv_plan_next_hop_free(&plan->next_hops[i]);
	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		cv_plan_convoys_free(&plan->port_convoys[i]);
	for (unsigned i = 0; !plan->ports_lent && i < plan->ports_count; i++)
		cv_port_config_free(plan->ports[i]);
	json_decref(plan->json);
	free(plan);
}
