// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any frames through a worker's path: taken over, convoys disaggregated, through functions, some of
// which resize packets, and out by ports of which some carry convoys. Whatever comes, no byte
// outside of a frame is read on the way in, nothing is written outside of a buffer; what leaves
// is, packet by packet and in its order, what the functions let pass; what the next hop would take
// for a convoy is one of ours; the packets received are those sent and those dropped; and every
// buffer comes back. A trace (chain/trace.h) has one record of each packet, of the end that was counted.
//
// Input: 4 bytes of settings, then frames: a byte that says what it is, a byte more, 2 bytes of
// length, its bytes. A frame is taken as it is, or its bytes are the packets of a convoy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <sanitizer/asan_interface.h>

#include "chain/rx.h"
#include "chain/classify.h"
#include "chain/trace_hooks.h"
#include "chain/tx.h"
#include "convoy/may_be.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PORTS 3
#define NEXT_HOPS 4
#define VNIS 2
#define FUNCTIONS 3
#define BUFFERS 1023u
#define GUARD 64 // bytes on either side of a buffer that nobody may touch
#define PACKETS_MAX 4096 // of one input
#define FRAMES_MAX 256

static const struct {
	const char *type, *config;
} configured[FUNCTIONS] = {
	{"firewall", "{\"default\": \"allow\", \"rules\": ["
		     "{\"action\": \"deny\", \"proto\": \"tcp\", \"dport\": 23}]}"},
	{"router",
		"{\"routes\": [{\"prefix\": \"0.0.0.0/1\", \"dev\": \"b\", \"via\": \"10.0.0.1\"},"
		"{\"prefix\": \"192.0.0.0/8\", \"dev\": \"c\", \"via\": \"10.0.0.1\"}],"
		"\"neighbours\": [{\"address\": \"10.0.0.1\", \"mac\": \"02:00:00:00:00:01\"}]}"},
	{"l2fwd", "{\"mode\": \"swap\"}"},
};

static const struct cv_nf *nf[FUNCTIONS];
static void *instance[FUNCTIONS];
static struct rte_mempool *pool;
static struct cv_classifier classifier; // takes tunnels off
static struct cv_next_hop_rcu next_hop_rcu;
static struct cv_tx *tx;
static struct cv_trace *trace;
static uint64_t traces_lost;

// A packet that goes to its port, or next hop, and has not yet been seen there.
struct expected {
	uint8_t bytes[2048];
	uint32_t len;
	uint8_t port;
	uint16_t next_hop;
	bool gone;
};

static struct expected expected[PACKETS_MAX];
static unsigned expected_count;
static struct cv_port_counters counters[PORTS];
static struct cv_frame_counters rx_counters, next_hop_counters[NEXT_HOPS];
static uint64_t function_drops;
static uint8_t settings[4];
static bool lost; // a port took not all: what it did not take is not known

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static const struct cv_outer *outer_of(uint16_t next_hop)
{
	return &cv_next_hop_at(next_hop_rcu.table, next_hop)->outer;
}

// The next hop of a packet that leaves by a port.
static uint16_t next_hop_of(const struct cv_view *view)
{
	const uint32_t key = cv_next_hop_key_of(view);
	uint16_t next_hop;

	cv_next_hop_find(next_hop_rcu.table, &key, &next_hop, 1);
	return next_hop;
}

static bool has_next_hops(void)
{
	return tx->next_hop_rcu != NULL;
}

// begun: as cv_tx_flush() has it.
static void flush(uint64_t begun)
{
	cv_tx_flush(tx, begun);
	if (cv_trace_is_on())
		cv_trace_flush();
}

static void see_packet(const uint8_t *bytes, uint32_t len, uint8_t port, uint16_t next_hop)
{
	for (unsigned i = 0; i < expected_count; i++) {
		struct expected *next = &expected[i];

		if (next->gone || next->port != port || next->next_hop != next_hop)
			continue;
		if (next->len == len && memcmp(next->bytes, bytes, len) == 0) {
			next->gone = true;
			return;
		}
		must(lost, "packets leave as they were, in their order");
		next->gone = true;
	}
	must(false, "nothing leaves that was not let pass");
}

