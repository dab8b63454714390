// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flow path, with functions made for the test: their bytes against checksums made from scratch,
// one group of four against four groups of one, limits, ageing, changes of configuration.
#include "tests/support/test_flow.h"

#include "flow/common_run.h"
#include "flow/home.h"
#include "flow/path.h"
#include "flow/zone.h"
#include "packet/tuple.h"

#define TSC_HZ 2000000000u
#define SECOND (TSC_HZ + TSC_HZ / 8) // a little more: time is counted in ticks

static struct cv_nf_worker worker;

// What a test's function does, and what it saw.
struct toy {
	// What decide() does.
	bool snat, dnat; // by a hash of the tuple; so that it does not depend on the order
	bool follows;
	bool once;
	bool zero_id; // of ICMP
	unsigned shares; // flows of a host leave by that many ports, each by one that is free
	uint16_t deny_port; // destination, 0: none
	uint16_t output_port; // destination whose flows leave by output 1, 0: none
	unsigned output_every; // follow() gives each so manyth packet of a flow output 0
	struct cv_flow_way way[2];
	bool set_way;
	// What it saw.
	uint8_t wrapped_dst[6];
	int wrapped_vlan;
	unsigned decided[3], ended, followed;
	unsigned drop_every; // follow() drops each so manyth packet of a flow
	uint32_t generation;
	uint64_t slots; // sum of what ended() gave back
};

// What a toy keeps of a flow.
struct toy_slot {
	rte_be16_t port;
	uint16_t seen;
	uint32_t mark;
};

enum { TOY_DENIED, TOY_POLICED, TOY_NON_IP, TOY_BAD, TOY_UNRELATED };
static const char *const toy_drops[] = {
	"denied", "policed", "non_ip", "bad_header", "unrelated", NULL};

static void set_address(union cv_flow_address *address, uint8_t family, uint8_t last)
{
	if (family == 6)
		memcpy(address->ipv6, (const uint8_t[16]){0x20, 1, 0xd, 0xb8, 0, 9, [15] = last},
			16);
	else
		address->ipv4 = rte_cpu_to_be_32(0xcb007100 | last);
}

static bool has_real_ports(const struct cv_flow_tuple *tuple)
{
	return tuple->proto == IPPROTO_TCP || tuple->proto == IPPROTO_UDP;
}

static uint8_t toy_decide(void *instance, struct cv_nf_worker *of,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct toy *toy = instance;
	struct toy_slot *kept = slot;
	struct cv_flow_tuple *tuple = &actions->tuple;

	toy->decided[packet->why]++;
	if (packet->why == CV_FLOW_NEW) {
		assert_int_equal(kept->mark, 0);
		kept->mark = 0x5a5a;
		kept->port = (rte_be16_t)(tuple->sport * 31 +
					  (tuple->src.ipv6[3] + tuple->src.ipv6[15]) * 7 + 1);
	}
	assert_int_equal(kept->mark, 0x5a5a);
	if (toy->deny_port != 0 && tuple->dport == rte_cpu_to_be_16(toy->deny_port)) {
		actions->once = toy->once;
		return CV_DROP(TOY_DENIED);
	}
	if (toy->output_port != 0 && tuple->dport == rte_cpu_to_be_16(toy->output_port))
		return CV_OUTPUT(1);
	if (toy->snat) {
		set_address(&tuple->src, tuple->family, 1);
		if (has_real_ports(tuple))
			tuple->sport = kept->port;
		else if (tuple->proto == IPPROTO_ICMP || tuple->proto == IPPROTO_ICMPV6)
			*(tuple->sport != 0 && tuple->dport == 0 ? &tuple->sport : &kept->port) =
				kept->port;
	}
	for (unsigned i = 0; i < toy->shares; i++) {
		tuple->sport = rte_cpu_to_be_16((uint16_t)(1000 + i));
		if (packet->why == CV_FLOW_NEW ? cv_flow_is_free(packet, tuple)
					       : tuple->sport == kept->port)
			break;
		if (i + 1 == toy->shares)
			return CV_DROP(TOY_DENIED);
	}
	if (toy->shares != 0)
		kept->port = tuple->sport;
	if (toy->zero_id)
		tuple->sport = tuple->dport = 0;
	if (toy->dnat)
		set_address(&tuple->dst, tuple->family, (uint8_t)(2 + tuple->dport % 3));
	if (toy->set_way)
		memcpy(actions->way, toy->way, sizeof(toy->way));
	actions->follow = toy->follows;
	return CV_NEXT;
}

static uint8_t toy_follow_one(struct toy *toy, const struct cv_flow_followed *packet)
{
	struct toy_slot *kept = packet->slot;
	const uint8_t *ip = packet->view->data + packet->view->l3;

	assert_int_equal(kept->mark, 0x5a5a);
	assert_int_equal(packet->bytes, packet->view->proto == CV_PROTO_IPV4
						? cv_tuple_load(ip + 2)
						: CV_IPV6_LEN + cv_tuple_load(ip + 4));
	toy->followed++;
	kept->seen++;
	if (toy->output_every != 0 && kept->seen % toy->output_every == 0)
		return CV_OUTPUT(0);
	return toy->drop_every != 0 && kept->seen % toy->drop_every == 0 ? CV_DROP(TOY_POLICED)
									 : CV_NEXT;
}

static unsigned toy_follow(void *instance, struct cv_nf_worker *of,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	unsigned others = 0;

	assert_in_range(n, 1, CV_BURST_MAX);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(verdicts[i], CV_NEXT);
		verdicts[i] = toy_follow_one(instance, &packets[i]);
		others += verdicts[i] != CV_NEXT;
	}
	return others;
}

static uint8_t toy_wrap(
	void *instance, struct cv_nf_worker *of, struct cv_view *view, uint16_t wrap)
{
	struct toy *toy = instance;

	memcpy(toy->wrapped_dst, view->data, 6);
	toy->wrapped_vlan = cv_view_vlan(view);
	view->data[view->l3 + 8] = (uint8_t)wrap; // its TTL, in place of more headers
	return CV_NEXT;
}

static void toy_ended(void *instance, struct cv_nf_worker *of, const void *slot)
{
	struct toy *toy = instance;
	const struct toy_slot *kept = slot;

	assert_int_equal(kept->mark, 0x5a5a);
	toy->ended++;
}

static uint8_t toy_other(
	void *instance, struct cv_nf_worker *of, const struct cv_view *view, enum cv_flow_other why)
{
	return why == CV_FLOW_NON_IP      ? CV_NEXT
	       : why == CV_FLOW_UNRELATED ? CV_DROP(TOY_UNRELATED)
					  : CV_DROP(TOY_BAD);
}

static const uint32_t *toy_generation(const void *instance)
{
	return &((const struct toy *)instance)->generation;
}

static const struct cv_nf_flow toy_flow = {
	.slot_bytes = sizeof(struct toy_slot),
	.decide = toy_decide,
	.follow = toy_follow,
	.wrap = toy_wrap,
	.ended = toy_ended,
	.other = toy_other,
	.generation = toy_generation,
};

static const struct cv_nf toy_nf = {.name = "toy", .drops = toy_drops, .flow = &toy_flow};

#define TOYS 4

// One zone with toys, and two groups: in their order and the other way round.
struct path {
	struct cv_flow_zone *zone;
	struct cv_flow_group *group[2];
	struct cv_nf_counters counters[TOYS];
	unsigned count;
};

static const struct cv_flow_limits plenty = {.max = 4096,
	.max_ipv6 = 4096,
	.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
		[CV_FLOW_TCP_ESTABLISHED] = 7440,
		[CV_FLOW_TCP_CLOSING] = 20,
		[CV_FLOW_UDP_NEW] = 30,
		[CV_FLOW_UDP] = 300,
		[CV_FLOW_ICMP] = 60,
		[CV_FLOW_OTHER] = 600,
		[CV_FLOW_DENIED_FOR] = 5}};

