// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/why.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/errands.h"
#include "daemon/mirror.h"
#include "daemon/plan_names.h"
#include "daemon/running.h"
#include "daemon/why_json.h"
#include "flow/path.h"

#define POLL_NS 1000000 // while packets are waited for

struct why {
	uintptr_t id; // the owner's
	struct cv_filter filter;
	struct cv_trace_config config;
	struct cv_why_clock clock;
	struct cv_trace_chain chains[CV_STAGES_MAX];
	struct cv_trace *traces[CV_WORKERS_MAX];
	uint64_t lost; // in what was thrown away
	uint64_t read_ns; // CLOCK_MONOTONIC
	char text[CV_FILTER_TEXT_MAX + 1];
};

// Under the running node's lock.
static struct why *armed;
static uintptr_t last_id;

static pthread_key_t owner; // of a thread: the id of what it armed
static pthread_once_t owner_once = PTHREAD_ONCE_INIT;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void set(void *trace)
{
	cv_trace_set(trace);
}

// Workers trace no longer, and what they wrote is gone.
static void stop(struct cv_node *node, struct why *why)
{
	void *none[CV_WORKERS_MAX] = {NULL};

	cv_errands_do(node, set, none);
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		if (why->traces[i] == NULL)
			continue;
		why->lost += cv_trace_lost(why->traces[i]);
		while (cv_trace_peek(why->traces[i]) != NULL) {
			cv_trace_release(why->traces[i]);
			why->lost++;
		}
		cv_trace_free(why->traces[i]);
		why->traces[i] = NULL;
	}
}

static void disarm(struct cv_node *node)
{
	stop(node, armed);
	free(armed);
	armed = NULL;
}

static int find_port(const void *node, const char *name)
{
	const struct cv_plan *plan = ((const struct cv_node *)node)->plan;

	return cv_plan_find(plan->port_names, plan->ports_count, name);
}

static int find_chain(const void *node, const char *name)
{
	return cv_plan_find_chain(((const struct cv_node *)node)->plan, name);
}

static bool is_reason(const void *node, const char *name)
{
	for (unsigned i = 0; i < CV_DROP_REASONS; i++)
		if (strcmp(cv_drop_reason_names[i], name) == 0)
			return true;
	for (unsigned i = 1; i < CV_FLOW_DROPS; i++)
		if (strcmp(cv_flow_drop_names[i], name) == 0)
			return true;
	for (unsigned i = 0; cv_nfs[i] != NULL; i++)
		for (unsigned j = 0; cv_nfs[i]->drops[j] != NULL; j++)
			if (strcmp(cv_nfs[i]->drops[j], name) == 0)
				return true;
	return false;
}

// Workers trace from now on. 0 or a negative errno with error set.
static int start(struct cv_node *node, struct why *why, struct cv_error *error)
{
	const struct cv_filter_names names = {
		.of = node, .port = find_port, .chain = find_chain, .reason = is_reason};
	const struct cv_plan *plan = node->plan;
	void *traces[CV_WORKERS_MAX];

	if (cv_filter_compile(&why->filter, why->text, &names, error) != 0)
		return -EINVAL;
	for (unsigned i = 0; i < plan->stages_count; i++)
		why->chains[i] = (struct cv_trace_chain){
			.path = node->paths[i], .chain = plan->stages[i].chain};
	why->config.chains_count = plan->stages_count;
	for (unsigned i = 0; i < plan->workers_count; i++) {
		traces[i] = why->traces[i] = cv_trace_create(&why->config);
		if (traces[i] == NULL) {
			cv_error_set(error, "out of memory");
			return -ENOMEM;
		}
	}
	cv_errands_do(node, set, traces);
	return 0;
}

// The thread of a client ends with its connection.
static void client_ends(void *id)
{
	struct cv_node *node = cv_running_take();

	if (node == NULL)
		return;
	if (armed != NULL && armed->id == (uintptr_t)id)
		disarm(node);
	cv_running_give();
}

static void make_owner(void)
{
	pthread_key_create(&owner, client_ends);
}

static bool is_mine(void)
{
	return armed != NULL && armed->id == (uintptr_t)pthread_getspecific(owner);
}

static struct why *make(const struct cv_why_request *request)
{
	struct why *why = calloc(1, sizeof(*why));

	if (why == NULL)
		return NULL;
	why->id = ++last_id;
	why->config = (struct cv_trace_config){.filter = &why->filter,
		.drops = request->drops,
		.sample = request->sample,
		.snap = (uint16_t)request->snap,
		.chains = why->chains};
	why->clock = cv_why_clock_now();
	why->read_ns = now_ns();
	snprintf(
		why->text, sizeof(why->text), "%s", request->filter == NULL ? "" : request->filter);
	return why;
}

// With the node taken.
static int arm(struct cv_node *node, const struct cv_why_request *request, struct cv_error *error)
{
	int rc;

	if (is_mine())
		disarm(node);
	if (armed != NULL) {
		cv_error_set(
			error, "another `convoy why` watches this node; there is one at a time");
		return -EBUSY;
	}
	armed = make(request);
	if (armed == NULL)
		return -ENOMEM;
	rc = start(node, armed, error);
	if (rc != 0)
		disarm(node);
	else
		pthread_setspecific(owner, (void *)armed->id);
	return rc;
}

