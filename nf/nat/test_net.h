// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests of nat: an instance in the flow path.
#ifndef CV_TEST_NET_H
#define CV_TEST_NET_H

#include <rte_cycles.h>

#include "tests/support/test_flow.h"

#include "flow/path.h"
#include "flow/zone.h"

#define TSC_HZ rte_get_tsc_hz() // in which a block's rest is measured, too
#define INSIDE 0 // ports of packet_env(): left
#define OUTSIDE 1 // right

extern const struct cv_nf cv_nf_nat;

struct net {
	void *nat;
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters;
	struct cv_nf_worker worker;
};

// Of an instance, which several may share.
static inline void net_make_of(struct net *net, void *nat, unsigned worker, uint32_t flows)
{
	const struct cv_flow_limits limits = {.max = flows,
		.max_ipv6 = 64,
		.timeouts_s = {[CV_FLOW_TCP_OPENING] = 240,
			[CV_FLOW_TCP_ESTABLISHED] = 7440,
			[CV_FLOW_TCP_CLOSING] = 240,
			[CV_FLOW_UDP_NEW] = 120,
			[CV_FLOW_UDP] = 300,
			[CV_FLOW_ICMP] = 60,
			[CV_FLOW_OTHER] = 600,
			[CV_FLOW_DENIED_FOR] = 5}};
	struct cv_nf_counters *counters = &net->counters;
	struct cv_error error = {{0}};
	struct cv_flow_member member;

	memset(net, 0, sizeof(*net));
	net->nat = nat;
	net->worker = (struct cv_nf_worker){.index = worker, .now = TSC_HZ};
	member = (struct cv_flow_member){&cv_nf_nat, net->nat};
	net->zone = cv_flow_zone_create(&member, 1, &limits, TSC_HZ, &error);
	if (net->zone == NULL)
		fail_msg("%s", error.text);
	net->group = cv_flow_group_create(net->zone, (const uint8_t[]){0}, &counters);
	assert_non_null(net->group);
}

static inline void net_make(struct net *net, const char *config, unsigned worker, uint32_t flows)
{
	net_make_of(net, packet_nf(&cv_nf_nat, config, NULL), worker, flows);
}

static inline void net_free(struct net *net)
{
	cv_flow_zone_destroy(net->zone);
	cv_nf_destroy(&cv_nf_nat, net->nat);
}

// Lets time pass, in steps in which ageing keeps up.
static inline void net_wait(struct net *net, unsigned seconds)
{
	for (unsigned i = 0; i < seconds * 4; i++) {
		net->worker.now += TSC_HZ / 4;
		for (unsigned step = 0; step < 64; step++)
			cv_flow_tick(net->group, &net->worker);
	}
}

// One of the numbers of info().
static inline unsigned net_info(const struct net *net, const char *key)
{
	json_t *info = cv_nf_nat.info(net->nat);
	json_t *value = json_object_get(info, key);
	unsigned number;

	if (value == NULL)
		value = json_object_get(json_object_get(info, "blocks"), key);
	number = (unsigned)json_integer_value(value);
	json_decref(info);
	return number;
}

// A packet from text with right checksums, also of UDP. "flags=12", the last word: TCP's, in
// hexadecimal.
static inline struct packet net_packet(const char *text)
{
	struct cv_flow_parsed parsed;
	struct packet packet;
	struct cv_view view;
	char words[1024], *flags;

	snprintf(words, sizeof(words), "%s", text);
	flags = strstr(words, " flags=");
	if (flags == NULL)
		return flow_packet(words, true);
	*flags = '\0';
	packet = packet_make(words);
	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_parse(&view, &parsed);
	packet.bytes[parsed.l4 + 13] = (uint8_t)strtoul(flags + 7, NULL, 16);
	flow_checksums(packet.bytes, packet.len);
	return packet;
}

// One packet, in memory of its own exact size. Returns "next", or the name of the drop; port: that
// it came in by, and that it leaves by.
static inline const char *net_pass(struct net *net, struct packet *packet, uint8_t *port)
{
	const struct cv_nf_counters before = net->counters;
	const struct cv_nf_counters path = *cv_flow_group_counters(net->group);
	uint8_t *exact = malloc(packet->len + !packet->len);
	struct cv_view view = {.in = *port, .out = !*port};
	uint8_t verdict = 0xa5;

	memcpy(exact, packet->bytes, packet->len);
	cv_view_set(&view, exact, packet->len);
	cv_flow_process(net->group, &net->worker, &view, &verdict, 1);
	memcpy(packet->bytes, exact, packet->len);
	free(exact);
	*port = view.out;
	if (verdict == CV_NEXT)
		return "next";
	for (unsigned i = 0; cv_nf_nat.drops[i] != NULL; i++)
		if (net->counters.drops[i] != before.drops[i])
			return cv_nf_nat.drops[i];
	for (unsigned i = 1; i < CV_FLOW_DROPS; i++)
		if (verdict == CV_DROP(i) ||
			cv_flow_group_counters(net->group)->drops[i] != path.drops[i])
			return cv_flow_drop_names[i];
	return "?";
}

static inline void net_same(
	const char *name, const struct packet *is, const struct packet *expected)
{
	assert_int_equal(is->len, expected->len);
	for (unsigned i = 0; i < is->len; i++)
		if (is->bytes[i] != expected->bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, is->bytes[i],
				expected->bytes[i]);
}

#endif
