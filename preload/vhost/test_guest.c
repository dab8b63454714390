// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames to a guest and from it: what a guest has no room for waits and keeps its place, a guest makes
// no convoys, and all buffers come back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_cycles.h>

#include "convoy/frame.h"
#include "preload/vhost/from_guest.h"
#include "preload/vhost/to_guest.h"
#include "tests/support/test_eal.h"
#include "vring/test_guest.h"

#define SIZE 64 // of the guest's ring
#define HEADER 12
#define LONG 2000 // bytes of a guest's buffer
#define PORT RTE_BE16(CV_CONVOY_PORT)
#define FEATURES BIT(CV_VIRTIO_F_VERSION_1)

static struct rte_mempool *pool;
static unsigned pool_count;
static struct cv_outer outer;
static struct guest guest;
static uint8_t next_packet; // number of the next packet made

// What the guest sent, and is to come.
static struct {
	uint8_t bytes[LONG];
	uint16_t len;
} sent[64];
static unsigned sent_count;

static int begin(void **unused)
{
	const struct cv_outer_config config = {
		.version = 4, .dst_mac = {2, 1}, .src = {192, 0, 2, 1}, .dst = {192, 0, 2, 2}};

	test_eal_begin("test_guest");
	pool = rte_pktmbuf_pool_create("test", 1023, 0, 0, 2176, SOCKET_ID_ANY);
	if (pool == NULL || cv_outer_set(&outer, &config, NULL) != 0)
		return -1;
	pool_count = rte_mempool_avail_count(pool);
	return 0;
}

static int end(void **unused)
{
	test_eal_end();
	return 0;
}

static int begin_guest(void **unused)
{
	next_packet = 0;
	sent_count = 0;
	return guest_begin(&guest, FEATURES, SIZE, guest_fresh(FEATURES));
}

static int end_guest(void **unused)
{
	guest_end(&guest);
	assert_int_equal(rte_mempool_avail_count(pool), pool_count);
	return 0;
}

static uint16_t len_of(uint8_t number)
{
	return 60 + number % 7;
}

static void make_packet(uint8_t *bytes, uint8_t number)
{
	memset(bytes, number, len_of(number));
	bytes[12] = 0x08; // EtherType and what is no UDP
	bytes[13] = 0x00;
	bytes[23] = 6;
}

static void assert_packet(const uint8_t *bytes, uint32_t len, uint8_t number)
{
	uint8_t expected[128];

	make_packet(expected, number);
	assert_int_equal(len, len_of(number));
	assert_memory_equal(bytes, expected, len);
}

// A convoy of so many packets, or one packet for 0. Returns the bytes.
static uint16_t make_frame(uint8_t *room, uint8_t **at, unsigned packets)
{
	uint8_t bytes[128];
	struct cv_view view = {0};
	struct cv_frame built;
	uint16_t len;

	if (packets == 0) {
		make_packet(*at = room, next_packet);
		return len_of(next_packet++);
	}
	cv_frame_begin(&built, &outer, room + outer.len, LONG);
	for (unsigned i = 0; i < packets; i++) {
		make_packet(bytes, next_packet);
		cv_view_set(&view, bytes, len_of(next_packet++));
		assert_int_equal(cv_frame_add(&built, &view, 1), 1);
	}
	*at = cv_frame_close(&built, &len);
	return len;
}

static struct rte_mbuf *make_mbuf(unsigned packets)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint8_t bytes[LONG + CV_OUTER_MAX], *at;
	uint16_t len;

	assert_non_null(mbuf);
	len = make_frame(bytes, &at, packets);
	memcpy(rte_pktmbuf_append(mbuf, len), at, len);
	return mbuf;
}

static uint64_t buffer(unsigned i)
{
	return GUEST_BASE + GUEST_REGION + (uint64_t)(i % SIZE) * 2048;
}

static void give_room(unsigned buffers)
{
	while (buffers-- > 0) {
		const struct guest_part part = {buffer(guest.made), LONG, VRING_DESC_F_WRITE};

		assert_true(guest_add(&guest, &part, 1, false));
	}
}

