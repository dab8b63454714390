// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The outer header of convoys to one next hop: made once, then copied before each frame's packets
// with the few fields that differ.
#ifndef CV_CONVOY_OUTER_H
#define CV_CONVOY_OUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/walk.h"
#include "packet/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CV_OUTER_VLANS_MAX 2
// Ethernet, two tags, IPv6, UDP, convoy header.
#define CV_OUTER_MAX (14 + 2 * 4 + 40 + 8 + 4)
// Fewer packets than these in a frame cost their sender more than they save it.
#define CV_CONVOY_SHARE 5
#define CV_OUTER_MTU_MIN 128
#define CV_OUTER_MTU_MAX 65500 // a frame's length is 16 bits, its Ethernet header included

struct cv_outer_vlan {
	uint16_t type; // 0x8100 or 0x88a8
	uint16_t tci; // priority 3 bits, drop eligible 1 bit, VLAN id 12 bits
};

// A next hop, as people write it. Numbers are in host order.
struct cv_outer_config {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t vlans; // 0 to CV_OUTER_VLANS_MAX, the outermost first
	struct cv_outer_vlan vlan[CV_OUTER_VLANS_MAX];
	uint8_t version; // of IP: 4 or 6
	uint8_t src[16]; // 4 or 16 bytes, network order
	uint8_t dst[16];
	uint8_t tos; // DSCP and ECN
	uint8_t ttl; // or hop limit; 0: CV_CONVOY_TTL
	uint16_t port; // UDP destination; 0: CV_CONVOY_PORT
	uint16_t sport; // UDP source; 0: by the first packet's flow
	uint16_t nfi; // NFI-ID
	uint16_t mtu; // bytes of the largest IP packet; 0: CV_CONVOY_MTU
	bool encapsulate; // a single packet too gets this header
	bool fragment; // a packet that does not fit may go on in the next frame
};

// The same, ready to be copied. Read only once it is set: any number of threads may use it.
struct cv_outer {
	uint8_t bytes[CV_OUTER_MAX];
	uint8_t len; // of bytes, the convoy header included
	uint8_t l3;
	bool ipv6;
	bool sport_fixed;
	uint16_t frame_max; // bytes: the largest frame that the MTU lets pass
	uint16_t packet_max; // bytes: the largest packet that fits into such a frame at all
	// Bytes: the largest of which CV_CONVOY_SHARE fit into such a frame; of those that may be
	// in two, packet_max; all, to encapsulate.
	uint16_t share_max;
	uint16_t checksum; // sum of the IPv4 header, its length and checksum left out
	rte_be16_t udp_port; // destination
	bool encapsulate;
	bool fragment;
};

// Returns 0, or -EINVAL with error set (it may be NULL).
int cv_outer_set(
	struct cv_outer *outer, const struct cv_outer_config *config, struct cv_error *error);

// Writes the header to the outer->len bytes at `at`, for count packets that take packets_bytes
// with their lengths. sport (network order) is ignored where the next hop has one of its own. Returns at.
uint8_t *cv_outer_write(const struct cv_outer *outer, uint8_t *at, uint8_t count,
	uint32_t packets_bytes, rte_be16_t sport);

// Gives a convoy that was walked, and none of whose packets is gone, the header of its next hop:
// its packets stay where they are. headroom is how many bytes before convoy->data may be written.
// Returns where the frame begins now, with convoy up to date, or NULL with nothing changed: the
// header does not fit before the packets, or the frame does not fit into the MTU.
uint8_t *cv_convoy_readdress(
	struct cv_convoy *convoy, const struct cv_outer *outer, uint32_t headroom);

#ifdef __cplusplus
}
#endif

#endif