// Where a frame that left by a port as it is was sent to.
static uint16_t next_hop_of_frame(struct cv_view frame, uint8_t port)
{
	uint8_t class;

	frame.out = port;
	if (settings[1] & 32)
		cv_classify(&classifier, &frame, &class, 1);
	return has_next_hops() ? next_hop_of(&frame) : CV_NEXT_HOP_NONE;
}

static void see_frame(uint8_t *bytes, uint32_t len, uint8_t port)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX], frame = {0};
	struct cv_convoy convoy;

	cv_view_set(&frame, bytes, (uint16_t)len);
	if (has_next_hops() && cv_may_be_convoy(&frame, outer_of(0)->udp_port)) {
		must(cv_convoy_walk(&convoy, views, &frame, outer_of(0)->udp_port) == CV_CONVOY_OK,
			"what leaves in a convoy is a good one");
		must(convoy.nfi < NEXT_HOPS && memcmp(bytes, outer_of(convoy.nfi)->bytes, 14) == 0,
			"it has the header of a next hop");
		must(len <= outer_of(convoy.nfi)->frame_max, "it is not longer than the MTU");
		for (unsigned i = 0; i < convoy.count; i++)
			see_packet(views[i].data, views[i].len, port, convoy.nfi);
	} else {
		see_packet(bytes, len, port, next_hop_of_frame(frame, port));
	}
}

static uint16_t port_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **frames, uint16_t n);
static uint16_t port_tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n);

static struct cv_port ports[PORTS];
static struct cv_port *port_list[PORTS] = {&ports[0], &ports[1], &ports[2]};

// How many of n a port takes: it is full now and then.
static uint16_t taken(uint16_t n)
{
	static unsigned calls;

	if (settings[3] == 0 || ++calls % (1u + settings[3] % 64) != 0)
		return n;
	lost = true;
	return n / 2;
}

static uint16_t port_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **frames, uint16_t n)
{
	n = taken(n);
	for (uint16_t i = 0; i < n; i++) {
		must(frames[i]->nb_segs == 1 && frames[i]->pkt_len == frames[i]->data_len,
			"a frame is in one piece");
		see_frame(rte_pktmbuf_mtod(frames[i], uint8_t *), frames[i]->data_len,
			(uint8_t)(port - ports));
	}
	rte_pktmbuf_free_bulk(frames, n);
	return n;
}

static uint16_t port_tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	n = taken(n);
	for (uint16_t i = 0; i < n; i++)
		see_frame(cv_view_packet(&views[i]), cv_view_packet_len(&views[i]),
			(uint8_t)(port - ports));
	return n;
}

// Makes a packet longer or shorter, as two of its bytes say.
static void resize(struct cv_nf_worker *worker, struct cv_view *view, uint8_t how, uint8_t bytes)
{
	uint8_t *new = NULL;

	if (how % 4 == 0)
		new = cv_nf_prepend(worker, view, bytes);
	else if (how % 4 == 1)
		new = cv_nf_append(worker, view, bytes);
	else if (how % 4 == 2)
		cv_nf_adj(worker, view, bytes);
	else
		cv_nf_trim(worker, view, bytes);
	if (new == NULL)
		return;
	memset(new, how, bytes);
	cv_view_parse(view);
}

// A function: drops some packets by their bytes, resizes some, and sends others by another port.
static uint16_t drop_and_steer(void *unused, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	uint16_t drops = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t byte = views[i].len > 5 ? views[i].data[5] : 0;

		if (settings[1] & 8)
			views[i].out = (uint8_t)(byte % PORTS);
		verdicts[i] = settings[1] & 16 && byte % 5 == 4 ? CV_DROP(0) : CV_NEXT;
		drops += verdicts[i] != CV_NEXT;
		if (settings[1] & 64 && byte % 3 == 0 && views[i].len > 7)
			resize(worker, &views[i], views[i].data[6], views[i].data[7]);
	}
	return drops;
}

// Will a packet be dropped on its way out, for what it is?
static bool is_refused(const struct cv_view *view, uint16_t next_hop)
{
	const uint32_t len = cv_view_packet_len(view);
	struct cv_view whole = {0};

	cv_view_set(&whole, cv_view_packet(view), (uint16_t)len);
	if (len > ports[view->out].mtu + 22u)
		return true;
	if (!cv_may_be_convoy(&whole, outer_of(0)->udp_port))
		return false;
	if (next_hop == CV_NEXT_HOP_NONE)
		return tx->convoy_ports[view->out] != 0;
	return len > outer_of(next_hop)->packet_max;
}

