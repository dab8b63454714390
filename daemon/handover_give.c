// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The running node, while another takes over from it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/flow_files.h"
#include "daemon/flow_store.h"
#include "daemon/freeze.h"
#include "daemon/handover.h"
#include "daemon/handover_counts.h"
#include "daemon/handover_message.h"
#include "daemon/history.h"
#include "daemon/running.h"
#include "daemon/state.h"
#include "flow/handover.h"
#include "port/handover.h"
#include "socket/loop.h"

#define HELLO_MS 1000
#define PREPARE_MS 3000 // to map the guests' memory
#define FREEZE_MS 500 // for workers to stand: until they do, they forward
#define FROZEN_MS 200 // for the new node to be ready; then this one goes on
#define START_MS 1000
#define REST_NS 2000000 // while the new node's workers begin

static const struct cv_notify *notify;
static int given_to; // atomic

struct giving {
	struct cv_record_sink sink;
	struct cv_node *node;
	int fd;
	unsigned port; // that is being told of
	uint64_t ports; // that go along, by bits
	const struct cv_handover_how *how;
	struct cv_error *error;
};

void cv_handover_begin(const struct cv_notify *service)
{
	notify = service;
}

int cv_handover_given_to(void)
{
	return __atomic_load_n(&given_to, __ATOMIC_ACQUIRE);
}

static int refuse_part(struct cv_error *error, const char *what, const char *name, const char *why)
{
	cv_error_set(error, "%s \"%s\": %s", what, name, why);
	return -EINVAL;
}

// The next port that goes along, from one on; NULL: none.
static struct cv_port *next_port(const struct giving *it, unsigned *from)
{
	for (; *from < it->node->plan->ports_count; (*from)++)
		if ((it->ports >> *from & 1) != 0)
			return it->node->ports[*from];
	return NULL;
}

static int check_ports(const struct giving *it)
{
	const struct cv_port *port;

	if (it->node->plan->ports_count < 64 && it->ports >> it->node->plan->ports_count != 0) {
		cv_error_set(it->error, "the new node names ports that do not exist");
		return -EPROTO;
	}
	for (unsigned i = 0; (port = next_port(it, &i)) != NULL; i++)
		if (port->handover == NULL) {
			cv_error_set(it->error,
				"port \"%s\": a port of kind %s cannot be handed over; restart the "
				"node",
				port->name, port->kind);
			return -EINVAL;
		}
	return 0;
}

// Which of a zone's functions it is for: the first whose flows cannot go along, else any.
static unsigned stays_by(const struct cv_node *node, const struct cv_node_zone *zone)
{
	for (unsigned i = 0; i < zone->count; i++)
		if (!node->plan->functions[zone->functions[i]].nf->flow->in_slots &&
			node->plan->functions[zone->functions[i]].nf->flow->kept == NULL)
			return zone->functions[i];
	return zone->functions[0];
}

static int check_functions(const struct cv_node *node, bool lose, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	char why[192];

	for (unsigned i = 0; i < plan->functions_count; i++) {
		const struct cv_nf *nf = plan->functions[i].nf;
		const char *keeps = cv_nf_keeps(nf, node->functions[i]);

		if (keeps == NULL || (lose && !nf->keeps_unique))
			continue;
		snprintf(why, sizeof(why), "its %s do not go along; %s", keeps,
			nf->keeps_unique ? "restart the node"
					 : "add --forget-flows, or restart the node");
		return refuse_part(error, "function", plan->functions[i].name, why);
	}
	for (unsigned i = 0; i < node->zones_count && !lose; i++) {
		const struct cv_node_zone *zone = &node->zones[i];
		const char *stays = cv_flow_zone_stays(zone->zone);

		if (stays == NULL)
			continue;
		snprintf(why, sizeof(why), "its flows %s; add --forget-flows, or restart the node",
			stays);
		return refuse_part(
			error, "function", plan->functions[stays_by(node, zone)].name, why);
	}
	return 0;
}

