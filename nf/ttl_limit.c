// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Drops packets whose TTL (IPv4) or hop limit (IPv6) is under a bound. With min 255, only packets
// that no router has forwarded pass: the generalized TTL security mechanism (RFC 5082).
//
// Packets are not changed. Up to two VLAN tags are looked behind; a third makes a packet non-IP.
//
// Drops: ttl_below_min; bad_header (too short to show its type or its TTL); non_ip.
#include "chain/nf.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

enum drop { TTL_BELOW_MIN, BAD_HEADER, NON_IP };
static const char *const drops[] = {"ttl_below_min", "bad_header", "non_ip", NULL};

enum non_ip { PASS, DROP };
static const char *const non_ip_actions[] = {"pass", "drop", NULL};

struct config {
	uint8_t min;
	enum non_ip non_ip;
};

static const struct cv_param params[] = {
	{"min", CV_INTEGER, CV_AT(struct config, min), .low = 1, .high = 255, .fallback = 2,
		.doc = "lowest TTL or hop limit that passes"},
	{"non_ip", CV_WORD, CV_AT(struct config, non_ip), .words = non_ip_actions,
		.doc = "what happens to packets that are neither IPv4 nor IPv6"},
	{0},
};

static CV_INLINE uint8_t verdict_of(const struct config *config, const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3; // never look behind data + len
	uint8_t ttl;

	switch (view->proto) {
	case CV_PROTO_IPV4:
		if (room < CV_IPV4_LEN)
			return CV_DROP(BAD_HEADER);
		ttl = ((const struct cv_ipv4 *)ip)->ttl;
		break;
	case CV_PROTO_IPV6:
		if (room < CV_IPV6_LEN)
			return CV_DROP(BAD_HEADER);
		ttl = ((const struct cv_ipv6 *)ip)->hop_limit;
		break;
	case 0:
		return CV_DROP(BAD_HEADER);
	default:
		return config->non_ip == PASS ? CV_NEXT : CV_DROP(NON_IP);
	}
	return ttl >= config->min ? CV_NEXT : CV_DROP(TTL_BELOW_MIN);
}

// Returns how many packets are dropped.
CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = verdict_of(instance, &view[i]);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

// Without create(), the instance is the struct config that the parameters were read into.
const struct cv_nf cv_nf_ttl_limit = {
	.name = "ttl_limit",
	.summary = "Drops packets whose TTL or hop limit is under a bound (RFC 5082).",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.process = process,
};
