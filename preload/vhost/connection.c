// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "connection.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PATHS_MAX 256

struct cv_connection_config cv_connection_config;
struct cv_connection *cv_connections[RTE_MAX_VHOST_DEVICE];

// Ended; freed when the next one takes its number. A thread of the program's may look at it until
// then.
static struct cv_connection *ended[RTE_MAX_VHOST_DEVICE];

static struct {
	char *path;
	const struct rte_vhost_device_ops *program;
} paths[PATHS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of paths

static struct cv_connection *connection_of(int vid)
{
	return vid >= 0 && vid < RTE_MAX_VHOST_DEVICE
		       ? __atomic_load_n(&cv_connections[vid], __ATOMIC_ACQUIRE)
		       : NULL;
}

static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection != NULL)
		cv_vhost_pause(&connection->vhost);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after_message(int vid, void *message)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection != NULL)
		cv_vhost_resume(&connection->vhost);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static void forget(struct cv_connection *connection)
{
	if (connection != NULL)
		free(connection->vhost.queues);
	free(connection);
}

static const struct rte_vhost_device_ops *ops_of(const char *path)
{
	const struct rte_vhost_device_ops *found = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < PATHS_MAX && paths[i].path != NULL; i++) {
		if (strcmp(paths[i].path, path) == 0)
			found = paths[i].program;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

// NULL: no memory, or it has no name.
static struct cv_connection *make(int vid)
{
	static const struct rte_vhost_user_extern_ops around = {before_message, after_message};
	struct cv_connection *connection = calloc(1, sizeof(*connection));
	char path[PATH_MAX];

	if (connection == NULL || rte_vhost_get_ifname(vid, path, sizeof(path)) != 0) {
		free(connection);
		return NULL;
	}
	connection->program = ops_of(path);
	connection->vhost.vid = vid;
	connection->vhost.pairs = CV_VHOST_PAIRS_MAX;
	// For messages.
	memccpy(connection->vhost.path, path, '\0', sizeof(connection->vhost.path) - 1);
	if (connection->program == NULL || cv_vhost_make_queues(&connection->vhost) != 0) {
		free(connection);
		return NULL;
	}
	for (uint16_t i = 0; i < CV_VHOST_PAIRS_MAX; i++) {
		connection->to[i].port = cv_connection_config.port;
		connection->from[i].port = cv_connection_config.port;
		connection->from[i].outer = cv_connection_config.outer;
	}
	forget(ended[vid]);
	ended[vid] = NULL;
	__atomic_store_n(&cv_connections[vid], connection, __ATOMIC_RELEASE);
	rte_vhost_extern_callback_register(vid, &around, NULL);
	return connection;
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
	if (features & CV_VHOST_NOT_OURS) {
		fprintf(stderr,
			"convoy: vhost: %s: left to rte_vhost: its guest negotiated offloads "
			"(features 0x%" PRIx64 "); turn them off there to have convoys\n",
			connection->vhost.path, features);
	} else {
		connection->vhost.running = true;
		__atomic_store_n(&connection->ours, true, __ATOMIC_RELEASE);
		cv_vhost_resume(&connection->vhost);
	}
	return connection->program->new_device != NULL ? connection->program->new_device(vid) : 0;
}

static void drop_packets(struct cv_connection *connection)
{
	for (uint16_t i = 0; i < connection->vhost.pairs; i++) {
		struct cv_vhost_queue *queue = &connection->vhost.queues[2 * i];

		// Who polls another queue of the device may be about to send what is held.
		rte_spinlock_lock(&queue->lock);
		cv_to_guest_drop(&connection->to[i]);
		rte_spinlock_unlock(&queue->lock);
		cv_from_guest_drop(&connection->from[i]);
	}
}

static void destroy_device(int vid)
{
	struct cv_connection *connection = connection_of(vid);

	cv_vhost_pause(&connection->vhost);
	connection->vhost.running = false;
	if (connection->program->destroy_device != NULL)
		connection->program->destroy_device(vid);
	// The program's threads have left it.
	__atomic_store_n(&connection->ours, false, __ATOMIC_RELEASE);
	drop_packets(connection);
}

static int queue_changed(int vid, uint16_t queue, int enable)
{
	struct cv_connection *connection = connection_of(vid);

	if (queue < 2 * connection->vhost.pairs) {
		connection->vhost.enabled[queue] = enable;
		cv_vhost_pause(&connection->vhost);
		cv_vhost_resume(&connection->vhost);
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

static void report(const struct cv_connection *connection)
{
	uint64_t packets[2] = {0}, frames = 0, convoys = 0, opened = 0, lost = 0, refused = 0;

	for (uint16_t i = 0; i < connection->vhost.pairs; i++) {
		for (unsigned way = 0; way < 2; way++)
			packets[way] +=
				connection->vhost.queues[2 * i + way].vring.counters.packets;
		frames += connection->from[i].frames;
		convoys += connection->from[i].convoys;
		opened += connection->to[i].opened;
		lost += connection->to[i].lost;
		refused += connection->from[i].refused;
	}
	fprintf(stderr,
		"convoy: vhost: %s: %" PRIu64 " packets from the guest in %" PRIu64
		" frames, %" PRIu64 " of them convoys; %" PRIu64 " packets to it, out of %" PRIu64
		" convoys and others; %" PRIu64 " lost that waited when it went; %" PRIu64
		" from it dropped that looked like convoys\n",
		connection->vhost.path, packets[1], frames, convoys, packets[0], opened, lost,
		refused);
}

static void destroy_connection(int vid)
{
	struct cv_connection *connection = connection_of(vid);

	if (connection == NULL)
		return; // turned away
	if (connection->program->destroy_connection != NULL)
		connection->program->destroy_connection(vid);
	report(connection);
	__atomic_store_n(&cv_connections[vid], NULL, __ATOMIC_RELEASE);
	ended[vid] = connection;
}

static void guest_notified(int vid)
{
	const struct cv_connection *connection = connection_of(vid);

	if (connection != NULL && connection->program->guest_notified != NULL)
		connection->program->guest_notified(vid);
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
	};
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PATHS_MAX && paths[i].path != NULL; i++) {
		if (strcmp(paths[i].path, path) == 0)
			break;
	}
	if (i < PATHS_MAX) {
		if (paths[i].path == NULL)
			paths[i].path = strdup(path);
		paths[i].program = program;
	}
	pthread_mutex_unlock(&lock);
	if (i < PATHS_MAX)
		return &wrapped;
	fprintf(stderr, "convoy: vhost: %s: left to rte_vhost: more than %d sockets\n", path,
		PATHS_MAX);
	return program;
}
