// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Traced packets as a capture: pcapng (draft-ietf-opsawg-pcapng), an interface for each port. It is
// made here, not by the client, so that a mirror keeps up with traffic.
#ifndef CV_MIRROR_H
#define CV_MIRROR_H

#include <stddef.h>

#include "daemon/why_json.h"

struct cv_mirror {
	uint8_t *bytes;
	size_t used, room;
	bool failed; // there was no memory: it is not whole
};

void cv_mirror_free(struct cv_mirror *mirror);

// Begins a capture: its section, and an interface for each of the node's ports.
void cv_mirror_begin(struct cv_mirror *mirror, const struct cv_node *node);

// Adds a packet as it came, or as it left if it was sent. Returns whether there is such a packet.
bool cv_mirror_add(struct cv_mirror *mirror, const struct cv_trace_config *config,
	const struct cv_why_clock *clock, const struct cv_trace_record *record, bool as_it_left);

// Sends all of it to a socket, and forgets it. 0 or a negative errno: -EAGAIN if it was not read in
// wait_ms.
int cv_mirror_send(struct cv_mirror *mirror, int socket, int wait_ms);

#endif