static void expect(const struct cv_burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++) {
		const struct cv_view *view = &burst->views[i];
		uint16_t next_hop = has_next_hops() ? next_hop_of(view) : CV_NEXT_HOP_NONE;

		if (is_refused(view, next_hop))
			continue;
		must(expected_count < PACKETS_MAX, "an input has so many packets at most");
		expected[expected_count].len = cv_view_packet_len(view);
		expected[expected_count].port =
			next_hop == CV_NEXT_HOP_NONE
				? view->out
				: cv_next_hop_at(next_hop_rcu.table, next_hop)->port;
		expected[expected_count].next_hop = next_hop;
		expected[expected_count].gone = false;
		memcpy(expected[expected_count++].bytes, cv_view_packet(view),
			cv_view_packet_len(view));
	}
}

static struct rte_mbuf *guarded[CV_BURST_MAX];
static unsigned guarded_count;

// Buffers that were freed meanwhile are others' by then, too.
static void unguard(void)
{
	while (guarded_count > 0) {
		const struct rte_mbuf *buffer = guarded[--guarded_count];

		__asan_unpoison_memory_region(buffer->buf_addr, buffer->buf_len);
	}
}

// Until then nobody may touch what is not a frame's bytes in its buffer.
static void guard(struct rte_mbuf *const *buffers, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *buffer = buffers[i]->buf_addr,
			*data = rte_pktmbuf_mtod(buffers[i], uint8_t *);
		uint8_t *end = data + buffers[i]->data_len;

		__asan_poison_memory_region(buffer, (size_t)(data - buffer));
		__asan_poison_memory_region(end, (size_t)(buffer + buffers[i]->buf_len - end));
		guarded[guarded_count++] = buffers[i];
	}
}

static void leave(struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	unguard();
	expect(burst);
	cv_tx_burst(tx, burst);
}

static void pass(struct cv_burst *burst)
{
	struct cv_nf_counters nf_counters[FUNCTIONS + 1] = {0};
	struct cv_step steps[FUNCTIONS + 1] = {
		{.process = drop_and_steer, .counters = &nf_counters[FUNCTIONS]}};
	struct cv_path path = {.length = 1, .steps = steps};
	struct cv_path_worker worker = {.pool = pool, .ports_counters = counters, .leave = leave};
	uint8_t classes[CV_BURST_VIEWS];

	if (burst->n == 0)
		return;
	if (settings[1] & 64) // packets may grow within their buffers
		unguard();
	if (settings[1] & 32) {
		cv_classify(&classifier, burst->views, classes, burst->n);
		cv_burst_measure(burst);
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (settings[1] >> i & 1)
			steps[path.length++] = (struct cv_step){.process = nf[i]->process,
				.instance = instance[i],
				.counters = &nf_counters[i]};
	cv_path_run(&path, &worker, burst);
	for (unsigned i = 0; i <= FUNCTIONS; i++)
		for (unsigned why = 0; why < CV_DROPS_MAX; why++)
			function_drops += nf_counters[i].drops[why];
	unguard();
}

// Frames as a port gives them that may carry convoys.
static void take_frames(struct cv_burst *burst, struct rte_mbuf **frames, uint16_t n)
{
	const struct cv_convoy_rx rx = {.udp_port = RTE_BE16(CV_CONVOY_PORT),
		.counters = &rx_counters,
		.copies = settings[0] & 16,
		.senders = {{.len = 4, .bytes = {192, 0, 2, 1}}},
		.senders_count = settings[0] >> 5 & 1};

	for (uint16_t done = 0; done < n;) {
		done += cv_burst_load_convoys(
			burst, frames + done, n - done, 0, 1, &rx, &counters[0]);
		pass(burst);
	}
}

// The same as views of a port that coalesces: packets one behind the other in a buffer.
static void take_views(struct cv_burst *burst, struct rte_mbuf **packets, uint16_t n)
{
	struct rte_mbuf *frames[CV_VIEWS_MAX];
	struct cv_buffers *buffers = &burst->buffers;

	buffers->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *last = buffers->n > 0 ? buffers->buffers[buffers->n - 1] : NULL;
		uint16_t len = packets[i]->data_len;
		rte_be16_t prefix = rte_cpu_to_be_16(len);
		char *at = last != NULL ? rte_pktmbuf_append(last, len + 2) : NULL;

		if (at == NULL) {
			buffers->buffers[buffers->n] = packets[i];
			buffers->views[buffers->n++] = 0;
			at = rte_pktmbuf_prepend(packets[i], 2);
		} else {
			memcpy(at + 2, rte_pktmbuf_mtod(packets[i], void *), len);
			rte_pktmbuf_free(packets[i]);
		}
		memcpy(at, &prefix, 2);
		buffers->views[buffers->n - 1]++;
		cv_view_set(&burst->views[i], (uint8_t *)at + 2, len);
	}
	for (unsigned b = 0, at = 0; b < buffers->n; at += buffers->views[b++])
		if (buffers->views[b] == 1)
			cv_buffer_set(
				buffers->buffers[b], burst->views[at].data, burst->views[at].len);
	guard(buffers->buffers, buffers->n);
	if (settings[0] & 2 && cv_views_have_convoys(burst->views, n, RTE_BE16(CV_CONVOY_PORT))) {
		unguard();
		n = cv_burst_to_frames(burst, n, frames, pool, &counters[0]);
		guard(frames, n);
		take_frames(burst, frames, n);
		return;
	}
	cv_burst_take_views(burst, n, 0, 1, &counters[0]);
	pass(burst);
}

