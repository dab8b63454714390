// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A router with addresses, packet by packet: what comes in, and every packet that leaves because of it.
#include <rte_cycles.h>

#include "nf/router/network.h"
#include "packet/arp.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/neighbour_discovery.h"
#include "tests/support/function_rig.h"
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_router;

// left: 10.0.0.1/24 and 2001:db8:1::1/64, right: 192.0.2.1/24 and 2001:db8:2::1/64. The ports' MTU
// is 1500.
static const char config[] =
	"{'addresses': {'left': ['10.0.0.1/24', '2001:db8:1::1/64'],"
	"'right': ['192.0.2.1/24', '2001:db8:2::1/64']},"
	"'routes': [{'prefix': '10.9.0.0/16', 'via': '192.0.2.9'},"
	"{'prefix': '10.8.0.0/16', 'nexthops': [{'via': '192.0.2.9'}, {'via': '192.0.2.8'}]},"
	"{'prefix': '10.7.0.0/16', 'type': 'blackhole'},"
	"{'prefix': '10.6.0.0/16', 'type': 'unreachable'},"
	"{'prefix': '10.5.0.0/16', 'type': 'prohibit'}],"
	"'icmp_rate': 10}";

#define LEFT_MAC "02:aa:00:00:00:00"
#define RIGHT_MAC "02:aa:00:00:00:01"
#define HOST_MAC "02:00:00:00:00:02" // of 10.0.0.2
#define NEXT_MAC "02:00:00:00:00:09" // of 192.0.2.9
#define TO_LEFT "dst=" LEFT_MAC " src=" HOST_MAC " "
#define FROM_HOST TO_LEFT "ip4 src=10.0.0.2 "

static struct rte_mempool *pool;
static struct function_rig rig;
static unsigned since; // packets that had left before the last one came in
static struct cv_nf_counters before; // and what had been counted

static int begin(void **state)
{
	*state = packet_nf(&cv_nf_router, config, NULL);
	rig_begin(&rig, &cv_nf_router, *state, pool);
	return 0;
}

static int end(void **state)
{
	assert_true(rig_conserved(&rig));
	since = 0;
	cv_nf_router.destroy(*state);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

static void receive(unsigned in, const char *text)
{
	struct packet packet = packet_make(text);

	since = rig.outs;
	before = rig.counters;
	assert_true(rig_receive(&rig, in, packet.bytes, packet.len));
}

static unsigned left_now(void)
{
	return rig.outs - since;
}

static void expect_bytes(unsigned at, unsigned port, const uint8_t *bytes, uint16_t len)
{
	const struct rig_out *out = &rig.out[(since + at) % RIG_OUT_MAX];

	if (at >= left_now())
		fail_msg("%u packets left, not %u", left_now(), at + 1);
	assert_int_equal(out->port, port);
	assert_int_equal(out->len, RTE_MAX(len, 60u));
	for (uint16_t i = 0; i < len; i++)
		if (out->bytes[i] != bytes[i])
			fail_msg("packet %u: byte %u is %02x, not %02x", at, i, out->bytes[i],
				bytes[i]);
}

static void expect(unsigned at, unsigned port, const char *text)
{
	struct packet packet = packet_make(text);

	expect_bytes(at, port, packet.bytes, packet.len);
}

static void expect_drop(const char *reason)
{
	uint8_t verdict = packet_verdict(&cv_nf_router, reason);

	assert_int_equal(
		rig.counters.drops[verdict - CV_DROP(0)] - before.drops[verdict - CV_DROP(0)], 1);
}

// The host on the left, and the next hop on the right, ask for the router, which knows them then.
static void introduce(void)
{
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		   "hex=00010800060400010200000000020a0000020000000000000a000001");
	receive(1, "dst=ff:ff:ff:ff:ff:ff src=" NEXT_MAC " type=0806 "
		   "hex=0001080006040001020000000009c0000209000000000000c0000201");
}

