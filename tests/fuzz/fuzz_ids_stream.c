// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Segments of a TCP connection through a stateful ids that drops what has EVIL in it: early, cut, repeated,
// contradicted, with wrong checksums. Two receivers, one of each direction, keep the first byte that they get
// for each place and read as far as there is no gap. Whatever comes: neither ever reads EVIL.
//
// Input: four bytes of the first sequence number; then segments: a byte of direction (bit 7), a wrong checksum
// (bit 6) and the high bits of the place (0 to 3); a byte of place; a byte of length; its bytes, a letter each.
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_memory.h>

#include "flow/path.h"
#include "packet/checksum.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RULES "drop tcp any any -> any any (content:\"EVIL\"; sid:1;)\n"
#define CONFIG                                                                                  \
	"{s:s, s:b, s:i, s:i, s:i}", "rules_file", path, "stateful", 1, "streams", 4, "window", \
		512, "segments", 8
#define HEADERS 54
#define PLACES 4096 // of the first byte of a segment
#define LEN_MAX 255
#define AGES 100000 // ticks in which all flows must have ended

// What one direction's receiver got.
struct receiver {
	uint32_t first; // sequence number of its first byte
	uint8_t bytes[PLACES + LEN_MAX];
	bool has[PLACES + LEN_MAX];
};

static struct cv_flow_zone *zone;
static struct cv_flow_group *group;
static struct cv_nf_counters counters;
static struct cv_nf_worker worker;
static struct receiver receivers[2];
static uint16_t client_port;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void *make_ids(void)
{
	static const char *const ports[] = {"in", "out"};
	const struct cv_nf_env env = {.name = "ids",
		.workers = 1,
		.socket = SOCKET_ID_ANY,
		.ports = ports,
		.ports_count = 2};
	char path[] = "/tmp/convoy-fuzz-XXXXXX";
	const int fd = mkstemp(path);
	struct cv_error error = {""};
	json_t *config;
	void *ids;

	must(fd >= 0 && write(fd, RULES, strlen(RULES)) == (ssize_t)strlen(RULES),
		"there is a file");
	close(fd);
	config = json_pack(CONFIG);
	must(config != NULL, "there is memory");
	ids = cv_nf_create(cv_nf_find("ids"), config, &env, &error);
	must(ids != NULL, error.text);
	cv_nf_start(cv_nf_find("ids"), ids, &env);
	json_decref(config);
	unlink(path);
	return ids;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_flow_limits limits = {
		.max = 64, .max_ipv6 = 64, .timeouts_s = {2, 6, 1, 1, 3, 1, 6, 1}};
	char *eal[] = {(*argv)[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"256", "-l", "0", "--log-level=error", "--file-prefix=cv-fuzz-ids-stream"};
	struct cv_nf_counters *of[] = {&counters};
	struct cv_flow_member member = {.nf = cv_nf_find("ids")};
	struct cv_error error = {""};

	must(rte_eal_init(sizeof(eal) / sizeof(eal[0]), eal) >= 0, "the EAL starts");
	member.instance = make_ids();
	zone = cv_flow_zone_create(&member, 1, &limits, rte_get_tsc_hz(), &error);
	must(zone != NULL, error.text);
	group = cv_flow_group_create(zone, (const uint8_t[]){0}, of);
	must(group != NULL, "there is memory");
	worker.now = 1000 * rte_get_tsc_hz();
	return 0;
}

static rte_be16_t tcp_checksum(const uint8_t *ip, unsigned len)
{
	uint64_t sum = cv_checksum_add(0, ip + 12, 8);

	sum = cv_checksum_add(sum, ip + 20, len);
	sum += rte_cpu_to_be_16(IPPROTO_TCP) + (uint64_t)rte_cpu_to_be_16((uint16_t)len);
	return (rte_be16_t)~cv_checksum_fold(sum);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, (uint16_t)(value >> 16));
	put16(at + 2, (uint16_t)value);
}

