// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows of a process that was killed: those that are whole are known again. Whatever is in its memory, what
// is made of it is a table as any other: it forwards, and is empty when its flows have ended.
#include "tests/support/test_flow.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flow/carried.h"
#include "flow/handover.h"
#include "flow/replica.h"
#include "flow/restore.h"
#include "flow/zone.h"

#define TSC_HZ 2000000000u
#define FLOWS 40u
#define ROUNDS 300u
#define LEAST_HOSTS 2u

static const struct cv_flow_limits usual = {.max = 64,
	.max_ipv6 = 64,
	.per_host = LEAST_HOSTS,
	.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
		[CV_FLOW_TCP_ESTABLISHED] = 7440,
		[CV_FLOW_TCP_CLOSING] = 240,
		[CV_FLOW_UDP_NEW] = 120,
		[CV_FLOW_UDP] = 300,
		[CV_FLOW_ICMP] = 60,
		[CV_FLOW_OTHER] = 600,
		[CV_FLOW_DENIED_FOR] = 5}};

// Lets flows from networks below 128 begin, and moves their destination's last byte by what it keeps.
struct mover {
	unsigned calls[CV_FLOW_REPEAT + 1];
	unsigned flows; // that it keeps something of
	unsigned marked; // asked about, with the mark that a gate put into the slot
	uint8_t by;
};

static void move(struct cv_flow_tuple *tuple, uint8_t by)
{
	((uint8_t *)&tuple->dst)[tuple->family == 6 ? 15 : 3] += by;
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct mover *mover = instance;

	mover->calls[packet->why]++;
	if (*(const uint8_t *)&actions->tuple.src & 0x80)
		return CV_DROP(0);
	if (packet->why == CV_FLOW_NEW) {
		mover->flows++;
		*(uint64_t *)slot = mover->by;
	}
	move(&actions->tuple, *(uint8_t *)slot);
	return CV_NEXT;
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	((struct mover *)instance)->flows--;
}

static int store(void *instance)
{
	return 0;
}

static bool restore(
	void *instance, struct cv_nf_worker *worker, struct cv_flow_tuple *tuple, void *slot)
{
	struct mover *mover = instance;

	if (*(uint64_t *)slot > 7)
		return false;
	mover->flows++;
	move(tuple, *(uint8_t *)slot);
	return true;
}

static const char *const drops[] = {"denied", NULL};
static const struct cv_flow_kept kept = {.store = store, .restore = restore};
static const struct cv_flow_kept no_store = {.restore = NULL};
static const struct cv_nf_flow flow = {
	.slot_bytes = 8, .kept = &kept, .decide = decide, .ended = ended};
static enum cv_flow_windows all_windows(const void *instance)
{
	return CV_FLOW_WINDOWS_ALL;
}

static const struct cv_nf_flow windowed_flow = {
	.slot_bytes = 8, .kept = &kept, .decide = decide, .ended = ended, .windows = all_windows};
static const struct cv_nf windowed_nf = {
	.name = "windowed", .drops = drops, .flow = &windowed_flow};
static const struct cv_nf_flow own_flow = {.slot_bytes = 8, .decide = decide};
static const struct cv_nf_flow kept_flow = {.slot_bytes = 8, .kept = &no_store, .decide = decide};
static const struct cv_nf mover_nf = {.name = "mover", .drops = drops, .flow = &flow};
static const struct cv_flow_kept later_kept = {
	.store = store, .restore = restore, .later = CV_FLOW_LATER};
static const struct cv_nf_flow later_flow = {.slot_bytes = 8,
	.kept = &later_kept,
	.decide = decide,
	.ended = ended,
	.windows = all_windows};
// Its flows may come back whenever packets ask for them.
static const struct cv_nf later_nf = {.name = "later", .drops = drops, .flow = &later_flow};
static const struct cv_flow_kept alone_kept = {
	.store = store, .restore = restore, .later = CV_FLOW_LATER_ALONE};
static const struct cv_nf_flow alone_flow = {.slot_bytes = 8,
	.kept = &alone_kept,
	.decide = decide,
	.ended = ended,
	.windows = all_windows};
// The same, but that there are no new ones meanwhile.
static const struct cv_nf alone_nf = {.name = "alone", .drops = drops, .flow = &alone_flow};

#define MARK 0x5a5a5a5au

// Needs nothing of flows, as a firewall, but marks them.
static uint8_t decide_gate(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct mover *mover = instance;

	mover->calls[packet->why]++;
	mover->marked += *(uint32_t *)slot == MARK;
	*(uint32_t *)slot = MARK;
	return *(const uint8_t *)&actions->tuple.src & 0x80 ? CV_DROP(0) : CV_NEXT;
}

static const struct cv_nf_flow gate_flow = {.slot_bytes = 4,
	.in_slots = true,
	.any_slot = true,
	.decide = decide_gate,
	.windows = all_windows};
