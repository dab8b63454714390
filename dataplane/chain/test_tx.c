// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets through nodes that send convoys to each other: random sizes, SC-IDs, next hops, MTUs,
// drops and bursts. Whatever happens on the way, every packet that was not dropped comes out as it
// went in, in order within its SC-ID, or its flow where an SC-ID has several next hops; packets are
// conserved; every buffer is back in the pool.
#include "tests/support/test_packets.h"

#include "chain/rx.h"
#include "chain/tx.h"
#include "tests/support/test_eal.h"

#define PACKETS 600
#define VLANS 6 // 0: untagged
#define ROUNDS 120

static struct rte_mempool *pool;

static unsigned below(unsigned n)
{
	return (unsigned)rand() % n;
}

// A port that keeps what it is sent.
struct memory_port {
	struct cv_port port;
	struct rte_mbuf *sent[PACKETS];
	unsigned count;
	unsigned room; // frames that it still takes
	bool views; // takes views
};

static uint16_t memory_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **from, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;
	uint16_t i;

	for (i = 0; i < n && memory->room > 0; i++, memory->room--)
		memory->sent[memory->count++] = from[i];
	return i;
}

static uint16_t memory_tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *copy = rte_pktmbuf_alloc(pool);
		uint32_t len = cv_view_packet_len(&views[i]);

		assert_non_null(copy);
		memcpy(rte_pktmbuf_append(copy, (uint16_t)len), cv_view_packet(&views[i]), len);
		if (memory_tx(port, tx_queue, &copy, 1) == 1)
			continue;
		rte_pktmbuf_free(copy);
		break;
	}
	return i;
}

static uint8_t filler(uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + at * 7);
}

// Packet number i: its number in bytes 2 to 5, and all else follows from it and its VLAN.
static void fill(uint8_t *data, uint32_t number, uint16_t len, unsigned vlan)
{
	for (uint16_t i = 0; i < len; i++)
		data[i] = filler(number, i);
	memcpy(data + 2, &number, sizeof(number));
	memcpy(data + 12, (uint8_t[]){0x88, 0xb5}, 2); // for experiments: no tag, no IP
	if (vlan > 0)
		memcpy(data + 12, (uint8_t[]){0x81, 0, 0, (uint8_t)vlan, 8, 0}, 6);
}

// What went in, by number.
struct input {
	uint16_t len[PACKETS];
	uint8_t vlan[PACKETS];
	bool dropped[PACKETS];
};

static uint16_t random_len(unsigned most)
{
	switch (below(4)) {
	case 0:
		return (uint16_t)(14 + below(most - 13));
	case 1:
		return 60;
	default:
		return (uint16_t)(14 + below(150));
	}
}

static unsigned make_input(struct input *input, struct rte_mbuf **packets)
{
	unsigned n = 1 + below(PACKETS);

	memset(input, 0, sizeof(*input));
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);

		assert_non_null(packet);
		input->len[i] = random_len(1514);
		input->vlan[i] = input->len[i] >= 18 ? (uint8_t)below(VLANS) : 0;
		fill((uint8_t *)rte_pktmbuf_append(packet, input->len[i]), i, input->len[i],
			input->vlan[i]);
		packets[i] = packet;
	}
	return n;
}

// A node between two others: takes frames in random bursts, drops some packets, sends the rest.
struct node {
	struct memory_port out;
	struct cv_port *ports[2];
	struct cv_port_counters counters[2];
	struct cv_frame_counters rx, next_hops[CV_NEXT_HOPS_MAX];
	struct cv_next_hop_rcu table;
	struct cv_tx tx;
	struct cv_reassembly *reassembly;
	uint64_t function_drops;
	bool many_chains; // classifies by VLAN
};

static struct cv_next_hop random_next_hop(uint16_t nfi)
{
	static const uint16_t mtus[] = {128, 200, 576, 1500};
	struct cv_outer_config config = {.version = below(2) ? 4 : 6,
		.nfi = nfi,
		.mtu = mtus[below(4)],
		.vlans = below(3) == 0,
		.fragment = below(2),
		.vlan = {{.type = 0x8100, .tci = 9}}};
	struct cv_next_hop next_hop = {.port = 1, .wait = below(2) ? UINT32_MAX : 0};

	assert_int_equal(cv_outer_set(&next_hop.outer, &config, NULL), 0);
	return next_hop;
}

static bool spreads; // SC-IDs may have several next hops

// A table for some of the VLANs, and perhaps for everything else. NULL now and then.
static struct cv_next_hop_table *random_table(void)
{
	struct cv_next_hop_entry entries[2 * VLANS];
	struct cv_next_hop next_hops[3];
	uint32_t count = 0;

	for (uint16_t i = 0; i < 3; i++) {
		next_hops[i] = random_next_hop(i);
		next_hops[i].id = i;
	}
	for (unsigned vlan = 0; vlan < VLANS; vlan++) {
		const uint32_t key =
			cv_next_hop_key(1, vlan > 0 ? CV_SCID_VLAN : CV_SCID_NONE, vlan);
		const uint16_t next_hop = (uint16_t)below(3);

		if (below(4) > 0)
			entries[count++] = (struct cv_next_hop_entry){key, next_hop};
		if (spreads && below(2) > 0)
			entries[count++] = (struct cv_next_hop_entry){key, (next_hop + 1) % 3};
	}
	return cv_next_hop_table_make(next_hops, 3, entries, count, 0, NULL);
}

