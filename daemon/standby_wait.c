// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/standby.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/standby/listener.h"
#include "daemon/stop_signals.h"
#include "flow/replica.h"

#define LOOK_MS 20 // how often signals and silence are looked at
#define DRAIN_BURSTS 256u // of each queue: more than a ring has
#define FUNCTION_BYTES ((size_t)1 << 20) // of a function's file, whatever the node's own has

// What others may be told, as it was a moment ago.
struct published {
	bool connected;
	bool has_all; // flows
	uint64_t connections, refused, writes, bytes, passes, flows;
	uint64_t whole_ns; // when the last pass came
};

static struct {
	const struct cv_standby_config *config; // NULL: there is no standby
	struct cv_peer_tls_context *tls;
	struct cv_standby_listener *listener; // NULL: it does not wait
	struct cv_standby_own own[CV_FLOW_FILES_MAX];
	int wake;
	bool waits, is_to_forward; // atomic
	const char *why; // it forwards; NULL: it never waited
	struct cv_flow_restored restored;
	double restored_ms;
	pthread_mutex_t lock; // of published
	struct published published;
} standby = {.wake = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int cv_standby_open(const struct cv_plan *plan, bool was_active, struct cv_error *error)
{
	const struct cv_standby_config *config = &plan->standby;
	static struct cv_standby_config kept; // plans come and go

	if (config->key_file == NULL)
		return 0;
	kept = *config;
	standby.config = &kept;
	standby.tls = cv_standby_tls(config, error);
	if (standby.tls == NULL)
		return -EINVAL;
	standby.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (standby.wake < 0) {
		cv_error_set(error, "standby: %s", strerror(errno));
		return -EIO;
	}
	if (config->listen.tcp_port != 0 && !was_active) {
		standby.listener = cv_standby_listener_open(&kept, standby.tls, CV_VERSION, error);
		if (standby.listener == NULL)
			return -EIO;
		__atomic_store_n(&standby.waits, true, __ATOMIC_RELAXED);
	}
	return config->to.tcp_port == 0 ? 0 : cv_standby_give_open(&kept, standby.tls, error);
}

bool cv_standby_waits(void)
{
	return __atomic_load_n(&standby.waits, __ATOMIC_RELAXED);
}

static void own_zone(
	const struct cv_node *node, const struct cv_flow_file *file, struct cv_standby_own *own)
{
	const struct cv_node_zone *zone = &node->zones[file->index];

	own->layout = cv_flow_zone_replica_layout(zone->zone);
	own->name = node->plan->functions[zone->functions[0]].name;
}

// What the node would take of an active one.
static void find_own(const struct cv_node *node, struct cv_standby_listener *listener)
{
	struct cv_flow_files files;

	cv_flow_files_collect(node, true, &files);
	for (unsigned i = 0; i < files.count; i++) {
		const struct cv_flow_file *file = &files.files[i];
		struct cv_standby_own *own = &standby.own[listener->own_count];
		struct stat is;

		if (fstat(file->fd, &is) != 0)
			continue;
		*own = (struct cv_standby_own){.kind = file->kind,
			.id = file->id,
			.layout = file->layout,
			.bytes_max = (size_t)is.st_size};
		if (file->kind == CV_FLOW_FILE_ZONE) {
			own_zone(node, file, own);
		} else {
			own->name = node->plan->functions[file->index].name;
			own->bytes_max = RTE_MAX(own->bytes_max, FUNCTION_BYTES);
		}
		listener->own_count++;
	}
	listener->own = standby.own;
}

static void publish(const struct cv_standby_listener *listener)
{
	struct published published = {
		.connected = listener->active != NULL,
		.has_all = listener->whole != NULL,
		.connections = listener->connections,
		.refused = listener->refused,
		.passes = listener->whole == NULL ? 0 : listener->whole->passes,
		.flows = listener->whole == NULL ? 0 : listener->whole->flows,
		.whole_ns = listener->whole_ns,
	};

	cv_standby_listener_count(listener, &published.writes, &published.bytes);
	pthread_mutex_lock(&standby.lock);
	standby.published = published;
	pthread_mutex_unlock(&standby.lock);
}

// Why the node is to forward; NULL: it is not.
static const char *reason(const struct cv_standby_listener *listener)
{
	const uint64_t silence_ns = standby.config->take_over_ms * UINT64_C(1000000);

	// Pairs with cv_standby_activate().
	if (__atomic_load_n(&standby.is_to_forward, __ATOMIC_ACQUIRE))
		return "command";
	return silence_ns != 0 && listener->whole != NULL &&
			       now_ns() - listener->heard_ns > silence_ns
		       ? "silence"
		       : NULL;
}

bool cv_standby_wait(struct cv_node *node, struct cv_notify *notify)
{
	struct cv_standby_listener *listener = standby.listener;

	find_own(node, listener);
	while (!cv_stop_signals_came() && standby.why == NULL) {
		cv_standby_listener_run(listener, standby.wake, LOOK_MS);
		cv_notify_alive(notify, NULL);
		publish(listener);
		standby.why = reason(listener);
	}
	return standby.why != NULL;
}

// What ports have received while the node waited is old by now.
static void drain(const struct cv_node *node)
{
	struct rte_mbuf *packets[CV_BURST_MAX];

	for (unsigned i = 0; i < node->plan->ports_count; i++) {
		struct cv_port *port = node->ports[i];

		for (uint16_t queue = 0; queue < port->rx_queues; queue++)
			for (unsigned j = 0; j < DRAIN_BURSTS; j++) {
				const uint16_t n = port->rx(port, queue, packets, CV_BURST_MAX);

				if (n == 0)
					break;
				rte_pktmbuf_free_bulk(packets, n);
			}
	}
}

void cv_standby_restore(struct cv_node *node)
{
	const uint64_t begun_ns = now_ns();
	const struct cv_standby_set *set;
	struct cv_flow_files files = {.count = 0};

	if (standby.listener == NULL)
		return;
	drain(node);
	set = standby.listener->whole;
	for (unsigned i = 0; set != NULL && i < set->count; i++)
		if (set->files[i].memory != NULL)
			files.files[files.count++] = (struct cv_flow_file){
				.kind = set->files[i].kind,
				.id = set->files[i].id,
				.layout = set->files[i].layout,
				.fd = set->files[i].fd,
			};
	cv_flow_files_restore(node, &files, CV_FLOW_REPLICATED, &standby.restored);
	cv_standby_listener_close(standby.listener);
	standby.listener = NULL;
	standby.restored_ms = (double)(now_ns() - begun_ns) / 1e6;
	__atomic_store_n(&standby.waits, false, __ATOMIC_RELEASE);
}

void cv_standby_end(void)
{
	cv_standby_give_end();
	cv_standby_listener_close(standby.listener);
	standby.listener = NULL;
	cv_peer_tls_context_close(standby.tls);
	standby.tls = NULL;
	if (standby.wake >= 0)
		close(standby.wake);
	standby.wake = -1;
}

int cv_standby_activate(struct cv_error *error)
{
	const uint64_t one = 1;

	if (!cv_standby_waits()) {
		cv_error_set(error, "the node forwards already");
		return -EALREADY;
	}
	__atomic_store_n(&standby.is_to_forward, true, __ATOMIC_RELEASE);
	return write(standby.wake, &one, sizeof(one)) == sizeof(one) ? 0 : -EIO;
}

static json_t *describe_waiting(void)
{
	struct published published;

	pthread_mutex_lock(&standby.lock);
	published = standby.published;
	pthread_mutex_unlock(&standby.lock);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "role", "standby",
		"state", published.connected ? published.has_all ? "follows" : "copies" : "alone",
		"listen", standby.config->listen.text, "flows", (json_int_t)published.flows,
		"passes", (json_int_t)published.passes, "connections",
		(json_int_t)published.connections, "refused", (json_int_t)published.refused,
		"messages", (json_int_t)published.writes, "bytes", (json_int_t)published.bytes,
		"age_ms",
		published.has_all ? json_real((double)(now_ns() - published.whole_ns) / 1e6)
				  : json_null());
}

json_t *cv_standby_describe(void)
{
	json_t *json;

	if (standby.config == NULL)
		return NULL;
	if (cv_standby_waits())
		return describe_waiting();
	json = json_pack("{s:s}", "role", "active");
	if (standby.why != NULL)
		json_object_set_new(json, "taken_over",
			json_pack("{s:s, s:I, s:I, s:f}", "why", standby.why, "restored",
				(json_int_t)standby.restored.flows, "lost",
				(json_int_t)standby.restored.lost, "ms", standby.restored_ms));
	json_object_update_new(json, cv_standby_give_describe());
	return json;
}
