// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vring/test_guest.h"

#define PACKED BIT(CV_VIRTIO_F_RING_PACKED)
#define ORDER BIT(CV_VIRTIO_F_IN_ORDER)
#define MERGE BIT(CV_VIRTIO_NET_F_MRG_RXBUF)
#define EVENT BIT(CV_VIRTIO_RING_F_EVENT_IDX)
#define V1 BIT(CV_VIRTIO_F_VERSION_1)
#define INDIRECT BIT(CV_VIRTIO_RING_F_INDIRECT_DESC)
#define W VRING_DESC_F_WRITE

static const uint64_t feature_sets[] = {0, V1, V1 | ORDER, V1 | MERGE, V1 | ORDER | MERGE,
	V1 | PACKED, V1 | PACKED | ORDER, V1 | PACKED | ORDER | MERGE};

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % below;
}

static uint32_t header_bytes(uint64_t features)
{
	return features & (V1 | MERGE | PACKED) ? 12 : 10;
}

// Packet number i: its length and its bytes.
static uint16_t length_of(unsigned i)
{
	return (uint16_t)(i % 5 == 0 ? 14 + i * 37 % 1600 : 60 + i % 9);
}

static uint8_t byte_of(unsigned i, uint32_t at)
{
	return (uint8_t)(i * 7 + at * 3 + (at >> 8));
}

static void assert_packet(const uint8_t *data, uint32_t len, unsigned i)
{
	assert_int_equal(len, length_of(i));
	for (uint32_t at = 0; at < len; at++) {
		if (data[at] != byte_of(i, at))
			fail_msg("packet %u: byte %u of %u differs", i, at, len);
	}
}

#define PLACES 16

// Where buffer i of up to 2 KiB lies: a few places, one of them across the two regions.
static uint64_t place_of(unsigned i, uint32_t bytes)
{
	const unsigned place = i % PLACES;

	if (place == 11)
		return GUEST_BASE + GUEST_REGION - 1 - draw(bytes - 1);
	return guest_data() + place * 0x1000 + (place > 11 ? 0x800 : 0);
}

// A buffer of one part or a chain of several, which follow each other in memory.
static uint16_t cut(struct guest_part *parts, uint64_t features, uint64_t at, uint32_t bytes,
	uint16_t flags, bool *indirect)
{
	uint16_t n = 1;

	*indirect = features & INDIRECT && draw(3) == 0;
	parts[0] = (struct guest_part){at, bytes, flags};
	while (n < 6 && draw(4) == 0 && parts[n - 1].len > 1) {
		const uint32_t first = 1 + draw(parts[n - 1].len - 1);

		parts[n] = (struct guest_part){
			parts[n - 1].address + first, parts[n - 1].len - first, flags};
		parts[n - 1].len = first;
		n++;
	}
	return n;
}

static void write_packet(struct guest *guest, uint64_t at, unsigned i)
{
	const uint32_t header = header_bytes(guest->features);
	uint8_t bytes[2048];

	memset(bytes, 0xee, header); // what stands there is no matter
	for (uint32_t j = 0; j < length_of(i); j++)
		bytes[header + j] = byte_of(i, j);
	guest_write(guest, at, bytes, header + length_of(i));
}

// Sends packets as long as there is room for them in ring and memory.
static unsigned send_some(struct guest *guest, unsigned next, unsigned end)
{
	uint32_t len;

	while (guest_take(guest, &len))
		assert_int_equal(len, 0);
	while (next < end && guest->made - guest->taken < PLACES) {
		const uint32_t bytes = header_bytes(guest->features) + length_of(next);
		const uint64_t at = place_of(next, bytes);
		struct guest_part parts[8];
		bool indirect;
		uint16_t n = cut(parts, guest->features, at, bytes, 0, &indirect);

		write_packet(guest, at, next);
		if (!guest_add(guest, parts, n, indirect))
			break;
		next++;
	}
	return next;
}

static void dequeue_all(uint64_t features)
{
	uint8_t buffers[16][2048], *to[16];
	unsigned sent = 0, got = 0;
	struct guest guest;
	uint16_t lens[16];

	for (unsigned i = 0; i < 16; i++)
		to[i] = buffers[i];
	assert_int_equal(guest_begin(&guest, features, 32, guest_fresh(features)), 0);
	while (got < 5000) {
		uint16_t n;

		sent = send_some(&guest, sent, 5000);
		n = cv_vring_dequeue(&guest.vring, to, 2048, lens, 16);
		assert_int_not_equal(n, 0);
		for (uint16_t i = 0; i < n; i++)
			assert_packet(buffers[i], lens[i], got + i);
		got += n;
	}
	assert_int_equal(guest.vring.counters.packets, 5000);
	assert_int_equal(guest.vring.counters.malformed, 0);
	assert_false(guest.vring.broken);
	guest_end(&guest);
}

static void dequeues_every_form(void **state)
{
	random_state = 1;
	for (size_t i = 0; i < sizeof(feature_sets) / sizeof(feature_sets[0]); i++) {
		dequeue_all(feature_sets[i]);
		dequeue_all(feature_sets[i] | INDIRECT);
	}
}

// Many plain packets at once, ring sizes and bursts that do not divide each other.
static void fill_plain(struct guest *guest, unsigned *sent)
{
	uint32_t len;

	while (guest_take(guest, &len))
		;
	while (guest->free_count > 0) {
		const struct guest_part part = {guest_data() + *sent % guest->size * 1700,
			header_bytes(guest->features) + length_of(*sent), 0};

		write_packet(guest, part.address, *sent);
		assert_true(guest_add(guest, &part, 1, false));
		(*sent)++;
	}
}

static void burst_all(uint64_t features, uint16_t size, uint16_t burst)
{
	static uint8_t buffers[256][2048];
	unsigned sent = 0, got = 0;
	struct guest guest;
	uint16_t lens[256];
	uint8_t *to[256];

	for (unsigned i = 0; i < 256; i++)
		to[i] = buffers[i];
	assert_int_equal(guest_begin(&guest, features, size, guest_fresh(features)), 0);
	while (got < 3000) {
		uint16_t n;

		fill_plain(&guest, &sent);
		n = cv_vring_dequeue(&guest.vring, to, 2048, lens, burst);
		assert_int_equal(n, burst < size ? burst : size);
		for (uint16_t i = 0; i < n; i++)
			assert_packet(buffers[i], lens[i], got + i);
		got += n;
	}
	guest_end(&guest);
}