int cv_why_arm(const struct cv_why_request *request, struct cv_error *error)
{
	struct cv_node *node;
	int rc;

	pthread_once(&owner_once, make_owner);
	node = cv_running_take();
	if (node == NULL) {
		cv_error_set(error, "the node is ending");
		return -ESHUTDOWN;
	}
	rc = arm(node, request, error);
	cv_running_give();
	return rc;
}

// What one request brings: objects, or a capture.
struct reading {
	unsigned most; // records that are looked at, so that the node is soon given back
	unsigned looked, count; // of which so many are packets that are wanted
	uint64_t lost;
	json_t *packets;
	struct cv_mirror *mirror; // NULL: packets has them
	const struct cv_why_mirror *how; // of it
};

static bool add(const struct cv_node *node, const struct cv_trace_record *record,
	const struct reading *reading)
{
	if (!cv_why_is_wanted(node, &armed->config, record))
		return false;
	if (reading->mirror != NULL)
		return cv_mirror_add(reading->mirror, &armed->config, &armed->clock, record,
			reading->how->as_they_left);
	return json_array_append_new(reading->packets,
		       cv_why_packet(node, &armed->config, &armed->clock, record)) == 0;
}

// What a worker wrote, as far as may be looked at.
static void read_one(const struct cv_node *node, struct cv_trace *trace, struct reading *reading)
{
	const struct cv_trace_record *record;

	while (reading->looked < reading->most && (record = cv_trace_peek(trace)) != NULL) {
		reading->looked++;
		reading->count += add(node, record, reading);
		cv_trace_release(trace);
	}
}

static void read_all(const struct cv_node *node, struct reading *reading)
{
	reading->lost = armed->lost;
	reading->looked = 0;
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		if (armed->traces[i] == NULL)
			continue;
		read_one(node, armed->traces[i], reading);
		reading->lost += cv_trace_lost(armed->traces[i]);
	}
	armed->read_ns = now_ns();
}

// Reads, waiting for the first packet for up to wait_ms. False with error set: this client has no trace.
static bool read_some(struct reading *reading, unsigned wait_ms, struct cv_error *error)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	const uint64_t until = now_ns() + wait_ms * UINT64_C(1000000);

	pthread_once(&owner_once, make_owner);
	while (true) {
		const struct cv_node *node = cv_running_take();
		const bool there = node != NULL && is_mine();

		if (there && reading->mirror != NULL && reading->how->begins &&
			reading->mirror->used == 0)
			cv_mirror_begin(reading->mirror, node);
		if (there)
			read_all(node, reading);
		if (node != NULL)
			cv_running_give();
		else
			cv_error_set(error, "the node is ending");
		if (!there)
			cv_error_set(
				error, "why.arm first: no trace of this client, or none any more");
		if (!there || reading->count > 0 || now_ns() >= until)
			return there;
		nanosleep(&pause, NULL);
	}
}

json_t *cv_why_read(unsigned packets, unsigned wait_ms, struct cv_error *error)
{
	struct reading reading = {.most = packets, .packets = json_array()};

	if (!read_some(&reading, wait_ms, error)) {
		json_decref(reading.packets);
		return NULL;
	}
	return json_pack(
		"{s:o, s:I}", "packets", reading.packets, "lost", (json_int_t)reading.lost);
}

json_t *cv_why_mirror(const struct cv_why_mirror *how, int socket, struct cv_error *error)
{
	struct cv_mirror mirror = {.bytes = NULL};
	struct reading reading = {.most = how->packets, .mirror = &mirror, .how = how};
	const bool there = read_some(&reading, how->wait_ms, error);
	const int rc = there ? cv_mirror_send(&mirror, socket, CV_WHY_SEND_MS) : 0;

	cv_mirror_free(&mirror);
	if (rc != 0)
		cv_error_set(error, "the mirror's socket: %s",
			rc == -EAGAIN ? "nobody reads it" : strerror(-rc));
	if (!there || rc != 0)
		return NULL;
	return json_pack("{s:I, s:I}", "packets", (json_int_t)reading.count, "lost",
		(json_int_t)reading.lost);
}

void cv_why_disarm(void)
{
	struct cv_node *node;

	pthread_once(&owner_once, make_owner);
	node = cv_running_take();
	if (node == NULL)
		return;
	if (is_mine())
		disarm(node);
	cv_running_give();
}

void cv_why_pause(struct cv_node *node)
{
	if (armed != NULL)
		stop(node, armed);
}

void cv_why_resume(struct cv_node *node)
{
	struct cv_error error = {0};

	// Where the plan no longer has what the filter names there is nothing to trace.
	if (armed != NULL && start(node, armed, &error) != 0)
		disarm(node);
}

void cv_why_due(void)
{
	struct cv_node *node = cv_running_take();

	if (node == NULL)
		return;
	if (armed != NULL && now_ns() - armed->read_ns > CV_WHY_UNREAD_S * UINT64_C(1000000000))
		disarm(node);
	cv_running_give();
}

void cv_why_end(struct cv_node *node)
{
	if (armed != NULL)
		disarm(node);
}