static const struct cv_nf gate_nf = {.name = "gate", .drops = drops, .flow = &gate_flow};
// Flows from 10.0.0.0/8 leave by an output: there is no key for their answers.
static uint8_t decide_branch(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	return *(const uint8_t *)&actions->tuple.src == 10 ? CV_OUTPUT(0) : CV_NEXT;
}

static const struct cv_nf_flow branch_flow = {.in_slots = true, .decide = decide_branch};
static const struct cv_nf branch_nf = {.name = "branch", .drops = drops, .flow = &branch_flow};
static const struct cv_nf own_nf = {.name = "own", .drops = drops, .flow = &own_flow};
static const struct cv_nf kept_nf = {.name = "kept", .drops = drops, .flow = &kept_flow};

struct node {
	struct mover movers[2];
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters[2];
	struct cv_nf_worker worker;
	int fd;
};

static const uint8_t orders[2][2] = {{0, 1}, {1, 0}};

static struct cv_flow_group *add_group(struct node *node, const uint8_t *order)
{
	struct cv_nf_counters *counters[2] = {&node->counters[order[0]], &node->counters[order[1]]};

	return cv_flow_group_create(node->zone, order, counters);
}

static struct node *start_of(const struct cv_nf *nf, uint32_t max, const uint8_t *order)
{
	struct node *node = calloc(1, sizeof(*node));
	const struct cv_flow_member members[2] = {{nf, &node->movers[0]}, {nf, &node->movers[1]}};
	struct cv_flow_limits limits = usual;
	struct cv_error error = {""};

	if (nf == &gate_nf || nf == &branch_nf || nf == &later_nf)
		limits.per_host = 0;
	if (nf != &gate_nf && nf != &branch_nf) {
		node->movers[0].by = 2;
		node->movers[1].by = 3;
	}
	limits.max = max;
	node->worker.now = (uint64_t)TSC_HZ * 1000;
	node->zone = cv_flow_zone_create(members, 2, &limits, TSC_HZ, &error);
	if (node->zone == NULL)
		fail_msg("%s", error.text);
	node->group = add_group(node, order);
	assert_non_null(node->group);
	node->fd = cv_flow_zone_store(node->zone);
	return node;
}

static struct node *start(void)
{
	return start_of(&mover_nf, 64, orders[0]);
}

static void end(struct node *node)
{
	cv_flow_zone_destroy(node->zone);
	free(node);
}

static uint8_t last_verdict; // of passes()

// A packet of a flow, or its answer: whether it passes. Odd ones are TCP, every third IPv6.
static bool passes(struct node *node, uint32_t number, bool answer)
{
	const uint8_t by = node->movers[0].by + node->movers[1].by;
	struct packet packet;
	struct cv_view view = {.in = 0, .out = 1};
	uint8_t verdict;
	char here[64], there[64], text[256];

	if (number % 3 == 0) {
		snprintf(here, sizeof(here), "2001:db8::%u", number + 1);
		snprintf(there, sizeof(there), "2001:db9::%x", answer ? 1 + by : 1);
	} else {
		snprintf(here, sizeof(here), "10.0.0.%u", number + 1);
		snprintf(there, sizeof(there), "198.51.100.%u", answer ? 1 + by : 1);
	}
	snprintf(text, sizeof(text), "%s src=%s dst=%s %s sport=%u dport=%u",
		number % 3 == 0 ? "ip6" : "ip4", answer ? there : here, answer ? here : there,
		number % 2 == 0 ? "udp" : "tcp", answer ? 53 : 99, answer ? 99 : 53);
	packet = packet_make(text);
	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_process(node->group, &node->worker, &view, &verdict, 1);
	last_verdict = verdict;
	return verdict == CV_NEXT;
}

static void open_flows(struct node *node)
{
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(node, i, false));
}

static bool can(const struct node *node)
{
	return node->zone->memory.fd >= 0; // else this kernel makes no large pages of files
}

// A process with flows, which is about to be killed. Skips the test where it cannot be.
static struct node *opened(const struct cv_nf *nf)
{
	struct node *node = start_of(nf, 64, orders[0]);

	if (!can(node))
		skip();
	open_flows(node);
	return node;
}

static struct cv_flow_restored restore_to(struct node *new, int fd)
{
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};

	if (cv_flow_zone_restore(new->zone, &new->worker, fd, CV_FLOW_KEPT, &restored, &error) != 0)
		fail_msg("%s", error.text);
	return restored;
}

// Another process, some seconds later.
static struct node *restart(const struct node *old, struct cv_flow_restored *restored)
{
	struct node *new = start();

	new->worker.now = old->worker.now + 2ull * TSC_HZ;
	*restored = restore_to(new, old->fd);
	return new;
}