static void dequeues_bursts(void **state)
{
	for (size_t i = 0; i < sizeof(feature_sets) / sizeof(feature_sets[0]); i++) {
		static const uint16_t bursts[] = {1, 31, 32, 33, 64, 65, 256};

		for (size_t j = 0; j < sizeof(bursts) / sizeof(bursts[0]); j++)
			burst_all(feature_sets[i], 64, bursts[j]);
		if (feature_sets[i] & PACKED)
			burst_all(feature_sets[i], 37, 24);
	}
}

// Packets lie in the buffers as in a convoy frame, and the views show them.
static void coalesce_all(uint64_t features)
{
	static uint8_t buffers[4][1640];
	struct cv_vring_buffer coalesced[4];
	unsigned sent = 0, got = 0;
	struct cv_view views[64];
	struct guest guest;

	assert_int_equal(guest_begin(&guest, features, 64, guest_fresh(features)), 0);
	while (got < 3000) {
		uint16_t used = 1 + draw(4), n, seen = 0;

		fill_plain(&guest, &sent);
		for (unsigned i = 0; i < 4; i++)
			coalesced[i] = (struct cv_vring_buffer){
				.data = buffers[i], .room = 1640, .coalesced_max = 1468};
		n = cv_vring_coalesce(&guest.vring, views, 64, coalesced, &used);
		assert_int_not_equal(n, 0);
		for (uint16_t i = 0; i < used; i++) {
			uint32_t at = 0;

			assert_in_range(coalesced[i].packets, 1, 255);
			for (uint16_t j = 0; j < coalesced[i].packets; j++, seen++) {
				assert_ptr_equal(views[seen].data, coalesced[i].data + at + 2);
				assert_int_equal(
					coalesced[i].data[at] << 8 | coalesced[i].data[at + 1],
					views[seen].len);
				assert_packet(views[seen].data, views[seen].len, got++);
				at += views[seen].len + 2u;
			}
			assert_int_equal(at, coalesced[i].len);
			assert_true(at <= (coalesced[i].packets > 1 ? coalesced[i].coalesced_max
								    : coalesced[i].room));
		}
		assert_int_equal(seen, n);
	}
	guest_end(&guest);
}

static void coalesces(void **state)
{
	random_state = 3;
	for (size_t f = 0; f < sizeof(feature_sets) / sizeof(feature_sets[0]); f++)
		coalesce_all(feature_sets[f]);
}

// The guest's receive buffers, of all forms and sizes.
static void post_some(struct guest *guest, struct guest_part *posted)
{
	const uint32_t header = header_bytes(guest->features);

	while (guest->made - guest->taken < PLACES) {
		const uint32_t bytes =
			guest->features & MERGE ? header + 200 + draw(1600) : header + 1700;
		const uint64_t at = place_of(guest->made, bytes);
		struct guest_part parts[8];
		bool indirect;
		uint16_t n = cut(parts, guest->features, at, bytes, W, &indirect);

		posted[guest->made % GUEST_SIZE_MAX] = (struct guest_part){at, bytes, W};
		if (!guest_add(guest, parts, n, indirect))
			break;
	}
}

// One packet out of what came back, or false.
static bool collect(struct guest *guest, const struct guest_part *posted, unsigned i)
{
	const uint32_t header = header_bytes(guest->features);
	uint8_t bytes[4096], head[12];
	uint32_t used, len = 0, total;
	const struct guest_part *part = &posted[guest->taken % GUEST_SIZE_MAX];
	uint16_t buffers = 1;

	if (!guest_take(guest, &used))
		return false;
	guest_read(guest, part->address, head, header);
	assert_memory_equal(head, (uint8_t[10]){0}, 10);
	if (header == 12)
		memcpy(&buffers, head + 10, 2);
	assert_in_range(buffers, 1, guest->features & MERGE ? 64 : 1);
	assert_in_range(used, header, part->len);
	guest_read(guest, part->address + header, bytes, used - header);
	total = used - header;
	while (--buffers > 0) {
		part = &posted[guest->taken % GUEST_SIZE_MAX];
		assert_true(guest_take(guest, &len));
		assert_in_range(len, 1, part->len);
		guest_read(guest, part->address, bytes + total, len);
		total += len;
	}
	assert_packet(bytes, total, i);
	return true;
}

static void enqueue_all(uint64_t features)
{
	struct guest_part posted[GUEST_SIZE_MAX];
	static uint8_t packets[8][2048];
	unsigned sent = 0, got = 0;
	struct guest guest;

	assert_int_equal(guest_begin(&guest, features, 32, guest_fresh(features)), 0);
	while (got < 5000) {
		struct cv_view views[8];
		uint16_t n = 1 + draw(8);

		post_some(&guest, posted);
		for (uint16_t i = 0; i < n; i++) {
			// The first byte is a tunnel's, which functions do not see.
			views[i] = (struct cv_view){.data = packets[i] + 1,
				.len = length_of(sent + i) - 1,
				.before = 1};
			for (uint32_t at = 0; at < length_of(sent + i); at++)
				packets[i][at] = byte_of(sent + i, at);
		}
		sent += cv_vring_enqueue(&guest.vring, views, n);
		while (collect(&guest, posted, got))
			got++;
		assert_int_equal(got, sent);
	}
	assert_int_equal(guest.vring.counters.packets, got);
	assert_int_equal(guest.vring.counters.malformed, 0);
	assert_int_equal(guest.vring.counters.too_long, 0);
	guest_end(&guest);
}

static void enqueues_every_form(void **state)
{
	random_state = 5;
	for (size_t i = 0; i < sizeof(feature_sets) / sizeof(feature_sets[0]); i++) {
		enqueue_all(feature_sets[i]);
		enqueue_all(feature_sets[i] | INDIRECT);
	}
}

// What a guest may not do, and what becomes of it.
enum form {
	FORM_CHAIN, // parts in the ring
	FORM_TABLE, // in an indirect table
};