static void arp_is_answered(void **state)
{
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		   "hex=00010800060400010200000000020a0000020000000000000a000001");
	assert_int_equal(left_now(), 1);
	expect(0, 0,
		"dst=" HOST_MAC " src=" LEFT_MAC " type=0806 "
		"hex=000108000604000202aa000000000a0000010200000000020a000002");
	assert_int_equal(rig.counters.absorbed, 1);
	// With the tags that it came with.
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " vlan id=5 type=0806 "
		   "hex=00010800060400010200000000020a0000020000000000000a000001");
	expect(0, 0,
		"dst=" HOST_MAC " src=" LEFT_MAC " vlan id=5 type=0806 "
		"hex=000108000604000202aa000000000a0000010200000000020a000002");
	// A probe (RFC 5227), for which nobody has the address yet.
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		   "hex=0001080006040001020000000002000000000000000000000a000001");
	expect(0, 0,
		"dst=" HOST_MAC " src=" LEFT_MAC " type=0806 "
		"hex=000108000604000202aa000000000a00000102000000000200000000");
	// For another address, of another port, sent to another: nothing.
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		   "hex=00010800060400010200000000020a0000020000000000000a000005");
	assert_int_equal(left_now(), 0);
	receive(0, "dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		   "hex=00010800060400010200000000020a000002000000000000c0000201");
	assert_int_equal(left_now(), 0);
	receive(0, "dst=02:00:00:00:00:77 src=" HOST_MAC " type=0806 "
		   "hex=00010800060400010200000000020a0000020000000000000a000001");
	assert_int_equal(left_now(), 0);
	expect_drop("other_mac");
	receive(0, "dst=ff:ff:ff:ff:ff:ff type=0806 hex=0001080006040001");
	expect_drop("bad_header");
	(void)state;
}

static void packets_wait_for_their_neighbour(void **state)
{
	introduce();
	receive(0, FROM_HOST "dst=192.0.2.7 udp data=30");
	assert_int_equal(rig.counters.held, 1);
	assert_int_equal(left_now(), 1);
	expect(0, 1,
		"dst=ff:ff:ff:ff:ff:ff src=" RIGHT_MAC " type=0806 "
		"hex=000108000604000102aa00000001c0000201000000000000c0000207");
	receive(0, FROM_HOST "dst=192.0.2.7 udp data=31"); // asked for already
	assert_int_equal(left_now(), 0);
	receive(1, "dst=" RIGHT_MAC " src=02:00:00:00:00:07 type=0806 "
		   "hex=0001080006040002020000000007c000020702aa00000001c0000201");
	assert_int_equal(left_now(), 0);
	since = rig.outs;
	rig_tick(&rig);
	// The first tick announces four addresses, before or behind.
	assert_int_equal(left_now(), 6);
	assert_int_equal(rig.counters.released, 2);
	receive(0, FROM_HOST "dst=192.0.2.7 udp data=32");
	expect(0, 1,
		"dst=02:00:00:00:00:07 src=" RIGHT_MAC
		" ip4 src=10.0.0.2 dst=192.0.2.7 ttl=63 udp data=32");
	(void)state;
}

// The neighbour 192.0.2.7 says where it is, and what waits for it goes.
static void resolve(void)
{
	since = rig.outs;
	receive(1, "dst=" RIGHT_MAC " src=02:00:00:00:00:07 type=0806 "
		   "hex=0001080006040002020000000007c000020702aa00000001c0000201");
	rig_tick(&rig);
}

