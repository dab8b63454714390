// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// Whole trials over real rings, with a device in a thread that misbehaves in a known way: the
// accounting must say exactly that.

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gen/port/reflector.h"
#include "gen/trial/result.h"
#include "gen/trial/trial.h"

struct world {
	struct gen_tester tester;
	struct gen_port ports[2];
	struct gen_reflector reflector;
};

static const struct gen_vhost_options small = {
	.queues = 1, .ring = 256, .buffer = 1514, .memory = 64 << 20};

static struct world *build(enum gen_fate (*fate)(uint32_t direction, uint64_t seen), uint32_t ring)
{
	struct gen_vhost_options options = small;
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	options.ring = ring;
	world->tester.clock = gen_clock_measure();
	world->tester.next_magic = 0xfffe; // about to wrap
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(gen_vhost_open_inside(&world->ports[i], &options), 0);
		world->tester.ports[world->tester.port_count++] = &world->ports[i];
	}
	world->reflector.core = UINT32_MAX;
	world->reflector.fate = fate;
	world->reflector.direction_count = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct gen_vring *unused;
		gen_vhost_rings(&world->ports[i], 0, &unused, &world->reflector.directions[i].from);
		gen_vhost_rings(
			&world->ports[1 - i], 0, &world->reflector.directions[i].to, &unused);
	}
	assert_int_equal(gen_reflector_start(&world->reflector), 0);
	return world;
}

static void demolish(struct world *world)
{
	gen_reflector_stop(&world->reflector);
	for (uint32_t i = 0; i < 2; i++)
		world->ports[i].close(&world->ports[i]);
	free(world);
}

// The result of one trial, a new reference.
static json_t *try(struct world *world, const char *text)
{
	static char *const argv[] = {"test", NULL};
	const struct gen_context context = {.core = 0, .argv = argv};
	json_t *json = json_loads(text, 0, NULL);
	struct gen_trial trial;
	struct gen_spec spec;
	struct cv_error error = {0};

	assert_non_null(json);
	if (gen_spec_parse(&spec, json, 2, &error) < 0 ||
		gen_trial_run(&world->tester, &spec, spec.duration_s, &trial, &error) < 0)
		fail_msg("%s", error.text);
	json_t *result = gen_result(&world->tester, &context, &spec, &trial);
	gen_trial_free(&trial);
	gen_spec_free(&spec);
	json_decref(json);
	return result;
}

static uint64_t count(const json_t *result, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(json_object_get(result, "total"), key));
}

// Runs of length 1 and 2 of a list of [length, count].
static uint64_t runs(const json_t *result, uint64_t length)
{
	json_t *list = json_object_get(json_object_get(result, "total"), "loss_bursts_pkts");
	json_t *pair;
	size_t i;

	json_array_foreach (list, i, pair)
		if ((uint64_t)json_integer_value(json_array_get(pair, 0)) == length)
			return (uint64_t)json_integer_value(json_array_get(pair, 1));
	return 0;
}

static enum gen_fate drops(uint32_t direction, uint64_t seen)
{
	// One of 10, and two in a row of 100.
	return seen % 100 == 51 || seen % 10 == 0 ? GEN_DROP : GEN_PASS;
}

static enum gen_fate doubles(uint32_t direction, uint64_t seen)
{
	return seen % 8 == 3 ? GEN_DOUBLE : GEN_PASS;
}

static enum gen_fate holds(uint32_t direction, uint64_t seen)
{
	return seen % 16 == 5 ? GEN_HOLD : GEN_PASS;
}

static enum gen_fate spoils(uint32_t direction, uint64_t seen)
{
	return seen % 20 == 1 ? GEN_SPOIL : seen % 20 == 2 ? GEN_BLANK : GEN_PASS;
}

struct expected {
	uint64_t received; // 0: all that were offered
	uint64_t lost, duplicated, reordered, corrupt, foreign;
	uint64_t runs1, runs2; // of consecutive losses
};

