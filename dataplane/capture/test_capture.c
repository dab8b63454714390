// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "tests/support/test_dir.h"

#define B(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

// Headers of a pcap file, little endian unless said otherwise.
#define PCAP_NS 0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0
#define PCAP_US 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0
#define PCAP_BE_US 0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0
#define ETHERNET 1, 0, 0, 0
#define ETHERNET_BE 0, 0, 0, 1
#define COOKED 113, 0, 0, 0
#define AT(seconds, fraction) seconds, 0, 0, 0, fraction, 0, 0, 0
#define LENGTHS(captured, wire) captured, 0, 0, 0, wire, 0, 0, 0

// Blocks of a pcapng file: section header; interface (link, option if_tsresol = 10^-9); packet.
#define NG_SECTION                                                                                 \
	0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, \
		0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0
#define NG_INTERFACE_NS(link)                                                                   \
	1, 0, 0, 0, 32, 0, 0, 0, link, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, \
		32, 0, 0, 0
#define NG_PACKET(interface, low, captured)                                                       \
	6, 0, 0, 0, 36, 0, 0, 0, interface, 0, 0, 0, 0, 0, 0, 0, low, 0, 0, 0, captured, 0, 0, 0, \
		captured, 0, 0, 0, 'a', 'b', 'c', 'd', 36, 0, 0, 0

static char dir[] = "/tmp/convoy-test-capture-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *write_file(const char *name, const uint8_t *bytes, size_t len)
{
	const char *path = in_dir(name);
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	return path;
}

// What a file's bytes give: how many packets, then an end (why NULL) or this error.
static const struct file_row {
	const char *description;
	const uint8_t *bytes;
	size_t len;
	uint64_t packets, captured_bytes, cut, last_ns;
	const char *why[3];
} file_rows[] = {
	{"nanoseconds", B(PCAP_NS, ETHERNET, AT(1, 5), LENGTHS(2, 2), 'a', 'b'), 1, 2, 0,
		1000000005, {0}},
	{"microseconds", B(PCAP_US, ETHERNET, AT(1, 5), LENGTHS(2, 2), 'a', 'b'), 1, 2, 0,
		1000005000, {0}},
	{"big endian",
		B(PCAP_BE_US, ETHERNET_BE, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 1, 'a'), 1,
		1, 0, 1000005000, {0}},
	{"pcapng with nanoseconds", B(NG_SECTION, NG_INTERFACE_NS(1), NG_PACKET(0, 7, 3)), 1, 3, 0,
		7, {0}},
	{"no packets", B(PCAP_NS, ETHERNET), 0, 0, 0, 0, {0}},
	{"a packet of no bytes", B(PCAP_NS, ETHERNET, AT(0, 1), LENGTHS(0, 0)), 1, 0, 0, 1, {0}},
	{"cut by the snap length", B(PCAP_NS, ETHERNET, AT(0, 1), LENGTHS(2, 60), 'a', 'b'), 1, 2,
		1, 1, {0}},

	{"ends in the header of the file", B(PCAP_NS), 0, 0, 0, 0, {"is not a capture"}},
	{"text", B('h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u'), 0, 0, 0, 0,
		{"is not a capture", "unknown file format"}},
	{"gzip", B(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3), 0, 0, 0, 0,
		{"is not a capture", "uncompressed"}},
	{"not Ethernet", B(PCAP_NS, COOKED), 0, 0, 0, 0,
		{"LINUX_SLL (113), not Ethernet", "'any'"}},
	{"pcapng, not Ethernet", B(NG_SECTION, NG_INTERFACE_NS(113), NG_PACKET(0, 7, 3)), 0, 0, 0,
		0, {"LINUX_SLL (113), not Ethernet"}},
	{"pcapng without an interface", B(NG_SECTION), 0, 0, 0, 0, {"is not a capture"}},
	{"pcapng, packet of an interface that is not there",
		B(NG_SECTION, NG_INTERFACE_NS(1), NG_PACKET(1, 7, 3)), 0, 0, 0, 0,
		{"packet 1 is cut off or damaged"}},
	{"pcapng, packet longer than its block",
		B(NG_SECTION, NG_INTERFACE_NS(1), NG_PACKET(0, 7, 200)), 0, 0, 0, 0,
		{"packet 1 is cut off or damaged"}},
	{"ends in a packet's header", B(PCAP_NS, ETHERNET, AT(1, 5)), 0, 0, 0, 0,
		{"packet 1 is cut off", "truncated", "keep the 0 packets before"}},
	{"ends in the second packet",
		B(PCAP_NS, ETHERNET, AT(1, 5), LENGTHS(2, 2), 'a', 'b', AT(1, 6), LENGTHS(2, 2),
			'a'),
		1, 2, 0, 1000000005,
		{"packet 2 is cut off", "truncated", "keep the 1 packets before it: tcpdump -r"}},
	{"an absurd captured length",
		B(PCAP_NS, ETHERNET, AT(1, 5), 0xff, 0xff, 0xff, 0x7f, 2, 0, 0, 0, 'a', 'b'), 0, 0,
		0, 0, {"packet 1 is cut off or damaged"}},
};