// The guest takes what there is, which must be the packets from number on. Returns the next number.
static uint8_t take_packets(uint8_t number)
{
	uint8_t bytes[LONG];
	uint32_t len;

	for (;;) {
		const uint64_t at = buffer(guest.taken);

		if (!guest_take(&guest, &len))
			return number;
		guest_read(&guest, at, bytes, len);
		assert_packet(bytes + HEADER, len - HEADER, number++);
	}
}

static const struct {
	const char *description;
	uint8_t frame[4]; // packets in each; 0: an ordinary one
	uint8_t frames; // so often the last of them
	uint16_t room;
	uint16_t took; // frames
	uint16_t has; // packets, at once
	uint16_t held; // frames
	uint16_t lost; // packets, if the guest goes then
} to_rows[] = {
	{"nothing", {0}, 0, 5, 0, 0, 0, 0},
	{"all fit", {3, 0, 3}, 3, 40, 3, 7, 0, 0},
	{"exactly", {3, 0, 3}, 3, 7, 3, 7, 0, 0},
	{"the last is cut", {5, 5}, 2, 7, 2, 7, 1, 3},
	{"cut between two", {5, 5}, 2, 5, 2, 5, 1, 5},
	{"the first is cut, others wait", {5, 0, 5}, 3, 2, 3, 2, 3, 9},
	{"no room at all", {5}, 1, 0, 1, 0, 1, 5},
	{"no convoys: as rte_vhost has it", {0, 0, 0}, 3, 2, 2, 2, 0, 0},
	{"no more than may wait", {2}, 70, 1, CV_HELD_MAX, 1, CV_HELD_MAX, 2 * CV_HELD_MAX - 1},
	{"more than a go", {2}, 70, 40, 20 + CV_HELD_MAX - 14, 40, 50, 100},
};

static unsigned make_row(size_t row, struct rte_mbuf **mbufs)
{
	unsigned n = to_rows[row].frames;

	for (unsigned i = 0; i < n; i++)
		mbufs[i] = make_mbuf(to_rows[row].frame[RTE_MIN(i, n > 4 ? 0u : 3u)]);
	return n;
}

// As a program does: what was taken is its to free all the same; the rest it drops.
static void send_row(struct cv_to_guest *to, size_t row)
{
	struct rte_mbuf *mbufs[128];
	unsigned n = make_row(row, mbufs);
	uint16_t took = cv_to_guest_put(to, &guest.vring, mbufs, (uint16_t)n);

	rte_pktmbuf_free_bulk(mbufs, n);
	assert_int_equal(took, to_rows[row].took);
	assert_int_equal(to->count, to_rows[row].held);
}

static void what_has_no_room_waits(void **unused)
{
	for (size_t row = 0; row < RTE_DIM(to_rows); row++) {
		struct cv_to_guest to = {.port = PORT};
		uint8_t seen;

		print_message("%s\n", to_rows[row].description);
		begin_guest(NULL);
		give_room(to_rows[row].room);
		send_row(&to, row);
		assert_int_equal(seen = take_packets(0), to_rows[row].has);
		while (cv_to_guest_holds(&to)) {
			give_room(11);
			cv_to_guest_flush(&to, &guest.vring);
			seen = take_packets(seen);
		}
		// None is missing, of those that the program need not send again.
		assert_int_equal(seen, to_rows[row].has + to_rows[row].lost);
		end_guest(NULL);
	}
}

static void what_waits_is_lost_with_the_guest(void **unused)
{
	for (size_t row = 0; row < RTE_DIM(to_rows); row++) {
		struct cv_to_guest to = {.port = PORT};

		print_message("%s\n", to_rows[row].description);
		begin_guest(NULL);
		give_room(to_rows[row].room);
		send_row(&to, row);
		cv_to_guest_drop(&to);
		assert_int_equal(to.lost, to_rows[row].lost);
		assert_false(cv_to_guest_holds(&to));
		end_guest(NULL);
	}
}

// Packets that come later stay behind those that wait, whatever they are.
static void those_that_wait_go_first(void **unused)
{
	struct cv_to_guest to = {.port = PORT};
	uint8_t seen = 0;

	begin_guest(NULL);
	for (unsigned i = 0; i < 60; i++) {
		struct rte_mbuf *mbuf = make_mbuf(i % 3 == 0 ? 5 : 0);

		give_room(i % 5);
		assert_int_equal(cv_to_guest_put(&to, &guest.vring, &mbuf, 1), 1);
		rte_pktmbuf_free(mbuf);
		seen = take_packets(seen);
	}
	assert_true(cv_to_guest_holds(&to));
	while (cv_to_guest_holds(&to)) {
		give_room(7);
		cv_to_guest_flush(&to, &guest.vring);
		seen = take_packets(seen);
	}
	assert_int_equal(seen, next_packet);
	assert_int_equal(to.opened, 20);
	end_guest(NULL);
}

