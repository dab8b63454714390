// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows that another worker keeps: what a worker does with their packets is what their owner would
// have done, or it leaves them to that one; also while the owner begins and ends flows all the time.
#include "tests/support/test_flow.h"

#include <pthread.h>
#include <unistd.h>

#include <rte_cycles.h>

static void owner_acts(void);
#define CV_FLOW_READ_HALF() owner_acts()

#include "chain/counters.h"
#include "chain/latency.h"
#include "chain/ring.h"
#include "flow/foreign_run.h"
#include "flow/home.h"
#include "flow/path.h"
#include "flow/tcp.h"
#include "flow/zone.h"
#include "tests/support/test_eal.h"

enum { OWNER, READER, WORKERS };

// A NAT of source addresses and ports, each by the packet's own.
struct toy {
	bool follows, sets_way, leaves; // by an output
	uint32_t generation;
};

static void translate(rte_be32_t *src, rte_be16_t *sport)
{
	*sport = (rte_be16_t)(*sport * 5 + *src * 3 + 7);
	*src ^= 0x00010000;
}

static uint8_t toy_decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	const struct toy *toy = instance;

	translate(&actions->tuple.src.ipv4, &actions->tuple.sport);
	actions->follow = toy->follows;
	if (toy->sets_way)
		actions->way[0] = (struct cv_flow_way){.set = CV_FLOW_SET_OUT, .out = 1};
	return toy->leaves ? CV_OUTPUT(0) : CV_NEXT;
}

static unsigned toy_follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	return 0;
}

static const uint32_t *toy_generation(const void *instance)
{
	return &((const struct toy *)instance)->generation;
}

static unsigned homes_requested; // how often

// What is to or from a port is the reader's.
#define READERS RTE_BE16(99)

static uint8_t toy_home(const void *instance, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple, uint8_t in)
{
	homes_requested++;
	return tuple->dport == READERS || tuple->sport == READERS ? READER : OWNER;
}

static const char *const toy_drops[] = {NULL};
static const struct cv_nf_flow toy_flow = {
	.slot_bytes = 4,
	.decide = toy_decide,
	.follow = toy_follow,
	.generation = toy_generation,
	.home = toy_home,
};
static const struct cv_nf toy_nf = {.name = "toy", .drops = toy_drops, .flow = &toy_flow};

static const struct cv_flow_limits plenty = {.max = 512,
	.max_ipv6 = 64,
	.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
		[CV_FLOW_TCP_ESTABLISHED] = 7440,
		[CV_FLOW_TCP_CLOSING] = 20,
		[CV_FLOW_UDP_NEW] = 1,
		[CV_FLOW_UDP] = 1}};

// The owner's zone, and what the reader finds its flows with.
struct rig {
	struct toy toy;
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters;
	struct cv_nf_worker owner;
	struct cv_flow_homes *homes;
	struct cv_flow_home *finder;
	struct cv_ring *rings[CV_WORKERS_MAX];
	unsigned done, handed;
};

static void rig_make(struct rig *rig)
{
	const struct cv_flow_member member = {&toy_nf, &rig->toy};
	struct cv_nf_counters *const counters[] = {&rig->counters};
	struct cv_error error = {0};
	const uint8_t order[] = {0};

	rig->homes = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*rig->homes), 64u));
	memset(rig->homes, 0, sizeof(*rig->homes));
	rig->homes->count = WORKERS;
	rig->homes->workers[READER] = READER;
	assert_int_equal(cv_flow_secret_make(&rig->homes->secret), 0);
	rig->zone = cv_flow_zone_create(&member, 1, &plenty, rte_get_tsc_hz(), &error);
	if (rig->zone == NULL)
		fail_msg("%s", error.text);
	cv_flow_zone_share(rig->zone, rig->homes);
	rig->group = cv_flow_group_create(rig->zone, order, counters);
	assert_non_null(rig->group);
	rig->rings[OWNER] = cv_ring_create("test", 1024, 1024, &error);
	assert_non_null(rig->rings[OWNER]);
	rig->finder = cv_flow_home_create(
		rig->homes, READER, &toy_nf, &rig->toy, rte_get_tsc_hz(), rig->rings);
	assert_non_null(rig->finder);
	cv_flow_home_read(rig->finder, OWNER, rig->zone);
	rig->owner.now = rte_rdtsc();
}