static void node_init(struct node *node, bool sends_convoys)
{
	memset(node, 0, sizeof(*node));
	node->reassembly = cv_reassembly_make(2000);
	node->out.port = (struct cv_port){.tx = memory_tx, .mtu = 1500};
	if (!sends_convoys && below(2))
		node->out.port.tx_views = memory_tx_views;
	node->out.room = below(8) == 0 ? below(100) : PACKETS;
	node->ports[0] = node->ports[1] = &node->out.port;
	node->many_chains = below(2);
	node->tx = (struct cv_tx){.ports = node->ports,
		.ports_count = 2,
		.pool = pool,
		.counters = node->counters,
		.next_hop_counters = node->next_hops};
	if (!sends_convoys)
		return;
	assert_int_equal(cv_next_hop_rcu_init(&node->table, random_table(), 1), 0);
	node->tx.next_hop_rcu = &node->table;
	cv_next_hop_rcu_online(&node->table, 0);
}

static void node_fini(struct node *node)
{
	cv_reassembly_free(node->reassembly);
	if (node->tx.next_hop_rcu != NULL) {
		cv_next_hop_rcu_offline(&node->table, 0);
		cv_next_hop_rcu_fini(&node->table);
	}
}

static uint32_t number_of(const uint8_t *packet)
{
	uint32_t number;

	memcpy(&number, packet + 2, sizeof(number));
	return number;
}

static struct input *current; // for the function: it is told which packets to drop

// Drops what the input says, from the second node on.
static uint16_t drop_some(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	struct node *node = instance;
	uint16_t drops = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdicts[i] = current->dropped[number_of(views[i].data)] ? CV_DROP(3) : CV_NEXT;
		drops += verdicts[i] != CV_NEXT;
	}
	node->function_drops += drops;
	return drops;
}

static void pass(struct node *node, struct cv_burst *burst)
{
	struct cv_nf_counters counters = {0};
	struct cv_step step = {.process = drop_some, .instance = node, .counters = &counters};
	const struct cv_path path = {.length = 1, .steps = &step};
	struct cv_path_worker worker = {0};

	cv_path_run_functions(&path, &worker, burst);
	if (burst->n > 0)
		cv_tx_burst(&node->tx, burst);
}

static void pass_by_class(struct node *node, struct cv_burst *burst)
{
	uint8_t classes[CV_BURST_VIEWS];
	struct cv_burst part;
	unsigned differ = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		classes[i] = cv_view_vlan(&burst->views[i]) > 2;
		differ |= classes[i] ^ classes[0];
	}
	if (!node->many_chains || !differ) {
		pass(node, burst);
		return;
	}
	for (uint8_t class = 0; class < 2; class ++) {
		cv_burst_pick(burst, classes, class, &part, pool, &node->counters[0]);
		pass(node, &part);
	}
	cv_burst_picked(burst, classes);
}

// All frames through a node, in polls of random length.
static void run(struct node *node, struct rte_mbuf **frames, unsigned n)
{
	const struct cv_convoy_rx rx = {.udp_port = rte_cpu_to_be_16(CV_CONVOY_PORT),
		.counters = &node->rx,
		.reassembly = node->reassembly,
		.pool = pool};
	struct cv_burst burst;

	for (unsigned taken = 0; taken < n;) {
		uint16_t polled = (uint16_t)RTE_MIN(1u + below(64), n - taken);

		for (uint16_t done = 0; done < polled;) {
			done += cv_burst_load_convoys(&burst, frames + taken + done, polled - done,
				0, 1, &rx, &node->counters[0]);
			if (burst.n > 0)
				pass_by_class(node, &burst);
		}
		taken += polled;
		if (below(3) > 0)
			cv_tx_flush(&node->tx, below(2) ? CV_TX_ALL : rte_rdtsc());
	}
	cv_tx_flush(&node->tx, CV_TX_ALL);
}

// The same in one poll iteration.
static void run_at_once(struct node *node, struct rte_mbuf **frames, unsigned n)
{
	const struct cv_convoy_rx rx = {
		.udp_port = rte_cpu_to_be_16(CV_CONVOY_PORT), .counters = &node->rx};
	struct cv_burst burst;

	for (unsigned taken = 0; taken < n;) {
		taken += cv_burst_load_convoys(&burst, frames + taken,
			(uint16_t)RTE_MIN(64u, n - taken), 0, 1, &rx, &node->counters[0]);
		cv_tx_burst(&node->tx, &burst);
	}
	cv_tx_flush(&node->tx, CV_TX_ALL);
}

// received = sent + dropped, and frames as counted are frames as seen.
static void assert_conserved(const struct node *node)
{
	uint64_t dropped = node->function_drops;
	uint64_t to_next_hops = 0;

	for (int p = 0; p < 2; p++)
		for (int i = 0; i < CV_DROP_REASONS; i++)
			dropped += node->counters[p].drops[i];
	assert_int_equal(node->counters[0].rx_packets, node->counters[1].tx_packets + dropped);
	assert_int_equal(node->counters[1].tx_frames, node->out.count);
	for (unsigned next_hop = 0; next_hop < 3; next_hop++)
		for (unsigned i = 1; i <= CV_CONVOY_PACKETS_MAX; i++)
			to_next_hops += i * node->next_hops[next_hop].sizes[i];
	assert_true(to_next_hops <= node->counters[1].tx_packets + dropped);
}