static void accounting_says_what_the_device_did(void **state)
{
	static const struct {
		const char *what;
		enum gen_fate (*fate)(uint32_t direction, uint64_t seen);
		const char *more; // of the specification; 10,000 packets in 0.1 s
		struct expected accounting;
	} rows[] = {
		{"nothing", NULL, "", {.received = 10000}},
		{"drops", drops, "", {.received = 8900, .lost = 1100, .runs1 = 900, .runs2 = 100}},
		{"doubles", doubles, "", {.received = 10000, .duplicated = 1250}},
		{"delays one behind the next", holds, "", {.received = 10000, .reordered = 625}},
		{"the same, but the next is of another flow", holds, ", \"flows\": {\"count\": 2}",
			{.received = 10000}},
		{"spoils and blanks stamps", spoils, "",
			{.received = 9000,
				.lost = 1000,
				.corrupt = 500,
				.foreign = 500,
				.runs2 = 500}},
		{"nothing, to convoys of 10", NULL, ", \"convoys\": 10", {.received = 10000}},
		{"nothing, to IMIX in convoys of up to 4", NULL,
			", \"convoys\": 4, \"size\": \"imix\", \"flows\": {\"count\": 7}", {0}},
		{"nothing, to convoys over IPv6 in smaller frames", NULL,
			", \"convoys\": {\"packets\": 5, \"src\": \"2001:db8::1\", \"dst\": "
			"\"2001:db8::2\", \"mtu\": 600, \"port\": 9, \"nfi\": 3}",
			{.received = 10000}},
		{"drops convoys of 10", drops, ", \"convoys\": 10",
			{.received = 8900, .lost = 1100}},
		{"doubles convoys of 10", doubles, ", \"convoys\": 10",
			{.received = 10000, .duplicated = 1250}},
		{"delays convoys of 10", holds, ", \"convoys\": 10",
			{.received = 10000, .reordered = 630}},
		{"spoils and blanks the last of 10", spoils, ", \"convoys\": 10",
			{.received = 9900,
				.lost = 100,
				.corrupt = 50,
				.foreign = 50,
				.runs1 = 100}},
		{"drops of IMIX in shuffled flows", drops,
			", \"size\": \"imix\", \"flows\": {\"count\": 100, \"order\": \"shuffle\"}",
			{.received = 8900, .lost = 1100, .runs1 = 900, .runs2 = 100}},
		{"nothing, to packets and answers", NULL, ", \"answers\": true",
			{.received = 10000}},
		{"nothing, to packets of all sizes and answers", NULL,
			", \"answers\": true, \"size\": \"imix\"", {.received = 10000}},
		{"nothing, to connections opened and closed", NULL,
			", \"answers\": true, \"packets\": 2000, \"size\": 72, \"flows\": "
			"{\"protocol\": \"tcp\", "
			"\"count\": 3000, \"written\": \"sending\"}",
			{.received = 2000}},
		{"drops packets, and answers to the rest", drops, ", \"answers\": true",
			{.received = 7921, .lost = 2079, .runs1 = 1332, .runs2 = 300}},
		{"drops in bursts of 20, IPv6, tagged", drops,
			", \"size\": 100, \"pacing\": {\"burst_pkts\": 20}, "
			"\"flows\": {\"ip\": 6, \"vlan\": 5}",
			{.received = 8900, .lost = 1100, .runs1 = 900, .runs2 = 100}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct expected *accounting = &rows[i].accounting;
		struct world *world = NULL;
		json_t *result = NULL;

		print_message("%s\n", rows[i].what);
		// The queues hold a whole trial, and sending may take its time, so that a busy machine
		// does not matter, unless the device's thread does not run until the trial's end.
		for (int attempt = 0; attempt < 10; attempt++) {
			world = build(rows[i].fate, 16384);
			char spec[512];
			snprintf(spec, sizeof(spec),
				"{\"rate_pps\": 100000, \"duration_s\": 0.1, \"tolerance\": 1, "
				"\"drain_s\": 0.15%s}",
				rows[i].more);
			result = try(world, spec);
			assert_int_equal(count(result, "received_pkts") +
						 count(result, "lost_pkts") +
						 count(result, "unsent_pkts"),
				count(result, "offered_pkts"));
			if (json_is_true(json_object_get(result, "ok")) &&
				count(result, "unsent_pkts") == 0 &&
				count(result, "received_pkts") ==
					(accounting->received > 0 ? accounting->received
								  : count(result, "offered_pkts")))
				break;
			json_decref(result);
			demolish(world);
			result = NULL;
		}
		assert_non_null(result);
		assert_int_equal(count(result, "lost_pkts"), accounting->lost);
		assert_int_equal(count(result, "duplicated_pkts"), accounting->duplicated);
		assert_int_equal(count(result, "reordered_pkts"), accounting->reordered);
		assert_int_equal(count(result, "corrupt_pkts"), accounting->corrupt);
		assert_int_equal(json_integer_value(json_object_get(result, "foreign_pkts")),
			accounting->foreign);
		assert_int_equal(runs(result, 1), accounting->runs1);
		assert_int_equal(runs(result, 2), accounting->runs2);
		assert_int_equal(count(result, "misrouted_pkts"), 0);
		// Copies are in none of these.
		json_t *latency = json_object_get(json_object_get(result, "total"), "latency");
		assert_int_equal(json_integer_value(json_object_get(latency, "count")),
			count(result, "received_pkts"));
		if (count(result, "received_pkts") == count(result, "sent_pkts"))
			assert_int_equal(
				count(result, "received_bytes"), count(result, "sent_bytes"));
		json_decref(result);
		demolish(world);
	}
}

static pthread_t tester_thread;

static void loses_its_core(int number)
{
	const struct timespec moment = {.tv_nsec = 60000000};

	(void)number;
	nanosleep(&moment, NULL);
}

static enum gen_fate takes_the_core(uint32_t direction, uint64_t seen)
{
	if (seen == 0)
		pthread_kill(tester_thread, SIGUSR1);
	return GEN_PASS;
}

// The tester does not run until the drain time is over: what came meanwhile is not lost.
static void what_came_while_the_tester_did_not_run_is_received(void **state)
{
	struct sigaction action = {.sa_handler = loses_its_core};

	tester_thread = pthread_self();
	sigaction(SIGUSR1, &action, NULL);
	unsigned good = 0;

	// The device may not have run either; the tester may have been sending still.
	for (unsigned i = 0; i < 20; i++) {
		struct world *world = build(takes_the_core, 1024);
		json_t *result =
			try(world, "{\"rate_pps\": \"max\", \"packets\": 500, "
				   "\"duration_s\": 1, \"tolerance\": 1, \"drain_s\": 0.03}");

		good += count(result, "received_pkts") == 500;
		json_decref(result);
		demolish(world);
	}
	assert_true(good > 2); // without that none is
}

static uint64_t convoys(const json_t *result, const char *key)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(result, "convoys"), key));
}