// Such ports give nothing that has not even an Ethernet header.
static uint16_t without_runts(struct rte_mbuf **frames, uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++)
		if (frames[i]->data_len >= CV_ETHER_LEN)
			frames[kept++] = frames[i];
		else
			rte_pktmbuf_free(frames[i]);
	return kept;
}

static void take(struct rte_mbuf **frames, uint16_t n)
{
	static struct cv_burst burst;

	if (settings[0] & 1) {
		n = without_runts(frames, n);
		if (n > 0)
			take_views(&burst, frames, n);
	} else {
		guard(frames, n);
		if (settings[0] & 2) {
			take_frames(&burst, frames, n);
		} else {
			cv_burst_load(&burst, frames, n, 0, 1, &counters[0]);
			pass(&burst);
		}
	}
	unguard();
	if (settings[0] & 4)
		flush(settings[2] & 64 ? rte_rdtsc() : CV_TX_ALL);
}

// A convoy, or what is nearly one: the bytes are its packets, of how they are cut.
static struct rte_mbuf *make_frame(uint8_t kind, uint8_t cut, const uint8_t *bytes, uint16_t len)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
	unsigned count = 1u + (cut & 31);
	uint8_t *at;

	must(frame != NULL, "there are as many buffers as frames");
	at = (uint8_t *)rte_pktmbuf_append(frame, len);
	memcpy(at, bytes, len);
	for (unsigned again = kind % 4; again > 0; again--) {
		const struct cv_outer *outer = outer_of(kind >> 2 & 3);
		uint32_t each = rte_pktmbuf_data_len(frame) / count;
		uint8_t copy[2048];

		len = rte_pktmbuf_data_len(frame);
		memcpy(copy, rte_pktmbuf_mtod(frame, void *), len);
		if (each < CV_CONVOY_PACKET_MIN || len + 2 * count + outer->len > 2000)
			break;
		rte_pktmbuf_reset(frame);
		at = (uint8_t *)rte_pktmbuf_append(frame, (uint16_t)(outer->len + len + 2 * count));
		cv_outer_write(outer, at, (uint8_t)count, len + 2 * count, 0);
		at += outer->len;
		for (unsigned i = 0; i < count; i++) {
			uint32_t part = i < count - 1 ? each : len - each * (count - 1);

			at[0] = (uint8_t)(part >> 8);
			at[1] = (uint8_t)part;
			memcpy(at + 2, copy + i * each, part);
			at += 2 + part;
		}
		count = 1; // around it
	}
	if (kind & 16 && frame->data_len > 60) // something is wrong with it
		rte_pktmbuf_mtod(frame, uint8_t *)[14 + cut % 46] ^= kind;
	return frame;
}