// A packet that is too long for the port waits whole, and goes in fragments.
static void fragments_wait_for_their_neighbour(void **state)
{
	unsigned fragments = 0, bytes = 0;

	introduce();
	rig_tick(&rig);
	receive(0, FROM_HOST "dst=192.0.2.7 id=7 udp data=1900");
	assert_int_equal(rig.counters.held, 1);
	assert_int_equal(left_now(), 1); // the request
	resolve();
	for (unsigned i = 0; i < left_now(); i++) {
		const struct rig_out *out = &rig.out[(since + i) % RIG_OUT_MAX];
		const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(out->bytes + 14);

		if (ip->version_ihl != 0x45)
			continue;
		assert_int_equal(out->port, 1);
		assert_memory_equal(out->bytes, ((const uint8_t[]){2, 0, 0, 0, 0, 7}), CV_MAC_LEN);
		assert_int_equal(cv_ipv4_check(ip, out->len - 14), 20);
		assert_in_range(rte_be_to_cpu_16(ip->total_len), 21, 1500);
		bytes += rte_be_to_cpu_16(ip->total_len) - 20;
		fragments++;
	}
	assert_int_equal(fragments, 2);
	assert_int_equal(bytes, 1908);
	assert_int_equal(rig.counters.released, 1);
	(void)state;
}

// As many packets wait for one neighbour as may, and not more; those for others wait beside them.
static void holds_are_bounded(void **state)
{
	char text[200];

	introduce();
	rig_tick(&rig);
	for (unsigned i = 0; i < 1000; i++) {
		receive(0, FROM_HOST "dst=192.0.2.7 udp data=30");
		if (i >= CV_WAIT_EACH)
			expect_drop("wait_full");
	}
	assert_int_equal(rig.counters.held, CV_WAIT_EACH);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), FROM_HOST "dst=192.0.2.%u udp data=30", 10 + i % 200);
		receive(0, text);
	}
	assert_int_equal(rig.counters.held, CV_WAIT_PACKETS);
	assert_int_equal(rte_mempool_in_use_count(pool), CV_WAIT_PACKETS);
	receive(0, FROM_HOST "dst=10.9.1.1 udp data=30"); // who is known is not disturbed
	assert_int_equal(left_now(), 1);
	resolve();
	assert_int_equal(rig.counters.released, CV_WAIT_EACH);
	(void)state;
}

// Without a buffer left nothing is made, what can go on goes on, and nothing is lost count of.
static void an_empty_pool_is_survived(void **state)
{
	static const char *const all[] = {
		FROM_HOST "dst=10.9.1.1 udp data=30",
		FROM_HOST "dst=10.9.1.1 id=7 udp data=1800",
		FROM_HOST "dst=192.0.2.7 udp data=30",
		FROM_HOST "dst=198.51.100.1 udp data=30",
		FROM_HOST "dst=10.0.0.1 udp data=30",
		"dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " type=0806 "
		"hex=00010800060400010200000000020a0000020000000000000a000001",
	};
	struct rte_mbuf *taken[1023];
	unsigned count = 0, outs;

	introduce();
	while (count < RTE_DIM(taken) - 1 && (taken[count] = rte_pktmbuf_alloc(pool)) != NULL)
		count++;
	for (size_t i = 0; i < RTE_DIM(all); i++) { // one buffer, which each takes
		receive(0, all[i]);
		assert_true(rig_conserved(&rig));
		if (i == 0)
			assert_int_equal(left_now(), 1);
		if (i == 1)
			expect_drop("no_buffer");
		if (i == 2) { // it waits: with it none is left
			assert_int_equal(rig.counters.held, 1);
			rte_pktmbuf_free(taken[--count]);
		}
	}
	outs = rig.outs;
	rig_tick(&rig);
	rte_pktmbuf_free_bulk(taken, count);
	resolve();
	assert_true(rig.outs > outs);
	assert_int_equal(rig.counters.released, 1);
	(void)state;
}

static void next_hops_are_learned(void **state)
{
	unsigned requests = 0;

	introduce();
	receive(0, FROM_HOST "dst=10.9.1.1 udp data=30");
	expect(0, 1,
		"dst=" NEXT_MAC " src=" RIGHT_MAC
		" ip4 src=10.0.0.2 dst=10.9.1.1 ttl=63 udp data=30");
	// Of two next hops one does not answer: all flows take the other.
	for (unsigned i = 1; i < 30; i++) {
		char text[200];

		snprintf(text, sizeof(text), FROM_HOST "dst=10.8.1.%u udp data=30", i);
		receive(0, text);
		requests += left_now() - 1; // for the other's address
		assert_memory_equal(rig.out[since % RIG_OUT_MAX].bytes,
			((const uint8_t[]){2, 0, 0, 0, 0, 9}), CV_MAC_LEN);
	}
	assert_int_equal(requests, 1);
	assert_int_equal(rig.counters.held, 0);
	(void)state;
}

