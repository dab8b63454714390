// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ports without a peer: pcap, null, and devices of DPDK's own, packet by packet. With CONVOY_CAPTURES set to a folder,
// every capture in it goes through, too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "capture/capture.h"
#include "port/port.h"
#include "tests/support/test_eal.h"
#include "tests/support/test_port.h"

#define POOL_PACKETS 511

static struct rte_mempool *pool;

static struct cv_port *open_port(const char *format, ...)
{
	struct cv_error error = {""};
	struct cv_port *port;
	char text[1024];
	json_t *config;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	config = json_loads(text, 0, NULL);
	assert_non_null(config);
	port = test_port_open(config, 3, 2, pool, &error);
	if (port == NULL)
		fail_msg("%s: %s", text, error.text);
	assert_int_equal(cv_port_start(port, &error), 0);
	return port;
}

static void close_port(struct cv_port *port)
{
	cv_port_stop(port);
	port->close(port);
}

static struct rte_mbuf *packet_of(const uint8_t *data, uint16_t len)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);

	assert_non_null(packet);
	memcpy(rte_pktmbuf_append(packet, len), data, len);
	return packet;
}

// Moves everything from one port to another, bursts of n. Returns how many packets.
static uint64_t move(struct cv_port *from, struct cv_port *to, uint16_t n)
{
	struct rte_mbuf *packets[65];
	uint64_t moved = 0;

	while (!from->ended(from)) {
		uint16_t got = from->rx(from, 0, packets, n);

		assert_int_equal(to->tx(to, 1, packets, got), got);
		moved += got;
	}
	assert_int_equal(from->rx(from, 0, packets, n), 0);
	return moved;
}

// Fails unless two captures hold the same bytes, lengths and times. A packet that was cut in one
// is whole in the other: nobody can make up what was cut off.
static void assert_same(const char *path, const char *copy)
{
	struct cv_capture *a = cv_capture_open(path, NULL), *b = cv_capture_open(copy, NULL);
	struct cv_capture_packet p, q;
	int rc;

	assert_non_null(a);
	assert_non_null(b);
	do {
		rc = cv_capture_next(a, &p, NULL);
		assert_int_equal(cv_capture_next(b, &q, NULL), rc);
		if (rc != 1)
			break;
		assert_int_equal(p.captured, q.captured);
		assert_int_equal(q.wire, q.captured);
		assert_int_equal(p.time_ns, q.time_ns);
		assert_memory_equal(p.data, q.data, p.captured);
	} while (rc == 1);
	assert_int_equal(rc, 0);
	cv_capture_close(a);
	cv_capture_close(b);
}

static void write_capture(const char *path, unsigned packets)
{
	static const uint32_t lengths[] = {60, 0, 1, 14, 1514, 2048, 2049, 9000, 60000};
	struct cv_capture_writer *writer = cv_capture_create(path, NULL);
	static uint8_t bytes[60000];

	assert_non_null(writer);
	for (unsigned i = 0; i < packets; i++) {
		const uint32_t len = lengths[i % RTE_DIM(lengths)];
		const struct cv_capture_packet packet = {
			1600000000000000001u + i * 1001u, bytes, len, len + (i % 7 == 0)};

		memset(bytes, (int)(i & 0xff), len);
		assert_int_equal(cv_capture_append(writer, &packet), 0);
	}
	assert_int_equal(cv_capture_finish(writer, NULL), 0);
}