static void convoys_are_counted_as_they_were_sent(void **state)
{
	struct world *world = build(NULL, 16384);
	json_t *result = try(world, "{\"rate_pps\": 100000, \"duration_s\": 0.1, \"tolerance\": 1, "
				    "\"drain_s\": 2, \"convoys\": 22}");
	json_t *pair = json_array_get(
		json_object_get(json_object_get(result, "convoys"), "received_by_packets"), 0);

	assert_true(convoys(result, "sent_frames") > 0);
	assert_int_equal(convoys(result, "received_frames"), convoys(result, "sent_frames"));
	assert_int_equal(convoys(result, "received_pkts"), count(result, "received_pkts"));
	assert_int_equal(count(result, "received_pkts"), count(result, "sent_pkts"));
	assert_int_equal(json_integer_value(json_array_get(pair, 0)), 22);
	assert_int_equal(json_integer_value(json_array_get(pair, 1)),
		(json_int_t)convoys(result, "sent_frames"));
	json_decref(result);
	// Sent unaggregated: no convoys. Not asked for: nothing about them.
	result = try(world, "{\"duration_s\": 0.01, \"drain_s\": 2, \"convoys\": 1}");
	assert_int_equal(convoys(result, "sent_frames"), 0);
	assert_int_equal(convoys(result, "received_frames"), 0);
	assert_int_equal(count(result, "received_pkts"), count(result, "sent_pkts"));
	json_decref(result);
	result = try(world, "{\"duration_s\": 0.01, \"drain_s\": 2}");
	assert_true(json_is_null(json_object_get(result, "convoys")));
	json_decref(result);
	demolish(world);
}

