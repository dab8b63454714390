// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_next.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const json_t *object)
{
	return json_string_value(json_object_get(object, "name"));
}

// The element of an array with this name, or NULL.
static json_t *find(const json_t *array, const char *name)
{
	json_t *element;
	size_t i;

	if (name == NULL)
		return NULL;
	json_array_foreach ((json_t *)(uintptr_t)array, i, element)
		if (name_of(element) != NULL && strcmp(name_of(element), name) == 0)
			return element;
	return NULL;
}

// Both, or neither. An absent list is an empty one.
static bool are_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b) == 1 ||
	       (a == NULL && json_array_size(b) == 0 && json_is_array(b)) ||
	       (b == NULL && json_array_size(a) == 0 && json_is_array(a));
}

// The same elements by name, in any order.
static bool are_same_by_name(const json_t *a, const json_t *b)
{
	const json_t *element;
	size_t i;

	if (json_array_size(a) != json_array_size(b))
		return false;
	json_array_foreach ((json_t *)(uintptr_t)a, i, element)
		if (!are_same(element, find(b, name_of(element))))
			return false;
	return true;
}

static bool refuse(struct cv_error *error, const char *key, const char *what)
{
	cv_error_set(error,
		"plan: %s: not as the node runs it; %s change only by a new process: `convoy apply "
		"--handover`, or a restart",
		key, what);
	return false;
}

static bool may_come_next(const json_t *running, const json_t *after, struct cv_error *error)
{
	static const struct {
		const char *key, *what;
	} fixed[] = {{"convoys", "ports and what they carry"}, {"flows", "limits of flows"},
		{"run_as", "its user"}, {"telemetry", "rights of sockets"},
		{"control", "rights of sockets"}, {"openflow", "its controllers"},
		{"standby", "its standby"}};

	if (!are_same_by_name(json_object_get(running, "ports"), json_object_get(after, "ports")))
		return refuse(error, "ports", "ports");
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!are_same(json_object_get(running, fixed[i].key),
			    json_object_get(after, fixed[i].key)))
			return refuse(error, fixed[i].key, fixed[i].what);
	if (json_array_size(json_object_get(running, "workers")) !=
		json_array_size(json_object_get(after, "workers")))
		return refuse(error, "workers", "workers");
	return true;
}

// The elements that are in both in the first one's order, then the others.
static json_t *in_order(const json_t *running, const json_t *after)
{
	json_t *result = json_array(), *rest = json_copy((json_t *)(uintptr_t)after);
	const json_t *element;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)running, i, element) {
		json_t *same = find(rest, name_of(element));

		if (same == NULL)
			continue;
		json_array_append(result, same);
		for (size_t at = 0; at < json_array_size(rest); at++)
			if (json_array_get(rest, at) == same) {
				json_array_remove(rest, at);
				break;
			}
	}
	json_array_extend(result, rest);
	json_decref(rest);
	return result;
}

json_t *cv_plan_next_json(const json_t *running, const json_t *after, struct cv_error *error)
{
	static const char *const kept[] = {"ports", "workers", "eal"};
	const json_t *functions = json_object_get(after, "functions");
	json_t *next;

	if (!may_come_next(running, after, error))
		return NULL;
	next = json_copy((json_t *)(uintptr_t)after);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		json_t *value = json_object_get(running, kept[i]);

		if (value != NULL)
			json_object_set(next, kept[i], value);
		else
			json_object_del(next, kept[i]);
	}
	if (json_is_array(functions))
		json_object_set_new(next, "functions",
			in_order(json_object_get(running, "functions"), functions));
	return next;
}

void cv_plan_add_difference(
	json_t *array, const char *what, const char *name, const char *change, const char *key)
{
	json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s*}", "what", what, "name", name,
					     "change", change, "key", key));
}

