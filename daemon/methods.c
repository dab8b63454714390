// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/methods.h"

#include <errno.h>
#include <sys/socket.h>

#include "daemon/counts.h"
#include "daemon/files.h"
#include "daemon/handover.h"
#include "daemon/history.h"
#include "daemon/plan_names.h"
#include "daemon/process.h"
#include "daemon/running.h"
#include "daemon/scale.h"
#include "daemon/standby.h"
#include "daemon/state.h"
#include "daemon/why.h"

static int ending(struct cv_error *error)
{
	cv_error_set(error, cv_standby_waits() ? "the node is a standby, and forwards nothing: "
						 "`convoy activate`"
					       : "the node is ending");
	return -ESHUTDOWN;
}

static int busy(struct cv_error *error)
{
	cv_error_set(error, "the node is being changed by somebody else; try again");
	return -EBUSY;
}

static int methods(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	*result = cv_rpc_describe(cv_methods);
	return 0;
}

// What one of counts.h tells of the node.
static int read_node(
	json_t *(*counts)(const struct cv_node *), json_t **result, struct cv_error *error)
{
	const struct cv_node *node = cv_running_take();

	if (node == NULL)
		return ending(error);
	*result = counts(node);
	cv_running_give();
	return 0;
}

static int counts(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return read_node(cv_counts_now, result, error);
}

static int sandbox(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return read_node(cv_counts_sandbox, result, error);
}

static json_t *copy_of_plan(const struct cv_node *node)
{
	return json_deep_copy(node->plan->json);
}

static int plan(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return read_node(copy_of_plan, result, error);
}

struct next_hop_put {
	const json_t *next_hop;
};

static const struct cv_param next_hop_put_params[] = {
	{"next_hop", CV_MAP, CV_AT(struct next_hop_put, next_hop), .required = true,
		.doc = "as in a plan's next_hops"},
	{0},
};

// Next hops are not changed while another plan is built.
static int change_next_hops(
	int (*change)(struct cv_node *node, const void *params, struct cv_error *error),
	const void *params, json_t **result, struct cv_error *error)
{
	struct cv_node *node;
	int index;

	if (!cv_running_begin_change())
		return busy(error);
	node = cv_running_take();
	if (node == NULL) {
		cv_running_end_change();
		return ending(error);
	}
	index = change(node, params, error);
	cv_running_give();
	if (index >= 0 && !cv_history_waits())
		cv_state_settled(node);
	cv_running_end_change();
	*result = json_pack("{s:i}", "index", index);
	return index < 0 ? index : 0;
}

static int put(struct cv_node *node, const void *params, struct cv_error *error)
{
	return cv_node_put_next_hop(node, ((const struct next_hop_put *)params)->next_hop, error);
}

static int next_hop_put(
	void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change_next_hops(put, params, result, error);
}

struct next_hop_remove {
	const char *name;
};

static const struct cv_param next_hop_remove_params[] = {
	{"name", CV_TEXT, CV_AT(struct next_hop_remove, name), .required = true,
		.doc = "of the next hop"},
	{0},
};

static int remove_one(struct cv_node *node, const void *params, struct cv_error *error)
{
	const struct next_hop_remove *remove = params;

	return cv_node_remove_next_hop(node, remove->name, error);
}

static int next_hop_remove(
	void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change_next_hops(remove_one, params, result, error);
}

struct apply {
	const json_t *plan, *files;
	bool dry_run, forget_flows, starts_with;
	unsigned confirm_s;
};

