// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "daemon/plan.h"
#include "chain/classify.h"
#include "daemon/plan_json.h"
#include "daemon/plan_names.h"
#include "daemon/plan_stages.h"
#include "port/port.h"

#define MEMORY_MB 1024 // address space, touched as it is used
#define FUNCTIONS_MAX 1024

static int read_ports(struct cv_plan *plan, const struct cv_where *top)
{
	json_t *port;
	size_t i;
	const json_t *ports = cv_json_array(top, plan->json, "ports", 1, CV_PORTS_MAX);

	if (ports == NULL)
		return -EINVAL;
	json_array_foreach (ports, i, port) {
		struct cv_where at = cv_where_item(top, "ports", i);
		struct cv_error why = {0};
		const json_t *queues;
		const char *name;

		if (cv_port_check(port, &why) != 0) {
			cv_where_error(&at, "%s", why.text);
			return -EINVAL;
		}
		name = cv_plan_read_name(&at, port, "name");
		if (name == NULL)
			return -EINVAL;
		if (cv_plan_find(plan->port_names, plan->ports_count, name) >= 0) {
			cv_where_error(&at, "name: there are two ports \"%s\"", name);
			return -EINVAL;
		}
		queues = json_object_get(port, "queues");
		plan->port_queues[i] = queues != NULL ? json_integer_value(queues) : 1;
		plan->port_names[i] = name;
		plan->ports[i] = port;
		plan->ports_count++;
	}
	return 0;
}

static int read_convoys(struct cv_plan *plan, const struct cv_where *top)
{
	json_t *item;
	size_t i;
	const json_t *convoys;

	if (json_object_get(plan->json, "convoys") == NULL)
		return 0;
	convoys = cv_json_array(top, plan->json, "convoys", 0, CV_PORTS_MAX);
	if (convoys == NULL)
		return -EINVAL;
	json_array_foreach (convoys, i, item) {
		struct cv_where at = cv_where_item(top, "convoys", i);

		if (cv_plan_convoys_read(
			    &at, item, plan->port_names, plan->ports_count, plan->port_convoys) < 0)
			return -EINVAL;
		plan->convoys = true;
	}
	return 0;
}

static int read_next_hops(struct cv_plan *plan, const struct cv_where *top)
{
	json_t *item;
	size_t i;
	const json_t *next_hops;

	if (json_object_get(plan->json, "next_hops") == NULL)
		return 0;
	next_hops = cv_json_array(top, plan->json, "next_hops", 0, CV_NEXT_HOPS_MAX);
	if (next_hops == NULL)
		return -EINVAL;
	json_array_foreach (next_hops, i, item) {
		struct cv_where at = cv_where_item(top, "next_hops", i);
		struct cv_plan_next_hop *to = &plan->next_hops[plan->next_hops_count];
		int rc = cv_plan_next_hop_read(
			&at, item, plan->port_names, plan->ports_count, plan->port_convoys, to);

		if (rc != 0)
			return rc;
		plan->next_hops_count++;
		for (size_t j = 0; j < i; j++) {
			if (strcmp(plan->next_hops[j].name, to->name) != 0)
				continue;
			cv_where_error(&at, "name: there are two next hops \"%s\"", to->name);
			return -EINVAL;
		}
	}
	return 0;
}

static int read_functions(struct cv_plan *plan, const struct cv_where *top)
{
	static const char *const keys[] = {"name", "type", "config", NULL};
	json_t *function;
	size_t i;
	const json_t *functions = cv_json_array(top, plan->json, "functions", 0, FUNCTIONS_MAX);

	if (functions == NULL)
		return -EINVAL;
	plan->functions = calloc(json_array_size(functions) + 1, sizeof(*plan->functions));
	if (plan->functions == NULL)
		return -ENOMEM;
	json_array_foreach (functions, i, function) {
		struct cv_where at = cv_where_item(top, "functions", i);
		struct cv_plan_function *to = &plan->functions[i];
		const char *type;

		if (cv_json_keys(&at, function, keys) != 0)
			return -EINVAL;
		to->name = cv_plan_read_name(&at, function, "name");
		type = cv_json_string(&at, function, "type", NULL);
		to->config = cv_json_object(&at, function, "config");
		if (to->name == NULL || type == NULL || to->config == NULL)
			return -EINVAL;
		if (cv_plan_find_function(plan, to->name) >= 0) {
			cv_where_error(&at, "name: there are two functions \"%s\"", to->name);
			return -EINVAL;
		}
		to->nf = cv_nf_find(type);
		if (to->nf == NULL) {
			cv_where_error(&at, "type: no function type \"%.64s\"", type);
			return -EINVAL;
		}
		plan->functions_count++;
	}
	return 0;
}

