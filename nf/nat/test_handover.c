// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat's flows go over to another instance, as they do to another process: mappings, ports and blocks with
// them. What another process wrote wrongly is refused, or harms nothing.
#include "nf/nat/test_flows.h"

#include <stdlib.h>
#include <unistd.h>

#include "flow/handover.h"

static const char usual[] =
	"{\"inside\": [\"10.0.0.0/8\"], \"outside\": [\"right\"], \"pool\": [\"198.51.100.1\"], "
	"\"ports\": \"1024-1535\", \"block_size\": 64, \"block_rest_s\": 1, "
	"\"blocks_per_subscriber\": 2, \"mappings\": 96, "
	"\"filtering\": \"address-dependent\"}";

// What a node tells, and the other one takes; the latter's first error.
static int change_over(struct net *old, struct net *new)
{
	const struct cv_flow_kept *kept = cv_nf_nat.flow->kept;
	struct cv_error error = {""};
	int rc = kept->take(new->nat, dup(kept->give(old->nat)), &error);

	if (rc == 0)
		rc = cv_flow_zone_take(new->zone, dup(cv_flow_zone_give(old->zone)), &error);
	return rc;
}

static int begin(struct net *new)
{
	struct cv_error error = {""};
	int rc = cv_nf_nat.flow->kept->taken(new->nat, &error);

	if (rc == 0)
		rc = cv_flow_zone_taken(new->zone, &error);
	if (rc == 0)
		cv_flow_zone_adopt(new->zone);
	return rc;
}

static void freeze(struct net *net)
{
	cv_nf_nat.flow->kept->freeze(net->nat);
	cv_flow_zone_freeze(net->zone);
}

