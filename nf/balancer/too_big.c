// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/too_big.h"

#include <string.h>

#include <rte_common.h>

#include "packet/ether.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

#define IPV6_MTU_LEAST 1280u // RFC 8200 section 5

bool cv_fits(const struct cv_view *view, unsigned most)
{
	const uint8_t *ip = view->data + view->l3;

	if ((unsigned)(view->len - view->l3) <= most)
		return true;
	return view->proto == CV_PROTO_IPV4 && (ip[6] & 0x40) == 0;
}

void cv_tell_too_big(struct cv_nf_worker *worker, const struct cv_view *view, unsigned most)
{
	const uint8_t *ip = view->data + view->l3;
	const bool v6 = view->proto == CV_PROTO_IPV6;
	const struct cv_icmp_error error = {
		.reason = CV_ICMP_TOO_BIG, .value = v6 ? RTE_MAX(most, IPV6_MTU_LEAST) : most};
	uint16_t len;
	uint8_t *data;

	if (v6 ? !cv_icmpv6_allowed(ip, &error) : !cv_icmpv4_allowed(ip))
		return;
	len = v6 ? cv_icmpv6_error_len(ip) : cv_icmpv4_error_len(ip);
	data = cv_nf_originate(
		worker, (uint16_t)(view->l3 + len), view->in, view->in, CV_NF_BY_PORT);
	if (data == NULL)
		return;
	memcpy(data, view->data, view->l3); // tags, too
	memcpy(data, view->data + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(data + CV_MAC_LEN, view->data, CV_MAC_LEN);
	if (v6) {
		cv_icmpv6_error(data + view->l3, ip, &error, ip + 24);
	} else {
		rte_be32_t to;

		memcpy(&to, ip + 16, sizeof(to));
		cv_icmpv4_error(data + view->l3, ip, &error, to, 0);
	}
}