static void every_burst_size_copies_a_capture(void **state)
{
	static const uint16_t sizes[] = {1, 31, 32, 33, 64, 65};

	(void)state;
	write_capture(test_path("in.pcap"), 1000);
	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		struct cv_port *in =
			open_port("{\"name\": \"a\", \"kind\": \"pcap\", \"read\": \"%s\"}",
				test_path("in.pcap"));
		struct cv_port *out =
			open_port("{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}",
				test_path("out.pcap"));

		assert_int_equal(in->rx(in, 0, NULL, 0), 0);
		assert_false(in->ended(in));
		assert_true(out->ended(out));
		assert_int_equal(in->rx_queues, 1);
		assert_memory_equal(in->mac, "\x02\xc0\x17\0\0\x03", 6);
		assert_int_equal(move(in, out, sizes[i]), 1000);
		close_port(in);
		close_port(out);
		assert_same(test_path("in.pcap"), test_path("out.pcap"));
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

// Frames longer than the node's buffers come in one piece, so that functions can read them; when
// no long buffer is left they wait. Beyond what a packet's length can say, in several segments.
static void long_frames_come_in_one_piece(void **state)
{
	static const uint32_t lengths[] = {60, 2048, 2049, 9014, 65000, 65407, 65408, 65535, 65549};
	struct cv_capture_writer *writer = cv_capture_create(test_path("in.pcap"), NULL);
	struct cv_port *in, *out;
	static uint8_t bytes[65549];
	struct rte_mbuf *held[700];
	uint16_t got = 0, more;

	(void)state;
	assert_non_null(writer);
	for (unsigned i = 0; i < 50 * RTE_DIM(lengths); i++) {
		const uint32_t len = lengths[i % RTE_DIM(lengths)];
		const struct cv_capture_packet packet = {i, bytes, len, len};

		for (uint32_t at = 0; at < len; at++)
			bytes[at] = (uint8_t)(at * 31 + i);
		assert_int_equal(cv_capture_append(writer, &packet), 0);
	}
	assert_int_equal(cv_capture_finish(writer, NULL), 0);
	in = open_port(
		"{\"name\": \"a\", \"kind\": \"pcap\", \"read\": \"%s\"}", test_path("in.pcap"));
	out = open_port(
		"{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}", test_path("out.pcap"));
	while (!in->ended(in)) {
		// As many as there are buffers for, and then some came back.
		while ((more = in->rx(in, 0, held + got, 32)) > 0)
			got += more;
		for (uint16_t i = 0; i < got; i++)
			assert_true(held[i]->nb_segs == 1 || held[i]->pkt_len > UINT16_MAX);
		assert_int_not_equal(got, 50 * RTE_DIM(lengths));
		assert_int_equal(out->tx(out, 0, held, got), got);
		got = 0;
	}
	close_port(in);
	close_port(out);
	assert_same(test_path("in.pcap"), test_path("out.pcap"));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void waits_for_buffers_and_loses_nothing(void **state)
{
	struct rte_mbuf *packets[POOL_PACKETS], *more[64];
	struct cv_port *in, *out;
	uint64_t moved = 0;

	(void)state;
	write_capture(test_path("in.pcap"), 200);
	in = open_port(
		"{\"name\": \"a\", \"kind\": \"pcap\", \"read\": \"%s\"}", test_path("in.pcap"));
	out = open_port(
		"{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}", test_path("out.pcap"));
	// Leave 40 buffers: enough for the longest packet, not for a burst.
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, packets, POOL_PACKETS - 40), 0);
	while (!in->ended(in)) {
		uint16_t got = in->rx(in, 0, more, 64);

		if (got == 0)
			assert_true(in->ended(in));
		assert_int_equal(out->tx(out, 0, more, got), got);
		moved += got;
	}
	assert_int_equal(moved, 200);
	rte_pktmbuf_free_bulk(packets, POOL_PACKETS - 40);
	close_port(in);
	close_port(out);
	assert_same(test_path("in.pcap"), test_path("out.pcap"));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void a_packet_from_elsewhere_gets_the_time_it_left(void **state)
{
	struct cv_port *out = open_port(
		"{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}", test_path("out.pcap"));
	struct rte_mbuf *packet = packet_of((const uint8_t *)"0123456789abcdef", 16);
	struct cv_capture_summary written;
	uint64_t before = (uint64_t)time(NULL) * 1000000000u;

	(void)state;
	assert_int_equal(out->tx(out, 0, &packet, 1), 1);
	// In the file at once, before it is closed.
	assert_int_equal(cv_capture_check(test_path("out.pcap"), &written, NULL), 0);
	assert_int_equal(written.packets, 1);
	assert_true(written.first_ns >= before && written.first_ns < before + 60000000000u);
	close_port(out);
}

static void a_full_disk_gives_packets_back(void **state)
{
	struct cv_port *out = open_port(
		"{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}", test_path("full.pcap"));
	struct rlimit before, limit;
	struct rte_mbuf *packet;
	uint8_t bytes[1500] = {0};
	uint64_t taken = 0;
	json_t *info;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 10000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (;;) {
		packet = packet_of(bytes, sizeof(bytes));
		if (out->tx(out, 0, &packet, 1) == 0)
			break;
		assert_true(++taken < 10000);
	}
	info = out->info(out);
	assert_non_null(json_object_get(info, "write_error"));
	assert_int_equal(json_integer_value(json_object_get(info, "written_pkts")), taken);
	json_decref(info);
	// Room again: it goes on, and all that it took gets there.
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(out->tx(out, 0, &packet, 1), 1);
	close_port(out);
	{
		struct cv_capture_summary written;

		assert_int_equal(cv_capture_check(test_path("full.pcap"), &written, NULL), 0);
		assert_int_equal(written.packets, taken + 1);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void null_gives_zeroes_and_takes_everything(void **state)
{
	struct cv_port *port =
		open_port("{\"name\": \"n\", \"kind\": \"null\", \"frame_bytes\": 60, "
			  "\"mac\": \"02:00:00:00:00:2a\", \"mtu\": 100}");
	struct rte_mbuf *packets[65];
	static const uint8_t zeroes[60];

	(void)state;
	assert_memory_equal(port->mac, "\x02\0\0\0\0\x2a", 6);
	assert_int_equal(port->mtu, 100);
	assert_null(port->ended);
	for (int round = 0; round < 20; round++) {
		assert_int_equal(port->rx(port, 1, packets, 65), 65);
		for (int i = 0; i < 65; i++) {
			assert_int_equal(packets[i]->pkt_len, 60);
			assert_memory_equal(rte_pktmbuf_mtod(packets[i], void *), zeroes, 60);
			// What a function leaves in a buffer must not come back.
			memset(rte_pktmbuf_mtod(packets[i], void *), 0xff, 60);
		}
		assert_int_equal(port->tx(port, 0, packets, 65), 65);
	}
	close_port(port);
	port = open_port("{\"name\": \"n\", \"kind\": \"null\"}");
	assert_int_equal(port->rx(port, 0, packets, 65), 0);
	close_port(port);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#define FOUR_TIMES(text) text text text text
#define SIXTEEN_TIMES(text) FOUR_TIMES(FOUR_TIMES(text))

static void any_device_of_dpdk_is_a_port(void **state)
{
	// Two senders and one queue: they share it. More arguments than rte_dev_probe() takes, 127
	// bytes.
	struct cv_port *port =
		open_port("{\"name\": \"d\", \"kind\": \"dpdk\", "
			  "\"devargs\": \"net_null0,size=60" SIXTEEN_TIMES(",copy=0") "\"}");
	struct rte_mbuf *packets[33];
	json_t *info;

	(void)state;
	assert_int_equal(port->rx(port, 0, packets, 33), 33);
	assert_int_equal(packets[32]->pkt_len, 60);
	assert_int_equal(port->tx(port, 0, packets, 20), 20);
	assert_int_equal(port->tx(port, 1, packets + 20, 13), 13);
	info = port->info(port);
	assert_int_equal(json_integer_value(json_object_get(info, "rx_pkts")), 33);
	assert_int_equal(json_integer_value(json_object_get(info, "tx_pkts")), 33);
	json_decref(info);
	close_port(port);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void devices_say_what_is_wrong(void **state)
{
	static const struct {
		const char *keys, *why;
	} rows[] = {
		{"\"devargs\": \"net_nosuch0\"", "device net_nosuch0 could not be attached"},
		{"\"devargs\": \"0000:00:00.0\"", "without PCI"},
		{"\"devargs\": \"net_null1\", \"mtu\": 9000", "do not fit into the node's buffers"},
		{"\"devargs\": \"net_null1\", \"queues\": 2, \"mtu\": 68", NULL},
		{"\"devargs\": \"net_ring0\", \"queues\": 33", "queues: 33"},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct cv_error error = {""};
		struct cv_port *port;
		json_t *config;
		char text[256];

		snprintf(text, sizeof(text), "{\"name\": \"d\", \"kind\": \"dpdk\", %s}",
			rows[i].keys);
		config = json_loads(text, 0, NULL);
		port = test_port_open(config, 0, 1, pool, &error);
		if ((port == NULL) != (rows[i].why != NULL) ||
			(port == NULL && strstr(error.text, rows[i].why) == NULL))
			fail_msg("%s: %s", rows[i].keys, error.text);
		if (port != NULL)
			port->close(port);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void captures_of_a_folder_go_through(void **state)
{
	const char *folder = getenv("CONVOY_CAPTURES");
	const struct dirent *entry;
	unsigned captures = 0;
	DIR *all;

	(void)state;
	if (folder == NULL) {
		print_message("no CONVOY_CAPTURES: set it to a folder of captures\n");
		skip();
	}
	all = opendir(folder);
	assert_non_null(all);
	while ((entry = readdir(all)) != NULL) {
		struct cv_capture_summary summary;
		struct cv_error error = {""};
		struct cv_port *in, *out;
		char path[1024];

		if (strstr(entry->d_name, ".pcap") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (cv_capture_check(path, &summary, &error) != 0) {
			print_message("  not used: %s\n", error.text);
			continue;
		}
		in = open_port("{\"name\": \"a\", \"kind\": \"pcap\", \"read\": \"%s\"}", path);
		out = open_port("{\"name\": \"b\", \"kind\": \"pcap\", \"write\": \"%s\"}",
			test_path("out.pcap"));
		assert_int_equal(move(in, out, 64), summary.packets);
		close_port(in);
		close_port(out);
		assert_same(path, test_path("out.pcap"));
		print_message("  %s: %llu packets, longest %u\n", entry->d_name,
			(unsigned long long)summary.packets, summary.longest);
		captures++;
	}
	closedir(all);
	assert_int_not_equal(captures, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_burst_size_copies_a_capture),
		cmocka_unit_test(long_frames_come_in_one_piece),
		cmocka_unit_test(waits_for_buffers_and_loses_nothing),
		cmocka_unit_test(a_packet_from_elsewhere_gets_the_time_it_left),
		cmocka_unit_test(a_full_disk_gives_packets_back),
		cmocka_unit_test(null_gives_zeroes_and_takes_everything),
		cmocka_unit_test(any_device_of_dpdk_is_a_port),
		cmocka_unit_test(devices_say_what_is_wrong),
		cmocka_unit_test(captures_of_a_folder_go_through),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("pool", POOL_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	failed = pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return failed;
}