static const struct cv_param apply_params[] = {
	{"plan", CV_MAP, CV_AT(struct apply, plan), .required = true,
		.doc = "what is to run, whole"},
	{"files", CV_MAP, CV_AT(struct apply, files),
		.doc = "{PATH: [OFFSET, LENGTH]}: files that parameters name, in the descriptor "
		       "that comes with the request"},
	{"forget_flows", CV_BOOL, CV_AT(struct apply, forget_flows),
		.doc = "also where functions would share flows otherwise than now"},
	{"dry_run", CV_BOOL, CV_AT(struct apply, dry_run),
		.doc = "say what differs, and change nothing"},
	{"starts_with", CV_BOOL, CV_AT(struct apply, starts_with),
		.doc = "the node will be started with this plan from now on"},
	{"confirm_s", CV_INTEGER, CV_AT(struct apply, confirm_s), .high = 86400,
		.doc = "seconds to confirm it, else the node goes back; 0: it stays"},
	{0},
};

// A change, which may take long, is made while the node can be read.
static int change(json_t *(*make)(struct cv_node *node, const void *change, struct cv_error *error),
	const void *change, json_t **result, struct cv_error *error)
{
	struct cv_node *node;
	int rc = 0;

	if (!cv_running_begin_change())
		return busy(error);
	// Nobody else changes it: it need not be held.
	node = cv_running_take();
	if (node != NULL) {
		cv_running_give();
		*result = make(node, change, error);
		rc = *result == NULL ? -EINVAL : 0;
	} else {
		rc = ending(error);
	}
	cv_running_end_change();
	return rc;
}

static json_t *make_apply(struct cv_node *node, const void *change, struct cv_error *error)
{
	return cv_history_apply(node, change, error);
}

static int apply(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	const struct apply *apply = params;
	struct cv_files files;
	const struct cv_history_change made = {
		.request = {.plan = apply->plan,
			.files = &files,
			.forget_flows = apply->forget_flows},
		.dry_run = apply->dry_run,
		.starts_with = apply->starts_with,
		.confirm_s = apply->confirm_s,
	};
	int rc = cv_files_take(&files, apply->files, file, error);

	if (rc == 0)
		rc = change(make_apply, &made, result, error);
	cv_files_free(&files);
	return rc;
}

struct rollback {
	unsigned to;
	bool forget_flows;
};

static const struct cv_param rollback_params[] = {
	{"to", CV_INTEGER, CV_AT(struct rollback, to), .high = INT32_MAX,
		.doc = "number of the plan; 0: the one before"},
	{"forget_flows", CV_BOOL, CV_AT(struct rollback, forget_flows),
		.doc = "also where functions would share flows otherwise than now"},
	{0},
};

static json_t *make_rollback(struct cv_node *node, const void *change, struct cv_error *error)
{
	const struct rollback *rollback = change;

	return cv_history_rollback(node, rollback->to, rollback->forget_flows, error);
}

static int rollback(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change(make_rollback, params, result, error);
}

static json_t *make_confirm(struct cv_node *node, const void *change, struct cv_error *error)
{
	return cv_history_confirm(node, error) == 0 ? json_object() : NULL;
}

static int confirm(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change(make_confirm, params, result, error);
}

static json_t *make_history(struct cv_node *node, const void *change, struct cv_error *error)
{
	return cv_history_list();
}

static int list(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change(make_history, params, result, error);
}

static json_t *make_state(struct cv_node *node, const void *change, struct cv_error *error)
{
	return cv_state_describe();
}

static int state(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	return change(make_state, params, result, error);
}

struct queue_move {
	const char *port;
	unsigned queue, worker;
};

static const struct cv_param queue_move_params[] = {
	{"port", CV_TEXT, CV_AT(struct queue_move, port), .required = true, .doc = "its name"},
	{"queue", CV_INTEGER, CV_AT(struct queue_move, queue), .required = true, .high = UINT16_MAX,
		.doc = "its number"},
	{"worker", CV_INTEGER, CV_AT(struct queue_move, worker), .required = true,
		.high = CV_WORKERS_MAX - 1, .doc = "that is to poll it"},
	{0},
};

