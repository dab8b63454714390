// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Sequences of packets against the flow path: four stateful functions behind one look-up, a table of
// 64 flows. Each packet lies in memory of its own exact size, so that a read or write outside of it is
// found. Whatever comes: what leaves has sound checksums if it came with such; every function is told
// of the end of each flow that it let pass, and of no other; the counters add up; and when time has
// passed nothing is left of any flow.
//
// Input: operations, each a byte of which the low three bits say what it is:
//   0 a packet: a byte of length, its bytes      1 a packet made of two bytes (see make_packet())
//   2 the answer to the last that left           3 an ICMP error about it, of a byte of length
//   4 time passes, a byte of seconds             5 a function's configuration changes, a byte
//   6, 7 what was collected goes through in one burst; so it does when 64 are there
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/zone.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUNCTIONS 4
#define HZ 1000000000u
#define PACKET_MAX 256

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

// What each function does, and what it was told.
struct function {
	bool source_nat, follows;
	uint8_t deny, output; // destination port's low byte; 0: none
	uint32_t generation;
	long open; // flows that it let pass and whose end it was not told of
};

static struct function functions[FUNCTIONS];
static struct cv_flow_zone *zone;
static struct cv_flow_group *group[2];
static struct cv_nf_counters counters[FUNCTIONS];
static struct cv_nf_worker worker = {.now = 1000ull * HZ};

struct slot {
	uint64_t open;
};

static uint8_t decide(void *instance, struct cv_nf_worker *of, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, void *memory)
{
	struct function *function = instance;
	struct slot *slot = memory;
	struct cv_flow_tuple *tuple = &actions->tuple;
	const uint8_t port = (uint8_t)(rte_be_to_cpu_16(tuple->dport));

	must(packet->why == CV_FLOW_NEW ? slot->open == 0 : slot->open == 1, "the slot is kept");
	must(packet->l4 <= packet->view->len, "layer 4 is in the packet");
	if (function->deny != 0 && port == function->deny + function->generation % 3) {
		actions->once = port & 1;
		return CV_DROP(0);
	}
	if (slot->open == 0)
		function->open++;
	slot->open = 1;
	if (function->output != 0 && port == function->output + function->generation % 2)
		return CV_OUTPUT(0);
	if (function->source_nat) {
		tuple->sport ^= RTE_BE16(0x0100);
		if (cv_flow_is_free(packet, tuple) || packet->why != CV_FLOW_NEW) {
			if (tuple->family == 4)
				tuple->src.ipv4 ^= RTE_BE32(0x01000000);
			else
				tuple->src.ipv6[0] ^= 1;
		}
	}
	actions->way[port & 1].set = port & 31;
	actions->way[port & 1].dscp = port & 63;
	actions->way[port & 1].vlan = port;
	actions->follow = function->follows;
	return CV_NEXT;
}

static unsigned follow(void *instance, struct cv_nf_worker *of,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	unsigned others = 0;

	for (unsigned i = 0; i < n; i++) {
		must(((struct slot *)packets[i].slot)->open == 1, "it follows what it decided");
		must(packets[i].bytes <= packets[i].view->len, "the IP packet is in the packet");
		if (packets[i].view->len % 16 != 0)
			continue;
		verdicts[i] = CV_DROP(1);
		others++;
	}
	return others;
}

static void ended(void *instance, struct cv_nf_worker *of, const void *memory)
{
	must(((const struct slot *)memory)->open == 1, "what ends was open");
	((struct function *)instance)->open--;
}

static uint8_t other(
	void *instance, struct cv_nf_worker *of, const struct cv_view *view, enum cv_flow_other why)
{
	return view->len & 1 ? CV_NEXT : CV_DROP(2);
}

static const uint32_t *generation(const void *instance)
{
	return &((const struct function *)instance)->generation;
}