static const struct {
	const char *description;
	uint64_t features;
	bool receive; // the device writes
	enum form form;
	uint16_t n;
	struct guest_part parts[4];
	uint64_t malformed, too_long; // counted
	bool lost; // the device moves on (always, but where there is no room yet)
} hostile[] = {
	{"a header without a packet", V1, false, FORM_CHAIN, 1, {{0x24000, 12, 0}}, 1, 0, true},
	{"less than a header", V1, false, FORM_CHAIN, 1, {{0x24000, 11, 0}}, 1, 0, true},
	{"nothing at all", V1, false, FORM_CHAIN, 1, {{0x24000, 0, 0}}, 1, 0, true},
	{"less than an Ethernet header", V1, false, FORM_CHAIN, 1, {{0x24000, 25, 0}}, 1, 0, true},
	{"longer than a buffer of ours", V1, false, FORM_CHAIN, 1, {{0x24000, 12 + 2049, 0}}, 0, 1,
		true},
	{"longer than any packet", V1, false, FORM_CHAIN, 1, {{0x24000, 0x11000, 0}}, 0, 1, true},
	{"behind its memory", V1, false, FORM_CHAIN, 1, {{0x50000, 100, 0}}, 1, 0, true},
	{"before its memory", V1, false, FORM_CHAIN, 1, {{0xffff, 100, 0}}, 1, 0, true},
	{"across the end of its memory", V1, false, FORM_CHAIN, 1, {{0x4ffff, 100, 0}}, 1, 0, true},
	{"an address that wraps", V1, false, FORM_CHAIN, 1, {{UINT64_MAX - 10, 100, 0}}, 1, 0,
		true},
	{"all lengths there are", V1, false, FORM_CHAIN, 1, {{0x24000, UINT32_MAX, 0}}, 0, 1, true},
	{"sends what we shall write", V1, false, FORM_CHAIN, 1, {{0x24000, 100, W}}, 1, 0, true},
	{"a chain that turns to writing", V1, false, FORM_CHAIN, 2,
		{{0x24000, 40, 0}, {0x25000, 100, W}}, 1, 0, true},
	{"a table that was not negotiated", V1, false, FORM_TABLE, 1, {{0x24000, 100, 0}}, 1, 0,
		true},
	{"a table in a table", V1 | INDIRECT, false, FORM_TABLE, 1,
		{{0x24000, 64, VRING_DESC_F_INDIRECT}}, 1, 0, true},
	{"a chain out of its memory", V1, false, FORM_CHAIN, 2, {{0x24000, 40, 0}, {0x9, 100, 0}},
		1, 0, true},
	{"a chain that is too long for us", V1, false, FORM_CHAIN, 2,
		{{0x24000, 1000, 0}, {0x25000, 2000, 0}}, 0, 1, true},
	{"a receive buffer behind its memory", V1, true, FORM_CHAIN, 1, {{0x50000, 100, W}}, 1, 0,
		true},
	{"a receive buffer to be read", V1, true, FORM_CHAIN, 1, {{0x24000, 100, 0}}, 1, 0, true},
	{"a receive buffer for less than a header", V1, true, FORM_CHAIN, 1, {{0x24000, 11, W}}, 0,
		1, true},
	{"a receive buffer too small", V1, true, FORM_CHAIN, 1, {{0x24000, 71, W}}, 0, 1, true},
	{"a receive buffer of half a chain", V1, true, FORM_CHAIN, 2,
		{{0x24000, 40, W}, {0x9, 100, W}}, 1, 0, true},
	{"mergeable buffers too small yet", V1 | MERGE, true, FORM_CHAIN, 1, {{0x24000, 71, W}}, 0,
		0, false},
	{"mergeable, and the second is none", V1 | MERGE, true, FORM_CHAIN, 1, {{0x9, 71, W}}, 1, 0,
		true},
};

// The bad buffer, then a good one: it gets through.
static void guests_lie(void **state)
{
	for (size_t row = 0; row < sizeof(hostile) / sizeof(hostile[0]); row++) {
		for (unsigned packed = 0; packed < 2; packed++) {
			const uint64_t features = hostile[row].features | (packed ? PACKED : 0);
			static uint8_t buffer[4][2048];
			uint8_t *to[4] = {buffer[0], buffer[1], buffer[2], buffer[3]};
			const bool receive = hostile[row].receive;
			const struct guest_part good = {0x2a000, 12 + 60, receive ? W : 0};
			struct cv_view view = {.data = buffer[0], .len = 60};
			struct cv_vring_counters *counters;
			struct guest guest;
			uint16_t lens[4];
			uint32_t len;

			assert_int_equal(
				guest_begin(&guest, features, 8, guest_fresh(features)), 0);
			counters = &guest.vring.counters;
			assert_true(guest_add(&guest, hostile[row].parts, hostile[row].n,
				hostile[row].form == FORM_TABLE));
			if (receive)
				assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1),
					hostile[row].lost);
			else
				assert_int_equal(
					cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
			if (counters->malformed != hostile[row].malformed ||
				counters->too_long != hostile[row].too_long)
				fail_msg("%s: %lu malformed, %lu too long",
					hostile[row].description, counters->malformed,
					counters->too_long);
			assert_int_equal(counters->packets, 0);
			assert_false(guest.vring.broken);
			if (receive && hostile[row].malformed == 0 && hostile[row].lost) {
				// The buffer is still the next, and can do with less.
				guest_end(&guest);
				continue;
			}
			assert_true(guest_add(&guest, &good, 1, false));
			if (receive)
				assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 1);
			else
				assert_int_equal(
					cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 1);
			assert_int_equal(counters->packets, 1);
			assert_true(guest_take(&guest, &len));
			assert_true(guest_take(&guest, &len));
			guest_end(&guest);
		}
	}
}

#define AFTER 1000 // bytes behind a buffer's room: none of them may change

static void assert_untouched(const uint8_t *bytes)
{
	for (unsigned i = 0; i < AFTER; i++)
		assert_int_equal(bytes[i], 0xa5);
}

