// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "memif/test_link.h"

#define SIZE 128
#define ROOM 2048u

// Packet number i: its length and its bytes.
static uint16_t length_of(unsigned i)
{
	return (uint16_t)(i % 5 == 0 ? 14 + i * 37 % 1900 : 60 + i % 9);
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

// Puts packets from number `first` on; half of each lies before the view, as a tunnel's headers do.
static unsigned put(struct link *link, unsigned first, unsigned n)
{
	static uint8_t bytes[65][ROOM];
	struct cv_view views[65];

	for (unsigned i = 0; i < n; i++) {
		const uint16_t len = length_of(first + i);

		for (uint32_t at = 0; at < len; at++)
			bytes[i][at] = byte_of(first + i, at);
		views[i] = (struct cv_view){
			.data = bytes[i] + 10, .len = (uint16_t)(len - 10), .before = 10};
	}
	return cv_memif_enqueue(link->from, views, (uint16_t)n);
}

static unsigned take_each(struct link *link, unsigned first, unsigned n)
{
	static uint8_t bytes[65][ROOM];
	uint8_t *to[65];
	uint16_t lens[65];
	unsigned got;

	for (unsigned i = 0; i < n; i++)
		to[i] = bytes[i];
	got = cv_memif_dequeue(link->to, to, ROOM, lens, (uint16_t)n);
	for (unsigned i = 0; i < got; i++)
		assert_packet(to[i], lens[i], first + i);
	return got;
}

static unsigned take_coalesced(struct link *link, unsigned first, unsigned n)
{
	static uint8_t bytes[3][ROOM];
	struct cv_vring_buffer coalesced[3];
	struct cv_view views[65];
	uint16_t count = 3;
	unsigned got, seen = 0;

	for (unsigned i = 0; i < 3; i++)
		coalesced[i] = (struct cv_vring_buffer){
			.data = bytes[i], .room = ROOM, .coalesced_max = 1400};
	got = cv_memif_coalesce(link->to, views, (uint16_t)n, coalesced, &count);
	for (unsigned i = 0; i < count; i++) {
		const uint8_t *at = coalesced[i].data;

		assert_true(coalesced[i].packets > 0);
		assert_true(coalesced[i].len <= 1400 || coalesced[i].packets == 1);
		for (unsigned j = 0; j < coalesced[i].packets; j++, seen++) {
			assert_int_equal(at[0] << 8 | at[1], views[seen].len);
			assert_ptr_equal(views[seen].data, at + 2);
			assert_packet(views[seen].data, views[seen].len, first + seen);
			at += 2 + views[seen].len;
		}
		assert_int_equal(at - coalesced[i].data, coalesced[i].len);
	}
	assert_int_equal(seen, got);
	return got;
}

// Both directions, buffers that hold a packet or not, one after the other in bursts of all sizes.
static void packets_arrive_whole_and_in_order(void **state)
{
	static const unsigned bursts[] = {1, 0, 31, 32, 33, 64, 65, 7};
	static const struct {
		uint32_t bytes, stride;
	} buffers[] = {{2048, 2048}, {2048, 2112}, {300, 320}, {64, 64}};

	(void)state;
	for (unsigned form = 0; form < 16; form++) {
		const bool together = form & 1, to_server = form >> 1 & 1;
		unsigned sent = 0, got = 0;
		struct link link;

		link_begin(&link, SIZE, buffers[form >> 2].bytes, buffers[form >> 2].stride,
			to_server);
		for (unsigned i = 0; got < 3000; i++) {
			sent += put(&link, sent, bursts[i % 8]);
			got += together ? take_coalesced(&link, got, bursts[(i + 3) % 8])
					: take_each(&link, got, bursts[(i + 3) % 8]);
		}
		assert_int_equal(link.from->counters.packets, sent);
		assert_int_equal(link.to->counters.packets, got);
		assert_int_equal(link.to->counters.malformed + link.to->counters.too_long, 0);
		assert_false(link.from->broken || link.to->broken);
		link_end(&link);
	}
}

static void a_full_ring_takes_no_more(void **state)
{
	(void)state;
	for (unsigned to_server = 0; to_server < 2; to_server++) {
		struct link link;

		link_begin(&link, 64, 2048, 2048, to_server);
		assert_int_equal(cv_memif_ready(link.from), 64);
		assert_int_equal(cv_memif_ready(link.to), 0);
		assert_int_equal(put(&link, 0, 65), 64);
		assert_int_equal(put(&link, 64, 1), 0);
		assert_int_equal(cv_memif_ready(link.to), 64);
		assert_int_equal(take_each(&link, 0, 10), 10);
		assert_int_equal(put(&link, 64, 20), 10);
		assert_int_equal(take_each(&link, 10, 65), 64);
		link_end(&link);
	}
}

static void a_packet_too_long_for_its_reader_is_lost_alone(void **state)
{
	static const uint8_t packet[1500];
	struct cv_view views[3] = {{.data = (uint8_t *)(uintptr_t)packet, .len = 60},
		{.data = (uint8_t *)(uintptr_t)packet, .len = 1500},
		{.data = (uint8_t *)(uintptr_t)packet, .len = 61}};
	uint8_t bytes[3][128], *to[3] = {bytes[0], bytes[1], bytes[2]};
	uint16_t lens[3];

	(void)state;
	for (unsigned form = 0; form < 4; form++) {
		struct link link;

		link_begin(&link, 64, form & 1 ? 2048 : 256, 2048, form >> 1);
		assert_int_equal(cv_memif_enqueue(link.from, views, 3), 3);
		assert_int_equal(cv_memif_dequeue(link.to, to, 128, lens, 3), 2);
		assert_int_equal(lens[0], 60);
		assert_int_equal(lens[1], 61);
		assert_int_equal(link.to->counters.too_long, 1);
		link_end(&link);
	}
}

static void the_taker_says_that_it_polls(void **state)
{
	(void)state;
	for (unsigned to_server = 0; to_server < 2; to_server++) {
		struct link link;

		link_begin(&link, 64, 2048, 2048, to_server);
		assert_false(cv_memif_wants_interrupt(link.from));
		link.shared->flags = 0;
		assert_true(cv_memif_wants_interrupt(link.from));
		link_end(&link);
	}
}

// What a peer writes where the first packet's descriptor is, or into an index, and what becomes of
// it: three packets of 60 bytes were put before.
enum fate {
	LOST, // that packet only
	WHOLE, // it is of no matter
	BROKEN, // the ring stands still
	WAITS, // for the rest of a packet
};

struct attack {
	const char *name;
	bool to_server; // the server takes; else the client does
	uint16_t flags, region;
	uint32_t length, offset; // offset 0: the right one
	int index; // added to the index of whoever puts
	enum fate fate;
};

static const struct attack attacks[] = {
	{"nothing", true, 0, 0, 60, 0, 0, WHOLE},
	{"a region that is none", true, 0, 1, 60, 0, 0, LOST},
	{"the last region number", true, 0, 65535, 60, 0, 0, LOST},
	{"behind the region", true, 0, 0, 60, 0x1000000, 0, LOST},
	{"the last byte behind the region", true, 0, 0, 2048 * 8 + 1, 128 + 16 * 8, 0, LOST},
	{"offset and length that wrap", true, 0, 0, 60, UINT32_MAX - 10, 0, LOST},
	{"a length that wraps", true, 0, 0, UINT32_MAX, 0, 0, LOST},
	{"no Ethernet header", true, 0, 0, 13, 0, 0, LOST},
	{"nothing at all", true, 0, 0, 0, 0, 0, LOST},
	{"unknown flags", true, 0xfffe, 0, 60, 0, 0, WHOLE},
	{"a chain into a bad region", true, CV_MEMIF_NEXT, 9, 60, 0, 0, LOST},
	{"more packets than descriptors", true, 0, 0, 60, 0, 20, BROKEN},
	{"fewer packets than before", true, 0, 0, 60, 0, -4, BROKEN},
	{"nothing", false, 0, 0, 60, 0, 0, WHOLE},
	{"another region", false, 0, 7, 60, 0, 0, WHOLE},
	{"another offset", false, 0, 0, 60, UINT32_MAX, 0, WHOLE},
	{"more than the buffer holds", false, 0, 0, 2049, 0, 0, LOST},
	{"a length that wraps", false, 0, 0, UINT32_MAX, 0, 0, LOST},
	{"no Ethernet header", false, 0, 0, 13, 0, 0, LOST},
	{"a chain that is too long", false, CV_MEMIF_NEXT, 0, UINT32_MAX, 0, 0, LOST},
	{"more packets than descriptors", false, 0, 0, 60, 0, 20, BROKEN},
	{"fewer packets than before", false, 0, 0, 60, 0, -4, BROKEN},
};

static void strike(struct link *link, const struct attack *attack)
{
	struct cv_memif_descriptor *descriptor = &link->shared->descriptors[0];

	descriptor->flags = attack->flags;
	descriptor->region = attack->region;
	descriptor->length = attack->length;
	if (attack->offset != 0)
		descriptor->offset = attack->offset;
	if (attack->to_server)
		link->shared->head = (uint16_t)(link->shared->head + attack->index);
	else
		link->shared->tail = (uint16_t)(link->shared->tail + attack->index);
}

static void assert_fate(struct link *link, const struct attack *attack, unsigned got)
{
	// A packet that goes on in the next takes that with it.
	const unsigned lost = attack->fate == LOST ? 1 + (attack->flags & CV_MEMIF_NEXT) : 0;

	if (attack->fate == BROKEN) {
		assert_int_equal(got, 0);
		assert_true(link->to->broken);
		return;
	}
	assert_false(link->to->broken);
	assert_int_equal(got, 3 - lost);
	assert_int_equal(link->to->counters.malformed, lost > 0);
	assert_int_equal(cv_memif_ready(link->from), 8); // all buffers are back
	if (!attack->to_server)
		assert_int_equal(link->shared->descriptors[0].length, 2048);
}

static void a_peer_that_writes_what_it_likes_is_not_believed(void **state)
{
	static const uint8_t packet[60];
	const struct cv_view view = {.data = (uint8_t *)(uintptr_t)packet, .len = 60};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(attacks) / sizeof(attacks[0]); i++) {
		const struct attack *attack = &attacks[i / 2];
		static uint8_t bytes[8][ROOM];
		uint8_t *to[8];
		struct cv_vring_buffer coalesced = {
			.data = bytes[0], .room = ROOM, .coalesced_max = 1400};
		struct cv_view views[8];
		uint16_t lens[8], used = 1;
		struct link link;

		for (unsigned j = 0; j < 8; j++)
			to[j] = bytes[j];
		link_begin(&link, 8, 2048, 2048, attack->to_server);
		cv_memif_enqueue(link.from, (struct cv_view[]){view, view, view}, 3);
		strike(&link, attack);
		assert_fate(&link, attack,
			i % 2 ? cv_memif_dequeue(link.to, to, ROOM, lens, 8)
			      : cv_memif_coalesce(link.to, views, 8, &coalesced, &used));
		link_end(&link);
	}
}