static int read_match(const struct cv_where *at, const json_t *chain, struct cv_plan_chain *to)
{
	static const char *const keys[] = {"vlan", "vni", NULL};
	struct cv_where here = cv_where_key(at, "match");
	const json_t *match = cv_json_object(at, chain, "match");
	bool by_vlan = json_object_get(match, "vlan") != NULL;
	bool by_vni = json_object_get(match, "vni") != NULL;
	int64_t scid = 0;

	if (match == NULL || cv_json_keys(&here, match, keys) != 0)
		return -EINVAL;
	if (by_vlan && by_vni) {
		cv_where_error(&here, "vlan and vni: give one of them");
		return -EINVAL;
	}
	if (by_vlan && cv_json_integer(&here, match, "vlan", 0, 4095, -1, &scid) != 0)
		return -EINVAL;
	if (by_vni && cv_json_integer(&here, match, "vni", 0, CV_VNI_MAX, -1, &scid) != 0)
		return -EINVAL;
	to->match = by_vlan ? CV_MATCH_VLAN : by_vni ? CV_MATCH_VNI : CV_MATCH_REST;
	to->scid = scid;
	return 0;
}

static int read_chains(struct cv_plan *plan, const struct cv_where *top)
{
	static const char *const keys[] = {"name", "match", "in", "out", NULL};
	json_t *chain;
	size_t i;
	const json_t *chains = cv_json_array(top, plan->json, "chains", 1, CV_CHAINS_MAX);

	if (chains == NULL)
		return -EINVAL;
	json_array_foreach (chains, i, chain) {
		struct cv_where at = cv_where_item(top, "chains", i);
		struct cv_plan_chain *to = &plan->chains[i];

		if (cv_json_keys(&at, chain, keys) != 0)
			return -EINVAL;
		to->name = cv_plan_read_name(&at, chain, "name");
		if (to->name == NULL || read_match(&at, chain, to) != 0 ||
			cv_plan_read_port_name(plan, &at, chain, "in", &to->in) != 0 ||
			cv_plan_read_port_name(plan, &at, chain, "out", &to->out) != 0)
			return -EINVAL;
		if (cv_plan_find_chain(plan, to->name) >= 0) {
			cv_where_error(&at, "name: there are two chains \"%s\"", to->name);
			return -EINVAL;
		}
		for (size_t j = 0; j < i; j++) {
			const struct cv_plan_chain *other = &plan->chains[j];

			if (other->in != to->in || other->match != to->match ||
				other->scid != to->scid)
				continue;
			cv_where_error(&at,
				"match: chain \"%s\" matches the same packets of port \"%s\"",
				other->name, plan->port_names[to->in]);
			return -EINVAL;
		}
		plan->chains_count++;
	}
	return 0;
}

static int read_workers(struct cv_plan *plan, const struct cv_where *top)
{
	static const char *const keys[] = {"core", "idle", NULL};
	cpu_set_t allowed;
	json_t *worker;
	size_t i;
	const json_t *workers = cv_json_array(top, plan->json, "workers", 1, CV_WORKERS_MAX);

	if (workers == NULL)
		return -EINVAL;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_ZERO(&allowed);
	json_array_foreach (workers, i, worker) {
		struct cv_where at = cv_where_item(top, "workers", i);
		const char *idle;
		int64_t core;

		if (cv_json_keys(&at, worker, keys) != 0 ||
			cv_json_integer(&at, worker, "core", 0, CPU_SETSIZE - 1, -1, &core) != 0)
			return -EINVAL;
		if (!CPU_ISSET(core, &allowed)) {
			cv_where_error(&at,
				"core: %d does not exist or is not allowed to this process",
				(int)core);
			return -EINVAL;
		}
		idle = cv_json_string(&at, worker, "idle", "poll");
		if (idle == NULL)
			return -EINVAL;
		if (strcmp(idle, "poll") != 0 && strcmp(idle, "yield") != 0) {
			cv_where_error(&at, "idle: \"%.64s\": use \"poll\" or \"yield\"", idle);
			return -EINVAL;
		}
		plan->workers[i].core = core;
		plan->workers[i].yield = idle[0] == 'y';
		plan->workers_count++;
	}
	return 0;
}