static void pop(struct rig *rig)
{
	struct cv_view views[CV_VIEWS_MAX];
	struct cv_buffers buffers;

	cv_ring_pop(rig->rings[OWNER], &buffers, views, CV_VIEWS_MAX);
}

static void rig_free(struct rig *rig)
{
	for (unsigned i = 0; i < 1024; i++)
		pop(rig); // they are no buffers
	cv_ring_free(rig->rings[OWNER]);
	cv_flow_home_destroy(rig->finder);
	cv_flow_zone_destroy(rig->zone);
	free(rig->homes);
}

// By the owner. The verdict.
static uint8_t own(struct rig *rig, struct packet *packet)
{
	struct cv_view view = {.in = 0};
	uint8_t verdict = 0xa5;

	cv_view_set(&view, packet->bytes, packet->len);
	cv_flow_process(rig->group, &rig->owner, &view, &verdict, 1);
	return verdict;
}

// By the reader: true if it is done with, false if it was handed over.
static bool read_packets(struct rig *rig, struct packet *packets, unsigned n)
{
	struct cv_view views[CV_BURST_MAX];
	uint8_t workers[CV_BURST_MAX];
	struct rte_mbuf *none = NULL;
	const struct cv_buffers one = {.buffers = {none}, .views = {1}, .n = 1};
	unsigned others;

	for (unsigned i = 0; i < n; i++) {
		views[i] = (struct cv_view){.in = 3};
		cv_view_set(&views[i], packets[i].bytes, packets[i].len);
	}
	others = cv_flow_home_find(rig->finder, views, workers, (uint16_t)n);
	for (unsigned i = 0; i < n; i++) {
		const bool done = (views[i].in & CV_VIEW_DONE) != 0;

		assert_int_equal(views[i].in & ~CV_VIEW_DONE, 3);
		assert_int_equal(workers[i], done ? READER : OWNER);
		others -= !done;
		rig->done += done;
		rig->handed += !done;
		if (!done)
			cv_ring_push(rig->rings[OWNER], &one, &views[i], 1);
	}
	assert_int_equal(others, 0);
	return workers[0] == READER;
}

static bool read_one(struct rig *rig, struct packet *packet)
{
	return read_packets(rig, packet, 1);
}

// The owner has sent what was handed over.
static void settle(struct rig *rig)
{
	pop(rig);
	pop(rig);
}

static struct packet forward(unsigned flow, const char *l4)
{
	char text[120];

	snprintf(text, sizeof(text), "ip4 src=10.0.%u.%u %s sport=%u dport=53 data=18", flow / 256,
		flow % 256, l4, 1000 + flow);
	return flow_packet(text, true);
}

static struct packet tcp(unsigned flow, uint8_t flags)
{
	struct packet packet = forward(flow, "tcp");

	packet.bytes[14 + 20 + 13] = flags;
	flow_checksums(packet.bytes, packet.len);
	return packet;
}

// The answer to what leaves of a forward packet, and what it becomes.
static struct packet answer(const struct packet *packet, bool translated)
{
	struct packet result = *packet;
	uint8_t *ip = result.bytes + 14;
	rte_be32_t src;
	rte_be16_t sport;

	memcpy(&src, ip + 12, 4);
	memcpy(&sport, ip + 20, 2);
	if (translated)
		translate(&src, &sport);
	memcpy(ip + 12, ip + 16, 4);
	memcpy(ip + 16, &src, 4);
	memcpy(ip + 20, packet->bytes + 14 + 22, 2);
	memcpy(ip + 22, &sport, 2);
	flow_checksums(result.bytes, result.len);
	return result;
}

static struct packet went(const struct packet *packet)
{
	struct packet result = *packet;
	uint8_t *ip = result.bytes + 14;
	rte_be32_t src;
	rte_be16_t sport;

	memcpy(&src, ip + 12, 4);
	memcpy(&sport, ip + 20, 2);
	translate(&src, &sport);
	memcpy(ip + 12, &src, 4);
	memcpy(ip + 20, &sport, 2);
	flow_checksums(result.bytes, result.len);
	return result;
}

