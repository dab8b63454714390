// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A trace of packets in shared buffers through two paths: one record of each, with its bytes, its
// functions and its end, whatever becomes of its neighbours; what has no room is counted.
#include "tests/support/test_packets.h"

#include "chain/path.h"
#include "chain/trace_hooks.h"
#include "tests/support/test_eal.h"

#define PACKETS 48u // of a burst
#define EACH 4u // packets that share a buffer
#define LEN 64u
#define SNAP 128

// What becomes of a packet at the first function: its byte behind the Ethernet header.
enum act { PASS, DROP, OUTPUT, OUTPUT_DROP, ABSORB, HOLD, GROW, UNSENT, ACTS };

static struct rte_mempool *pool;
static struct cv_port_counters port;
static struct cv_nf_counters counters[2];
static struct cv_held held[PACKETS];
static unsigned held_count;

static enum act act_of(const struct cv_view *view)
{
	return (enum act)view->data[14];
}

static uint16_t first(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	static const uint8_t verdict[ACTS] = {[PASS] = CV_NEXT,
		[DROP] = CV_DROP(2),
		[OUTPUT] = CV_OUTPUT(0),
		[OUTPUT_DROP] = CV_OUTPUT(0),
		[ABSORB] = CV_ABSORBED,
		[HOLD] = CV_HELD};
	uint16_t others = 0;

	for (unsigned i = 0; i < n; i++) {
		const enum act act = act_of(&views[i]);

		if (act == HOLD)
			assert_true(cv_nf_hold(worker, &views[i], &held[held_count++]));
		if (act == GROW)
			memset(cv_nf_append(worker, &views[i], 8), 7, 8);
		verdicts[i] = verdict[act];
		others += verdicts[i] != CV_NEXT;
	}
	return others;
}

static uint16_t second(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	uint16_t others = 0;

	for (unsigned i = 0; i < n; i++) {
		verdicts[i] = act_of(&views[i]) == OUTPUT_DROP ? CV_DROP(1) : CV_NEXT;
		others += verdicts[i] != CV_NEXT;
	}
	return others;
}

static void leave(struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++)
		if (cv_trace_is_on() && act_of(&burst->views[i]) == UNSENT)
			cv_trace_dropped(&burst->views[i], 1, CV_DROP_TX_FULL);
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

static struct cv_step end_step = {.process = second, .counters = &counters[1]};
static const struct cv_path end_path = {.length = 1, .steps = &end_step, .out = 1};
static const struct cv_path *const outputs[] = {&end_path};
static struct cv_step begin_step = {.process = first, .counters = &counters[0], .outputs = outputs};
static const struct cv_path begin_path = {.length = 1, .steps = &begin_step};
static struct cv_path_worker worker;

static enum act act_of_number(unsigned number)
{
	return (enum act)(number * 7 % 11 % ACTS);
}

static void write_packet(uint8_t *at, unsigned number)
{
	for (unsigned i = 0; i < LEN; i++)
		at[i] = (uint8_t)(number + i);
	at[14] = (uint8_t)act_of_number(number);
	at[15] = (uint8_t)number;
}

// A burst of packets, some of which share a buffer, each behind its length.
static void load(struct cv_burst *burst)
{
	const uint16_t prefix = rte_cpu_to_be_16(LEN);

	*burst = (struct cv_burst){.n = PACKETS};
	for (unsigned i = 0; i < PACKETS; i += EACH) {
		struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);

		assert_non_null(buffer);
		for (unsigned j = i; j < i + EACH; j++) {
			uint8_t *at = (uint8_t *)rte_pktmbuf_append(buffer, 2 + LEN);

			memcpy(at, &prefix, 2);
			write_packet(at + 2, j);
			cv_view_set(&burst->views[j], at + 2, LEN);
		}
		burst->buffers.views[burst->buffers.n] = EACH;
		burst->buffers.buffers[burst->buffers.n++] = buffer;
	}
	cv_burst_measure(burst);
}