// One poll of a ring full of what costs most and gives nothing looks at a bounded part of it.
static void no_peer_keeps_a_worker(void **state)
{
	static uint8_t bytes[64][ROOM];
	uint8_t *to[64];
	uint16_t lens[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		to[i] = bytes[i];
	for (unsigned form = 0; form < 4; form++) {
		const uint16_t flags = form & 1 ? CV_MEMIF_NEXT : 0;
		struct link link;

		link_begin(&link, 4096, 64, 64, form >> 1);
		for (unsigned i = 0; i < 4096; i++) {
			link.shared->descriptors[i].flags = flags;
			link.shared->descriptors[i].length = 0;
		}
		*(form >> 1 ? &link.shared->head : &link.shared->tail) = 4096;
		assert_int_equal(cv_memif_dequeue(link.to, to, ROOM, lens, 64), 0);
		assert_in_range(link.to->next, 1,
			form & 1 ? CV_MEMIF_STEPS + CV_MEMIF_CHAIN_MAX
				 : CV_MEMIF_STEPS / CV_MEMIF_STEPS_MALFORMED);
		assert_true(link.to->counters.malformed > 0);
		for (unsigned i = 0; i < 1000; i++)
			cv_memif_dequeue(link.to, to, ROOM, lens, 64);
		assert_int_equal(link.to->next, 4096);
		link_end(&link);
	}
}

// A packet whose end does not come is waited for, unless it can never come.
static void a_chain_without_an_end(void **state)
{
	static const struct {
		uint16_t size, put, taken;
	} chains[] = {{128, 1, 0}, {128, 63, 0}, {128, 64, 64}, {128, 100, 64}, {16, 15, 0},
		{16, 16, 16}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(chains) / sizeof(chains[0]); i++) {
		const unsigned to_server = i % 2;
		uint8_t bytes[ROOM], *to = bytes;
		uint16_t len;
		struct link link;

		link_begin(&link, chains[i / 2].size, 64, 64, to_server);
		for (unsigned j = 0; j < chains[i / 2].size; j++) {
			link.shared->descriptors[j].flags = CV_MEMIF_NEXT;
			link.shared->descriptors[j].length = 1;
		}
		*(to_server ? &link.shared->head : &link.shared->tail) = chains[i / 2].put;
		assert_int_equal(cv_memif_dequeue(link.to, &to, ROOM, &len, 1), 0);
		assert_int_equal(link.to->next, chains[i / 2].taken);
		assert_false(link.to->broken);
		link_end(&link);
	}
}

// What a client offers to be filled.
static void bad_buffers_of_a_client_end_its_ring(void **state)
{
	static const struct {
		uint16_t region;
		uint32_t length, offset;
	} offers[] = {{1, 2048, 256}, {0, 2048, UINT32_MAX}, {0, UINT32_MAX, 256},
		{0, 2048 * 8 + 1, 256}, {65535, 0, 0}};
	static const uint8_t packet[60];
	const struct cv_view view = {.data = (uint8_t *)(uintptr_t)packet, .len = 60};

	(void)state;
	for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
		struct link link;

		link_begin(&link, 8, 2048, 2048, false);
		link.shared->descriptors[1].region = offers[i].region;
		link.shared->descriptors[1].length = offers[i].length;
		link.shared->descriptors[1].offset = offers[i].offset;
		assert_int_equal(
			cv_memif_enqueue(link.from, (struct cv_view[]){view, view, view}, 3), 1);
		assert_int_equal(cv_memif_enqueue(link.from, &view, 1), 0);
		assert_true(link.from->broken);
		assert_int_equal(cv_memif_ready(link.from), 0);
		link_end(&link);
	}
}