// Whether everything can go over. Nothing has changed.
static int check(const struct cv_node *node, bool lose, struct cv_error *error)
{
	const struct cv_of_config *openflow = &node->plan->openflow;
	int rc = check_functions(node, lose, error);

	if (rc == 0 && (openflow->controllers_count > 0 || openflow->listen_count > 0)) {
		cv_error_set(error, "openflow: controllers' flow entries do not go along; restart "
				    "the node");
		rc = -EINVAL;
	}
	if (rc == 0 && cv_history_waits()) {
		cv_error_set(error, "a change waits to be confirmed; `convoy confirm` it, or roll "
				    "it back");
		rc = -EINVAL;
	}
	if (rc == 0 && cv_handover_given_to() != 0) {
		cv_error_set(error, "the node is handed over already");
		rc = -EBUSY;
	}
	return rc;
}

// What a send returned. Of one that is gone, what it said last is why.
static int explained(const struct giving *it, int rc)
{
	struct cv_handover_message message;

	if (rc == 0)
		return 0;
	if (cv_handover_receive(it->fd, &message, 0, it->error) == 0 &&
		message.header.type == CV_HANDOVER_REFUSED)
		cv_error_set(it->error, "%s", message.text);
	cv_socket_fds_close(&message.fds);
	return rc;
}

static int put(struct cv_record_sink *sink, const struct cv_record *record)
{
	const struct giving *it = (const struct giving *)sink;
	struct cv_handover_message message = {.port = {.index = it->port}, .fds = record->fds};

	memcpy(message.record, record->data, record->bytes);
	return explained(it, cv_handover_send(it->fd, &message, CV_HANDOVER_PORT,
				     sizeof(message.port) + record->bytes));
}

// Says which port it was.
static int about_port(const struct giving *it, int rc, const struct cv_error *why)
{
	if (rc != 0)
		cv_error_set(
			it->error, "port \"%s\": %s", it->node->ports[it->port]->name, why->text);
	return rc;
}

static int give_ports(struct giving *it)
{
	struct cv_port *port;
	int rc = 0;

	for (it->port = 0; rc == 0 && (port = next_port(it, &it->port)) != NULL; it->port++) {
		struct cv_error why = {""};

		rc = about_port(it, port->handover->give(port, &it->sink, &why), &why);
	}
	return rc;
}

// With flows that may be lost, those are that more is known of than is in their slots: the new node may not
// have all of both. All are, where addresses would be other hosts'.
static bool goes_along(const struct giving *it, const struct cv_flow_zone *zone)
{
	return cv_flow_zone_stays(zone) == NULL &&
	       !(it->how->forget_flows &&
		       (cv_flow_zone_keeps(zone) || cv_flow_files_owners(it->node) >= 0));
}

// What a function knows of flows, if some of its flows go along; else NULL.
static const struct cv_flow_kept *kept_by(const struct giving *it, unsigned function)
{
	const struct cv_node *node = it->node;
	const struct cv_nf_flow *flow = node->plan->functions[function].nf->flow;

	if (flow == NULL || flow->kept == NULL)
		return NULL;
	for (unsigned i = 0; i < node->zones_count; i++)
		for (unsigned j = 0; j < node->zones[i].count; j++)
			if (node->zones[i].functions[j] == function &&
				goes_along(it, node->zones[i].zone))
				return flow->kept;
	return NULL;
}

static int give_kept(const struct giving *it)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < it->node->plan->functions_count; i++) {
		const struct cv_flow_kept *kept = kept_by(it, i);
		struct cv_handover_message message = {.fds = {.count = 1}};

		if (kept == NULL)
			continue;
		message.kept.function = cv_handover_function_id(it->node, i);
		message.kept.layout = kept->layout(it->node->functions[i]);
		message.fds.fds[0] = kept->give(it->node->functions[i]);
		rc = explained(it,
			cv_handover_send(it->fd, &message, CV_HANDOVER_KEPT, sizeof(message.kept)));
	}
	return rc;
}

static int give_flows(const struct giving *it)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < it->node->zones_count; i++) {
		struct cv_flow_zone *zone = it->node->zones[i].zone;
		struct cv_handover_message message = {
			.flows = {.zone = cv_handover_zone_id(it->node, i),
				.may_lose = it->how->forget_flows}};

		if (!goes_along(it, zone))
			continue;
		message.fds.count = 1;
		message.fds.fds[0] = cv_flow_zone_give(zone);
		rc = explained(it, cv_handover_send(it->fd, &message, CV_HANDOVER_FLOWS,
					   sizeof(message.flows)));
	}
	return rc;
}

