// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows go over to another zone, as they do to another process: known ones are known there, and what does
// not come whole is refused.
#include "tests/support/test_flow.h"

#include <errno.h>
#include <unistd.h>

#include "flow/carried.h"
#include "flow/handover.h"
#include "flow/zone.h"

#define TSC_HZ 2000000000u
#define FLOWS 40u

static const struct cv_flow_limits usual = {.max = 64,
	.max_ipv6 = 64,
	.per_host = 2,
	.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
		[CV_FLOW_TCP_ESTABLISHED] = 7440,
		[CV_FLOW_UDP_NEW] = 120,
		[CV_FLOW_UDP] = 300,
		[CV_FLOW_DENIED_FOR] = 5}};

// Lets flows from networks below 128 begin, and counts its calls by their reason.
struct guard {
	unsigned calls[CV_FLOW_REPEAT + 1];
};

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	((struct guard *)instance)->calls[packet->why]++;
	return (*(const uint8_t *)&actions->tuple.src & 0x80) ? CV_DROP(0) : CV_NEXT;
}

static const char *const drops[] = {"denied", NULL};
static const struct cv_nf_flow flow = {.decide = decide, .in_slots = true};
static const struct cv_nf_flow other_flow = {.decide = decide, .in_slots = true, .slot_bytes = 8};
static const struct cv_nf_flow own_flow = {.decide = decide};
static const struct cv_nf guard_nf = {.name = "guard", .drops = drops, .flow = &flow};
static const struct cv_nf other_nf = {.name = "other", .drops = drops, .flow = &other_flow};
static const struct cv_nf own_nf = {.name = "own", .drops = drops, .flow = &own_flow};

struct node {
	struct guard guards[2];
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters[2];
	struct cv_nf_worker worker;
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
	const struct cv_flow_member members[2] = {{nf, &node->guards[0]}, {nf, &node->guards[1]}};
	struct cv_flow_limits limits = usual;
	struct cv_error error = {""};

	limits.max = max;
	node->worker.now = TSC_HZ;
	node->zone = cv_flow_zone_create(members, 2, &limits, TSC_HZ, &error);
	if (node->zone == NULL)
		fail_msg("%s", error.text);
	node->group = add_group(node, order);
	assert_non_null(node->group);
	return node;
}

static struct node *start(void)
{
	return start_of(&guard_nf, 64, orders[0]);
}

static void end(struct node *node)
{
	cv_flow_zone_destroy(node->zone);
	free(node);
}

// A packet of a flow, or its answer: whether it passes.
static bool passes(struct node *node, uint32_t number, bool answer)
{
	const rte_be32_t hosts[2] = {rte_cpu_to_be_32(0x0a000000 + number), RTE_BE32(0xc6336401)};
	struct packet packet = packet_make("ip4 udp");
	struct cv_view view = {.in = 0, .out = 1};
	uint8_t verdict;

	memcpy(packet.bytes + 14 + 12, &hosts[answer], 4);
	memcpy(packet.bytes + 14 + 16, &hosts[!answer], 4);
	memcpy(packet.bytes + 14 + 20, (const rte_be16_t[]){answer ? RTE_BE16(53) : RTE_BE16(99)},
		2);
	memcpy(packet.bytes + 14 + 22, (const rte_be16_t[]){answer ? RTE_BE16(99) : RTE_BE16(53)},
		2);
	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_process(node->group, &node->worker, &view, &verdict, 1);
	return verdict == CV_NEXT;
}

static void open_flows(struct node *node)
{
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(node, i, false));
}

// The file as another process gets it.
static int given(struct node *node)
{
	return dup(cv_flow_zone_give(node->zone));
}

static bool can(const struct node *node)
{
	return node->zone->memory.fd >= 0; // else this kernel makes no large pages of files
}

static void known_flows_are_known_there(void **state)
{
	struct node *old = start(), *new = start();
	const struct cv_flow_counters *counters = cv_flow_zone_counters(new->zone);
	struct cv_error error = {""};

	if (!can(old))
		skip();
	assert_null(cv_flow_zone_stays(old->zone));
	assert_int_equal(cv_flow_zone_take(new->zone, given(old), &error), 0);
	open_flows(old); // while the other one has the file
	cv_flow_zone_freeze(old->zone);
	assert_int_equal(cv_flow_zone_taken(new->zone, &error), 0);
	cv_flow_zone_adopt(new->zone);
	end(old);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(passes(new, i, true));
	assert_false(passes(new, FLOWS, true));
	assert_int_equal(counters->created, FLOWS);
	assert_int_equal(counters->flows_ipv4 - counters->denied, FLOWS);
	assert_int_equal(new->guards[0].calls[CV_FLOW_CHANGED], FLOWS);
	end(new);
}

