// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A program under libconvoy_ethdev.so whose port receives any frames, convoys or not, and whose driver
// takes any number of those that it sends. The program does to its packets what programs do. What
// leaves is what it sent, byte for byte and in its order, but for the packets that are counted as
// dropped; the driver never sees a view, nor a packet that others would take for a convoy; and every
// buffer comes back.
//
//   settings, steps: kind, 3 numbers, and for some kinds a length and as many bytes
#include "convoy/frame.h"
#include "convoy/may_be.h"
#include "preload/ethdev/receive.h"
#include "preload/ethdev/send.h"
#include "tests/support/test_eal.h"

#define BUFFERS 1023u
#define HELD 128u // packets that the program has
#define WIRE 64u // frames that the driver has received
#define LONGEST 8192u
#define ROOM 1800u // bytes that a frame from the wire has at most
#define BURST 64u

enum kind { FRAME, CONVOY, CORRUPT, RECEIVE, SEND, LIMIT, TREAT, WRITE, KINDS };
enum treatment { FREE, TRIM, ADJUST, CLONE, COPY, CHAIN, OFFLOAD, SWAP, PREPEND, TREATMENTS };

struct packet {
	uint32_t len;
	uint8_t bytes[LONGEST];
};

struct input {
	const uint8_t *at, *end;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rte_mempool *pool, *buffers; // the program's, and the library's for convoys
static struct cv_mbuf_set_pool *sets;
static struct cv_ethdev_config config = {.port = CV_CONVOY_PORT, .mtu = 1500};
static struct cv_outer fixed;
static struct cv_headroom headroom;
static _Atomic bool convoys, speaks;
static struct cv_rx_queue rx;
static struct cv_tx_queue tx;
static struct rte_mbuf *wire[WIRE], *held[HELD], *sent[BURST];
static uint32_t wire_count, held_count, sent_count, limit;

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static uint8_t number(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

// Bytes of the input: as many as its next one says eight times, and there are.
static const uint8_t *some_bytes(struct input *input, uint32_t *len)
{
	const uint8_t *bytes;

	*len = RTE_MIN(8u * number(input), (uint32_t)(input->end - input->at));
	bytes = input->at;
	input->at += *len;
	return bytes;
}

static uint16_t driver_receive(void *unused, struct rte_mbuf **mbufs, uint16_t n)
{
	n = (uint16_t)RTE_MIN(n, wire_count);
	memcpy(mbufs, wire, n * sizeof(*mbufs));
	wire_count -= n;
	memmove(wire, wire + n, wire_count * sizeof(*wire));
	return n;
}

static uint16_t driver_send(void *unused, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint32_t most = RTE_MIN(limit, BURST - sent_count);

	n = (uint16_t)RTE_MIN(n, most);
	for (uint16_t i = 0; i < n; i++) {
		for (const struct rte_mbuf *piece = mbufs[i]; piece != NULL; piece = piece->next)
			require(!cv_is_view(piece), "the driver sees no view");
		sent[sent_count++] = mbufs[i];
	}
	limit -= n;
	return n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_outer_config next_hop = {.version = 4,
		.dst_mac = {2, 9},
		.src_mac = {2, 8},
		.src = {192, 0, 2, 8},
		.dst = {192, 0, 2, 9}};

	(void)argc;
	(void)argv;
	test_eal_begin("fuzz_preload_ethdev");
	atexit(test_dir_remove);
	pool = rte_pktmbuf_pool_create("program", BUFFERS, 0, 64, 2176, SOCKET_ID_ANY);
	buffers = rte_pktmbuf_pool_create("buffers", BUFFERS, 0, 0, 1728, SOCKET_ID_ANY);
	require(pool != NULL && buffers != NULL && cv_outer_set(&fixed, &next_hop, NULL) == 0 &&
			cv_return_name_register(),
		"set up");
	sets = cv_mbuf_set_pool_get(pool);
	require(sets != NULL, "sets");
	return 0;
}

static void begin(uint8_t settings)
{
	static const struct cv_return_next_hops *returns = &rx.returns;
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

	memset(&rx, 0, sizeof(rx));
	memset(&tx, 0, sizeof(tx));
	memset(&headroom, 0, sizeof(headroom));
	convoys = speaks = false;
	limit = UINT32_MAX;
	config.fixed = settings & 4;
	rx.receive = driver_receive;
	rx.config = &config;
	rx.sets = settings & 1 ? sets : NULL;
	rx.headroom.headroom = tx.headroom = settings & 2 ? &headroom : NULL;
	memcpy(rx.mac, mac, settings & 8 ? sizeof(mac) : 0);
	tx.convoys = rx.any_convoys = &convoys;
	tx.speaks = rx.speaks = &speaks;
	rx.port = tx.udp_port = RTE_BE16(CV_CONVOY_PORT);
	tx.send = driver_send;
	tx.fixed = config.fixed ? &fixed : NULL;
	tx.returns = &returns;
	tx.returns_count = 1;
	tx.buffers = buffers;
}

// On the wire, in one piece or cut in two.
static void receive_frame(const uint8_t *bytes, uint32_t len, uint32_t cut)
{
	struct rte_mbuf *frame, *rest = NULL;

	if (wire_count == WIRE || len == 0 || (frame = rte_pktmbuf_alloc(pool)) == NULL)
		return;
	cut = cut == 0 || cut >= len ? len : cut;
	memcpy(rte_pktmbuf_append(frame, (uint16_t)cut), bytes, cut);
	if (cut < len && (rest = rte_pktmbuf_alloc(pool)) != NULL) {
		memcpy(rte_pktmbuf_append(rest, (uint16_t)(len - cut)), bytes + cut, len - cut);
		rte_pktmbuf_chain(frame, rest);
	}
	frame->port = 0;
	wire[wire_count++] = frame;
}

static void make_outer(struct cv_outer *outer, uint8_t sender)
{
	struct cv_outer_config from = {.version = sender & 1 ? 6 : 4,
		.vlans = (uint8_t)(sender >> 1) % 3,
		.vlan = {{0x88a8, 7}, {0x8100, 9}},
		.nfi = sender,
		.dst_mac = {2, 0, 0, 0, 0, sender & 8 ? 2 : 1},
		.src_mac = {2, 1, 0, 0, 0, sender},
		.src = {10, 0, 0, sender},
		.dst = {10, 1, 0, 1}};

	require(cv_outer_set(outer, &from, NULL) == 0, "a sender");
}

static void receive_convoy(uint8_t sender, uint8_t count, uint8_t len)
{
	static uint8_t packets[CV_CONVOY_PACKETS_MAX][CV_CONVOY_PACKET_MIN + 255];
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	uint8_t buffer[ROOM], *frame;
	const uint16_t n = RTE_MAX(count, 1);
	struct cv_outer outer;
	struct cv_frame built;
	uint16_t bytes;

	make_outer(&outer, sender);
	for (uint16_t i = 0; i < n; i++) {
		memset(packets[i], (uint8_t)(i + sender), sizeof(packets[i]));
		packets[i][12] = 0x99; // no IP
		cv_view_set(
			&views[i], packets[i], CV_CONVOY_PACKET_MIN + (uint16_t)(len + i) % 256);
	}
	cv_frame_begin(&built, &outer, buffer, sizeof(buffer));
	cv_frame_add(&built, views, n);
	frame = cv_frame_close(&built, &bytes);
	receive_frame(frame, bytes, 0);
}

static void receive_some(uint8_t most)
{
	const uint16_t n = (uint16_t)RTE_MIN(1u + most % BURST, HELD - held_count);
	uint16_t got;

	if (n == 0)
		return;
	got = cv_receive(&rx, held + held_count, n);
	require(got <= n, "no more packets than asked for");
	for (uint16_t i = 0; i < got; i++)
		rte_mbuf_sanity_check(held[held_count + i], 1);
	held_count += got;
}

static void read_packet(struct packet *packet, const struct rte_mbuf *mbuf)
{
	const void *bytes;

	require(mbuf->pkt_len <= LONGEST, "a packet's length");
	packet->len = mbuf->pkt_len;
	bytes = rte_pktmbuf_read(mbuf, 0, packet->len, packet->bytes);
	require(bytes != NULL, "a packet's bytes");
	memmove(packet->bytes, bytes, packet->len);
}

static bool is(const struct packet *packet, const uint8_t *bytes, uint32_t len)
{
	return packet->len == len && memcmp(packet->bytes, bytes, len) == 0;
}

// The packets of a frame, from the next of those that were given on. Returns the one behind them.
static uint16_t match(const struct packet *given, uint16_t at, uint16_t n, struct packet *frame)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], view = {0};
	struct cv_convoy convoy;

