// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpdk/compat.h"
#include "preload/vhost/receive.h"

#define SOCKETS_MAX 256

struct cv_connection_config cv_connection_config;
struct cv_connection *cv_connections[RTE_MAX_VHOST_DEVICE];

// Ended; freed when the next one takes its number. A thread of the program's may look at it until
// then.
static struct cv_connection *ended[RTE_MAX_VHOST_DEVICE];

static struct cv_socket sockets[SOCKETS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of sockets

static struct cv_connection *connection_of(int vid)
{
	return vid >= 0 && vid < RTE_MAX_VHOST_DEVICE
		       ? __atomic_load_n(&cv_connections[vid], __ATOMIC_ACQUIRE)
		       : NULL;
}

// A line about a guest; a few in a while, however often it comes and goes.
__attribute__((format(printf, 2, 3))) static void log_line(
	struct cv_connection *connection, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cv_log_limited(
		&connection->socket->log, "convoy: vhost:", connection->socket->path, format, args);
	va_end(args);
}

// Says once of each guest that a ring is not used: it may have that happen with each message.
static void grant(struct cv_connection *connection)
{
	const bool reported = connection->device.refused > 0;

	cv_guest_grant(&connection->device);
	if (connection->device.refused > 0 && !reported)
		log_line(connection,
			"a ring is not used: its size is none that a ring has, or it does "
			"not lie in the memory that the guest shares");
}

static bool is_memory_table(const void *message)
{
	return ((const struct cv_vhost_message *)message)->request == CV_VHOST_SET_MEM_TABLE;
}

static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	struct cv_connection *connection = connection_of(vid);
	enum rte_vhost_msg_result result;
	struct cv_error error;

	if (connection == NULL)
		return RTE_VHOST_MSG_RESULT_ERR;
	cv_guest_revoke(&connection->device);
	result = cv_messages_before(&connection->messages, message, &error);
	if (result == RTE_VHOST_MSG_RESULT_ERR)
		log_line(connection, "its guest is disconnected: %s", error.text);
	else if (is_memory_table(message))
		cv_truncated_forget(&connection->memory);
	return result;
}

static enum rte_vhost_msg_result after_message(int vid, void *message)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection == NULL)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	cv_messages_after(&connection->messages, message);
	if (is_memory_table(message))
		cv_truncated_guard(&connection->memory, vid);
	grant(connection);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static void log_left(struct cv_connection *connection)
{
	__atomic_store_n(&cv_receive_any_files, true, __ATOMIC_RELAXED);
	log_line(connection,
		"left to rte_vhost with all its messages, of which none is validated: the "
		"program asked for post-copy, an IOMMU, a vDPA device, in-flight buffers, "
		"or handles messages itself");
}

static void forget(struct cv_connection *connection)
{
	if (connection != NULL)
		free(connection->device.queues);
	free(connection);
}

static struct cv_socket *socket_of(const char *path)
{
	struct cv_socket *match = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SOCKETS_MAX && sockets[i].path != NULL; i++) {
		if (strcmp(sockets[i].path, path) == 0)
			match = &sockets[i];
	}
	pthread_mutex_unlock(&lock);
	return match;
}

// Has rte_vhost call us for each message, unless they cannot be validated.
static int begin_messages(struct cv_connection *connection, const char *path)
{
	static const struct rte_vhost_user_extern_ops around = {before_message, after_message};
	const int vid = connection->device.vid;
	uint64_t features = 0, protocol = 0;

	if (rte_vhost_driver_get_features(path, &features) != 0 ||
		rte_vhost_driver_get_protocol_features(path, &protocol) != 0)
		return -EINVAL;
	cv_filter_begin(&connection->messages.filter, features, protocol);
	connection->left =
		cv_filter_leaves(features, protocol) || rte_vhost_get_vdpa_device(vid) != NULL;
	if (!connection->left)
		return cv_connection_config.set_handlers(vid, &around, NULL);
	log_left(connection);
	return 0;
}

static void add_queues(struct cv_connection *connection)
{
	for (uint16_t i = 0; i < CV_GUEST_PAIRS_MAX; i++) {
		connection->to[i].port = cv_connection_config.port;
		connection->from[i].port = cv_connection_config.port;
		connection->from[i].outer = cv_connection_config.outer;
		connection->from[i].waiting.ticks = cv_waiting_ticks(cv_connection_config.wait_ns);
	}
}