static void reads_or_says_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(file_rows) / sizeof(file_rows[0]); i++) {
		const struct file_row *row = &file_rows[i];
		const char *path = write_file("row", row->bytes, row->len);
		struct cv_error error = {""};
		struct cv_capture_summary read;
		int rc;

		print_message("  %s\n", row->description);
		memset(&read, 0, sizeof(read));
		rc = cv_capture_check(path, &read, &error);
		assert_int_equal(rc, row->why[0] != NULL ? -EINVAL : 0);
		assert_int_equal(read.packets, row->packets);
		assert_int_equal(read.bytes, row->captured_bytes);
		assert_int_equal(read.cut, row->cut);
		assert_int_equal(read.last_ns, row->last_ns);
		if (row->why[0] == NULL)
			assert_string_equal(error.text, "");
		else
			assert_non_null(strstr(error.text, path));
		for (int j = 0; j < 3 && row->why[j] != NULL; j++) {
			if (strstr(error.text, row->why[j]) == NULL)
				fail_msg("no '%s' in: %s", row->why[j], error.text);
		}
	}
}

static void says_what_is_no_file(void **state)
{
	static const struct {
		const char *path, *why;
	} rows[] = {
		{"missing", "No such file"},
		{"", "is a directory"},
		{"fifo", "not a regular file"},
		{"nothing", "is empty"},
		{"row/file", "Not a directory"},
	};

	(void)state;
	write_file("nothing", (const uint8_t *)"", 0);
	write_file("row", (const uint8_t *)"", 0);
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {""};

		assert_null(cv_capture_open(in_dir(rows[i].path), &error));
		if (strstr(error.text, rows[i].why) == NULL)
			fail_msg("no '%s' in: %s", rows[i].why, error.text);
	}
}