// What the guest sends in one go, L a long packet that fits into no convoy, M one beside which a short one
// fits at most, s a short one, c a packet that looks like a convoy, C one that fits into none, p any
// other, and what comes of it: p is a packet as it was sent, numbers are convoys of ours of so many.
struct burst {
	const char *sent, *come;
};

static const struct {
	const char *description;
	struct burst bursts[4];
	uint64_t refused;
} from_rows[] = {
	{"unaggregated", {{"p", "p"}}, 0},
	{"aggregated", {{"pppp", "4"}, {"pp", "2"}}, 0},
	{"a single lookalike", {{"c", "1"}, {"pp", "2"}, {"p", "p"}}, 0},
	{"several lookalikes", {{"ccc", "3"}, {"cc", "2"}, {"c", "1"}}, 0},
	{"among others", {{"ppcp", "4"}, {"pc", "2"}, {"c", "1"}}, 0},
	{"one that fits into none", {{"C", ""}, {"pp", "2"}}, 1},
	{"such among others", {{"pCpp", "p2"}, {"CC", ""}, {"cC", "1"}}, 4},
};

// Of what begins with a frame of len bytes, the first packet of which has the number.
static uint16_t len_of_kind(char kind, uint8_t number, uint16_t len)
{
	switch (kind) {
	case 'C':
	case 'L':
		return 1467; // with what is there behind it
	case 'M':
		return 1400 + number % 3 * 10;
	case 's':
		return CV_CONVOY_PACKET_MIN + number * 7 % 48;
	default:
		return len;
	}
}

static void send_from(struct guest *by, const char *kinds)
{
	for (; *kinds != '\0'; kinds++) {
		uint8_t bytes[HEADER + CV_OUTER_MAX + LONG] = {0}, *at, number = next_packet;
		const bool looks = *kinds == 'c' || *kinds == 'C';
		uint16_t len = make_frame(bytes + HEADER, &at, looks ? 3 : 0);
		struct guest_part part = {buffer(by->made), 0, 0};

		memmove(bytes + HEADER, at, len);
		len = len_of_kind(*kinds, number, len);
		if (*kinds != 'C')
			memcpy(sent[sent_count].bytes, bytes + HEADER, len);
		sent[sent_count].len = len;
		sent_count += *kinds != 'C';
		part.len = HEADER + len;
		guest_write(by, part.address, bytes, part.len);
		assert_true(guest_add(by, &part, 1, false));
	}
}

static void send_from_guest(const char *kinds)
{
	send_from(&guest, kinds);
}

// Packets in a frame, which must be those from *number on; 0: an ordinary one.
static unsigned packets_of(struct rte_mbuf *mbuf, uint8_t *number)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], whole = {0};
	struct cv_convoy convoy;

	assert_int_equal(mbuf->pkt_len, mbuf->data_len);
	cv_view_set(&whole, rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	if (cv_convoy_walk(&convoy, views, &whole, PORT) != CV_CONVOY_OK) {
		assert_packet(whole.data, whole.len, (*number)++);
		return 0;
	}
	for (unsigned i = 0; i < convoy.count; i++)
		assert_packet(views[i].data, views[i].len, (*number)++);
	return convoy.count;
}

// Packets in a frame, which must be what was sent from *at on; 0: an ordinary one.
static unsigned compare(struct rte_mbuf *mbuf, unsigned *at)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], whole = {0};
	struct cv_convoy convoy = {0};
	unsigned n = 1;

	cv_view_set(&whole, rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	views[0] = whole;
	if (cv_convoy_walk(&convoy, views, &whole, PORT) == CV_CONVOY_OK)
		n = convoy.count;
	for (unsigned i = 0; i < n; i++, (*at)++) {
		assert_true(*at < sent_count);
		assert_int_equal(views[i].len, sent[*at].len);
		assert_memory_equal(views[i].data, sent[*at].bytes, sent[*at].len);
	}
	return convoy.count;
}