static void mappings_go_along(void **state)
{
	struct flows flows, again;
	struct net old, new;
	uint16_t port;

	net_make_of(&old, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	net_make_of(&new, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	if (!can(&old))
		skip();
	assert_null(cv_flow_zone_stays(old.zone));
	assert_int_equal(
		cv_nf_nat.flow->kept->layout(old.nat), cv_nf_nat.flow->kept->layout(new.nat));
	assert_int_equal(change_over(&old, &new), 0);
	open_flows(&old, &flows); // while the other one has the memory
	freeze(&old);
	assert_int_equal(begin(&new), 0);
	net_free(&old);
	new.worker.now = 2 * TSC_HZ;
	for (unsigned i = 0; i < FLOWS; i++) {
		assert_string_equal(transmit(&new, i, &flows.port[i], true), "next");
		assert_string_equal(transmit(&new, i, &again.port[i], false), "next");
	}
	assert_memory_equal(&flows, &again, sizeof(flows));
	assert_int_equal(cv_flow_zone_counters(new.zone)->created, FLOWS);
	assert_int_equal(net_info(&new, "mappings"), FLOWS + FLOWS); // each with a permit
	// A port that a flow of the process before has is nobody else's; what nobody has is refused.
	assert_string_equal(transmit(&new, 250, &port, false), "next");
	for (unsigned i = 0; i < FLOWS; i++)
		assert_int_not_equal(port, flows.port[i]);
	port = 1;
	assert_string_equal(transmit(&new, 0, &port, true), "no_mapping");
	// All is given back in the end.
	net_wait(&new, 400);
	assert_int_equal(net_info(&new, "mappings"), 0);
	assert_int_equal(net_info(&new, "subscribers"), 0);
	assert_int_equal(net_info(&new, "used"), 0);
	net_free(&new);
}

static void a_node_that_goes_on_has_all(void **state)
{
	struct flows flows;
	struct net old, new;

	net_make_of(&old, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	net_make_of(&new, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	if (!can(&old))
		skip();
	open_flows(&old, &flows);
	assert_int_equal(change_over(&old, &new), 0);
	freeze(&old);
	assert_int_equal(begin(&new), 0);
	net_free(&new); // it ended before it began
	for (unsigned i = 0; i < FLOWS; i++)
		assert_string_equal(transmit(&old, i, &flows.port[i], true), "next");
	net_free(&old);
}

static void other_pools_and_blocks_are_another_layout(void **state)
{
	static const char *const others[] = {
		"{\"inside\": [\"10.0.0.0/8\"], \"outside\": [\"right\"], \"pool\": "
		"[\"198.51.100.2\"], \"ports\": \"1024-1535\", "
		"\"block_size\": 64, \"block_rest_s\": 1, \"blocks_per_subscriber\": 2, "
		"\"mappings\": 64}",
		"{\"inside\": [\"10.0.0.0/8\"], \"outside\": [\"right\"], \"pool\": "
		"[\"198.51.100.1\"], \"ports\": \"1024-1535\", "
		"\"block_size\": 128, \"block_rest_s\": 1, \"blocks_per_subscriber\": 2, "
		"\"mappings\": 64}",
		"{\"inside\": [\"10.0.0.0/8\"], \"outside\": [\"right\"], \"pool\": "
		"[\"198.51.100.1\"], \"ports\": \"1024-1535\", "
		"\"block_size\": 64, \"block_rest_s\": 1, \"blocks_per_subscriber\": 2, "
		"\"mappings\": 65}",
	};
	const struct cv_flow_kept *kept = cv_nf_nat.flow->kept;
	void *one = packet_nf_alone(&cv_nf_nat, usual);

	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		void *other = packet_nf_alone(&cv_nf_nat, others[i]);

		assert_true(kept->layout(one) != kept->layout(other));
		cv_nf_destroy(&cv_nf_nat, other);
	}
	cv_nf_destroy(&cv_nf_nat, one);
}

// What other processes write is put back after each.
struct image {
	struct cv_flow_memory memory[2];
	uint8_t *copy[2];
};

static void take_image(struct image *image, const struct net *net)
{
	image->memory[0] = ((const struct cv_nat *)net->nat)->state->memory;
	image->memory[1] = net->zone->memory;
	for (unsigned i = 0; i < 2; i++) {
		image->copy[i] = malloc(image->memory[i].bytes);
		assert_non_null(image->copy[i]);
		memcpy(image->copy[i], image->memory[i].start, image->memory[i].bytes);
	}
}

static void put_back(const struct image *image)
{
	for (unsigned i = 0; i < 2; i++)
		memcpy(image->memory[i].start, image->copy[i], image->memory[i].bytes);
}

// A word of mappings and ports, or of a flow's slot.
static uint32_t *any_word(const struct net *net, const struct image *image)
{
	const size_t tables = cv_nat_mappings_bytes(96) / 4 + 1024;
	uint32_t *words = image->memory[0].start;

	if (random() % 4 == 0)
		return (uint32_t *)cv_flow_slot(net->zone, false, (uint32_t)random() % FLOWS, 0) +
		       random() % 2;
	return &words[(size_t)random() % tables];
}

// Packets of all flows, new ones, and time until all have ended.
static void use(struct net *net, const struct flows *flows)
{
	uint16_t port;

	for (unsigned i = 0; i < FLOWS; i++) {
		port = flows->port[i];
		transmit(net, i, &port, true);
		transmit(net, i, &port, false);
		transmit(net, 100 + i, &port, false);
	}
	net_wait(net, 130);
}

// Whatever leads out of its table is refused, or harms nothing: before all is frozen, or afterwards.
// Each mapping is followed by itself: what is not there is looked for in rings.
static void rings_end(void **state)
{
	struct cv_nat_mappings *mappings;
	struct flows flows;
	struct net old, new;
	uint16_t port;

	net_make_of(&old, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	net_make_of(&new, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	if (!can(&old))
		skip();
	open_flows(&old, &flows);
	mappings = ((const struct cv_nat *)old.nat)->state->workers[0].mappings;
	for (uint32_t i = 0; i < ((const struct cv_nat *)old.nat)->state->mappings_each; i++)
		for (unsigned which = 0; which < 2; which++)
			cv_nat_mapping_at(mappings, i)->next[which] = i;
	assert_int_equal(change_over(&old, &new), 0);
	freeze(&old);
	assert_int_equal(begin(&new), 0);
	net_free(&old);
	for (unsigned i = 0; i < 200; i++)
		transmit(&new, i, &port, false);
	for (port = 1024; port < 1536; port++)
		transmit(&new, 0, &port, true);
	net_wait(&new, 400);
	net_free(&new);
}

static void what_leads_outside_harms_nothing(void **state)
{
	static const uint32_t values[] = {UINT32_MAX - 1, INT32_MAX, 64, 1u << 16};
	unsigned refused = 0, rounds = 400;
	struct flows flows;
	struct image image;
	struct net old;

	net_make_of(&old, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
	if (!can(&old))
		skip();
	open_flows(&old, &flows);
	freeze(&old);
	take_image(&image, &old);
	srandom(7);
	for (unsigned i = 0; i < rounds; i++) {
		struct net new;
		int rc;

		net_make_of(&new, packet_nf_alone(&cv_nf_nat, usual), 0, 64);
		*any_word(&old, &image) = values[(size_t)random() % RTE_DIM(values)];
		rc = change_over(&old, &new);
		if (rc == 0) {
			cv_flow_zone_freeze(old.zone); // it was given after it was frozen
			rc = begin(&new);
		}
		if (rc == 0)
			use(&new, &flows);
		refused += rc != 0;
		net_free(&new);
		put_back(&image);
	}
	assert_in_range(refused, rounds / 4, rounds - 1);
	for (unsigned i = 0; i < 2; i++)
		free(image.copy[i]);
	net_free(&old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_go_along),
		cmocka_unit_test(a_node_that_goes_on_has_all),
		cmocka_unit_test(other_pools_and_blocks_are_another_layout),
		cmocka_unit_test(rings_end),
		cmocka_unit_test(what_leads_outside_harms_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