static const char *const drops[] = {"denied", "metered", "other", NULL};
static enum cv_flow_windows windows(const void *instance)
{
	return CV_FLOW_WINDOWS_ALL;
}

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct slot),
	.decide = decide,
	.follow = follow,
	.ended = ended,
	.other = other,
	.generation = generation,
	.windows = windows,
};
static const struct cv_nf nf = {.name = "fuzzed", .drops = drops, .flow = &flow};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_flow_limits limits = {.max = 64,
		.max_ipv6 = 64,
		.per_host = 20,
		.timeouts_s = {20, 60, 10, 12, 30, 6, 60, 5}};
	struct cv_flow_member members[FUNCTIONS];
	struct cv_nf_counters *forward[FUNCTIONS], *backward[FUNCTIONS];
	uint8_t order[FUNCTIONS], reversed[FUNCTIONS];
	struct cv_error error = {""};

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		members[i] = (struct cv_flow_member){&nf, &functions[i]};
		order[i] = (uint8_t)i;
		reversed[i] = (uint8_t)(FUNCTIONS - 1 - i);
		forward[i] = &counters[i];
		backward[i] = &counters[FUNCTIONS - 1 - i];
	}
	zone = cv_flow_zone_create(members, FUNCTIONS, &limits, HZ, &error);
	must(zone != NULL, error.text);
	memset(zone->secret.keys, 7, sizeof(zone->secret.keys)); // one input, one run
	group[0] = cv_flow_group_create(zone, order, forward);
	group[1] = cv_flow_group_create(zone, reversed, backward);
	return 0;
}

struct packet {
	uint8_t bytes[PACKET_MAX];
	uint16_t len;
};

// Whether the sums of a packet of a flow are right: 0xffff with its checksums. UDP may have none.
static bool sums_are_right(const uint8_t *data, uint16_t len)
{
	struct cv_flow_parsed parsed;
	struct cv_view view;
	const uint8_t *ip = data, *l4;
	unsigned at;
	uint64_t sum;

	cv_view_set(&view, (uint8_t *)(uintptr_t)data, len);
	cv_flow_parse(&view, &parsed);
	if (parsed.kind != CV_FLOW_IS_FLOW && parsed.kind != CV_FLOW_IS_ERROR)
		return false;
	ip = data + parsed.l3;
	l4 = data + parsed.l4;
	if (!parsed.v6 && cv_checksum_fold(cv_checksum_add(0, ip, parsed.l4 - parsed.l3)) != 0xffff)
		return false;
	at = cv_flow_checksum_at(parsed.proto);
	if (at == 0 || parsed.first_fragment || parsed.proto == IPPROTO_UDPLITE ||
		parsed.proto == IPPROTO_DCCP)
		return true;
	if (parsed.proto == IPPROTO_UDP && cv_load_be16(l4 + at) == 0)
		return true;
	sum = cv_checksum_add(0, l4, parsed.end - parsed.l4);
	if (parsed.proto != IPPROTO_ICMP) {
		sum += cv_checksum_add(0, ip + (parsed.v6 ? 8 : 12), parsed.v6 ? 32 : 8);
		sum += rte_cpu_to_be_16(parsed.proto);
		sum += rte_cpu_to_be_16((uint16_t)(parsed.end - parsed.l4));
	}
	return cv_checksum_fold(sum) == 0xffff;
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

// Right checksums, of IPv4 without options or IPv6 without extensions.
static void make_sums(struct packet *packet)
{
	uint8_t *ip = packet->bytes + 14;
	const bool v6 = ip[0] >> 4 == 6;
	const uint8_t proto = v6 ? ip[6] : ip[9];
	uint8_t *l4 = ip + (v6 ? 40 : 20);
	const unsigned at = cv_flow_checksum_at(proto),
		       len = packet->len - (unsigned)(l4 - packet->bytes);
	uint64_t sum = 0;
	rte_be16_t checksum;

	if (!v6) {
		put16(ip + 10, 0);
		checksum = cv_checksum(ip, 20);
		memcpy(ip + 10, &checksum, 2);
	}
	if (at == 0 || at + 2 > len)
		return;
	put16(l4 + at, 0);
	if (proto != IPPROTO_ICMP)
		sum = cv_checksum_add(0, ip + (v6 ? 8 : 12), v6 ? 32 : 8) +
		      rte_cpu_to_be_16(proto) + rte_cpu_to_be_16((uint16_t)len);
	checksum = (rte_be16_t)~cv_checksum_fold(cv_checksum_add(sum, l4, len));
	memcpy(l4 + at, &checksum, 2);
}

// A sound packet: of few addresses, ports and kinds, so that sequences meet the same flows.
static void make_packet(struct packet *packet, uint8_t a, uint8_t b)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_SCTP, 50,
		IPPROTO_UDP, IPPROTO_TCP, 33};
	const bool v6 = a & 1;
	uint8_t proto = protos[a >> 1 & 7], *ip = packet->bytes + 14;
	uint8_t *l4 = ip + (v6 ? 40 : 20);

	memset(packet, 0, sizeof(*packet));
	packet->len = (uint16_t)(14 + (v6 ? 40 : 20) + 20 + (a >> 7) * 7);
	if (v6 && proto == IPPROTO_ICMP)
		proto = IPPROTO_ICMPV6;
	if (v6) {
		put16(packet->bytes + 12, 0x86dd);
		ip[0] = 0x60;
		put16(ip + 4, packet->len - 54u);
		ip[6] = proto;
		ip[8] = ip[24] = 0x20;
		ip[23] = a >> 4 & 3;
		ip[39] = 9;
	} else {
		put16(packet->bytes + 12, 0x0800);
		ip[0] = 0x45;
		put16(ip + 2, packet->len - 14u);
		ip[6] = a >> 6 & 1 ? 0x20 : 0; // a first fragment
		ip[9] = proto;
		ip[12] = ip[16] = 10;
		ip[15] = a >> 4 & 3;
		ip[19] = 9;
	}
	put16(l4, 1000 + (b & 7));
	put16(l4 + 2, 20 + (b >> 3 & 7));
	if (proto == IPPROTO_TCP)
		l4[13] = (uint8_t)("\x02\x10\x11\x04"[b >> 6]);
	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) {
		l4[0] = proto == IPPROTO_ICMP ? 8 : 128;
		l4[1] = 0;
		put16(l4 + 4, b & 15);
	}
	make_sums(packet);
}