static void wait(struct node *node, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		node->worker.now += TSC_HZ;
		for (unsigned step = 0; step < 16; step++)
			cv_flow_tick(node->group, &node->worker);
	}
}

// When all flows have ended, nothing of them is left.
static void is_empty_at_last(struct node *node)
{
	const struct cv_flow_zone *zone = node->zone;

	node->worker.now += 8000ull * TSC_HZ;
	wait(node, 16);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct cv_flow_table *table = &zone->table[v6];

		assert_int_equal(table->used, 0);
		for (uint32_t i = 0; i < table->buckets_count; i++) {
			assert_int_equal(table->buckets[i].displaced, 0);
			for (unsigned j = 0; j < CV_FLOW_BUCKET; j++)
				assert_int_equal(table->buckets[i].signature[j], 0);
		}
	}
	for (uint32_t i = 0; zone->hosts.limit != 0 && i < zone->hosts.buckets_count; i++)
		for (unsigned j = 0; j < CV_FLOW_HOSTS; j++)
			assert_int_equal(zone->hosts.buckets[i].count[j], 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(node->movers[i].flows, 0);
}

static void whole_flows_are_known_again(void **state)
{
	struct node *old = opened(&mover_nf), *new;
	struct cv_flow_restored restored;

	new = restart(old, &restored);
	end(old);
	assert_int_equal(restored.flows, FLOWS);
	assert_int_equal(restored.lost, 0);
	assert_int_equal(new->movers[0].flows, FLOWS);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, true));
	assert_int_equal(new->movers[0].calls[CV_FLOW_CHANGED], FLOWS);
	assert_int_equal(new->movers[0].calls[CV_FLOW_NEW], 0);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, false));
	assert_int_equal(cv_flow_zone_counters(new->zone)->created, 0);
	assert_int_equal(cv_flow_zone_counters(new->zone)->flows_ipv4 +
				 cv_flow_zone_counters(new->zone)->flows_ipv6,
		FLOWS);
	assert_true(passes(new, FLOWS, false)); // there is room for others
	is_empty_at_last(new);
	end(new);
}

// Slots in which anything may be come along as they are.
static void any_slot_is_known_again(void **state)
{
	struct node *old = opened(&gate_nf), *new = start_of(&gate_nf, 64, orders[0]);

	assert_int_equal(restore_to(new, old->fd).flows, FLOWS);
	end(old);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, false));
	assert_int_equal(new->movers[0].calls[CV_FLOW_NEW], 0);
	assert_int_equal(new->movers[0].marked, FLOWS);
	assert_int_equal(new->movers[1].marked, FLOWS);
	end(new);
}

static void time_goes_on(void **state)
{
	struct node *old = start(), *new = start();

	if (!can(old))
		skip();
	assert_true(passes(old, 2, false)); // UDP
	assert_true(passes(old, 5, false)); // TCP
	new->worker.now = old->worker.now + 117ull * TSC_HZ;
	assert_int_equal(restore_to(new, old->fd).flows, 2);
	wait(new, 1);
	assert_int_equal(new->zone->table[0].used, 2);
	wait(new, 4);
	assert_int_equal(new->zone->table[0].used, 1);
	assert_int_equal(cv_flow_zone_counters(new->zone)->timed_out, 1);
	end(old);
	end(new);
}

// Those that were over before the new process began end as others do.
static void what_is_over_ends(void **state)
{
	struct node *old = start(), *new = start();

	if (!can(old))
		skip();
	open_flows(old);
	new->worker.now = old->worker.now + 9000ull * TSC_HZ;
	assert_int_equal(restore_to(new, old->fd).flows, FLOWS);
	wait(new, 8);
	assert_int_equal(new->zone->table[0].used + new->zone->table[1].used, 0);
	is_empty_at_last(new);
	end(old);
	end(new);
}

static void orders_are_found_again(void **state)
{
	struct node *old = start_of(&mover_nf, 64, orders[1]), *new;
	struct cv_flow_restored restored;

	if (!can(old))
		skip();
	old->group = add_group(old, orders[0]); // later than it was stored
	open_flows(old);
	new = restart(old, &restored);
	assert_int_equal(restored.flows, FLOWS);
	assert_true(passes(new, 0, true));
	end(new);
	old->group = old->zone->groups[0]; // of an order that the new one has not
	old->worker.now += 8000ull * TSC_HZ;
	wait(old, 16);
	open_flows(old);
	new = restart(old, &restored);
	assert_int_equal(restored.flows, 0);
	assert_int_equal(restored.lost, FLOWS);
	assert_false(passes(new, FLOWS + 1, true));
	end(new);
	end(old);
}