static void from_guest(size_t row)
{
	struct cv_from_guest from = {.outer = &outer, .port = PORT};
	unsigned at = 0;

	for (size_t i = 0; i < 4 && from_rows[row].bursts[i].sent != NULL; i++) {
		const char *come = from_rows[row].bursts[i].come;
		struct rte_mbuf *mbufs[CV_FROM_BURST];
		uint32_t len;
		uint16_t n;

		send_from_guest(from_rows[row].bursts[i].sent);
		n = cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32);
		assert_int_equal(n, strlen(come));
		for (uint16_t j = 0; j < n; j++) {
			assert_int_equal(
				compare(mbufs[j], &at), come[j] == 'p' ? 0 : come[j] - '0');
			rte_pktmbuf_free(mbufs[j]);
		}
		assert_int_equal(cv_from_guest_take(&from, &guest.vring, pool, NULL, 32), 0);
		while (guest_take(&guest, &len))
			;
	}
	assert_int_equal(at, sent_count);
	assert_int_equal(from.refused, from_rows[row].refused);
	cv_from_guest_drop(&from);
}

static void a_guest_makes_no_convoys(void **unused)
{
	for (size_t row = 0; row < RTE_DIM(from_rows); row++) {
		print_message("%s\n", from_rows[row].description);
		begin_guest(NULL);
		from_guest(row);
		end_guest(NULL);
	}
}

// What another guest's queue would disaggregate is dropped; what only resembles it is not.
static void nor_where_none_are_made(void **unused)
{
	const struct cv_outer none = {0};
	struct cv_from_guest from = {.outer = &none, .port = PORT};
	struct rte_mbuf *mbufs[32];
	unsigned at = 0;

	begin_guest(NULL);
	send_from_guest("pCp"); // C has bytes behind the convoy
	assert_int_equal(cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32), 3);
	assert_int_equal(compare(mbufs[0], &at), 0);
	assert_int_equal(mbufs[1]->pkt_len, 1467);
	assert_int_equal(compare(mbufs[2], &at), 0);
	rte_pktmbuf_free_bulk(mbufs, 3);
	send_from_guest("c");
	assert_int_equal(cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32), 0);
	assert_int_equal(from.refused, 1);
	cv_from_guest_drop(&from);
	end_guest(NULL);
}

// The same of a guest that rte_vhost serves, wherever a buffer ends.
static void nor_by_rte_vhost(void **unused)
{
	for (uint16_t cut = 0; cut < 80; cut++) {
		struct cv_from_guest from = {.outer = &outer, .port = PORT};
		struct rte_mbuf *mbufs[] = {make_mbuf(0), make_mbuf(3), make_mbuf(0)};
		struct rte_mbuf *first = mbufs[0], *last = mbufs[2],
				*rest = rte_pktmbuf_alloc(pool);
		uint16_t behind = (uint16_t)(mbufs[1]->data_len - cut);

		assert_non_null(rest);
		memcpy(rte_pktmbuf_append(rest, behind),
			rte_pktmbuf_mtod_offset(mbufs[1], uint8_t *, cut), behind);
		assert_int_equal(rte_pktmbuf_trim(mbufs[1], behind), 0);
		assert_int_equal(rte_pktmbuf_chain(mbufs[1], rest), 0);
		assert_int_equal(cv_from_guest_sift(&from, mbufs, 3), 2);
		assert_ptr_equal(mbufs[0], first);
		assert_ptr_equal(mbufs[1], last);
		assert_int_equal(from.refused, 1);
		rte_pktmbuf_free_bulk(mbufs, 2);
	}
	assert_int_equal(rte_mempool_avail_count(pool), pool_count);
}

static void without_buffers_packets_stay_with_the_guest(void **unused)
{
	struct cv_from_guest from = {.outer = &outer, .port = PORT};
	struct rte_mbuf *all[1023], *mbufs[32];
	uint8_t number = 0;

	begin_guest(NULL);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, all, 1023), 0);
	send_from_guest("ppp");
	assert_int_equal(cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32), 0);
	rte_pktmbuf_free_bulk(all, 1023);
	assert_int_equal(cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32), 1);
	assert_int_equal(packets_of(mbufs[0], &number), 3);
	rte_pktmbuf_free(mbufs[0]);
	cv_from_guest_drop(&from);
	end_guest(NULL);
}