static void assert_same(const struct packet *is, const struct packet *want)
{
	assert_int_equal(is->len, want->len);
	assert_memory_equal(is->bytes, want->bytes, is->len);
}

// Does the reader leave a packet alone, and to its owner?
static void assert_handed(struct rig *rig, struct packet packet)
{
	const struct packet before = packet;

	settle(rig);
	assert_false(read_one(rig, &packet));
	assert_same(&packet, &before);
	settle(rig);
}

static void settled_flows_are_done_with_both_ways(void **state)
{
	struct rig rig = {.done = 0};
	struct packet packet = forward(1, "udp"), back, want;

	rig_make(&rig);
	assert_handed(&rig, packet); // new
	assert_int_equal(own(&rig, &packet), CV_NEXT);
	packet = forward(1, "udp");
	want = went(&packet);
	assert_true(read_one(&rig, &packet));
	assert_same(&packet, &want);
	packet = forward(1, "udp");
	back = answer(&packet, true);
	want = answer(&packet, false);
	assert_handed(&rig, back); // the first one changes the flow
	assert_int_equal(own(&rig, &back), CV_NEXT);
	back = answer(&packet, true);
	assert_true(read_one(&rig, &back));
	assert_same(&back, &want);
	rig_free(&rig);
}

static void what_changes_a_flow_is_handed_over(void **state)
{
	static const uint8_t flags[] = {CV_TCP_SYN, CV_TCP_FIN | CV_TCP_ACK, CV_TCP_RST};
	struct rig rig = {.done = 0};
	struct packet packet, back, ack;

	rig_make(&rig);
	packet = tcp(2, CV_TCP_SYN);
	assert_int_equal(own(&rig, &packet), CV_NEXT);
	ack = tcp(2, CV_TCP_ACK);
	assert_handed(&rig, ack); // half open
	back = answer(&ack, true);
	back.bytes[14 + 20 + 13] = CV_TCP_SYN | CV_TCP_ACK;
	flow_checksums(back.bytes, back.len);
	assert_int_equal(own(&rig, &back), CV_NEXT);
	packet = ack;
	assert_int_equal(own(&rig, &packet), CV_NEXT);
	packet = ack;
	assert_true(read_one(&rig, &packet));
	for (unsigned i = 0; i < RTE_DIM(flags); i++)
		assert_handed(&rig, tcp(2, flags[i]));
	packet = tcp(2, CV_TCP_RST);
	assert_int_equal(own(&rig, &packet), CV_NEXT);
	assert_handed(&rig, ack);
	assert_handed(&rig, flow_packet("ip4 src=10.0.0.2 off=1 proto=17 data=30", false));
	rig_free(&rig);
}

static void what_a_function_follows_or_sends_elsewhere_is_handed_over(void **state)
{
	static const struct toy toys[] = {{.follows = true}, {.sets_way = true}, {.leaves = true}};

	for (unsigned i = 0; i < RTE_DIM(toys); i++) {
		struct rig rig = {.toy = toys[i]};
		struct packet packet = forward(3, "udp");

		rig_make(&rig);
		own(&rig, &packet);
		packet = forward(3, "udp");
		own(&rig, &packet);
		assert_handed(&rig, forward(3, "udp"));
		rig_free(&rig);
	}
}

// After a change of configuration the owner decides again first; and a flow that has ended is none.
static void what_was_decided_before_is_handed_over(void **state)
{
	struct rig rig = {.done = 0};
	struct packet packet = forward(4, "udp");

	rig_make(&rig);
	own(&rig, &packet);
	packet = forward(4, "udp");
	assert_true(read_one(&rig, &packet));
	rig.toy.generation++;
	packet = forward(5, "udp");
	own(&rig, &packet); // learns it
	assert_handed(&rig, forward(4, "udp"));
	packet = forward(4, "udp");
	own(&rig, &packet);
	packet = forward(4, "udp");
	assert_true(read_one(&rig, &packet));

	for (unsigned i = 0; i < 200; i++) {
		rig.owner.now += rte_get_tsc_hz() / 20;
		cv_flow_tick(rig.group, &rig.owner);
	}
	assert_int_equal(rig.zone->counters.flows_ipv4, 0);
	assert_handed(&rig, forward(4, "udp"));
	cv_flow_home_read(rig.finder, OWNER, NULL);
	packet = forward(4, "udp");
	own(&rig, &packet);
	assert_handed(&rig, forward(4, "udp"));
	rig_free(&rig);
}