static int read_eal(struct cv_plan *plan, const struct cv_where *top)
{
	static const char *const keys[] = {"hugepages", "memory_mb", NULL};
	struct cv_where at = cv_where_key(top, "eal");
	const json_t *eal = json_object_get(plan->json, "eal");
	int64_t memory = MEMORY_MB;

	if (eal != NULL) {
		if (cv_json_keys(&at, eal, keys) != 0 || cv_json_integer(&at, eal, "memory_mb", 64,
								 1 << 20, MEMORY_MB, &memory) != 0)
			return -EINVAL;
		if (cv_json_bool(&at, eal, "hugepages", &plan->hugepages) != 0)
			return -EINVAL;
	}
	plan->memory_mb = memory;
	return 0;
}

static int read_telemetry(struct cv_plan *plan, const struct cv_where *top)
{
	const json_t *telemetry = json_object_get(plan->json, "telemetry");
	const struct cv_where at = cv_where_key(top, "telemetry");

	if (telemetry == NULL)
		return 0;
	return cv_params_read(&at, telemetry, cv_socket_access_params, &plan->telemetry);
}

static int read_run_as(struct cv_plan *plan, const struct cv_where *top)
{
	if (json_object_get(plan->json, "run_as") == NULL)
		return 0;
	plan->run_as = cv_json_string(top, plan->json, "run_as", NULL);
	return plan->run_as != NULL ? 0 : -EINVAL;
}

static int read_all(struct cv_plan *plan, const struct cv_where *top)
{
	static const char *const keys[] = {"schema", "ports", "convoys", "next_hops", "functions",
		"chains", "stages", "workers", "eal", "telemetry", "run_as", NULL};
	const char *schema;
	int rc;

	if (cv_json_keys(top, plan->json, keys) != 0)
		return -EINVAL;
	schema = cv_json_string(top, plan->json, "schema", NULL);
	if (schema == NULL)
		return -EINVAL;
	if (strcmp(schema, "convoy.plan/1") != 0) {
		cv_where_error(top, "schema: \"%.64s\": this node reads \"convoy.plan/1\"", schema);
		return -EINVAL;
	}
	if ((rc = read_ports(plan, top)) != 0 || (rc = read_convoys(plan, top)) != 0 ||
		(rc = read_next_hops(plan, top)) != 0 || (rc = read_functions(plan, top)) != 0 ||
		(rc = read_chains(plan, top)) != 0 || (rc = read_workers(plan, top)) != 0 ||
		(rc = cv_plan_read_stages(plan, top)) != 0 ||
		(rc = read_telemetry(plan, top)) != 0 || (rc = read_run_as(plan, top)) != 0)
		return rc;
	return read_eal(plan, top);
}

static struct cv_plan *plan_from_json(
	json_t *json, const json_error_t *why, const char *name, struct cv_error *error)
{
	struct cv_where top = cv_where_top(name, error);
	struct cv_plan *plan;
	int rc;

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
	rc = read_all(plan, &top);
	if (rc == 0)
		return plan;
	if (rc == -ENOMEM)
		cv_error_set(error, "%s: out of memory", name);
	cv_plan_free(plan);
	return NULL;
}

struct cv_plan *cv_plan_read(const char *path, struct cv_error *error)
{
	json_error_t why;
	json_t *json;

	if (strcmp(path, "-") == 0)
		return plan_from_json(
			json_loadf(stdin, JSON_REJECT_DUPLICATES, &why), &why, "stdin", error);
	json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	return plan_from_json(json, &why, path, error);
}

struct cv_plan *cv_plan_parse(
	const char *text, size_t length, const char *name, struct cv_error *error)
{
	json_error_t why;

	return plan_from_json(
		json_loadb(text, length, JSON_REJECT_DUPLICATES, &why), &why, name, error);
}

void cv_plan_free(struct cv_plan *plan)
{
	if (plan == NULL)
		return;
	for (unsigned i = 0; i < plan->next_hops_count; i++)
		cv_plan_next_hop_free(&plan->next_hops[i]);
	free(plan->functions);
	free(plan->stages);
	free(plan->rings);
	json_decref(plan->json);
	free(plan);
}
