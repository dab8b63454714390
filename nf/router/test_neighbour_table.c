// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The states of neighbours, in a time of the test's own: 1,000 ticks a second.
#include "nf/router/neighbour_table.h"
#include "tests/support/test_bytes.h"

#define HZ 1000u
#define ENTRIES 64u

static const struct cv_neighbour_port ports[] = {
	{{2, 0xaa, 0, 0, 0, 0}, 1500}, {{2, 0xaa, 0, 0, 0, 1}, 9000}};
static const uint8_t mac_a[CV_MAC_LEN] = {2, 0, 0, 0, 0, 0xa},
		     mac_b[CV_MAC_LEN] = {2, 0, 0, 0, 0, 0xb};
static const struct cv_neighbour_tags untagged = {0};
static const uint64_t seed[3] = {1, 2, 3};

struct tested {
	struct cv_neighbour_table table;
	struct cv_adjacency adjacency[ENTRIES];
	uint64_t now;
	struct cv_neighbour_key key; // of the neighbour that most tests are about
};

static int begin(void **state)
{
	struct tested *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	assert_int_equal(cv_neighbour_table_init(&t->table, ENTRIES, t->adjacency, HZ, seed), 0);
	cv_neighbour_table_start(&t->table, ports);
	t->now = 1000000;
	t->key.address.bytes[0] = 192;
	t->key.port = 1;
	*state = t;
	return 0;
}

static int end(void **state)
{
	struct tested *t = *state;

	cv_neighbour_table_free(&t->table);
	free(t);
	return 0;
}

static struct cv_neighbour_key numbered(uint32_t number)
{
	struct cv_neighbour_key key = {.port = 0};

	memcpy(key.address.bytes, &number, sizeof(number));
	return key;
}

static enum cv_neighbour_state state_of(const struct tested *t)
{
	uint32_t at = cv_neighbour_table_find(&t->table, &t->key);

	return at == CV_NEIGHBOUR_NONE ? CV_NEIGHBOUR_FREE
				       : cv_neighbour_table_state(&t->table, at, &t->key);
}

static void expect_state(const struct tested *t, enum cv_neighbour_state want)
{
	if (state_of(t) != want)
		fail_msg("%s, not %s", cv_neighbour_state_names[state_of(t)],
			cv_neighbour_state_names[want]);
}

static void expect_use(struct tested *t, enum cv_neighbour_use want, enum cv_neighbour_what what)
{
	struct cv_neighbour_event event;
	uint32_t at;

	assert_int_equal(
		cv_neighbour_table_use(&t->table, &t->key, &untagged, t->now, &at, &event), want);
	assert_int_equal(event.what, what);
}

// Lets so many seconds pass, in steps of a tenth. Returns what was sent: 'a' to all, 'i' to it.
static const char *pass(struct tested *t, unsigned seconds)
{
	static char sent[100];
	unsigned count = 0;

	for (unsigned i = 0; i < seconds * 10; i++) {
		struct cv_neighbour_event events[ENTRIES];

		t->now += HZ / 10;
		for (unsigned n = cv_neighbour_table_expire(&t->table, t->now, ENTRIES, events);
			n > 0; n--)
			sent[count++] = events[n - 1].what == CV_NEIGHBOUR_ASK_ALL ? 'a' : 'i';
	}
	sent[count] = '\0';
	return sent;
}

static void hear(
	struct tested *t, const uint8_t *mac, bool advertised, bool solicited, bool override)
{
	struct cv_neighbour_heard heard = {.has_mac = mac != NULL,
		.advertised = advertised,
		.solicited = solicited,
		.override = override,
		.create = !advertised};

	if (mac != NULL)
		memcpy(heard.mac, mac, CV_MAC_LEN);
	cv_neighbour_table_hear(&t->table, &t->key, &heard, &untagged, t->now);
}

