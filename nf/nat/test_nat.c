// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat: clauses of RFC 4787, 5382, 5508 as packets in and out; exhaustion; bad configurations. Ports
// are those that hosts have chosen, as far as blocks allow: so the rows know them.
#include "nf/nat/nat.h"
#include "nf/nat/test_net.h"

#include <unistd.h>

// Rows say only what is special about them.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define COMMON "'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1']"
#define OPEN "{" COMMON "}"
#define CLOSED "{" COMMON ", 'filtering': 'address-and-port-dependent'}"
#define BY_ADDRESS "{" COMMON ", 'filtering': 'address-dependent'}"
#define PER_REMOTE                                             \
	"{" COMMON ", 'mapping': 'address-and-port-dependent'" \
	", 'filtering': 'address-and-port-dependent'}"
#define FORWARDS                                                                             \
	"{" COMMON ", 'filtering': 'address-and-port-dependent', 'forwards': ["              \
	"{'proto': 'tcp', 'external': '203.0.113.1', 'port': 80, 'to': '10.0.0.9'"           \
	", 'to_port': 8080}, {'proto': 'udp', 'external': '203.0.113.7', 'port': '500-502'"  \
	", 'to': '10.0.0.9', 'to_port': 700}, {'proto': 'icmp', 'external': '203.0.113.1', " \
	"'to': '10.0.0.9'}]}"

#define A "ip4 src=10.0.0.1 "
#define B "ip4 src=10.0.0.2 "
#define SERVER "ip4 src=10.0.0.9 "
#define X "203.0.113.1 "
#define R "198.51.100.1 "
#define S "198.51.100.2 "
#define TO_X "dst=" X
#define FROM_X "ip4 src=" X
#define FROM_R "ip4 src=" R
// The packet that most rows begin with, and what it becomes.
#define TO_R A "dst=" R "udp sport=1500 dport=53"
#define OF_X FROM_X "dst=" R "udp sport=1500 dport=53"
#define FROM_S "ip4 src=" S

struct step {
	const char *clause; // NULL: of the one before
	const char *config; // a new instance; NULL: as before
	unsigned wait_s; // before it
	uint8_t port; // that it comes in by
	const char *in;
	const char *verdict;
	const char *out; // NULL: dropped, or as it was
	bool turned; // leaves by the port that it came in by
};