// What the last node sent is what went in, less what was dropped on the way.
static void check(const struct input *input, unsigned n, const struct node *last, bool lost)
{
	uint32_t next[VLANS] = {0};
	uint8_t expected[1514];
	unsigned expected_count = 0;

	for (unsigned i = 0; i < last->out.count; i++) {
		const struct rte_mbuf *packet = last->out.sent[i];
		const uint8_t *data = rte_pktmbuf_mtod(packet, const uint8_t *);
		uint32_t number = number_of(data);

		assert_true(number < n);
		assert_false(input->dropped[number]);
		assert_true(spreads || number >= next[input->vlan[number]]);
		next[input->vlan[number]] = number + 1;
		assert_int_equal(packet->pkt_len, input->len[number]);
		fill(expected, number, input->len[number], input->vlan[number]);
		assert_memory_equal(data, expected, input->len[number]);
	}
	for (unsigned i = 0; i < n; i++)
		expected_count += !input->dropped[i];
	if (!lost)
		assert_int_equal(last->out.count, expected_count);
}

static void comes_out_as_it_went_in(void **state)
{
	static struct node nodes[3];
	static struct rte_mbuf *packets[PACKETS];
	static struct input input;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned n;
		bool lost = false;

		srand(round);
		spreads = round % 5 == 0;
		current = &input;
		n = make_input(&input, packets);
		for (int i = 0; i < 3; i++)
			node_init(&nodes[i], i < 2);
		run(&nodes[0], packets, n);
		for (unsigned i = 0; i < n && round % 3 > 0; i++)
			input.dropped[i] = below(round % 3 == 1 ? 2 : 40) == 0;
		run(&nodes[1], nodes[0].out.sent, nodes[0].out.count);
		run(&nodes[2], nodes[1].out.sent, nodes[1].out.count);
		for (int i = 0; i < 3; i++) {
			assert_conserved(&nodes[i]);
			lost |= nodes[i].counters[1].drops[CV_DROP_TX_FULL] > 0;
			assert_int_equal(nodes[i].counters[0].drops[CV_DROP_BAD_CONVOY], 0);
			assert_int_equal(nodes[i].counters[1].drops[CV_DROP_TOO_BIG], 0);
			assert_int_equal(nodes[i].counters[0].drops[CV_DROP_NO_BUFFER], 0);
			if (i > 0 && nodes[i - 1].counters[1].drops[CV_DROP_TX_FULL] == 0)
				assert_int_equal(
					nodes[i].counters[0].drops[CV_DROP_LOST_FRAGMENT], 0);
		}
		check(&input, n, &nodes[2], lost);
		rte_pktmbuf_free_bulk(nodes[2].out.sent, nodes[2].out.count);
		for (int i = 0; i < 3; i++)
			node_fini(&nodes[i]);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
	spreads = false;
}

// A node whose packets all go to one next hop.
static void node_to_next_hop(struct node *node, struct cv_outer_config config)
{
	struct cv_next_hop next_hop = {.port = 1};
	const struct cv_next_hop_entry entry = {.key = cv_next_hop_key(1, CV_SCID_NONE, 0)};

	node_init(node, true);
	node->out.room = PACKETS;
	node->out.port.mtu = 9000;
	node->many_chains = false;
	assert_int_equal(cv_outer_set(&next_hop.outer, &config, NULL), 0);
	cv_next_hop_rcu_offline(&node->table, 0);
	cv_next_hop_rcu_replace(
		&node->table, cv_next_hop_table_make(&next_hop, 1, &entry, 1, 0, NULL));
	cv_next_hop_rcu_online(&node->table, 0);
}

static void node_to_one_next_hop(struct node *node, uint16_t mtu)
{
	node_to_next_hop(node, (struct cv_outer_config){.version = 4, .mtu = mtu, .nfi = 5});
}

static void end_node(struct node *node)
{
	assert_conserved(node);
	rte_pktmbuf_free_bulk(node->out.sent, node->out.count);
	node_fini(node);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#define FLOWS 50u

// A UDP packet of one of the flows, in one direction or the other; its number is behind the headers.
static struct rte_mbuf *flow_packet(unsigned number)
{
	const unsigned flow = number % FLOWS;
	const bool back = number % 3 == 0;
	struct packet packet;
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);
	char text[160];

	snprintf(text, sizeof(text),
		"ip4 src=10.0.0.%u dst=10.0.0.%u udp sport=%u dport=%u data=%u", back ? 2 : 1,
		back ? 1 : 2, back ? 53 : 1000 + flow, back ? 1000 + flow : 53, 40 + below(30));
	packet = packet_make(text);
	memcpy(packet.bytes + 42, &number, sizeof(number));
	assert_non_null(buffer);
	memcpy(rte_pktmbuf_append(buffer, packet.len), packet.bytes, packet.len);
	return buffer;
}