static void hosts_limits_hold(void **state)
{
	struct node *old = opened(&mover_nf), *new;
	struct cv_flow_restored restored;

	new = restart(old, &restored);
	for (uint32_t i = 0; i < new->zone->hosts.buckets_count; i++)
		for (unsigned j = 0; j < CV_FLOW_HOSTS; j++)
			assert_true(new->zone->hosts.buckets[i].count[j] <= 1);
	is_empty_at_last(new);
	end(old);
	end(new);
}

static void what_is_denied_is_not_known(void **state)
{
	struct node *old = start(), *new;
	struct cv_flow_restored restored;
	struct packet packet = packet_make("ip4 src=192.0.2.1 dst=10.0.0.1 udp sport=9 dport=9");
	struct cv_view view = {.in = 0, .out = 1};
	uint8_t verdict;

	if (!can(old))
		skip();
	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_process(old->group, &old->worker, &view, &verdict, 1);
	assert_int_equal(old->zone->denied[0], 1);
	new = restart(old, &restored);
	assert_int_equal(restored.flows + restored.lost, 0);
	assert_int_equal(new->zone->table[0].used, 0);
	end(old);
	end(new);
}

static void another_memory_is_refused(void **state)
{
	struct node *old = start(), *new = start();
	struct node *other = start_of(&mover_nf, 65, orders[0]);
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};
	const int plain = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ends[2];

	if (!can(old))
		skip();
	open_flows(old);
	assert_true(cv_flow_zone_restore(other->zone, &other->worker, old->fd, CV_FLOW_KEPT,
			    &restored, &error) < 0);
	assert_non_null(strstr(error.text, "another layout"));
	assert_int_equal(ftruncate(plain, (off_t) new->zone->memory.bytes), 0);
	error.text[0] = '\0';
	assert_true(cv_flow_zone_restore(
			    new->zone, &new->worker, plain, CV_FLOW_KEPT, &restored, &error) < 0);
	assert_non_null(strstr(error.text, "bytes that stay so")); // its writer could cut it
	assert_int_equal(pipe(ends), 0);
	assert_true(cv_flow_zone_restore(
			    new->zone, &new->worker, ends[0], CV_FLOW_KEPT, &restored, &error) < 0);
	assert_true(cv_flow_zone_restore(
			    new->zone, &new->worker, -1, CV_FLOW_KEPT, &restored, &error) < 0);
	assert_int_equal(restored.flows + restored.lost, 0);
	assert_true(passes(new, 0, false));
	close(ends[0]);
	close(ends[1]);
	close(plain);
	end(old);
	end(new);
	end(other);
}

static void only_what_can_be_restored_is_stored(void **state)
{
	struct node *node = start_of(&own_nf, 64, orders[0]);

	assert_int_equal(node->fd, -1);
	end(node);
	node = start_of(&kept_nf, 64, orders[0]);
	assert_int_equal(node->fd, -1);
	end(node);
}

// An IPv4 flow of another number than 2 or 5 is half written: it is lost, and no other.
static void break_group(struct cv_flow *broken)
{
	broken->group = 1;
}

static void break_deciders(struct cv_flow *broken)
{
	broken->deciders = 1;
}

static void break_timeout(struct cv_flow *broken)
{
	broken->timeout = CV_FLOW_TIMEOUTS;
}

static void break_state(struct cv_flow *broken)
{
	broken->tcp_state = CV_FLOW_TCP_STATES;
}

static void break_proto(struct cv_flow *broken)
{
	broken->proto ^= IPPROTO_TCP ^ IPPROTO_UDP;
}

static void break_forward(struct cv_flow *broken)
{
	cv_flow_stored(broken, CV_FLOW_FORWARD, false)[7]++;
}

static void break_answer(struct cv_flow *broken)
{
	cv_flow_stored(broken, CV_FLOW_REPLY, false)[0]++;
}

static void break_slot(struct cv_flow *broken)
{
	((struct cv_flow_ipv4 *)broken)->slots[0]++;
}

static void break_slot_much(struct cv_flow *broken)
{
	((struct cv_flow_ipv4 *)broken)->slots[9] = 1;
}

static void break_by_another(struct cv_flow *broken)
{
	memcpy(broken, (const uint8_t *)broken + 64, 64); // the next one's, twice
}

// Two flows with the same answers.
static void break_same_answer(struct cv_flow *broken)
{
	break_by_another(broken);
	cv_flow_stored(broken, CV_FLOW_FORWARD, false)[7]++;
	((struct cv_flow_ipv4 *)broken)->slots[0]--;
}