// The next of the networks' sockets, of so many bytes; NULL: there are no more. *at: where to go on.
static const char *next_network(const char **at, size_t *len)
{
	const char *path = *at;

	if (path == NULL || *path == '\0')
		return NULL;
	*len = strcspn(path, ",");
	*at = path + *len + (path[*len] == ',');
	return path;
}

static bool is_network(const char *path)
{
	const char *at = cv_connection_config.networks, *network;
	size_t len;

	while ((network = next_network(&at, &len)) != NULL)
		if (len == strlen(path) && memcmp(network, path, len) == 0)
			return true;
	return false;
}

// Whose convoys are a guest's: with the first guest, when the program's sockets are there, most likely.
static void log_networks_without_socket(void)
{
	static bool logged;
	const char *at = cv_connection_config.networks, *network;
	char path[PATH_MAX];
	size_t len;

	if (__atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
		return;
	while ((network = next_network(&at, &len)) != NULL) {
		snprintf(path, sizeof(path), "%.*s", (int)len, network);
		if (socket_of(path) == NULL)
			fprintf(stderr,
				"convoy: vhost: network %s: the program has no socket of that name "
				"by now; name it as the program does\n",
				path);
	}
}

// NULL: no memory, or it has no name.
static struct cv_connection *make(int vid)
{
	struct cv_connection *connection = calloc(1, sizeof(*connection));
	char path[PATH_MAX];

	if (connection == NULL || rte_vhost_get_ifname(vid, path, sizeof(path)) != 0 ||
		(connection->socket = socket_of(path)) == NULL) {
		free(connection);
		return NULL;
	}
	connection->program = connection->socket->program;
	connection->device.vid = vid;
	connection->device.pairs = CV_GUEST_PAIRS_MAX;
	connection->network = is_network(path);
	if (cv_guest_make_queues(&connection->device) != 0) {
		free(connection);
		return NULL;
	}
	add_queues(connection);
	forget(ended[vid]);
	ended[vid] = NULL;
	__atomic_store_n(&cv_connections[vid], connection, __ATOMIC_RELEASE);
	if (begin_messages(connection, path) == 0)
		return connection;
	__atomic_store_n(&cv_connections[vid], NULL, __ATOMIC_RELEASE);
	forget(connection);
	return NULL;
}

static int new_connection(int vid)
{
	struct cv_connection *connection = make(vid);

	if (connection == NULL) {
		fputs("convoy: vhost: a guest is turned away: there is no memory for it\n", stderr);
		return -1;
	}
	return connection->program->new_connection != NULL
		       ? connection->program->new_connection(vid)
		       : 0;
}

static int new_device(int vid)
{
	struct cv_connection *connection = connection_of(vid);
	uint64_t features = 0;

	rte_vhost_get_negotiated_features(vid, &features);
	if (connection->left) {
		// It was said.
	} else if (connection->network) {
		log_line(connection, "a network: its convoys pass as they are");
	} else if (features & CV_GUEST_NOT_OURS) {
		log_line(connection,
			"left to rte_vhost: its guest negotiated offloads (features 0x%" PRIx64
			"); turn them off there to have convoys",
			features);
	} else {
		connection->device.running = true;
		__atomic_store_n(&connection->ours, true, __ATOMIC_RELEASE);
		grant(connection);
		log_networks_without_socket();
	}
	return connection->program->new_device != NULL ? connection->program->new_device(vid) : 0;
}

static void drop_packets(struct cv_connection *connection)
{
	for (uint16_t i = 0; i < connection->device.pairs; i++) {
		struct cv_guest_queue *queue = &connection->device.queues[2 * i];

		// Who polls another queue of the device may be about to send what is held.
		rte_spinlock_lock(&queue->access.lock);
		cv_to_guest_drop(&connection->to[i]);
		rte_spinlock_unlock(&queue->access.lock);
		cv_from_guest_drop(&connection->from[i]);
	}
}

static void destroy_device(int vid)
{
	struct cv_connection *connection = connection_of(vid);

	cv_guest_revoke(&connection->device);
	connection->device.running = false;
	if (connection->program->destroy_device != NULL)
		connection->program->destroy_device(vid);
	// The program's threads have left it.
	__atomic_store_n(&connection->ours, false, __ATOMIC_RELEASE);
	drop_packets(connection);
}

static int queue_changed(int vid, uint16_t queue, int enable)
{
	struct cv_connection *connection = connection_of(vid);

	if (queue < 2 * connection->device.pairs) {
		connection->device.enabled[queue] = enable;
		cv_guest_revoke(&connection->device);
		grant(connection);
	}
	return connection->program->vring_state_changed != NULL
		       ? connection->program->vring_state_changed(vid, queue, enable)
		       : 0;
}

static int features_changed(int vid, uint64_t features)
{
	const struct cv_connection *connection = connection_of(vid);

	return connection->program->features_changed != NULL
		       ? connection->program->features_changed(vid, features)
		       : 0;
}

static void report(struct cv_connection *connection)
{
	uint64_t packets[2] = {0}, frames = 0, convoys = 0, shared = 0, opened = 0, lost = 0,
		 refused = 0;

	for (uint16_t i = 0; i < connection->device.pairs; i++) {
		for (unsigned way = 0; way < 2; way++)
			packets[way] +=
				connection->device.queues[2 * i + way].vring.counters.packets;
		frames += connection->from[i].frames;
		convoys += connection->from[i].convoys;
		opened += connection->to[i].opened;
		shared += connection->from[i].shared;
		lost += connection->to[i].lost + connection->from[i].lost;
		refused += connection->from[i].refused;
	}
	fprintf(stderr,
		"convoy: vhost: %s: %" PRIu64 " packets from the guest in %" PRIu64
		" frames, %" PRIu64 " of them convoys; %" PRIu64 " packets to it, out of %" PRIu64
		" convoys and others; %" PRIu64 " lost that waited when it went; %" PRIu64
		" from it dropped that looked like convoys",
		connection->socket->path, packets[1], frames, convoys, packets[0], opened, lost,
		refused);
	if (cv_connection_config.across)
		fprintf(stderr, "; %" PRIu64 " of the convoys from it with packets of other queues",
			shared);
	fputc('\n', stderr);
}

static void destroy_connection(int vid)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection == NULL)
		return; // turned away
	if (connection->program->destroy_connection != NULL)
		connection->program->destroy_connection(vid);
	report(connection);
	cv_truncated_forget(&connection->memory);
	__atomic_store_n(&cv_connections[vid], NULL, __ATOMIC_RELEASE);
	ended[vid] = connection;
}

