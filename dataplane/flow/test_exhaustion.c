// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flow path under attack: floods that fill the table, chosen collisions, and all flows ending at
// once. Established flows go on, every packet is counted, memory is what it was at the start, and no
// poll iteration does more than it may. CONVOY_FLOWS=10000000 makes the floods as large as that.
#include "tests/support/test_flow.h"

#include <unistd.h>

#include "flow/path.h"
#include "flow/zone.h"
#include "packet/compiler.h"
#include "packet/ipv4.h"

#define TSC_HZ 2000000000u
#define BURST CV_BURST_MAX
#define ENDS_MAX (16 + 15) // flows that one poll iteration ends: AGE_ENDS, and the rest of its line
#define STEP_MAX 1024 // entries that it looks at: AGE_STEP

static const struct cv_flow_limits usual = {.max = 65536,
	.max_ipv6 = 64,
	.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
		[CV_FLOW_TCP_ESTABLISHED] = 7440,
		[CV_FLOW_TCP_CLOSING] = 240,
		[CV_FLOW_UDP_NEW] = 120,
		[CV_FLOW_UDP] = 300,
		[CV_FLOW_ICMP] = 60,
		[CV_FLOW_OTHER] = 600,
		[CV_FLOW_DENIED_FOR] = 5}};

static uint32_t flood_size(void)
{
	const char *text = getenv("CONVOY_FLOWS");

	return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 1u << 20;
}

// Allows all flows but those to port 23.
struct guard {
	uint64_t decided, ended;
};

static uint8_t guard_decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	((struct guard *)instance)->decided++;
	return actions->tuple.dport == RTE_BE16(23) ? CV_DROP(0) : CV_NEXT;
}

static void guard_ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	((struct guard *)instance)->ended++;
}

static const struct cv_nf_flow guard_flow = {.decide = guard_decide, .ended = guard_ended};
static const char *const guard_drops[] = {"denied", NULL};
static const struct cv_nf guard_nf = {.name = "guard", .drops = guard_drops, .flow = &guard_flow};

struct net {
	struct guard guard;
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters;
	struct cv_nf_worker worker;
	// The packets of a burst, and what became of all.
	struct packet packet[BURST];
	uint16_t count;
	uint64_t sent, passed, dropped[1 + CV_FLOW_DROPS];
};

static struct net *net_make(const struct cv_flow_limits *limits)
{
	struct net *net = calloc(1, sizeof(*net));
	const struct cv_flow_member member = {&guard_nf, &net->guard};
	struct cv_nf_counters *counters = &net->counters;
	struct cv_error error = {{0}};

	net->worker.now = TSC_HZ;
	net->zone = cv_flow_zone_create(&member, 1, limits, TSC_HZ, &error);
	if (net->zone == NULL)
		fail_msg("%s", error.text);
	net->group = cv_flow_group_create(net->zone, (const uint8_t[]){0}, &counters);
	assert_non_null(net->group);
	return net;
}

static void net_free(struct net *net)
{
	cv_flow_zone_destroy(net->zone);
	free(net);
}

// Sends the burst. Returns how many passed.
static unsigned flush(struct net *net)
{
	struct cv_view views[BURST];
	uint8_t verdicts[BURST];
	unsigned passed = 0;

	for (uint16_t i = 0; i < net->count; i++) {
		views[i] = (struct cv_view){.in = 0, .out = 1};
		cv_view_set(&views[i], net->packet[i].bytes, net->packet[i].len);
	}
	cv_flow_process(net->group, &net->worker, views, verdicts, net->count);
	for (uint16_t i = 0; i < net->count; i++) {
		passed += verdicts[i] == CV_NEXT;
		if (verdicts[i] != CV_NEXT)
			net->dropped[verdicts[i]]++;
	}
	net->sent += net->count;
	net->passed += passed;
	net->count = 0;
	return passed;
}

// TCP, from host to port 80, or its answer.
static void add(struct net *net, uint32_t host, uint16_t port, bool answer, uint8_t flags)
{
	static struct packet plain;
	struct packet *packet = &net->packet[net->count];
	const rte_be32_t hosts[2] = {rte_cpu_to_be_32(host), RTE_BE32(0xc6336401)};
	const rte_be16_t ports[2] = {rte_cpu_to_be_16(port), RTE_BE16(80)};

	if (plain.len == 0)
		plain = packet_make("ip4 tcp");
	packet->len = plain.len;
	memcpy(packet->bytes, plain.bytes, plain.len);
	memcpy(packet->bytes + 14 + 12, &hosts[answer], 4);
	memcpy(packet->bytes + 14 + 16, &hosts[!answer], 4);
	memcpy(packet->bytes + 14 + 20, &ports[answer], 2);
	memcpy(packet->bytes + 14 + 22, &ports[!answer], 2);
	packet->bytes[14 + 20 + 13] = flags;
	net->count++;
}

