// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What cv_port_config_read() takes and refuses, kind by kind.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/capture.h"
#include "port/port.h"
#include "tests/support/test_dir.h"

static char dir[] = "/tmp/convoy-test-check-XXXXXX";

#define LONG_100                                                                                   \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"

// The keys of a port (in single quotes; @ is the test's directory), and NULL: fine, or the words
// that the error must have.
static const struct row {
	const char *keys;
	const char *why[2];
} rows[] = {
	{"'kind': 'null'", {0}},
	{"'kind': 'null', 'frame_bytes': 60", {0}},
	{"'kind': 'null', 'mac': '02:00:00:00:00:0a', 'mtu': 9000", {0}},
	{"'kind': 'null', 'frame_bytes': 13",
		{"frame_bytes: 13: must be a whole number from 14 to 9216"}},
	{"'kind': 'null', 'frame_bytes': 9217", {"frame_bytes: 9217"}},
	{"'kind': 'null', 'frame_bytes': '60'", {"frame_bytes: \"60\": must be a whole number"}},
	{"'kind': 'null', 'frame_bytes': 60.5", {"frame_bytes: 60.5: must be a whole number"}},
	{"'kind': 'null', 'path': 'x'", {"path: unknown", "frame_bytes"}},

	{"'kind': 7", {"kind: 7: must be one of: pcap null vhost-user"}},
	{"'frame_bytes': 60", {"kind: is missing"}},
	{"'kind': 'tap'", {"kind: \"tap\"", "vhost-user"}},
	{"'kind': 'null', 'mtu': 67", {"mtu: 67", "68 to 65500"}},
	{"'kind': 'null', 'mtu': 65500", {0}},
	{"'kind': 'null', 'mtu': 65501", {"mtu: 65501"}},
	{"'kind': 'vhost-user', 'path': '/tmp/a', 'mtu': 65300", {0}},
	{"'kind': 'vhost-user', 'path': '/tmp/a', 'mtu': 65301", {"mtu: 65301", "68 to 65300"}},
	{"'kind': 'null', 'mtu': null", {"mtu: null: must be a whole number from 68"}},
	{"'kind': 'null', 'mac': '02:00:00:00:00'", {"mac: \"02:00:00:00:00\"", "unicast MAC"}},
	{"'kind': 'null', 'mac': '02:00:00:00:00:0g'", {"unicast MAC"}},
	{"'kind': 'null', 'mac': '02:00:00:00:00:001'", {"unicast MAC"}},
	{"'kind': 'null', 'mac': '01:00:5e:00:00:01'", {"unicast MAC"}},
	{"'kind': 'null', 'mac': '00:00:00:00:00:00'", {"unicast MAC"}},
	{"'kind': 'null', 'mac': 5", {"mac: 5: must be a unicast"}},

	{"'kind': 'pcap', 'read': '@/good.pcap'", {0}},
	{"'kind': 'pcap', 'write': '@/new.pcap'", {0}},
	{"'kind': 'pcap', 'write': '@/good.pcap'", {0}},
	{"'kind': 'pcap', 'read': '@/good.pcap', 'write': '@/new.pcap'", {0}},
	{"'kind': 'pcap'", {"read, write: both are missing"}},
	{"'kind': 'pcap', 'read': ''", {"read: \"\": must not be empty"}},
	{"'kind': 'pcap', 'read': '@/none.pcap'", {"read: @/none.pcap: No such file"}},
	{"'kind': 'pcap', 'read': '@'", {"read: @: is a directory"}},
	{"'kind': 'pcap', 'read': '@/cut.pcap'", {"packet 2 is cut off", "tcpdump"}},
	{"'kind': 'pcap', 'read': '@/text'", {"is not a capture"}},
	{"'kind': 'pcap', 'write': '@/none/new.pcap'", {"write: @/none/new.pcap: its directory"}},
	{"'kind': 'pcap', 'write': '@'", {"not a regular file"}},
	{"'kind': 'pcap', 'read': '@/good.pcap', 'write': '@/./good.pcap'",
		{"is the file that is read"}},
	{"'kind': 'pcap', 'read': '@/good.pcap', 'queues': 2", {"queues: unknown"}},

	{"'kind': 'vhost-user', 'path': '@/new.sock'", {0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'mode': 'server', 'queues': 64", {0}},
	{"'kind': 'vhost-user', 'path': '@/none/new.sock', 'mode': 'client'", {0}},
	{"'kind': 'vhost-user', 'path': '@/socket', 'mode': 'server'", {0}},
	{"'kind': 'vhost-user'", {"path: is missing"}},
	{"'kind': 'vhost-user', 'path': 5", {"path: 5: must be a string"}},
	{"'kind': 'vhost-user', 'path': '/tmp/" LONG_100 "/xy'", {"path: ", "at most 107"}},
	{"'kind': 'vhost-user', 'mode': 'client', 'path': '/tmp/" LONG_100 "/x'", {0}},
	{"'kind': 'vhost-user', 'path': '@/none/new.sock'", {"its directory", "mkdir -p @/none"}},
	{"'kind': 'vhost-user', 'path': '@/text'", {"is no socket"}},
	{"'kind': 'vhost-user', 'path': '@/a,b'", {"a character", "commas"}},
	{"'kind': 'vhost-user', 'path': '@/a b'", {"a character"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'mode': 'listen'",
		{"mode: \"listen\": must be one of: server client"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'datapath': 'dpdk', 'trusted': true", {0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'datapath': 'dpdk'",
		{"datapath: dpdk", "write trusted: true"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'packed': false, 'max_ring_size': 32768",
		{0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'max_ring_size': 32769",
		{"max_ring_size: 32769", "64 to 32768"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'packed': 1", {"packed: 1"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'datapath': 'kernel'",
		{"datapath: \"kernel\": must be one of: vring dpdk"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'queues': 0", {"queues: 0", "1 to 64"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'queues': 65", {"queues: 65"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'role': 'server'", {"role: unknown"}},

	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_mode': '0660'", {0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_group': 'root'", {0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_group': '12'", {0}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_mode': '0668'",
		{"socket_mode: \"0668\"", "octal"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_mode': '1777'",
		{"socket_mode: \"1777\""}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_mode': '-1'",
		{"socket_mode: \"-1\""}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_mode': 432",
		{"socket_mode: 432: must be a string"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_group': 'no such'",
		{"socket_group: \"no such\": there is no such group", "getent"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'socket_group': '4294967295'",
		{"socket_group: \"4294967295\""}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'mode': 'client', 'socket_mode': '0660'",
		{"socket_mode: the peer makes the socket"}},
	{"'kind': 'vhost-user', 'path': '@/new.sock', 'mode': 'client', 'socket_group': '0'",
		{"socket_group: the peer makes the socket"}},

	{"'kind': 'virtio-user', 'path': '@/new.sock'", {0}},
	{"'kind': 'virtio-user', 'path': '@/new.sock', 'mode': 'server', 'socket_mode': '0600'",
		{"socket_mode: unknown"}},
	{"'kind': 'virtio-user', 'path': '@/new.sock', 'mode': 'server', 'queues': 2", {0}},
	{"'kind': 'virtio-user', 'path': '@/none/new.sock', 'mode': 'server'", {"mkdir -p"}},
	{"'kind': 'virtio-user', 'path': '@/text'", {"is no socket"}},
	{"'kind': 'virtio-user'", {"path: is missing"}},
	{"'kind': 'virtio-user', 'path': '@/new.sock', 'slots': 64", {0}},
	{"'kind': 'virtio-user', 'path': '@/new.sock', 'slots': 2048",
		{"slots: 2048", "64 to 1024"}},
	{"'kind': 'virtio-user', 'path': '@/new.sock', 'slots': 300",
		{"slots: 300", "power of two"}},

	{"'kind': 'memif', 'path': '@/new.sock'", {0}},
	{"'kind': 'memif', 'path': '@/new.sock', 'role': 'client', 'id': 2147483647", {0}},
	{"'kind': 'memif', 'path': '@/new.sock', 'id': 2147483648", {"id: 2147483648"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'id': -1", {"id: -1"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'role': 'master'", {"role: \"master\""}},
	{"'kind': 'memif', 'path': '@/new.sock', 'queues': 2", {"queues: unknown"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'slots': 256", {0}},
	{"'kind': 'memif', 'path': '@/new.sock', 'slots': 63", {"slots: 63", "64 to 1024"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'datapath': 'dpdk', 'trusted': true", {0}},
	{"'kind': 'memif', 'path': '@/new.sock', 'datapath': 'dpdk'", {"write trusted: true"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'datapath': 'dpdk', 'trusted': false",
		{"write trusted: true"}},
	{"'kind': 'memif', 'path': '@/new.sock', 'datapath': 'dpdk', 'trusted': 'yes'",
		{"trusted: \"yes\""}},
	{"'kind': 'memif', 'path': '@/new.sock', 'datapath': 'vring'",
		{"datapath: \"vring\": must be one of: memif dpdk"}},

	{"'kind': 'af_packet', 'interface': 'lo'", {0}},
	{"'kind': 'af_packet', 'interface': 'lo', 'queues': 16", {0}},
	{"'kind': 'af_packet'", {"interface: is missing"}},
	{"'kind': 'af_packet', 'interface': 'nosuch0'",
		{"interface: nosuch0: there is none", "ip link"}},
	{"'kind': 'af_packet', 'interface': 'a-name-of-16-by'", {"there is none"}},
	{"'kind': 'af_packet', 'interface': 'a-name-of-16-byt'", {"at most 15"}},
	{"'kind': 'af_packet', 'interface': 'lo', 'queues': 17", {"queues: 17"}},
	{"'kind': 'af_xdp', 'interface': 'lo'", {0}},
	{"'kind': 'af_xdp', 'interface': 'nosuch0'", {"interface: nosuch0: there is none"}},
	{"'kind': 'af_xdp', 'interface': 'lo', 'queues': 65", {"queues: 65"}},

	{"'kind': 'dpdk', 'devargs': 'net_tap0,iface=tap7'", {0}},
	{"'kind': 'dpdk', 'devargs': '0000:3b:00.0', 'queues': 4", {0}},
	{"'kind': 'dpdk', 'devargs': '3b:00.1,arg=1'", {0}},
	{"'kind': 'dpdk'", {"devargs: is missing"}},
	{"'kind': 'dpdk', 'devargs': 'eth0'", {"devargs: \"eth0\": is neither"}},
	{"'kind': 'dpdk', 'devargs': 'net_tap0', 'queues': -1", {"queues: -1"}},
};

// Text with ' as " and @ as the directory.
static const char *expand(const char *text, char *to, size_t size)
{
	size_t used = 0;

	for (; *text != '\0' && used + sizeof(dir) < size; text++) {
		if (*text == '@')
			used += (size_t)snprintf(to + used, size - used, "%s", dir);
		else
			to[used++] = *text == '\'' ? '"' : *text;
	}
	to[used] = '\0';
	return to;
}

static json_t *config_of(const char *keys)
{
	char inner[1024], text[1100];

	snprintf(text, sizeof(text), "{\"name\": \"p\", %s}", expand(keys, inner, sizeof(inner)));
	return json_loads(text, 0, NULL);
}

static void takes_or_says_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {""};
		json_t *json = config_of(rows[i].keys);
		struct cv_port_config *config = cv_port_config_read(json, &error);
		char why[256];

		json_decref(json);
		if (json == NULL || (config != NULL) != (rows[i].why[0] == NULL) ||
			(config != NULL) != (error.text[0] == '\0'))
			fail_msg("%s: %s", rows[i].keys, error.text);
		cv_port_config_free(config);
		for (int j = 0; j < 2 && rows[i].why[j] != NULL; j++) {
			if (strstr(error.text, expand(rows[i].why[j], why, sizeof(why))) == NULL)
				fail_msg("%s: no '%s' in: %s", rows[i].keys, why, error.text);
		}
	}
}

// What is wrong with a whole port.
static void takes_no_other_shape(void **state)
{
	static const struct {
		const char *text, *why;
	} shapes[] = {
		{"[]", "must be an object"},
		{"\"null\"", "must be an object"},
		{"{\"kind\": \"null\"}", "name: is missing"},
		{"{\"kind\": \"null\", \"name\": 5}", "name: 5: must be a string"},
		{"{\"kind\": \"null\", \"name\": \"12345678901234567890123456789012\"}",
			"at most 31 are possible"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cv_error error = {""};
		json_t *config = json_loads(shapes[i].text, 0, NULL);

		assert_null(cv_port_config_read(config, &error));
		if (strstr(error.text, shapes[i].why) == NULL)
			fail_msg("%s: %s", shapes[i].text, error.text);
		json_decref(config);
	}
}

static void checking_leaves_no_trace(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *config = config_of(rows[i].keys);

		cv_port_config_free(cv_port_config_read(config, NULL));
		json_decref(config);
	}
	assert_int_not_equal(stat(expand("@/new.pcap", path, sizeof(path)), &st), 0);
	assert_int_not_equal(stat(expand("@/new.sock", path, sizeof(path)), &st), 0);
	assert_int_equal(stat(expand("@/socket", path, sizeof(path)), &st), 0);
}

static void knows_what_memory_and_buses_a_port_needs(void **state)
{
	static const struct {
		const char *keys;
		bool shares, pci, drivers;
	} needs[] = {
		{"'kind': 'null'", false, false, false},
		{"'kind': 'vhost-user', 'path': '@/s'", false, false, false},
		{"'kind': 'virtio-user', 'path': '@/s'", true, false, true},
		{"'kind': 'memif', 'path': '@/s'", false, false, false},
		{"'kind': 'vhost-user', 'path': '@/s', 'datapath': 'dpdk', 'trusted': true", false,
			false, true},
		{"'kind': 'memif', 'path': '@/s', 'datapath': 'dpdk', 'trusted': true", false,
			false, true},
		{"'kind': 'af_packet', 'interface': 'lo'", false, false, true},
		{"'kind': 'af_xdp', 'interface': 'lo'", true, false, true},
		{"'kind': 'dpdk', 'devargs': 'net_tap0'", true, false, true},
		{"'kind': 'dpdk', 'devargs': '0000:3b:00.0'", true, true, true},
		{"'kind': 'dpdk', 'devargs': '3b:00.0,x=1'", true, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		json_t *json = config_of(needs[i].keys);
		struct cv_port_config *config = cv_port_config_read(json, NULL);

		assert_non_null(config);
		assert_int_equal(config->needs.shared_packets, needs[i].shares);
		assert_int_equal(config->needs.pci, needs[i].pci);
		assert_int_equal(config->needs.drivers, needs[i].drivers);
		cv_port_config_free(config);
		json_decref(json);
	}
}

static void write_capture(const char *name)
{
	const struct cv_capture_packet packet = {1, (const uint8_t *)"abcdefghijklmno", 15, 15};
	char path[128];
	struct cv_capture_writer *writer =
		cv_capture_create(expand(name, path, sizeof(path)), NULL);

	assert_non_null(writer);
	assert_int_equal(cv_capture_append(writer, &packet), 0);
	assert_int_equal(cv_capture_append(writer, &packet), 0);
	assert_int_equal(cv_capture_finish(writer, NULL), 0);
}

static int make_files(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char path[128];
	FILE *file;

	(void)state;
	if (test_dir_make(dir) != 0)
		return -1;
	write_capture("@/good.pcap");
	write_capture("@/cut.pcap");
	file = fopen(expand("@/text", path, sizeof(path)), "w");
	if (file == NULL || fputs("text", file) < 0 || fclose(file) != 0)
		return -1;
	expand("@/socket", path, sizeof(path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	close(fd);
	return truncate(expand("@/cut.pcap", path, sizeof(path)), 24 + 16 + 15 + 20);
}

static int remove_files(void **state)
{
	static const char *const names[] = {"@/good.pcap", "@/cut.pcap", "@/text", "@/socket"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(expand(names[i], path, sizeof(path)));
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_or_says_why),
		cmocka_unit_test(takes_no_other_shape),
		cmocka_unit_test(checking_leaves_no_trace),
		cmocka_unit_test(knows_what_memory_and_buses_a_port_needs),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