// A length that makes a sum of 32 bits small: the packets around it come, it does not.
static void a_length_of_nearly_4_gib_is_too_long(void **unused)
{
	for (uint32_t under = 0; under < 300; under++) {
		const struct guest_part huge = {GUEST_HUGE, UINT32_MAX - under, 0};
		struct cv_from_guest from = {.outer = &outer, .port = PORT};
		struct rte_mbuf *mbufs[32];
		uint8_t number = 0;

		begin_guest(NULL);
		assert_true(guest_add_huge(&guest));
		send_from_guest("p");
		assert_true(guest_add(&guest, &huge, 1, false));
		send_from_guest("p");
		for (unsigned packets = 0; packets < 2;) {
			const uint16_t n = cv_from_guest_take(&from, &guest.vring, pool, mbufs, 32);

			assert_int_not_equal(n, 0);
			for (uint16_t i = 0; i < n; i++) {
				packets += RTE_MAX(packets_of(mbufs[i], &number), 1u);
				rte_pktmbuf_free(mbufs[i]);
			}
		}
		assert_int_equal(number, next_packet);
		assert_int_equal(guest.vring.counters.too_long, 1);
		cv_from_guest_drop(&from);
		end_guest(NULL);
	}
}

// Several guests, whose rings one thread polls.
#define PLAIN -1 // a packet as it was sent

struct turn {
	unsigned by; // guest
	const char *sent;
	enum { GOES_ON, OVER, FORGOTTEN } time; // of what waits, before
	uint16_t n; // frames asked for; 0: 32
	int come[4]; // packets of frames
};

static const struct {
	const char *description;
	struct turn turns[6];
	uint64_t frames, convoys, shared, refused; // of both
} waiting_rows[] = {
	{"two guests share a frame",
		{{0, "pp", .come = {0}}, {1, "pp", .come = {0}}, {0, "", OVER, .come = {4}}}, 1, 1,
		1, 0},
	{"which leaves with either",
		{{0, "pp", .come = {0}}, {1, "pp", .come = {0}}, {1, "", OVER, .come = {4}}}, 1, 1,
		1, 0},
	{"its time is over, but not with a guest that has no part in it",
		{{0, "pp", .come = {0}}, {1, "", OVER, .come = {0}}, {0, "", OVER, .come = {2}}}, 1,
		1, 0, 0},
	{"unless nobody who has comes for it",
		{{0, "pp", .come = {0}}, {1, "", FORGOTTEN, .come = {2}}}, 1, 1, 0, 0},
	{"it is before new packets, which wait in turn",
		{{0, "pp", .come = {0}}, {0, "ppp", OVER, .come = {2}}, {0, "", OVER, .come = {3}}},
		2, 2, 0, 0},
	{"who joins late takes it along", {{0, "pp", .come = {0}}, {1, "ppp", OVER, .come = {5}}},
		1, 1, 1, 0},
	{"one that nobody joins stays a packet",
		{{0, "p", .come = {0}}, {0, "", OVER, .come = {PLAIN}}}, 1, 0, 0, 0},
	{"a lookalike that nobody joins", {{0, "c", .come = {0}}, {0, "", OVER, .come = {1}}}, 1, 1,
		0, 0},
	{"a lookalike that fits into none does not wait", {{0, "C", .come = {0}}}, 0, 0, 0, 1},
	{"nor does what is too long, and it goes behind what waits",
		{{0, "p", .come = {0}}, {0, "L", .come = {PLAIN, PLAIN}}}, 2, 0, 0, 0},
	{"nor does what is behind a short one that still fitted, and it begins where it did",
		{{0, "M", .come = {0}}, {0, "sM", .come = {2, PLAIN}}}, 2, 1, 0, 0},
	{"what is behind it waits where there is room",
		{{0, "M", .come = {0}}, {0, "sp", .come = {2}}, {0, "s", .come = {0}},
			{0, "", OVER, .come = {2}}},
		2, 2, 0, 0},
	{"a full one leaves with as many as fit",
		{{0, "pppppppppppppppppppp", .come = {0}}, {1, "pppppppppp", .come = {22}},
			{1, "", OVER, .come = {8}}},
		2, 2, 1, 0},
	{"more than a frame goes behind what waits",
		{{0, "pp", .come = {0}}, {0, "pppppppppppppppppppppppppp", .come = {2, 22}},
			{1, "pp", OVER, .come = {6}}},
		3, 3, 1, 0},
	{"where one frame is asked for",
		{{0, "pp", GOES_ON, 1, {0}}, {0, "pp", GOES_ON, 1, {2}}, {0, "", GOES_ON, 1, {0}},
			{0, "", GOES_ON, 1, {2}}},
		2, 2, 0, 0},
};