static void freeze_flows(const struct giving *it)
{
	for (unsigned i = 0; i < it->node->plan->functions_count; i++) {
		const struct cv_flow_kept *kept = kept_by(it, i);

		if (kept != NULL)
			kept->freeze(it->node->functions[i]);
	}
	for (unsigned i = 0; i < it->node->zones_count; i++)
		if (goes_along(it, it->node->zones[i].zone))
			cv_flow_zone_freeze(it->node->zones[i].zone);
}

static int freeze_ports(struct giving *it)
{
	struct cv_port *port;
	int rc = 0;

	for (it->port = 0; rc == 0 && (port = next_port(it, &it->port)) != NULL; it->port++) {
		struct cv_error why = {""};

		rc = about_port(it, port->handover->freeze(port, &it->sink, &why), &why);
	}
	return rc;
}

static void resume_ports(void *argument)
{
	const struct giving *it = argument;
	struct cv_port *port;

	for (unsigned i = 0; (port = next_port(it, &i)) != NULL; i++)
		port->handover->resume(port);
}

static void leave_ports(void *argument)
{
	const struct giving *it = argument;
	struct cv_port *port;

	for (unsigned i = 0; (port = next_port(it, &i)) != NULL; i++)
		port->handover->leave(port);
}

// The two say who they are. The new one's process id, or a negative errno with error set.
static int greet(struct giving *it)
{
	struct cv_handover_message message = {.fds = {.count = 0}};
	const uint64_t plan = cv_handover_digest(it->node->plan->json);
	int pid;
	int rc = cv_handover_await(it->fd, &message, CV_HANDOVER_HELLO, HELLO_MS, it->error);

	if (rc == 0 && message.hello.protocol != CV_HANDOVER_PROTOCOL) {
		cv_error_set(it->error,
			"the new node is Convoy %s, whose handover protocol is %u; this one speaks "
			"%d: restart the node",
			message.hello.version, message.hello.protocol, CV_HANDOVER_PROTOCOL);
		rc = -EINVAL;
	}
	if (rc == 0 && message.hello.plan != plan) {
		cv_error_set(it->error, "the new node was made beside another plan: somebody "
					"changed what runs; try again");
		rc = -EBUSY;
	}
	it->ports = message.hello.ports;
	if (rc == 0)
		rc = check_ports(it);
	if (rc != 0)
		return rc;
	pid = message.hello.pid;
	message.hello = (struct cv_handover_hello){
		.protocol = CV_HANDOVER_PROTOCOL, .pid = getpid(), .plan = plan};
	snprintf(message.hello.version, sizeof(message.hello.version), "%s", CV_VERSION);
	rc = cv_handover_send(it->fd, &message, CV_HANDOVER_HELLO, sizeof(message.hello));
	return rc != 0 ? rc : pid;
}

static int await_ready(const struct giving *it, int ms)
{
	struct cv_handover_message message;

	return cv_handover_await(it->fd, &message, CV_HANDOVER_READY, ms, it->error);
}

// Packets flow meanwhile.
static int prepare(struct giving *it)
{
	int rc = give_ports(it);

	if (rc == 0)
		rc = give_kept(it);
	if (rc == 0)
		rc = give_flows(it);
	if (rc == 0)
		rc = explained(it, cv_handover_say(it->fd, CV_HANDOVER_PREPARED));
	return rc != 0 ? rc : await_ready(it, PREPARE_MS);
}

// One that is silent may be stopped by a debugger, and start later: only if it is gone, or says that it
// will not, this node can go on.
static int await_start(const struct giving *it)
{
	struct cv_handover_message message;
	const int rc =
		cv_handover_await(it->fd, &message, CV_HANDOVER_STARTED, START_MS, it->error);

	return rc == -ETIMEDOUT ? 0 : rc;
}