static void path_make(
	struct path *path, struct toy *toys, unsigned count, const struct cv_flow_limits *limits)
{
	struct cv_flow_member members[TOYS];
	struct cv_nf_counters *counters[TOYS], *backward[TOYS];
	uint8_t order[TOYS], reversed[TOYS];
	struct cv_error error = {0};

	memset(path, 0, sizeof(*path));
	path->count = count;
	for (unsigned i = 0; i < count; i++) {
		members[i] = (struct cv_flow_member){&toy_nf, &toys[i]};
		order[i] = (uint8_t)i;
		reversed[i] = (uint8_t)(count - 1 - i);
		counters[i] = &path->counters[i];
		backward[i] = &path->counters[count - 1 - i];
	}
	path->zone = cv_flow_zone_create(members, count, limits, TSC_HZ, &error);
	if (path->zone == NULL)
		fail_msg("%s", error.text);
	path->group[0] = cv_flow_group_create(path->zone, order, counters);
	path->group[1] = cv_flow_group_create(path->zone, reversed, backward);
	assert_non_null(path->group[1]);
}

static void path_free(struct path *path)
{
	cv_flow_zone_destroy(path->zone);
}

// One packet through a path, in memory of its own exact size. Returns the verdict.
static uint8_t pass(struct path *path, unsigned group, struct packet *packet)
{
	uint8_t *exact = malloc(packet->len + !packet->len);
	struct cv_view view = {.in = 0, .out = 1};
	uint8_t verdict = 0xa5;
	uint16_t dropped;

	memcpy(exact, packet->bytes, packet->len);
	cv_view_set(&view, exact, packet->len);
	dropped = cv_flow_process(path->group[group], &worker, &view, &verdict, 1);
	assert_int_equal(dropped, verdict != CV_NEXT);
	memcpy(packet->bytes, exact, packet->len);
	free(exact);
	return verdict;
}

static void same_bytes(const char *name, const struct packet *is, const struct packet *want)
{
	assert_int_equal(is->len, want->len);
	for (unsigned i = 0; i < is->len; i++)
		if (is->bytes[i] != want->bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, is->bytes[i],
				want->bytes[i]);
}

// The answer to a packet: addresses, ports or ICMP's type turned around, checksums right.
static struct packet answer_to(const struct packet *packet)
{
	struct packet answer = *packet;
	struct cv_flow_parsed parsed;
	struct cv_view view;
	uint8_t *ip, *l4;
	unsigned size, at;

	cv_view_set(&view, answer.bytes, answer.len);
	cv_flow_parse(&view, &parsed);
	ip = answer.bytes + parsed.l3;
	l4 = answer.bytes + parsed.l4;
	size = parsed.v6 ? 16 : 4;
	at = parsed.v6 ? 8 : 12;
	memcpy(ip + at, packet->bytes + parsed.l3 + at + size, size);
	memcpy(ip + at + size, packet->bytes + parsed.l3 + at, size);
	if (cv_proto_has_ports(parsed.proto)) {
		memcpy(l4, packet->bytes + parsed.l4 + 2, 2);
		memcpy(l4 + 2, packet->bytes + parsed.l4, 2);
	} else if (parsed.proto == IPPROTO_ICMP) {
		l4[0] = l4[0] == 8 ? 0 : 8;
	} else if (parsed.proto == IPPROTO_ICMPV6) {
		l4[0] = l4[0] == 128 ? 129 : 128;
	}
	flow_checksums(answer.bytes, answer.len);
	return answer;
}

// Source and destination rewritten: what leaves has right checksums, other addresses and ports, and
// nothing else changed; the answer to it becomes the answer to what came.
static void rewrites_both_ways(void **state)
{
	static const char *const rows[] = {
		"ip4 udp sport=1000 dport=53 data=18",
		"ip4 udp sport=1000 dport=53 data=19",
		"ip4 udp sport=0 dport=0",
		"vlan id=7 ip4 tcp sport=5000 dport=80 data=3 pad=9",
		"qinq id=7 vlan id=9 ip4 opt=01010101 tcp sport=5001 dport=80",
		"ip4 proto=1 hex=0800000012340001 data=20",
		"ip4 sctp sport=9 dport=10 data=8",
		"ip4 proto=50 data=30",
		"ip6 udp sport=1000 dport=53 data=18",
		"ip6 tcp sport=1001 dport=53 data=7",
		"ip6 hbh dstopt size=16 udp sport=1002 dport=53 data=7",
		"vlan ip6 nh=58 hex=8000000012340001 data=21",
		"ip6 frag id=9 udp sport=77 dport=78 data=5",
	};

	for (unsigned r = 0; r < 2 * RTE_DIM(rows); r++) {
		const char *row = rows[r / 2];
		const bool udp_sum = r % 2; // else 0: none
		struct toy toys[2] = {{.snat = strstr(row, "sctp") == NULL}, {.dnat = true}};
		struct packet came = flow_packet(row, udp_sum), went = came, want, back;
		struct path path;

		path_make(&path, toys, 2, &plenty);
		for (unsigned again = 0; again < 3; again++) {
			went = came;
			assert_int_equal(pass(&path, 0, &went), CV_NEXT);
			assert_true(memcmp(went.bytes, came.bytes, came.len) != 0);
			want = went;
			flow_checksums(want.bytes, want.len);
			same_bytes(row, &went, &want);
			back = answer_to(&went);
			assert_int_equal(pass(&path, 1, &back), CV_NEXT);
			want = answer_to(&came);
			same_bytes(row, &back, &want);
		}
		assert_int_equal(toys[0].decided[CV_FLOW_NEW], 1);
		assert_int_equal(toys[1].decided[CV_FLOW_NEW], 1);
		assert_int_equal(path.counters[0].packets, 6);
		assert_int_equal(path.counters[1].bytes, 6 * came.len);
		path_free(&path);
	}
}

// An echo reply that becomes all zeros: its checksum, updated, would be zero as well, and wrong.
static void an_echo_of_zeros_is_right(void **state)
{
	struct toy toy = {.zero_id = true};
	struct packet packet = flow_packet("ip4 proto=1 hex=0000000012340000 data=1", false), want;
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
	want = packet;
	flow_checksums(want.bytes, want.len);
	same_bytes("an echo of zeros", &packet, &want);
	assert_int_equal(cv_load_be16(packet.bytes + 14 + 20 + 2), 0xffff);
	path_free(&path);
}

// An ICMP error about a packet that went: its inner packet becomes what came, its destination who
// sent that, and its source, a router behind what is hidden, whom that was sent to.
static void errors_are_translated(void **state)
{
	static const struct {
		const char *came;
		const char *error; // its beginning
		unsigned quoted; // bytes of the IP packet, at most
	} rows[] = {
		{"ip4 udp sport=1000 dport=53 data=100", "ip4 src=192.0.2.99 icmp kind=3 code=1",
			28},
		{"ip4 udp sport=1000 dport=53 data=101", "ip4 src=192.0.2.99 icmp kind=3 code=4",
			500},
		{"ip4 tcp sport=1000 dport=80", "ip4 src=192.0.2.99 icmp kind=11", 28},
		{"ip4 opt=01010101 tcp sport=1000 dport=80 data=9", "ip4 icmp kind=11", 500},
		{"ip4 proto=1 hex=0800000000070001", "ip4 src=192.0.2.99 icmp kind=3", 28},
		{"ip6 udp sport=1000 dport=53 data=100", "ip6 src=2001:db8::99 icmp6 kind=1", 48},
		{"ip6 tcp sport=1000 dport=53 data=101", "ip6 src=2001:db8::99 icmp6 kind=2", 500},
		{"ip6 dstopt tcp sport=1000 dport=53", "ip6 icmp6 kind=3", 500},
		{"ip6 nh=58 hex=8000000000070001 data=5", "ip6 icmp6 kind=1", 500},
	};

	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		struct toy toys[2] = {{.snat = true}, {.dnat = true}};
		struct packet came = flow_packet(rows[r].came, true), went = came, error, want;
		const unsigned quoted =
			came.len - 14u < rows[r].quoted ? came.len - 14u : rows[r].quoted;
		const bool v6 = rows[r].came[2] == '6';
		const unsigned at = 14 + (v6 ? 8 : 12), size = v6 ? 16 : 4;
		char text[2048];
		struct path path;
		int n;

		path_make(&path, toys, 2, &plenty);
		assert_int_equal(pass(&path, 0, &went), CV_NEXT);
		for (unsigned which = 0; which < 2; which++) {
			const struct packet *inner = which == 0 ? &went : &came;

			n = snprintf(text, sizeof(text), "%s hex=", rows[r].error);
			for (unsigned i = 0; i < quoted; i++)
				n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x",
					inner->bytes[14 + i]);
			error = flow_packet(text, false);
			memcpy(error.bytes + at + size, inner->bytes + at, size); // to its sender
			if (which == 1)
				memcpy(error.bytes + at, inner->bytes + at + size, size);
			flow_checksums(error.bytes, error.len);
			if (which == 0)
				assert_int_equal(pass(&path, 1, &error), CV_NEXT);
			want = which == 0 ? error : want;
			if (which == 1)
				same_bytes(rows[r].error, &want, &error);
		}
		assert_int_equal(path.counters[0].packets, 2);
		path_free(&path);
	}
}