// Returns whether the segment passes. Flags are TCP's.
static bool passes(bool reply, uint32_t seq, uint32_t ack, uint8_t flags, const uint8_t *payload,
	unsigned len, bool damaged)
{
	static const uint8_t ends[2][4] = {{10, 0, 0, 1}, {198, 51, 100, 7}};
	uint8_t *bytes = calloc(1, HEADERS + len), *ip = bytes + 14, *tcp = ip + 20;
	uint8_t verdict = CV_NEXT;
	struct cv_view view = {.out = 1};
	rte_be16_t checksum;

	must(bytes != NULL, "there is memory");
	bytes[12] = 0x08;
	ip[0] = 0x45;
	put16(ip + 2, (uint16_t)(40 + len));
	ip[8] = 64;
	ip[9] = IPPROTO_TCP;
	memcpy(ip + 12, ends[reply], 4);
	memcpy(ip + 16, ends[!reply], 4);
	checksum = cv_checksum(ip, 20);
	memcpy(ip + 10, &checksum, 2);
	put16(tcp, reply ? 80 : client_port);
	put16(tcp + 2, reply ? client_port : 80);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	tcp[12] = 0x50;
	tcp[13] = flags;
	put16(tcp + 14, 0xffff);
	if (len > 0)
		memcpy(tcp + 20, payload, len);
	checksum = tcp_checksum(ip, 20 + len) ^ (rte_be16_t)damaged;
	memcpy(tcp + 16, &checksum, 2);
	cv_view_set(&view, bytes, (uint16_t)(HEADERS + len));
	cv_flow_process(group, &worker, &view, &verdict, 1);
	must(memcmp(tcp + 16, &checksum, 2) == 0, "packets stay as they are");
	free(bytes);
	return verdict == CV_NEXT;
}

static void receive(struct receiver *receiver, unsigned place, const uint8_t *payload, unsigned len)
{
	unsigned evil = 0; // letters of it that were read one behind the other

	for (unsigned i = 0; i < len; i++) {
		if (receiver->has[place + i])
			continue;
		receiver->has[place + i] = true;
		receiver->bytes[place + i] = payload[i];
	}
	for (unsigned i = 0; i < sizeof(receiver->bytes) && receiver->has[i]; i++) {
		const uint8_t byte = receiver->bytes[i];

		evil = byte == (uint8_t) "EVIL"[evil] ? evil + 1 : byte == 'E';
		must(evil < 4, "nobody reads EVIL");
	}
}

static void open_connection(uint32_t first)
{
	memset(receivers, 0, sizeof(receivers));
	client_port = (uint16_t)(client_port < 1024 ? 1024 : client_port + 1);
	receivers[0].first = first;
	receivers[1].first = ~first;
	passes(false, first - 1, 0, 0x02, NULL, 0, false);
	passes(true, ~first - 1, first, 0x12, NULL, 0, false);
	passes(false, first, ~first, 0x10, NULL, 0, false);
}

static void let_it_end(void)
{
	const struct cv_flow_counters *flows = cv_flow_zone_counters(zone);
	unsigned i = 0;

	while (flows->flows_ipv4 + flows->flows_ipv6 > 0) {
		must(i++ < AGES, "flows end");
		worker.now += rte_get_tsc_hz() / 10;
		cv_flow_tick(group, &worker);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char letters[] = "EVILEVIx";
	uint32_t first;

	if (size < sizeof(first))
		return 0;
	memcpy(&first, data, sizeof(first));
	open_connection(first);
	for (size_t i = sizeof(first); i + 3 <= size;) {
		const uint8_t what = data[i];
		const unsigned place = (what & 15u) << 8 | data[i + 1];
		const unsigned len = (unsigned)RTE_MIN((size_t)data[i + 2], size - i - 3);
		const bool reply = what >> 7, damaged = what >> 6 & 1;
		uint8_t payload[LEN_MAX];

		i += 3;
		for (unsigned j = 0; j < len; j++)
			payload[j] = (uint8_t)letters[data[i + j] & 7];
		i += len;
		if (passes(reply, receivers[reply].first + place, receivers[!reply].first, 0x10,
			    payload, len, damaged) &&
			!damaged)
			receive(&receivers[reply], place, payload, len);
	}
	let_it_end();
	return 0;
}