// Of two next hops the flow's own does not answer, and nothing has gone to the other one yet.
static void an_idle_next_hop_takes_over(void **state)
{
	static const char packet[] = FROM_HOST "dst=10.8.1.1 udp data=30";
	char text[300];
	unsigned other;

	receive(0, packet);
	assert_int_equal(rig.counters.held, 1);
	assert_int_equal(left_now(), 2); // both are asked, its own first
	other = 17u - rig.out[since % RIG_OUT_MAX].bytes[41];
	assert_true(other == 8 || other == 9);
	receive(0, packet);
	assert_int_equal(left_now(), 0);
	// The other one asks for the router: where it is is known, and it is believed for now.
	snprintf(text, sizeof(text),
		"dst=ff:ff:ff:ff:ff:ff src=02:00:00:00:00:%02x type=0806 "
		"hex=00010800060400010200000000%02xc00002%02x000000000000c0000201",
		other, other, other);
	receive(1, text);
	for (unsigned i = 0; i < 3; i++) {
		receive(0, packet);
		assert_int_equal(left_now(), 1);
		assert_int_equal(rig.out[since % RIG_OUT_MAX].port, 1);
		assert_int_equal(rig.out[since % RIG_OUT_MAX].bytes[5], other);
	}
	assert_int_equal(rig.counters.held, 2);
	(void)state;
}

// The error that must leave about what came in.
static void expect_error(const char *text, enum cv_icmp_reason reason, uint32_t value, uint16_t id)
{
	const struct cv_icmp_error error = {.reason = reason, .value = value};
	struct packet packet = packet_make(text),
		      want = packet_make("dst=" HOST_MAC " src=" LEFT_MAC);
	const uint8_t *ip = packet.bytes + CV_ETHER_LEN;
	const bool v6 = ip[0] >> 4 == 6;
	uint8_t source[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};

	memcpy(want.bytes + 12, packet.bytes + 12, 2);
	want.len = CV_ETHER_LEN + (v6 ? cv_icmpv6_error_len(ip) : cv_icmpv4_error_len(ip));
	if (v6)
		cv_icmpv6_error(want.bytes + CV_ETHER_LEN, ip, &error, source);
	else
		cv_icmpv4_error(want.bytes + CV_ETHER_LEN, ip, &error, RTE_BE32(0x0a000001), id);
	expect_bytes(0, 0, want.bytes, want.len);
}