// A packet does not overtake one of its flow that was handed over, in the same burst or before.
static void order_is_kept(void **state)
{
	struct rig rig = {.done = 0};
	struct packet packet = forward(6, "udp"), pair[2], back, before;
	unsigned handed;

	rig_make(&rig);
	assert_false(read_one(&rig, &packet));
	own(&rig, &packet); // popped, not sent yet
	pop(&rig);
	packet = forward(6, "udp");
	assert_false(read_one(&rig, &packet));
	pop(&rig);
	packet = forward(6, "udp");
	assert_false(read_one(&rig, &packet));
	settle(&rig);
	packet = forward(6, "udp");
	assert_true(read_one(&rig, &packet));
	handed = rig.handed;

	packet = tcp(7, CV_TCP_SYN);
	own(&rig, &packet);
	packet = tcp(7, CV_TCP_ACK);
	back = answer(&packet, true);
	back.bytes[14 + 20 + 13] = CV_TCP_SYN | CV_TCP_ACK;
	own(&rig, &back);
	own(&rig, &packet);
	pair[0] = tcp(7, CV_TCP_ACK);
	pair[1] = tcp(7, CV_TCP_ACK);
	assert_true(read_packets(&rig, pair, 2) && rig.handed == handed); // it may be read
	pair[0] = tcp(7, CV_TCP_FIN | CV_TCP_ACK);
	pair[1] = before = tcp(7, CV_TCP_ACK);
	read_packets(&rig, pair, 2);
	assert_same(&pair[1], &before);
	rig_free(&rig);
}

// Packets that the reader alone sees keep a flow alive.
static void a_flow_that_is_read_lives(void **state)
{
	const uint64_t end = rte_rdtsc() + 3 * rte_get_tsc_hz();
	struct rig rig = {.done = 0};
	struct packet packet = forward(8, "udp");

	rig_make(&rig);
	own(&rig, &packet);
	while (rte_rdtsc() < end) {
		packet = forward(8, "udp");
		assert_true(read_one(&rig, &packet));
		rig.owner.now = rte_rdtsc();
		cv_flow_tick(rig.group, &rig.owner);
		usleep(20000);
	}
	assert_int_equal(rig.zone->counters.created, 1);
	assert_int_equal(rig.zone->counters.flows_ipv4, 1);
	rig_free(&rig);
}

static struct rig *acting; // NULL: the owner does nothing

// The flow ends, and its entry is another one's, with the same ports.
static void owner_acts(void)
{
	static const char text[] = "ip4 src=10.0.0.99 udp sport=1009 dport=53 data=18";

	if (acting == NULL)
		return;
	acting->owner.now += 5 * rte_get_tsc_hz();
	for (unsigned i = 0; i < 40; i++)
		cv_flow_tick(acting->group, &acting->owner);
	assert_int_equal(acting->zone->counters.flows_ipv4, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct packet packet = flow_packet(text, true);

		assert_int_equal(own(acting, &packet), CV_NEXT);
	}
	assert_int_equal(acting->zone->counters.flows_ipv4, 1);
}

// In the middle of reading an entry it becomes another flow's: it is not one half of each.
static void what_changes_while_it_is_read_is_handed_over(void **state)
{
	static const uint8_t ids[] = {OWNER, READER};
	struct rig rig = {.done = 0};
	struct packet packet = forward(9, "udp");
	struct cv_flow_foreign *foreign;

	rig_make(&rig);
	foreign = cv_flow_foreign_create(ids, WORKERS, rig.rings);
	assert_non_null(foreign);
	cv_flow_foreign_read(foreign, OWNER, rig.zone);
	own(&rig, &packet);
	for (unsigned again = 0; again < 2; again++) {
		struct packet then = forward(9, "udp");
		const struct packet before = then, want = went(&then);
		struct cv_view view = {.in = 0};
		uint8_t workers[] = {OWNER};
		const uint8_t which[] = {0};

		acting = again ? &rig : NULL;
		cv_view_set(&view, then.bytes, then.len);
		assert_int_equal(
			foreign_run(foreign, READER, &view, workers, which, 1), again ? 0 : 1);
		assert_same(&then, again ? &before : &want);
	}
	acting = NULL;
	cv_flow_foreign_destroy(foreign);
	rig_free(&rig);
}