static void run(struct cv_trace *trace)
{
	static struct cv_burst burst;

	worker = (struct cv_path_worker){.pool = pool, .ports_counters = &port, .leave = leave};
	held_count = 0;
	cv_trace_set(trace);
	load(&burst);
	cv_path_run(&begin_path, &worker, &burst);
	while (held_count > 0) {
		worker.path = &begin_path;
		worker.step = &begin_step;
		cv_nf_drop_held(&worker.nf, &held[--held_count], 3);
	}
	if (trace != NULL)
		cv_trace_flush();
	cv_trace_set(NULL);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static struct cv_trace *make(const char *text, bool drops, uint32_t sample)
{
	static const struct cv_filter_names names = {.of = NULL};
	static struct cv_filter filter;
	const struct cv_trace_config config = {
		.filter = &filter, .drops = drops, .sample = sample, .snap = SNAP};
	struct cv_trace *trace;

	assert_int_equal(cv_filter_compile(&filter, text, &names, NULL), 0);
	trace = cv_trace_create(&config);
	assert_non_null(trace);
	return trace;
}

static const struct {
	enum cv_trace_end end;
	unsigned steps;
	uint8_t verdict; // of the last one
} expected[ACTS] = {
	[PASS] = {CV_TRACE_SENT, 1, CV_NEXT},
	[DROP] = {CV_TRACE_FUNCTION_DROPPED, 1, CV_DROP(2)},
	[OUTPUT] = {CV_TRACE_SENT, 2, CV_NEXT},
	[OUTPUT_DROP] = {CV_TRACE_FUNCTION_DROPPED, 2, CV_DROP(1)},
	[ABSORB] = {CV_TRACE_ABSORBED, 1, CV_ABSORBED},
	[HOLD] = {CV_TRACE_HELD, 1, CV_HELD},
	[GROW] = {CV_TRACE_SENT, 1, CV_NEXT},
	[UNSENT] = {CV_TRACE_DROPPED, 1, CV_NEXT},
};

static void check(const struct cv_trace_record *record)
{
	const unsigned number = record->bytes[15];
	const enum act act = act_of_number(number);
	const uint8_t *after = record->bytes + SNAP;
	uint8_t packet[LEN];

	write_packet(packet, number);
	assert_int_equal(record->len[0], LEN);
	assert_memory_equal(record->bytes, packet, LEN);
	assert_int_equal(record->end, expected[act].end);
	assert_int_equal(record->steps_count, expected[act].steps);
	assert_int_equal(record->steps[record->steps_count - 1].verdict, expected[act].verdict);
	assert_ptr_equal(record->steps[0].path, &begin_path);
	assert_int_equal(record->len[1], act == GROW ? LEN + 8 : LEN);
	assert_memory_equal(after, packet, LEN);
	if (act == GROW)
		assert_int_equal(after[LEN + 7], 7);
	if (act == UNSENT)
		assert_int_equal(record->why, CV_DROP_TX_FULL);
}

// Packets went through, and each has its record.
static void run_and_check(struct cv_trace *trace)
{
	const struct cv_trace_record *record;
	uint64_t seen = 0, held_drops = 0;

	run(trace);
	while ((record = cv_trace_peek(trace)) != NULL) {
		if (record->origin == CV_TRACE_FUNCTION) { // held, and dropped by its function
			assert_int_equal(record->end, CV_TRACE_FUNCTION_DROPPED);
			assert_int_equal(record->steps[0].verdict, CV_DROP(3));
			held_drops |= UINT64_C(1) << record->bytes[15];
		} else {
			assert_false(seen >> record->bytes[15] & 1);
			seen |= UINT64_C(1) << record->bytes[15];
			check(record);
		}
		cv_trace_release(trace);
	}
	assert_int_equal(seen, (UINT64_C(1) << PACKETS) - 1);
	for (unsigned i = 0; i < PACKETS; i++)
		assert_int_equal(held_drops >> i & 1, act_of_number(i) == HOLD);
	assert_int_equal(cv_trace_lost(trace), 0);
}

static void each_packet_has_its_record(void **state)
{
	struct cv_trace *trace = make("", false, 1);

	run_and_check(trace);
	cv_trace_free(trace);
}

static void the_ring_goes_round(void **state)
{
	struct cv_trace *trace = make("", false, 1);
	// A record is longer than that.
	const unsigned rounds = 3 * CV_TRACE_RING_BYTES / (PACKETS * 2 * LEN);

	for (unsigned i = 0; i < rounds; i++)
		run_and_check(trace);
	cv_trace_free(trace);
}

static void drops_are_what_was_dropped(void **state)
{
	struct cv_trace *trace = make("", true, 1), *none = make("udp", true, 1);
	unsigned dropped = 0;

	for (unsigned i = 0; i < PACKETS; i++)
		dropped += expected[act_of_number(i)].end == CV_TRACE_FUNCTION_DROPPED ||
			   expected[act_of_number(i)].end == CV_TRACE_DROPPED ||
			   act_of_number(i) == HOLD;
	run(none);
	assert_null(cv_trace_peek(none));
	cv_trace_free(none);
	cv_trace_free(trace);
	trace = make("", true, 1); // the filter is shared
	run(trace);
	for (; cv_trace_peek(trace) != NULL; dropped--)
		cv_trace_release(trace);
	assert_int_equal(dropped, 0);
	cv_trace_free(trace);
}

static void what_has_no_room_is_counted(void **state)
{
	struct cv_trace *trace = make("", false, 1);
	const unsigned rounds = CV_TRACE_RING_BYTES / (PACKETS * 2 * LEN); // a record is longer
	unsigned held_drops = 0, records = 0;

	for (unsigned i = 0; i < PACKETS; i++)
		held_drops += act_of_number(i) == HOLD;
	for (unsigned i = 0; i < rounds; i++)
		run(trace);
	for (; cv_trace_peek(trace) != NULL; records++)
		cv_trace_release(trace);
	assert_true(cv_trace_lost(trace) > 0);
	assert_int_equal(records + cv_trace_lost(trace), rounds * (PACKETS + held_drops));
	run(NULL); // not armed
	assert_null(cv_trace_peek(trace));
	cv_trace_free(trace);
}

static void a_sample_is_some_of_them(void **state)
{
	struct cv_trace *trace = make("", false, 100);
	unsigned records = 0;

	for (unsigned i = 0; i < 1000; i++)
		run(trace);
	for (; cv_trace_peek(trace) != NULL; records++)
		cv_trace_release(trace);
	assert_in_range(records, PACKETS * 1000 / 100 / 2, PACKETS * 1000 / 100 * 2);
	cv_trace_free(trace);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_has_its_record),
		cmocka_unit_test(the_ring_goes_round),
		cmocka_unit_test(drops_are_what_was_dropped),
		cmocka_unit_test(what_has_no_room_is_counted),
		cmocka_unit_test(a_sample_is_some_of_them),
	};
	int rc;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("test", 1023, 0, 0, 4096, SOCKET_ID_ANY);
	rc = pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return rc;
}