// Keys of two elements that differ; but for one.
static void compare_keys(json_t *array, const char *what, const char *name, const json_t *a,
	const json_t *b, const char *but)
{
	json_t *keys = json_copy((json_t *)(uintptr_t)a);
	const char *key;
	json_t *value;

	json_object_update_missing(keys, (json_t *)(uintptr_t)b);
	json_object_foreach (keys, key, value)
		if (strcmp(key, but) != 0 &&
			!are_same(json_object_get(a, key), json_object_get(b, key)))
			cv_plan_add_difference(array, what, name, "changed", key);
	json_decref(keys);
}

static void compare(json_t *array, const char *what, const json_t *running, const json_t *after,
	const char *but)
{
	const json_t *element;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)running, i, element) {
		const json_t *same = find(after, name_of(element));

		if (same == NULL)
			cv_plan_add_difference(array, what, name_of(element), "removed", NULL);
		else
			compare_keys(array, what, name_of(element), element, same, but);
	}
	json_array_foreach ((json_t *)(uintptr_t)after, i, element)
		if (name_of(element) != NULL && find(running, name_of(element)) == NULL)
			cv_plan_add_difference(array, what, name_of(element), "added", NULL);
}

// The paths of each chain, as a new object: {CHAIN: [STAGE, ...]}.
static json_t *paths_of(const json_t *plan)
{
	json_t *chains = json_object();
	const json_t *stage;
	size_t i;

	json_array_foreach (json_object_get(plan, "stages"), i, stage) {
		const char *name = json_string_value(json_object_get(stage, "chain"));
		json_t *paths = json_object_get(chains, name);

		if (paths == NULL && name != NULL) {
			paths = json_array();
			json_object_set_new(chains, name, paths);
		}
		json_array_append(paths, (json_t *)(uintptr_t)stage);
	}
	return chains;
}

static void compare_paths(json_t *array, const json_t *running, const json_t *after)
{
	json_t *before = paths_of(running), *then = paths_of(after);
	const char *name;
	json_t *paths;

	json_object_foreach (before, name, paths) {
		const json_t *other = json_object_get(then, name);

		if (other != NULL && !are_same(paths, other))
			cv_plan_add_difference(array, "chain", name, "changed", "path");
	}
	json_decref(before);
	json_decref(then);
}

// What is of the whole node, and what ports carry.
static void compare_settings(json_t *array, const json_t *running, const json_t *after)
{
	static const struct {
		const char *key, *name; // in a plan, in a descriptor
	} settings[] = {{"workers", "workers"}, {"convoys", "convoys"}, {"flows", "flows"},
		{"eal", "memory"}, {"run_as", "run-as"}, {"telemetry", "telemetry"},
		{"control", "control"}, {"openflow", "openflow"}, {"standby", "standby"}};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (!are_same(json_object_get(running, settings[i].key),
			    json_object_get(after, settings[i].key)))
			cv_plan_add_difference(array, "setting", settings[i].name, "changed", NULL);
}

json_t *cv_plan_differences(const json_t *running, const json_t *after)
{
	static const struct {
		const char *key, *what, *but;
	} lists[] = {{"ports", "port", ""}, {"functions", "function", "config"},
		{"chains", "chain", ""}, {"next_hops", "next hop", ""}};
	json_t *array = json_array();

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		compare(array, lists[i].what, json_object_get(running, lists[i].key),
			json_object_get(after, lists[i].key), lists[i].but);
	compare_paths(array, running, after);
	compare_settings(array, running, after);
	return array;
}

json_t *cv_plan_all_differences(const json_t *running, const json_t *after)
{
	json_t *array = cv_plan_differences(running, after);
	const json_t *functions = json_object_get(after, "functions"), *function;
	size_t i;

	json_array_foreach (json_object_get(running, "functions"), i, function) {
		const json_t *same = find(functions, name_of(function));

		if (same != NULL)
			compare_keys(array, "function", name_of(function),
				json_object_get(function, "config"),
				json_object_get(same, "config"), "");
	}
	return array;
}