	cv_view_set(&view, frame->bytes, (uint16_t)frame->len);
	for (uint16_t i = at; i < n; i++) {
		if (!is(&given[i], frame->bytes, frame->len))
			continue;
		require((!speaks && tx.fixed == NULL) || !cv_may_be_convoy(&view, tx.udp_port),
			"what looks like a convoy is one of ours");
		return i + 1;
	}
	require(cv_convoy_walk(&convoy, views, &view, tx.udp_port) == CV_CONVOY_OK,
		"a frame is a packet or a convoy");
	for (uint16_t i = 0; i < convoy.count; i++) {
		while (at < n && !is(&given[at], views[i].data, views[i].len))
			at++;
		require(at++ < n, "a packet that was sent, in its order");
	}
	return at;
}

static void send_some(uint8_t from, uint8_t most)
{
	static struct packet given[BURST], frame;
	const uint64_t dropped = tx.counts.looks_like_convoy, pkts = tx.counts.pkts;
	uint16_t n, done, at = 0;

	if (held_count == 0)
		return;
	from %= held_count;
	n = (uint16_t)RTE_MIN(1u + most % BURST, held_count - from);
	for (uint16_t i = 0; i < n; i++)
		read_packet(&given[i], held[from + i]);
	done = cv_send(&tx, held + from, n);
	require(done <= n, "no more packets than given");
	require(tx.counts.pkts - pkts + tx.counts.looks_like_convoy - dropped == done,
		"packets are sent or dropped");
	held_count -= done;
	memmove(held + from, held + from + done, (held_count - from) * sizeof(*held));
	for (uint32_t i = 0; i < sent_count; i++) {
		read_packet(&frame, sent[i]);
		at = match(given, at, done, &frame);
	}
	require(at <= done, "all of them taken");
	rte_pktmbuf_free_bulk(sent, sent_count);
	sent_count = 0;
}