static void errors_are_sent(void **state)
{
	static const struct {
		const char *text, *drop;
		enum cv_icmp_reason reason;
		uint32_t value;
	} rows[] = {
		{FROM_HOST "dst=10.9.1.1 ttl=1 udp data=30", "ttl_expired", CV_ICMP_TIME_EXCEEDED,
			0},
		{FROM_HOST "dst=198.51.100.1 udp data=30", "no_route", CV_ICMP_NO_ROUTE, 0},
		{FROM_HOST "dst=10.6.0.1 udp data=30", "no_route", CV_ICMP_HOST_UNREACHABLE, 0},
		{FROM_HOST "dst=10.5.0.1 udp data=30", "no_route", CV_ICMP_PROHIBITED, 0},
		{FROM_HOST "dst=10.9.1.1 df=1 udp data=1473", "too_big", CV_ICMP_TOO_BIG, 1500},
		{FROM_HOST "dst=10.0.0.1 udp data=30", "not_served", CV_ICMP_PORT_UNREACHABLE, 0},
		{FROM_HOST "dst=10.0.0.1 sctp data=30", "not_served", CV_ICMP_PROTOCOL_UNREACHABLE,
			0},
	};
	static const char *const silent[] = {
		FROM_HOST "dst=10.7.0.1 udp",
		FROM_HOST "dst=10.9.1.1 ttl=1 icmp kind=3",
		FROM_HOST "dst=10.9.1.1 ttl=1 off=5 proto=17 data=30",
		FROM_HOST "dst=10.0.0.255 udp",
		FROM_HOST "dst=10.0.0.1 mf=1 udp data=8",
		FROM_HOST "dst=192.0.2.1 tcp data=30", // its checksum is wrong
		"dst=ff:ff:ff:ff:ff:ff src=" HOST_MAC " ip4 src=10.0.0.2 dst=198.51.100.1 udp",
		TO_LEFT "ip4 src=10.0.0.1 dst=198.51.100.1 udp",
		TO_LEFT "ip4 src=10.0.0.255 dst=198.51.100.1 udp",
		"dst=02:00:00:00:00:77 src=" HOST_MAC " ip4 src=10.0.0.2 dst=198.51.100.1 udp",
	};

	introduce();
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		receive(0, rows[i].text);
		expect_drop(rows[i].drop);
		expect_error(rows[i].text, rows[i].reason, rows[i].value, (uint16_t)i);
		assert_int_equal(left_now(), 1);
	}
	for (size_t i = 0; i < RTE_DIM(silent); i++) {
		receive(0, silent[i]);
		if (left_now() != 0)
			fail_msg("%s: an answer", silent[i]);
	}
	// icmp_rate: 10 at once, and then ten a second.
	for (unsigned i = 0; i < 100; i++) {
		receive(0, FROM_HOST "dst=198.51.100.1 udp data=30");
		if (i >= 50 && left_now() == 0)
			return;
	}
	fail_msg("no limit");
	(void)state;
}

static void packets_are_fragmented(void **state)
{
	introduce();
	receive(0, FROM_HOST "dst=10.9.1.1 id=7 udp data=1800");
	assert_int_equal(left_now(), 2);
	assert_int_equal(rig.out[since].len, 14 + 1500);
	assert_int_equal(rig.out[since + 1].len, 14 + 20 + 1808 - 1480);
	for (unsigned i = 0; i < 2; i++) {
		const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(rig.out[since + i].bytes + 14);

		assert_int_equal(rig.out[since + i].port, 1);
		assert_memory_equal(rig.out[since + i].bytes, ((const uint8_t[]){2, 0, 0, 0, 0, 9}),
			CV_MAC_LEN);
		assert_int_equal(cv_ipv4_check(ip, rig.out[since + i].len - 14), 20);
		assert_int_equal(ip->ttl, 63);
		assert_int_equal(ip->fragment, i == 0 ? CV_IPV4_MF : rte_cpu_to_be_16(1480 / 8));
	}
	(void)state;
}

// A frame with more behind the IP packet than the next port takes leaves without that.
static void padding_is_taken_off(void **state)
{
	introduce();
	receive(0, FROM_HOST "dst=10.9.1.1 udp data=18 pad=1600");
	expect(0, 1,
		"dst=" NEXT_MAC " src=" RIGHT_MAC
		" ip4 src=10.0.0.2 dst=10.9.1.1 ttl=63 udp data=18");
	(void)state;
}

static void echo_is_answered(void **state)
{
	struct packet packet = packet_make(FROM_HOST "dst=192.0.2.1 ttl=1 icmp kind=8 data=40");
	uint8_t *icmp = packet.bytes + 34;
	rte_be16_t sum = cv_checksum(icmp, packet.len - 34u);
	uint8_t want[100] = {2, 0, 0, 0, 0, 2, 2, 0xaa, 0, 0, 0, 0, 8, 0};

	introduce();
	memcpy(icmp + 2, &sum, sizeof(sum));
	since = rig.outs;
	before = rig.counters;
	rig_receive(&rig, 0, packet.bytes, packet.len);
	cv_icmpv4_echo(want + 14, packet.bytes + 14, RTE_BE32(0xc0000201), 0);
	expect_bytes(0, 0, want, packet.len);
	assert_int_equal(rig.counters.absorbed - before.absorbed, 1);
	(void)state;
}

