// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node that takes over from a running one.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/errands.h"
#include "daemon/flow_store.h"
#include "daemon/handover.h"
#include "daemon/handover_counts.h"
#include "daemon/handover_message.h"
#include "daemon/state.h"
#include "daemon/worker_core.h"
#include "flow/handover.h"
#include "port/handover.h"
#include "socket/loop.h"

#define PATIENCE_MS 60000 // until `convoy handover` has told the running node
#define NEXT_MS 5000 // for each message of the running node

static struct {
	const json_t *running; // the running node's plan
	int ports[CV_PORTS_MAX]; // that it has, as ours; -1: it goes with it
	bool *kept; // by function: what it knows of flows came
	int from; // process id
	char version[sizeof(((struct cv_handover_hello *)NULL)->version)];
	uint64_t gap_ns;
	int outputs[2]; // to become standard output and error; -1: none came
} taken = {.outputs = {-1, -1}};

// Our port that is the same as the running node's of an index, or -1.
static int same_port(const struct cv_plan *plan, unsigned index)
{
	const json_t *port = json_array_get(json_object_get(taken.running, "ports"), index);
	const json_t *ours = json_object_get(plan->json, "ports");

	for (unsigned i = 0; port != NULL && i < plan->ports_count; i++)
		if (json_equal(port, json_array_get(ours, i)) == 1)
			return (int)i;
	return -1;
}

void cv_handover_expect(const struct cv_plan *plan, const json_t *running)
{
	taken.running = running;
	for (unsigned i = 0; i < CV_PORTS_MAX; i++) {
		taken.ports[i] = same_port(plan, i);
		if (taken.ports[i] >= 0)
			plan->ports[taken.ports[i]]->adopts = true;
	}
}

// The running node's ports that go along, by bits.
static uint64_t ports_along(void)
{
	uint64_t bits = 0;

	_Static_assert(CV_PORTS_MAX <= 64, "a bit for each port");
	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		if (taken.ports[i] >= 0)
			bits |= UINT64_C(1) << i;
	return bits;
}

// The next port that is taken over, from one on; NULL: none.
static struct cv_port *next_port(const struct cv_node *node, unsigned *from)
{
	for (; *from < node->plan->ports_count; (*from)++)
		if (node->plan->ports[*from]->adopts)
			return node->ports[*from];
	return NULL;
}

static int greet(int fd, struct cv_error *error)
{
	const uint64_t plan = cv_handover_digest(taken.running);
	struct cv_handover_message message = {.hello = {.protocol = CV_HANDOVER_PROTOCOL,
						      .pid = getpid(),
						      .plan = plan,
						      .ports = ports_along()}};
	int rc;

	snprintf(message.hello.version, sizeof(message.hello.version), "%s", CV_VERSION);
	rc = cv_handover_send(fd, &message, CV_HANDOVER_HELLO, sizeof(message.hello));
	if (rc == 0)
		rc = cv_handover_await(fd, &message, CV_HANDOVER_HELLO, PATIENCE_MS, error);
	if (rc != 0)
		return rc;
	// It has compared the same, and refused if it had to.
	if (message.hello.protocol != CV_HANDOVER_PROTOCOL || message.hello.plan != plan) {
		cv_error_set(error,
			"the running node speaks handover protocol %u, or runs another "
			"plan; restart it",
			message.hello.protocol);
		return -EPROTO;
	}
	taken.from = message.hello.pid;
	memcpy(taken.version, message.hello.version, sizeof(taken.version));
	return 0;
}

static int take_port(
	const struct cv_node *node, struct cv_handover_message *message, struct cv_error *error)
{
	struct cv_record record = {
		.bytes = message->header.bytes - (uint32_t)sizeof(message->port)};
	struct cv_error why = {""};
	struct cv_port *port;
	int rc;

	if (message->port.index >= CV_PORTS_MAX || taken.ports[message->port.index] < 0) {
		cv_error_set(error, "the running node tells of port %u, which does not go along",
			message->port.index);
		return -EPROTO;
	}
	port = node->ports[taken.ports[message->port.index]];
	memcpy(record.data, message->record, record.bytes);
	record.fds = message->fds;
	rc = port->handover->take(port, &record, &why);
	message->fds = record.fds;
	if (rc != 0)
		cv_error_set(error, "port \"%s\": %s", port->name, why.text);
	return rc;
}