static void says_what_cannot_be_written(void **state)
{
	static const struct {
		const char *path, *why;
	} rows[] = {
		{"missing/out.pcap", "make its directory first"},
		{"", "Is a directory"},
		{"fifo", "cannot be written"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {""};

		assert_null(cv_capture_create(in_dir(rows[i].path), &error));
		if (strstr(error.text, rows[i].why) == NULL)
			fail_msg("no '%s' in: %s", rows[i].why, error.text);
	}
}

// Packet i of a long capture: 0 to 1,999 bytes, some of them cut.
static struct cv_capture_packet nth(uint64_t i, uint8_t *bytes)
{
	struct cv_capture_packet packet = {
		.time_ns = 1700000000999999999u + i * 1000u,
		.data = bytes,
		.captured = (uint32_t)(i * 37 % 2000),
	};

	packet.wire = packet.captured + (i % 3 == 0 ? 5 : 0);
	memset(bytes, (int)(i & 0xff), packet.captured);
	return packet;
}

static void assert_holds(const char *path, uint64_t packets)
{
	struct cv_error error = {""};
	struct cv_capture *capture = cv_capture_open(path, &error);
	struct cv_capture_packet packet;
	uint8_t bytes[2000];

	assert_non_null(capture);
	for (uint64_t i = 0; i < packets; i++) {
		const struct cv_capture_packet expected = nth(i, bytes);

		assert_int_equal(cv_capture_next(capture, &packet, &error), 1);
		assert_int_equal(packet.time_ns, expected.time_ns);
		assert_int_equal(packet.captured, expected.captured);
		assert_int_equal(packet.wire, expected.wire);
		assert_memory_equal(packet.data, bytes, packet.captured);
	}
	assert_int_equal(cv_capture_next(capture, &packet, &error), 0);
	assert_int_equal(cv_capture_read_so_far(capture)->packets, packets);
	cv_capture_close(capture);
}

static void reads_what_it_wrote(void **state)
{
	const char *path = in_dir("long.pcap");
	struct cv_error error = {""};
	struct cv_capture_writer *writer = cv_capture_create(path, &error);
	uint8_t bytes[2000];

	(void)state;
	assert_non_null(writer);
	assert_holds(path, 0);
	for (uint64_t i = 0; i < 3000; i++) { // more than is held back
		const struct cv_capture_packet packet = nth(i, bytes);

		assert_int_equal(cv_capture_append(writer, &packet), 0);
		if (i == 9) {
			assert_int_equal(cv_capture_flush(writer), 0);
			assert_holds(path, 10);
		}
	}
	assert_int_equal(cv_capture_finish(writer, &error), 0);
	assert_holds(path, 3000);

	// Creating it again empties it.
	assert_int_equal(cv_capture_finish(cv_capture_create(path, &error), &error), 0);
	assert_holds(path, 0);
}

static void refuses_a_packet_that_no_reader_takes(void **state)
{
	struct cv_error error = {""};
	struct cv_capture_writer *writer = cv_capture_create(in_dir("huge.pcap"), &error);
	uint8_t *bytes = calloc(1, 262145);
	struct cv_capture_packet packet = {.data = bytes, .captured = 262145, .wire = 262145};

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(cv_capture_append(writer, &packet), -EMSGSIZE);
	packet.captured = 262144;
	assert_int_equal(cv_capture_append(writer, &packet), 0);
	assert_int_equal(cv_capture_finish(writer, &error), 0);
	assert_int_equal(cv_capture_check(in_dir("huge.pcap"), NULL, &error), 0);
	free(bytes);
}

static void a_killed_writer_leaves_what_it_flushed(void **state)
{
	const char *path = in_dir("killed.pcap");
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct cv_capture_writer *writer = cv_capture_create(path, NULL);
		uint8_t bytes[2000];

		for (uint64_t i = 0; i < 101; i++) {
			const struct cv_capture_packet packet = nth(i, bytes);

			cv_capture_append(writer, &packet);
			if (i == 99)
				cv_capture_flush(writer);
		}
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_holds(path, 100);
}

static void a_full_disk_loses_nothing_that_was_whole(void **state)
{
	const char *path = in_dir("full.pcap");
	struct cv_error error = {""};
	struct cv_capture_writer *writer = cv_capture_create(path, &error);
	struct rlimit before, limit;
	uint8_t bytes[2000];

	(void)state;
	assert_non_null(writer);
	// The limit on a file's size stands for the full disk: a part of the packet still fits.
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	for (uint64_t i = 0; i < 20; i++) {
		const struct cv_capture_packet packet = nth(i, bytes);

		assert_int_equal(cv_capture_append(writer, &packet), 0);
		if (i == 9)
			assert_int_equal(cv_capture_flush(writer), 0);
	}
	limit.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(cv_capture_flush(writer), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_holds(path, 10);
	// Room again: what was held back gets there after all.
	assert_int_equal(cv_capture_finish(writer, &error), 0);
	assert_holds(path, 20);
}

static int make_dir(void **state)
{
	(void)state;
	return test_dir_make(dir);
}

static int remove_dir(void **state)
{
	static const char *const names[] = {
		"row", "nothing", "fifo", "long.pcap", "huge.pcap", "killed.pcap", "full.pcap"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_dir(names[i]));
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_or_says_why),
		cmocka_unit_test(says_what_is_no_file),
		cmocka_unit_test(says_what_cannot_be_written),
		cmocka_unit_test(reads_what_it_wrote),
		cmocka_unit_test(refuses_a_packet_that_no_reader_takes),
		cmocka_unit_test(a_killed_writer_leaves_what_it_flushed),
		cmocka_unit_test(a_full_disk_loses_nothing_that_was_whole),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