static void begin(const uint8_t *data)
{
	memcpy(settings, data, sizeof(settings));
	memset(counters, 0, sizeof(counters));
	expected_count = 0;
	function_drops = 0;
	lost = false;
	tx->next_hop_rcu = settings[0] & 8 ? &next_hop_rcu : NULL;
	for (unsigned i = 0; i < PORTS; i++) {
		ports[i].tx_views = settings[2] >> i & 1 ? port_tx_views : NULL;
		tx->convoy_ports[i] = settings[2] >> (i + 3) & 1 || has_next_hops()
					      ? RTE_BE16(CV_CONVOY_PORT)
					      : 0;
	}
}

static void check(void)
{
	uint64_t in = counters[0].rx_packets, out = function_drops;

	for (unsigned p = 0; p < PORTS; p++) {
		out += counters[p].tx_packets;
		for (unsigned why = 0; why < CV_DROP_REASONS; why++)
			out += counters[p].drops[why];
	}
	must(in == out, "what was received was sent or dropped");
	must(rte_mempool_in_use_count(pool) == 0, "every buffer comes back");
	for (unsigned i = 0; i < expected_count && !lost; i++)
		must(expected[i].gone, "what was let pass leaves");
}

// One record of each packet: as many were sent, and as many dropped for each reason of the node's, as
// was counted. For want of a buffer, packets may be dropped before they are any.
static void check_trace(void)
{
	uint64_t ends[CV_TRACE_HELD + 1] = {0}, why[CV_DROP_REASONS] = {0}, sent = 0;
	const struct cv_trace_record *record;
	const uint64_t before = cv_trace_lost(trace);

	while ((record = cv_trace_peek(trace)) != NULL) {
		ends[record->end]++;
		if (record->end == CV_TRACE_DROPPED)
			why[record->why]++;
		cv_trace_release(trace);
	}
	if (!(settings[1] & 128) || before != traces_lost) {
		traces_lost = before;
		return;
	}
	for (unsigned i = 0; i < CV_DROP_REASONS; i++) {
		uint64_t drops = 0;

		for (unsigned p = 0; p < PORTS; p++)
			drops += counters[p].drops[i];
		must(i == CV_DROP_NO_BUFFER || why[i] == drops, cv_drop_reason_names[i]);
	}
	for (unsigned p = 0; p < PORTS; p++)
		sent += counters[p].tx_packets;
	must(ends[CV_TRACE_FUNCTION_DROPPED] == function_drops, "what functions drop is traced");
	must(ends[CV_TRACE_SENT] == sent, "what is sent is traced");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf *frames[32];
	unsigned all = 0;
	uint16_t n = 0;

	if (size < sizeof(settings))
		return 0;
	begin(data);
	cv_trace_set(settings[1] & 128 ? trace : NULL);
	data += sizeof(settings);
	size -= sizeof(settings);
	while (size >= 4 && all++ < FRAMES_MAX) {
		uint8_t kind = data[0], cut = data[1];
		size_t len = (data[2] | (size_t)data[3] << 8) % 1600;

		data += 4;
		size -= 4;
		if (len > size)
			len = size;
		frames[n++] = make_frame(kind, cut, data, (uint16_t)len);
		data += len;
		size -= len;
		// As many at once as the frames say.
		if (n == 32 || kind & 128) {
			take(frames, n);
			n = 0;
		}
	}
	if (n > 0)
		take(frames, n);
	flush(CV_TX_ALL);
	check();
	check_trace();
	cv_trace_set(NULL);
	return 0;
}

// Buffers have bytes on either side that nobody may touch.
static void narrow(struct rte_mempool *unused, void *opaque, void *object, unsigned index)
{
	struct rte_mbuf *buffer = object;

	__asan_poison_memory_region((uint8_t *)buffer->buf_addr - GUARD, GUARD);
	buffer->buf_len -= GUARD;
	__asan_poison_memory_region((uint8_t *)buffer->buf_addr + buffer->buf_len, GUARD);
}