static const struct step steps[] = {
	{"4787 REQ-1: mapping is endpoint-independent", OPEN, 0, INSIDE,
		A "dst=" R "udp sport=1500 dport=53 data=9", "next",
		FROM_X "dst=" R "udp sport=1500 dport=53 data=9"},
	{NULL, NULL, 0, INSIDE, A "dst=" S "udp sport=1500 dport=99", "next",
		FROM_X "dst=" S "udp sport=1500 dport=99"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "udp sport=53 dport=1500", "next",
		FROM_R "dst=10.0.0.1 udp sport=53 dport=1500"},
	{"4787 REQ-8: filtering is endpoint-independent", OPEN, 0, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=7 dport=1500 data=3", "next",
		FROM_S "dst=10.0.0.1 udp sport=7 dport=1500 data=3"},
	{NULL, NULL, 0, INSIDE, A "dst=" S "udp sport=1500 dport=7", "next",
		FROM_X "dst=" S "udp sport=1500 dport=7"},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=7 dport=1501", "no_mapping"},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "tcp sport=7 dport=1500 flags=2", "no_mapping"},
	{"4787 REQ-8: filtering by address and port", CLOSED, 0, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=53 dport=1500", "filtered"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "udp sport=54 dport=1500", "filtered"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "udp sport=53 dport=1500", "next",
		FROM_R "dst=10.0.0.1 udp sport=53 dport=1500"},
	{"a denied packet does not stand in the way of a flow", NULL, 0, INSIDE,
		A "dst=" S "udp sport=1500 dport=53", "next",
		FROM_X "dst=" S "udp sport=1500 dport=53"},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=53 dport=1500", "next",
		FROM_S "dst=10.0.0.1 udp sport=53 dport=1500"},
	{"4787 REQ-8: filtering by address", BY_ADDRESS, 0, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=53 dport=1500", "filtered"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "udp sport=54 dport=1500", "next",
		FROM_R "dst=10.0.0.1 udp sport=54 dport=1500"},
	{NULL, NULL, 0, INSIDE, A "dst=" S "udp sport=1500 dport=9", "next",
		FROM_X "dst=" S "udp sport=1500 dport=9"},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=53 dport=1500", "next",
		FROM_S "dst=10.0.0.1 udp sport=53 dport=1500"},
	{"a permit ends with the flows to its address", NULL, 100, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 30, OUTSIDE, FROM_S TO_X "udp sport=77 dport=1500", "filtered"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "udp sport=77 dport=1500", "next",
		FROM_R "dst=10.0.0.1 udp sport=77 dport=1500"},
	{"4787 REQ-5: a mapping lasts two minutes at least", OPEN, 0, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 119, INSIDE, TO_R, "next", OF_X},
	{"4787 REQ-6: a packet from inside refreshes it", NULL, 119, OUTSIDE,
		FROM_S TO_X "udp sport=9 dport=1500", "next",
		FROM_S "dst=10.0.0.1 udp sport=9 dport=1500"},
	{NULL, NULL, 130, OUTSIDE, FROM_S TO_X "udp sport=10 dport=1500", "no_mapping"},
	{"4787 REQ-9, 5382 REQ-8: a hairpin's source is external", OPEN, 0, INSIDE,
		B "dst=" R "udp sport=2500 dport=53", "next",
		FROM_X "dst=" R "udp sport=2500 dport=53"},
	{NULL, NULL, 0, INSIDE, A TO_X "udp sport=1500 dport=2500 data=4", "next",
		FROM_X "dst=10.0.0.2 udp sport=1500 dport=2500 data=4", true},
	{NULL, NULL, 0, INSIDE, B TO_X "udp sport=2500 dport=1500", "next",
		FROM_X "dst=10.0.0.1 udp sport=2500 dport=1500", true},
	{NULL, NULL, 0, INSIDE, A TO_X "udp sport=1500 dport=1500", "next",
		FROM_X "dst=10.0.0.1 udp sport=1500 dport=1500", true},
	{NULL, NULL, 0, INSIDE, A TO_X "udp sport=1500 dport=2501", "no_mapping"},
	{"no hairpins", "{" COMMON ", 'hairpinning': false}", 0, INSIDE,
		B "dst=" R "udp sport=2500 dport=53", "next",
		FROM_X "dst=" R "udp sport=2500 dport=53"},
	{NULL, NULL, 0, INSIDE, A TO_X "udp sport=1500 dport=2500", "hairpin"},
	{"4787 REQ-14: fragments follow their first", OPEN, 0, INSIDE,
		A "dst=" R "id=7 mf=1 udp sport=1500 dport=53 data=8", "next",
		FROM_X "dst=" R "id=7 mf=1 udp sport=1500 dport=53 data=8"},
	{NULL, NULL, 0, INSIDE, A "dst=" R "proto=17 id=7 off=2 data=8", "next",
		FROM_X "dst=" R "proto=17 id=7 off=2 data=8"},
	{NULL, NULL, 0, INSIDE, A "dst=" R "proto=17 id=8 off=2 data=8", "no_first_fragment"},
	{"5382 REQ-1: mapping of TCP", OPEN, 0, INSIDE,
		A "dst=" R "tcp sport=1600 dport=80 flags=2", "next",
		FROM_X "dst=" R "tcp sport=1600 dport=80 flags=2"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "tcp sport=80 dport=1600 flags=12", "next",
		FROM_R "dst=10.0.0.1 tcp sport=80 dport=1600 flags=12"},
	{"5382 REQ-5: established, two hours and four minutes", NULL, 0, INSIDE,
		A "dst=" R "tcp sport=1600 dport=80 flags=10", "next",
		FROM_X "dst=" R "tcp sport=1600 dport=80 flags=10"},
	{NULL, NULL, 7439, OUTSIDE, FROM_R TO_X "tcp sport=80 dport=1600 data=5 flags=10", "next",
		FROM_R "dst=10.0.0.1 tcp sport=80 dport=1600 data=5 flags=10"},
	{"5382 REQ-2: simultaneous open", CLOSED, 0, INSIDE,
		A "dst=" R "tcp sport=1600 dport=80 flags=2", "next",
		FROM_X "dst=" R "tcp sport=1600 dport=80 flags=2"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "tcp sport=80 dport=1600 flags=2", "next",
		FROM_R "dst=10.0.0.1 tcp sport=80 dport=1600 flags=2"},
	{NULL, NULL, 0, INSIDE, A "dst=" R "tcp sport=1600 dport=80 flags=12", "next",
		FROM_X "dst=" R "tcp sport=1600 dport=80 flags=12"},
	{"5382 REQ-4: an unsolicited SYN is not answered", CLOSED, 0, OUTSIDE,
		FROM_R TO_X "tcp sport=80 dport=1600 flags=2", "no_mapping"},
	{"a reset makes no mapping", NULL, 0, INSIDE, A "dst=" R "tcp sport=1 dport=80 flags=4",
		"no_mapping"},
	{"5508 REQ-1: mapping of queries", OPEN, 0, INSIDE,
		A "dst=" R "proto=1 hex=0800000007d00001", "next",
		FROM_X "dst=" R "proto=1 hex=0800000007d00001"},
	{NULL, NULL, 0, INSIDE, A "dst=" S "proto=1 hex=0800000007d00002", "next",
		FROM_X "dst=" S "proto=1 hex=0800000007d00002"},
	{"5508 REQ-2: for a minute at least", NULL, 59, OUTSIDE,
		FROM_R TO_X "proto=1 hex=0000000007d00001", "next",
		FROM_R "dst=10.0.0.1 proto=1 hex=0000000007d00001"},
	{"no answer without a query, no query without a forward", NULL, 0, OUTSIDE,
		FROM_S TO_X "proto=1 hex=0000000007d10001", "no_mapping"},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "proto=1 hex=0800000007d00001", "no_mapping"},
	{NULL, NULL, 0, INSIDE, A "dst=" R "proto=1 hex=0500000007d00001", "unsupported"},
	{"mapping by address and port", PER_REMOTE, 0, INSIDE, TO_R, "next", OF_X},
	{NULL, NULL, 0, OUTSIDE, FROM_S TO_X "udp sport=53 dport=1500", "filtered"},
	{"forwards", FORWARDS, 0, OUTSIDE, FROM_R TO_X "tcp sport=5000 dport=80 flags=2", "next",
		FROM_R "dst=10.0.0.9 tcp sport=5000 dport=8080 flags=2"},
	{NULL, NULL, 0, INSIDE, SERVER "dst=" R "tcp sport=8080 dport=5000 flags=12", "next",
		FROM_X "dst=" R "tcp sport=80 dport=5000 flags=12"},
	{NULL, NULL, 0, OUTSIDE, FROM_R "dst=203.0.113.7 udp sport=9 dport=502", "next",
		FROM_R "dst=10.0.0.9 udp sport=9 dport=702"},
	{NULL, NULL, 0, OUTSIDE, FROM_R "dst=203.0.113.7 udp sport=9 dport=503", "no_mapping"},
	{NULL, NULL, 0, INSIDE, SERVER "dst=" S "udp sport=701 dport=9", "next",
		"ip4 src=203.0.113.7 dst=" S "udp sport=501 dport=9"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "proto=1 hex=0800000000050001", "next",
		FROM_R "dst=10.0.0.9 proto=1 hex=0800000000050001"},
	{NULL, NULL, 0, INSIDE, SERVER "dst=" R "proto=1 hex=0000000000050001", "next",
		FROM_X "dst=" R "proto=1 hex=0000000000050001"},
	{"a hairpin to a forward", NULL, 0, INSIDE, A TO_X "tcp sport=1500 dport=80 flags=2",
		"next", FROM_X "dst=10.0.0.9 tcp sport=1500 dport=8080 flags=2", true},
	{NULL, NULL, 0, INSIDE, SERVER TO_X "tcp sport=8080 dport=1500 flags=12", "next",
		FROM_X "dst=10.0.0.1 tcp sport=80 dport=1500 flags=12", true},
	{"what is not translated", OPEN, 0, INSIDE, "ip4 src=192.0.2.9 dst=" R "udp data=4", "next",
		"ip4 src=192.0.2.9 dst=" R "udp data=4"},
	{NULL, NULL, 0, INSIDE, A "dst=10.7.7.7 udp sport=1 dport=2", "next",
		A "dst=10.7.7.7 udp sport=1 dport=2"},
	{NULL, NULL, 0, OUTSIDE, FROM_R "dst=192.0.2.9 udp sport=1 dport=2", "next",
		FROM_R "dst=192.0.2.9 udp sport=1 dport=2"},
	{NULL, NULL, 0, OUTSIDE, FROM_R "dst=10.0.0.1 udp sport=1 dport=2", "not_external"},
	{NULL, NULL, 0, INSIDE, A "dst=224.0.0.251 udp sport=5353 dport=5353", "unsupported"},
	{NULL, NULL, 0, INSIDE, "type=0806 data=28", "next", "type=0806 data=28"},
	{NULL, NULL, 0, INSIDE, "ip6 udp sport=1 dport=2", "next", "ip6 udp sport=1 dport=2"},
	{NULL, NULL, 0, INSIDE, "ip4 cut=30", "bad_header"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "icmp kind=3 code=1 data=20", "unrelated_error"},
	{"protocols without ports", OPEN, 0, INSIDE, A "dst=" R "proto=50 data=20", "next",
		FROM_X "dst=" R "proto=50 data=20"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "proto=50 data=21", "next",
		FROM_R "dst=10.0.0.1 proto=50 data=21"},
	{NULL, NULL, 0, INSIDE, B "dst=" R "proto=50 data=20", "no_port"},
	{NULL, NULL, 0, INSIDE, B "dst=" S "proto=50 data=20", "next",
		FROM_X "dst=" S "proto=50 data=20"},
	{NULL, NULL, 0, OUTSIDE, FROM_R TO_X "proto=47 data=21", "no_mapping"},
};