static void a_half_written_flow_is_lost_alone(void **state)
{
	void (*const breaks[])(struct cv_flow *) = {break_group, break_deciders, break_timeout,
		break_state, break_proto, break_forward, break_answer, break_slot, break_slot_much,
		break_same_answer, break_by_another};

	for (unsigned i = 0; i < RTE_DIM(breaks); i++) {
		struct node *old = start(), *new;
		struct cv_flow_restored restored;

		if (!can(old))
			skip();
		open_flows(old);
		breaks[i](cv_flow_at(&old->zone->table[0], 3));
		new = restart(old, &restored);
		if (restored.lost != 1)
			fail_msg("%u: %lu lost", i, (unsigned long)restored.lost);
		assert_int_equal(restored.flows, FLOWS - 1);
		is_empty_at_last(new);
		end(new);
		end(old);
	}
}

// A TCP packet of a connection, with its flags and numbers.
static bool tcp_passes(struct node *node, bool answer, uint8_t flags, uint32_t seq, uint32_t ack)
{
	const rte_be32_t numbers[2] = {rte_cpu_to_be_32(seq), rte_cpu_to_be_32(ack)};
	struct packet packet =
		packet_make(answer ? "ip4 src=198.51.100.6 dst=10.0.0.1 tcp sport=53 dport=99"
				   : "ip4 src=10.0.0.1 dst=198.51.100.1 tcp sport=99 dport=53");
	struct cv_view view = {.in = 0, .out = 1};
	uint8_t verdict;

	memcpy(packet.bytes + 14 + 20 + 4, numbers, sizeof(numbers));
	packet.bytes[14 + 20 + 13] = flags;
	memcpy(packet.bytes + 14 + 20 + 14, (const uint8_t[]){0, 100}, 2); // window
	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_process(node->group, &node->worker, &view, &verdict, 1);
	return verdict == CV_NEXT;
}

static void windows_go_on(void **state)
{
	struct node *old = start_of(&windowed_nf, 64, orders[0]);
	struct node *new = start_of(&windowed_nf, 64, orders[0]);
	struct node *other = start_of(&windowed_nf, 64, orders[0]);

	if (!can(old))
		skip();
	assert_true(tcp_passes(old, false, CV_TCP_SYN, 1000, 0));
	assert_true(tcp_passes(old, true, CV_TCP_SYN | CV_TCP_ACK, 5000, 1001));
	assert_true(tcp_passes(old, false, CV_TCP_ACK, 1001, 5001));
	assert_false(tcp_passes(old, false, CV_TCP_ACK, 900000, 5001));
	assert_int_equal(restore_to(new, old->fd).flows, 1);
	assert_false(tcp_passes(new, false, CV_TCP_ACK, 900000, 5001)); // outside
	assert_true(tcp_passes(new, false, CV_TCP_ACK, 1001, 5001));
	assert_false(tcp_passes(new, true, CV_TCP_RST, 900000, 0));
	assert_true(tcp_passes(new, true, CV_TCP_ACK, 5001, 1001));
	is_empty_at_last(new);
	((struct cv_flow_window *)cv_flow_slot_at(&old->zone->window[0], 0))->end[1].scale = 15;
	assert_int_equal(restore_to(other, old->fd).lost, 1);
	is_empty_at_last(other);
	end(old);
	end(new);
	end(other);
}

// splitmix64
static uint64_t next_random(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

// The memory but for its layout becomes random, in so many of 4,096 bytes.
static void scramble(struct node *node, unsigned share, uint64_t seed)
{
	uint8_t *at = node->zone->memory.start, *end = at + node->zone->memory.bytes;
	uint64_t *words = (uint64_t *)&node->zone->carried->layout;
	const uint64_t layout = *words;

	// Behind what ends the memory nothing is read.
	end = RTE_MIN(end, (uint8_t *)(node->zone->carried + 1));
	for (; at < end; at++)
		if (next_random(&seed) % 4096 < share)
			*at = (uint8_t)next_random(&seed);
	*words = layout;
}

// Entries that pass the first checks: most numbers are small.
static void scramble_entries(struct node *node, uint64_t seed)
{
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (uint32_t i = 0; i < 64; i++) {
			struct cv_flow *at = cv_flow_at(&node->zone->table[v6], i);
			const bool tcp = next_random(&seed) % 2;

			node->zone->table[v6].deadlines[i] = (uint32_t)next_random(&seed) % 3;
			*at = (struct cv_flow){.seen = (uint32_t)next_random(&seed),
				.way = {(uint16_t)next_random(&seed), (uint16_t)next_random(&seed)},
				.flags = (uint8_t)next_random(&seed) & ~CV_FLOW_DENIED,
				.tcp_state = tcp * (next_random(&seed) % 8),
				.timeout = next_random(&seed) % 8,
				.proto = tcp ? IPPROTO_TCP : (uint8_t)next_random(&seed),
				.group = next_random(&seed) % 2,
				.deciders = (uint8_t)(next_random(&seed) %
						      (next_random(&seed) % 2 ? 4 : 256)),
				.verdict = (uint8_t)next_random(&seed),
				.follows = (uint8_t)next_random(&seed)};
			for (unsigned b = 0; b < 2 * CV_FLOW_STORED_BYTES(v6); b++)
				cv_flow_stored(at, 0, v6)[b] = next_random(&seed) % 2;
			memset((uint8_t *)at + (v6 ? offsetof(struct cv_flow_ipv6, slots)
						   : offsetof(struct cv_flow_ipv4, slots)),
				0, 16);
		}
}

static void attack(struct node *old, const struct cv_nf *nf)
{
	struct node *new = start_of(nf, 64, orders[0]);
	const struct cv_flow_restored restored = restore_to(new, old->fd);

	assert_int_equal(restored.flows, new->zone->table[0].used + new->zone->table[1].used);
	for (uint32_t i = 0; i < FLOWS; i++) {
		passes(new, i, true);
		passes(new, i, false);
	}
	wait(new, 2);
	is_empty_at_last(new);
	open_flows(new);
	end(new);
}

static void any_bytes_make_a_table_as_any_other(void **state)
{
	static const unsigned shares[] = {1, 16, 256, 4096};

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct node *old = start_of(i % 2 ? &windowed_nf : &mover_nf, 64, orders[0]);

		if (!can(old))
			skip();
		open_flows(old);
		if (i % 5 == 4)
			scramble_entries(old, i);
		else
			scramble(old, shares[i % 5], i);
		attack(old, i % 2 ? &windowed_nf : &mover_nf);
		end(old);
	}
}