#define FLOWS 600 // more than there is room for
#define ROUNDS 150000

static bool over;

// Begins flows and ends them, so that entries are always another's.
static void *churn(void *argument)
{
	struct rig *rig = argument;
	uint32_t chance = 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct packet packet;

		chance = chance * 1664525 + 1013904223;
		packet = forward((chance >> 8) % FLOWS, "udp");
		if (own(rig, &packet) == CV_NEXT && chance >> 31 != 0) {
			packet = forward((chance >> 8) % FLOWS, "udp");
			packet = answer(&packet, true);
			own(rig, &packet);
		}
		if (i % 8 == 0)
			pop(rig);
		rig->owner.now += rte_get_tsc_hz() / 400;
		cv_flow_tick(rig->group, &rig->owner);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	return NULL;
}

// Whatever the owner does meanwhile: a packet that the reader is done with is what its flow makes of it.
static void nothing_half_is_read(void **state)
{
	static struct packet there[FLOWS], gone[FLOWS], back[FLOWS], home[FLOWS];
	struct rig rig = {.done = 0};
	pthread_t thread;
	uint32_t chance = 7;

	for (unsigned i = 0; i < FLOWS; i++) {
		there[i] = forward(i, "udp");
		gone[i] = went(&there[i]);
		back[i] = answer(&there[i], true);
		home[i] = answer(&there[i], false);
	}
	rig_make(&rig);
	assert_int_equal(pthread_create(&thread, NULL, churn, &rig), 0);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		struct packet packets[8], before[8], want[8];
		const unsigned done = rig.done;

		for (unsigned i = 0; i < 8; i++) {
			unsigned flow;

			chance = chance * 1664525 + 1013904223;
			flow = (chance >> 8) % FLOWS;
			packets[i] = before[i] = chance >> 31 ? back[flow] : there[flow];
			want[i] = chance >> 31 ? home[flow] : gone[flow];
		}
		read_packets(&rig, packets, 8);
		for (unsigned i = 0; i < 8 && rig.done != done; i++)
			if (memcmp(packets[i].bytes, before[i].bytes, before[i].len) != 0)
				assert_same(&packets[i], &want[i]);
	}
	pthread_join(thread, NULL);
	assert_true(rig.done > 1000);
	assert_true(rig.handed > 1000);
	rig_free(&rig);
}

// A burst whose first packet is done with counts at the port that it came in by.
static void a_drawn_burst_counts_at_its_port(void **state)
{
	static struct cv_port_counters ports[UINT8_MAX + 1];
	const struct cv_latency_draw draw = {.on = true, .since = 1};
	struct packet packet = forward(1, "udp");
	static struct cv_burst burst = {.n = 1, .buffers = {.n = 1, .views = {1}}};
	struct rig rig = {.done = 0};
	uint8_t workers[1];

	rig_make(&rig);
	own(&rig, &packet);
	packet = forward(1, "udp");
	burst.views[0] = (struct cv_view){.in = 3};
	cv_view_set(&burst.views[0], packet.bytes, packet.len);
	assert_int_equal(cv_flow_home_find(rig.finder, burst.views, workers, 1), 0);
	assert_int_equal(burst.views[0].in, 3 | CV_VIEW_DONE);
	cv_latency_received(&draw, ports, &burst);
	for (unsigned i = 0; i < RTE_DIM(ports); i++)
		assert_int_equal(ports[i].rx_latency.ns != 0, i == 3);
	rig_free(&rig);
}

// A burst by the owner, as it receives it: all of it is its own. Returns how many homes were asked for.
static unsigned receive(
	struct rig *rig, struct cv_flow_home *finder, struct packet *packets, unsigned n)
{
	uint8_t workers[CV_BURST_MAX], verdicts[CV_BURST_MAX];
	struct cv_view views[CV_BURST_MAX];