// By port 1 by VLAN, and all the same way by port 2; by port 0 none.
static void make_next_hops(void)
{
	static const uint16_t mtus[NEXT_HOPS] = {1500, 576, 200, 1500};
	struct cv_next_hop next_hops[NEXT_HOPS] = {0};
	const struct cv_next_hop_entry entries[] = {
		{cv_next_hop_key(1, CV_SCID_VLAN, 5), 0},
		{cv_next_hop_key(1, CV_SCID_VLAN, 6), 1},
		{cv_next_hop_key(1, CV_SCID_VNI, 1), 1},
		{cv_next_hop_key(1, CV_SCID_NONE, 0), 2},
		{cv_next_hop_key(2, CV_SCID_NONE, 0), 3},
	};

	for (uint16_t i = 0; i < NEXT_HOPS; i++) {
		struct cv_outer_config config = {.version = i & 1 ? 6 : 4,
			.dst_mac = {2, (uint8_t)i},
			.src = {192, 0, 2, 1},
			.mtu = mtus[i],
			.nfi = i,
			.vlans = i == 1,
			.vlan = {{0x8100, 9}}};

		next_hops[i].port = i == 3 ? 2 : 1;
		next_hops[i].wait =
			i & 1 ? UINT32_MAX * UINT64_C(1000) : 0; // longer than any input
		must(cv_outer_set(&next_hops[i].outer, &config, NULL) == 0, "an outer header");
	}
	must(cv_next_hop_rcu_init(&next_hop_rcu,
		     cv_next_hop_table_make(
			     next_hops, NEXT_HOPS, entries, RTE_DIM(entries), 0, NULL),
		     1) == 0,
		"a table of next hops");
	cv_next_hop_rcu_online(&next_hop_rcu, 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const names[] = {"a", "b", "c"};
	static const uint8_t macs[PORTS][6] = {{2, 1}, {2, 2}, {2, 3}};
	static const uint16_t mtus[PORTS] = {1500, 1500, 1500};
	const struct cv_nf_env env = {.name = "fuzzed",
		.workers = 1,
		.socket = -1,
		.ports = names,
		.macs = macs,
		.mtus = mtus,
		.ports_count = PORTS};
	char *eal[] = {(*argv)[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"256", "-l", "0", "--log-level=error", "--file-prefix=cv-fuzz-chain"};
	static struct cv_filter filter; // takes all
	const struct cv_trace_config traced = {.filter = &filter, .sample = 1, .snap = 256};
	struct cv_error error = {""};

	must(rte_eal_init(RTE_DIM(eal), eal) >= 0, "the EAL starts");
	// The private area before a buffer is its guard; so are its last bytes, which the pool forgets.
	pool = rte_pktmbuf_pool_create(
		"chain", BUFFERS, 0, GUARD, 2048 + RTE_PKTMBUF_HEADROOM + GUARD, SOCKET_ID_ANY);
	must(pool != NULL, "memory for buffers");
	rte_mempool_obj_iter(pool, narrow, NULL);
	((struct rte_pktmbuf_pool_private *)rte_mempool_get_priv(pool))->mbuf_data_room_size -=
		GUARD;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		json_t *config = json_loads(configured[i].config, 0, NULL);

		nf[i] = cv_nf_find(configured[i].type);
		must(nf[i] != NULL && config != NULL, configured[i].type);
		instance[i] = cv_nf_create(nf[i], config, &env, &error);
		must(instance[i] != NULL, error.text);
		cv_nf_start(nf[i], instance[i], &env);
		json_decref(config);
	}
	cv_classifier_init(&classifier);
	for (uint32_t vni = 0; vni < VNIS; vni++)
		must(cv_classifier_add_vni(&classifier, vni, (uint8_t)vni) == 0, "a VNI");
	make_next_hops();
	trace = cv_trace_create(&traced);
	must(trace != NULL, "memory");
	tx = calloc(1, sizeof(*tx));
	must(tx != NULL, "memory");
	for (unsigned i = 0; i < PORTS; i++)
		ports[i] = (struct cv_port){.tx = port_tx, .mtu = 1500};
	*tx = (struct cv_tx){.ports = port_list,
		.ports_count = PORTS,
		.pool = pool,
		.counters = counters,
		.next_hop_counters = next_hop_counters};
	return 0;
}