static void make_answer(struct packet *packet)
{
	const struct packet was = *packet;
	struct cv_flow_parsed parsed;
	struct cv_view view;
	uint8_t *ip, *l4;
	unsigned bytes;

	cv_view_set(&view, packet->bytes, packet->len);
	cv_flow_parse(&view, &parsed);
	if (parsed.kind != CV_FLOW_IS_FLOW)
		return;
	ip = packet->bytes + parsed.l3;
	l4 = packet->bytes + parsed.l4;
	bytes = parsed.v6 ? 16 : 4;
	memcpy(ip + (parsed.v6 ? 8 : 12), was.bytes + parsed.l3 + (parsed.v6 ? 24 : 16), bytes);
	memcpy(ip + (parsed.v6 ? 24 : 16), was.bytes + parsed.l3 + (parsed.v6 ? 8 : 12), bytes);
	if (parsed.proto == IPPROTO_ICMP)
		l4[0] ^= 8;
	else if (parsed.proto == IPPROTO_ICMPV6)
		l4[0] ^= 1;
	if (cv_proto_has_ports(parsed.proto)) {
		memcpy(l4, was.bytes + parsed.l4 + 2, 2);
		memcpy(l4 + 2, was.bytes + parsed.l4, 2);
	}
	if (parsed.l4 - parsed.l3 == (parsed.v6 ? 40 : 20) && parsed.l3 == 14)
		make_sums(packet);
}

static void make_error(struct packet *packet, uint8_t quoted)
{
	const struct packet was = *packet;
	const bool v6 = was.len > 54 && was.bytes[14] >> 4 == 6;
	const unsigned header = v6 ? 40 : 20;
	unsigned room = was.len > 14 ? was.len - 14u : 0;
	uint8_t *ip = packet->bytes + 14;

	if (was.len < 54 || was.bytes[12] != (v6 ? 0x86 : 0x08))
		return;
	room = RTE_MIN(room, quoted);
	room = RTE_MIN(room, PACKET_MAX - 14 - header - 8);
	memset(packet->bytes + 14, 0, sizeof(packet->bytes) - 14);
	packet->len = (uint16_t)(14 + header + 8 + room);
	ip[0] = v6 ? 0x60 : 0x45;
	if (v6) {
		put16(ip + 4, 8 + room);
		ip[6] = IPPROTO_ICMPV6;
		ip[8] = 0x20;
		memcpy(ip + 24, was.bytes + 14 + 8, 16);
	} else {
		put16(ip + 2, 28 + room);
		ip[9] = IPPROTO_ICMP;
		ip[12] = 11;
		memcpy(ip + 16, was.bytes + 14 + 12, 4);
	}
	ip[header] = v6 ? 1 : 3;
	memcpy(ip + header + 8, was.bytes + 14, room);
	make_sums(packet);
}

static struct packet last; // that left
static struct cv_view views[CV_BURST_MAX];
static uint16_t collected;

