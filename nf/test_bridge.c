// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <pthread.h>

#include "nf/mac_table.h"
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_bridge;

#define A "02:00:00:00:00:0a"
#define B "02:00:00:00:00:0b"
#define C "02:00:00:00:00:0c"

static const char bridge_config[] = "{'sides': ['left', 'third']}";

// In order, each once: what is learned by one row is known to the next. The sides are ports 0
// and 2; the packets enter with out = in + 1, which the bridge must not keep.
static void bridge_learns(void **state)
{
	static const struct packet_row rows[] = {
		{"unknown goes to the other side", "src=" A " dst=" B " ip4", "next", NULL, 0, 2},
		{"still unknown", "src=" A " dst=" B " vlan id=7", "next", NULL, 0, 2},
		{"B answers from the other side", "src=" B " dst=" A " ip4", "next", NULL, 2, 0},
		{"C joins on A's side", "src=" C " dst=ff:ff:ff:ff:ff:ff type=0806", "next", NULL,
			0, 2},
		{"A to C stays on its side", "src=" A " dst=" C " ip4", "same_side", NULL, 0, 0},
		{"C to A too, tagged", "src=" C " dst=" A " qinq vlan id=3 ip6", "same_side", NULL,
			0, 0},
		{"A to itself", "src=" A " dst=" A " ip4", "same_side", NULL, 0, 0},
		{"B to C crosses", "src=" B " dst=" C " ip4", "next", NULL, 2, 0},
		{"C moves to B's side", "src=" C " dst=" A " ip4", "next", NULL, 2, 0},
		{"now B to C does not cross", "src=" B " dst=" C " ip4", "same_side", NULL, 2, 0},
		{"and A to C does", "src=" A " dst=" C " ip4", "next", NULL, 0, 2},
		{"multicast", "src=" A " dst=01:00:5e:00:00:01 ip4", "next", NULL, 0, 2},
		{"group source", "src=01:00:5e:00:00:01 dst=" B " ip4", "bad_source", NULL, 0, 0},
		{"broadcast source", "src=ff:ff:ff:ff:ff:ff dst=" B " ip4", "bad_source", NULL, 0,
			0},
		{"no source", "src=00:00:00:00:00:00 dst=" B " ip4", "bad_source", NULL, 0, 0},
		{"from elsewhere", "src=" A " dst=" B " ip4", "not_a_side", NULL, 1, 0},
		{"a byte short", "src=" A " cut=13", "bad_header", NULL, 0, 0},
		{"nothing", "cut=0", "bad_header", NULL, 0, 0},
		{"A is still where it was", "src=" C " dst=" A " ip4", "next", NULL, 2, 0},
	};
	size_t count = sizeof(rows) / sizeof(rows[0]);

	// One by one, and all in one burst: the same verdicts.
	for (size_t burst = 1; burst <= count; burst += count - 1) {
		void *nf = packet_nf(&cv_nf_bridge, bridge_config, NULL);

		for (size_t first = 0; first < count; first += burst) {
			struct cv_view views[CV_BURST_MAX];
			uint8_t verdict[CV_BURST_MAX];

			packet_views(views, (uint16_t)burst, rows + first, burst);
			cv_nf_bridge.process(nf, &(struct cv_nf_worker){.index = 0}, views, verdict,
				(uint16_t)burst);
			for (size_t i = 0; i < burst; i++) {
				packet_expect(
					&cv_nf_bridge, &rows[first + i], &views[i], verdict[i]);
				free(views[i].data);
			}
		}
		json_t *info = cv_nf_bridge.info(nf);

		assert_int_equal(json_integer_value(json_object_get(info, "learned")), 3);
		assert_int_equal(json_integer_value(json_object_get(info, "entries")), 4096);
		json_decref(info);
		cv_nf_bridge.destroy(nf);
	}
}

static void bridge_table_of_bursts(void **state)
{
	static const struct packet_row rows[] = {
		{"crosses", "src=" A " dst=" B " ip4 udp data=18", "next", NULL, 0, 2},
		{"crosses back", "src=" B " dst=" A " ip4 udp data=18", "next", NULL, 2, 0},
		{"runt", "cut=12", "bad_header", NULL, 0, 0},
	};
	void *nf = packet_nf(&cv_nf_bridge, bridge_config, NULL);

	packet_table(&cv_nf_bridge, nf, rows, 3);
	cv_nf_bridge.destroy(nf);
}

static void stations_age(void **state)
{
	const uint64_t a = 0x0a0000000002, b = 0x0b0000000002;

	for (unsigned start = 0; start < 3 * 0x8000; start += 0x1555) { // over the tick's wrap
		struct cv_mac_table table;

		assert_int_equal(cv_mac_table_init(&table, 100, 16), 0);
		assert_true(table.buckets * CV_MAC_TABLE_WAYS >= 100);
		cv_mac_learn(&table, a, 1, (uint16_t)start);
		cv_mac_learn(&table, b, 0, (uint16_t)start);
		assert_int_equal(cv_mac_find(&table, a, (uint16_t)start), 1);
		assert_int_equal(cv_mac_find(&table, b, (uint16_t)(start + 16)), 0);
		assert_int_equal(cv_mac_find(&table, b, (uint16_t)(start + 17)), -1);
		cv_mac_learn(&table, a, 1, (uint16_t)(start + 10));
		assert_int_equal(cv_mac_find(&table, a, (uint16_t)(start + 26)), 1);
		assert_int_equal(cv_mac_find(&table, a, (uint16_t)(start + 27)), -1);
		assert_int_equal(cv_mac_table_count(&table, (uint16_t)(start + 26)), 1);
		cv_mac_table_free(&table);
	}
}