#define GUESTS 3

struct several {
	struct guest guests[GUESTS];
	struct cv_from_guest from[GUESTS];
	struct cv_waiting_frame *waiting;
};

static void begin_several(struct several *all)
{
	next_packet = 0;
	sent_count = 0;
	all->waiting = cv_waiting_frame_here(1000000000);
	assert_non_null(all->waiting);
	for (unsigned i = 0; i < GUESTS; i++) {
		all->from[i] = (struct cv_from_guest){.outer = &outer, .port = PORT};
		assert_int_equal(
			guest_begin(&all->guests[i], FEATURES, SIZE, guest_fresh(FEATURES)), 0);
	}
}

static void end_several(struct several *all)
{
	for (unsigned i = 0; i < GUESTS; i++) {
		cv_from_guest_drop(&all->from[i]);
		guest_end(&all->guests[i]);
	}
	assert_int_equal(rte_mempool_avail_count(pool), pool_count);
}

// What comes of a guest's ring, which must be what was sent from *at on.
static uint16_t take_one(struct several *all, unsigned by, uint16_t n, unsigned *at, int *come)
{
	struct rte_mbuf *mbufs[CV_FROM_BURST];
	const uint16_t took = cv_from_guest_take_waiting(
		&all->from[by], &all->guests[by].vring, pool, mbufs, n, all->waiting);

	assert_true(took <= n);
	for (uint16_t i = 0; i < took; i++) {
		come[i] = (int)compare(mbufs[i], at);
		rte_pktmbuf_free(mbufs[i]);
	}
	return took;
}

static void play(struct several *all, const struct turn *turn, unsigned *at)
{
	int come[CV_FROM_BURST];
	uint32_t len;
	uint16_t took;

	send_from(&all->guests[turn->by], turn->sent);
	if (turn->time != GOES_ON)
		all->waiting->due = rte_rdtsc();
	if (turn->time == FORGOTTEN)
		all->waiting->passed = CV_WAITING_FORGOTTEN;
	took = take_one(all, turn->by, turn->n > 0 ? turn->n : 32, at, come);
	assert_true(took < RTE_DIM(turn->come));
	assert_int_equal(turn->come[took], 0);
	for (uint16_t i = 0; i < took; i++)
		assert_int_equal(come[i], turn->come[i] == PLAIN ? 0 : turn->come[i]);
	while (guest_take(&all->guests[turn->by], &len))
		;
}

static void a_frame_waits_for_other_guests(void **unused)
{
	for (size_t row = 0; row < RTE_DIM(waiting_rows); row++) {
		struct several all;
		unsigned at = 0;

		print_message("%s\n", waiting_rows[row].description);
		begin_several(&all);
		for (size_t i = 0; i < 6 && waiting_rows[row].turns[i].sent != NULL; i++)
			play(&all, &waiting_rows[row].turns[i], &at);
		assert_int_equal(at, sent_count);
		assert_int_equal(all.from[0].frames + all.from[1].frames, waiting_rows[row].frames);
		assert_int_equal(
			all.from[0].convoys + all.from[1].convoys, waiting_rows[row].convoys);
		assert_int_equal(all.from[0].shared + all.from[1].shared, waiting_rows[row].shared);
		assert_int_equal(
			all.from[0].refused + all.from[1].refused, waiting_rows[row].refused);
		end_several(&all);
	}
}

