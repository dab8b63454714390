// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Neighbour solicitations and advertisements (RFC 4861): IPv6's ARP.
#ifndef CV_NEIGHBOUR_DISCOVERY_H
#define CV_NEIGHBOUR_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/ether.h"

#define CV_ND_SOLICITATION 135
#define CV_ND_ADVERTISEMENT 136
// Flags of an advertisement: its sender is a router, it answers a solicitation, it overrides the
// address that is known.
#define CV_ND_ROUTER 0x80
#define CV_ND_SOLICITED 0x40
#define CV_ND_OVERRIDE 0x20
// Bytes of an IPv6 packet that cv_nd_write() writes: with a link-layer address, and without.
#define CV_ND_LEN (40 + 24 + 8)
#define CV_ND_BARE_LEN (40 + 24)

struct cv_nd {
	uint8_t type; // CV_ND_SOLICITATION or CV_ND_ADVERTISEMENT
	uint8_t flags; // of an advertisement
	bool has_mac; // the source's in a solicitation, the target's in an advertisement
	uint8_t mac[CV_MAC_LEN];
	uint8_t src[16], dst[16], target[16];
};

// Reads the IPv6 packet at ip, of len bytes: one that cv_ipv6_check() accepted. False: it is neither
// message, or one that RFC 4861 sections 7.1.1 and 7.1.2 say to discard (hop limit not 255, wrong
// checksum, a group as target, an option of length 0 or behind the end, ...).
bool cv_nd_read(const uint8_t *ip, uint32_t len, struct cv_nd *nd);

// Writes an IPv6 packet of CV_ND_LEN bytes, or CV_ND_BARE_LEN: nd->has_mac says which. Returns its
// length.
uint16_t cv_nd_write(uint8_t *ip, const struct cv_nd *nd);

// The group that a solicitation for an address is sent to (RFC 4291 section 2.7.1), and the Ethernet
// address of an IPv6 group (RFC 2464 section 7).
void cv_nd_group(const uint8_t *address, uint8_t group[16]);
void cv_ipv6_group_mac(const uint8_t *group, uint8_t mac[CV_MAC_LEN]);

// The link-local address that a station with this MAC address gives itself (RFC 2464 section 5).
void cv_ipv6_link_local(const uint8_t *mac, uint8_t address[16]);

#endif