// Another packet in the place of one: NULL if there is no buffer.
static void put_instead(struct rte_mbuf **place, struct rte_mbuf *other)
{
	if (other == NULL)
		return;
	require(!cv_is_view(other), "a copy is no view");
	rte_pktmbuf_free(*place);
	*place = other;
}

static void chain_behind(struct rte_mbuf **place)
{
	struct rte_mbuf *header = rte_pktmbuf_alloc(pool);

	if (header == NULL)
		return;
	memset(rte_pktmbuf_append(header, 20), 0x55, 20);
	if ((*place)->pkt_len > LONGEST / 2 || rte_pktmbuf_chain(header, *place) != 0)
		rte_pktmbuf_free(header);
	else
		*place = header;
}

static void treat(uint8_t which, uint8_t how, uint8_t some)
{
	struct rte_mbuf **place, *mbuf;

	if (held_count == 0)
		return;
	place = &held[which % held_count];
	mbuf = *place;
	switch ((enum treatment)(how % TREATMENTS)) {
	case FREE:
		rte_pktmbuf_free(mbuf);
		*place = held[--held_count];
		break;
	case TRIM:
		if (rte_pktmbuf_lastseg(mbuf)->data_len > some)
			rte_pktmbuf_trim(mbuf, some);
		break;
	case ADJUST:
		if (mbuf->data_len > some)
			rte_pktmbuf_adj(mbuf, some);
		break;
	case CLONE:
		put_instead(place, rte_pktmbuf_clone(mbuf, pool));
		break;
	case COPY:
		put_instead(place, rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX));
		break;
	case CHAIN:
		chain_behind(place);
		break;
	case OFFLOAD:
		mbuf->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
		break;
	case SWAP:
		*place = held[some % held_count];
		held[some % held_count] = mbuf;
		break;
	case PREPEND:
		if (mbuf->pkt_len < LONGEST / 2 && rte_pktmbuf_headroom(mbuf) >= some && some > 0)
			memset(rte_pktmbuf_prepend(mbuf, some), 0x33, some);
		break;
	case TREATMENTS:
		break;
	}
}

// The program writes into a packet, or somebody into the frame that came last.
static void write_bytes(struct rte_mbuf *mbuf, uint32_t at, const uint8_t *bytes, uint32_t len)
{
	at %= mbuf->data_len;
	memcpy(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, at), bytes,
		RTE_MIN(len, mbuf->data_len - at));
}

static void step(struct input *input)
{
	const enum kind kind = number(input) % KINDS;
	const uint8_t a = number(input), b = number(input), c = number(input);
	const uint8_t *bytes;
	uint32_t len;

	if (kind == CONVOY)
		receive_convoy(a, b, c);
	else if (kind == RECEIVE)
		receive_some(a);
	else if (kind == SEND)
		send_some(a, b);
	else if (kind == LIMIT)
		limit = a;
	else if (kind == TREAT)
		treat(a, b, c);
	if (kind != FRAME && kind != CORRUPT && kind != WRITE)
		return;
	bytes = some_bytes(input, &len);
	if (kind == FRAME)
		receive_frame(bytes, RTE_MIN(len, ROOM), a);
	else if (kind == CORRUPT && wire_count > 0)
		write_bytes(wire[wire_count - 1], a, bytes, len);
	else if (kind == WRITE && held_count > 0)
		write_bytes(held[a % held_count], b, bytes, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};

	begin(number(&input));
	while (input.at < input.end)
		step(&input);
	cv_receive_clear(&rx);
	rte_pktmbuf_free_bulk(wire, wire_count);
	rte_pktmbuf_free_bulk(held, held_count);
	wire_count = held_count = 0;
	require(cv_mbuf_sets_in_use() == 0, "every set comes back");
	require(rte_mempool_avail_count(pool) == BUFFERS, "every buffer of the program comes back");
	require(rte_mempool_avail_count(buffers) == BUFFERS,
		"every buffer of the library comes back");
	return 0;
}