static void orders_keep_their_numbers(void **state)
{
	struct node *old = start_of(&guard_nf, 64, orders[1]), *new = start();
	struct cv_error error = {""};

	if (!can(old))
		skip();
	open_flows(old);
	assert_int_equal(cv_flow_zone_take(new->zone, given(old), &error), 0);
	cv_flow_zone_freeze(old->zone);
	assert_int_equal(cv_flow_zone_taken(new->zone, &error), 0);
	cv_flow_zone_adopt(new->zone);
	end(old);
	assert_int_equal(new->zone->groups_count, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(new->zone->groups[i]->index, i);
	assert_memory_equal(new->zone->groups[0]->order, orders[1], 2);
	assert_ptr_equal(new->zone->groups[1], new->group);
	assert_true(passes(new, 0, true));
	end(new);
}

static void another_layout_is_refused(void **state)
{
	struct node *old = start();
	struct node *others[] = {
		start_of(&other_nf, 64, orders[0]), start_of(&guard_nf, 65, orders[0])};

	if (!can(old))
		skip();
	open_flows(old);
	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		struct cv_error error = {""};

		assert_int_equal(cv_flow_zone_take(others[i]->zone, given(old), &error), -ESTALE);
		assert_non_null(strstr(error.text, "another layout"));
		assert_false(passes(others[i], 0, true)); // it has its own, and none
		end(others[i]);
	}
	end(old);
}

static void what_is_no_memory_of_flows_is_refused(void **state)
{
	struct node *node = start();
	struct cv_error error = {""};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(cv_flow_zone_take(node->zone, ends[0], &error), -ESTALE);
	close(ends[1]);
	end(node);
}

static void break_whole(struct cv_flow_carried *carried)
{
	carried->is_whole = 0;
}

static void break_high(struct cv_flow_carried *carried)
{
	carried->family[0].high = 65;
}

static void break_used(struct cv_flow_carried *carried)
{
	carried->family[1].used = 1;
}

static void break_free(struct cv_flow_carried *carried)
{
	carried->family[0].free = FLOWS;
}

static void break_cursor(struct cv_flow_carried *carried)
{
	carried->family[0].cursor = 8;
}

static void break_groups(struct cv_flow_carried *carried)
{
	carried->groups_count = CV_FLOW_GROUPS_MAX + 1;
}

static void break_order(struct cv_flow_carried *carried)
{
	carried->order[0][1] = 0;
}

static void remember(struct cv_flow_carried *carried, uint8_t v6, uint32_t index)
{
	carried->fragments.set[255][3] = (struct cv_flow_fragment){
		.key = {.v6 = v6}, .slot = CV_FLOW_SLOT(index, 1), .deadline = 1};
}

static void break_fragment(struct cv_flow_carried *carried)
{
	remember(carried, 0, 64);
}

static void break_fragment_ipv6(struct cv_flow_carried *carried)
{
	remember(carried, 1, INT32_MAX);
}

static void break_fragment_family(struct cv_flow_carried *carried)
{
	remember(carried, 2, 0);
}

static void what_did_not_come_whole_is_refused(void **state)
{
	void (*const breaks[])(struct cv_flow_carried *) = {break_whole, break_high, break_used,
		break_free, break_cursor, break_groups, break_order, break_fragment,
		break_fragment_ipv6, break_fragment_family};

	for (unsigned i = 0; i < RTE_DIM(breaks); i++) {
		struct node *old = start(), *new = start();
		struct cv_error error = {""};

		if (!can(old))
			skip();
		open_flows(old);
		assert_int_equal(cv_flow_zone_take(new->zone, given(old), &error), 0);
		cv_flow_zone_freeze(old->zone);
		breaks[i](old->zone->carried);
		assert_int_equal(cv_flow_zone_taken(new->zone, &error), -EPROTO);
		end(new);
		assert_true(passes(old, 0, true)); // it goes on
		end(old);
	}
}

static void fragments_of_the_last_flow_go_along(void **state)
{
	for (uint8_t v6 = 0; v6 < 2; v6++) {
		struct node *old = start(), *new = start();
		struct cv_error error = {""};

		if (!can(old))
			skip();
		assert_int_equal(cv_flow_zone_take(new->zone, given(old), &error), 0);
		cv_flow_zone_freeze(old->zone);
		remember(old->zone->carried, v6, 63);
		assert_int_equal(cv_flow_zone_taken(new->zone, &error), 0);
		cv_flow_zone_adopt(new->zone);
		assert_int_equal(new->zone->fragments.set[255][3].slot, CV_FLOW_SLOT(63, 1));
		end(old);
		end(new);
	}
}

static void places_that_lead_outside_are_refused(void **state)
{
	struct node *old = start(), *new = start();
	struct cv_error error = {""};

	if (!can(old))
		skip();
	old->zone->table[0].buckets[0].signature[0] = 1;
	old->zone->table[0].buckets[0].slot[0] = CV_FLOW_SLOT(64, 0);
	assert_int_equal(cv_flow_zone_take(new->zone, given(old), &error), -EPROTO);
	end(new);
	end(old);
}

static void what_functions_keep_elsewhere_stays(void **state)
{
	struct node *node = start_of(&own_nf, 64, orders[0]);

	assert_string_equal(cv_flow_zone_stays(node->zone), "do not go along");
	end(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_flows_are_known_there),
		cmocka_unit_test(orders_keep_their_numbers),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(what_is_no_memory_of_flows_is_refused),
		cmocka_unit_test(what_did_not_come_whole_is_refused),
		cmocka_unit_test(fragments_of_the_last_flow_go_along),
		cmocka_unit_test(places_that_lead_outside_are_refused),
		cmocka_unit_test(what_functions_keep_elsewhere_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