// What packets see: the MAC address that they go straight on to, or none.
static void expect_forward(const struct tested *t, const uint8_t *mac)
{
	struct cv_adjacency adjacency;
	bool forward = cv_neighbour_table_forward(&t->table, &t->key, &adjacency);

	assert_int_equal(forward, mac != NULL);
	if (mac == NULL)
		return;
	assert_memory_equal(adjacency.mac, mac, CV_MAC_LEN);
	assert_memory_equal(adjacency.source, ports[t->key.port].mac, CV_MAC_LEN);
	assert_int_equal(adjacency.port, t->key.port);
	assert_int_equal(adjacency.mtu, ports[t->key.port].mtu);
}

static void an_answer_is_waited_for(void **state)
{
	struct tested *t = *state;
	uint32_t changes;

	expect_state(t, CV_NEIGHBOUR_FREE);
	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	expect_state(t, CV_NEIGHBOUR_INCOMPLETE);
	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_NOTHING);
	expect_forward(t, NULL);
	changes = t->table.changes;
	hear(t, mac_a, true, true, false);
	assert_int_not_equal(t->table.changes, changes);
	expect_state(t, CV_NEIGHBOUR_REACHABLE);
	expect_forward(t, mac_a);
}

static void no_answer_fails_after_three(void **state)
{
	struct tested *t = *state;
	uint32_t changes;

	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	changes = t->table.changes;
	assert_string_equal(pass(t, 2), "aa");
	expect_state(t, CV_NEIGHBOUR_INCOMPLETE);
	assert_int_equal(t->table.changes, changes);
	assert_string_equal(pass(t, 1), "");
	expect_state(t, CV_NEIGHBOUR_FAILED);
	assert_int_not_equal(t->table.changes, changes);
	// The next packet asks again; without one it is forgotten.
	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	pass(t, 3);
	expect_state(t, CV_NEIGHBOUR_FAILED);
	pass(t, 21);
	expect_state(t, CV_NEIGHBOUR_FREE);
	assert_int_equal(t->table.free_count, ENTRIES);
	assert_int_equal(t->table.incomplete, 0);
}

static void silence_is_noticed_by_the_next_packet(void **state)
{
	struct tested *t = *state;

	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	hear(t, mac_a, true, true, false);
	assert_string_equal(pass(t, 14), "");
	expect_state(t, CV_NEIGHBOUR_REACHABLE); // 15 to 45 s
	assert_string_equal(pass(t, 32), "");
	expect_state(t, CV_NEIGHBOUR_STALE);
	expect_forward(t, NULL);
	assert_string_equal(pass(t, 100), "");
	expect_state(t, CV_NEIGHBOUR_STALE);
	expect_use(t, CV_NEIGHBOUR_GO, CV_NEIGHBOUR_NOTHING);
	expect_state(t, CV_NEIGHBOUR_DELAY);
	expect_forward(t, mac_a);
	assert_string_equal(pass(t, 4), "");
	assert_string_equal(pass(t, 1), "i");
	expect_state(t, CV_NEIGHBOUR_PROBE);
	expect_forward(t, mac_a);
	hear(t, NULL, true, true, false); // an answer without the address
	expect_state(t, CV_NEIGHBOUR_REACHABLE);
	pass(t, 46);
	expect_use(t, CV_NEIGHBOUR_GO, CV_NEIGHBOUR_NOTHING);
	assert_string_equal(pass(t, 7), "iii");
	assert_string_equal(pass(t, 1), "");
	expect_state(t, CV_NEIGHBOUR_FAILED);
	expect_forward(t, NULL);
}