static void run(unsigned which)
{
	uint8_t verdicts[CV_BURST_MAX + 1];
	bool right[CV_BURST_MAX];
	uint16_t others = 0, lens[CV_BURST_MAX], returned;

	for (unsigned i = 0; i < collected; i++) {
		right[i] = sums_are_right(views[i].data, views[i].len);
		lens[i] = views[i].len;
	}
	verdicts[collected] = 0xa5;
	returned = cv_flow_process(group[which], &worker, views, verdicts, collected);
	must(verdicts[collected] == 0xa5, "no verdict behind the last");
	for (unsigned i = 0; i < collected; i++) {
		others += verdicts[i] != CV_NEXT;
		must(verdicts[i] < CV_DROP(CV_FLOW_DROPS) || verdicts[i] == CV_OUTPUT(0),
			"a verdict is one");
		must(views[i].len == lens[i], "the length stays");
		if (verdicts[i] == CV_NEXT && right[i])
			must(sums_are_right(views[i].data, views[i].len), "sums stay right");
		if (verdicts[i] == CV_NEXT && views[i].len <= PACKET_MAX) {
			memcpy(last.bytes, views[i].data, views[i].len);
			last.len = views[i].len;
		}
		free(views[i].data);
	}
	must(returned == others, "it says how many do not go on");
	collected = 0;
}

static void collect(const struct packet *packet, unsigned which)
{
	uint8_t *exact = malloc(packet->len + !packet->len);

	memcpy(exact, packet->bytes, packet->len);
	views[collected] = (struct cv_view){.in = 0, .out = 1};
	cv_view_set(&views[collected++], exact, packet->len);
	if (collected == CV_BURST_MAX)
		run(which);
}

// Time passes until nothing is left.
static void finish(void)
{
	for (unsigned i = 0; i < 200; i++) {
		worker.now += HZ;
		cv_flow_tick(group[0], &worker);
	}
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct cv_flow_table *table = &zone->table[v6];

		must(table->used == 0, "every flow has ended");
		must(zone->denied[v6] == 0, "no denied flow is left");
		for (uint32_t i = 0; i < table->buckets_count; i++) {
			must(table->buckets[i].displaced == 0, "no key was displaced");
			for (unsigned k = 0; k < CV_FLOW_BUCKET; k++)
				must(table->buckets[i].signature[k] == 0, "no key is left");
		}
	}
	for (uint32_t i = 0; i < zone->hosts.buckets_count; i++)
		for (unsigned k = 0; k < CV_FLOW_HOSTS; k++)
			must(zone->hosts.buckets[i].count[k] == 0, "no host has flows");
	for (unsigned i = 1; i < CV_FLOW_WAYS_MAX; i++)
		must(zone->ways.flows[i] == 0, "no flow uses a way");
	for (unsigned i = 0; i < FUNCTIONS; i++)
		must(functions[i].open == 0, "functions were told of every end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function first[FUNCTIONS] = {
		{.deny = 22}, {.source_nat = true}, {.follows = true, .output = 25}, {.deny = 26}};
	struct packet packet;

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const uint32_t changes = functions[i].generation;

		functions[i] = first[i];
		functions[i].generation = changes - changes % 6;
	}
	cv_flow_learn_changes(zone);
	memset(&last, 0, sizeof(last));
	while (size > 0) {
		const unsigned what = data[0] & 7, which = data[0] >> 3 & 1;
		uint8_t argument = size > 1 ? data[1] : 0;
		size_t took = 2;

		switch (what) {
		case 0:
			packet.len = (uint16_t)(size < 2u + argument ? 0 : argument);
			memcpy(packet.bytes, data + (packet.len > 0 ? 2 : 0), packet.len);
			took += packet.len;
			collect(&packet, which);
			break;
		case 1:
			make_packet(&packet, argument, size > 2 ? data[2] : 0);
			took = 3;
			collect(&packet, which);
			break;
		case 2:
		case 3:
			packet = last;
			took = what - 1;
			if (what == 2)
				make_answer(&packet);
			else
				make_error(&packet, argument);
			collect(&packet, which);
			break;
		case 4:
			run(which);
			worker.now += (uint64_t)argument * HZ;
			cv_flow_tick(group[0], &worker);
			break;
		case 5:
			run(which);
			functions[argument % FUNCTIONS].generation++;
			break;
		default:
			run(which);
			took = 1;
		}
		data += RTE_MIN(took, size);
		size -= RTE_MIN(took, size);
	}
	run(0);
	finish();
	return 0;
}