static const struct cv_nf *const laters[] = {&gate_nf, &later_nf, &alone_nf};

// Another process, whose flows come back while it runs.
static struct node *restart_later(const struct node *old, const struct cv_nf *nf)
{
	struct node *new = start_of(nf, 64, orders[0]);
	struct cv_error error = {""};

	new->worker.now = old->worker.now + 2ull * TSC_HZ;
	assert_int_not_equal(cv_flow_zone_restores_later(new->zone, old->fd), CV_FLOW_AT_ONCE);
	if (cv_flow_zone_restore_later(new->zone, &new->worker, old->fd, &error) != 0)
		fail_msg("%s", error.text);
	return new;
}

static uint32_t flows_of(const struct node *node)
{
	return node->zone->table[0].used + node->zone->table[1].used;
}

// The worker runs until all came.
static struct cv_flow_restored run(struct node *node)
{
	struct cv_flow_restored restored = {0, 0};

	for (unsigned i = 0; i < 100 && !cv_flow_zone_is_restored(node->zone, &restored); i++)
		cv_flow_tick(node->group, &node->worker);
	assert_true(cv_flow_zone_is_restored(node->zone, &restored));
	cv_flow_zone_accept(node->zone);
	return restored;
}

static void flows_come_back_when_packets_ask(void **state)
{
	struct node *old = opened(*state), *new;
	struct cv_flow_restored restored = {0, 0};

	new = restart_later(old, *state);
	end(old);
	assert_int_equal(flows_of(new), 0);
	for (uint32_t i = 0; i < FLOWS; i += 2)
		assert_true(passes(new, i, i % 4 == 0));
	assert_int_equal(flows_of(new), FLOWS / 2);
	assert_int_equal(cv_flow_zone_counters(new->zone)->flows_ipv4 +
				 cv_flow_zone_counters(new->zone)->flows_ipv6,
		FLOWS / 2);
	assert_false(cv_flow_zone_is_restored(new->zone, &restored));
	restored = run(new);
	assert_int_equal(restored.flows, FLOWS);
	assert_int_equal(restored.lost, 0);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, true));
	assert_int_equal(new->movers[0].calls[CV_FLOW_CHANGED], FLOWS);
	assert_int_equal(new->movers[0].calls[CV_FLOW_NEW], 0);
	assert_int_equal(cv_flow_zone_counters(new->zone)->created, 0);
	assert_true(passes(new, FLOWS, false)); // there is room for others
	is_empty_at_last(new);
	end(new);
}

// One that came, and ended before the others came.
static void what_has_ended_does_not_come_back(void **state)
{
	struct node *old = opened(*state), *new;
	struct cv_flow_restored restored;

	new = restart_later(old, *state);
	assert_true(passes(new, 2, true));
	cv_flow_end(new->zone, &new->worker, false, 0);
	restored = run(new);
	assert_int_equal(restored.flows, FLOWS);
	assert_int_equal(flows_of(new), FLOWS - 1);
	is_empty_at_last(new);
	end(new);
	end(old);
}

static void new_flows_take_no_room_of_those_to_come(void **state)
{
	struct node *old = opened(*state), *new;
	struct cv_flow_restored restored;
	unsigned passed = 0;

	new = restart_later(old, *state);
	for (uint32_t i = 100; i < 250; i++)
		passed += i % 3 != 0 && passes(new, i, false);
	assert_int_equal(passed, 64 - old->zone->table[0].used);
	assert_true(passes(new, 2, true)); // of whom there is
	restored = run(new);
	assert_int_equal(restored.flows, FLOWS);
	assert_int_equal(restored.lost, 0);
	assert_int_equal(new->zone->table[0].used, 64);
	is_empty_at_last(new);
	end(new);
	end(old);
}

