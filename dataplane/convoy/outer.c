// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/outer.h"

#include <errno.h>

#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

// Untagged over IPv4, the commonest.
#define IPV4_OUTER_LEN (CV_ETHER_LEN + CV_IPV4_LEN + CV_UDP_LEN + CV_CONVOY_LEN)

static int check(const struct cv_outer_config *config, struct cv_error *error)
{
	if (config->version != 4 && config->version != 6) {
		cv_error_set(error, "version: %u: must be 4 or 6", config->version);
		return -EINVAL;
	}
	if (config->vlans > CV_OUTER_VLANS_MAX) {
		cv_error_set(
			error, "vlans: %u: must be at most %u", config->vlans, CV_OUTER_VLANS_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < config->vlans; i++) {
		if (config->vlan[i].type != 0x8100 && config->vlan[i].type != 0x88a8) {
			cv_error_set(error, "vlan %u: type 0x%04x: must be 0x8100 or 0x88a8", i,
				config->vlan[i].type);
			return -EINVAL;
		}
	}
	if (config->mtu != 0 &&
		(config->mtu < CV_OUTER_MTU_MIN || config->mtu > CV_OUTER_MTU_MAX)) {
		cv_error_set(error, "mtu: %u: must be from %u to %u", config->mtu, CV_OUTER_MTU_MIN,
			CV_OUTER_MTU_MAX);
		return -EINVAL;
	}
	return 0;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	value = rte_cpu_to_be_16(value);
	return put(at, &value, sizeof(value));
}

static uint8_t *put_ip(uint8_t *at, const struct cv_outer_config *config)
{
	uint8_t ttl = config->ttl != 0 ? config->ttl : CV_CONVOY_TTL;

	if (config->version == 4) {
		// Not fragmented, so its identification means nothing (RFC 6864 section 4.1).
		struct cv_ipv4 ip = {
			.version_ihl = 0x45,
			.tos = config->tos,
			.fragment = CV_IPV4_DF,
			.ttl = ttl,
			.proto = IPPROTO_UDP,
		};

		memcpy(&ip.src, config->src, 4);
		memcpy(&ip.dst, config->dst, 4);
		return put(at, &ip, sizeof(ip));
	}
	struct cv_ipv6 ip = {
		.version_class_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)config->tos << 20),
		.next = IPPROTO_UDP,
		.hop_limit = ttl,
	};

	memcpy(ip.src, config->src, 16);
	memcpy(ip.dst, config->dst, 16);
	return put(at, &ip, sizeof(ip));
}

int cv_outer_set(
	struct cv_outer *outer, const struct cv_outer_config *config, struct cv_error *error)
{
	uint16_t mtu = config->mtu != 0 ? config->mtu : CV_CONVOY_MTU;
	uint8_t *at = outer->bytes;

	if (check(config, error) != 0)
		return -EINVAL;
	memset(outer, 0, sizeof(*outer));
	at = put(at, config->dst_mac, 6);
	at = put(at, config->src_mac, 6);
	for (unsigned i = 0; i < config->vlans; i++) {
		at = put16(at, config->vlan[i].type);
		at = put16(at, config->vlan[i].tci);
	}
	at = put16(at, config->version == 4 ? 0x0800 : 0x86dd);
	outer->l3 = (uint8_t)(at - outer->bytes);
	at = put_ip(at, config);
	at = put16(at, config->sport);
	outer->udp_port = rte_cpu_to_be_16(config->port != 0 ? config->port : CV_CONVOY_PORT);
	at = put(at, &outer->udp_port, sizeof(outer->udp_port));
	at += 4; // UDP length and checksum
	*at++ = CV_CONVOY_VERSION << 4 | CV_CONVOY_ETHERNET;
	*at++ = 0;
	at = put16(at, config->nfi);
	outer->len = (uint8_t)(at - outer->bytes);
	outer->ipv6 = config->version == 6;
	outer->sport_fixed = config->sport != 0;
	outer->frame_max = outer->l3 + mtu;
	outer->packet_max = outer->frame_max - outer->len - CV_CONVOY_PREFIX_LEN;
	outer->share_max = (outer->frame_max - outer->len) / CV_CONVOY_SHARE - CV_CONVOY_PREFIX_LEN;
	outer->encapsulate = config->encapsulate;
	outer->fragment = config->fragment;
	if (config->fragment)
		outer->share_max = outer->packet_max;
	if (config->encapsulate)
		outer->share_max = UINT16_MAX;
	if (!outer->ipv6)
		outer->checksum =
			cv_checksum_fold(cv_checksum_add(0, outer->bytes + outer->l3, CV_IPV4_LEN));
	return 0;
}

CV_HOT uint8_t *cv_outer_write(const struct cv_outer *outer, uint8_t *at, uint8_t count,
	uint32_t packets_bytes, rte_be16_t sport)
{
	uint32_t udp_len = CV_UDP_LEN + CV_CONVOY_LEN + packets_bytes;
	struct cv_convoy_header *header;
	struct cv_udp *udp;

	if (CV_LIKELY(outer->len == IPV4_OUTER_LEN)) // no call for so few bytes
		memcpy(at, outer->bytes, IPV4_OUTER_LEN);
	else
		memcpy(at, outer->bytes, outer->len);
	if (outer->ipv6) {
		struct cv_ipv6 *ip = (struct cv_ipv6 *)(at + outer->l3);

		ip->payload_len = rte_cpu_to_be_16((uint16_t)udp_len);
		udp = (struct cv_udp *)(ip + 1);
	} else {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)(at + outer->l3);

		ip->total_len = rte_cpu_to_be_16((uint16_t)(CV_IPV4_LEN + udp_len));
		ip->checksum =
			(rte_be16_t)~cv_checksum_fold((uint64_t)outer->checksum + ip->total_len);
		udp = (struct cv_udp *)(ip + 1);
	}
	if (!outer->sport_fixed)
		udp->sport = sport;
	// No UDP checksum: RFC 768 for IPv4; RFC 6935 and 6936 allow it to tunnels over IPv6 whose
	// packets have checksums of their own, and functions rewrite these packets in place.
	udp->len = rte_cpu_to_be_16((uint16_t)udp_len);
	header = (struct cv_convoy_header *)(udp + 1);
	header->count = count;
	return at;
}

uint8_t *cv_convoy_readdress(
	struct cv_convoy *convoy, const struct cv_outer *outer, uint32_t headroom)
{
	uint32_t packets_bytes = convoy->len - convoy->packets_at;

	if (outer->len > convoy->packets_at + headroom ||
		outer->len + packets_bytes > outer->frame_max)
		return NULL;
	convoy->data += convoy->packets_at - outer->len;
	convoy->len = (uint16_t)(outer->len + packets_bytes);
	convoy->packets_at = outer->len;
	cv_outer_write(outer, convoy->data, convoy->count, packets_bytes, convoy->sport);
	memcpy(&convoy->nfi, outer->bytes + outer->len - 2, 2);
	convoy->nfi = rte_be_to_cpu_16(convoy->nfi);
	return convoy->data;
}
