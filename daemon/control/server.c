// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/control/server.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon/control/connection.h"
#include "dpdk/compat.h"

#define BACKLOG 64
#define PLACE_S 1 // to wait for the one who is to go
#define RETRY_NS 100000000 // when no client can be taken, for want of descriptors

enum place_state {
	FREE,
	OPEN, // its thread runs
	ENDED, // its thread has nothing more to do, and is to be joined
};

struct listener;

// A client's place. Its state and what follows are under the server's lock.
struct place {
	struct cv_connection connection;
	struct listener *listener;
	rte_thread_t thread;
	enum place_state state;
	bool busy; // a request is being carried out
	bool leaves; // it is to go
	bool served; // it has had an answer
	uint64_t since_ns; // it came, or had its last answer
	size_t reserved; // bytes of its request, if it is a long one
};

struct listener {
	struct cv_control *control;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	bool may_change;
	int fd; // -1: none
	bool runs;
	rte_thread_t thread;
	struct place places[CV_CONTROL_CLIENTS_MAX];
};

struct cv_control {
	const struct cv_control_config *config;
	pthread_mutex_t lock;
	pthread_cond_t changed; // a place is free, or nobody is busy there any more
	bool ends;
	size_t reserved; // bytes of long requests
	struct listener listeners[2]; // to change the node, and to read
};

static struct place *place_of(struct cv_connection *connection)
{
	return (struct place *)((char *)connection - offsetof(struct place, connection));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool begin_request(struct cv_connection *connection)
{
	struct place *place = place_of(connection);
	struct cv_control *control = place->listener->control;
	bool goes_on;

	pthread_mutex_lock(&control->lock);
	goes_on = !place->leaves && !control->ends;
	place->busy = goes_on;
	pthread_mutex_unlock(&control->lock);
	return goes_on;
}

static void end_request(struct cv_connection *connection)
{
	struct place *place = place_of(connection);
	struct cv_control *control = place->listener->control;

	pthread_mutex_lock(&control->lock);
	place->busy = false;
	place->served = true;
	place->since_ns = now_ns();
	pthread_cond_broadcast(&control->changed);
	pthread_mutex_unlock(&control->lock);
}

static bool reserve(struct cv_connection *connection, ssize_t bytes)
{
	struct cv_control *control = place_of(connection)->listener->control;
	bool has;

	pthread_mutex_lock(&control->lock);
	has = bytes <= 0 || control->reserved + (size_t)bytes <= CV_CONTROL_MEMORY_MAX;
	if (has)
		control->reserved += (size_t)bytes;
	pthread_mutex_unlock(&control->lock);
	return has;
}

static uint32_t serve(void *argument)
{
	struct place *place = argument;
	struct cv_control *control = place->listener->control;

	cv_connection_serve(&place->connection);
	pthread_mutex_lock(&control->lock);
	close(place->connection.fd); // under the lock: nobody else shuts down another one's
	place->connection.fd = -1;
	place->state = ENDED;
	pthread_cond_broadcast(&control->changed);
	pthread_mutex_unlock(&control->lock);
	return 0;
}

// Whether a client should go rather than another: who was never answered, then who is silent for longer.
static bool goes_before(const struct place *a, const struct place *b)
{
	return a->served != b->served ? !a->served : a->since_ns < b->since_ns;
}

static struct place *free_place(struct listener *listener)
{
	for (unsigned i = 0; i < CV_CONTROL_CLIENTS_MAX; i++)
		if (listener->places[i].state != OPEN)
			return &listener->places[i];
	return NULL;
}

// Has the client go that is silent for longest, unless one is about to.
static void make_place(struct listener *listener)
{
	struct place *victim = NULL;

	for (unsigned i = 0; i < CV_CONTROL_CLIENTS_MAX; i++) {
		struct place *place = &listener->places[i];

		if (place->leaves)
			return;
		if (!place->busy && (victim == NULL || goes_before(place, victim)))
			victim = place;
	}
	if (victim == NULL)
		return;
	victim->leaves = true;
	shutdown(victim->connection.fd, SHUT_RDWR);
}

// A place for one more client, with the lock held. NULL: all are busy.
static struct place *await_place(struct listener *listener)
{
	struct cv_control *control = listener->control;
	struct timespec until;
	struct place *place;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PLACE_S;
	while ((place = free_place(listener)) == NULL && !control->ends) {
		make_place(listener);
		if (pthread_cond_clockwait(
			    &control->changed, &control->lock, CLOCK_MONOTONIC, &until) != 0)
			break;
	}
	return place;
}

// Gives a client a thread. False: there is no place for it.
static bool take(struct listener *listener, int fd)
{
	struct cv_control *control = listener->control;
	const struct timeval patience = {.tv_sec = CV_CONTROL_SEND_S};
	struct place *place;
	int rc;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	pthread_mutex_lock(&control->lock);
	place = await_place(listener);
	if (place == NULL || control->ends) {
		pthread_mutex_unlock(&control->lock);
		return false;
	}
	if (place->state == ENDED)
		rte_thread_join(place->thread, NULL);
	*place = (struct place){
		.connection = {.fd = fd,
			.may_change = listener->may_change,
			.config = control->config,
			.begin = begin_request,
			.end = end_request,
			.reserve = reserve},
		.listener = listener,
		.since_ns = now_ns(),
		.state = OPEN,
	};
	rc = rte_thread_create_control(&place->thread, "convoy-client", serve, place);
	if (rc != 0)
		*place = (struct place){.state = FREE};
	pthread_mutex_unlock(&control->lock);
	return rc == 0;
}

static void turn_away(int fd)
{
	char *line = cv_rpc_refuse(CV_RPC_BUSY, "too many clients; try again");

	if (line != NULL)
		send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
	free(line);
	close(fd);
}

static bool is_to_end(struct cv_control *control)
{
	bool ends;

	pthread_mutex_lock(&control->lock);
	ends = control->ends;
	pthread_mutex_unlock(&control->lock);
	return ends;
}

static uint32_t listen_on(void *argument)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	struct listener *listener = argument;

