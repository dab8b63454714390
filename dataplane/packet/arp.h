// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ARP for IPv4 over Ethernet (RFC 826), with what RFC 5227 says of its addresses.
#ifndef CV_ARP_H
#define CV_ARP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"
#include "packet/ether.h"

#define CV_PROTO_ARP RTE_BE16(0x0806) // EtherType
#define CV_ARP_LEN 28

enum cv_arp_operation { CV_ARP_REQUEST = 1, CV_ARP_REPLY = 2 };

// May lie at any address: packets are not aligned.
struct cv_arp {
	rte_be16_t hardware; // 1: Ethernet
	rte_be16_t protocol; // 0x0800: IPv4
	uint8_t hardware_len, protocol_len; // 6 and 4
	rte_be16_t operation; // enum cv_arp_operation
	uint8_t sender_mac[CV_MAC_LEN];
	rte_be32_t sender; // 0: a probe, whose sender has no address yet (RFC 5227 section 1.1)
	uint8_t target_mac[CV_MAC_LEN]; // of no meaning in a request
	rte_be32_t target;
} __attribute__((packed, aligned(1)));

static_assert(sizeof(struct cv_arp) == CV_ARP_LEN, "as on the wire");

// Reads what begins at the bytes after the Ethernet header. False: too short, not IPv4 over
// Ethernet, neither request nor reply, or from a group address. What follows is padding.
static inline bool cv_arp_read(const uint8_t *at, uint32_t len, struct cv_arp *arp)
{
	if (len < CV_ARP_LEN)
		return false;
	memcpy(arp, at, sizeof(*arp));
	return arp->hardware == RTE_BE16(1) && arp->protocol == RTE_BE16(0x0800) &&
	       arp->hardware_len == CV_MAC_LEN && arp->protocol_len == 4 &&
	       (arp->operation == RTE_BE16(CV_ARP_REQUEST) ||
		       arp->operation == RTE_BE16(CV_ARP_REPLY)) &&
	       !cv_mac_group(arp->sender_mac);
}

// Writes CV_ARP_LEN bytes. target_mac NULL: zero, as in a request.
static inline void cv_arp_write(uint8_t *at, enum cv_arp_operation operation,
	const uint8_t *sender_mac, rte_be32_t sender, const uint8_t *target_mac, rte_be32_t target)
{
	struct cv_arp arp = {
		.hardware = RTE_BE16(1),
		.protocol = RTE_BE16(0x0800),
		.hardware_len = CV_MAC_LEN,
		.protocol_len = 4,
		.operation = rte_cpu_to_be_16((uint16_t)operation),
		.sender = sender,
		.target = target,
	};

	memcpy(arp.sender_mac, sender_mac, CV_MAC_LEN);
	if (target_mac != NULL)
		memcpy(arp.target_mac, target_mac, CV_MAC_LEN);
	memcpy(at, &arp, sizeof(arp));
}

#endif
