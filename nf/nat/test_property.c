// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat against a model of it: packets by chance of a few hosts and remote ends, both ways, while
// time passes. The model knows what each internal endpoint is outside, from the first packet that
// left until no flow can use it any more.
#include "nf/nat/test_net.h"

enum { HOSTS = 6, PORTS = 8, REMOTES = 3, STEPS = 60000 };

// What the model knows of internal endpoint [proto][host][port].
struct known {
	rte_be32_t address;
	rte_be16_t port; // 0: not mapped
	bool spoken[REMOTES];
};

static struct known known[2][HOSTS][PORTS];
static const char *const protos[] = {"udp", "tcp"};
static const unsigned l4_at = 34;

static uint64_t chance_state;

static unsigned chance(unsigned bound)
{
	chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((chance_state >> 33) % bound);
}

static struct packet packet_of(
	unsigned proto, const char *addresses, unsigned sport, unsigned dport)
{
	struct packet packet;
	char text[256];

	snprintf(text, sizeof(text), "%s %s sport=%u dport=%u data=%u", addresses, protos[proto],
		sport, dport, chance(20));
	packet = net_packet(text);
	if (proto == 1) {
		packet.bytes[l4_at + 13] = 2; // SYN
		flow_checksums(packet.bytes, packet.len);
	}
	return packet;
}

// Nobody else has this external end.
static void assert_unique(unsigned proto, unsigned host, unsigned port)
{
	const struct known *mine = &known[proto][host][port];

	for (unsigned h = 0; h < HOSTS; h++)
		for (unsigned p = 0; p < PORTS; p++) {
			const struct known *other = &known[proto][h][p];

			assert_true(other == mine || other->port == 0 ||
				    other->port != mine->port || other->address != mine->address);
			// A host has one address: paired pooling.
			assert_true(
				h != host || other->port == 0 || other->address == mine->address);
		}
}

static void from_inside(struct net *net)
{
	const unsigned proto = chance(2), host = chance(HOSTS), sport = chance(PORTS);
	const unsigned remote = chance(REMOTES);
	struct known *it = &known[proto][host][sport];
	uint8_t port = INSIDE;
	struct packet packet, expected;
	const char *verdict;
	char text[128];

	snprintf(text, sizeof(text), "ip4 src=10.0.0.%u dst=198.51.100.%u", 1 + host, 1 + remote);
	packet = packet_of(proto, text, 5000 + sport, 53);
	expected = packet;
	verdict = net_pass(net, &packet, &port);
	if (it->port == 0 && strcmp(verdict, "no_port") == 0)
		return;
	assert_string_equal(verdict, "next");
	if (it->port == 0) {
		memcpy(&it->address, packet.bytes + 26, 4);
		memcpy(&it->port, packet.bytes + l4_at, 2);
		assert_unique(proto, host, sport);
	}
	it->spoken[remote] = true;
	memcpy(expected.bytes + 26, &it->address, 4);
	memcpy(expected.bytes + l4_at, &it->port, 2);
	flow_checksums(expected.bytes, expected.len);
	net_same("from inside", &packet, &expected);
}

static void from_outside(struct net *net, bool filters)
{
	const unsigned proto = chance(2), host = chance(HOSTS), dport = chance(PORTS);
	const unsigned remote = chance(REMOTES);
	struct known *it = &known[proto][host][dport];
	const uint8_t *to = (const uint8_t *)&it->address;
	uint8_t port = OUTSIDE;
	struct packet packet, expected;
	const char *verdict;
	char text[128];

	if (it->port == 0)
		return;
	snprintf(text, sizeof(text), "ip4 src=198.51.100.%u dst=%u.%u.%u.%u", 1 + remote, to[0],
		to[1], to[2], to[3]);
	packet = packet_of(proto, text, 53, rte_be_to_cpu_16(it->port));
	expected = packet;
	verdict = net_pass(net, &packet, &port);
	if (filters && !it->spoken[remote]) {
		assert_string_equal(verdict, "filtered");
		return;
	}
	assert_string_equal(verdict, "next");
	it->spoken[remote] = true;
	memcpy(expected.bytes + 30, (const uint8_t[]){10, 0, 0, (uint8_t)(1 + host)}, 4);
	memcpy(expected.bytes + l4_at + 2,
		&(rte_be16_t){rte_cpu_to_be_16((uint16_t)(5000 + dport))}, 2);
	flow_checksums(expected.bytes, expected.len);
	net_same("from outside", &packet, &expected);
}

// To a port that the model says is nobody's.
static void to_nobody(struct net *net)
{
	const unsigned proto = chance(2), dport = 1 + chance(65535);
	uint8_t port = OUTSIDE;
	struct packet packet;

	for (unsigned i = 0; i < HOSTS * PORTS; i++)
		if (known[proto][i / PORTS][i % PORTS].port == rte_cpu_to_be_16((uint16_t)dport))
			return;
	packet = packet_of(proto, "ip4 src=198.51.100.9 dst=203.0.113.1", 53, dport);
	assert_string_equal(net_pass(net, &packet, &port), "no_mapping");
}

static unsigned mapped(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < 2 * HOSTS * PORTS; i++)
		count += known[i / (HOSTS * PORTS)][i / PORTS % HOSTS][i % PORTS].port != 0;
	return count;
}

static void run(const char *config, bool filters, uint64_t seed)
{
	struct net net;

	chance_state = seed;
	memset(known, 0, sizeof(known));
	net_make(&net, config, 0, 1024);
	for (unsigned step = 0; step < STEPS; step++) {
		switch (chance(8)) {
		case 0:
		case 1:
		case 2:
		case 3:
			from_inside(&net);
			break;
		case 4:
			to_nobody(&net);
			break;
		default:
			from_outside(&net, filters);
		}
		assert_int_equal(net_info(&net, "mappings"), mapped());
		if (step % 3000 == 2999) { // all is over
			net_wait(&net, 310);
			memset(known, 0, sizeof(known));
			assert_int_equal(net_info(&net, "mappings"), 0);
			assert_int_equal(net_info(&net, "used"), 0);
		}
	}
	net_free(&net);
}

#define COMMON                                           \
	"'outside': ['right'], 'inside': ['10.0.0.0/8']" \
	", 'pool': ['203.0.113.1', '203.0.113.2']"

static void endpoint_independent(void **state)
{
	run("{" COMMON "}", false, 1);
}

static void filters_by_address_and_port(void **state)
{
	run("{" COMMON ", 'filtering': 'address-and-port-dependent'}", true, 2);
}

// Four blocks for six hosts.
static void a_pool_that_is_too_small(void **state)
{
	run("{" COMMON ", 'ports': '1024-1279', 'block_size': 64}", false, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint_independent),
		cmocka_unit_test(filters_by_address_and_port),
		cmocka_unit_test(a_pool_that_is_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
