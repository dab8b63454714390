// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-hostile-guest SOCKET WHAT [packed]: the guest of a vhost-user port that costs its node as much
// as it can, for `convoy bench hostile`. Prints "ready" when its rings are in use, and stays until it
// is killed.
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

#include "gen/port/vhost_user.h"

#define SLOTS 32768 // the largest ring there is
#define TABLE 32767 // descriptors in an indirect table
#define LONG_CHAIN 1024 // descriptors in a chain
#define FULL_CHAIN 64 // the most that convoyd takes
#define BUFFERS 256 // in turn: what a guest's caches hold
#define BUFFER_BYTES 2048
#define PACKET_BYTES (12 + 60) // behind the header of virtio-net
#define NAP_NS 200000 // no node takes a whole ring meanwhile

#define MRG_RXBUF 15
#define INDIRECT_DESC 28
#define VERSION_1 32
#define RING_PACKED 34

// Whose a packed descriptor is.
#define AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED (1u << VRING_PACKED_DESC_F_USED)

// What a ring is full of.
enum content {
	NOTHING,
	PACKETS, // what an honest guest has there
	EMPTY_TABLES, // indirect tables of descriptors without a byte
	LONG_CHAINS, // a byte in each descriptor
	FULL_CHAINS, // the same, of as many as are taken
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
	{"long-chains", {LONG_CHAINS, LONG_CHAINS}},
	{"full-chains", {FULL_CHAINS, FULL_CHAINS}},
	{"tiny-buffers", {BYTES, NOTHING}},
	{"nowhere", {NOWHERE, NOWHERE}},
};

union descriptor {
	struct vring_desc split;
	struct vring_packed_desc packed;
};

struct queue {
	union descriptor desc[SLOTS];
	union descriptor table[TABLE];
	struct {
		uint16_t flags, idx, ring[SLOTS], event;
	} avail; // of a packed ring: the first two words, where and whether to notify the guest
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
		queue->table[i].split = piece(
			queue->buffers, 0, flags | (i + 1 < TABLE ? VRING_DESC_F_NEXT : 0), i + 1);
	for (unsigned i = 0; i < SLOTS; i++) {
		queue->desc[i].split =
			piece(queue->table, sizeof(queue->table), VRING_DESC_F_INDIRECT, 0);
		queue->avail.ring[i] = (uint16_t)i;
	}
}

// How many descriptors a buffer has.
static unsigned descriptors(enum content content)
{
	return content == LONG_CHAINS ? LONG_CHAIN : content == FULL_CHAINS ? FULL_CHAIN : 1;
}

static void lay_chains(struct queue *queue, unsigned chain, unsigned flags)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const bool more = i % chain + 1 < chain;

		queue->desc[i].split =
			piece(queue->buffers, 1, flags | (more ? VRING_DESC_F_NEXT : 0), i + 1);
		queue->avail.ring[i] = (uint16_t)(i * chain % SLOTS);
	}
}

static void lay_plain(struct queue *queue, uint32_t bytes, unsigned flags, bool nowhere)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const uint8_t *at = nowhere ? NULL : queue->buffers[i % BUFFERS];

		queue->desc[i].split = piece(at, bytes, flags, 0);
		queue->avail.ring[i] = (uint16_t)i;
	}
}

static void lay(struct queue *queue, enum content content, bool to_guest)
{
	const unsigned flags = to_guest ? VRING_DESC_F_WRITE : 0;

	queue->avail.flags = VRING_AVAIL_F_NO_INTERRUPT;
	if (content == EMPTY_TABLES)
		lay_tables(queue, flags);
	else if (descriptors(content) > 1)
		lay_chains(queue, descriptors(content), flags);
	else if (content != NOTHING)
		lay_plain(queue,
			content == BYTES ? 1
			: to_guest       ? BUFFER_BYTES
					 : PACKET_BYTES,
			flags, content == NOWHERE);
}

// What was laid out for a split ring, for a packed one that begins with a wrap counter of 0.
static void pack(union descriptor *laid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct vring_desc split = laid[i].split;

		laid[i].packed = (struct vring_packed_desc){
			split.addr, split.len, (uint16_t)i, (uint16_t)(split.flags | USED)};
	}
}

// How far the guest is with a packed ring whose buffers are all alike.
struct lap {
	unsigned place, chain;
	bool wrap;
	uint32_t len;
	uint16_t flags; // of a buffer's first descriptor
};

static struct lap lay_packed(struct queue *queue, enum content content, bool to_guest)
{
	struct lap lap = {.chain = descriptors(content)};

	lay(queue, content, to_guest);
	lap.len = queue->desc[0].split.len;
	lap.flags = queue->desc[0].split.flags;
	queue->avail.flags = 0;
	queue->avail.idx = VRING_PACKED_EVENT_FLAG_DISABLE;
	if (content != NOTHING)
		pack(queue->desc, SLOTS);
	pack(queue->table, TABLE);
	return lap;
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

static void connect_rings(const char *path, struct memory *memory, int file, bool packed)
{
	const uint64_t features = 1ull << VERSION_1 | 1ull << MRG_RXBUF | 1ull << INDIRECT_DESC |
				  (uint64_t)packed << RING_PACKED;
	const int socket = vhost_user_connect(path);
	struct vhost_user user;

	check(socket, path);
	check(vhost_user_negotiate(&user, socket, features), "features");
	if (packed && !(user.features >> RING_PACKED & 1))
		die("features", "no packed rings");
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

// The same for a packed ring: each descriptor says whose it is.
static void refill_packed(struct queue *queue, struct lap *lap)
{
	for (;;) {
		struct vring_packed_desc *first = &queue->desc[lap->place].packed;
		const uint16_t flags = __atomic_load_n(&first->flags, __ATOMIC_ACQUIRE);

		if (!!(flags & AVAIL) != lap->wrap || !!(flags & USED) != lap->wrap)
			return;
		for (unsigned i = 1; i < lap->chain; i++)
			queue->desc[lap->place + i].packed.flags ^= AVAIL | USED;
		first->len = lap->len;
		first->id = (uint16_t)lap->place;
		// Pairs with the node's acquire load of the flags.
		__atomic_store_n(&first->flags, (uint16_t)(lap->flags | (lap->wrap ? USED : AVAIL)),
			__ATOMIC_RELEASE);
		lap->place = (lap->place + lap->chain) % SLOTS;
		lap->wrap ^= lap->place == 0;
	}
}

int main(int argc, char **argv)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct attack *attack;
	const bool packed = argc == 4 && strcmp(argv[3], "packed") == 0;
	struct memory *memory;
	struct lap laps[2];
	int file;

	if (argc != 3 && !packed)
		die("usage", "bench-hostile-guest SOCKET WHAT [packed]");
	attack = find(argv[2]);
	file = memfd_create("guest", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, sizeof(*memory)) != 0)
		die("memory", "not enough");
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED)
		die("memory", "not enough");
	for (unsigned i = 0; i < 2; i++) {
		if (packed)
			laps[i] = lay_packed(&memory->queues[i], attack->rings[i], i == 0);
		else
			lay(&memory->queues[i], attack->rings[i], i == 0);
	}
	connect_rings(argv[1], memory, file, packed);
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (unsigned i = 0; i < 2; i++) {
			if (attack->rings[i] == NOTHING)
				continue;
			if (packed)
				refill_packed(&memory->queues[i], &laps[i]);
			else
				refill(&memory->queues[i]);
		}
		nanosleep(&nap, NULL);
	}
}