static void unrelated_errors_are_left_to_the_function(void **state)
{
	static const char *const rows[] = {
		"ip4 icmp kind=3 hex=4500001c00000000401100000a0000010a0000020001000200080000",
		"ip4 icmp kind=3",
		"ip4 icmp kind=3 hex=45",
		"ip4 icmp kind=3 hex=4f00001c00000000401100000a0000010a0000020001000200080000",
		"ip6 icmp6 kind=1 hex=60",
		"ip6 icmp6 kind=1 data=40",
	};
	struct toy toy = {.snat = true};
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		struct packet packet = flow_packet(rows[r], false);

		assert_int_equal(pass(&path, 0, &packet), CV_DROP(CV_FLOW_BY_FUNCTION));
		assert_int_equal(path.counters[0].drops[TOY_UNRELATED], r + 1);
	}
	assert_int_equal(path.counters[0].packets, RTE_DIM(rows));
	path_free(&path);
}

static void what_is_no_flow_is_left_to_the_function(void **state)
{
	struct toy toys[2] = {{.snat = true}, {.dnat = true}};
	struct packet arp = packet_make("type=0806 data=28"), bad = packet_make("ip4 udp cut=40");
	struct path path;

	path_make(&path, toys, 2, &plenty);
	assert_int_equal(pass(&path, 0, &arp), CV_NEXT);
	assert_int_equal(pass(&path, 0, &bad), CV_DROP(CV_FLOW_BY_FUNCTION));
	assert_int_equal(path.counters[0].packets, 2);
	assert_int_equal(path.counters[0].drops[TOY_BAD], 1);
	assert_int_equal(path.counters[1].packets, 1);
	assert_int_equal(path.counters[1].bytes, arp.len);
	path_free(&path);
}

// Fragments: the first one tells the others' flow; those that come before it are dropped.
static void fragments_follow_the_first(void **state)
{
	static const char *const families[][3] = {
		{"ip4 id=7 mf=1 udp sport=1 dport=2 data=40", "ip4 id=7 off=6 proto=17 data=40",
			"ip4 id=8 off=6 proto=17 data=40"},
		{"ip6 frag id=7 mf=1 udp sport=1 dport=2 data=40",
			"ip6 frag id=7 off=6 nh=17 data=40", "ip6 frag id=8 off=6 nh=17 data=40"},
	};

	for (unsigned f = 0; f < RTE_DIM(families); f++) {
		const unsigned at = f == 0 ? 14 + 12 : 14 + 8, bytes = f == 0 ? 8 : 32;
		struct toy toys[2] = {{.snat = true}, {.dnat = true}};
		struct packet first = flow_packet(families[f][0], false);
		struct packet next = flow_packet(families[f][1], false), early = next, want = next;
		struct packet other = flow_packet(families[f][2], false);
		struct path path;

		path_make(&path, toys, 2, &plenty);
		assert_int_equal(pass(&path, 0, &early), CV_DROP(CV_FLOW_NO_FIRST_FRAGMENT));
		assert_int_equal(pass(&path, 0, &first), CV_NEXT);
		assert_int_equal(pass(&path, 0, &next), CV_NEXT);
		assert_int_equal(pass(&path, 0, &other), CV_DROP(CV_FLOW_NO_FIRST_FRAGMENT));
		memcpy(want.bytes + at, first.bytes + at, bytes); // the same addresses
		flow_checksums(want.bytes, want.len);
		same_bytes(families[f][1], &next, &want);
		assert_int_equal(path.counters[0].packets, 2);
		worker.now += 60ull * SECOND;
		assert_int_equal(pass(&path, 0, &early), CV_DROP(CV_FLOW_NO_FIRST_FRAGMENT));
		path_free(&path);
	}
}

static void sets_what_a_way_says(void **state)
{
	struct toy toy = {.set_way = true,
		.way = {{.set = CV_FLOW_SET_DST_MAC | CV_FLOW_SET_DSCP | CV_FLOW_SET_VLAN |
				CV_FLOW_SET_OUT,
				.dscp = 46,
				.out = 3,
				.vlan = 0x123,
				.dst_mac = {2, 9, 9, 9, 9, 9}},
			{.set = CV_FLOW_SET_SRC_MAC, .src_mac = {2, 8, 8, 8, 8, 8}}}};
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"vlan id=5 ip4 tos=3 udp sport=1 dport=2",
			"dst=02:09:09:09:09:09 vlan id=291 ip4 tos=187 udp sport=1 dport=2"},
		{"ip4 udp sport=1 dport=3",
			"dst=02:09:09:09:09:09 ip4 tos=184 udp sport=1 dport=3"},
		{"ip4 udp sport=2 dport=1",
			"dst=02:09:09:09:09:09 ip4 tos=184 udp sport=2 dport=1"},
	};
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned r = 0; r < 2 * RTE_DIM(rows); r++) {
		struct packet is = packet_make(rows[r / 2].in);
		const struct packet want = packet_make(rows[r / 2].out);
		struct cv_view view = {.out = 1};
		uint8_t verdict;

		cv_view_set(&view, is.bytes, is.len);
		cv_flow_process(path.group[0], &worker, &view, &verdict, 1);
		assert_int_equal(verdict, CV_NEXT);
		assert_int_equal(view.out, 3);
		same_bytes(rows[r / 2].in, &is, &want);
	}
	{
		struct packet back = packet_make("ip4 src=198.51.100.1 dst=192.0.2.1 udp sport=3 "
						 "dport=1");
		const struct packet want = packet_make("src=02:08:08:08:08:08 ip4 src=198.51.100.1 "
						       "dst=192.0.2.1 udp sport=3 dport=1");

		assert_int_equal(pass(&path, 1, &back), CV_NEXT);
		same_bytes("reply", &back, &want);
	}
	{
		struct packet is = packet_make("ip6 udp sport=1 dport=2");
		struct packet want = packet_make("dst=02:09:09:09:09:09 ip6 udp sport=1 dport=2");

		want.bytes[14] = 0x6b; // 46 << 2
		want.bytes[15] = 0x80;
		assert_int_equal(pass(&path, 0, &is), CV_NEXT);
		same_bytes("IPv6", &is, &want);
	}
	path_free(&path);
}