static void take_beside_huge(struct guest *guest, bool coalesces)
{
	static uint8_t buffers[4][1500 + AFTER];
	uint8_t *to[4] = {buffers[0], buffers[1], buffers[2], buffers[3]};
	struct cv_vring_buffer coalesced[4];
	struct cv_view views[4];
	uint16_t lens[4], used = 4;

	memset(buffers, 0xa5, sizeof(buffers));
	for (unsigned i = 0; i < 4; i++)
		coalesced[i] = (struct cv_vring_buffer){
			.data = to[i], .room = 1500, .coalesced_max = 1468};
	if (coalesces) {
		assert_int_equal(cv_vring_coalesce(&guest->vring, views, 4, coalesced, &used), 2);
		for (unsigned i = 0; i < 2; i++)
			assert_packet(views[i].data, views[i].len, i);
	} else {
		assert_int_equal(cv_vring_dequeue(&guest->vring, to, 1500, lens, 4), 2);
		for (unsigned i = 0; i < 2; i++)
			assert_packet(to[i], lens[i], i);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_untouched(&buffers[i][1500]);
}

// Between two packets, one whose length makes a sum of 32 bits small: any of the last ones.
static void a_length_of_nearly_4_gib_is_too_long(void **state)
{
	static const uint64_t layouts[] = {V1, V1 | PACKED};

	for (unsigned row = 0; row < 2 * 2 * 2 * 300; row++) {
		const uint64_t features = layouts[row & 1];
		const bool chained = row & 4;
		const struct guest_part huge[] = {
			{GUEST_HUGE, UINT32_MAX - row / 8, 0}, {GUEST_HUGE, 1, 0}};
		struct guest guest;

		assert_int_equal(guest_begin(&guest, features, 16, guest_fresh(features)), 0);
		assert_true(guest_add_huge(&guest));
		for (unsigned i = 0; i < 2; i++) {
			const struct guest_part part = {0x24000 + 0x1000 * i, 12 + length_of(i), 0};

			write_packet(&guest, part.address, i);
			assert_true(guest_add(&guest, &part, 1, false));
			if (i == 0)
				assert_true(guest_add(&guest, huge, chained ? 2 : 1, false));
		}
		take_beside_huge(&guest, row & 2);
		assert_int_equal(guest.vring.counters.too_long, 1);
		assert_int_equal(guest.vring.counters.malformed, 0);
		guest_end(&guest);
	}
}

static void rings_lie(void **state)
{
	const struct guest_part part = {0x24000, 100, 0};
	uint8_t buffer[2048], *to[4] = {buffer, buffer, buffer, buffer};
	struct guest guest;
	uint16_t lens[4];
	uint32_t len;

	// More buffers than there are descriptors.
	assert_int_equal(guest_begin(&guest, V1, 8, guest_fresh(V1)), 0);
	guest.vring.avail->idx = 9;
	assert_int_equal(cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
	assert_true(guest.vring.broken);
	guest_end(&guest);
	// A descriptor that there is not.
	assert_int_equal(guest_begin(&guest, V1, 8, guest_fresh(V1)), 0);
	assert_true(guest_add(&guest, &part, 1, false));
	guest.vring.avail->ring[0] = 8;
	assert_int_equal(cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
	assert_true(guest.vring.broken);
	guest_end(&guest);
	// A chain to a descriptor that there is not, and one around in a circle.
	for (uint16_t next = 0; next < 9; next += 8) {
		assert_int_equal(guest_begin(&guest, V1, 8, guest_fresh(V1)), 0);
		assert_true(guest_add(&guest, &part, 1, false));
		guest.vring.desc[0].flags = VRING_DESC_F_NEXT;
		guest.vring.desc[0].next = next;
		assert_int_equal(cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
		assert_int_equal(guest.vring.counters.malformed, 1);
		assert_true(guest_take(&guest, &len));
		guest_end(&guest);
	}
	// A packed chain that has no end.
	assert_int_equal(guest_begin(&guest, V1 | PACKED, 8, guest_fresh(PACKED)), 0);
	for (unsigned i = 0; i < 8; i++)
		guest.vring.packed[i] =
			(struct cv_vring_packed){0x24000, 100, 0, VRING_DESC_F_NEXT | 1u << 7};
	assert_int_equal(cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
	assert_true(guest.vring.broken);
	guest_end(&guest);
	// A table of half a descriptor, none, or behind its memory.
	for (unsigned i = 0; i < 3; i++) {
		const struct guest_part tables[] = {{0x24000, 17, VRING_DESC_F_INDIRECT},
			{0x24000, 0, VRING_DESC_F_INDIRECT}, {0x4fff8, 32, VRING_DESC_F_INDIRECT}};

		for (unsigned packed = 0; packed < 2; packed++) {
			const uint64_t features = V1 | INDIRECT | (packed ? PACKED : 0);

			assert_int_equal(
				guest_begin(&guest, features, 8, guest_fresh(features)), 0);
			assert_true(guest_add(&guest, &tables[i], 1, false));
			assert_int_equal(cv_vring_dequeue(&guest.vring, to, 2048, lens, 4), 0);
			assert_int_equal(guest.vring.counters.malformed, 1);
			assert_false(guest.vring.broken);
			guest_end(&guest);
		}
	}
}

// Forms of a buffer that make a device look at many descriptors for nothing.
enum costly {
	COSTLY_TABLE, // an indirect table of empty descriptors
	COSTLY_CHAIN, // the same in the ring
	COSTLY_SMALL, // mergeable buffers for hardly more than a header
	COSTLY_LONG, // the longest chains that are allowed, of a byte each
	COSTLY_FORMS,
};

#define COSTLY_AT (GUEST_BASE + GUEST_REGION) // of the tables
#define LONGEST 64 // descriptors of a chain

static uint64_t costly_table(const struct guest *guest, uint32_t bytes, uint16_t n, uint16_t flags)
{
	struct guest_part parts[2048];

	for (uint16_t i = 0; i < n; i++)
		parts[i] = (struct guest_part){0x24000 + 8 * i, bytes, flags};
	guest_put_table(guest, COSTLY_AT, parts, n);
	return COSTLY_AT;
}

// Fills the ring with such buffers.
static void fill_costly(struct guest *guest, enum costly form, uint16_t flags)
{
	struct guest_part parts[LONGEST];
	uint16_t n = 1;

	switch (form) {
	case COSTLY_TABLE:
		parts[0] = (struct guest_part){
			costly_table(guest, 0, 2048, flags), 16 * 2048, VRING_DESC_F_INDIRECT};
		break;
	case COSTLY_LONG:
		parts[0] = (struct guest_part){costly_table(guest, 1, LONGEST, flags), 16 * LONGEST,
			VRING_DESC_F_INDIRECT};
		break;
	case COSTLY_CHAIN:
		for (n = 0; n < LONGEST; n++)
			parts[n] = (struct guest_part){0x24000, 0, flags};
		break;
	default:
		parts[0] = (struct guest_part){0x24000, 13, flags};
	}
	while (guest_add(guest, parts, n, false))
		;
}

static void take_back(struct guest *guest)
{
	uint32_t len;

	while (guest_take(guest, &len))
		;
}

#define PUT_STEPS (CV_VRING_PUT_STEPS + 2 * (LONGEST + 1)) // and the packet that goes beyond
#define TAKE_STEPS (CV_VRING_STEPS_MAX + LONGEST + 1 + CV_VRING_STEPS_MALFORMED)

// How many descriptors calls of one poll iteration look at, and that the guest's own packets pay.
static void costs_no_more(uint64_t features, enum costly form)
{
	static uint8_t packet[1500], buffers[64][2048];
	struct cv_view views[256];
	struct guest guest;
	uint8_t *to[64];
	uint16_t lens[64];

	for (unsigned i = 0; i < 256; i++)
		views[i] = (struct cv_view){.data = packet, .len = 60};
	for (unsigned i = 0; i < 64; i++)
		to[i] = buffers[i];
	assert_int_equal(guest_begin(&guest, features, 256, guest_fresh(features)), 0);
	fill_costly(&guest, form, 0);
	for (unsigned round = 0; round < 20; round++) {
		const uint64_t before = guest.vring.counters.steps;

		cv_vring_dequeue(&guest.vring, to, 2048, lens, 64);
		assert_in_range(guest.vring.counters.steps - before, 0, TAKE_STEPS);
		take_back(&guest);
		fill_costly(&guest, form, 0);
	}
	guest_end(&guest);
	assert_int_equal(guest_begin(&guest, features, 256, guest_fresh(features)), 0);
	fill_costly(&guest, form, W);
	for (unsigned round = 0; round < 20; round++) {
		const uint64_t before = guest.vring.counters.steps;

		cv_vring_enqueue(&guest.vring, views, 256);
		assert_in_range(guest.vring.counters.steps - before, 0,
			PUT_STEPS + 256 * CV_VRING_PUT_STEPS_OF(60));
		take_back(&guest);
		fill_costly(&guest, form, W);
	}
	guest_end(&guest);
}

static void no_call_costs_more_than_its_budget(void **state)
{
	static const uint64_t sets[] = {V1, V1 | MERGE, V1 | PACKED, V1 | PACKED | MERGE};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		for (enum costly form = 0; form < COSTLY_FORMS; form++)
			costs_no_more(sets[i] | INDIRECT, form);
	}
}

// Buffers as drivers have them, in two descriptors behind a table, lose nothing to the budget.
static void common_buffers_are_within_the_budget(void **state)
{
	for (unsigned packed = 0; packed < 2; packed++) {
		const uint64_t features = V1 | INDIRECT | (packed ? PACKED : 0);
		static uint8_t packet[60];
		struct cv_view views[256];
		struct guest guest;

		assert_int_equal(guest_begin(&guest, features, 256, guest_fresh(features)), 0);
		for (unsigned i = 0; i < 256; i++) {
			const struct guest_part parts[] = {{0x24000, 12, W}, {0x25000, 1514, W}};

			views[i] = (struct cv_view){.data = packet, .len = sizeof(packet)};
			assert_true(guest_add(&guest, parts, 2, true));
		}
		assert_int_equal(cv_vring_enqueue(&guest.vring, views, 256), 256);
		assert_int_equal(guest.vring.counters.packets, 256);
		guest_end(&guest);
	}
}

// Buffers that are too small together are looked at again when there is one more, not before.
static void too_little_room_is_remembered(void **state)
{
	for (unsigned packed = 0; packed < 2; packed++) {
		const uint64_t features = V1 | MERGE | (packed ? PACKED : 0);
		const struct guest_part part = {0x24000, 100, W};
		static uint8_t packet[1000];
		const struct cv_view view = {.data = packet, .len = sizeof(packet)};
		const struct cv_view shorter = {.data = packet, .len = 180};
		struct guest guest;
		uint64_t steps;

		assert_int_equal(guest_begin(&guest, features, 16, guest_fresh(features)), 0);
		for (unsigned buffers = 0; buffers < 10; buffers++) {
			assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 0);
			steps = guest.vring.counters.steps;
			for (unsigned i = 0; i < 64; i++)
				assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 0);
			assert_int_equal(guest.vring.counters.steps, steps);
			assert_true(guest_add(&guest, &part, 1, false));
		}
		// What needs less is put, and what is left then is too little again until it is not.
		assert_int_equal(cv_vring_enqueue(&guest.vring, &shorter, 1), 1);
		assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 0);
		for (unsigned buffers = 8; buffers < 11; buffers++)
			assert_true(guest_add(&guest, &part, 1, false));
		assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 1);
		assert_int_equal(guest.vring.counters.packets, 2);
		guest_end(&guest);
	}
}

