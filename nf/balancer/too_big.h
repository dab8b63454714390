// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Telling clients that a packet does not fit into the tunnel to its backend: fragmentation needed (RFC
// 1191), or packet too big (RFC 8201).
#ifndef CV_BALANCER_TOO_BIG_H
#define CV_BALANCER_TOO_BIG_H

#include "chain/nf.h"

// Whether a packet of so many bytes at most can be made of it, where it goes: it is no longer, or it may be
// fragmented on its way.
bool cv_fits(const struct cv_view *view, unsigned most);

// Sends an ICMP error about a packet back by the port it came by, in the name of its destination: most
// is the MTU that it tells. Nothing where none may be sent, or no buffer is.
void cv_tell_too_big(struct cv_nf_worker *worker, const struct cv_view *view, unsigned most);

#endif
