// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Once for each kind of processor: the files that include this are compiled for different ones, and
// give it a name as CV_ROUTER_VALIDATE.
#include <rte_common.h>

#include "nf/router/validate.h"
#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/ipv4_x4.h"
#include "packet/ipv4_x8.h"
#include "packet/ipv6.h"

// A frame that the port does not take: to a group, or to another unicast address.
static CV_INLINE uint8_t not_taken(const struct cv_view *view)
{
	return cv_mac_group(view->data) ? CV_DROP(CV_ROUTER_MULTICAST)
					: CV_DROP(CV_ROUTER_OTHER_MAC);
}

static CV_INLINE uint8_t validate_ipv4(const struct cv_view *view, const struct cv_mac_match *match)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(view->data + view->l3);

	if (cv_ipv4_check(ip, view->len - view->l3) == 0)
		return CV_DROP(CV_ROUTER_BAD_HEADER);
	if (cv_mac_differs(&match[view->in], view->data) != 0)
		return not_taken(view);
	if (cv_ipv4_multicast(ip->dst))
		return CV_DROP(CV_ROUTER_MULTICAST);
	if (cv_ipv4_martian(ip->src) || cv_ipv4_martian(ip->dst))
		return CV_DROP(CV_ROUTER_MARTIAN);
	return ip->ttl <= 1 ? CV_DROP(CV_ROUTER_TTL_EXPIRED) : CV_NEXT;
}

static CV_INLINE uint8_t validate_ipv6(const struct cv_view *view, const struct cv_mac_match *match)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)(view->data + view->l3);

	if (CV_UNLIKELY(!cv_ipv6_check(ip, view->len - view->l3)))
		return CV_DROP(CV_ROUTER_BAD_HEADER);
	if (CV_UNLIKELY(cv_mac_differs(&match[view->in], view->data) != 0))
		return not_taken(view);
	if (CV_UNLIKELY(cv_ipv6_multicast(ip->dst)))
		return CV_DROP(CV_ROUTER_MULTICAST);
	if (CV_UNLIKELY(cv_ipv6_martian(ip->src) || cv_ipv6_martian(ip->dst)))
		return CV_DROP(CV_ROUTER_MARTIAN);
	return CV_UNLIKELY(ip->hop_limit <= 1) ? CV_DROP(CV_ROUTER_TTL_EXPIRED) : CV_NEXT;
}

// Validates one packet; if it is to be routed, takes one from its TTL. Sets IPv4's destination.
static CV_INLINE uint8_t validate(
	const struct cv_view *view, const struct cv_mac_match *match, uint32_t *destination)
{
	uint8_t *l3 = view->data + view->l3, validated;

	if (view->proto == CV_PROTO_IPV4) {
		validated = validate_ipv4(view, match);
		if (CV_LIKELY(validated == CV_NEXT)) {
			*destination = rte_be_to_cpu_32(((struct cv_ipv4 *)l3)->dst);
			cv_ipv4_ttl_decrement((struct cv_ipv4 *)l3);
		}
		return validated;
	}
	if (view->proto != CV_PROTO_IPV6)
		return CV_DROP(CV_ROUTER_NOT_IP);
	validated = validate_ipv6(view, match);
	if (CV_LIKELY(validated == CV_NEXT))
		((struct cv_ipv6 *)l3)->hop_limit--;
	return validated;
}

void CV_ROUTER_VALIDATE(const struct cv_view *view, const struct cv_mac_match *match,
	uint8_t *verdict, uint16_t n, struct cv_router_validated *validated)
{
	uint32_t *destination = validated->destination;
	uint32_t longest = 0;
	uint16_t v6 = 0;
	bool all = true;

	memset(verdict, CV_NEXT, n);
	for (uint16_t i = 0; i < n;) {
		if (CV_LIKELY(i + 8 <= n) &&
			CV_LIKELY(cv_ipv4_hop_x8(&view[i], match, &destination[i], &longest))) {
			i += 8;
			continue;
		}
		if (CV_LIKELY(i + 4 <= n) &&
			CV_LIKELY(cv_ipv4_hop_x4(&view[i], match, &destination[i], &longest))) {
			i += 4;
			continue;
		}
		for (uint16_t end = RTE_MIN(i + 4, n); i < end; i++) {
			destination[i] = 0;
			verdict[i] = validate(&view[i], match, &destination[i]);
			all = all && verdict[i] == CV_NEXT;
			longest = RTE_MAX(longest, (uint32_t)(view[i].len - view[i].l3));
			if (verdict[i] == CV_NEXT && view[i].proto == CV_PROTO_IPV6)
				validated->v6_index[v6++] = (uint8_t)i;
		}
	}
	validated->longest = longest;
	validated->v6 = v6;
	validated->all = all;
}