// The first packet of a flow whose answers are those of one that is to come.
static void answers_of_those_to_come_stay_theirs(void **state)
{
	struct node *old = start_of(&branch_nf, 64, orders[0]), *new;
	struct cv_flow_restored restored;

	if (!can(old))
		skip();
	assert_false(passes(old, 2, false)); // it leaves by an output
	new = restart_later(old, &branch_nf);
	assert_true(passes(new, 2, true));
	restored = run(new);
	assert_int_equal(restored.flows, 1);
	assert_int_equal(restored.lost, 0);
	assert_int_equal(flows_of(new), 2);
	assert_false(passes(new, 2, false));
	assert_int_equal(flows_of(new), 2);
	is_empty_at_last(new);
	end(new);
	end(old);
}

static void how_they_may_come(void **state)
{
	struct node *old = start_of(&gate_nf, 64, orders[0]);
	struct node *new = start_of(&gate_nf, 64, orders[0]);
	struct node *keeps = start(), *alone = start_of(&alone_nf, 64, orders[0]);
	struct node *later = start_of(&later_nf, 64, orders[0]);

	if (!can(old))
		skip();
	assert_int_equal(cv_flow_zone_restores_later(new->zone, old->fd), CV_FLOW_LATER);
	assert_int_equal(cv_flow_zone_restores_later(later->zone, later->fd), CV_FLOW_LATER);
	assert_int_equal(cv_flow_zone_restores_later(alone->zone, alone->fd), CV_FLOW_LATER_ALONE);
	assert_int_equal(cv_flow_zone_restores_later(keeps->zone, keeps->fd), CV_FLOW_AT_ONCE);
	new->zone->hosts.limit = 1; // the others' would not be counted
	assert_int_equal(cv_flow_zone_restores_later(new->zone, old->fd), CV_FLOW_LATER_ALONE);
	new->zone->hosts.limit = 0;
	memset(&old->zone->carried->secret, 0, sizeof(old->zone->carried->secret));
	assert_int_equal(cv_flow_zone_restores_later(new->zone, old->fd), CV_FLOW_AT_ONCE);
	end(later);
	end(alone);
	end(keeps);
	end(new);
	end(old);
}

static void new_ones_wait_where_they_must(void **state)
{
	struct node *old = opened(&alone_nf), *new;

	new = restart_later(old, &alone_nf);
	assert_false(passes(new, FLOWS, false));
	assert_int_equal(last_verdict, CV_DROP(CV_FLOW_RESTORING));
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, i % 2 == 0));
	for (unsigned i = 0; i < 4; i++)
		cv_flow_tick(new->group, &new->worker);
	assert_false(passes(new, FLOWS, false)); // the functions do not know yet that it was all
	assert_int_equal(new->movers[0].calls[CV_FLOW_NEW], 0);
	assert_int_equal(run(new).flows, FLOWS);
	assert_true(passes(new, FLOWS, false));
	is_empty_at_last(new);
	end(new);
	end(old);
}

// The process before may have ended at any time: so with the secret, places and entries.
static void so_do_any_bytes(void **state)
{
	static const unsigned shares[] = {1, 16, 256, 4096};

	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct cv_nf *nf = laters[i % RTE_DIM(laters)];
		struct node *old = start_of(nf, 64, orders[0]), *new;
		uint64_t seed = i;

		if (!can(old))
			skip();
		open_flows(old);
		if (i % 5 == 4)
			scramble_entries(old, i);
		else
			scramble(old, shares[i % 5], i);
		old->zone->carried->secret.keys[0][0] |= 1;
		new = restart_later(old, nf);
		for (uint32_t n = 0; n < 2 * FLOWS; n++) {
			passes(new, (uint32_t)(next_random(&seed) % FLOWS), n % 2 == 0);
			if (n == FLOWS && i % 3 != 0)
				cv_flow_tick(new->group, &new->worker);
		}
		if (i % 7 != 0) { // else it ends before all came
			run(new);
			wait(new, 2);
			is_empty_at_last(new);
			open_flows(new);
		}
		end(new);
		end(old);
	}
}

// A copy on another machine: a file of its own.
struct copy {
	struct cv_flow_replica replica;
	uint8_t *sent;
	int fd;
	size_t written;
};

static bool write_copy(void *to, size_t at, const void *bytes, size_t count)
{
	struct copy *copy = to;

	copy->written += count;
	return pwrite(copy->fd, bytes, count, (off_t)at) == (ssize_t)count;
}