// More stations than places: each bucket, which a random number chooses, keeps its newest eight, and
// none is ever on the wrong side.
static void a_full_table_forgets_the_oldest(void **state)
{
	enum { STATIONS_HEARD = 500 };
	const uint64_t first = 0x020000000000u;
	struct cv_mac_table table;
	unsigned known = 0;

	assert_int_equal(cv_mac_table_init(&table, 1, 1000), 0);
	for (unsigned i = 0; i < STATIONS_HEARD; i++) {
		cv_mac_learn(&table, first + i, i % 2, (uint16_t)i);
		assert_int_equal(cv_mac_find(&table, first + i, (uint16_t)i), i % 2);
	}
	for (unsigned i = 0; i < STATIONS_HEARD; i++) {
		unsigned newer = 0; // in its bucket

		for (unsigned j = i + 1; j < STATIONS_HEARD; j++)
			newer += cv_mac_bucket(&table, first + j) ==
				 cv_mac_bucket(&table, first + i);
		int side = newer < CV_MAC_TABLE_WAYS ? (int)(i % 2) : -1;

		assert_int_equal(cv_mac_find(&table, first + i, STATIONS_HEARD), side);
		known += side >= 0;
	}
	assert_int_equal(cv_mac_table_count(&table, STATIONS_HEARD), known);
	cv_mac_table_free(&table);
}

// Addresses that share a bucket in one table do not in another: nobody who speaks on a side can make
// the table forget a station.
static void stations_cannot_be_pushed_out(void **state)
{
	unsigned forgotten = 0;

	for (unsigned round = 0; round < 30; round++) {
		struct cv_mac_table known, table;
		unsigned chosen = 0;

		assert_int_equal(cv_mac_table_init(&known, 1024, 16), 0);
		assert_int_equal(cv_mac_table_init(&table, 1024, 16), 0);
		cv_mac_learn(&table, round, 0, 0);
		for (uint64_t key = 1u << 20; chosen < 4 * CV_MAC_TABLE_WAYS; key++) {
			if (cv_mac_bucket(&known, key) != cv_mac_bucket(&known, round))
				continue;
			cv_mac_learn(&table, key, 1, 1);
			chosen++;
		}
		forgotten += cv_mac_find(&table, round, 1) != 0;
		cv_mac_table_free(&known);
		cv_mac_table_free(&table);
	}
	assert_in_range(forgotten, 0, 10);
}

#define THREADS 4
#define STATIONS 64

static struct cv_mac_table shared;

// Learns the same stations as all other threads do, each always on the side that its number says.
static void *learn_many(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t station = rand_r(&seed) % STATIONS;
		int side;

		cv_mac_learn(&shared, 0x020000000000u + station, station & 1, (uint16_t)(i >> 10));
		side = cv_mac_find(&shared, 0x020000000000u + station, (uint16_t)(i >> 10));
		if (side >= 0 && side != (int)(station & 1))
			return "a station on the wrong side";
	}
	return NULL;
}

static void many_workers_learn_at_once(void **state)
{
	pthread_t thread[THREADS];

	assert_int_equal(cv_mac_table_init(&shared, 256, 1000), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, learn_many, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		if (wrong != NULL)
			fail_msg("%s", (const char *)wrong);
	}
	cv_mac_table_free(&shared);
}

static void bad_configurations(void **state)
{
	packet_refused(&cv_nf_bridge, "{}", "nf: sides: is missing; add it");
	packet_refused(&cv_nf_bridge, "{'sides': ['left', 'wrong']}",
		"no port is called \"wrong\"; the ports are left, right, third, fourth");
	packet_refused(&cv_nf_bridge, "{'sides': ['left', 'left']}", "both sides are \"left\"");
	packet_refused(
		&cv_nf_bridge, "{'sides': ['left', 2]}", "sides[1] must be the name of a port");
	packet_refused(&cv_nf_bridge, "{'sides': {}}", "nf: sides: {}: must be an array");
	packet_refused(&cv_nf_bridge, "{'sides': ['left']}", "sides: has 1 elements");
	packet_refused(&cv_nf_bridge, "{'sides': ['left', 'right'], 'entries': 0}",
		"entries: 0: must be a whole number from 1 to 1048576");
	packet_refused(&cv_nf_bridge, "{'sides': ['left', 'right'], 'age_s': 1.5}",
		"must be a whole number from 1 to 1000000");
	packet_refused(&cv_nf_bridge, "{'mode': 'bridge'}",
		"nf: mode: unknown; known are: sides entries age_s");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bridge_learns),
		cmocka_unit_test(bridge_table_of_bursts),
		cmocka_unit_test(bad_configurations),
		cmocka_unit_test(stations_age),
		cmocka_unit_test(a_full_table_forgets_the_oldest),
		cmocka_unit_test(stations_cannot_be_pushed_out),
		cmocka_unit_test(many_workers_learn_at_once),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