// Says whose it was.
static int about_function(const struct cv_node *node, unsigned function, int rc,
	const struct cv_error *why, struct cv_error *error)
{
	cv_error_set(error, "function \"%s\": %s", node->plan->functions[function].name, why->text);
	return rc;
}

// What a function knows of flows.
static int take_kept(
	struct cv_node *node, struct cv_handover_message *message, struct cv_error *error)
{
	const struct cv_handover_kept *of = &message->kept;
	const struct cv_flow_kept *kept;
	struct cv_error why = {""};
	unsigned i = 0;
	int rc;

	while (i < node->plan->functions_count && cv_handover_function_id(node, i) != of->function)
		i++;
	if (i == node->plan->functions_count) {
		cv_error_set(error, "a function that knows flows is gone; add --forget-flows");
		return -EINVAL;
	}
	// The running node may be of a version in which it does.
	if (node->plan->functions[i].nf->flow == NULL ||
		node->plan->functions[i].nf->flow->kept == NULL) {
		cv_error_set(&why, "knows no flows here; add --forget-flows, or restart the node");
		return about_function(node, i, -EINVAL, &why, error);
	}
	kept = node->plan->functions[i].nf->flow->kept;
	if (taken.kept[i]) {
		cv_error_set(error, "the running node tells of the same function twice");
		return -EPROTO;
	}
	if (kept->layout(node->functions[i]) != of->layout) {
		cv_error_set(&why, "what it knows of flows is kept otherwise by its parameters, or "
				   "by the new version; add --forget-flows, or restart the node");
		return about_function(node, i, -EINVAL, &why, error);
	}
	rc = kept->take(node->functions[i], message->fds.fds[0], &why);
	message->fds.count = 0;
	taken.kept[i] = true;
	return rc == 0 ? 0 : about_function(node, i, rc, &why, error);
}

static int check_kept(const struct cv_node *node, struct cv_error *error)
{
	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		struct cv_error why = {""};
		int rc = 0;

		if (taken.kept[i])
			rc = node->plan->functions[i].nf->flow->kept->taken(
				node->functions[i], &why);
		if (rc != 0)
			return about_function(node, i, rc, &why, error);
	}
	return 0;
}

// Whether what its functions know of flows came before.
static bool is_known(const struct cv_node *node, const struct cv_node_zone *zone)
{
	for (unsigned i = 0; i < zone->count; i++) {
		const unsigned f = zone->functions[i];

		if (node->plan->functions[f].nf->flow->kept != NULL && !taken.kept[f])
			return false;
	}
	return true;
}

static struct cv_node_zone *find_zone(struct cv_node *node, uint64_t id)
{
	for (unsigned i = 0; i < node->zones_count; i++)
		if (cv_handover_zone_id(node, i) == id)
			return &node->zones[i];
	return NULL;
}

static int take_flows(
	struct cv_node *node, struct cv_handover_message *message, struct cv_error *error)
{
	const bool may_lose = message->flows.may_lose != 0;
	struct cv_error why = {""};
	struct cv_node_zone *zone = find_zone(node, message->flows.zone);
	int rc;

	if (zone == NULL && may_lose)
		return 0;
	if (zone == NULL) {
		cv_error_set(error, "functions would share flows otherwise than now, or over "
				    "another number of workers; add --forget-flows");
		return -EINVAL;
	}
	if (zone->taken) {
		cv_error_set(error, "the running node tells of the same flows twice");
		return -EPROTO;
	}
	if (!is_known(node, zone)) {
		cv_error_set(error, "the running node does not tell what functions know of flows");
		return -EPROTO;
	}
	rc = cv_flow_zone_take(zone->zone, message->fds.fds[0], &why);
	message->fds.count = 0;
	zone->taken = rc == 0;
	if (rc == 0 || (rc == -ESTALE && may_lose))
		return 0;
	return about_function(node, zone->functions[0], rc, &why, error);
}