// Who wraps a packet, and may answer its sender, sees where it came from.
static void wraps_what_came(void **state)
{
	struct toy toy = {.set_way = true,
		.way = {{.set = CV_FLOW_SET_DST_MAC | CV_FLOW_SET_VLAN | CV_FLOW_SET_OUT |
				CV_FLOW_SET_WRAP,
			.out = 3,
			.vlan = 0x123,
			.wrap = 9,
			.dst_mac = {2, 9, 9, 9, 9, 9}}}};
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned again = 0; again < 3; again++) {
		struct packet is = packet_make("vlan id=5 ip4 udp sport=1 dport=2");
		const struct packet came = is;
		struct cv_view view = {.out = 1};
		uint8_t verdict;

		cv_view_set(&view, is.bytes, is.len);
		cv_flow_process(path.group[0], &worker, &view, &verdict, 1);
		assert_int_equal(verdict, CV_NEXT);
		assert_memory_equal(toy.wrapped_dst, came.bytes, 6);
		assert_int_equal(toy.wrapped_vlan, 5);
		assert_memory_equal(is.bytes, toy.way[0].dst_mac, 6);
		assert_int_equal(cv_view_vlan(&view), 0x123);
		assert_int_equal(view.out, 3);
		assert_int_equal(is.bytes[view.l3 + 8], 9);
	}
	path_free(&path);
}

// A denied flow is remembered for a while; one that is denied once is not.
static void denials_are_remembered(void **state)
{
	for (unsigned once = 0; once < 2; once++) {
		struct toy toys[3] = {{.snat = true}, {.deny_port = 23, .once = once}, {0}};
		struct path path;

		path_make(&path, toys, 3, &plenty);
		for (unsigned i = 0; i < 5; i++) {
			struct packet packet = flow_packet("ip4 tcp sport=1 dport=23", false);

			assert_int_equal(pass(&path, 0, &packet), CV_DROP(CV_FLOW_BY_FUNCTION));
		}
		assert_int_equal(toys[1].decided[CV_FLOW_NEW], once ? 5 : 1);
		assert_int_equal(toys[0].ended, once ? 5 : 1); // it had said yes
		assert_int_equal(toys[1].ended, 0);
		assert_int_equal(toys[2].decided[CV_FLOW_NEW], 0);
		assert_int_equal(path.counters[0].packets, 5);
		assert_int_equal(path.counters[1].packets, 5);
		assert_int_equal(path.counters[1].drops[TOY_DENIED], 5);
		assert_int_equal(path.counters[2].packets, 0);
		assert_int_equal(path.zone->counters.denied, once ? 0 : 1);
		path_free(&path);
	}
}

// What others decided stays when one function changes; what it denies now ends.
static void a_change_asks_again(void **state)
{
	struct toy toys[3] = {{.snat = true}, {0}, {.follows = true}};
	struct packet first = flow_packet("ip4 udp sport=9 dport=23 data=1", true), again = first,
		      back;
	struct path path;

	path_make(&path, toys, 3, &plenty);
	assert_int_equal(pass(&path, 0, &first), CV_NEXT);
	toys[1].generation++;
	back = answer_to(&first);
	assert_int_equal(pass(&path, 1, &back), CV_NEXT); // a reply is what asks
	assert_int_equal(toys[0].decided[CV_FLOW_REPEAT], 1);
	assert_int_equal(toys[1].decided[CV_FLOW_CHANGED], 1);
	assert_int_equal(toys[2].decided[CV_FLOW_REPEAT], 1);
	assert_int_equal(pass(&path, 0, &again), CV_NEXT);
	same_bytes("the same port", &again, &first);
	assert_int_equal(toys[2].followed, 3);

	toys[2].dnat = true; // rewrites more from now on
	toys[2].generation++;
	again = flow_packet("ip4 udp sport=9 dport=23 data=1", true);
	assert_int_equal(pass(&path, 0, &again), CV_NEXT);
	assert_memory_not_equal(again.bytes + 30, first.bytes + 30, 4); // destination
	back = answer_to(&again);
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	back = answer_to(&first); // not any more
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	assert_int_equal(toys[0].decided[CV_FLOW_NEW], 2);

	toys[1].deny_port = 23;
	toys[1].generation++;
	again = flow_packet("ip4 udp sport=9 dport=23 data=1", true);
	assert_int_equal(pass(&path, 0, &again), CV_DROP(CV_FLOW_BY_FUNCTION));
	assert_int_equal(toys[0].ended, 1);
	assert_int_equal(toys[1].ended, 1); // it was asked about a flow that was there
	assert_int_equal(toys[2].ended, 1);
	assert_int_equal(path.zone->counters.invalidated, 1);
	assert_int_equal(pass(&path, 0, &again), CV_DROP(CV_FLOW_BY_FUNCTION)); // remembered now

	toys[1].deny_port = 0;
	toys[1].generation++;
	assert_int_equal(pass(&path, 0, &again), CV_NEXT);
	path_free(&path);
}

// What a reply comes from may be another's after a change: the reply that asks is of no flow then.
static void a_reply_of_before_is_of_no_flow(void **state)
{
	struct toy toy = {.snat = true, .dnat = true};
	struct packet first = flow_packet("ip4 udp sport=9 dport=23 data=1", true), back, want;
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	assert_int_equal(pass(&path, 0, &first), CV_NEXT);
	back = want = answer_to(&first);
	toy.snat = toy.dnat = false;
	toy.generation++;
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	same_bytes("as of no flow", &back, &want);
	assert_int_equal(toy.decided[CV_FLOW_NEW], 2);
	path_free(&path);
}

// A flow leaves by an output: functions behind are not request, and the group's output is the one that
// the function's is.
static void flows_leave_by_outputs(void **state)
{
	static const uint8_t first[3] = {0, 4, 6};
	struct toy toys[3] = {{.snat = true}, {.output_port = 53}, {.follows = true}};
	struct packet one = flow_packet("ip4 udp sport=9 dport=53", true), back, want;
	struct packet two = flow_packet("ip4 udp sport=9 dport=54", true), again = one;
	const struct packet came = one;
	struct path path;

	path_make(&path, toys, 3, &plenty);
	cv_flow_group_set_outputs(path.group[0], first);
	for (unsigned i = 0; i < 3; i++) {
		again = came;
		assert_int_equal(pass(&path, 0, &again), CV_OUTPUT(5));
	}
	assert_int_equal(pass(&path, 0, &one), CV_OUTPUT(5));
	assert_int_equal(pass(&path, 0, &two), CV_NEXT);
	same_bytes("the same every time", &again, &one);
	assert_memory_not_equal(one.bytes, came.bytes, came.len); // rewritten before it left
	back = answer_to(&one);
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	want = answer_to(&came);
	same_bytes("the reply", &back, &want);
	assert_int_equal(toys[1].decided[CV_FLOW_NEW], 2);
	assert_int_equal(toys[2].decided[CV_FLOW_NEW], 1);
	assert_int_equal(path.counters[1].packets, 6);
	assert_int_equal(path.counters[2].packets, 2); // the other flow, and the reply

	toys[1].output_port = 0; // on to the next function
	toys[1].generation++;
	again = came;
	assert_int_equal(pass(&path, 0, &again), CV_NEXT);
	same_bytes("rewritten as before", &again, &one);
	assert_int_equal(toys[2].decided[CV_FLOW_NEW], 2);
	assert_int_equal(toys[2].followed, 2);

	toys[1].output_port = 53; // and out again: the function behind gives back what it kept
	toys[1].generation++;
	again = came;
	assert_int_equal(pass(&path, 0, &again), CV_OUTPUT(5));
	assert_int_equal(toys[2].ended, 1);
	assert_int_equal(toys[0].ended + toys[1].ended, 0);

	worker.now += 400ull * SECOND;
	cv_flow_tick(path.group[0], &worker);
	cv_flow_tick(path.group[0], &worker);
	assert_int_equal(toys[0].ended, 2);
	assert_int_equal(toys[1].ended, 2);
	assert_int_equal(toys[2].ended, 2);
	path_free(&path);
}