// RFC 4861 section 7.2.5 and appendix C, a row each.
static void advertisements_are_believed_as_they_say(void **state)
{
	static const struct {
		const char *name;
		enum cv_neighbour_state before, after;
		const uint8_t *heard, *known;
		bool solicited, override;
	} rows[] = {
#define ROW(name, before, heard, solicited, override, after, known) \
	{name, CV_NEIGHBOUR_##before, CV_NEIGHBOUR_##after, heard, known, solicited, override}
		ROW("incomplete, no address", INCOMPLETE, NULL, true, true, INCOMPLETE, NULL),
		ROW("incomplete, unsolicited", INCOMPLETE, mac_b, false, false, STALE, NULL),
		ROW("incomplete, solicited", INCOMPLETE, mac_b, true, false, REACHABLE, mac_b),
		ROW("failed, unsolicited", FAILED, mac_b, false, true, STALE, NULL),
		ROW("reachable, other, no override", REACHABLE, mac_b, true, false, STALE, NULL),
		ROW("stale, other, no override", STALE, mac_b, true, false, STALE, NULL),
		ROW("probe, other, no override", PROBE, mac_b, true, false, PROBE, mac_a),
		ROW("reachable, same, no override", REACHABLE, mac_a, false, false, REACHABLE,
			mac_a),
		ROW("stale, same, solicited", STALE, mac_a, true, false, REACHABLE, mac_a),
		ROW("stale, same, unsolicited", STALE, mac_a, false, true, STALE, NULL),
		ROW("reachable, other, override", REACHABLE, mac_b, false, true, STALE, NULL),
		ROW("stale, other, override, solicited", STALE, mac_b, true, true, REACHABLE,
			mac_b),
		ROW("probe, no address, solicited", PROBE, NULL, true, true, REACHABLE, mac_a),
		ROW("probe, no address, unsolicited", PROBE, NULL, false, true, PROBE, mac_a),
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tested *t;

		begin((void **)&t);
		expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
		if (rows[i].before == CV_NEIGHBOUR_FAILED)
			pass(t, 4);
		else if (rows[i].before != CV_NEIGHBOUR_INCOMPLETE)
			hear(t, mac_a, true, rows[i].before == CV_NEIGHBOUR_REACHABLE, false);
		if (rows[i].before == CV_NEIGHBOUR_PROBE) {
			expect_use(t, CV_NEIGHBOUR_GO, CV_NEIGHBOUR_NOTHING);
			pass(t, 6);
		}
		expect_state(t, rows[i].before);
		hear(t, rows[i].heard, true, rows[i].solicited, rows[i].override);
		if (state_of(t) != rows[i].after)
			fail_msg("%s: %s", rows[i].name, cv_neighbour_state_names[state_of(t)]);
		expect_forward(t, rows[i].known);
		end((void **)&t);
	}
	(void)state;
}

// RFC 4861 section 7.2.3, and RFC 826: who asks for our address is known afterwards.
static void who_asks_is_known(void **state)
{
	struct tested *t = *state;

	hear(t, NULL, false, false, false);
	expect_state(t, CV_NEIGHBOUR_FREE);
	hear(t, mac_a, false, false, false);
	expect_state(t, CV_NEIGHBOUR_STALE);
	expect_use(t, CV_NEIGHBOUR_GO, CV_NEIGHBOUR_NOTHING);
	expect_forward(t, mac_a);
	hear(t, mac_a, true, true, true);
	expect_state(t, CV_NEIGHBOUR_REACHABLE);
	hear(t, mac_a, false, false, false);
	expect_state(t, CV_NEIGHBOUR_REACHABLE);
	hear(t, mac_b, false, false, false); // it has moved
	expect_state(t, CV_NEIGHBOUR_STALE);
	expect_use(t, CV_NEIGHBOUR_GO, CV_NEIGHBOUR_NOTHING);
	expect_forward(t, mac_b);
}

static void nothing_is_learned_unasked(void **state)
{
	struct tested *t = *state;

	hear(t, mac_a, true, false, true);
	hear(t, mac_a, true, true, true);
	expect_state(t, CV_NEIGHBOUR_FREE);
}

static void a_next_hop_is_never_forgotten(void **state)
{
	struct tested *t = *state;
	uint32_t at = cv_neighbour_table_pin(&t->table, &t->key);

	assert_int_equal(cv_neighbour_table_pin(&t->table, &t->key), at);
	cv_neighbour_table_start(&t->table, ports);
	pass(t, 100);
	expect_state(t, CV_NEIGHBOUR_FAILED);
	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	hear(t, mac_a, true, true, true);
	expect_forward(t, mac_a);
	assert_memory_equal(t->adjacency[at].mac, mac_a, CV_MAC_LEN);
	for (uint32_t i = 0; i < 10 * ENTRIES; i++) {
		struct cv_neighbour_heard heard = {.has_mac = true, .create = true, .mac = {2}};
		struct cv_neighbour_key key = numbered(1000 + i);

		cv_neighbour_table_hear(&t->table, &key, &heard, &untagged, t->now++);
	}
	assert_int_equal(cv_neighbour_table_find(&t->table, &t->key), at);
}

// Somebody asks for addresses that nobody has, one after the other: no more than half of the table
// waits, and who is known stays so.
static void scans_do_not_push_out_neighbours(void **state)
{
	struct tested *t = *state;
	unsigned waits = 0;

	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	hear(t, mac_a, true, true, true);
	for (uint32_t i = 0; i < 100 * ENTRIES; i++) {
		struct cv_neighbour_key key = numbered(i + 1);
		struct cv_neighbour_event event;
		uint32_t at;

		waits += cv_neighbour_table_use(&t->table, &key, &untagged, t->now, &at, &event) ==
			 CV_NEIGHBOUR_WAIT;
	}
	assert_int_equal(waits, ENTRIES / 2);
	expect_forward(t, mac_a);
	pass(t, 4); // they failed: there is room again, for new ones
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct cv_neighbour_key key = numbered(i + 100000);
		struct cv_neighbour_event event;
		uint32_t at;

		cv_neighbour_table_use(&t->table, &key, &untagged, t->now, &at, &event);
	}
	assert_int_equal(t->table.incomplete, ENTRIES / 2);
	expect_forward(t, mac_a);
}