// "packets" that fill no convoy at the end are not offered, and the trial does not wait for them.
static void packets_that_fill_no_convoy_are_not_offered(void **state)
{
	static const struct {
		const char *rate;
		uint32_t packets, convoy;
		uint64_t offered;
	} rows[] = {
		{"10000", 100, 22, 88},
		{"10000", 110, 22, 110},
		{"10000", 10, 22, 0},
		{"\"max\"", 100, 22, 88},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = build(NULL, 4096);
		char spec[256];

		snprintf(spec, sizeof(spec),
			"{\"rate_pps\": %s, \"duration_s\": 5, \"packets\": %u, "
			"\"convoys\": %u, \"drain_s\": 5}",
			rows[i].rate, rows[i].packets, rows[i].convoy);
		json_t *result = try(world, spec);
		assert_true(json_is_true(json_object_get(result, "ok")));
		assert_int_equal(count(result, "offered_pkts"), rows[i].offered);
		assert_int_equal(count(result, "received_pkts"), rows[i].offered);
		assert_int_equal(count(result, "unsent_pkts"), 0);
		assert_true(
			json_integer_value(json_object_get(result, "duration_ns")) < 4000000000);
		json_decref(result);
		demolish(world);
	}
}

static enum gen_fate drops_all(uint32_t direction, uint64_t seen)
{
	return GEN_DROP;
}

static void both_ways_at_once_and_trial_after_trial(void **state)
{
	struct world *world = build(NULL, small.ring);

	for (int i = 0; i < 5; i++) {
		json_t *result = try(world, "{\"rate_pps\": \"max\", \"duration_s\": 0.02, "
					    "\"drain_s\": 5, \"paths\": [\"0>1\", "
					    "\"1>0\"]}");
		json_t *paths = json_object_get(result, "paths");

		assert_int_equal(json_array_size(paths), 2);
		for (size_t j = 0; j < 2; j++)
			assert_true(json_integer_value(json_object_get(
					    json_array_get(paths, j), "received_pkts")) > 0);
		assert_int_equal(count(result, "received_pkts"), count(result, "sent_pkts"));
		assert_int_equal(count(result, "lost_pkts"), 0);
		assert_int_equal(count(result, "duplicated_pkts"), 0);
		assert_int_equal(count(result, "reordered_pkts"), 0);
		json_decref(result);
	}
	demolish(world);
}

// The device sends 0>1 to where 0>0 should come back: a leak.
static void what_comes_out_of_the_wrong_port_is_misrouted(void **state)
{
	struct world *world = build(NULL, small.ring);
	json_t *result = try(world, "{\"rate_pps\": 10000, \"duration_s\": 0.05, \"drain_s\": 2, "
				    "\"paths\": [\"0>0\"]}");

	assert_int_equal(count(result, "misrouted_pkts"), count(result, "sent_pkts"));
	assert_int_equal(count(result, "received_pkts"), 0);
	assert_int_equal(count(result, "lost_pkts"), count(result, "sent_pkts"));
	json_decref(result);
	demolish(world);
}

