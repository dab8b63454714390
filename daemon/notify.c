// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/notify.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 253 // of one message

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// A path, or '@' and a name of the abstract namespace. The address's length, or 0.
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
	const size_t length = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof(address->sun_path))
		return 0;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, length);
	if (name[0] == '@')
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

// Signs of life come twice as often as they are waited for. False: the environment makes no sense.
static bool read_interval(uint64_t *interval_ns)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	unsigned long long value;
	char *end;

	*interval_ns = 0;
	if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
		return true;
	errno = 0;
	value = strtoull(usec, &end, 10);
	if (usec[0] < '0' || usec[0] > '9' || *end != '\0' || errno != 0 || value == 0 ||
		value > UINT64_MAX / 1000)
		return false;
	*interval_ns = value * 1000 / 2;
	return true;
}

int cv_notify_open(struct cv_notify *notify, struct cv_error *error)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t length;
	int rc;

	*notify = (struct cv_notify){.socket = -1};
	if (name == NULL)
		return 0;
	length = address_of(name, &address);
	if (length == 0) {
		cv_error_set(error,
			"NOTIFY_SOCKET: \"%s\": must be a path, or @ and a name; unset it if no "
			"service manager started this",
			name);
		return -EINVAL;
	}
	if (!read_interval(&notify->interval_ns)) {
		cv_error_set(error, "WATCHDOG_USEC: \"%s\": must be microseconds, 1 or more",
			getenv("WATCHDOG_USEC"));
		return -EINVAL;
	}
	notify->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (notify->socket < 0 ||
		connect(notify->socket, (const struct sockaddr *)&address, length) != 0) {
		rc = -errno;
		cv_error_set(error, "NOTIFY_SOCKET: \"%s\": %s", name, strerror(-rc));
		cv_notify_close(notify);
		return rc;
	}
	return 0;
}

void cv_notify_tell(const struct cv_notify *notify, const char *state)
{
	if (notify->socket >= 0)
		send(notify->socket, state, strlen(state), MSG_NOSIGNAL);
}

bool cv_notify_tell_fds(
	const struct cv_notify *notify, const char *state, const int *fds, unsigned count)
{
	struct iovec text = {(void *)(uintptr_t)state, strlen(state)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {.bytes = {0}};
	const struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int))};

	if (notify->socket < 0 || count > FDS_MAX)
		return false;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return sendmsg(notify->socket, &message, MSG_NOSIGNAL) == (ssize_t)text.iov_len;
}

// Has each worker ended a poll iteration since it was last remembered? If so, remembers again.
static bool workers_move(struct cv_notify *notify, const struct cv_node *node)
{
	uint64_t now[CV_WORKERS_MAX];

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		now[i] = __atomic_load_n(&node->workers[i].iterations, __ATOMIC_RELAXED);
		if (now[i] == notify->iterations[i])
			return false;
	}
	memcpy(notify->iterations, now, node->plan->workers_count * sizeof(now[0]));
	return true;
}

void cv_notify_alive(struct cv_notify *notify, const struct cv_node *node)
{
	uint64_t now;

	if (notify->interval_ns == 0 || (now = now_ns()) < notify->next_ns ||
		(node != NULL && !workers_move(notify, node)))
		return;
	notify->next_ns = now + notify->interval_ns;
	cv_notify_tell(notify, "WATCHDOG=1");
}

void cv_notify_close(struct cv_notify *notify)
{
	if (notify->socket >= 0)
		close(notify->socket);
	notify->socket = -1;
}