// What a guest sent, in its order: frames of others may overtake it.
static unsigned compare_each(struct rte_mbuf *mbuf, const uint8_t *senders, unsigned at[GUESTS])
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], whole = {0};
	struct cv_convoy convoy = {0};

	cv_view_set(&whole, rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	if (cv_convoy_walk(&convoy, views, &whole, PORT) != CV_CONVOY_OK) {
		views[0] = whole;
		convoy.count = 1;
	}
	for (unsigned i = 0; i < convoy.count; i++) {
		unsigned by = 0;

		for (; by < GUESTS; by++) {
			while (at[by] < sent_count && senders[at[by]] != by)
				at[by]++;
			if (at[by] < sent_count && views[i].len == sent[at[by]].len &&
				memcmp(views[i].data, sent[at[by]].bytes, views[i].len) == 0)
				break;
		}
		assert_true(by < GUESTS);
		at[by]++;
	}
	return convoy.count;
}

// Whatever comes when, no packet is lost, and none overtakes another of its guest.
static void and_keeps_each_guests_order(void **unused)
{
	unsigned random = 1;

	for (unsigned round = 0; round < 500; round++) {
		uint8_t senders[RTE_DIM(sent)];
		unsigned at[GUESTS] = {0}, came = 0;
		struct several all;

		begin_several(&all);
		for (unsigned turn = 0; turn < 4 || sent_count < RTE_DIM(sent) - 8; turn++) {
			const unsigned by = ((random = random * 1103515245 + 12345) >> 16) % GUESTS;
			const bool ends = sent_count >= RTE_DIM(sent) - 8;
			const uint16_t n = (uint16_t)(1 + (random >> 17) % 4);
			struct rte_mbuf *mbufs[CV_FROM_BURST];
			char kinds[8] = {0};
			uint32_t len;
			uint16_t took;

			for (unsigned i = 0; !ends && i < (random >> 20) % 7; i++)
				kinds[i] = "pppcLsM"[(random >> (2 * i)) % 7];
			memset(senders + sent_count, (int)by, strlen(kinds));
			send_from(&all.guests[by], kinds);
			if ((random >> 27) % 3 == 0)
				all.waiting->due = rte_rdtsc();
			do {
				took = cv_from_guest_take_waiting(&all.from[by],
					&all.guests[by].vring, pool, mbufs, n, all.waiting);
				assert_true(took <= n);
				for (uint16_t i = 0; i < took; i++)
					came += compare_each(mbufs[i], senders, at);
				rte_pktmbuf_free_bulk(mbufs, took);
			} while (cv_vring_ready(&all.guests[by].vring) > 0);
			while (guest_take(&all.guests[by], &len))
				;
		}
		for (unsigned by = 0; by < GUESTS; by++) {
			struct rte_mbuf *mbufs[CV_FROM_BURST];

			all.waiting->due = rte_rdtsc();
			if (cv_from_guest_take_due(&all.from[by], mbufs, all.waiting) == 0)
				continue;
			came += compare_each(mbufs[0], senders, at);
			rte_pktmbuf_free(mbufs[0]);
		}
		assert_int_equal(came, sent_count);
		end_several(&all);
	}
}

static void what_waits_goes_with_the_guest_whose_buffer_it_is_in(void **unused)
{
	unsigned at = 0;
	struct several all;

	begin_several(&all);
	play(&all, &(struct turn){0, "pp", .come = {0}}, &at);
	play(&all, &(struct turn){1, "p", .come = {0}}, &at);
	assert_int_equal(cv_waiting_frames_drop(&all.from[1].waiting, &all.from[1]), 0);
	assert_int_equal(cv_waiting_frames_drop(&all.from[0].waiting, &all.from[0]), 3);
	assert_int_equal(cv_waiting_frames_drop(&all.from[0].waiting, &all.from[0]), 0);
	end_several(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_room_waits),
		cmocka_unit_test(what_waits_is_lost_with_the_guest),
		cmocka_unit_test(those_that_wait_go_first),
		cmocka_unit_test(a_guest_makes_no_convoys),
		cmocka_unit_test(nor_where_none_are_made),
		cmocka_unit_test(nor_by_rte_vhost),
		cmocka_unit_test(without_buffers_packets_stay_with_the_guest),
		cmocka_unit_test(a_length_of_nearly_4_gib_is_too_long),
		cmocka_unit_test(a_frame_waits_for_other_guests),
		cmocka_unit_test(and_keeps_each_guests_order),
		cmocka_unit_test(what_waits_goes_with_the_guest_whose_buffer_it_is_in),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