#define CLIENTS 512u // that have connections
#define CLIENT(n) (0x0a000000u + (n))
#define ATTACKER(n) (0x64000000u + (n)) // spoofed: each a host of its own

static void connect_clients(struct net *net)
{
	static const struct {
		bool answer;
		uint8_t flags;
	} handshake[] = {{false, CV_TCP_SYN}, {true, CV_TCP_SYN | CV_TCP_ACK}, {false, CV_TCP_ACK}};

	for (uint32_t n = 0; n < CLIENTS; n++) {
		for (unsigned i = 0; i < RTE_DIM(handshake); i++)
			add(net, CLIENT(n), 1024, handshake[i].answer, handshake[i].flags);
		assert_int_equal(flush(net), RTE_DIM(handshake));
	}
}

// A packet each way of so many connections, from the first on; all pass.
static void clients_go_on(struct net *net, uint32_t first, uint32_t count)
{
	for (uint32_t n = first; n < first + count; n++) {
		add(net, CLIENT(n % CLIENTS), 1024, false, CV_TCP_ACK);
		add(net, CLIENT(n % CLIENTS), 1024, true, CV_TCP_ACK);
		assert_int_equal(flush(net), 2);
	}
}

static void expect_conserved(const struct net *net)
{
	const struct cv_flow_counters *counters = cv_flow_zone_counters(net->zone);
	uint64_t dropped = 0;

	for (unsigned why = 0; why <= CV_FLOW_DROPS; why++)
		dropped += net->dropped[why];
	assert_int_equal(net->sent, net->passed + dropped);
	assert_int_equal(net->dropped[CV_DROP(CV_FLOW_BY_FUNCTION)], net->counters.drops[0]);
	assert_int_equal(
		counters->created, counters->flows_ipv4 - counters->denied + net->guard.ended);
}