	homes_requested = 0;
	for (unsigned i = 0; i < n; i++) {
		views[i] = (struct cv_view){.in = 3};
		cv_view_set(&views[i], packets[i].bytes, packets[i].len);
	}
	assert_int_equal(cv_flow_home_find(finder, views, workers, (uint16_t)n), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(workers[i], OWNER);
	assert_int_equal(cv_flow_process(rig->group, &rig->owner, views, verdicts, (uint16_t)n), 0);
	return homes_requested;
}

// Forward packets of flows 0 to n - 1, or answers, through the owner. Returns how many homes were asked for.
static unsigned receive_flows(
	struct rig *rig, struct cv_flow_home *finder, unsigned n, bool answers)
{
	struct packet packets[CV_BURST_MAX], want[CV_BURST_MAX];
	unsigned homes;

	for (unsigned i = 0; i < n; i++) {
		const struct packet packet = forward(i, i % 2 ? "udp" : "tcp");

		packets[i] = answers ? answer(&packet, true) : packet;
		want[i] = answers ? answer(&packet, false) : went(&packet);
	}
	homes = receive(rig, finder, packets, n);
	for (unsigned i = 0; i < n; i++)
		assert_same(&packets[i], &want[i]);
	return homes;
}

// A worker most of whose packets are of flows that it keeps asks nobody whose they are, as long as nothing
// has changed since they were decided.
static void own_flows_are_known_without_a_home(void **state)
{
	enum { KEPT = 40 };
	struct packet packets[KEPT];
	struct cv_view views[KEPT];
	struct cv_flow_home *finder;
	uint8_t workers[KEPT];
	struct rig rig = {0};

	rig_make(&rig);
	finder = cv_flow_home_create(rig.homes, OWNER, &toy_nf, &rig.toy, rte_get_tsc_hz(), NULL);
	assert_non_null(finder);
	cv_flow_home_read(finder, OWNER, rig.zone);
	assert_int_equal(receive_flows(&rig, finder, KEPT, false), KEPT);
	assert_int_equal(receive_flows(&rig, finder, KEPT, true), KEPT); // the first answers
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(receive_flows(&rig, finder, KEPT, i % 2), 0);

	rig.toy.generation++; // it may say otherwise now
	assert_int_equal(receive_flows(&rig, finder, KEPT, false), KEPT);
	assert_int_equal(receive_flows(&rig, finder, KEPT, false), 0);

	for (unsigned round = 0; round < 3; round++) { // half of them are another's
		for (unsigned i = 0; i < KEPT; i++) {
			packets[i] = forward(i, i % 2 ? "udp" : "tcp");
			if (i < KEPT / 2)
				memcpy(packets[i].bytes + 14 + 22, &(rte_be16_t){READERS}, 2);
			views[i] = (struct cv_view){.in = 3};
			cv_view_set(&views[i], packets[i].bytes, packets[i].len);
		}
		homes_requested = 0;
		assert_int_equal(cv_flow_home_find(finder, views, workers, KEPT), KEPT / 2);
		assert_int_equal(rig.zone->lookup.n, 0); // the burst will be another
		assert_int_equal(homes_requested, round == 0 ? KEPT / 2 : KEPT); // in vain
		for (unsigned i = 0; i < KEPT; i++)
			assert_int_equal(workers[i], i < KEPT / 2 ? READER : OWNER);
	}
	cv_flow_home_read(finder, OWNER, NULL);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(receive_flows(&rig, finder, KEPT, false), KEPT);
	cv_flow_home_destroy(finder);
	rig_free(&rig);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(settled_flows_are_done_with_both_ways),
		cmocka_unit_test(what_changes_a_flow_is_handed_over),
		cmocka_unit_test(what_a_function_follows_or_sends_elsewhere_is_handed_over),
		cmocka_unit_test(what_was_decided_before_is_handed_over),
		cmocka_unit_test(order_is_kept),
		cmocka_unit_test(a_flow_that_is_read_lives),
		cmocka_unit_test(what_changes_while_it_is_read_is_handed_over),
		cmocka_unit_test(nothing_half_is_read),
		cmocka_unit_test(a_drawn_burst_counts_at_its_port),
		cmocka_unit_test(own_flows_are_known_without_a_home),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