// Returns the bytes of the message.
static size_t tell_hash_key(const struct cv_node *node, struct cv_handover_frozen *frozen)
{
	const struct cv_next_hop_set *set = node->next_hop_set;

	if (set == NULL || !cv_next_hop_spreads(set->table.table))
		return CV_HANDOVER_FROZEN_LEAST;
	frozen->hash_key = set->hash_key;
	return sizeof(*frozen);
}

// From here to the other one's start no packet moves.
static int change_over(struct giving *it)
{
	struct cv_handover_message message = {.fds = {.count = 0}};
	int rc = cv_node_freeze(it->node, FREEZE_MS, &message.frozen.at_ns, it->error);

	if (rc != 0)
		return rc;
	freeze_flows(it);
	rc = freeze_ports(it);
	if (rc == 0)
		rc = explained(it, cv_handover_send(it->fd, &message, CV_HANDOVER_FROZEN,
					   tell_hash_key(it->node, &message.frozen)));
	if (rc == 0)
		rc = await_ready(it, FROZEN_MS);
	if (rc == 0)
		rc = explained(it, cv_handover_say(it->fd, CV_HANDOVER_COMMIT));
	if (rc == 0)
		rc = await_start(it);
	cv_node_leave_core();
	if (rc == 0)
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	cv_loop_run(rc == 0 ? leave_ports : resume_ports, it);
	if (rc == 0)
		cv_node_end_frozen(it->node);
	else
		cv_node_thaw(it->node);
	return rc;
}

// Nobody else has workers do something meanwhile.
static int while_taken(struct giving *it)
{
	int rc = -ESHUTDOWN;

	if (cv_running_take() != NULL) {
		rc = change_over(it);
		cv_running_give();
	}
	return rc;
}

// A file of a text, or -errno.
static int file_of(const char *text, size_t bytes)
{
	const int fd = memfd_create("convoy-handover", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	if (write(fd, text, bytes) == (ssize_t)bytes)
		return fd;
	rc = -EIO;
	close(fd);
	return rc;
}

// What does not hold up packets. What fails here costs counts only.
static void carry(const struct giving *it)
{
	struct cv_handover_message message = {.fds = {.count = 0}};
	json_t *json = cv_handover_counts(it->node);
	char *text;
	int fd;

	message.carried.has_state = cv_state_give(json, &message.fds.fds[3]);
	cv_flow_store_give(json);
	json_object_set_new(json, "starts_with", json_boolean(it->how->starts_with));
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	message.carried.json_bytes = text == NULL ? 0 : strlen(text);
	fd = text == NULL ? -ENOMEM : file_of(text, message.carried.json_bytes);
	free(text);
	if (fd < 0)
		return;
	message.fds.count = message.carried.has_state ? 5 : 3;
	message.fds.fds[0] = fd;
	message.fds.fds[1] = STDOUT_FILENO;
	message.fds.fds[2] = STDERR_FILENO;
	cv_handover_send(it->fd, &message, CV_HANDOVER_CARRIED, sizeof(message.carried));
	close(fd);
}

json_t *cv_handover_give(
	struct cv_node *node, int fd, const struct cv_handover_how *how, struct cv_error *error)
{
	struct giving it = {.sink = {put}, .node = node, .fd = fd, .how = how, .error = error};
	char line[32];
	int pid, rc;

	rc = check(node, how->forget_flows, error);
	if (rc == 0)
		rc = cv_loop_hold(error);
	if (rc != 0) {
		cv_handover_refuse(fd, error);
		return NULL;
	}
	rc = pid = greet(&it);
	if (pid > 0) {
		rc = prepare(&it);
		if (rc == 0)
			rc = while_taken(&it);
		if (rc != 0)
			cv_loop_run(resume_ports, &it);
	}
	if (rc < 0) {
		cv_loop_release();
		cv_error_set(error, "the new node cannot be told: %s", strerror(-rc));
		cv_handover_refuse(fd, error);
		return NULL;
	}
	cv_loop_release();
	snprintf(line, sizeof(line), "MAINPID=%d", pid);
	cv_notify_tell(notify, line);
	carry(&it);
	// Pairs with the acquire load in cv_handover_given_to().
	__atomic_store_n(&given_to, pid, __ATOMIC_RELEASE);
	return json_pack("{s:i, s:I}", "pid", pid, "held_pkts", (json_int_t)cv_handover_held(node));
}
