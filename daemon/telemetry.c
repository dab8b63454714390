// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <pthread.h>
#include <string.h>

#include <rte_telemetry.h>

#include "counts.h"
#include "telemetry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct cv_node *shown;

static struct rte_tel_data *from_object(const json_t *object);

static void add(struct rte_tel_data *to, const char *key, const json_t *value)
{
	if (json_is_object(value))
		rte_tel_data_add_dict_container(to, key, from_object(value), 0);
	else if (json_is_string(value))
		rte_tel_data_add_dict_string(to, key, json_string_value(value));
	else if (json_is_boolean(value))
		rte_tel_data_add_dict_int(to, key, json_is_true(value));
	else if (json_is_integer(value))
		rte_tel_data_add_dict_u64(to, key, json_integer_value(value));
}

static void fill(struct rte_tel_data *to, const json_t *object)
{
	const char *key;
	json_t *value;

	rte_tel_data_start_dict(to);
	json_object_foreach ((json_t *)object, key, value)
		add(to, key, value);
}

static struct rte_tel_data *from_object(const json_t *object)
{
	struct rte_tel_data *data = rte_tel_data_alloc();

	if (data != NULL)
		fill(data, object);
	return data;
}

// Answers with an array of what counts are given, or of the one at the index in params.
static int answer(json_t *(*counts)(const struct cv_node *), struct rte_tel_data *data)
{
	json_t *array = NULL;
	json_t *object;
	size_t i;

	pthread_mutex_lock(&lock);
	if (shown != NULL)
		array = counts(shown);
	pthread_mutex_unlock(&lock);
	if (array == NULL)
		return -1;
	if (json_is_object(array)) {
		fill(data, array);
	} else {
		rte_tel_data_start_array(data, RTE_TEL_CONTAINER);
		json_array_foreach (array, i, object)
			rte_tel_data_add_array_container(data, from_object(object), 0);
	}
	json_decref(array);
	return 0;
}

static int on_ports(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_ports, data);
}

static int on_functions(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_functions, data);
}

static int on_workers(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_workers, data);
}

static int on_books(const char *cmd, const char *params, struct rte_tel_data *data)
{
	return answer(cv_counts_books, data);
}

void cv_telemetry_show(const struct cv_node *node)
{
	static bool registered;

	pthread_mutex_lock(&lock);
	shown = node;
	pthread_mutex_unlock(&lock);
	if (registered)
		return;
	registered = true;
	rte_telemetry_register_cmd("/convoy/ports", on_ports,
		"Packets, bytes and drops of every port. Takes no parameters");
	rte_telemetry_register_cmd("/convoy/functions", on_functions,
		"Packets, bytes, drops and busy cycles of every function. Takes no parameters");
	rte_telemetry_register_cmd("/convoy/workers", on_workers,
		"Core, turns, busy and total cycles of every worker. Takes no parameters");
	rte_telemetry_register_cmd("/convoy/books", on_books,
		"Received, sent, dropped and held packets of the node. Takes no parameters");
}