static void clauses(void **state)
{
	struct net net = {.nat = NULL};
	const char *clause = NULL;

	for (unsigned i = 0; i < RTE_DIM(steps); i++) {
		const struct step *step = &steps[i];
		struct packet packet, expected;
		uint8_t port = step->port;
		const char *verdict;

		if (step->config != NULL) {
			if (net.nat != NULL)
				net_free(&net);
			net_make(&net, step->config, 0, 1024);
		}
		clause = step->clause != NULL ? step->clause : clause;
		net_wait(&net, step->wait_s);
		packet = net_packet(step->in);
		verdict = net_pass(&net, &packet, &port);
		if (strcmp(verdict, step->verdict) != 0)
			fail_msg("%s: %s: %s, not %s", clause, step->in, verdict, step->verdict);
		if (step->out == NULL)
			continue;
		expected = net_packet(step->out);
		net_same(step->in, &packet, &expected);
		assert_int_equal(port, step->turned ? step->port : !step->port);
	}
	net_free(&net);
}

// An ICMP error, from whom, to whom, about a packet.
static struct packet error_about(const char *head, const struct packet *packet, unsigned quoted)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s icmp kind=3 code=3 hex=", head);

	for (unsigned i = 14; i < packet->len && i < 14 + quoted; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x", packet->bytes[i]);
	return net_packet(text);
}