// The longest chain gives a packet; a longer one is malformed, and in the packed ring its end.
static void chains_are_bounded(void **state)
{
	for (unsigned row = 0; row < 8; row++) {
		const bool packed = row & 1, table = row & 2, longer = row & 4;
		const uint64_t features = V1 | INDIRECT | (packed ? PACKED : 0);
		const uint16_t n = LONGEST + longer;
		uint8_t buffer[2048], *to = buffer;
		struct guest_part parts[LONGEST + 1];
		struct guest guest;
		uint16_t len;

		for (uint16_t i = 0; i < n; i++)
			parts[i] = (struct guest_part){0x24000 + 8 * i, i < LONGEST ? 1 : 0, 0};
		assert_int_equal(guest_begin(&guest, features, 128, guest_fresh(features)), 0);
		if (table) {
			guest_put_table(&guest, COSTLY_AT, parts, n);
			parts[0] = (struct guest_part){COSTLY_AT, 16 * n, VRING_DESC_F_INDIRECT};
		}
		assert_true(guest_add(&guest, parts, table ? 1 : n, false));
		assert_int_equal(cv_vring_dequeue(&guest.vring, &to, 2048, &len, 1), !longer);
		assert_int_equal(guest.vring.broken, longer && packed && !table);
		assert_int_equal(guest.vring.counters.malformed, longer && !guest.vring.broken);
		guest_end(&guest);
	}
}

// A packed descriptor of 10 bytes for the device to write to, as available at one pass around the
// ring.
static struct cv_vring_packed writable(bool wrap, bool chained)
{
	return (struct cv_vring_packed){0x24000, 10, 0,
		(uint16_t)(W | (chained ? VRING_DESC_F_NEXT : 0) | (wrap ? 1u << 7 : 1u << 15))};
}

static void assert_inside(const struct guest *guest)
{
	assert_true(guest->vring.next_avail < guest->size);
	assert_true(guest->vring.next_used < guest->size);
}

// A packet over two chains, of 7 and of 8 descriptors, in a ring that has 8.
static void chains_overlap(void **state)
{
	const struct cv_vring_base base = {0x8000 | 5, 0x8000 | 5};
	uint8_t packet[110] = {0};
	const struct cv_view view = {.data = packet, .len = sizeof(packet)};
	struct guest guest;

	assert_int_equal(guest_begin(&guest, V1 | PACKED | MERGE, 8, base), 0);
	for (uint16_t i = 0; i < 8; i++)
		guest.vring.packed[i] = writable(i >= 5, i != 3);
	assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 0);
	assert_true(guest.vring.broken);
	assert_inside(&guest);
	guest_end(&guest);
}

