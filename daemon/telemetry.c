// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/telemetry.h"
#include "daemon/counts.h"
#include "daemon/running.h"
#include "dpdk/compat.h"

// DPDK 22.11 shows a dictionary of values and, in it, dictionaries of values, but nothing deeper;
// what does not fit is left to the final counts.
static void fill(struct rte_tel_data *to, const json_t *object, bool deeper)
{
	const char *key;
	json_t *value;

	rte_tel_data_start_dict(to);
	json_object_foreach ((json_t *)object, key, value) {
		struct rte_tel_data *inner = NULL;

		if (json_is_string(value))
			rte_tel_data_add_dict_string(to, key, json_string_value(value));
		else if (json_is_boolean(value))
			rte_tel_data_add_dict_int(to, key, json_is_true(value));
		else if (json_is_integer(value))
			rte_tel_data_add_dict_uint(to, key, json_integer_value(value));
		else if (json_is_object(value) && deeper)
			inner = rte_tel_data_alloc();
		if (inner == NULL)
			continue;
		fill(inner, value, false);
		if (rte_tel_data_add_dict_container(to, key, inner, 0) != 0)
			rte_tel_data_free(inner);
	}
}

static void list(struct rte_tel_data *to, const json_t *all)
{
	const char *name;
	json_t *value;
	size_t i;

	if (json_is_array(all)) {
		rte_tel_data_start_array(to, RTE_TEL_INT_VAL);
		json_array_foreach (all, i, value)
			rte_tel_data_add_array_int(to, (int)i);
		return;
	}
	rte_tel_data_start_array(to, RTE_TEL_STRING_VAL);
	json_object_foreach ((json_t *)all, name, value)
		rte_tel_data_add_array_string(to, name);
}

static const json_t *pick(const json_t *all, const char *name)
{
	char *end;
	unsigned long index;

	if (json_is_object(all))
		return json_object_get(all, name);
	index = strtoul(name, &end, 10);
	return *end == '\0' ? json_array_get(all, index) : NULL;
}

static int answer(
	json_t *(*counts)(const struct cv_node *), const char *name, struct rte_tel_data *data)
{
	const json_t *one;
	const struct cv_node *node = cv_running_take();
	json_t *all = NULL;
	int rc = 0;

	if (node != NULL) {
		all = counts(node);
		cv_running_give();
	}
	one = name != NULL ? pick(all, name) : NULL;
	if (all == NULL || (name != NULL && one == NULL))
		rc = -1;
	else if (one != NULL)
		fill(data, one, true);
	else
		list(data, all);
	json_decref(all);
	return rc;
}

static int on_ports(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_ports, params, data);
}

static int on_functions(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_functions, params, data);
}

static int on_flows(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_node_flows_counts, params, data);
}

static int on_workers(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_workers, params, data);
}

static int on_next_hops(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_next_hops, params, data);
}

static json_t *accounting_by_name(const struct cv_node *node)
{
	return json_pack("{s:o}", "accounting", cv_counts_accounting(node));
}

static int on_accounting(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(accounting_by_name, "accounting", data);
}

static json_t *sandbox_by_name(const struct cv_node *node)
{
	return json_pack("{s:{s:o}}", "info", "sandbox", cv_counts_sandbox(node));
}

static int on_info(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(sandbox_by_name, "info", data);
}

void cv_telemetry_begin(void)
{
	rte_telemetry_register_cmd("/convoy/ports", on_ports,
		"Names of the ports, or packets, bytes and drops of one. Parameters: a name");
	rte_telemetry_register_cmd("/convoy/functions", on_functions,
		"Names of the functions, or packets, bytes, drops and busy cycles of one. "
		"Parameters: a name");
	rte_telemetry_register_cmd("/convoy/flows", on_flows,
		"Names of sets of stateful functions, or flows, their limits, memory and drops of "
		"one. Parameters: a name");
	rte_telemetry_register_cmd("/convoy/next_hops", on_next_hops,
		"Names of the next hops, or packets and frames sent to one. Parameters: a name");
	rte_telemetry_register_cmd("/convoy/workers", on_workers,
		"Numbers of the workers, or core, poll iterations and cycles of one. "
		"Parameters: a number");
	rte_telemetry_register_cmd(
		"/convoy/info", on_info, "What the node gave up after start. Takes no parameters");
	rte_telemetry_register_cmd("/convoy/accounting", on_accounting,
		"Received, sent, dropped and held packets of the node. Takes no parameters");
}