	while (!is_to_end(listener->control)) {
		const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			if (!take(listener, fd))
				turn_away(fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}

// Makes a socket that nobody but this user connects to, unless its access says more.
static int listen_at(
	struct listener *listener, const struct cv_socket_access *access, struct cv_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t before;
	int rc = 0;

	memcpy(address.sun_path, listener->path, sizeof(address.sun_path));
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	// That of a node which was killed and had this process number: the folder's lock is ours.
	unlink(listener->path);
	before = umask(0177);
	if (listener->fd < 0 ||
		bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		rc = -errno;
	umask(before);
	if (rc == 0 && cv_socket_access_is_set(access))
		rc = cv_socket_access_give(
			access, listener->path, access->has_mode ? access->mode : 0660, error);
	if (rc == 0 && listen(listener->fd, BACKLOG) != 0)
		rc = -errno;
	if (rc != 0)
		cv_error_set(error, "%s: cannot listen there: %s", listener->path, strerror(-rc));
	return rc;
}

static int name_socket(struct listener *listener, const char *name, struct cv_error *error)
{
	const char *folder = listener->control->config->folder;
	const int length = snprintf(listener->path, sizeof(listener->path), "%s/%s", folder, name);

	if (length < (int)sizeof(listener->path))
		return 0;
	cv_error_set(error,
		"%s/%s: too long for a socket's path; set RUNTIME_DIRECTORY or XDG_RUNTIME_DIR to "
		"a shorter one",
		folder, name);
	return -ENAMETOOLONG;
}

struct cv_control *cv_control_open(const struct cv_control_config *config, struct cv_error *error)
{
	const struct cv_socket_access *access[] = {config->control, config->reading};
	const char *const names[] = {"control.sock", "read.sock"};
	struct cv_control *control = calloc(1, sizeof(*control));

	if (control == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	control->config = config;
	pthread_mutex_init(&control->lock, NULL);
	pthread_cond_init(&control->changed, NULL);
	for (unsigned i = 0; i < 2; i++)
		control->listeners[i] =
			(struct listener){.control = control, .may_change = i == 0, .fd = -1};
	for (unsigned i = 0; i < 2; i++) {
		struct listener *listener = &control->listeners[i];

		if (name_socket(listener, names[i], error) == 0 &&
			listen_at(listener, access[i], error) == 0)
			continue;
		cv_control_close(control);
		return NULL;
	}
	return control;
}

int cv_control_start(struct cv_control *control, struct cv_error *error)
{
	static const char *const names[] = {"convoy-control", "convoy-read"};

	for (unsigned i = 0; i < 2; i++) {
		struct listener *listener = &control->listeners[i];
		const int rc =
			rte_thread_create_control(&listener->thread, names[i], listen_on, listener);

		if (rc != 0) {
			cv_error_set(error, "no thread for %s: %s", listener->path, strerror(-rc));
			return rc;
		}
		listener->runs = true;
	}
	return 0;
}

// Has a client go: what it asked for is done, and it has a while to take the answer.
static void end_place(struct place *place)
{
	struct cv_control *control = place->listener->control;
	struct timespec until;
	bool in_time = true;

	pthread_mutex_lock(&control->lock);
	while (place->busy)
		pthread_cond_wait(&control->changed, &control->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PLACE_S;
	if (place->state == OPEN)
		shutdown(place->connection.fd, SHUT_RD);
	while (place->state == OPEN && in_time)
		in_time = pthread_cond_clockwait(
				  &control->changed, &control->lock, CLOCK_MONOTONIC, &until) == 0;
	if (place->state == OPEN)
		shutdown(place->connection.fd, SHUT_RDWR);
	pthread_mutex_unlock(&control->lock);
	rte_thread_join(place->thread, NULL);
}

static void end_places(struct listener *listener)
{
	for (unsigned i = 0; i < CV_CONTROL_CLIENTS_MAX; i++)
		if (listener->places[i].listener != NULL) // a client has been there
			end_place(&listener->places[i]);
}

void cv_control_close(struct cv_control *control)
{
	if (control == NULL)
		return;
	pthread_mutex_lock(&control->lock);
	control->ends = true;
	pthread_cond_broadcast(&control->changed);
	pthread_mutex_unlock(&control->lock);
	for (unsigned i = 0; i < 2; i++) {
		struct listener *listener = &control->listeners[i];

		if (listener->fd < 0)
			continue;
		shutdown(listener->fd, SHUT_RDWR); // wakes its thread
		if (listener->runs)
			rte_thread_join(listener->thread, NULL);
		close(listener->fd);
		end_places(listener);
	}
	pthread_cond_destroy(&control->changed);
	pthread_mutex_destroy(&control->lock);
	free(control);
}

const char *cv_control_path(const struct cv_control *control)
{
	return control->listeners[0].path;
}

const char *cv_control_reading_path(const struct cv_control *control)
{
	return control->listeners[1].path;
}