struct hurry {
	struct guest guest;
	bool stop; // atomic
};

// Makes the one descriptor available, for this pass around the ring and for the next, over and
// over.
static void *hurry(void *argument)
{
	struct hurry *hurry = argument;
	struct cv_vring_packed *packed = hurry->guest.vring.packed;
	uint16_t flags = 1u << 7;

	while (!__atomic_load_n(&hurry->stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(&packed->len, 100, __ATOMIC_RELAXED); // the device writes 0
		__atomic_store_n(&packed->flags, flags, __ATOMIC_RELAXED);
		flags ^= 1u << 7 | 1u << 15;
	}
	return NULL;
}

// Whatever a guest writes while its ring is read, no burst takes more than the ring has.
static void no_more_than_the_ring_has(void **state)
{
	struct hurry hurry_up = {.stop = false};
	struct guest *guest = &hurry_up.guest;
	uint8_t buffer[2048], *to[64];
	uint16_t lens[64];
	pthread_t thread;

	for (unsigned i = 0; i < 64; i++)
		to[i] = buffer;
	assert_int_equal(guest_begin(guest, V1 | PACKED, 1, guest_fresh(PACKED)), 0);
	guest->vring.packed[0] = (struct cv_vring_packed){0x24000, 100, 0, 0};
	assert_int_equal(pthread_create(&thread, NULL, hurry, &hurry_up), 0);
	for (unsigned i = 0; i < 50000000 && guest->vring.next_avail == 0 &&
			     guest->vring.counters.packets < 200000;
		i++)
		cv_vring_dequeue(&guest->vring, to, 2048, lens, 64);
	__atomic_store_n(&hurry_up.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_inside(guest);
	guest_end(guest);
}

static void refuses_impossible_rings(void **state)
{
	static const struct {
		const char *description;
		uint16_t size;
		int64_t desc, avail, used; // moved by; INT64_MAX: not there
		bool packed, split; // refused
	} rows[] = {
		{"as it should be", 8, 0, 0, 0, false, false},
		{"no descriptors", 0, 0, 0, 0, true, true},
		{"not a power of two", 12, 0, 0, 0, false, true},
		{"more than there may be", 32769, 0, 0, 0, true, true},
		{"all that 16 bits can say", 65535, 0, 0, 0, true, true},
		{"descriptors not aligned", 8, 8, 0, 0, true, true},
		{"avail ring not aligned", 8, 0, 1, 0, true, true},
		{"used ring not aligned", 8, 0, 0, 2, true, true},
		{"no descriptors there", 8, INT64_MAX, 0, 0, true, true},
		{"no avail ring there", 8, 0, INT64_MAX, 0, true, true},
		{"no used ring there", 8, 0, 0, INT64_MAX, true, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned packed = 0; packed < 2; packed++) {
			const bool refused = packed ? rows[i].packed : rows[i].split;
			struct guest guest;
			int64_t at[3] = {rows[i].desc, rows[i].avail, rows[i].used};
			uint8_t *parts[3];

			guest_begin(&guest, V1, 8, guest_fresh(V1));
			parts[0] = (uint8_t *)guest.vring.desc;
			parts[1] = (uint8_t *)guest.vring.avail;
			parts[2] = (uint8_t *)guest.vring.used;
			for (unsigned j = 0; j < 3; j++)
				parts[j] = at[j] == INT64_MAX ? NULL : parts[j] + at[j];
			guest.vring.desc = (struct vring_desc *)parts[0];
			guest.vring.avail = (struct vring_avail *)parts[1];
			guest.vring.used = (struct vring_used *)parts[2];
			guest.vring.size = rows[i].size;
			if (cv_vring_begin(&guest.vring, V1 | (packed ? PACKED : 0),
				    guest_fresh(packed ? PACKED : 0)) != (refused ? -EINVAL : 0))
				fail_msg(
					"%s, %s", rows[i].description, packed ? "packed" : "split");
			guest_end(&guest);
		}
	}
}

// Where a ring is to go on: any place of the split ring, only one that there is of the packed ring.
static void bases_are_checked(void **state)
{
	static const struct {
		uint16_t size;
		struct cv_vring_base base;
		bool packed; // refused
	} rows[] = {
		{8, {7, 7}, false},
		{8, {0x8007, 0x8007}, false},
		{8, {8, 0}, true},
		{8, {0, 8}, true},
		{8, {0xffff, 0x8000}, true},
		{37, {36, 0x8024}, false},
		{37, {37, 0}, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct guest guest;

		guest_begin(&guest, V1, 8, guest_fresh(V1));
		guest.vring.size = rows[i].size;
		assert_int_equal(cv_vring_begin(&guest.vring, V1 | PACKED, rows[i].base),
			rows[i].packed ? -EINVAL : 0);
		if ((rows[i].size & (rows[i].size - 1)) == 0)
			assert_int_equal(cv_vring_begin(&guest.vring, V1, rows[i].base), 0);
		guest_end(&guest);
	}
}

// An area of its own, which is all of a region.
static void *exactly(struct guest *guest, size_t bytes)
{
	void *memory = NULL;

	assert_int_equal(posix_memalign(&memory, 64, bytes), 0);
	memset(memory, 0, bytes);
	guest->memory.regions[guest->memory.count] =
		(struct cv_guest_region){GUEST_HUGE * (guest->memory.count + 1ull), bytes, memory};
	guest->memory.count++;
	return memory;
}

static void use_all_of(struct guest *guest, uint64_t features, uint16_t size)
{
	static uint8_t buffers[64][256];
	uint8_t *to[64];
	uint16_t lens[64];

	for (unsigned i = 0; i < 64; i++)
		to[i] = buffers[i];
	for (unsigned round = 0; round < 200; round++) {
		const struct guest_part part = {0x24000, 12 + 60, 0};

		while (guest_add(guest, &part, 1, false))
			;
		assert_int_equal(
			cv_vring_dequeue(&guest->vring, to, 256, lens, 64), size < 64 ? size : 64);
		cv_vring_notify(&guest->vring);
		take_back(guest);
	}
}

// No more of the three areas is touched than VIRTIO says there is (2.7, 2.8), which is what
// cv_vring_begin() checks: an address sanitizer's test.
static void rings_end_where_virtio_says(void **state)
{
	static const uint16_t sizes[] = {1, 2, 8, 37, 64, 256};
	static const uint64_t sets[] = {
		V1, V1 | EVENT, V1 | ORDER, V1 | EVENT | PACKED, V1 | PACKED, V1 | ORDER | PACKED};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]) * 6; i++) {
		const uint16_t size = sizes[i % 6];
		const uint64_t features = sets[i / 6];
		const bool packed = features & PACKED;
		const size_t event = features & EVENT ? 2 : 0;
		struct guest guest;

		if (!packed && (size & (size - 1)) != 0)
			continue;
		assert_int_equal(guest_begin(&guest, features, size, guest_fresh(features)), 0);
		guest.vring.desc = exactly(&guest, 16u * size);
		guest.vring.avail = exactly(&guest, packed ? 4 : 4 + 2 * size + event);
		guest.vring.used = exactly(&guest, packed ? 4 : 4 + 8 * size + event);
		guest.vring.call_fd = eventfd(0, EFD_NONBLOCK);
		assert_int_equal(cv_vring_begin(&guest.vring, features, guest_fresh(features)), 0);
		cv_vring_quiet(&guest.vring);
		use_all_of(&guest, features, size);
		for (guest.memory.count = 5; guest.memory.count > 2; guest.memory.count--)
			free(guest.memory.regions[guest.memory.count - 1].host);
		close(guest.vring.call_fd);
		guest_end(&guest);
	}
}