// Bytes of this process that are in memory.
static size_t resident(void)
{
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %zu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// AddressSanitizer's own memory grows with what is looked at.
static void expect_no_growth(size_t memory)
{
	if (!CV_SANITIZED)
		assert_in_range(resident(), 0, memory + (1u << 20));
}

// One poll iteration without packets: what it ends is bounded.
static void tick(struct net *net)
{
	const uint64_t ended = net->guard.ended;
	const struct cv_flow_table *table = &net->zone->table[0];
	const uint32_t from = table->cursor;
	uint32_t lines; // of deadlines that were looked at

	cv_flow_tick(net->group, &net->worker);
	assert_in_range(net->guard.ended - ended, 0, ENDS_MAX);
	lines = (table->cursor + 15) / 16 - from / 16;
	if (table->cursor < from) // it began again
		lines += (table->high + 15) / 16;
	assert_in_range(lines, 0, STEP_MAX / 16);
}

static void expect_empty(const struct net *net)
{
	const struct cv_flow_table *table = &net->zone->table[0];

	assert_int_equal(table->used, 0);
	for (uint32_t i = 0; i < table->buckets_count; i++) {
		assert_int_equal(table->buckets[i].displaced, 0);
		for (unsigned j = 0; j < CV_FLOW_BUCKET; j++)
			assert_int_equal(table->buckets[i].signature[j], 0);
	}
}

// SYNs of a million spoofed hosts in a second, again and again: connections go on, and when the
// attack is over, others are opened.
static void a_syn_flood_leaves_connections_alone(void **state)
{
	struct net *net = net_make(&usual);
	const uint32_t flood = flood_size();
	uint32_t others = usual.max - CLIENTS;
	size_t memory;

	connect_clients(net);
	memory = resident();
	for (uint32_t n = 0; n < flood; n += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			add(net, ATTACKER(n + i), (uint16_t)(n + i), false, CV_TCP_SYN);
		net->worker.now += TSC_HZ / 1000000 * BURST;
		others -= flush(net);
		tick(net);
		if (n % (64 * BURST) == 0)
			clients_go_on(net, n / BURST, 8);
	}
	assert_int_equal(others, 0); // as many as there was room for, not one more
	assert_int_equal(net->dropped[CV_DROP(CV_FLOW_TABLE_FULL)],
		(flood + BURST - 1) / BURST * BURST - (usual.max - CLIENTS));
	expect_no_growth(memory);
	clients_go_on(net, 0, CLIENTS);
	expect_conserved(net);

	net->worker.now += 242ull * TSC_HZ;
	for (unsigned i = 0; net->zone->table[0].used > CLIENTS; i++) {
		tick(net);
		net->worker.now += TSC_HZ / 10000;
		assert_in_range(i, 0, 2 * usual.max / 16);
	}
	for (uint32_t n = 0; n < BURST; n++)
		add(net, ATTACKER(n), 7, false, CV_TCP_SYN);
	assert_int_equal(flush(net), BURST);
	clients_go_on(net, 0, CLIENTS);
	expect_conserved(net);
	net_free(net);
}

// A host that opens as many flows as it can has per_host of them; others do not notice.
static void a_host_has_its_share(void **state)
{
	struct cv_flow_limits limits = usual;
	struct net *net;

	limits.per_host = 100;
	net = net_make(&limits);
	connect_clients(net);
	for (uint32_t n = 0; n < 65536; n += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			add(net, ATTACKER(1), (uint16_t)(n + i), false, CV_TCP_SYN);
		flush(net);
	}
	assert_int_equal(net->dropped[CV_DROP(CV_FLOW_HOST_LIMIT)], 65536 - limits.per_host);
	clients_go_on(net, 0, CLIENTS);
	for (uint32_t n = 0; n < BURST; n++)
		add(net, ATTACKER(2 + n), 7, false, CV_TCP_SYN);
	assert_int_equal(flush(net), BURST);
	expect_conserved(net);
	net_free(net);
}

// What is denied takes one entry in eight, whoever tries how often; the rest is decided each time.
static void denied_flows_take_their_share(void **state)
{
	struct net *net = net_make(&usual);
	const uint32_t flood = 4 * usual.max;

	connect_clients(net);
	for (uint32_t n = 0; n < flood; n += BURST) {
		for (uint32_t i = 0; i < BURST; i++) {
			add(net, ATTACKER(n + i), 1, false, CV_TCP_SYN);
			net->packet[i].bytes[14 + 23] = 23;
		}
		assert_int_equal(flush(net), 0);
	}
	assert_int_equal(net->zone->denied[0], usual.max / 8);
	assert_int_equal(net->counters.drops[0], flood);
	clients_go_on(net, 0, CLIENTS);
	add(net, ATTACKER(1), 7, false, CV_TCP_SYN);
	assert_int_equal(flush(net), 1);
	expect_conserved(net);
	net_free(net);
}

// All flows of a full table end in the same second, while some connections go on.
static void many_flows_end_in_steps(void **state)
{
	struct cv_flow_limits limits = usual;
	uint64_t iterations = 0;
	struct net *net;
	size_t memory;

	limits.max = flood_size() + CLIENTS;
	net = net_make(&limits);
	connect_clients(net);
	memory = resident();
	for (uint32_t n = 0; n < limits.max - CLIENTS; n += BURST) {
		for (uint32_t i = 0; i < BURST && n + i < limits.max - CLIENTS; i++)
			add(net, ATTACKER(n + i), (uint16_t)n, false, CV_TCP_SYN);
		flush(net);
	}
	assert_int_equal(net->zone->table[0].used, limits.max);
	assert_int_equal(net->dropped[CV_DROP(CV_FLOW_TABLE_FULL)], 0);
	net->worker.now += 242ull * TSC_HZ;
	for (; net->zone->table[0].used > CLIENTS; iterations++) {
		tick(net);
		net->worker.now += TSC_HZ / 1000000;
		if (iterations % 1024 == 0)
			clients_go_on(net, (uint32_t)iterations, 1);
	}
	// Each ends 16 at least while there are some, but for those that find few in their step.
	assert_in_range(
		iterations, limits.max / ENDS_MAX, limits.max / 16 + limits.max / STEP_MAX + 2);
	expect_no_growth(memory);
	clients_go_on(net, 0, CLIENTS);
	assert_int_equal(net->guard.ended, limits.max - CLIENTS);
	expect_conserved(net);
	net->worker.now += 7442ull * TSC_HZ;
	for (unsigned i = 0; i < 2 * limits.max / STEP_MAX + CLIENTS; i++)
		tick(net);
	expect_empty(net);
	net_free(net);
}

// Packets of fragments whose first ones flood the memory of such: those are forgotten, not more.
static void fragments_do_not_take_more(void **state)
{
	struct net *net = net_make(&usual);
	const size_t memory = resident();

	connect_clients(net);
	for (uint32_t n = 0; n < 65536; n += BURST) {
		for (uint32_t i = 0; i < BURST; i++) {
			add(net, ATTACKER(n + i), 1, false, CV_TCP_ACK);
			memcpy(net->packet[i].bytes + 14 + 4, &n, 2);
			net->packet[i].bytes[14 + 6] = i % 2 == 0 ? 0x20 : 0; // the first, a later
			net->packet[i].bytes[14 + 7] = i % 2;
		}
		flush(net);
	}
	assert_int_equal(net->dropped[CV_DROP(CV_FLOW_NO_FIRST_FRAGMENT)], 65536 / 2);
	expect_no_growth(memory);
	clients_go_on(net, 0, CLIENTS);
	expect_conserved(net);
	net_free(net);
}

static uint64_t random_state = 1;

static uint32_t random32(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 32);
}