static size_t pass(struct copy *copy, const struct node *node)
{
	enum cv_flow_replica_step step;

	copy->written = 0;
	do
		step = cv_flow_replica_step(
			&copy->replica, node->zone->memory.start, copy->sent, write_copy, copy);
	while (step == CV_FLOW_REPLICA_GOES_ON);
	assert_int_equal(step, CV_FLOW_REPLICA_DONE);
	return copy->written;
}

static struct copy begin_copy(const struct node *node)
{
	const size_t bytes = node->zone->memory.bytes;
	struct copy copy = {.sent = calloc(1, bytes),
		.fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING)};

	assert_non_null(copy.sent);
	assert_return_code(ftruncate(copy.fd, (off_t)bytes), 0);
	assert_return_code(
		fcntl(copy.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	cv_flow_zone_replica(node->zone, &copy.replica);
	return copy;
}

static struct node *restart_from(const struct copy *copy, unsigned *flows)
{
	struct node *new = start();
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};

	new->worker.now = 77ull * TSC_HZ; // clocks of two machines have nothing in common
	if (cv_flow_zone_restore(
		    new->zone, &new->worker, copy->fd, CV_FLOW_REPLICATED, &restored, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(restored.lost, 0);
	*flows = (unsigned)restored.flows;
	return new;
}

static void a_copy_is_restored(void **state)
{
	struct node *old = start(), *new;
	struct copy copy;
	unsigned flows;
	size_t all;

	if (!can(old))
		skip();
	open_flows(old);
	copy = begin_copy(old);
	all = pass(&copy, old);
	assert_true(all > FLOWS * sizeof(struct cv_flow_ipv4));
	assert_int_equal(copy.replica.flows, FLOWS);
	assert_int_equal(pass(&copy, old), 0);
	for (uint32_t i = 0; i < FLOWS; i++) // that a packet came is nothing to be told
		assert_true(passes(old, i, false));
	assert_int_equal(pass(&copy, old), 0);
	new = restart_from(&copy, &flows);
	assert_int_equal(flows, FLOWS);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, true));
	is_empty_at_last(new);
	end(new);
	is_empty_at_last(old); // what has ended there is not known here
	assert_true(pass(&copy, old) <= FLOWS * sizeof(uint32_t));
	new = restart_from(&copy, &flows);
	assert_int_equal(flows, 0);
	end(new);
	end(old);
	close(copy.fd);
	free(copy.sent);
}

static void a_kept_file_is_no_copy(void **state)
{
	struct node *old = start(), *new = start();
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};

	if (!can(old))
		skip();
	assert_true(cv_flow_zone_restore(new->zone, &new->worker, old->fd, CV_FLOW_REPLICATED,
			    &restored, &error) < 0);
	end(new);
	end(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bytes_make_a_table_as_any_other),
		cmocka_unit_test(a_half_written_flow_is_lost_alone),
		cmocka_unit_test(whole_flows_are_known_again),
		cmocka_unit_test(any_slot_is_known_again),
		cmocka_unit_test(windows_go_on),
		cmocka_unit_test(time_goes_on),
		cmocka_unit_test(what_is_over_ends),
		cmocka_unit_test(orders_are_found_again),
		cmocka_unit_test(hosts_limits_hold),
		cmocka_unit_test(what_is_denied_is_not_known),
		cmocka_unit_test(another_memory_is_refused),
		cmocka_unit_test(only_what_can_be_restored_is_stored),
		cmocka_unit_test_prestate(
			flows_come_back_when_packets_ask, (void *)(uintptr_t)laters[0]),
		cmocka_unit_test_prestate(
			flows_come_back_when_packets_ask, (void *)(uintptr_t)laters[1]),
		cmocka_unit_test_prestate(
			flows_come_back_when_packets_ask, (void *)(uintptr_t)laters[2]),
		cmocka_unit_test_prestate(
			what_has_ended_does_not_come_back, (void *)(uintptr_t)laters[0]),
		cmocka_unit_test_prestate(
			what_has_ended_does_not_come_back, (void *)(uintptr_t)laters[1]),
		cmocka_unit_test_prestate(
			what_has_ended_does_not_come_back, (void *)(uintptr_t)laters[2]),
		cmocka_unit_test_prestate(
			new_flows_take_no_room_of_those_to_come, (void *)(uintptr_t)laters[0]),
		cmocka_unit_test_prestate(
			new_flows_take_no_room_of_those_to_come, (void *)(uintptr_t)laters[1]),
		cmocka_unit_test(answers_of_those_to_come_stay_theirs),
		cmocka_unit_test(how_they_may_come),
		cmocka_unit_test(new_ones_wait_where_they_must),
		cmocka_unit_test(so_do_any_bytes),
		cmocka_unit_test(a_copy_is_restored),
		cmocka_unit_test(a_kept_file_is_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