// The guest is told as it wishes: never, always, or when a certain buffer is back.
static uint64_t notifications(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static void send_one(struct guest *guest)
{
	const struct guest_part part = {0x24000, 100, 0};
	uint8_t buffer[2048], *to = buffer;
	uint16_t len;
	uint32_t used;

	assert_true(guest_add(guest, &part, 1, false));
	assert_int_equal(cv_vring_dequeue(&guest->vring, &to, 2048, &len, 1), 1);
	cv_vring_notify(&guest->vring);
	cv_vring_notify(&guest->vring); // nothing new: nothing to tell
	assert_true(guest_take(guest, &used));
}

static void notifies(void **state)
{
	for (unsigned packed = 0; packed < 2; packed++) {
		for (unsigned event = 0; event < 2; event++) {
			const uint64_t features = V1 | (packed ? PACKED : 0) | (event ? EVENT : 0);
			int fd = eventfd(0, EFD_NONBLOCK);
			struct guest guest;
			uint64_t count = 0;

			assert_int_equal(
				guest_begin(&guest, features, 8, guest_fresh(features)), 0);
			guest.vring.call_fd = fd;
			for (unsigned i = 0; i < 20; i++)
				send_one(&guest);
			// Split with EVENT_IDX wants to hear of index 0: at first, and then it waits.
			assert_int_equal(notifications(fd), event && !packed ? 1 : 20);
			// Not at all.
			guest.vring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
			if (packed)
				guest.vring.driver_event[1] = 1;
			for (unsigned i = 0; i < 20; i++)
				send_one(&guest);
			if (!event || packed)
				assert_int_equal(notifications(fd), 0);
			// At the third buffer from here.
			if (!event) {
				guest_end(&guest);
				close(fd);
				continue;
			}
			for (unsigned round = 0; round < 30; round++) {
				const struct cv_vring_base base = cv_vring_base(&guest.vring);

				if (packed) {
					uint16_t at = (base.used & 0x7fff) + 2;
					uint16_t wrap = base.used & 0x8000;

					if (at >= 8) {
						at -= 8;
						wrap ^= 0x8000;
					}
					guest.vring.driver_event[0] = at | wrap;
					guest.vring.driver_event[1] = 2;
				} else {
					guest.vring.avail->ring[8] = base.used + 2;
				}
				notifications(fd);
				send_one(&guest);
				assert_int_equal(notifications(fd), 0);
				send_one(&guest);
				assert_int_equal(notifications(fd), 0);
				send_one(&guest);
				assert_int_equal(notifications(fd), 1);
				send_one(&guest);
				assert_int_equal(notifications(fd), 0);
				count++;
			}
			assert_int_equal(guest.vring.counters.kicks > count, true);
			guest_end(&guest);
			close(fd);
		}
	}
}

// One call uses the whole ring: the place is the same then.
static void notifies_of_a_whole_ring(void **state)
{
	static const uint64_t sets[] = {
		V1 | MERGE, V1 | MERGE | EVENT, V1 | MERGE | PACKED, V1 | MERGE | PACKED | EVENT};

	for (size_t set = 0; set < sizeof(sets) / sizeof(sets[0]); set++) {
		static uint8_t packet[60];
		struct cv_view views[8];
		struct guest guest;
		int fd = eventfd(0, EFD_NONBLOCK);

		for (unsigned i = 0; i < 8; i++) {
			views[i] = (struct cv_view){0};
			cv_view_set(&views[i], packet, sizeof(packet));
		}
		assert_int_equal(guest_begin(&guest, sets[set], 8, guest_fresh(sets[set])), 0);
		guest.vring.call_fd = fd;
		cv_vring_notify(&guest.vring); // a queue that begins
		notifications(fd);
		for (unsigned round = 0; round < 5; round++) {
			const struct cv_vring_base base = cv_vring_base(&guest.vring);
			uint32_t used;

			for (unsigned i = 0; i < 8; i++) {
				const struct guest_part part = {
					0x24000 + i * 256, 256, VRING_DESC_F_WRITE};

				assert_true(guest_add(&guest, &part, 1, false));
			}
			if (sets[set] & PACKED) {
				guest.vring.driver_event[0] = base.used;
				guest.vring.driver_event[1] = sets[set] & EVENT ? 2 : 0;
			} else if (sets[set] & EVENT) {
				guest.vring.avail->ring[8] = base.used;
			}
			assert_int_equal(cv_vring_enqueue(&guest.vring, views, 8), 8);
			cv_vring_notify(&guest.vring);
			assert_int_equal(notifications(fd), 1);
			cv_vring_notify(&guest.vring);
			assert_int_equal(notifications(fd), 0);
			for (unsigned i = 0; i < 8; i++)
				assert_true(guest_take(&guest, &used));
		}
		guest_end(&guest);
		close(fd);
	}
}

// A ring that was checked for another size or another layout must not reach beyond its memory.
static void ring_areas_lie_in_memory(void **state)
{
	enum { NOTHING = 1 << 20, DESC, AVAIL, USED };
	static const struct {
		const char *what;
		uint64_t features;
		uint16_t size;
		int moved; // the area that is moved
		uint32_t bytes; // so that this many are left up to the end of its region
		int rc;
	} rows[] = {
		{"split", V1, 64, NOTHING, 0, 0},
		{"split, descriptors end with the region", V1, 64, DESC, 1024, 0},
		{"split, one descriptor outside", V1, 64, DESC, 1008, -EINVAL},
		{"split, avail ends with the region", V1, 64, AVAIL, 132, 0},
		{"split, avail and its event do not", V1 | EVENT, 64, AVAIL, 132, -EINVAL},
		{"split, avail and its event do", V1 | EVENT, 64, AVAIL, 134, 0},
		{"split, avail of a larger ring", V1, 128, AVAIL, 132, -EINVAL},
		{"split, used ends with the region", V1, 64, USED, 516, 0},
		{"split, used and its event do not", V1 | EVENT, 64, USED, 516, -EINVAL},
		{"split, used of a larger ring", V1, 128, USED, 516, -EINVAL},
		{"packed, its events end with the region", V1 | PACKED, 64, AVAIL, 4, 0},
		{"packed, the device's, too", V1 | PACKED, 64, USED, 4, 0},
		{"packed, an event is cut", V1 | PACKED, 64, AVAIL, 2, -EINVAL},
		{"events of a packed ring, which is split now", V1, 64, AVAIL, 4, -EINVAL},
		{"packed, of any size", V1 | PACKED, 48, DESC, 768, 0},
		{"packed, one descriptor outside", V1 | PACKED, 48, DESC, 752, -EINVAL},
		{"behind the region", V1, 64, USED, 0, -EINVAL},
		{"before the region", V1, 64, DESC, GUEST_REGION + 16, -EINVAL},
	};
	struct guest guest;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t features = rows[i].features;
		uint8_t *end;

		assert_int_equal(
			guest_begin(&guest, features, rows[i].size, guest_fresh(features)), 0);
		end = guest.memory.regions[0].host + GUEST_REGION;
		if (rows[i].moved == DESC)
			guest.vring.desc = (void *)(end - rows[i].bytes);
		else if (rows[i].moved == AVAIL)
			guest.vring.avail = (void *)(end - rows[i].bytes);
		else if (rows[i].moved == USED)
			guest.vring.used = (void *)(end - rows[i].bytes);
		if (cv_vring_begin(&guest.vring, features, guest_fresh(features)) != rows[i].rc)
			fail_msg("%s", rows[i].what);
		guest_end(&guest);
	}
}