static int check_flows(struct cv_node *node, struct cv_error *error)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		struct cv_node_zone *zone = &node->zones[i];
		struct cv_error why = {""};
		const int rc = zone->taken ? cv_flow_zone_taken(zone->zone, &why) : 0;

		if (rc != 0)
			return about_function(node, zone->functions[0], rc, &why, error);
	}
	return 0;
}

// Ports and flows, until a message of another type, which must be this.
static int take_until(struct cv_node *node, int fd, enum cv_handover_type type,
	struct cv_handover_message *message, struct cv_error *error)
{
	bool goes_on;
	int rc;

	do {
		rc = cv_handover_receive(fd, message, NEXT_MS, error);
		goes_on = true;
		if (rc == 0 && message->header.type == CV_HANDOVER_PORT)
			rc = take_port(node, message, error);
		else if (rc == 0 && message->header.type == CV_HANDOVER_FLOWS)
			rc = take_flows(node, message, error);
		else if (rc == 0 && message->header.type == CV_HANDOVER_KEPT)
			rc = take_kept(node, message, error);
		else
			goes_on = false;
		cv_socket_fds_close(&message->fds);
	} while (rc == 0 && goes_on);
	if (rc == 0 && message->header.type != type) {
		cv_error_set(error, "%s",
			message->header.type == CV_HANDOVER_REFUSED
				? message->text
				: "the running node says something out of order");
		rc = -EPROTO;
	}
	return rc;
}

static int check_ports(const struct cv_node *node, struct cv_error *error)
{
	struct cv_port *port;

	for (unsigned i = 0; (port = next_port(node, &i)) != NULL; i++) {
		struct cv_error why = {""};

		if (port->handover->taken(port, &why) == 0)
			continue;
		cv_error_set(error, "port \"%s\": %s", port->name, why.text);
		return -EPROTO;
	}
	return 0;
}

int cv_handover_take(struct cv_node *node, int fd, struct cv_error *error)
{
	struct cv_handover_message message;
	int rc = greet(fd, error);

	taken.kept = calloc(node->plan->functions_count + 1, sizeof(*taken.kept));
	if (taken.kept == NULL)
		return -ENOMEM;
	if (rc == 0)
		rc = take_until(node, fd, CV_HANDOVER_PREPARED, &message, error);
	if (rc == 0)
		rc = check_ports(node, error);
	if (rc != 0 && error->text[0] != '\0')
		cv_handover_refuse(fd, error);
	return rc;
}

static void listen_to_peers(void *argument)
{
	const struct cv_node *node = argument;
	struct cv_port *port;

	for (unsigned i = 0; (port = next_port(node, &i)) != NULL; i++)
		port->handover->listen(port);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// In a worker, before it polls for the first time.
static void say_when(void *argument)
{
	*(uint64_t *)argument = now_ns();
}

// Workers begin: packets flow. Returns when all had. They say it themselves, for this thread, on the core
// of one of them, may not run for a while.
static uint64_t begin_workers(struct cv_node *node, struct cv_worker_core *core)
{
	uint64_t began_ns[CV_WORKERS_MAX], last_ns = 0;
	struct cv_errand errands[CV_WORKERS_MAX];

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		errands[i] = (struct cv_errand){.run = say_when, .argument = &began_ns[i]};
		cv_errands_give(&node->workers[i], &errands[i]);
	}
	cv_node_forward(node);
	cv_worker_core_return(core);
	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		cv_errands_await(node, i);
		last_ns = RTE_MAX(last_ns, began_ns[i]);
	}
	return last_ns;
}

static json_t *read_json(int fd, uint64_t bytes)
{
	char *text = malloc(bytes + 1);
	json_t *json = NULL;

	if (text != NULL && pread(fd, text, bytes, 0) == (ssize_t)bytes)
		json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	return json;
}

// For the next start, unless it is what is kept.
static void keep_plan(const struct cv_node *node, const json_t *carried)
{
	if (json_is_true(json_object_get(carried, "starts_with")))
		cv_state_starts_with(node->plan->json);
	if (json_equal(taken.running, node->plan->json) != 1)
		cv_state_settled(node);
}