// More neighbours than there is room for: those that were silent longest are forgotten.
static void the_silent_are_forgotten(void **state)
{
	struct tested *t = *state;
	unsigned known = 0;

	for (uint32_t i = 0; i < 4 * ENTRIES; i++) {
		struct cv_neighbour_heard heard = {.has_mac = true, .create = true, .mac = {2}};
		struct cv_neighbour_key key = numbered(i);

		cv_neighbour_table_hear(&t->table, &key, &heard, &untagged, t->now++);
	}
	for (uint32_t i = 0; i < 4 * ENTRIES; i++) {
		struct cv_neighbour_key key = numbered(i);
		bool present = cv_neighbour_table_find(&t->table, &key) != CV_NEIGHBOUR_NONE;

		known += present;
		if (i >= 3 * ENTRIES + ENTRIES / 2)
			assert_true(present);
	}
	assert_in_range(known, ENTRIES - 4, ENTRIES);
}

// Ports and families are apart, and an address of one's bytes is not the other's.
static void keys_differ_in_every_part(void **state)
{
	struct tested *t = *state;

	expect_use(t, CV_NEIGHBOUR_WAIT, CV_NEIGHBOUR_ASK_ALL);
	t->key.port = 0;
	expect_state(t, CV_NEIGHBOUR_FREE);
	t->key.port = 1;
	t->key.address.v6 = true;
	expect_state(t, CV_NEIGHBOUR_FREE);
	t->key.address.v6 = false;
	t->key.address.bytes[3] = 1;
	expect_state(t, CV_NEIGHBOUR_FREE);
	t->key.address.bytes[3] = 0;
	expect_state(t, CV_NEIGHBOUR_INCOMPLETE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_waited_for),
		TEST(no_answer_fails_after_three),
		TEST(silence_is_noticed_by_the_next_packet),
		cmocka_unit_test(advertisements_are_believed_as_they_say),
		TEST(who_asks_is_known),
		TEST(nothing_is_learned_unasked),
		TEST(a_next_hop_is_never_forgotten),
		TEST(scans_do_not_push_out_neighbours),
		TEST(the_silent_are_forgotten),
		TEST(keys_differ_in_every_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
