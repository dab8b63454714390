// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/fanout.h"

#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER 0xffffu
#define FLAG(name) ((uint32_t)(name) << 16)

// The last group of this thread: the driver opens a port's queues one after another.
static _Thread_local struct {
	int first; // its first socket; -1: there is no group
	uint32_t requested; // what the driver asked for: number, kind and flags
	uint32_t given; // what the kernel made of it
} group = {.first = -1};

void cv_fanout_begin(void)
{
	group.first = -1;
}

static int set(int fd, uint32_t fanout)
{
	return (int)syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof(fanout));
}

// What a socket would have to ask for to join the group of this one. 0: this is in none, is no
// packet socket, or is closed; the driver's flags make a group's never 0.
static uint32_t get(int fd)
{
	uint32_t fanout = 0;
	socklen_t size = sizeof(fanout);

	return getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, &size) == 0 ? fanout : 0;
}

static int join(int fd, uint32_t requested)
{
	// Read anew: the first socket may be closed by now, and its number another socket's.
	if (group.first >= 0 && group.requested == requested && get(group.first) == group.given)
		return set(fd, group.given);
	// The driver would have fragments reassembled, even for a single queue.
	if (set(fd, (requested & ~NUMBER & ~FLAG(PACKET_FANOUT_FLAG_DEFRAG)) |
			    FLAG(PACKET_FANOUT_FLAG_UNIQUEID)) != 0)
		return -1;
	group.first = fd;
	group.requested = requested;
	group.given = get(fd);
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	uint32_t fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && size == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		return join(fd, fanout);
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
