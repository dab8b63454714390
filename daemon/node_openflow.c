// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/node_openflow.h"

#include <errno.h>
#include <string.h>

#include "daemon/counts.h"
#include "daemon/running.h"

static bool begin(void *of)
{
	if (!cv_running_try_change())
		return false;
	// Nobody else changes it: it need not be held.
	if (cv_running_take() != NULL) {
		cv_running_give();
		return true;
	}
	cv_running_end_change();
	return false;
}

static void end(void *of)
{
	cv_running_end_change();
}

static bool describe(void *of, uint16_t next_hop, struct cv_of_port *port)
{
	const struct cv_node *node = of;
	const struct cv_plan_next_hop *from = &node->next_hop_set->next_hops[next_hop];

	if (from->name[0] == '\0')
		return false;
	*port = (struct cv_of_port){
		.nfi = from->outer.nfi,
		.serial = node->next_hop_set->serials[next_hop],
		.packets = cv_counts_next_hop_packets(node, next_hop),
	};
	memcpy(port->name, from->name, sizeof(port->name));
	memcpy(port->mac, from->outer.dst_mac, sizeof(port->mac));
	return true;
}

static uint64_t generation(void *of)
{
	// One more than the set's: at first nobody knows of any next hop.
	return ((const struct cv_node *)of)->next_hop_set->generation + 1;
}

static int change(void *of, uint32_t key, bool all)
{
	return cv_next_hop_set_follow(((struct cv_node *)of)->next_hop_set, key, all);
}

static void wait(void *of)
{
	cv_next_hop_rcu_wait(&((struct cv_node *)of)->next_hop_set->table);
}

static void add_table(struct cv_of_node *to, const struct cv_plan *plan, unsigned port)
{
	to->ports[to->tables_count] = (uint8_t)port;
	to->names[to->tables_count++] = plan->port_names[port];
}

// The ports that send convoys come first: most nodes have one, which is table 0.
static void make_tables(struct cv_of_node *to, const struct cv_plan *plan)
{
	for (unsigned i = 0; i < plan->ports_count; i++)
		if (plan->port_convoys[i].address.len > 0)
			add_table(to, plan, i);
	for (unsigned i = 0; i < plan->ports_count; i++)
		if (plan->port_convoys[i].address.len == 0)
			add_table(to, plan, i);
}

static void find_inband(struct cv_of_node *to, const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->ports_count; i++)
		if (cv_openflow_port_is(node->ports[i]))
			to->inband[to->inband_count++] = node->ports[i];
}

static uint64_t datapath_id(const struct cv_of_config *config, const uint8_t *mac)
{
	uint64_t id = 0;

	if (config->datapath_id != 0)
		return config->datapath_id;
	for (unsigned i = 0; i < 6; i++)
		id = id << 8 | mac[i];
	return id;
}

int cv_node_openflow_open(
	struct cv_node *node, struct cv_of_server **server, struct cv_error *error)
{
	static struct cv_of_node view;
	static struct cv_of_config config; // plans come and go
	int rc;

	*server = NULL;
	view = (struct cv_of_node){
		.of = node,
		.version = CV_VERSION,
		.begin = begin,
		.end = end,
		.describe = describe,
		.generation = generation,
		.change = change,
		.wait = wait,
	};
	find_inband(&view, node);
	config = node->plan->openflow;
	if (config.controllers_count + config.listen_count + view.inband_count == 0)
		return 0;
	if (config.entries_max == 0)
		config.entries_max = CV_OF_ENTRIES_DEFAULT; // the plan has no openflow
	make_tables(&view, node->plan);
	view.datapath_id = datapath_id(&config, node->ports[view.ports[0]]->mac);
	*server = cv_of_server_open(&config, &view, error);
	if (*server == NULL)
		return -EIO;
	rc = cv_next_hop_set_attach(node->next_hop_set, cv_of_server_entries(*server), error);
	if (rc != 0) {
		cv_of_server_close(*server);
		*server = NULL;
	}
	node->openflow = *server;
	return rc;
}