// RFC 5508 REQ-3 to 6, RFC 5382 REQ-9 and 10, RFC 4787 REQ-12.
static void errors_are_translated_and_end_nothing(void **state)
{
	static const char *const rows[] = {
		A "dst=" R "udp sport=1500 dport=53 data=30",
		A "dst=" R "tcp sport=1500 dport=53 flags=2",
		A "dst=" R "proto=1 hex=0800000007d00001",
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct packet came = net_packet(rows[i]);
		struct packet went = came, error, expected;
		uint8_t port = INSIDE;
		struct net net;

		net_make(&net, OPEN, 0, 64);
		assert_string_equal(net_pass(&net, &went, &port), "next");
		for (unsigned again = 0; again < 2; again++) {
			error = error_about("ip4 src=192.0.2.77 dst=" X, &went, 28);
			port = OUTSIDE;
			assert_string_equal(net_pass(&net, &error, &port), "next");
			expected = error_about("ip4 src=192.0.2.77 dst=10.0.0.1", &came, 28);
			net_same("from a router", &error, &expected);
			error = error_about("ip4 src=" R "dst=" X, &went, 28);
			port = OUTSIDE;
			assert_string_equal(net_pass(&net, &error, &port), "next");
			expected = error_about("ip4 src=" R "dst=10.0.0.1", &came, 28);
			net_same("from the other end", &error, &expected);
		}
		assert_int_equal(net_info(&net, "mappings"), 1);
		net_free(&net);
	}
}

