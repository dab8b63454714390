// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-hostile-guest SOCKET WHAT: the guest of a vhost-user port that costs its node as much as it
// can, for `convoy bench hostile`. Prints "ready" when its rings are in use, and stays until it is
// killed.
//
// What hurts lies in the rings from the start; the guest itself only makes the same buffers available
// again, now and then, so that it takes next to nothing of the core that it shares with the tester.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/virtio_ring.h>

#include "vhost_user.h"

#define SLOTS 32768 // the largest ring there is
#define TABLE 32767 // descriptors in an indirect table
#define CHAIN 1024 // descriptors in a chain
#define BUFFERS 256 // in turn: what a guest's caches hold
#define BUFFER_BYTES 2048
#define PACKET_BYTES (12 + 60) // behind the header of virtio-net
#define NAP_NS 200000 // no node takes a whole ring meanwhile

#define MRG_RXBUF 15
#define INDIRECT_DESC 28
#define VERSION_1 32

// What a ring is full of.
enum content {
	NOTHING,
	PACKETS, // what an honest guest has there
	EMPTY_TABLES, // indirect tables of descriptors without a byte
	CHAINS, // a byte in each descriptor
	BYTES, // a byte in each buffer
	NOWHERE, // outside of the guest's memory
};

static const struct attack {
	const char *name;
	enum content rings[2]; // to the guest, from the guest
} attacks[] = {
	{"honest", {PACKETS, NOTHING}},
	{"sending", {PACKETS, PACKETS}},
	{"silent", {NOTHING, NOTHING}},
	{"empty-tables", {EMPTY_TABLES, EMPTY_TABLES}},
	{"long-chains", {CHAINS, CHAINS}},
	{"tiny-buffers", {BYTES, NOTHING}},
	{"nowhere", {NOWHERE, NOWHERE}},
};

struct queue {
	struct vring_desc desc[SLOTS];
	struct vring_desc table[TABLE];
	struct {
		uint16_t flags, idx, ring[SLOTS], event;
	} avail;
	struct {
		uint16_t flags, idx;
		struct vring_used_elem ring[SLOTS];
		uint16_t event;
	} used __attribute__((aligned(4)));
	uint8_t buffers[BUFFERS][BUFFER_BYTES];
};

struct memory {
	struct queue queues[2] __attribute__((aligned(4096)));
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-hostile-guest: %s: %s\n", what, why);
	exit(1);
}

static struct vring_desc piece(const void *at, uint32_t bytes, unsigned flags, unsigned next)
{
	return (struct vring_desc){(uintptr_t)at, bytes, (uint16_t)flags, (uint16_t)next};
}

static void lay_tables(struct queue *queue, unsigned flags)
{
	for (unsigned i = 0; i < TABLE; i++)
		queue->table[i] = piece(
			queue->buffers, 0, flags | (i + 1 < TABLE ? VRING_DESC_F_NEXT : 0), i + 1);
	for (unsigned i = 0; i < SLOTS; i++) {
		queue->desc[i] =
			piece(queue->table, sizeof(queue->table), VRING_DESC_F_INDIRECT, 0);
		queue->avail.ring[i] = (uint16_t)i;
	}
}

static void lay_chains(struct queue *queue, unsigned flags)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const bool more = i % CHAIN + 1 < CHAIN;

		queue->desc[i] =
			piece(queue->buffers, 1, flags | (more ? VRING_DESC_F_NEXT : 0), i + 1);
		queue->avail.ring[i] = (uint16_t)(i * CHAIN % SLOTS);
	}
}

static void lay_plain(struct queue *queue, uint32_t bytes, unsigned flags, bool nowhere)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const uint8_t *at = nowhere ? NULL : queue->buffers[i % BUFFERS];

		queue->desc[i] = piece(at, bytes, flags, 0);
		queue->avail.ring[i] = (uint16_t)i;
	}
}

static void lay(struct queue *queue, enum content content, bool to_guest)
{
	const unsigned flags = to_guest ? VRING_DESC_F_WRITE : 0;

	queue->avail.flags = VRING_AVAIL_F_NO_INTERRUPT;
	if (content == EMPTY_TABLES)
		lay_tables(queue, flags);
	else if (content == CHAINS)
		lay_chains(queue, flags);
	else if (content != NOTHING)
		lay_plain(queue,
			content == BYTES ? 1
			: to_guest       ? BUFFER_BYTES
					 : PACKET_BYTES,
			flags, content == NOWHERE);
}

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (strcmp(attacks[i].name, name) == 0)
			return &attacks[i];
	die(name, "no such guest");
	return NULL;
}

static void check(int error, const char *what)
{
	if (error < 0)
		die(what, strerror(-error));
}

static void connect_rings(const char *path, struct memory *memory, int file)
{
	const int socket = vhost_user_connect(path);
	struct vhost_user user;

	check(socket, path);
	check(vhost_user_negotiate(
		      &user, socket, 1ull << VERSION_1 | 1ull << MRG_RXBUF | 1ull << INDIRECT_DESC),
		"features");
	check(vhost_user_share(&user, memory, sizeof(*memory), file), "memory");
	for (uint32_t i = 0; i < 2; i++) {
		struct queue *queue = &memory->queues[i];
		const struct vhost_user_vring ring = {
			.index = i,
			.size = SLOTS,
			.desc = queue->desc,
			.avail = &queue->avail,
			.used = &queue->used,
			.kick = eventfd(0, EFD_NONBLOCK),
			.call = eventfd(0, EFD_NONBLOCK),
		};

		check(vhost_user_vring_setup(&user, &ring), "rings");
		check(vhost_user_vring_enable(&user, i, true), "rings");
		check(vhost_user_vring_start(&ring), "kick");
	}
	check(vhost_user_ready(&user), "status");
}

// All that has come back is available again.
static void refill(struct queue *queue)
{
	const uint16_t used = __atomic_load_n(&queue->used.idx, __ATOMIC_ACQUIRE);

	// Pairs with the node's acquire load of the index.
	__atomic_store_n(&queue->avail.idx, (uint16_t)(used + SLOTS), __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct attack *attack;
	struct memory *memory;
	int file;

	if (argc != 3)
		die("usage", "bench-hostile-guest SOCKET WHAT");
	attack = find(argv[2]);
	file = memfd_create("guest", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, sizeof(*memory)) != 0)
		die("memory", "not enough");
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED)
		die("memory", "not enough");
	for (unsigned i = 0; i < 2; i++)
		lay(&memory->queues[i], attack->rings[i], i == 0);
	connect_rings(argv[1], memory, file);
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (unsigned i = 0; i < 2; i++)
			if (attack->rings[i] != NOTHING)
				refill(&memory->queues[i]);
		nanosleep(&nap, NULL);
	}
}