// A device that takes nothing: the trial failed, and says whose fault it is.
static void a_rate_that_is_not_reached_is_no_result(void **state)
{
	struct world *world = build(drops_all, small.ring);

	gen_reflector_stop(&world->reflector);
	json_t *result = try(world, "{\"rate_pps\": 100000, \"duration_s\": 0.05}");
	assert_false(json_is_true(json_object_get(result, "ok")));
	assert_string_equal(
		json_string_value(json_object_get(result, "reason_code")), "rate_not_reached");
	assert_non_null(strstr(
		json_string_value(json_object_get(result, "reason")), "device did not take"));
	assert_int_equal(count(result, "offered_pkts"), 5000);
	assert_int_equal(count(result, "sent_pkts"), small.ring);
	assert_int_equal(count(result, "unsent_pkts"), 5000 - small.ring);
	json_decref(result);

	// What it has not taken is still there: the next trial must not overwrite it.
	result = try(world, "{\"rate_pps\": 100000, \"duration_s\": 0.05}");
	assert_string_equal(
		json_string_value(json_object_get(result, "reason_code")), "not_settled");
	json_decref(result);
	assert_int_equal(gen_reflector_start(&world->reflector), 0);
	demolish(world);
}

static void a_full_queue_may_refuse_instead(void **state)
{
	struct world *world = build(drops_all, small.ring);

	gen_reflector_stop(&world->reflector);
	json_t *result = try(world, "{\"rate_pps\": 100000, \"duration_s\": 0.05, \"on_full\": "
				    "\"drop\", \"tolerance\": 1}");
	assert_true(json_is_true(json_object_get(result, "ok")));
	assert_int_equal(count(result, "sent_pkts"), small.ring);
	// What became due in a pause of the tester waits instead.
	assert_int_equal(
		count(result, "refused_pkts") + count(result, "unsent_pkts"), 5000 - small.ring);
	assert_true(count(result, "refused_pkts") > 0);
	assert_int_equal(count(result, "lost_pkts"), small.ring + count(result, "refused_pkts"));
	json_decref(result);
	assert_int_equal(gen_reflector_start(&world->reflector), 0);
	demolish(world);
}

static unsigned rooms;

static uint32_t room_but_for_once(struct gen_wire *wire, uint32_t wanted)
{
	return ++rooms == 2000 ? 1 : wanted;
}

static uint32_t send_slowly(struct gen_wire *wire, const struct gen_tx *burst)
{
	const uint64_t begin = gen_ticks();

	while (gen_ticks() - begin < 10000)
		;
	return burst->count;
}

