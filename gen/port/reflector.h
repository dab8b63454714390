// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A device that costs nothing but moving the bytes: a thread that copies what one port sends to
// what another receives, working directly on their rings. It never drops; where there is no room
// it waits. With a plan it misbehaves in a known way, to test the accounting.
#ifndef GEN_PORT_REFLECTOR_H
#define GEN_PORT_REFLECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#include "gen/port/vhost_port.h"
#include "gen/port/vring.h"

enum gen_fate { GEN_PASS, GEN_DROP, GEN_DOUBLE, GEN_HOLD, GEN_SPOIL, GEN_BLANK };

struct gen_direction {
	struct gen_vring *from, *to; // the sender's tx, the receiver's rx
	uint64_t seen; // packets taken
};

struct gen_reflector {
	uint32_t direction_count;
	struct gen_direction directions[4];
	uint32_t core; // UINT32_MAX: anywhere
	// What happens to packet number `seen` of a direction; NULL: every packet passes. A held
	// packet follows the next one that passes; a corrupted one loses a bit of its stamp, a
	// blank one all.
	enum gen_fate (*fate)(uint32_t direction, uint64_t seen);
	atomic_bool stop;
	pthread_t thread;
};

// Starts the thread, or returns -errno. The rings must be of gen_vhost_open_inside.
int gen_reflector_start(struct gen_reflector *reflector);
void gen_reflector_stop(struct gen_reflector *reflector);

#endif