static int move_queue(struct cv_node *node, const struct queue_move *move, struct cv_error *error)
{
	const int port = cv_plan_find(node->plan->port_names, node->plan->ports_count, move->port);
	const int rc = port < 0 || move->worker >= node->plan->workers_count
			       ? -ENOENT
			       : cv_scale_move(node, (unsigned)port, move->queue, move->worker);

	if (rc == -ENOENT)
		cv_error_set(error,
			"no queue %u of a port \"%.64s\" moves to a worker %u: it must be one of a "
			"descriptor with `scale: auto`, and pass nothing that remembers packets",
			move->queue, move->port, move->worker);
	else if (rc != 0)
		cv_error_set(error, "a function holds packets of the queue; try again");
	return rc;
}

static int queue_move(
	void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	struct cv_node *node = cv_running_take();
	int rc;

	if (node == NULL)
		return ending(error);
	rc = move_queue(node, params, error);
	cv_running_give();
	*result = rc == 0 ? json_object() : NULL;
	return rc;
}

static const struct cv_param why_arm_params[] = {
	{"filter", CV_TEXT, CV_AT(struct cv_why_request, filter), .high = CV_FILTER_TEXT_MAX,
		.doc = "which packets; without it all"},
	{"drops", CV_BOOL, CV_AT(struct cv_why_request, drops), .doc = "only what is dropped"},
	{"sample", CV_INTEGER, CV_AT(struct cv_why_request, sample), .low = 1, .high = 1000000,
		.fallback = 1, .doc = "one of so many packets is looked at"},
	{"snap", CV_INTEGER, CV_AT(struct cv_why_request, snap), .low = 14,
		.high = CV_TRACE_SNAP_MAX, .fallback = CV_WHY_SNAP, .doc = "bytes of each packet"},
	{0},
};

static int why_arm(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	const int rc = cv_why_arm(params, error);

	*result = rc == 0 ? json_object() : NULL;
	return rc;
}

static const struct cv_param handover_params[] = {
	{"forget_flows", CV_BOOL, CV_AT(struct cv_handover_how, forget_flows),
		.doc = "also where functions keep what does not go along"},
	{"starts_with", CV_BOOL, CV_AT(struct cv_handover_how, starts_with),
		.doc = "what the new node runs is also what it will be started with"},
	{0},
};

static int handover(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	struct cv_node *node;

	if (file < 0) {
		cv_error_set(error, "no socket came with the request: the new node's; use "
				    "`convoy handover`");
		return -EINVAL;
	}
	if (!cv_running_begin_change())
		return busy(error);
	node = cv_running_take();
	if (node != NULL) {
		cv_running_give(); // nobody else changes it
		*result = cv_handover_give(node, file, params, error);
	}
	cv_running_end_change();
	if (node == NULL)
		return ending(error);
	return *result == NULL ? -EINVAL : 0;
}

static int process(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	*result = cv_process_describe();
	return 0;
}

static int standby(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	*result = cv_standby_describe();
	if (*result == NULL)
		*result = json_pack("{s:s}", "role", "none");
	return 0;
}

static int activate(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	const int rc = cv_standby_activate(error);

	*result = rc == 0 ? json_object() : NULL;
	return rc;
}

struct why_read {
	unsigned packets, wait_ms;
};

static const struct cv_param why_read_params[] = {
	{"packets", CV_INTEGER, CV_AT(struct why_read, packets), .low = 1,
		.high = CV_WHY_PACKETS_MAX, .fallback = CV_WHY_PACKETS_MAX, .doc = "at most"},
	{"wait_ms", CV_INTEGER, CV_AT(struct why_read, wait_ms), .high = CV_WHY_WAIT_MS_MAX,
		.doc = "for the first packet"},
	{0},
};

static int why_read(void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	const struct why_read *read = params;

	*result = cv_why_read(read->packets, read->wait_ms, error);
	return *result == NULL ? -EINVAL : 0;
}