// Replies to a flow that nobody rewrites and that left by an output are a flow of their own: they come
// by the chain that it went to.
static void replies_to_outputs_are_others(void **state)
{
	struct toy toys[2] = {{.output_port = 53}, {0}};
	struct packet packet = packet_make("ip4 udp sport=9 dport=53"), back = answer_to(&packet);
	struct path path;

	path_make(&path, toys, 2, &plenty);
	assert_int_equal(pass(&path, 0, &packet), CV_OUTPUT(1));
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	assert_int_equal(toys[0].decided[CV_FLOW_NEW], 2);
	assert_int_equal(pass(&path, 0, &packet), CV_OUTPUT(1));
	assert_int_equal(path.zone->counters.created, 2);
	path_free(&path);
}

static void one_packet_leaves_by_an_output(void **state)
{
	struct toy toys[2] = {{.follows = true, .output_every = 3}, {.snat = true}};
	const struct packet came = flow_packet("ip4 udp sport=9 dport=53", true);
	struct path path;

	path_make(&path, toys, 2, &plenty);
	for (unsigned i = 1; i <= 9; i++) {
		struct packet packet = came;

		assert_int_equal(pass(&path, 0, &packet), i % 3 == 0 ? CV_OUTPUT(0) : CV_NEXT);
		if (i % 3 == 0)
			same_bytes("as it came", &packet, &came);
	}
	assert_int_equal(path.counters[0].packets, 9);
	assert_int_equal(path.counters[1].packets, 6);
	path_free(&path);
}

// Another instance takes a function's place: it is asked about the flows of the one before, whose
// slots it gets.
static void an_instance_is_replaced(void **state)
{
	struct toy toys[2] = {{.snat = true, .follows = true}, {0}}, next = toys[0];
	const struct packet came = flow_packet("ip4 udp sport=9 dport=53", true);
	struct packet before = came, after = came;
	struct path path;

	path_make(&path, toys, 2, &plenty);
	assert_int_equal(pass(&path, 0, &before), CV_NEXT);
	cv_flow_zone_replace(path.zone, 0, &next);
	memset(&toys[0], 0xa5, sizeof(toys[0]));
	assert_int_equal(pass(&path, 0, &after), CV_NEXT);
	same_bytes("the same port", &after, &before);
	assert_int_equal(next.decided[CV_FLOW_CHANGED], 1);
	assert_int_equal(toys[1].decided[CV_FLOW_REPEAT], 1);
	assert_int_equal(next.followed, 1);
	next.generation++;
	after = came;
	assert_int_equal(pass(&path, 0, &after), CV_NEXT);
	assert_int_equal(next.decided[CV_FLOW_CHANGED], 2);
	worker.now += 400ull * SECOND;
	cv_flow_tick(path.group[0], &worker);
	assert_int_equal(next.ended, 1);
	path_free(&path);
}

static struct packet numbered(unsigned n)
{
	char text[100];

	snprintf(text, sizeof(text), "ip4 src=10.%u.%u.%u udp sport=%u dport=53", n >> 16 & 255,
		n >> 8 & 255, n & 255, 1000 + (n & 1));
	return packet_make(text);
}

static void a_full_table_leaves_flows_alone(void **state)
{
	struct cv_flow_limits limits = plenty;
	struct toy toys[2] = {{.follows = true}, {0}};
	struct path path;

	limits.max = 100;
	path_make(&path, toys, 2, &limits);
	for (unsigned n = 0; n < 300; n++) {
		struct packet packet = numbered(n);

		assert_int_equal(
			pass(&path, 0, &packet), n < 100 ? CV_NEXT : CV_DROP(CV_FLOW_TABLE_FULL));
	}
	assert_int_equal(toys[0].decided[CV_FLOW_NEW], 100);
	assert_int_equal(path.counters[0].packets, 100);
	for (unsigned n = 0; n < 100; n++) {
		struct packet packet = numbered(n), back = answer_to(&packet);

		assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
		assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	}
	// All are over at once, without one that is too many in a tick.
	for (unsigned i = 0, before = 0; toys[0].ended < 100; i++) {
		worker.now += 400ull * SECOND;
		cv_flow_tick(path.group[0], &worker);
		assert_in_range(toys[0].ended - before, i == 0 ? 1 : 0, 32);
		before = toys[0].ended;
		assert_in_range(i, 0, 20);
	}
	assert_int_equal(path.zone->counters.flows_ipv4, 0);
	for (unsigned n = 300; n < 400; n++) {
		struct packet packet = numbered(n);

		assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
	}
	path_free(&path);
}

static void hosts_have_limits(void **state)
{
	struct cv_flow_limits limits = plenty;
	struct toy toys[2] = {{0}, {.deny_port = 53}};
	struct path path;

	limits.per_host = 3;
	path_make(&path, toys, 1, &limits);
	for (unsigned port = 1; port <= 5; port++) {
		char text[80];
		struct packet packet;

		snprintf(text, sizeof(text), "ip6 udp sport=%u dport=53", port);
		packet = packet_make(text);
		assert_int_equal(
			pass(&path, 0, &packet), port <= 3 ? CV_NEXT : CV_DROP(CV_FLOW_HOST_LIMIT));
	}
	for (unsigned i = 0; i < 4; i++) {
		worker.now += 400ull * SECOND;
		cv_flow_tick(path.group[0], &worker);
	}
	for (unsigned port = 7; port <= 9; port++) {
		char text[80];
		struct packet packet;

		snprintf(text, sizeof(text), "ip6 udp sport=%u dport=53", port);
		packet = packet_make(text);
		assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
	}
	path_free(&path);

	path_make(&path, toys, 2, &limits); // what is denied does not count
	for (unsigned i = 0; i < 20; i++) {
		struct packet packet = packet_make("ip4 udp sport=1 dport=53"), other;
		char text[80];

		snprintf(text, sizeof(text), "ip4 udp sport=%u dport=53", 10 + i);
		other = packet_make(text);
		assert_int_equal(pass(&path, 0, &packet), CV_DROP(CV_FLOW_BY_FUNCTION));
		assert_int_equal(pass(&path, 0, &other), CV_DROP(CV_FLOW_BY_FUNCTION));
	}
	path_free(&path);
}

// A denied flow that turns out to answer one that is allowed is denied no longer.
static void an_answer_is_not_denied(void **state)
{
	struct toy toy = {.deny_port = 53};
	struct packet packet = packet_make("ip4 udp sport=9 dport=53"), back = answer_to(&packet);
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	assert_int_equal(pass(&path, 0, &packet), CV_DROP(CV_FLOW_BY_FUNCTION));
	assert_int_equal(pass(&path, 1, &back), CV_NEXT);
	assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
	assert_int_equal(path.zone->counters.denied, 0);
	assert_int_equal(path.zone->counters.flows_ipv4, 1);
	path_free(&path);
}

// Two flows whose answers would be the same: the second is dropped, not the first broken.
static void conflicts_are_refused(void **state)
{
	struct toy toy = {.dnat = true};
	struct packet one = packet_make("ip4 dst=198.51.100.1 udp sport=1 dport=2");
	struct packet two = packet_make("ip4 dst=198.51.100.2 udp sport=1 dport=2"), same = one;
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	assert_int_equal(pass(&path, 0, &one), CV_NEXT);
	assert_int_equal(pass(&path, 0, &two), CV_DROP(CV_FLOW_CONFLICT));
	assert_int_equal(toy.ended, 1);
	assert_int_equal(pass(&path, 0, &same), CV_NEXT);
	path_free(&path);
}