// An error of an inside host, or router, about what came from outside: its source becomes external.
static void errors_from_inside_are_translated(void **state)
{
	static const char *const senders[] = {A "dst=" R, "ip4 src=10.0.9.9 dst=" R};
	struct packet came = net_packet(FROM_R TO_X "udp sport=53 dport=1500 data=2"), went, error,
		      expected;
	struct packet opens = net_packet(A "dst=" R "udp sport=1500 dport=53");
	uint8_t port = INSIDE;
	struct net net;

	net_make(&net, OPEN, 0, 64);
	assert_string_equal(net_pass(&net, &opens, &port), "next");
	went = came;
	port = OUTSIDE;
	assert_string_equal(net_pass(&net, &went, &port), "next");
	for (unsigned i = 0; i < RTE_DIM(senders); i++) {
		error = error_about(senders[i], &went, 28);
		port = INSIDE;
		assert_string_equal(net_pass(&net, &error, &port), "next");
		expected = error_about(FROM_X "dst=" R, &came, 28);
		net_same(senders[i], &error, &expected);
	}
	net_free(&net);
}

static struct packet udp_of(unsigned host, unsigned sport)
{
	char text[128];

	snprintf(text, sizeof(text), "ip4 src=10.0.%u.%u dst=" R "udp sport=%u dport=53",
		host >> 8 & 255, host & 255, sport);
	return net_packet(text);
}

// Each exhaustion has a name, leaves those that are served alone, and ends.
static void exhaustion_is_a_named_drop(void **state)
{
	static const struct {
		const char *config, *drop;
		uint32_t flows;
		unsigned hosts, ports; // that find room
		bool more_hosts; // one more host, or one more port
		bool permits; // are counted, too
	} rows[] = {
		{"{" COMMON ", 'ports': '1024-1279', 'block_size': 64}", "no_port", 4096, 2, 64,
			true},
		{"{" COMMON ", 'block_size': 64, 'blocks_per_subscriber': 2}", "subscriber_limit",
			4096, 3, 128, false},
		{"{" COMMON ", 'mappings': 128}", "mappings_full", 4096, 8, 8, true},
		{OPEN, "flow_table_full", 64, 16, 4, true},
		// A mapping and a permit each; there is room for one mapping more, not for its permit.
		{"{" COMMON ", 'mappings': 258, 'filtering': 'address-dependent'}", "mappings_full",
			4096, 8, 8, true, true},
	};

	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		struct net net;

		net_make(&net, rows[r].config, 0, rows[r].flows);
		for (unsigned round = 0; round < 3; round++) {
			struct packet packet;
			uint8_t port;

			for (unsigned i = 0; i < rows[r].hosts * rows[r].ports; i++) {
				port = INSIDE;
				packet = udp_of(1 + i / rows[r].ports, 3000 + i % rows[r].ports);
				assert_string_equal(net_pass(&net, &packet, &port), "next");
			}
			for (unsigned i = 0; i < 300; i++) {
				port = INSIDE;
				packet = udp_of(rows[r].more_hosts ? 700 + i : 1, 9000 + i);
				assert_string_equal(net_pass(&net, &packet, &port), rows[r].drop);
			}
			port = INSIDE; // those that are served do not know of it
			packet = udp_of(1, 3000);
			assert_string_equal(net_pass(&net, &packet, &port), "next");
			assert_int_equal(net_info(&net, "mappings"),
				rows[r].hosts * rows[r].ports * (1u + rows[r].permits));
			net_wait(&net, 250); // flows end, and their blocks rest
			assert_int_equal(net_info(&net, "mappings"), 0);
			assert_int_equal(net_info(&net, "used"), 0);
			assert_int_equal(net_info(&net, "subscribers"), 0);
		}
		net_free(&net);
	}
}

// Ports of workers do not overlap: answers tell whose they are.
static void each_worker_has_ports_of_its_own(void **state)
{
	for (unsigned worker = 0; worker < 2; worker++) {
		struct net net;

		net_make(&net, OPEN, worker, 4096);
		for (unsigned i = 0; i < 400; i++) {
			struct packet packet = udp_of(1 + i / 20, 1000 + i * 150);
			uint8_t port = INSIDE;
			unsigned is;

			assert_string_equal(net_pass(&net, &packet, &port), "next");
			is = rte_be_to_cpu_16(cv_load_be16(packet.bytes + 34));
			assert_in_range(
				is, worker == 0 ? 1024 : 33280, worker == 0 ? 33279 : 65535);
		}
		net_free(&net);
	}
}

