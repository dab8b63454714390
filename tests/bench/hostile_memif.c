// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-hostile-memif SOCKET WHAT: the client of a memif port that costs its node as much as it can,
// for `convoy bench hostile`. Prints "ready" when its rings are in use, and stays until it is killed.
//
// The client agrees on memory and rings as any other does. What hurts lies in the rings before the
// server sees them; the client itself only moves its two indices, now and then, so that it takes next
// to nothing of the core that it shares with the tester.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "memif/session.h"

#define SLOTS (1u << CV_MEMIF_LOG2_MAX) // the largest ring there is
#define BUFFERS 256u // in turn: what a peer's caches hold
#define PACKET_BYTES 60
#define ANSWER_MS 5000
#define NAP_NS 200000 // no node takes a whole ring meanwhile

// What a ring is full of.
enum content {
	NOTHING,
	PACKETS, // what an honest peer has there
	EMPTY, // descriptors without a byte, that say that more follow
	BYTES, // a byte in each descriptor
	CHAINS, // the same, in packets as long as they may be
	ENDLESS, // the same, in a packet without an end
	NOWHERE, // outside of the shared memory
	WILD, // its index is further ahead than the ring has descriptors
};

// What a ring towards the client holds must not break it: a ring that stands still costs nothing.
static const struct attack {
	const char *name;
	enum content rings[CV_MEMIF_WAYS]; // to the server, to the client
} attacks[] = {
	{"honest", {NOTHING, PACKETS}},
	{"sending", {PACKETS, PACKETS}},
	{"silent", {NOTHING, NOTHING}},
	{"empty-buffers", {EMPTY, EMPTY}},
	{"full-chains", {CHAINS, BYTES}},
	{"endless-chains", {ENDLESS, BYTES}},
	{"tiny-buffers", {NOTHING, BYTES}},
	{"nowhere", {NOWHERE, PACKETS}},
	{"wild-indices", {WILD, PACKETS}},
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-hostile-memif: %s: %s\n", what, why);
	exit(1);
}

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (strcmp(attacks[i].name, name) == 0)
			return &attacks[i];
	die(name, "no such peer");
	return NULL;
}

static bool goes_on(enum content content, unsigned slot)
{
	return content == EMPTY || content == ENDLESS ||
	       (content == CHAINS && slot % CV_MEMIF_CHAIN_MAX + 1 < CV_MEMIF_CHAIN_MAX);
}

// The server writes the length of what it puts: all packets are alike, so that a buffer holds the next
// one, too.
static void lay(struct cv_memif_ring *ring, enum content content)
{
	for (unsigned i = 0; i < ring->size; i++)
		ring->shared->descriptors[i] = (struct cv_memif_descriptor){
			.flags = goes_on(content, i) ? CV_MEMIF_NEXT : 0,
			.region = content == NOWHERE ? CV_MEMIF_REGIONS_MAX : 0,
			.length = content == EMPTY                           ? 0
				  : content == PACKETS || content == NOWHERE ? PACKET_BYTES
									     : 1,
			.offset = ring->buffers_offset + i % BUFFERS * ring->stride,
		};
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		die(path, "too long for a socket");
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		die(path, strerror(errno));
	return fd;
}

// The server's next message.
static int receive(int fd, struct cv_memif_message *message)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int bytes;

	if (poll(&ready, 1, ANSWER_MS) != 1)
		die("the server", "no answer");
	bytes = cv_socket_receive(fd, message, sizeof(*message), NULL);
	if (bytes <= 0)
		die("the server", bytes == 0 ? "has left" : strerror(-bytes));
	return bytes;
}

// As far as the client's last word, with both rings laid out when the server first sees them.
static void negotiate(int fd, struct cv_memif_session *session, const struct attack *attack)
{
	struct cv_socket_fds none = {0};
	struct cv_memif_message message;
	struct cv_memif_reply reply;
	struct cv_error error;

	cv_memif_session_begin(session, &reply);
	do {
		const int bytes = receive(fd, &message);

		if (cv_memif_session_receive(session, &message, bytes, &none, &reply, &error) != 0)
			die("the server", error.text);
		for (unsigned i = 0; message.type == CV_MEMIF_HELLO && i < CV_MEMIF_WAYS; i++)
			lay(&session->rings[i], attack->rings[i]);
		if (cv_socket_send_with(fd, &reply.message, sizeof(reply.message), reply.fd) != 0)
			die("the server", "takes no message");
	} while (reply.message.type != CV_MEMIF_CONNECT);
	// The session is not told: it would offer buffers.
	receive(fd, &message);
	if (message.type != CV_MEMIF_CONNECTED)
		die("the server", "does not connect");
}

// All that has come back is the server's again.
static void refill(struct cv_memif_shared *shared, enum content content)
{
	const uint16_t tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);
	const uint16_t head = (uint16_t)(tail + SLOTS + (content == WILD));

	// Pairs with the server's acquire load of the index.
	__atomic_store_n(&shared->head, head, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	struct cv_memif_session session = {.client = true, .slots = SLOTS, .name = "hostile"};
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct attack *attack;

	if (argc != 3)
		die("usage", "bench-hostile-memif SOCKET WHAT");
	attack = find(argv[2]);
	negotiate(connect_to(argv[1]), &session, attack);
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (unsigned i = 0; i < CV_MEMIF_WAYS; i++)
			if (attack->rings[i] != NOTHING)
				refill(session.rings[i].shared, attack->rings[i]);
		nanosleep(&nap, NULL);
	}
}