// First packets of a burst are decided on together, and it is as if each came alone: an answer and another
// packet of a flow, one that is denied, one that conflicts, one for which there is no room.
static void flows_that_begin_together(void **state)
{
	static const struct {
		const char *text;
		uint8_t verdict;
	} burst[] = {
		{"ip4 dst=198.51.100.1 udp sport=1 dport=2", CV_NEXT},
		{"ip4 dst=198.51.100.9 udp sport=1 dport=53", CV_DROP(CV_FLOW_BY_FUNCTION)},
		{"ip4 dst=198.51.100.1 udp sport=1 dport=2", CV_NEXT},
		{"ip4 dst=198.51.100.3 udp sport=3 dport=4", CV_NEXT},
		{"ip4 dst=198.51.100.2 udp sport=1 dport=2", CV_DROP(CV_FLOW_CONFLICT)},
		{"ip6 udp sport=5 dport=6", CV_NEXT},
		{"ip4 dst=198.51.100.3 udp sport=7 dport=8", CV_NEXT},
		{"ip4 dst=198.51.100.3 udp sport=9 dport=10", CV_DROP(CV_FLOW_TABLE_FULL)},
	};
	struct toy toys[2] = {{.dnat = true}, {.deny_port = 53, .once = true}};
	struct packet packets[RTE_DIM(burst)];
	struct cv_view views[RTE_DIM(burst)];
	uint8_t verdicts[RTE_DIM(burst)];
	struct cv_flow_limits limits = plenty;
	struct path path;

	limits.max = 3;
	path_make(&path, toys, 2, &limits);
	for (unsigned i = 0; i < RTE_DIM(burst); i++) {
		packets[i] = packet_make(burst[i].text);
		views[i] = (struct cv_view){.out = 1};
		cv_view_set(&views[i], packets[i].bytes, packets[i].len);
	}
	assert_int_equal(
		cv_flow_process(path.group[0], &worker, views, verdicts, RTE_DIM(burst)), 3);
	for (unsigned i = 0; i < RTE_DIM(burst); i++)
		assert_int_equal(verdicts[i], burst[i].verdict);
	assert_int_equal(path.zone->counters.created, 4);
	assert_int_equal(path.zone->counters.flows_ipv4, 3);
	assert_int_equal(toys[0].decided[CV_FLOW_NEW], toys[0].ended + 4);
	for (unsigned i = 0; i < 4; i++) { // answers lead to their flows
		static const uint8_t of[] = {0, 3, 5, 6};
		struct packet came = packet_make(burst[of[i]].text), expected = answer_to(&came);
		struct packet back = answer_to(&packets[of[i]]);

		assert_int_equal(pass(&path, 1, &back), CV_NEXT);
		same_bytes(burst[of[i]].text, &back, &expected);
	}
	path_free(&path);
}

// Packets of flows that are known are shown to who follows them, whatever lies between them.
static void known_and_new_flows_together(void **state)
{
	enum { PACKETS = 9 };
	struct toy toy = {.follows = true, .drop_every = 3};
	struct packet packets[PACKETS];
	struct cv_view views[PACKETS];
	uint8_t verdicts[PACKETS];
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < PACKETS; i++) {
			char text[40];

			snprintf(text, sizeof(text), "ip4 udp sport=%u dport=7",
				1 + i + (i % 2 ? PACKETS * round : 0));
			packets[i] = packet_make(text);
			views[i] = (struct cv_view){.out = 1};
			cv_view_set(&views[i], packets[i].bytes, packets[i].len);
		}
		assert_int_equal(cv_flow_process(path.group[0], &worker, views, verdicts, PACKETS),
			round == 2 ? PACKETS - PACKETS / 2 : 0);
		for (unsigned i = 0; i < PACKETS; i++) // each third packet of those that are known
			assert_int_equal(verdicts[i],
				round == 2 && i % 2 == 0 ? CV_DROP(CV_FLOW_BY_FUNCTION) : CV_NEXT);
		assert_int_equal(toy.followed, PACKETS * (round + 1));
	}
	path_free(&path);
}

// Both ends send at once, through one port: one flow, and its answer.
static void an_answer_that_came_together(void **state)
{
	struct toy toy = {0};
	struct packet packet = packet_make("ip4 tcp sport=9 dport=53"), back = answer_to(&packet);
	struct cv_view views[2] = {{.out = 1}, {.out = 1}};
	struct path path;
	uint8_t verdicts[2];

	path_make(&path, &toy, 1, &plenty);
	cv_view_set(&views[0], packet.bytes, packet.len);
	cv_view_set(&views[1], back.bytes, back.len);
	assert_int_equal(cv_flow_process(path.group[0], &worker, views, verdicts, 2), 0);
	assert_int_equal(path.zone->counters.flows_ipv4, 1);
	assert_int_equal(toy.decided[CV_FLOW_NEW], 1);
	path_free(&path);
}

// A port that is taken for free without a look, and is not, costs one more question; another is found.
static void ports_that_are_taken_are_not_free(void **state)
{
	struct toy toy = {.shares = 3};
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned i = 0; i < 5; i++) {
		const uint8_t expected = i < 3 ? CV_NEXT : CV_DROP(CV_FLOW_BY_FUNCTION);
		struct packet packet, back, before;
		char text[40];

		snprintf(text, sizeof(text), "ip4 udp sport=%u dport=7", 1 + i);
		packet = packet_make(text);
		before = answer_to(&packet);
		assert_int_equal(pass(&path, 0, &packet), expected);
		if (expected != CV_NEXT)
			continue;
		back = answer_to(&packet);
		assert_memory_not_equal(back.bytes, before.bytes, back.len);
		assert_int_equal(pass(&path, 1, &back), CV_NEXT);
		assert_memory_equal(back.bytes, before.bytes, back.len);
	}
	assert_int_equal(toy.decided[CV_FLOW_NEW], 1 + 2 + 2 + 2 + 2);
	assert_int_equal(toy.ended, 4);
	assert_int_equal(path.zone->counters.flows_ipv4, 3 + 2); // and two that are denied
	path_free(&path);
}

static void ports_that_are_none_stay(void **state)
{
	struct toy toy = {.snat = true};
	struct packet sctp = packet_make("ip4 sctp sport=1 dport=2"), self;
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	assert_int_equal(pass(&path, 0, &sctp), CV_NEXT); // the toy changes no ports of it
	path_free(&path);
	toy = (struct toy){0};
	path_make(&path, &toy, 1, &plenty); // a packet that is its own answer
	self = packet_make("ip4 src=10.0.0.1 dst=10.0.0.1 udp sport=5 dport=5");
	assert_int_equal(pass(&path, 0, &self), CV_NEXT);
	assert_int_equal(pass(&path, 0, &self), CV_NEXT);
	assert_int_equal(path.zone->counters.created, 1);
	worker.now += 900ull * SECOND;
	cv_flow_tick(path.group[0], &worker);
	assert_int_equal(toy.ended, 1);
	path_free(&path);
}

static struct packet tcp(bool reply, const char *flags)
{
	struct packet packet =
		flow_packet(reply ? "ip4 src=198.51.100.1 dst=192.0.2.1 tcp sport=80 dport=9"
				  : "ip4 tcp sport=9 dport=80",
			false);

	for (; *flags != '\0'; flags++)
		packet.bytes[14 + 20 + 13] |= *flags == 'S'   ? CV_TCP_SYN
					      : *flags == 'A' ? CV_TCP_ACK
					      : *flags == 'F' ? CV_TCP_FIN
							      : CV_TCP_RST;
	return packet;
}