// Keys that somebody chooses who knows the table's size, the hash, and anything but its secret.
static union cv_flow_key chosen_key(unsigned how, const struct cv_flow_table *guessed, uint32_t n)
{
	static uint32_t tried;
	union cv_flow_key key = {.ipv4 = {.dst = 9, .proto = 6}};
	uint64_t hash;

	switch (how) {
	case 0: // hosts in a row
		key.ipv4.src = rte_cpu_to_be_32(n);
		return key;
	case 1: // all ports of few hosts
		key.ipv4.src = n >> 16;
		key.ipv4.sport = (rte_be16_t)n;
		return key;
	case 2: // few bits of all words
		key.ipv4.src = (n & 0xff) * 0x01010101u;
		key.ipv4.dst = (n >> 8 & 0xff) * 0x01010101u;
		key.ipv4.sport = (rte_be16_t)(n >> 16);
		return key;
	default: // all of one line in 64 of the buckets, and half of the signatures, by another secret
		if (n == 0)
			tried = 0;
		do {
			key.ipv4.src = tried++;
			hash = cv_flow_hash(guessed->secret, &key, sizeof(key.ipv4));
		} while (cv_flow_first_bucket(guessed, hash) % 64 != 0 || hash >> 32 & 1);
		return key;
	}
}

// Whoever chooses the keys gets no more into a bucket than chance does: the table takes as many as
// it should, and few stand in their second bucket.
static void keys_cannot_be_chosen(void **state)
{
	enum { MAX = 32768 };
	const size_t bytes = cv_flow_table_bytes(MAX, 0, false);
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	struct cv_flow_secret secret, known;

	for (unsigned round = 0; round < 2 * 4; round++) {
		struct cv_flow_table table, guessed;
		uint64_t displaced = 0;

		assert_int_equal(cv_flow_secret_make(&secret), 0);
		assert_int_equal(cv_flow_secret_make(&known), 0);
		memset(known.keys, 0, sizeof(known.keys));
		secret.aes &= round % 2 == 0;
		known.aes = secret.aes;
		memset(memory, 0, bytes);
		cv_flow_table_init(&table, memory, MAX, 0, false, &secret);
		guessed = table;
		guessed.secret = &known;
		// A flow has two keys: that of its answers is as random as an attacker leaves it.
		for (uint32_t n = 0; n < MAX; n++) {
			const union cv_flow_key key = chosen_key(round / 2, &guessed, n);
			const uint64_t answer = (uint64_t)random32() << 32 | random32();
			const uint32_t index = cv_flow_table_take(&table);

			assert_int_equal(
				cv_flow_table_add(&table,
					cv_flow_hash(&secret, &key, sizeof(key.ipv4)), index, 0),
				0);
			assert_int_equal(cv_flow_table_add(&table, answer, index, 1), 0);
		}
		for (uint32_t i = 0; i < table.buckets_count; i++)
			displaced += table.buckets[i].displaced;
		assert_in_range(displaced, 0, 2 * MAX / 12);
	}
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_syn_flood_leaves_connections_alone),
		cmocka_unit_test(a_host_has_its_share),
		cmocka_unit_test(denied_flows_take_their_share),
		cmocka_unit_test(many_flows_end_in_steps),
		cmocka_unit_test(fragments_do_not_take_more),
		cmocka_unit_test(keys_cannot_be_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