// A ring goes on from where it stopped, whatever its indices are.
static void resumes(void **state)
{
	static const struct {
		uint64_t features;
		struct cv_vring_base base;
	} rows[] = {
		{V1, {0, 0}},
		{V1, {65533, 65533}},
		{V1 | ORDER, {1000, 1000}},
		{V1 | PACKED, {0x8000 | 7, 0x8000 | 7}},
		{V1 | PACKED, {5, 5}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_vring_base base;
		struct guest guest;

		assert_int_equal(guest_begin(&guest, rows[i].features, 8, rows[i].base), 0);
		for (unsigned j = 0; j < 30; j++) {
			send_one(&guest);
			// Stopped and set up again, as a migration does it.
			base = cv_vring_base(&guest.vring);
			assert_int_equal(base.avail, base.used);
			assert_int_equal(cv_vring_begin(&guest.vring, rows[i].features, base), 0);
		}
		if (!(rows[i].features & PACKED))
			assert_int_equal(base.avail, (uint16_t)(rows[i].base.avail + 30));
		guest_end(&guest);
	}
}

// What the migration's log is told covers every byte that changes.
static struct {
	uint8_t logged[2 * GUEST_REGION];
	bool used;
} log_seen;

static void log_bytes(void *context, uint64_t guest, uint64_t bytes)
{
	memset(&log_seen.logged[guest - GUEST_BASE], 1, bytes);
}

static void log_ring(void *context, uint64_t offset, uint64_t bytes)
{
	assert_int_equal(offset, 0);
	assert_true(bytes >= 128);
	log_seen.used = true;
}

static void logs_what_it_writes(void **state)
{
	const struct guest_part parts[] = {{0x24000, 50, W}, {0x25000, 50, W}};
	uint8_t packet[80];
	const struct cv_view view = {.data = packet, .len = sizeof(packet)};
	uint8_t *before = malloc(GUEST_REGION);
	struct guest guest;

	memset(packet, 0x5a, sizeof(packet));
	assert_int_equal(guest_begin(&guest, V1 | MERGE, 16, guest_fresh(V1)), 0);
	memset(guest_at(&guest, 0x24000), 0xff, 0x2000);
	guest.vring.log = log_bytes;
	guest.vring.log_used = log_ring;
	assert_true(guest_add(&guest, &parts[0], 1, false));
	assert_true(guest_add(&guest, &parts[1], 1, false));
	memcpy(before, guest.memory.regions[0].host, GUEST_REGION);
	assert_int_equal(cv_vring_enqueue(&guest.vring, &view, 1), 1);
	for (uint32_t i = 0x4000; i < GUEST_REGION; i++) {
		if (before[i] != guest.memory.regions[0].host[i] && !log_seen.logged[i])
			fail_msg("byte %x was not logged", i);
	}
	assert_true(log_seen.used);
	assert_int_equal(log_seen.logged[0x14000], 1);
	free(before);
	guest_end(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dequeues_every_form),
		cmocka_unit_test(dequeues_bursts),
		cmocka_unit_test(coalesces),
		cmocka_unit_test(enqueues_every_form),
		cmocka_unit_test(guests_lie),
		cmocka_unit_test(a_length_of_nearly_4_gib_is_too_long),
		cmocka_unit_test(rings_lie),
		cmocka_unit_test(no_call_costs_more_than_its_budget),
		cmocka_unit_test(common_buffers_are_within_the_budget),
		cmocka_unit_test(too_little_room_is_remembered),
		cmocka_unit_test(chains_are_bounded),
		cmocka_unit_test(chains_overlap),
		cmocka_unit_test(no_more_than_the_ring_has),
		cmocka_unit_test(refuses_impossible_rings),
		cmocka_unit_test(bases_are_checked),
		cmocka_unit_test(rings_end_where_virtio_says),
		cmocka_unit_test(notifies),
		cmocka_unit_test(notifies_of_a_whole_ring),
		cmocka_unit_test(ring_areas_lie_in_memory),
		cmocka_unit_test(resumes),
		cmocka_unit_test(logs_what_it_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