// A burst whose packets lie in one frame, against each alone.
static void a_convoy_is_as_its_packets(void **state)
{
	enum { N = 48 };
	struct net alone, together;
	struct cv_view views[N];
	uint8_t verdicts[N], frame[N * 128];
	struct packet expected[N];
	unsigned at = 0;

	net_make(&alone, OPEN, 0, 1024);
	net_make(&together, OPEN, 0, 1024);
	for (unsigned round = 0; round < 3; round++, at = 0) {
		for (unsigned i = 0; i < N; i++) {
			uint8_t port = INSIDE;

			// Of hosts whose ports are of different blocks, so that they are kept.
			expected[i] = udp_of(1 + i % 16, 2048 + i % 16 * 512 + i / 16);
			memcpy(frame + at, expected[i].bytes, expected[i].len);
			views[i] = (struct cv_view){.in = INSIDE, .out = OUTSIDE};
			cv_view_set(&views[i], frame + at, expected[i].len);
			at += expected[i].len;
			assert_string_equal(net_pass(&alone, &expected[i], &port), "next");
		}
		assert_int_equal(
			cv_flow_process(together.group, &together.worker, views, verdicts, N), 0);
		for (unsigned i = 0; i < N; i++)
			assert_memory_equal(views[i].data, expected[i].bytes, expected[i].len);
	}
	net_free(&alone);
	net_free(&together);
}

static void blocks_are_logged(void **state)
{
	char path[] = "/tmp/convoy-nat-log-XXXXXX", config[256], line[512];
	unsigned taken = 0, given = 0;
	FILE *file;
	struct net net;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(config, sizeof(config), "{" COMMON ", 'block_log': '%s'}", path);
	net_make(&net, config, 0, 64);
	for (unsigned i = 0; i < 3; i++) {
		struct packet packet = udp_of(1 + i, 2048 + 512 * i);
		uint8_t port = INSIDE;

		assert_string_equal(net_pass(&net, &packet, &port), "next");
	}
	net_wait(&net, 130);
	net_free(&net);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		json_t *object = json_loads(line, 0, NULL);
		const char *event = json_string_value(json_object_get(object, "event"));

		assert_non_null(event);
		*(strcmp(event, "taken") == 0 ? &taken : &given) += 1;
		assert_string_equal(
			json_string_value(json_object_get(object, "external")), "203.0.113.1");
		assert_int_equal(json_integer_value(json_object_get(object, "last_port")) -
					 json_integer_value(json_object_get(object, "first_port")),
			511);
		json_decref(object);
	}
	fclose(file);
	unlink(path);
	assert_int_equal(taken, 3);
	assert_int_equal(given, 3);
}

// A file is made when packets come, not when a configuration is read.
static void a_configuration_alone_makes_no_log(void **state)
{
	char folder[] = "/tmp/convoy-nat-log-XXXXXX", path[64];
	struct cv_error error = {{0}};
	json_t *config;
	void *nat;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	config = json_pack("{s:[s], s:[s], s:[s], s:s}", "outside", "right", "inside", "10.0.0.0/8",
		"pool", "203.0.113.1", "block_log", path);
	nat = cv_nf_create(&cv_nf_nat, config, packet_env(), &error);
	assert_non_null(nat);
	cv_nf_destroy(&cv_nf_nat, nat);
	json_decref(config);
	assert_int_equal(rmdir(folder), 0); // it is empty
}