// TCP: rows of packets, one letter a flag, '<' before those that reply; and how long the flow may be
// idle then.
static void tcp_states_have_their_timeouts(void **state)
{
	static const struct {
		const char *packets;
		unsigned timeout_s;
	} rows[] = {
		{"S", 240}, {"S FA", 240}, {"F", 240}, {"S R A", 240}, // one end alone
		{"FA <A", 7440}, {"FA <FA", 20}, {"S R A <A", 7440}, {"S <SA", 240},
		{"S <SA A", 7440}, {"S <SA A A <A", 7440}, {"A", 240}, // picked up
		{"A <A", 7440}, {"S <SA A FA", 7440}, // half-closed
		{"S <SA A FA <FA", 20}, {"S <SA A FA <FA A", 20}, {"S <SA A <FA FA", 20},
		{"S <SA A R", 20}, {"S <SA A R <A", 7440}, // it lives
		{"S <RA", 20}, {"S <SA A FA <FA A S", 240}, // again
		{"S <SA A FA <FA A S <SA A", 7440}, {"S <SA A FA <FA A S F", 240},
		{"S <SA A <R <S", 240}, // from the other end: another flow
	};

	for (unsigned r = 0; r < RTE_DIM(rows); r++) {
		struct toy toy = {0};
		struct path path;
		char words[64], *save = NULL;
		unsigned ended;

		path_make(&path, &toy, 1, &plenty);
		cv_flow_tick(path.group[0], &worker);
		snprintf(words, sizeof(words), "%s", rows[r].packets);
		for (char *word = strtok_r(words, " ", &save); word;
			word = strtok_r(NULL, " ", &save)) {
			struct packet packet = tcp(word[0] == '<', word + (word[0] == '<'));

			assert_int_equal(pass(&path, word[0] == '<', &packet), CV_NEXT);
		}
		ended = toy.ended;
		worker.now += (uint64_t)(rows[r].timeout_s - 2) * TSC_HZ;
		cv_flow_tick(path.group[0], &worker);
		if (toy.ended != ended)
			fail_msg("%s: ended early", rows[r].packets);
		worker.now += 4ull * TSC_HZ;
		cv_flow_tick(path.group[0], &worker);
		if (toy.ended != ended + 1)
			fail_msg("%s: did not end", rows[r].packets);
		path_free(&path);
	}
}

// A packet that comes just before the deadline puts it off.
static void what_is_seen_stays(void **state)
{
	struct toy toy = {0};
	struct path path;

	path_make(&path, &toy, 1, &plenty);
	for (unsigned i = 0; i < 20; i++) {
		struct packet packet = numbered(1);

		assert_int_equal(pass(&path, 0, &packet), CV_NEXT);
		worker.now += 25ull * TSC_HZ;
		cv_flow_tick(path.group[0], &worker);
	}
	assert_int_equal(toy.ended, 0);
	assert_int_equal(toy.decided[CV_FLOW_NEW], 1);
	path_free(&path);
}

static uint64_t random_state = 1;

