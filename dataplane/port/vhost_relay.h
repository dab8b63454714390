// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Stands between DPDK's virtio-user driver and its peer, a vhost-user back end, and hands on what
// they say to each other, message by message. The driver waits for a peer, and for each of its
// answers, while it holds the lock of DPDK's list of devices: no other device could come or go, and
// nothing could end the wait. Behind a relay it is attached only when a peer is there, and a peer
// that does not answer is cut off after a while. Packets do not come by here.
#ifndef CV_VHOST_RELAY_H
#define CV_VHOST_RELAY_H

#include <stdbool.h>

#include "packet/error.h"

struct cv_vhost_relay;

// Listens at path for the peer, where nobody listens any more, or connects to it again and again.
// NULL with error set.
struct cv_vhost_relay *cv_vhost_relay_open(const char *path, bool listens, struct cv_error *error);
void cv_vhost_relay_close(struct cv_vhost_relay *relay);

// The path for the driver, which connects to it.
const char *cv_vhost_relay_path(const struct cv_vhost_relay *relay);

// Whether a peer is there: the driver may be attached.
bool cv_vhost_relay_has_peer(const struct cv_vhost_relay *relay);

// The two have come to an agreement: from now on both may take the time they like.
void cv_vhost_relay_agreed(struct cv_vhost_relay *relay);

// Ends the connections of both. A peer may come again.
void cv_vhost_relay_cut(struct cv_vhost_relay *relay);

#endif