static void what_the_tester_is_too_slow_for_is_not_refused(void **state)
{
	static const struct {
		const char *what;
		bool known; // how full the queue is
		uint64_t least, most; // refused, of tens of thousands that are late
	} rows[] = {
		{"the device keeps up", true, 0, 1000},
		{"nobody knows", false, 2000, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = build(NULL, small.ring);
		struct gen_wire *wire = &world->ports[0].wires[0];
		struct gen_wire_ops ops = *wire->ops;

		print_message("%s\n", rows[i].what);
		rooms = 0;
		ops.tx_room = room_but_for_once;
		ops.tx = send_slowly;
		wire->ops = &ops;
		wire->tx_half = rows[i].known ? small.ring / 2 : 0;
		json_t *result =
			try(world, "{\"rate_pps\": 25000000, \"duration_s\": 0.05, \"on_full\": "
				   "\"drop\", \"tolerance\": 1, \"drain_s\": 0.01}");
		assert_true(count(result, "late_max_ns") > 1000000);
		assert_true(count(result, "refused_pkts") >= rows[i].least);
		assert_true(count(result, "refused_pkts") <= rows[i].most);
		json_decref(result);
		demolish(world);
	}
}

// A device that claims what cannot be: nothing is followed, the trial failed.
static void nonsense_in_the_used_ring_is_caught(void **state)
{
	static const struct {
		const char *what;
		uint16_t index;
		uint32_t id, bytes;
	} rows[] = {
		{"more buffers than there are", 300, 0, 72},
		{"a buffer that does not exist", 1, 256, 72},
		{"a buffer out of turn", 1, 7, 72},
		{"longer than the buffer", 1, 0, 12 + 1515},
		{"shorter than its header", 1, 0, 11},
		{"an empty frame", 1, 0, 12},
		{"a length that wraps", 1, 0, UINT32_MAX},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = build(NULL, small.ring);
		struct gen_vring *rx, *tx;
		struct gen_rx frames[GEN_BURST];

		print_message("%s\n", rows[i].what);
		gen_reflector_stop(&world->reflector);
		gen_vhost_rings(&world->ports[1], 0, &rx, &tx);
		rx->used->ring[0].id = rows[i].id;
		rx->used->ring[0].len = rows[i].bytes;
		rx->used->idx = rows[i].index;
		struct gen_wire *wire = &world->ports[1].wires[0];
		assert_int_equal(wire->ops->rx(wire, frames), 0);
		assert_int_equal(wire->ring_errors, 1);
		assert_int_equal(gen_reflector_start(&world->reflector), 0);
		demolish(world);
	}
}

// Of 256 places, more than three quarters.
static void a_full_receive_queue_is_seen(void **state)
{
	static const struct {
		uint16_t used;
		uint64_t full;
	} rows[] = {{0, 0}, {1, 0}, {192, 0}, {193, 1}, {256, 1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = build(NULL, small.ring);
		struct gen_wire *wire = &world->ports[1].wires[0];
		struct gen_vring *rx, *tx;
		struct gen_rx frames[GEN_BURST];

		gen_reflector_stop(&world->reflector);
		gen_vhost_rings(&world->ports[1], 0, &rx, &tx);
		for (uint16_t slot = 0; slot < rows[i].used; slot++)
			rx->used->ring[slot] = (struct vring_used_elem){.id = slot, .len = 12 + 60};
		rx->used->idx = rows[i].used;
		assert_int_equal(wire->ops->rx(wire, frames),
			rows[i].used < GEN_BURST ? rows[i].used : GEN_BURST);
		assert_int_equal(wire->rx_full, rows[i].full);
		assert_int_equal(gen_reflector_start(&world->reflector), 0);
		demolish(world);
	}
}

// The device here translates nothing: sources are as they were sent, which is right for a translator
// that has them as its own, and wrong for all others.
static void translated_addresses_are_checked(void **state)
{
	static const struct {
		const char *what, *protocol, *pool;
		uint64_t checked, source;
	} rows[] = {
		{"its own addresses", "udp", "198.18.0.0/24", 2000, 0},
		{"its own addresses, TCP", "tcp", "198.18.0.0/24", 6000, 0},
		{"others", "udp", "203.0.113.0/24", 2000, 1000},
		{"others, TCP", "tcp", "203.0.113.0/24", 6000, 4000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char spec[512];

		snprintf(spec, sizeof(spec),
			"{\"rate_pps\": 100000, \"duration_s\": 1, \"packets\": 1000, \"size\": "
			"72, "
			"\"tolerance\": 1, \"drain_s\": 2, \"answers\": true, \"translated\": "
			"\"%s\", \"flows\": {\"written\": \"sending\", \"count\": 200, \"order\": "
			"\"shuffle\", \"protocol\": \"%s\", \"src_ip\": \"198.18.0.0/24\"}}",
			rows[i].pool, rows[i].protocol);
		print_message("%s\n", rows[i].what);
		struct world *world = build(NULL, 4096);
		json_t *result = try(world, spec);
		json_t *counts = json_object_get(result, "translated");
		json_t *wrong = json_object_get(counts, "wrong_pkts");

		assert_int_equal(count(result, "received_pkts"), 1000);
		// The last segment of a connection may come after its end was seen.
		const uint64_t checked =
			(uint64_t)json_integer_value(json_object_get(counts, "checked_pkts"));
		assert_in_range(checked, rows[i].checked - 1000, rows[i].checked);
		const uint64_t source =
			(uint64_t)json_integer_value(json_object_get(wrong, "source"));
		assert_in_range(source,
			rows[i].source > 1000 ? rows[i].source - 1000 : rows[i].source,
			rows[i].source);
		assert_int_equal(json_integer_value(json_object_get(wrong, "destination")), 0);
		assert_int_equal(json_integer_value(json_object_get(wrong, "checksum")), 0);
		assert_int_equal(json_integer_value(json_object_get(wrong, "length")), 0);
		json_decref(result);
		demolish(world);
	}
}

static uint32_t (*receive)(struct gen_wire *wire, struct gen_rx *frames);

static uint32_t receive_from_a_full_queue(struct gen_wire *wire, struct gen_rx *frames)
{
	wire->rx_full++;
	return receive(wire, frames);
}

static void losses_are_suspect_where_the_tester_had_no_room_for_them(void **state)
{
	static const struct {
		const char *what;
		enum gen_fate (*fate)(uint32_t direction, uint64_t seen);
		bool full;
		bool suspect;
	} rows[] = {
		{"losses, and room", drops, false, false},
		{"losses, and no room", drops, true, true},
		{"no losses, and no room", NULL, true, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		// It holds the whole trial.
		struct world *world = build(rows[i].fate, 16384);
		struct gen_wire *wire = &world->ports[1].wires[0];
		struct gen_wire_ops ops = *wire->ops;

		print_message("%s\n", rows[i].what);
		receive = ops.rx;
		ops.rx = receive_from_a_full_queue;
		if (rows[i].full)
			wire->ops = &ops;
		json_t *result = try(world, "{\"rate_pps\": 100000, \"duration_s\": 0.05, "
					    "\"tolerance\": 1, \"drain_s\": 0.5}");
		assert_int_equal(
			json_is_string(json_object_get(result, "suspect")), rows[i].suspect);
		const uint64_t most =
			(uint64_t)json_integer_value(json_object_get(result, "suspect_pkts"));
		assert_int_equal(most, rows[i].suspect ? count(result, "lost_pkts") : 0);
		assert_int_equal(most > 0, rows[i].suspect);
		json_decref(result);
		demolish(world);
	}
}

// Where there is a rate, the pause after the last packet is a part of the time.
static void rates_are_over_the_whole_duration(void **state)
{
	static const struct {
		const char *more; // of the specification, for 0.2 s
		double pps;
		int64_t ns; // at least
	} rows[] = {
		{"\"rate_pps\": 10", 10, 200000000},
		{"\"rate_pps\": 10000, \"pacing\": {\"burst_pkts\": 1000}", 10000, 200000000},
		{"\"rate_pps\": 10000, \"pacing\": {\"on_us\": 10000, \"off_us\": 90000}", 10000,
			200000000},
		{"\"rate_pps\": 10, \"packets\": 2", 20, 100000000}, // these are sent then
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = build(NULL, 4096);
		char spec[256];

		snprintf(spec, sizeof(spec), "{\"duration_s\": 0.2, \"drain_s\": 5, %s}",
			rows[i].more);
		json_t *result = try(world, spec);
		json_t *total = json_object_get(result, "total");
		const double sent = json_real_value(json_object_get(total, "sent_pps"));
		const double offered = json_real_value(json_object_get(total, "offered_pps"));
		const json_int_t ns = json_integer_value(json_object_get(result, "duration_ns"));

		// A busy machine may take longer.
		assert_true(ns >= rows[i].ns - 1);
		assert_true(sent > 0 && sent < rows[i].pps * 1.01);
		assert_true(offered > 0 && offered < rows[i].pps * 1.01);
		json_decref(result);
		demolish(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounting_says_what_the_device_did),
		cmocka_unit_test(translated_addresses_are_checked),
		cmocka_unit_test(what_came_while_the_tester_did_not_run_is_received),
		cmocka_unit_test(convoys_are_counted_as_they_were_sent),
		cmocka_unit_test(packets_that_fill_no_convoy_are_not_offered),
		cmocka_unit_test(both_ways_at_once_and_trial_after_trial),
		cmocka_unit_test(what_comes_out_of_the_wrong_port_is_misrouted),
		cmocka_unit_test(a_rate_that_is_not_reached_is_no_result),
		cmocka_unit_test(a_full_queue_may_refuse_instead),
		cmocka_unit_test(what_the_tester_is_too_slow_for_is_not_refused),
		cmocka_unit_test(nonsense_in_the_used_ring_is_caught),
		cmocka_unit_test(a_full_receive_queue_is_seen),
		cmocka_unit_test(rates_are_over_the_whole_duration),
		cmocka_unit_test(losses_are_suspect_where_the_tester_had_no_room_for_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