// Pools of one prefix, with a forward's address among them or behind, and pools with gaps.
static void knows_its_addresses(void **state)
{
	static const struct {
		const char *pool, *forward;
		const char *external; // the last byte of each in 203.0.113.0/24: 'x'
	} rows[] = {
		{"'203.0.113.1'", "203.0.113.1", ".x"},
		{"'203.0.113.4/30'", "203.0.113.5", "....xxxx"},
		{"'203.0.113.4/30'", "203.0.113.8", "....xxxxx"},
		{"'203.0.113.4/30'", "203.0.113.2", "..x.xxxx"},
		{"'203.0.113.8/30', '203.0.113.0/31'", "203.0.113.5", "xx...x..xxxx"},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct cv_nat *nat;
		char config[256];

		snprintf(config, sizeof(config),
			"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': [%s], 'forwards':"
			" [{'proto': 'icmp', 'external': '%s', 'to': '10.0.0.6'}]}",
			rows[i].pool, rows[i].forward);
		nat = packet_nf(&cv_nf_nat, config, NULL);
		for (uint32_t at = 203u << 24 | 112 << 8; at < (203u << 24 | 115 << 8); at++) {
			const uint32_t last = at - (203u << 24 | 113 << 8); // if it is among these
			const bool is =
				last < strlen(rows[i].external) && rows[i].external[last] == 'x';

			assert_int_equal(cv_nat_is_external(nat, rte_cpu_to_be_32(at)), is);
		}
		assert_false(cv_nat_is_external(nat, 0));
		assert_false(cv_nat_is_external(nat, UINT32_MAX));
		cv_nf_destroy(&cv_nf_nat, (void *)(uintptr_t)nat);
	}
}

#define WITH(text) "{" COMMON ", " text "}"
#define FORWARD(text) WITH("'forwards': [{" text "}]")

static void refuses_what_cannot_be(void **state)
{
	static const struct {
		const char *config, *words;
	} rows[] = {
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': []}", "pool"},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8']}", "pool"},
		{"{'outside': [], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1']}", "outside"},
		{"{'outside': ['up'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1']}",
			"no port is called \"up\""},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['10.1.0.1']}",
			"is inside, too (inside[0])"},
		{"{'outside': ['right'], 'inside': ['10.0.0.1/8'], 'pool': ['203.0.113.1']}",
			"host bits are set; write \"10.0.0.0/8\""},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': "
		 "['203.0.113.0/28', '203.0.113.3']}",
			"203.0.113.3 is in the pool already"},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.0.0/16']}",
			"more than 4096 addresses"},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['2001:db8::/64']}",
			"IPv4"},
		{"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['224.0.0.1']}",
			"is not of hosts"},
		{WITH("'ports': '5000-4000'"), "the range runs backwards; write \"4000-5000\""},
		{WITH("'ports': '0-4000'"), "from 1 up"},
		{WITH("'ports': '1024-1100'"), "hold 0 blocks of 512 ports"},
		{WITH("'block_size': 100"), "block_size"},
		{WITH("'mapping': 'address-and-port-dependent'"), "write filtering"},
		{WITH("'block_log': '/nowhere/log'"), "cannot be written"},
		{WITH("'block_log': '/tmp'"), "Is a directory"},
		{WITH("'block_log': '/dev/null'"), "Invalid argument"},
		{FORWARD("'proto': 'tcp', 'external': '203.0.113.1', 'port': 8080, "
			 "'to': '10.0.0.9'"),
			"the pool gives these ports to anybody"},
		{FORWARD("'proto': 'tcp', 'external': '203.0.113.1', 'to': '10.0.0.9'"),
			"port: is missing"},
		{FORWARD("'proto': 'icmp', 'external': '203.0.113.1', 'port': 1, 'to': '10.0.0.9'"),
			"icmp has no ports"},
		{FORWARD("'proto': 'udp', 'external': '203.0.113.1', 'port': '1-100', "
			 "'to': '10.0.0.9', 'to_port': 65500"),
			"end above 65535"},
		{WITH("'forwards': [{'proto': 'udp', 'external': '203.0.113.1', 'port': '1-9', "
		      "'to': '10.0.0.9'}, {'proto': 'udp', 'external': '203.0.113.1', 'port': 9, "
		      "'to': '10.0.0.8'}]"),
			"203.0.113.1 port 9 is forwarded twice"},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++)
		packet_refused(&cv_nf_nat, rows[i].config, rows[i].words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clauses),
		cmocka_unit_test(errors_are_translated_and_end_nothing),
		cmocka_unit_test(errors_from_inside_are_translated),
		cmocka_unit_test(exhaustion_is_a_named_drop),
		cmocka_unit_test(each_worker_has_ports_of_its_own),
		cmocka_unit_test(a_convoy_is_as_its_packets),
		cmocka_unit_test(blocks_are_logged),
		cmocka_unit_test(a_configuration_alone_makes_no_log),
		cmocka_unit_test(knows_its_addresses),
		cmocka_unit_test(refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