// What came in a tunnel, to an own address: an answer would not be in it.
static void tunnels_are_not_answered(void **state)
{
	struct packet packet = packet_make(FROM_HOST "dst=192.0.2.1 icmp kind=8 data=40");
	uint8_t *icmp = packet.bytes + 34;
	rte_be16_t sum = cv_checksum(icmp, packet.len - 34u);
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct cv_burst burst;
	char *data;

	introduce();
	memcpy(icmp + 2, &sum, sizeof(sum));
	data = rte_pktmbuf_append(mbuf, 50 + packet.len);
	memset(data, 0, 50);
	memcpy(data + 50, packet.bytes, packet.len);
	cv_burst_load(&burst, &mbuf, 1, 0, 1, &rig.ports[0]);
	cv_view_set(&burst.views[0], (uint8_t *)data + 50, packet.len);
	burst.views[0].before = 50;
	since = rig.outs;
	before = rig.counters;
	rig.received++;
	cv_path_run(&rig.path, &rig.worker, &burst);
	assert_int_equal(left_now(), 0);
	expect_drop("not_served");
	(void)state;
}

// Nor is what comes from an address that no host has.
static void sources_of_nobody_are_not_answered(void **state)
{
	static const struct {
		const char *source;
		bool answered;
	} rows[] = {
		{"2001:db8:1::2", true},
		{"fe80::2", true},
		{"ff02::1", false},
		{"ff0e::7", false},
		{"::", false},
		{"::1", false},
	};

	introduce();
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		char text[200];
		struct packet packet;

		snprintf(text, sizeof(text),
			TO_LEFT "ip6 src=%s dst=2001:db8:1::1 nh=58 hex=8000000000010001 data=8",
			rows[i].source);
		packet = packet_make(text);
		cv_icmpv6_checksum_set(packet.bytes + CV_ETHER_LEN);
		since = rig.outs;
		before = rig.counters;
		assert_true(rig_receive(&rig, 0, packet.bytes, packet.len));
		// The neighbour is not known: it is asked for.
		assert_int_equal(left_now(), rows[i].answered);
		expect_drop(rows[i].answered ? "no_neighbour" : "martian");
	}
	(void)state;
}

#define TO_ROUTER_V6 TO_LEFT "ip6 src=2001:db8:1::2 dst=2001:db8:1::1 "

// RFC 4443 section 3.4, of packets to the router itself.
static void parameter_problems(void)
{
	static const struct {
		const char *text;
		enum cv_icmp_reason reason;
		uint32_t pointer;
	} rows[] = {
		{TO_ROUTER_V6 "hop=1 nh=200 data=30", CV_ICMP_PROTOCOL_UNREACHABLE, 6},
		{TO_ROUTER_V6 "nh=60 hex=c800010400000000 data=9", CV_ICMP_PROTOCOL_UNREACHABLE,
			40},
		{TO_ROUTER_V6 "nh=60 hex=11000104000000001100010400000000",
			CV_ICMP_PORT_UNREACHABLE, 0},
		{TO_ROUTER_V6 "nh=60 hex=1100840200000000 data=8", CV_ICMP_UNKNOWN_OPTION, 42},
		{TO_ROUTER_V6 "nh=60 hex=1100000000c40100 data=8", CV_ICMP_UNKNOWN_OPTION, 45},
		{TO_ROUTER_V6 "nh=43 hex=1100000100000000 data=8", CV_ICMP_PARAMETER, 42},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		receive(0, rows[i].text);
		expect_drop("not_served");
		expect_error(rows[i].text, rows[i].reason, rows[i].pointer, 0);
	}
	receive(0, TO_ROUTER_V6 "nh=60 hex=1100440200000000 data=8"); // asks to be discarded
	assert_int_equal(left_now(), 0);
}