static void guest_notified(int vid)
{
	const struct cv_connection *connection = connection_of(vid);

	if (connection != NULL && connection->program->guest_notified != NULL)
		connection->program->guest_notified(vid);
}

#ifndef CV_DPDK_NO_GUEST_NOTIFY
// Whether the program notifies the guest itself, of what rte_vhost moved.
static bool guest_notify(int vid, uint16_t queue)
{
	const struct cv_connection *connection = connection_of(vid);

	return connection != NULL && connection->program->guest_notify != NULL &&
	       connection->program->guest_notify(vid, queue);
}
#endif

void cv_connection_leave(int vid)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection == NULL || connection->left)
		return;
	connection->left = true;
	log_left(connection);
}

const struct rte_vhost_device_ops *cv_connection_wrap(
	const char *path, const struct rte_vhost_device_ops *program)
{
	static const struct rte_vhost_device_ops wrapped = {
		.new_device = new_device,
		.destroy_device = destroy_device,
		.vring_state_changed = queue_changed,
		.features_changed = features_changed,
		.new_connection = new_connection,
		.destroy_connection = destroy_connection,
		.guest_notified = guest_notified,
#ifndef CV_DPDK_NO_GUEST_NOTIFY
		.guest_notify = guest_notify,
#endif
	};
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < SOCKETS_MAX && sockets[i].path != NULL; i++) {
		if (strcmp(sockets[i].path, path) == 0)
			break;
	}
	if (i < SOCKETS_MAX) {
		if (sockets[i].path == NULL)
			sockets[i].path = strdup(path);
		sockets[i].program = program;
	}
	pthread_mutex_unlock(&lock);
	if (i < SOCKETS_MAX)
		return &wrapped;
	fprintf(stderr, "convoy: vhost: %s: left to rte_vhost: more than %d sockets\n", path,
		SOCKETS_MAX);
	return program;
}