static const struct cv_param why_mirror_params[] = {
	{"packets", CV_INTEGER, CV_AT(struct cv_why_mirror, packets), .low = 1,
		.high = CV_WHY_MIRROR_PACKETS_MAX, .fallback = CV_WHY_MIRROR_PACKETS_MAX,
		.doc = "at most"},
	{"wait_ms", CV_INTEGER, CV_AT(struct cv_why_mirror, wait_ms), .high = CV_WHY_WAIT_MS_MAX,
		.doc = "for the first packet"},
	{"begins", CV_BOOL, CV_AT(struct cv_why_mirror, begins),
		.doc = "with the capture's header"},
	{"as_they_left", CV_BOOL, CV_AT(struct cv_why_mirror, as_they_left),
		.doc = "those that were sent; else as they came"},
	{0},
};

static int why_mirror(
	void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	int kind = 0, domain = 0;
	socklen_t bytes = sizeof(kind);

	// Of another domain, closing it might take as long as its peer likes.
	if (file < 0 || getsockopt(file, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0 ||
		getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 ||
		kind != SOCK_STREAM || domain != AF_UNIX) {
		cv_error_set(
			error, "no unix stream socket came with the request; use `convoy mirror`");
		return -EINVAL;
	}
	*result = cv_why_mirror(params, file, error);
	return *result == NULL ? -EINVAL : 0;
}

static int why_disarm(
	void *of, const void *params, int file, json_t **result, struct cv_error *error)
{
	cv_why_disarm();
	*result = json_object();
	return 0;
}

const struct cv_rpc_method cv_methods[] = {
	{"methods", .call = methods, .doc = "these methods, with their parameters"},
	{"counts", .call = counts, .doc = "all counters, as at the end of a run"},
	{"sandbox", .call = sandbox, .doc = "what the node gave up after start"},
	{"plan", .call = plan, .doc = "what runs, with next hops as they are now"},
	{"next_hops.put", .changes = true, .params = next_hop_put_params,
		.params_size = sizeof(struct next_hop_put), .call = next_hop_put,
		.doc = "adds a next hop, or replaces that of its name"},
	{"next_hops.remove", .changes = true, .params = next_hop_remove_params,
		.params_size = sizeof(struct next_hop_remove), .call = next_hop_remove,
		.doc = "removes a next hop"},
	{"apply", .changes = true, .params = apply_params, .params_size = sizeof(struct apply),
		.call = apply, .doc = "makes the node run another plan, while packets flow"},
	{"confirm", .changes = true, .call = confirm, .doc = "the last change stays"},
	{"rollback", .changes = true, .params = rollback_params,
		.params_size = sizeof(struct rollback), .call = rollback,
		.doc = "makes the node run what it ran before"},
	{"queues.move", .changes = true, .params = queue_move_params,
		.params_size = sizeof(struct queue_move), .call = queue_move,
		.doc = "has another worker poll a queue, of those that move"},
	{"why.arm", .changes = true, .params = why_arm_params,
		.params_size = sizeof(struct cv_why_request), .call = why_arm,
		.doc = "traces packets for this client, until it goes"},
	{"why.read", .changes = true, .params = why_read_params,
		.params_size = sizeof(struct why_read), .call = why_read,
		.doc = "the packets that were traced since"},
	{"why.mirror", .changes = true, .params = why_mirror_params,
		.params_size = sizeof(struct cv_why_mirror), .call = why_mirror,
		.doc = "sends them as a capture to the socket that comes with it"},
	{"why.disarm", .changes = true, .call = why_disarm, .doc = "traces no more"},
	{"handover", .changes = true, .params = handover_params,
		.params_size = sizeof(struct cv_handover_how), .call = handover,
		.doc = "gives all to the new node at the socket that comes with it, and ends"},
	{"process", .call = process, .doc = "how the node was started"},
	{"standby", .call = standby,
		.doc = "whether it is one, or has one, and how far flows are copied"},
	{"activate", .changes = true, .call = activate,
		.doc = "a standby forwards from now on, with the flows that it has"},
	{"history", .call = list, .doc = "what the node ran, the newest last"},
	{"state", .call = state, .doc = "whether what runs is kept for the next start"},
	{.name = NULL},
};
