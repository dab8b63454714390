// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "packet/neighbour_discovery.h"

#include <string.h>

#include "packet/icmp.h"
#include "packet/ipv6.h"

#define HEADER 24 // type, code, checksum, flags and target
#define OPTION_SOURCE 1
#define OPTION_TARGET 2

static bool unspecified(const uint8_t *address)
{
	static const uint8_t zero[16];

	return memcmp(address, zero, sizeof(zero)) == 0;
}

// ff02::1:ff00:0/104
static bool is_solicited_node(const uint8_t *address)
{
	static const uint8_t prefix[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};

	return memcmp(address, prefix, sizeof(prefix)) == 0;
}

// Reads the options, of which len bytes are there. False: a length of 0, or one behind the end.
static bool read_options(const uint8_t *at, uint32_t len, struct cv_nd *nd)
{
	const uint8_t wanted = nd->type == CV_ND_SOLICITATION ? OPTION_SOURCE : OPTION_TARGET;

	while (len > 0) {
		uint32_t bytes = len < 2 ? 0 : at[1] * 8u;

		if (bytes == 0 || bytes > len)
			return false;
		if (at[0] == wanted && bytes == 8 && !cv_mac_group(at + 2)) {
			nd->has_mac = true;
			memcpy(nd->mac, at + 2, CV_MAC_LEN);
		}
		at += bytes;
		len -= bytes;
	}
	return true;
}

bool cv_nd_read(const uint8_t *ip, uint32_t len, struct cv_nd *nd)
{
	const struct cv_ipv6 *header = (const struct cv_ipv6 *)ip;
	const uint8_t *icmp = ip + CV_IPV6_LEN;
	uint32_t payload = rte_be_to_cpu_16(header->payload_len);

	if (header->next != IPPROTO_ICMPV6 || payload > len - CV_IPV6_LEN || payload < HEADER)
		return false;
	if ((icmp[0] != CV_ND_SOLICITATION && icmp[0] != CV_ND_ADVERTISEMENT) || icmp[1] != 0 ||
		header->hop_limit != 255 || !cv_icmpv6_checksum_ok(ip))
		return false;
	*nd = (struct cv_nd){.type = icmp[0]};
	memcpy(nd->src, header->src, 16);
	memcpy(nd->dst, header->dst, 16);
	memcpy(nd->target, icmp + 8, 16);
	if (cv_ipv6_multicast(nd->target) || cv_ipv6_multicast(nd->src) ||
		!read_options(icmp + HEADER, payload - HEADER, nd))
		return false;
	if (nd->type == CV_ND_SOLICITATION)
		return !unspecified(nd->src) || (is_solicited_node(nd->dst) && !nd->has_mac);
	nd->flags = icmp[4] & (CV_ND_ROUTER | CV_ND_SOLICITED | CV_ND_OVERRIDE);
	return !unspecified(nd->src) &&
	       !(cv_ipv6_multicast(nd->dst) && (nd->flags & CV_ND_SOLICITED));
}

uint16_t cv_nd_write(uint8_t *ip, const struct cv_nd *nd)
{
	const uint16_t len = nd->has_mac ? CV_ND_LEN : CV_ND_BARE_LEN;
	uint8_t *icmp = ip + CV_IPV6_LEN;

	cv_icmpv6_header(ip, nd->src, nd->dst, len - CV_IPV6_LEN, 255);
	memset(icmp, 0, HEADER);
	icmp[0] = nd->type;
	icmp[4] = nd->flags;
	memcpy(icmp + 8, nd->target, 16);
	if (nd->has_mac) {
		icmp[HEADER] = nd->type == CV_ND_SOLICITATION ? OPTION_SOURCE : OPTION_TARGET;
		icmp[HEADER + 1] = 1;
		memcpy(icmp + HEADER + 2, nd->mac, CV_MAC_LEN);
	}
	cv_icmpv6_checksum_set(ip);
	return len;
}

void cv_nd_group(const uint8_t *address, uint8_t group[16])
{
	static const uint8_t prefix[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + 13, address + 13, 3);
}

void cv_ipv6_group_mac(const uint8_t *group, uint8_t mac[CV_MAC_LEN])
{
	mac[0] = 0x33;
	mac[1] = 0x33;
	memcpy(mac + 2, group + 12, 4);
}

void cv_ipv6_link_local(const uint8_t *mac, uint8_t address[16])
{
	memset(address, 0, 16);
	address[0] = 0xfe;
	address[1] = 0x80;
	memcpy(address + 8, mac, 3);
	address[8] ^= 2;
	address[11] = 0xff;
	address[12] = 0xfe;
	memcpy(address + 13, mac + 3, 3);
}
