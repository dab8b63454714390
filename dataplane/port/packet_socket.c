// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/packet_socket.h"

#include <limits.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#define NUMBER 0xffffu
#define FRAME_OVERHEAD 1024 // bytes that the kernel counts beside a slot: its own structures
#define FLAG(name) ((uint32_t)(name) << 16)

// The last group of this thread: the driver opens a port's queues one after another.
static _Thread_local struct {
	int first; // its first socket; -1: there is no group
	uint32_t requested; // what the driver asked for: number, kind and flags
	uint32_t given; // what the kernel made of it
} group = {.first = -1};

void cv_packet_socket_begin(void)
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

static int make_ring(int fd, const struct tpacket_req *ring)
{
	const uint64_t frames =
		(uint64_t)ring->tp_frame_nr * (ring->tp_frame_size + FRAME_OVERHEAD);
	// The kernel takes twice what it is told, and calls a socket writable below half of that.
	const int bytes = (int)RTE_MIN(frames, (uint64_t)INT_MAX / 2);
	const int rc =
		(int)syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_TX_RING, ring, sizeof(*ring));

	if (rc == 0 &&
		syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
		syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return rc;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	uint32_t fanout;
	struct tpacket_req ring;

	if (level == SOL_PACKET && name == PACKET_FANOUT && size == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		return join(fd, fanout);
	}
	if (level == SOL_PACKET && name == PACKET_TX_RING && size == sizeof(ring)) {
		memcpy(&ring, value, sizeof(ring));
		return make_ring(fd, &ring);
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