// What is lost here are counts: packets flow.
static void take_rest(struct cv_node *node, int fd)
{
	struct cv_handover_message message;
	struct cv_error error = {""};
	json_t *json = NULL;
	int rc = cv_handover_await(fd, &message, CV_HANDOVER_CARRIED, NEXT_MS, &error);

	if (rc == 0) {
		json = read_json(message.fds.fds[0], message.carried.json_bytes);
		for (unsigned i = 0; i < 2; i++) {
			taken.outputs[i] = message.fds.fds[1 + i];
			message.fds.fds[1 + i] = -1;
		}
		if (message.carried.has_state) {
			cv_state_adopt(json, &message.fds.fds[3]);
			keep_plan(node, json);
		}
	}
	cv_flow_store_adopt(json);
	if (json == NULL || !cv_handover_add_counts(node, json))
		fprintf(stderr,
			"convoyd: the node before did not tell its counts (%s); they begin "
			"at 0\n",
			error.text);
	json_decref(json);
	cv_socket_fds_close(&message.fds);
}

// The flows that came are the node's, and those of each worker what the others read.
static void adopt_flows(struct cv_node *node)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		const struct cv_flow_zone *zone = node->zones[i].zone;

		if (!node->zones[i].taken)
			continue;
		if (cv_flow_zone_taken_homes(zone) != NULL)
			cv_node_handoff_rekey(node, cv_flow_zone_taken_homes(zone));
		cv_flow_zone_adopt(node->zones[i].zone);
	}
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		cv_node_handoff_read(node, i);
}

int cv_handover_take_over(struct cv_node *node, int fd, struct cv_error *error)
{
	struct cv_handover_message message = {.fds = {.count = 0}};
	struct cv_worker_core core = {.borrowed = false};
	uint64_t frozen_ns = 0;
	struct cv_port *port;
	int rc = cv_loop_hold(error);

	if (rc == 0)
		rc = cv_handover_say(fd, CV_HANDOVER_READY);
	if (rc == 0) {
		cv_worker_core_borrow(&core, node);
		rc = take_until(node, fd, CV_HANDOVER_FROZEN, &message, error);
	}
	if (rc == 0) {
		frozen_ns = message.frozen.at_ns;
		if (node->next_hop_set != NULL && message.header.bytes == sizeof(message.frozen))
			cv_next_hop_set_rekey(node->next_hop_set, message.frozen.hash_key);
		rc = check_ports(node, error);
	}
	if (rc == 0)
		rc = check_kept(node, error);
	if (rc == 0)
		rc = check_flows(node, error);
	if (rc == 0)
		rc = cv_handover_say(fd, CV_HANDOVER_READY);
	if (rc == 0)
		rc = cv_handover_await(fd, &message, CV_HANDOVER_COMMIT, NEXT_MS, error);
	if (rc == 0)
		rc = cv_handover_say(fd, CV_HANDOVER_STARTED);
	if (rc != 0) {
		cv_worker_core_return(&core);
		cv_error_set(error, "the running node cannot be told: %s", strerror(-rc));
		cv_handover_refuse(fd, error);
		return rc;
	}
	for (unsigned i = 0; (port = next_port(node, &i)) != NULL; i++)
		port->handover->adopt(port);
	adopt_flows(node);
	taken.gap_ns = begin_workers(node, &core) - frozen_ns;
	cv_loop_run(listen_to_peers, node);
	cv_loop_release();
	take_rest(node, fd);
	return 0;
}

json_t *cv_handover_describe(void)
{
	return json_pack("{s:i, s:s, s:f}", "from", taken.from, "version", taken.version, "gap_us",
		(double)taken.gap_ns / 1000);
}

void cv_handover_finish(int fd)
{
	for (int i = 0; i < 2; i++) {
		if (taken.outputs[i] < 0)
			continue;
		dup2(taken.outputs[i], STDOUT_FILENO + i);
		close(taken.outputs[i]);
	}
	free(taken.kept);
	close(fd);
}