static void buffers_of_a_few_bytes_cost_little(void **state)
{
	static const uint8_t packet[100];
	struct cv_view views[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		views[i] = (struct cv_view){.data = (uint8_t *)(uintptr_t)packet, .len = 100};
	for (uint32_t len = 0; len < 12; len++) {
		struct link link;
		const struct cv_memif_counters *counters;

		link_begin(&link, 1024, 64, 64, false);
		for (unsigned i = 0; i < 1024; i++)
			link.shared->descriptors[i].length = len;
		// What is left is lost, or the caller would come again.
		assert_int_equal(cv_memif_enqueue(link.from, views, 64), 64);
		counters = &link.from->counters;
		assert_int_equal(counters->packets + counters->too_long, 64);
		// Shorter ones hold no packet of 100 bytes in 64.
		assert_in_range(counters->packets, len < 2 ? 0 : 1, len < 2 ? 0 : 32);
		assert_true(
			link.from->next <= CV_MEMIF_PUT_STEPS + CV_MEMIF_CHAIN_MAX +
						   counters->packets * CV_MEMIF_PUT_STEPS_OF(100));
		link_end(&link);
	}
}

static void a_server_that_moves_its_index_wildly_ends_the_clients_ring(void **state)
{
	static const uint16_t tails[] = {4, 100, 32768, 65527};
	static const uint8_t packet[60];
	const struct cv_view view = {.data = (uint8_t *)(uintptr_t)packet, .len = 60};

	(void)state;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct link link;

		link_begin(&link, 8, 2048, 2048, true);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(cv_memif_enqueue(link.from, &view, 1), 1);
		link.shared->tail = tails[i];
		assert_int_equal(cv_memif_ready(link.from), 0);
		assert_true(link.from->broken);
		assert_int_equal(cv_memif_enqueue(link.from, &view, 1), 0);
		link_end(&link);
	}
}

