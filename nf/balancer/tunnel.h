// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Tunnels to backends: IP in IP (RFC 2003, 2473, 4213), and GUE, IP directly behind UDP (variant 1 of
// draft-ietf-intarea-gue; Linux: `ip fou add port PORT gue`). Any of the two IP versions in any.
#ifndef CV_BALANCER_TUNNEL_H
#define CV_BALANCER_TUNNEL_H

#include "chain/nf.h"

struct cv_tunnel {
	bool gue; // else IP in IP
	uint16_t port; // GUE: the backends'
	struct cv_address source[2]; // by family: where tunnels begin
};

// Bytes that a packet becomes longer in a tunnel to this address.
unsigned cv_tunnel_bytes(const struct cv_tunnel *tunnel, const struct cv_address *to);

// Puts an IP packet into a tunnel to the address. identification: that of an outer IPv4 header which may
// be fragmented. Its class and congestion bits are the inner packet's; an IPv4 packet that may be
// fragmented may be so outside. False, and nothing has changed: no buffer, or cut short.
bool cv_tunnel_wrap(const struct cv_tunnel *tunnel, const struct cv_address *to,
	struct cv_nf_worker *worker, struct cv_view *view, uint16_t identification);

#endif