// Flows of one SC-ID, in both directions, are spread over three next hops: each goes to one of them,
// in order, and packets of different ones share frames.
static void a_flow_goes_to_one_of_several(void **state)
{
	static const struct cv_next_hop_entry entries[] = {
		{1u << 26, 0}, {1u << 26, 1}, {1u << 26, 2}};
	struct cv_next_hop next_hops[3];
	int of_flow[FLOWS];
	unsigned last[FLOWS] = {0}, got[3] = {0}, packets = 0;
	static struct node node;
	static struct input input;
	struct cv_burst burst;

	srand(1);
	memset(of_flow, 0xff, sizeof(of_flow));
	current = &input;
	node_to_one_next_hop(&node, 1500);
	for (uint16_t i = 0; i < 3; i++) {
		const struct cv_outer_config config = {.version = 4, .mtu = 1500, .nfi = i};

		next_hops[i] = (struct cv_next_hop){.port = 1, .id = cv_spread_id(&"abc"[i])};
		assert_int_equal(cv_outer_set(&next_hops[i].outer, &config, NULL), 0);
	}
	cv_next_hop_rcu_offline(&node.table, 0);
	cv_next_hop_rcu_replace(
		&node.table, cv_next_hop_table_make(next_hops, 3, entries, 3, 0, NULL));
	cv_next_hop_rcu_online(&node.table, 0);
	for (unsigned i = 1; i <= PACKETS;) {
		struct rte_mbuf *some[64];
		uint16_t n = 0;

		while (n < 60 && i <= PACKETS)
			some[n++] = flow_packet(i++);
		cv_burst_load(&burst, some, n, 0, 1, &node.counters[0]);
		cv_tx_burst(&node.tx, &burst);
		cv_tx_flush(&node.tx, CV_TX_ALL);
	}
	for (unsigned i = 0; i < node.out.count; i++) {
		const struct rte_mbuf *frame = node.out.sent[i];
		struct cv_view views[CV_CONVOY_PACKETS_MAX], whole;
		struct cv_convoy convoy;

		cv_view_set(&whole, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
		if (cv_convoy_walk(&convoy, views, &whole, RTE_BE16(CV_CONVOY_PORT)) !=
			CV_CONVOY_OK)
			continue; // one by itself does not say where it goes
		for (unsigned j = 0; j < convoy.count; j++) {
			unsigned number;

			memcpy(&number, views[j].data + 42, sizeof(number));
			if (of_flow[number % FLOWS] < 0)
				of_flow[number % FLOWS] = convoy.nfi;
			assert_int_equal(of_flow[number % FLOWS], convoy.nfi);
			assert_true(number > last[number % FLOWS]);
			last[number % FLOWS] = number;
			got[convoy.nfi]++;
			packets++;
		}
	}
	assert_true(packets > PACKETS * 9 / 10);
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(got[i], PACKETS / 12, PACKETS * 3 / 5);
	end_node(&node);
}

static void make_packets(struct rte_mbuf **packets, unsigned n, uint16_t len)
{
	for (unsigned i = 0; i < n; i++) {
		packets[i] = rte_pktmbuf_alloc(pool);
		assert_non_null(packets[i]);
		fill((uint8_t *)rte_pktmbuf_append(packets[i], len), i, len, 0);
	}
}

// Packets come in bursts of 10, all in one poll iteration: a frame takes as many as the MTU lets
// it.
static void joins_up_to_the_mtu(void **state)
{
	static const struct {
		const char *description;
		unsigned packets;
		uint16_t len, mtu;
		unsigned frames, first; // packets of the first
		bool mixed; // one of 20 bytes follows them
	} rows[] = {
		{"one is sent as it is", 1, 60, 1500, 1, 1, false},
		{"two are aggregated", 2, 60, 1500, 1, 2, false},
		{"as many as fit", 24, 60, 1500, 2, 23, false},
		{"255 at most", 256, 20, 8000, 2, 255, false},
		{"too large for any", 3, 1467, 1500, 4, 1, true},
		{"the largest that fits is the only one in it", 2, 1466, 1500, 3, 1, true},
		{"two of 732 bytes just fit", 2, 732, 1500, 2, 2, true},
		{"two of 733 bytes do not", 2, 733, 1500, 2, 1, true},
		{"five of 291 bytes share a frame", 5, 291, 1500, 1, 5, false},
		{"292 bytes each are not worth aggregating", 4, 292, 1500, 4, 1, false},
		{"but not apart from others", 4, 292, 1500, 1, 5, true},
	};
	static struct node node;
	static struct input input;
	static struct rte_mbuf *packets[PACKETS];

	current = &input;
	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		unsigned n = rows[row].packets;
		struct cv_burst burst;

		print_message("  %s\n", rows[row].description);
		node_to_one_next_hop(&node, rows[row].mtu);
		make_packets(packets, n, rows[row].len);
		if (rows[row].mixed)
			make_packets(packets + n++, 1, 20);
		for (unsigned i = 0; i < n; i += 10) {
			cv_burst_load(&burst, packets + i, (uint16_t)RTE_MIN(10u, n - i), 0, 1,
				&node.counters[0]);
			cv_tx_burst(&node.tx, &burst);
		}
		cv_tx_flush(&node.tx, CV_TX_ALL);
		assert_int_equal(node.out.count, rows[row].frames);
		assert_true(node.next_hops[0].sizes[rows[row].first] > 0);
		assert_conserved(&node);
		rte_pktmbuf_free_bulk(node.out.sent, node.out.count);
		node_fini(&node);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// One packet to the next hop, in a poll iteration of its own that began at a TSC.
static bool pass_one(struct node *node, unsigned number, uint64_t begun)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	struct cv_burst burst;

	assert_non_null(packet);
	fill((uint8_t *)rte_pktmbuf_append(packet, 60), number, 60, 0);
	cv_burst_load(&burst, &packet, 1, 0, 1, &node->counters[0]);
	cv_tx_burst(&node->tx, &burst);
	return cv_tx_flush(&node->tx, begun);
}

// The worker's table with a wait; the node before has no frame.
static void set_wait(struct node *node, uint64_t wait)
{
	struct cv_next_hop next_hop = *cv_next_hop_at(node->table.table, 0);
	const struct cv_next_hop_entry entry = {.key = cv_next_hop_key(1, CV_SCID_NONE, 0)};

	next_hop.wait = wait;
	cv_next_hop_rcu_offline(&node->table, 0);
	cv_next_hop_rcu_replace(
		&node->table, cv_next_hop_table_make(&next_hop, 1, &entry, 1, 0, NULL));
	cv_next_hop_rcu_online(&node->table, 0);
}

// A frame with a wait takes packets of several poll iterations, and leaves when it is full.
static void a_frame_waits_until_it_is_full(void **state)
{
	static struct node node;
	static struct input input;

	current = &input;
	memset(&input, 0, sizeof(input));
	node_to_one_next_hop(&node, 1500);
	set_wait(&node, rte_get_tsc_hz() * 3600); // a test that never gets there
	for (unsigned i = 0; i < 22; i++) {
		assert_false(pass_one(&node, i, rte_rdtsc()));
		assert_true(cv_tx_waits(&node.tx));
		assert_int_equal(node.out.count, 0);
	}
	assert_true(pass_one(&node, 22, rte_rdtsc()));
	assert_false(cv_tx_waits(&node.tx));
	assert_int_equal(node.out.count, 1);
	assert_int_equal(node.next_hops[0].sizes[23], 1);
	end_node(&node);
}

// It leaves at the end of the iteration by which it would have waited longer, with what it has.
static void a_frame_waits_no_longer_than_it_may(void **state)
{
	const uint64_t minute = rte_get_tsc_hz() * 60; // a machine runs for longer
	static struct node node;
	static struct input input;

	current = &input;
	memset(&input, 0, sizeof(input));
	node_to_one_next_hop(&node, 1500);
	set_wait(&node, minute);
	assert_false(pass_one(&node, 0, rte_rdtsc()));
	// The next iteration has taken a minute, and so would the one after that.
	assert_true(pass_one(&node, 1, rte_rdtsc() - minute));
	assert_int_equal(node.next_hops[0].sizes[2], 1);
	// What began in an iteration that was too long leaves with it, by itself.
	assert_true(pass_one(&node, 2, rte_rdtsc() - minute));
	assert_int_equal(node.next_hops[0].sizes[1], 1);
	assert_int_equal(node.out.count, 2);
	// Nothing waits when all has to leave.
	assert_false(pass_one(&node, 3, rte_rdtsc()));
	assert_true(cv_tx_flush(&node.tx, CV_TX_ALL));
	assert_int_equal(node.out.count, 3);
	end_node(&node);
}

// A frame that waits belongs to a table: it leaves before the writer takes that away.
static void a_frame_leaves_before_its_table_does(void **state)
{
	static struct node node;
	static struct input input;
	uint64_t token;

	current = &input;
	memset(&input, 0, sizeof(input));
	node_to_one_next_hop(&node, 1500);
	set_wait(&node, rte_get_tsc_hz() * 3600);
	assert_false(pass_one(&node, 0, rte_rdtsc()));
	// As the writer does, but for the waiting.
	__atomic_add_fetch(&node.table.changes, 1, __ATOMIC_RELEASE);
	token = rte_rcu_qsbr_start(node.table.readers);
	assert_int_equal(rte_rcu_qsbr_check(node.table.readers, token, false), 0);
	assert_true(pass_one(&node, 1, rte_rdtsc()));
	assert_int_equal(node.next_hops[0].sizes[2], 1);
	assert_int_equal(rte_rcu_qsbr_check(node.table.readers, token, false), 1);
	// From then on frames wait again.
	assert_false(pass_one(&node, 2, rte_rdtsc()));
	assert_true(cv_tx_flush(&node.tx, CV_TX_ALL));
	end_node(&node);
}

// A convoy whose packets all go on keeps its buffer, and they their places. So do those that are
// left when the first and the last are dropped; when one between them is, the others move.
static void a_whole_convoy_is_forwarded_in_place(void **state)
{
	static const struct {
		const char *description;
		unsigned drop; // packets, a bit each
		bool same;
	} rows[] = {
		{"nothing dropped", 0, true},
		{"first and last dropped", 1u << 0 | 1u << 22, true},
		{"one between dropped", 1u << 7, false},
	};
	static struct node nodes[2];
	static struct input input;
	static struct rte_mbuf *packets[23];

	current = &input;
	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		const uint8_t *first;
		struct cv_burst burst;

		print_message("  %s\n", rows[row].description);
		memset(&input, 0, sizeof(input));
		node_to_one_next_hop(&nodes[0], 1500);
		node_to_one_next_hop(&nodes[1], 1500);
		make_packets(packets, 23, 60);
		first = rte_pktmbuf_mtod(packets[0], const uint8_t *);
		cv_burst_load(&burst, packets, 23, 0, 1, &nodes[0].counters[0]);
		cv_tx_burst(&nodes[0].tx, &burst);
		cv_tx_flush(&nodes[0].tx, CV_TX_ALL);
		assert_int_equal(nodes[0].out.count, 1);
		assert_ptr_equal(nodes[0].out.sent[0], packets[0]);
		for (unsigned i = 0; i < 23; i++)
			input.dropped[i] = rows[row].drop >> i & 1;
		run(&nodes[1], nodes[0].out.sent, 1);
		assert_int_equal(nodes[1].out.count, 1);
		assert_int_equal(nodes[1].out.sent[0] == packets[0], rows[row].same);
		if (rows[row].drop == 0)
			assert_ptr_equal(rte_pktmbuf_mtod_offset(nodes[1].out.sent[0],
						 const uint8_t *, 14 + 20 + 8 + 4 + 2),
				first);
		rte_pktmbuf_free(nodes[1].out.sent[0]);
		for (int i = 0; i < 2; i++) {
			assert_conserved(&nodes[i]);
			node_fini(&nodes[i]);
		}
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// The packets that a frame has, which must be the next ones of the input. Returns how many.
static unsigned next_packets(struct rte_mbuf *frame, unsigned number)
{
	struct cv_view packets[CV_CONVOY_PACKETS_MAX];
	unsigned n = cv_convoy_packets(
		packets, rte_pktmbuf_mtod(frame, uint8_t *), rte_pktmbuf_data_len(frame));
	uint8_t expected[60];

	for (unsigned i = 0; i < n; i++) {
		fill(expected, number + i, sizeof(expected), 0);
		assert_int_equal(packets[i].len, sizeof(expected));
		assert_memory_equal(packets[i].data, expected, sizeof(expected));
	}
	return n;
}

// Convoys that came in one poll iteration: those that the next one does not fit into leave at once,
// others take it along, and none overtakes another. A frame has room for 23.
static void convoys_of_one_poll_are_merged_where_they_fit(void **state)
{
	static const struct {
		const char *description;
		unsigned in[4], out[4];
	} rows[] = {
		{"full ones pass", {23, 23, 23}, {23, 23, 23}},
		{"one short of it, too", {22, 22, 22, 22}, {22, 22, 22, 22}},
		{"two that fit are one", {23, 10, 13, 23}, {23, 23, 23}},
		{"three that fit are one", {10, 6, 7, 22}, {23, 22}},
		{"one more than fit", {10, 14, 9, 2}, {10, 23, 2}},
		{"a single packet fits behind", {22, 1, 23}, {23, 23}},
		{"or does not", {23, 1, 22}, {23, 23}},
		{"nor another", {23, 1, 23}, {23, 1, 23}},
	};
	static struct node nodes[2];
	static struct input input;
	static struct rte_mbuf *packets[4 * 23];

	current = &input;
	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		const struct cv_convoy_rx rx = {
			.udp_port = rte_cpu_to_be_16(CV_CONVOY_PORT), .counters = &nodes[1].rx};
		unsigned n = 0, number = 0, frames = 0;
		struct cv_burst burst;

		print_message("  %s\n", rows[row].description);
		memset(&input, 0, sizeof(input));
		for (int i = 0; i < 2; i++)
			node_to_one_next_hop(&nodes[i], 1500);
		for (unsigned k = 0; k < 4; n += rows[row].in[k++]) {
			make_packets(packets + n, rows[row].in[k], 60);
			for (unsigned i = n; i < n + rows[row].in[k]; i++)
				fill(rte_pktmbuf_mtod(packets[i], uint8_t *), i, 60, 0);
			if (rows[row].in[k] == 0)
				continue;
			cv_burst_load(&burst, packets + n, (uint16_t)rows[row].in[k], 0, 1,
				&nodes[0].counters[0]);
			cv_tx_burst(&nodes[0].tx, &burst);
			cv_tx_flush(&nodes[0].tx, CV_TX_ALL);
		}
		n = nodes[0].out.count;
		assert_int_equal(cv_burst_load_convoys(&burst, nodes[0].out.sent, (uint16_t)n, 0, 1,
					 &rx, &nodes[1].counters[0]),
			n);
		cv_tx_burst(&nodes[1].tx, &burst);
		cv_tx_flush(&nodes[1].tx, CV_TX_ALL);
		for (; frames < nodes[1].out.count; frames++) {
			unsigned count = next_packets(nodes[1].out.sent[frames], number);

			assert_true(frames < 4);
			assert_int_equal(count, rows[row].out[frames]);
			number += count;
		}
		assert_true(frames == 4 || rows[row].out[frames] == 0);
		rte_pktmbuf_free_bulk(nodes[1].out.sent, nodes[1].out.count);
		for (int i = 0; i < 2; i++) {
			assert_conserved(&nodes[i]);
			node_fini(&nodes[i]);
		}
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// A convoy of n packets of 60 bytes, as a guest would send it; its last is as long as makes it len bytes.
static struct rte_mbuf *make_lookalike(unsigned n, uint16_t len)
{
	const struct cv_outer_config config = {.version = 4, .mtu = 9000};
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	struct cv_outer outer;
	uint8_t *at;

	assert_non_null(packet);
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	at = (uint8_t *)rte_pktmbuf_append(packet, len);
	memset(at, 0, len);
	cv_outer_write(&outer, at, (uint8_t)n, len - outer.len, 0);
	for (unsigned i = 0; i < n; i++) {
		uint16_t bytes = i < n - 1 ? 60 : (uint16_t)(len - outer.len - 62 * (n - 1) - 2);
		rte_be16_t prefix = rte_cpu_to_be_16(bytes);

		memcpy(at + outer.len + 62 * i, &prefix, 2);
		fill(at + outer.len + 62 * i + 2, i, bytes, 0);
	}
	return packet;
}

// What a next hop would take for a convoy arrives there as the packet that it is, or not at all.
static void a_packet_that_looks_like_a_convoy_is_not_disaggregated(void **state)
{
	static const struct {
		const char *description;
		unsigned packets; // of which the first looks like a convoy
		uint16_t len;
		unsigned sent, dropped;
		bool by_vlan; // SC-IDs decide: one has a next hop, ours has none
		uint16_t udp_port; // of that next hop; 0: the default
		bool carries; // the port
	} rows[] = {
		{"unaggregated", 1, 170, 1, 0, false, 0, true},
		{"unaggregated, too long to share", 1, 800, 1, 0, false, 0, true},
		{"several, too long to share", 3, 800, 3, 0, false, 0, true},
		{"among others", 5, 170, 5, 0, false, 0, true},
		{"the longest that fits", 1, 1466, 1, 0, false, 0, true},
		{"one byte more", 1, 1467, 0, 1, false, 0, true},
		{"too long, and others that go on", 4, 1467, 3, 1, false, 0, true},
		{"without a next hop", 1, 170, 0, 1, true, 0, true},
		{"without a next hop, among others", 3, 170, 2, 1, true, 0, true},
		{"whose next hop has another UDP port", 1, 170, 1, 0, false, 4000, true},
		{"by a port that carries none", 1, 170, 1, 0, true, 0, false},
	};
	static struct node node;
	static struct input input;

	current = &input;
	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		struct cv_outer_config config = {
			.version = 4, .mtu = 1500, .port = rows[row].udp_port};
		struct cv_next_hop next_hop = {.port = 1};
		const struct cv_next_hop_entry entry = {
			.key = rows[row].by_vlan ? cv_next_hop_key(1, CV_SCID_VLAN, 3)
						 : cv_next_hop_key(1, CV_SCID_NONE, 0)};
		struct cv_view views[CV_CONVOY_PACKETS_MAX];
		struct rte_mbuf *packets[8], *expected;
		struct cv_burst burst;
		unsigned got = 0, n = rows[row].packets;
		uint16_t udp_port = rows[row].udp_port ? rows[row].udp_port : CV_CONVOY_PORT;

		print_message("  %s\n", rows[row].description);
		node_to_one_next_hop(&node, 1500);
		assert_int_equal(cv_outer_set(&next_hop.outer, &config, NULL), 0);
		cv_next_hop_rcu_offline(&node.table, 0);
		cv_next_hop_rcu_replace(
			&node.table, cv_next_hop_table_make(&next_hop, 1, &entry, 1, 0, NULL));
		cv_next_hop_rcu_online(&node.table, 0);
		if (rows[row].carries)
			node.tx.convoy_ports[1] = RTE_BE16(CV_CONVOY_PORT);
		make_packets(packets, n, rows[row].len);
		rte_pktmbuf_free(packets[0]);
		packets[0] = make_lookalike(2, rows[row].len);
		expected = rte_pktmbuf_copy(packets[0], pool, 0, UINT32_MAX);
		cv_burst_load(&burst, packets, (uint16_t)n, 0, 1, &node.counters[0]);
		cv_tx_burst(&node.tx, &burst);
		cv_tx_flush(&node.tx, CV_TX_ALL);
		assert_conserved(&node);
		assert_int_equal(
			node.counters[1].drops[CV_DROP_LOOKS_LIKE_CONVOY], rows[row].dropped);
		for (unsigned i = 0; i < node.out.count; i++) {
			struct rte_mbuf *frame = node.out.sent[i];
			struct cv_view whole = {0};
			struct cv_convoy convoy = {.count = 1};

			cv_view_set(&whole, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
			views[0] = whole;
			if (rows[row].carries)
				cv_convoy_walk(&convoy, views, &whole, rte_cpu_to_be_16(udp_port));
			if (got == 0 && rows[row].dropped == 0) {
				assert_int_equal(views[0].len, rows[row].len);
				assert_memory_equal(views[0].data,
					rte_pktmbuf_mtod(expected, uint8_t *), rows[row].len);
			}
			got += convoy.count;
		}
		assert_int_equal(got, rows[row].sent);
		rte_pktmbuf_free(expected);
		rte_pktmbuf_free_bulk(node.out.sent, node.out.count);
		node_fini(&node);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// Every packet leaves in a convoy, or not at all.
static void a_next_hop_that_encapsulates_gets_nothing_else(void **state)
{
	static const struct {
		const char *description;
		unsigned packets;
		uint16_t len;
		unsigned frames, dropped;
		bool by_vlan; // SC-IDs decide
	} rows[] = {
		{"a single packet", 1, 60, 1, 0, false},
		{"a single packet, by its SC-ID", 1, 60, 1, 0, true},
		{"several", 4, 60, 1, 0, false},
		{"too long to share", 3, 800, 3, 0, false},
		{"too long to share, by their SC-IDs", 3, 800, 3, 0, true},
		{"the longest that fits", 2, 1466, 2, 0, false},
		{"one byte more", 2, 1467, 0, 2, false},
		{"one byte more, by their SC-IDs", 2, 1467, 0, 2, true},
	};
	static struct node node;
	static struct input input;

	current = &input;
	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		const struct cv_outer_config config = {
			.version = 4, .mtu = 1500, .encapsulate = true};
		struct cv_next_hop next_hops[2] = {{.port = 1}, {.port = 1}};
		const struct cv_next_hop_entry entries[2] = {
			{.key = cv_next_hop_key(1, CV_SCID_NONE, 0)},
			{.key = cv_next_hop_key(1, CV_SCID_VLAN, 3), .next_hop = 1}};
		struct rte_mbuf *packets[8];
		struct cv_burst burst;
		unsigned got = 0, n = rows[row].packets;

		print_message("  %s\n", rows[row].description);
		node_to_one_next_hop(&node, 1500);
		for (int i = 0; i < 2; i++)
			assert_int_equal(cv_outer_set(&next_hops[i].outer, &config, NULL), 0);
		cv_next_hop_rcu_offline(&node.table, 0);
		cv_next_hop_rcu_replace(
			&node.table, cv_next_hop_table_make(next_hops, rows[row].by_vlan ? 2 : 1,
					     entries, rows[row].by_vlan ? 2 : 1, 0, NULL));
		cv_next_hop_rcu_online(&node.table, 0);
		make_packets(packets, n, rows[row].len);
		cv_burst_load(&burst, packets, (uint16_t)n, 0, 1, &node.counters[0]);
		cv_tx_burst(&node.tx, &burst);
		cv_tx_flush(&node.tx, CV_TX_ALL);
		assert_conserved(&node);
		assert_int_equal(node.counters[1].drops[CV_DROP_TOO_BIG], rows[row].dropped);
		assert_int_equal(node.out.count, rows[row].frames);
		for (unsigned i = 0; i < node.out.count; i++) {
			struct cv_view views[CV_CONVOY_PACKETS_MAX], whole = {0};
			struct cv_convoy convoy = {0};

			cv_view_set(&whole, rte_pktmbuf_mtod(node.out.sent[i], uint8_t *),
				node.out.sent[i]->data_len);
			assert_int_equal(cv_convoy_walk(&convoy, views, &whole,
						 rte_cpu_to_be_16(CV_CONVOY_PORT)),
				CV_CONVOY_OK);
			for (unsigned p = 0; p < convoy.count; p++)
				assert_int_equal(views[p].len, rows[row].len);
			got += convoy.count;
		}
		assert_int_equal(got + rows[row].dropped, n);
		rte_pktmbuf_free_bulk(node.out.sent, node.out.count);
		node_fini(&node);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// Packets of one length, to a next hop that takes them in two: frames that are filled.
static void long_packets_fill_frames(void **state)
{
	static const struct {
		uint16_t len;
		double frames; // a packet, at most
	} lengths[] = {{508, 0.36}, {570, 0.40}, {742, 0.53}, {1000, 0.71}, {1250, 0.89},
		{1466, 1.0}, {1514, 1.0}};
	static struct node node, receiver;
	static struct rte_mbuf *packets[PACKETS];

	for (unsigned i = 0; i < RTE_DIM(lengths); i++) {
		uint8_t expected[1514];

		srand(i);
		node_to_next_hop(
			&node, (struct cv_outer_config){
				       .version = 4, .mtu = 1500, .nfi = 5, .fragment = true});
		node.out.port.mtu = 1500;
		for (unsigned j = 0; j < PACKETS; j++) {
			packets[j] = rte_pktmbuf_alloc(pool);
			fill((uint8_t *)rte_pktmbuf_append(packets[j], lengths[i].len), j,
				lengths[i].len, 0);
		}
		run_at_once(&node, packets, PACKETS);
		assert_true(node.out.count <= lengths[i].frames * PACKETS + 1);
		assert_int_equal(node.counters[1].tx_packets, PACKETS);
		for (unsigned j = 0; j < node.out.count; j++)
			assert_true(node.out.sent[j]->pkt_len <= 1514);
		node_init(&receiver, false);
		receiver.out.port.tx_views = NULL;
		receiver.out.room = PACKETS;
		receiver.many_chains = false;
		run(&receiver, node.out.sent, node.out.count);
		node.out.count = 0;
		assert_int_equal(receiver.out.count, PACKETS);
		for (unsigned j = 0; j < PACKETS; j++) {
			fill(expected, j, lengths[i].len, 0);
			assert_int_equal(receiver.out.sent[j]->pkt_len, lengths[i].len);
			assert_memory_equal(rte_pktmbuf_mtod(receiver.out.sent[j], uint8_t *),
				expected, lengths[i].len);
		}
		rte_pktmbuf_free_bulk(receiver.out.sent, receiver.out.count);
		node_fini(&node);
		node_fini(&receiver);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
}

// A next hop may be behind another port than the packets were to leave by, which takes shorter ones.
static void too_long_for_the_port_to_its_next_hop(void **state)
{
	static const uint16_t lens[] = {1522, 1523};
	static struct node node;

	for (unsigned i = 0; i < 2 * RTE_DIM(lens); i++) {
		const bool too_long = i % 2, by_vlan = i / 2;
		const struct cv_outer_config config = {.version = 4, .mtu = 1500};
		const struct cv_port longer = {.tx = memory_tx, .mtu = 9000};
		struct cv_next_hop next_hops[2] = {{.port = 1}, {.port = 1}};
		const struct cv_next_hop_entry entries[2] = {
			{.key = cv_next_hop_key(0, CV_SCID_NONE, 0)},
			{.key = cv_next_hop_key(0, CV_SCID_VLAN, 3), .next_hop = 1}};
		struct rte_mbuf *packet;
		struct cv_burst burst;

		node_to_one_next_hop(&node, 1500);
		node.out.port.mtu = 1500;
		node.ports[0] = (struct cv_port *)(uintptr_t)&longer;
		for (unsigned hop = 0; hop < 2; hop++)
			assert_int_equal(cv_outer_set(&next_hops[hop].outer, &config, NULL), 0);
		cv_next_hop_rcu_offline(&node.table, 0);
		cv_next_hop_rcu_replace(&node.table,
			cv_next_hop_table_make(next_hops, 2, entries, by_vlan ? 2 : 1, 0, NULL));
		cv_next_hop_rcu_online(&node.table, 0);
		make_packets(&packet, 1, lens[too_long]);
		cv_burst_load(&burst, &packet, 1, 0, 0, &node.counters[0]);
		cv_tx_burst(&node.tx, &burst);
		cv_tx_flush(&node.tx, CV_TX_ALL);
		assert_int_equal(node.counters[0].drops[CV_DROP_TOO_BIG], too_long);
		assert_int_equal(node.out.count, !too_long);
		end_node(&node);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_up_to_the_mtu),
		cmocka_unit_test(long_packets_fill_frames),
		cmocka_unit_test(a_frame_waits_until_it_is_full),
		cmocka_unit_test(a_frame_waits_no_longer_than_it_may),
		cmocka_unit_test(a_frame_leaves_before_its_table_does),
		cmocka_unit_test(a_whole_convoy_is_forwarded_in_place),
		cmocka_unit_test(convoys_of_one_poll_are_merged_where_they_fit),
		cmocka_unit_test(a_packet_that_looks_like_a_convoy_is_not_disaggregated),
		cmocka_unit_test(a_next_hop_that_encapsulates_gets_nothing_else),
		cmocka_unit_test(too_long_for_the_port_to_its_next_hop),
		cmocka_unit_test(a_flow_goes_to_one_of_several),
		cmocka_unit_test(comes_out_as_it_went_in),
	};
	int rc;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("test", 4095, 0, 0, 9600, SOCKET_ID_ANY);
	rc = pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return rc;
}