// A client's own descriptors are in shared memory: what it writes there does not depend on them.
static void scribbled_descriptors_of_ours_are_written_anew(void **state)
{
	struct link link;

	(void)state;
	link_begin(&link, 8, 2048, 2048, true);
	memset(link.shared->descriptors, 0xff, 8 * sizeof(link.shared->descriptors[0]));
	assert_int_equal(put(&link, 0, 8), 8);
	assert_int_equal(take_each(&link, 0, 8), 8);
	link_end(&link);
	link_begin(&link, 8, 2048, 2048, false);
	assert_int_equal(put(&link, 0, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		link.shared->descriptors[i].offset = link.shared->descriptors[i].metadata = ~0u;
	assert_int_equal(take_each(&link, 0, 8), 8);
	assert_int_equal(put(&link, 8, 8), 8);
	assert_int_equal(take_each(&link, 8, 8), 8);
	link_end(&link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_arrive_whole_and_in_order),
		cmocka_unit_test(a_full_ring_takes_no_more),
		cmocka_unit_test(a_packet_too_long_for_its_reader_is_lost_alone),
		cmocka_unit_test(the_taker_says_that_it_polls),
		cmocka_unit_test(a_peer_that_writes_what_it_likes_is_not_believed),
		cmocka_unit_test(no_peer_keeps_a_worker),
		cmocka_unit_test(a_chain_without_an_end),
		cmocka_unit_test(bad_buffers_of_a_client_end_its_ring),
		cmocka_unit_test(buffers_of_a_few_bytes_cost_little),
		cmocka_unit_test(a_server_that_moves_its_index_wildly_ends_the_clients_ring),
		cmocka_unit_test(scribbled_descriptors_of_ours_are_written_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
