// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How NSH goes to its next hop: straight behind an Ethernet header, or in VXLAN-GPE over IPv4 or IPv6.
#ifndef CV_NSH_TRANSPORT_H
#define CV_NSH_TRANSPORT_H

#include "chain/nf.h"
#include "packet/ether.h"

#define CV_NSH_TRANSPORT_MAX (14 + 40 + 8 + 8) // Ethernet, IPv6, UDP, VXLAN-GPE

// As people write it: zero, and then cv_params_read().
struct cv_nsh_transport_config {
	uint8_t mac[CV_MAC_LEN]; // zero: not given
	const char *dev;
	const json_t *vxlan_gpe;
};

extern const struct cv_param cv_nsh_transport_params[];

struct cv_nsh_transport {
	int out; // the port that packets leave by; -1: as the chain says
	uint8_t len;
	uint8_t version; // of IP: 4, 6; 0: Ethernet alone
	uint8_t bytes
		[CV_NSH_TRANSPORT_MAX]; // source MAC address, lengths, checksum, source port left out
};

// Returns 0, or -EINVAL with at's error set.
int cv_nsh_transport_set(struct cv_nsh_transport *transport, const struct cv_where *at,
	const struct cv_nsh_transport_config *config, const struct cv_nf_env *env);

// Writes it into a packet's first bytes, before its NSH, whose lengths are sound. macs are the ports'.
void cv_nsh_transport_write(const struct cv_nsh_transport *transport, struct cv_view *view,
	const uint8_t (*macs)[CV_MAC_LEN]);

// Writes it in place of the bytes before a packet's NSH, which begins at `at`. Between Ethernet headers only
// addresses change: VLAN tags stay. False: there was no room.
bool cv_nsh_transport_replace(const struct cv_nsh_transport *transport, struct cv_nf_worker *worker,
	struct cv_view *view, unsigned at, const uint8_t (*macs)[CV_MAC_LEN]);

#endif
