// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/mirror.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_common.h>

#define SECTION 0x0a0d0d0a
#define INTERFACE 1
#define PACKET 6
#define MAGIC 0x1a2b3c4d // in the writer's byte order
#define ETHERNET 1
#define OPTION_NAME 2 // of an interface
#define OPTION_RESOLUTION 9
#define OPTION_FLAGS 2 // of a packet
#define NANOSECONDS 9
#define INBOUND 1
#define OUTBOUND 2
#define GROWS_BY (256u << 10)

void cv_mirror_free(struct cv_mirror *mirror)
{
	free(mirror->bytes);
	*mirror = (struct cv_mirror){.bytes = NULL};
}

// Room for so many bytes more, zeroed up to four; NULL: there is none.
static uint8_t *take(struct cv_mirror *mirror, size_t bytes)
{
	const size_t padded = RTE_ALIGN_CEIL(bytes, (size_t)4);
	uint8_t *grown;

	if (mirror->used + padded > mirror->room) {
		const size_t room = mirror->used + padded + GROWS_BY;

		grown = mirror->failed ? NULL : realloc(mirror->bytes, room);
		if (grown == NULL) {
			mirror->failed = true;
			return NULL;
		}
		mirror->bytes = grown;
		mirror->room = room;
	}
	mirror->used += padded;
	memset(mirror->bytes + mirror->used - (padded - bytes), 0, padded - bytes);
	return mirror->bytes + mirror->used - padded;
}

static void put(struct cv_mirror *mirror, const void *from, size_t bytes)
{
	uint8_t *to = take(mirror, bytes);

	if (to != NULL && bytes > 0)
		memcpy(to, from, bytes);
}

static void put32(struct cv_mirror *mirror, uint32_t value)
{
	put(mirror, &value, sizeof(value));
}

static void put_option(struct cv_mirror *mirror, uint16_t code, const void *value, uint16_t bytes)
{
	const uint16_t head[2] = {code, bytes};

	put(mirror, head, sizeof(head));
	put(mirror, value, bytes);
}

// Begins a block; returns where.
static size_t begin_block(struct cv_mirror *mirror, uint32_t kind)
{
	const size_t at = mirror->used;

	put32(mirror, kind);
	put32(mirror, 0); // its length
	return at;
}

static void end_block(struct cv_mirror *mirror, size_t at)
{
	const uint32_t length = (uint32_t)(mirror->used + 4 - at);

	put32(mirror, length);
	if (!mirror->failed)
		memcpy(mirror->bytes + at + 4, &length, sizeof(length));
}

void cv_mirror_begin(struct cv_mirror *mirror, const struct cv_node *node)
{
	const uint16_t version[2] = {1, 0}, link[2] = {ETHERNET, 0};
	const uint8_t resolution = NANOSECONDS;
	const int64_t unknown = -1; // length of the section
	size_t at = begin_block(mirror, SECTION);

	put32(mirror, MAGIC);
	put(mirror, version, sizeof(version));
	put(mirror, &unknown, sizeof(unknown));
	end_block(mirror, at);
	for (unsigned i = 0; i < node->plan->ports_count; i++) {
		const char *name = node->plan->port_names[i];

		at = begin_block(mirror, INTERFACE);
		put(mirror, link, sizeof(link));
		put32(mirror, 0); // packets are not cut at any length in particular
		put_option(mirror, OPTION_NAME, name, (uint16_t)strlen(name));
		put_option(mirror, OPTION_RESOLUTION, &resolution, sizeof(resolution));
		put32(mirror, 0); // the end of the options
		end_block(mirror, at);
	}
}

bool cv_mirror_add(struct cv_mirror *mirror, const struct cv_trace_config *config,
	const struct cv_why_clock *clock, const struct cv_trace_record *record, bool as_it_left)
{
	const unsigned which = as_it_left;
	const uint64_t time = (uint64_t)cv_why_time(clock, record->begin);
	const uint32_t flags = as_it_left ? OUTBOUND : INBOUND;
	size_t at;

	if (record->snap[which] == 0 || (as_it_left && record->end != CV_TRACE_SENT))
		return false;
	at = begin_block(mirror, PACKET);
	put32(mirror, as_it_left ? record->out : record->in);
	put32(mirror, (uint32_t)(time >> 32));
	put32(mirror, (uint32_t)time);
	put32(mirror, record->snap[which]);
	put32(mirror, record->len[which]);
	put(mirror, record->bytes + which * config->snap, record->snap[which]);
	put_option(mirror, OPTION_FLAGS, &flags, sizeof(flags));
	put32(mirror, 0);
	end_block(mirror, at);
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int cv_mirror_send(struct cv_mirror *mirror, int socket, int wait_ms)
{
	struct pollfd writable = {.fd = socket, .events = POLLOUT};
	uint64_t now = now_ms();
	const uint64_t until = now + (uint64_t)wait_ms;
	size_t sent = 0;

	if (mirror->failed)
		return -ENOMEM;
	while (sent < mirror->used) {
		const ssize_t n = send(socket, mirror->bytes + sent, mirror->used - sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if ((now = now_ms()) >= until)
			return -EAGAIN;
		else
			poll(&writable, 1, (int)(until - now));
	}
	mirror->used = 0;
	return 0;
}
