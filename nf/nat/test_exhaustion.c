// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat under attack: floods of half-open connections, by many hosts and by one, that take all there is
// of ports, blocks, mappings or flows. Connections go on both ways, each packet that does not pass has
// a reason, and afterwards everything is free again.
#include "nf/nat/test_net.h"
#include "packet/compiler.h"

#include <unistd.h>

#define CLIENTS 32u
#define FLOOD 300000u

struct flood {
	struct net net;
	struct packet opened[CLIENTS], went[CLIENTS]; // each client's packet, before and after nat
	struct packet syn;
	uint64_t passed, dropped;
};

static struct packet tcp_of(uint32_t host, uint16_t port, uint8_t flags)
{
	char text[128];

	snprintf(text, sizeof(text),
		"ip4 src=10.%u.%u.%u dst=198.51.100.1 tcp sport=%u dport=80 flags=%x",
		host >> 16 & 255, host >> 8 & 255, host & 255, port, flags);
	return net_packet(text);
}

// The answer of the server to a packet that left.
static struct packet answer_to(const struct packet *went, uint8_t flags)
{
	struct packet packet = *went;

	memcpy(packet.bytes + 26, went->bytes + 30, 4);
	memcpy(packet.bytes + 30, went->bytes + 26, 4);
	memcpy(packet.bytes + 34, went->bytes + 36, 2);
	memcpy(packet.bytes + 36, went->bytes + 34, 2);
	packet.bytes[47] = flags;
	flow_checksums(packet.bytes, packet.len);
	return packet;
}

static void pass(struct net *net, struct packet *packet, uint8_t port)
{
	assert_string_equal(net_pass(net, packet, &port), "next");
}

static void connect_clients(struct flood *flood)
{
	for (uint32_t n = 0; n < CLIENTS; n++) {
		struct packet answer, last = tcp_of(1 + n, 5000, CV_TCP_ACK);

		flood->opened[n] = flood->went[n] = tcp_of(1 + n, 5000, CV_TCP_SYN);
		pass(&flood->net, &flood->went[n], INSIDE);
		answer = answer_to(&flood->went[n], CV_TCP_SYN | CV_TCP_ACK);
		pass(&flood->net, &answer, OUTSIDE);
		pass(&flood->net, &last, INSIDE);
	}
	flood->syn = tcp_of(0, 0, CV_TCP_SYN);
}

// Both ways, by the same external port.
static void client_goes_on(struct flood *flood, uint32_t n)
{
	struct packet packet = tcp_of(1 + n, 5000, CV_TCP_ACK), answer;

	pass(&flood->net, &packet, INSIDE);
	assert_memory_equal(packet.bytes + 26, flood->went[n].bytes + 26, 10);
	answer = answer_to(&packet, CV_TCP_ACK);
	pass(&flood->net, &answer, OUTSIDE);
	assert_memory_equal(answer.bytes + 30, flood->opened[n].bytes + 26, 4);
}

// A SYN of a host. Returns why it did not pass, or "next".
static const char *attack(struct flood *flood, uint32_t host, uint16_t port)
{
	struct packet packet = flood->syn;
	const rte_be32_t source = rte_cpu_to_be_32(0x0a000000 | host);
	const rte_be16_t sport = rte_cpu_to_be_16(port);
	uint8_t in = INSIDE;
	const char *verdict;

	memcpy(packet.bytes + 26, &source, 4);
	memcpy(packet.bytes + 34, &sport, 2);
	verdict = net_pass(&flood->net, &packet, &in);
	*(strcmp(verdict, "next") == 0 ? &flood->passed : &flood->dropped) += 1;
	return verdict;
}

static uint64_t counted_drops(const struct net *net)
{
	uint64_t dropped = 0;

	for (unsigned i = 0; i < CV_DROPS_MAX; i++)
		dropped += net->counters.drops[i];
	return dropped;
}

// Bytes of this process that are in memory. AddressSanitizer keeps what was freed.
static size_t resident(void)
{
#if CV_SANITIZED
	return 0;
#else
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %zu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
#endif
}

#define NAT "'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1']"

// By as many hosts as there are packets, or by one from all of its ports.
static void floods_leave_connections_alone(void **state)
{
	static const struct {
		const char *config, *drop;
		uint32_t flows;
		bool one_host;
		uint64_t room; // for others than the clients
		bool of_nat; // nat's own drop, not the flow path's
	} rows[] = {
		// 64,512 ports are 126 blocks, of two workers.
		{"{" NAT "}", "no_port", 65536, false, 63 - CLIENTS, true},
		{"{" NAT ", 'block_size': 64, 'blocks_per_subscriber': 4}", "subscriber_limit",
			65536, true, 256, true},
		{"{" NAT ", 'block_size': 64, 'mappings': 900}", "mappings_full", 65536, false,
			450 - CLIENTS, true},
		{"{" NAT ", 'block_size': 64}", "flow_table_full", 256, false, 256 - CLIENTS,
			false},
	};
	static struct flood flood;

	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		size_t memory;

		memset(&flood, 0, sizeof(flood));
		net_make(&flood.net, rows[r].config, 0, rows[r].flows);
		connect_clients(&flood);
		memory = resident();
		for (uint32_t n = 0; n < FLOOD; n++) {
			const uint32_t host = rows[r].one_host ? 0x10000 : 0x10000 + n;
			const char *verdict = attack(&flood, host, (uint16_t)(1 + n % 65535));

			if (strcmp(verdict, "next") != 0 && strcmp(verdict, rows[r].drop) != 0)
				fail_msg("row %u: %s, not %s", r, verdict, rows[r].drop);
			if (n % 64 == 0)
				client_goes_on(&flood, n / 64 % CLIENTS);
		}
		// What one host opened passes again from the same ports.
		if (!rows[r].one_host)
			assert_int_equal(flood.passed, rows[r].room);
		assert_int_equal(net_info(&flood.net, "mappings"), CLIENTS + rows[r].room);
		assert_int_equal(flood.passed + flood.dropped, FLOOD);
		if (rows[r].of_nat)
			assert_int_equal(counted_drops(&flood.net), flood.dropped);
		assert_in_range(resident(), 0, memory + (1u << 20));

		net_wait(&flood.net, 370); // half-open ones end, and their blocks rest
		assert_int_equal(net_info(&flood.net, "mappings"), CLIENTS);
		assert_int_equal(net_info(&flood.net, "subscribers"), CLIENTS);
		assert_string_equal(attack(&flood, 0x20000, 77), "next");
		for (uint32_t n = 0; n < CLIENTS; n++)
			client_goes_on(&flood, n);
		net_free(&flood.net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floods_leave_connections_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