static uint32_t random32(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

// A packet of few flows, or of none; it may answer one that went before.
static struct packet random_packet(const struct packet *went, unsigned went_count, bool *reply)
{
	static const char *const protos[] = {"udp", "tcp"};
	const bool v6 = random32(3) == 0;
	struct packet packet;
	char text[200];
	int n;

	*reply = went_count > 0 && random32(2) == 0;
	if (*reply)
		return answer_to(&went[random32(went_count)]);
	n = snprintf(text, sizeof(text), "%s%s%u %s%s", random32(5) == 0 ? "vlan id=3 " : "",
		v6 ? "ip6 src=2001:db8::" : "ip4 src=10.0.0.", 1 + random32(4),
		!v6 && random32(4) == 0 ? "opt=01010101 " : "",
		v6 && random32(4) == 0 ? "dstopt " : "");
	switch (random32(12)) {
	case 0:
		return packet_make("type=0806 data=28");
	case 1:
		snprintf(text + n, sizeof(text) - (size_t)n, "%s hex=%s000000000%u0001 data=9",
			v6 ? "nh=58" : "proto=1", v6 ? "80" : "08", 1 + random32(4));
		break;
	case 2:
		snprintf(text + n, sizeof(text) - (size_t)n, "udp cut=%u", 20 + random32(20));
		break;
	default:
		snprintf(text + n, sizeof(text) - (size_t)n, "%s sport=%u dport=%u data=%u",
			protos[random32(2)], 1 + random32(4), 20 + random32(5), random32(60));
	}
	packet = flow_packet(text, random32(2));
	if (packet.len > 14 + 20 + 13 && packet.bytes[23] == 6 && packet.bytes[14] == 0x45)
		packet.bytes[14 + 20 + 13] = random32(2) ? CV_TCP_ACK : CV_TCP_SYN;
	flow_checksums(packet.bytes, packet.len);
	return packet;
}

// The short way to look at common packets sees what the one for any packet does.
static void common_packets_are_any_packets(void **state)
{
	unsigned common = 0;

	for (unsigned i = 0; i < 5000; i++) {
		struct cv_flow_parsed any, parsed;
		struct cv_view view = {.in = 0};
		struct packet packet;
		bool reply;

		packet = random_packet(NULL, 0, &reply);
		cv_view_set(&view, packet.bytes, packet.len);
		if (view.proto == CV_PROTO_IPV4) { // an identifier; it may not be fragmented
			packet.bytes[view.l3 + 5] = (uint8_t)i;
			packet.bytes[view.l3 + 6] = i % 2 ? 0x40 : 0;
		}
		if (view.proto == CV_PROTO_IPV4
				? cv_flow_common_ipv4(&view) == 0
				: view.proto != CV_PROTO_IPV6 || cv_flow_common_ipv6(&view) == 0)
			continue;
		common++;
		cv_flow_parse(&view, &any);
		cv_flow_parse_common(&view, &parsed);
		assert_memory_equal(&parsed, &any,
			offsetof(struct cv_flow_parsed, first_fragment) +
				sizeof(any.first_fragment));
	}
	assert_in_range(common, 1000, 5000);
}

// The hot half's way to update a checksum, beside the other one: all that there are, and those that none of
// UDP, and the two zeros, come of.
static void checksums_are_updated_alike(void **state)
{
	static const uint16_t deltas[] = {0, 1, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff};

	for (unsigned checksum = 0; checksum <= UINT16_MAX; checksum++)
		for (unsigned i = 0; i < 2 * (RTE_DIM(deltas) + 1); i++) {
			const bool udp = i % 2;
			const uint8_t proto = udp ? IPPROTO_UDP : IPPROTO_TCP;
			const unsigned at = udp ? 6 : 16;
			const uint16_t delta =
				i / 2 < RTE_DIM(deltas) ? deltas[i / 2] : (uint16_t)checksum;
			uint8_t is[20] = {0}, want[20] = {0};

			memcpy(is + at, &checksum, 2);
			memcpy(want + at, &checksum, 2);
			rewrite_checksum(is, delta, proto);
			cv_flow_checksum_at_update(want + at, delta, udp);
			assert_memory_equal(is, want, sizeof(is));
		}
}

// One group of four functions and four groups of one, one behind the other: equal verdicts, equal
// bytes, equal counters, whatever comes; in bursts, in place between other packets, against each
// packet alone in memory of its own.
static void equals_one_by_one(bool aes, bool shared, bool looked)
{
	enum { ROUNDS = 3000, WENT = 64 };
	const struct cv_flow_way way = {.set = CV_FLOW_SET_DSCP | CV_FLOW_SET_SRC_MAC,
		.dscp = 10,
		.src_mac = {2, 1, 1, 1, 1, 1}};
	// What is denied is not shown to those that follow: alone, one before would see it.
	struct toy together[TOYS] = {{.set_way = true, .way = {way, {0}}}, {.deny_port = 23},
		{.snat = true, .follows = true, .drop_every = 7}, {.dnat = true, .follows = true}};
	struct toy single[TOYS];
	static struct packet went[WENT];
	struct path all, each[TOYS];
	static struct cv_flow_homes homes = {.count = 1};
	struct cv_flow_home *home = NULL;
	uint64_t done_packets = 0, done_bytes = 0;
	unsigned went_count = 0;
	bool some_looked_up = false;

	memcpy(single, together, sizeof(single));
	path_make(&all, together, TOYS, &plenty);
	all.zone->secret.aes &= aes;
	homes.secret.aes = all.zone->secret.aes;
	if (shared)
		cv_flow_zone_share(all.zone, &homes);
	if (looked) {
		home = cv_flow_home_create(&homes, 0, NULL, NULL, TSC_HZ, NULL);
		cv_flow_home_read(home, 0, all.zone);
	}
	for (unsigned i = 0; i < TOYS; i++) {
		path_make(&each[i], &single[i], 1, &plenty);
		if (shared)
			cv_flow_zone_share(each[i].zone, &homes); // flows end as late
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		static uint8_t frame[CV_BURST_MAX * 260];
		struct packet packets[CV_BURST_MAX], before[CV_BURST_MAX];
		struct cv_view views[CV_BURST_MAX];
		uint8_t verdicts[CV_BURST_MAX + 1];
		bool done[CV_BURST_MAX];
		const uint16_t n = (uint16_t)(1 + random32(random32(4) == 0 ? CV_BURST_MAX : 4));
		uint16_t dropped, count = 0;
		uint8_t *at = frame;
		bool reply = false;

		// A burst is of one direction: it comes by one chain.
		packets[0] = random_packet(went, went_count, &reply);
		for (uint16_t i = 1; i < n; i++) {
			bool this_reply;

			do
				packets[i] = random_packet(went, went_count, &this_reply);
			while (this_reply != reply);
		}
		memset(frame, 0xee, sizeof(frame));
		for (uint16_t i = 0; i < n; i++) {
			at += 2;
			memcpy(at, packets[i].bytes, packets[i].len);
			views[i].in = reply;
			views[i].out = !reply;
			cv_view_set(&views[i], at, packets[i].len);
			at += packets[i].len;
		}
		if (looked && random32(8) != 0) { // else it comes by a ring
			uint8_t workers[CV_BURST_MAX];

			assert_int_equal(cv_flow_home_find(home, views, workers, n), 0);
			some_looked_up |= all.zone->lookup.n == n;
		}
		for (uint16_t i = 0; i < n; i++) {
			done[i] = shared && round % 2 == 0 && random32(2) == 0;
			views[i].in |= done[i] ? CV_VIEW_DONE : 0;
		}
		memcpy(before, packets, n * sizeof(packets[0]));
		verdicts[n] = 0xa5;
		dropped = cv_flow_process(all.group[reply], &worker, views, verdicts, n);
		assert_int_equal(verdicts[n], 0xa5);
		at = frame;
		for (uint16_t i = 0; i < n; i++) {
			struct packet *packet = &packets[i];
			uint8_t verdict = CV_NEXT;

			assert_int_equal(views[i].in, reply);
			done_packets += done[i];
			done_bytes += done[i] ? packet->len : 0;
			for (unsigned k = 0; !done[i] && k < TOYS && verdict == CV_NEXT; k++)
				verdict = pass(&each[reply ? TOYS - 1 - k : k], reply, packet);
			assert_int_equal(verdicts[i], verdict);
			count += verdict != CV_NEXT;
			assert_int_equal(at[0], 0xee); // between the packets
			assert_int_equal(at[1], 0xee);
			at += 2 + packet->len;
			if (verdict != CV_NEXT)
				continue;
			assert_int_equal(views[i].len, packet->len);
			if (memcmp(views[i].data, packet->bytes, packet->len) != 0)
				fail_msg("round %u packet %u: bytes differ", round, i);
			if (done[i])
				continue;
			flow_checksums(packet->bytes, packet->len);
			assert_memory_equal(views[i].data, packet->bytes, packet->len);
			if (!reply && packet->bytes[12] != 8 && packet->bytes[13] != 6)
				went[went_count < WENT ? went_count++ : random32(WENT)] = *packet;
		}
		assert_int_equal(dropped, count);
		for (unsigned k = 0; k < TOYS; k++) {
			assert_int_equal(all.counters[k].packets,
				each[k].counters[0].packets + done_packets);
			assert_int_equal(
				all.counters[k].bytes, each[k].counters[0].bytes + done_bytes);
			assert_memory_equal(all.counters[k].drops, each[k].counters[0].drops,
				sizeof(all.counters[k].drops));
			assert_int_equal(together[k].followed, single[k].followed);
		}
		if (random32(200) == 0) { // some of the flows end; the same ones
			worker.now += 100ull * TSC_HZ;
			went_count = 0; // answers to them would be flows of their own
			for (unsigned i = 0; i < 40; i++) {
				cv_flow_tick(all.group[0], &worker);
				for (unsigned k = 0; k < TOYS; k++)
					cv_flow_tick(each[k].group[0], &worker);
			}
		}
	}
	assert_int_equal(some_looked_up, looked);
	cv_flow_home_destroy(home);
	assert_in_range(all.zone->counters.created, 100, ROUNDS * CV_BURST_MAX);
	assert_in_range(all.zone->counters.timed_out, 10, ROUNDS * CV_BURST_MAX);
	worker.now += 90000ull * TSC_HZ;
	for (unsigned i = 0; i < 1000; i++) {
		worker.now += TSC_HZ;
		cv_flow_tick(all.group[0], &worker);
	}
	assert_int_equal(all.zone->counters.flows_ipv4 + all.zone->counters.flows_ipv6, 0);
	for (unsigned k = 0; k < TOYS; k++) { // each flow has ended for who said yes to it
		assert_int_equal(together[k].ended,
			k == 0 ? together[0].decided[CV_FLOW_NEW] : all.zone->counters.created);
		path_free(&each[k]);
	}
	path_free(&all);
}

static void four_together_equal_four_alone(void **state)
{
	equals_one_by_one(true, false, false);
	equals_one_by_one(false, false, false);
}

// Of packets that another worker's flows rewrote nothing is left to do, whatever lies between them.
static void what_is_done_with_is_counted(void **state)
{
	equals_one_by_one(true, true, false);
	equals_one_by_one(false, true, false);
}

// What was looked up before is as good as what the flow path looks up.
static void what_is_looked_up_before_is_the_same(void **state)
{
	equals_one_by_one(true, true, true);
	equals_one_by_one(false, true, true);
}

static void too_many_functions_are_refused(void **state)
{
	struct cv_flow_member members[CV_FLOW_MEMBERS_MAX + 1];
	struct cv_error error = {0};
	struct toy toy = {0};

	for (unsigned i = 0; i < RTE_DIM(members); i++)
		members[i] = (struct cv_flow_member){&toy_nf, &toy};
	assert_null(cv_flow_zone_create(members, 5, &plenty, TSC_HZ, &error));
	assert_non_null(strstr(error.text, "32 bytes are possible"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewrites_both_ways),
		cmocka_unit_test(an_echo_of_zeros_is_right),
		cmocka_unit_test(errors_are_translated),
		cmocka_unit_test(unrelated_errors_are_left_to_the_function),
		cmocka_unit_test(what_is_no_flow_is_left_to_the_function),
		cmocka_unit_test(fragments_follow_the_first),
		cmocka_unit_test(sets_what_a_way_says),
		cmocka_unit_test(wraps_what_came),
		cmocka_unit_test(denials_are_remembered),
		cmocka_unit_test(a_change_asks_again),
		cmocka_unit_test(a_reply_of_before_is_of_no_flow),
		cmocka_unit_test(flows_leave_by_outputs),
		cmocka_unit_test(replies_to_outputs_are_others),
		cmocka_unit_test(one_packet_leaves_by_an_output),
		cmocka_unit_test(an_instance_is_replaced),
		cmocka_unit_test(a_full_table_leaves_flows_alone),
		cmocka_unit_test(hosts_have_limits),
		cmocka_unit_test(an_answer_is_not_denied),
		cmocka_unit_test(conflicts_are_refused),
		cmocka_unit_test(flows_that_begin_together),
		cmocka_unit_test(known_and_new_flows_together),
		cmocka_unit_test(an_answer_that_came_together),
		cmocka_unit_test(ports_that_are_taken_are_not_free),
		cmocka_unit_test(ports_that_are_none_stay),
		cmocka_unit_test(tcp_states_have_their_timeouts),
		cmocka_unit_test(what_is_seen_stays),
		cmocka_unit_test(common_packets_are_any_packets),
		cmocka_unit_test(checksums_are_updated_alike),
		cmocka_unit_test(four_together_equal_four_alone),
		cmocka_unit_test(what_is_done_with_is_counted),
		cmocka_unit_test(what_is_looked_up_before_is_the_same),
		cmocka_unit_test(too_many_functions_are_refused),
	};

	worker.now = 1000ull * TSC_HZ;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