// A solicitation for the router's address from the host; the advertisement; then a packet there.
static void solicitations_are_answered(void **state)
{
	static const uint8_t host_mac[CV_MAC_LEN] = {2, 0, 0, 0, 0, 2};
	static const uint8_t left_mac[CV_MAC_LEN] = {2, 0xaa, 0, 0, 0, 0};
	struct cv_nd nd = {.type = CV_ND_SOLICITATION, .has_mac = true};
	uint8_t frame[14 + CV_ND_LEN], want[14 + CV_ND_LEN];

	inet_pton(AF_INET6, "2001:db8:1::2", nd.src);
	inet_pton(AF_INET6, "2001:db8:1::1", nd.target);
	cv_nd_group(nd.target, nd.dst);
	memcpy(nd.mac, host_mac, CV_MAC_LEN);
	cv_ipv6_group_mac(nd.dst, frame);
	memcpy(frame + 6, host_mac, CV_MAC_LEN);
	memcpy(frame + 12, "\x86\xdd", 2);
	cv_nd_write(frame + 14, &nd);
	assert_true(rig_receive(&rig, 0, frame, sizeof(frame)));

	memcpy(nd.dst, nd.src, 16);
	memcpy(nd.src, nd.target, 16);
	nd.type = CV_ND_ADVERTISEMENT;
	nd.flags = CV_ND_ROUTER | CV_ND_SOLICITED | CV_ND_OVERRIDE;
	memcpy(nd.mac, left_mac, CV_MAC_LEN);
	memcpy(want, host_mac, CV_MAC_LEN);
	memcpy(want + 6, left_mac, CV_MAC_LEN);
	memcpy(want + 12, "\x86\xdd", 2);
	cv_nd_write(want + 14, &nd);
	expect_bytes(0, 0, want, sizeof(want));

	receive(0, TO_LEFT "ip6 src=2001:db8:1::2 dst=2001:db8:9::1 udp data=30");
	expect_drop("no_route");
	expect_error(TO_LEFT "ip6 src=2001:db8:1::2 dst=2001:db8:9::1 udp data=30",
		CV_ICMP_NO_ROUTE, 0, 0);
	parameter_problems();
	(void)state;
}

// TCP to its own addresses is reset; what is a reset, or not sound, is not answered.
static void connections_are_refused(void **state)
{
	introduce();
	receive(0, FROM_HOST "dst=192.0.2.1 ttl=1 proto=6 "
			     "hex=1f900050000003e80000000050021000b0170000");
	expect_drop("not_served");
	expect(0, 0,
		"dst=" HOST_MAC " src=" LEFT_MAC " ip4 src=192.0.2.1 dst=10.0.0.2 proto=6 "
		"hex=00501f9000000000000003e950140000c0040000");
	// What has an acknowledgement is reset at its number.
	receive(0, FROM_HOST "dst=192.0.2.1 proto=6 hex=1f900050000003e80000004d50101000afbc0000");
	expect(0, 0,
		"dst=" HOST_MAC " src=" LEFT_MAC " ip4 src=192.0.2.1 dst=10.0.0.2 proto=6 id=1 "
		"hex=00501f900000004d0000000050040000c3b00000");
	receive(0, FROM_HOST "dst=192.0.2.1 proto=6 hex=1f900050000003e80000000050041000b0150000");
	assert_int_equal(left_now(), 0); // a reset
	receive(0, FROM_HOST "dst=192.0.2.1 proto=6 hex=1f900050000003e80000000050021000b0160000");
	assert_int_equal(left_now(), 0); // its checksum is wrong
	(void)state;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(arp_is_answered),
		TEST(packets_wait_for_their_neighbour),
		TEST(fragments_wait_for_their_neighbour),
		TEST(holds_are_bounded),
		TEST(an_empty_pool_is_survived),
		TEST(next_hops_are_learned),
		TEST(an_idle_next_hop_takes_over),
		TEST(errors_are_sent),
		TEST(packets_are_fragmented),
		TEST(padding_is_taken_off),
		TEST(echo_is_answered),
		TEST(tunnels_are_not_answered),
		TEST(sources_of_nobody_are_not_answered),
		TEST(connections_are_refused),
		TEST(solicitations_are_answered),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("network", 1023, 0, 0, 4096, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
