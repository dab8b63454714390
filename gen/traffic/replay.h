// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The frames of a capture file as a pool.
//
// A frame gets its stamp in the last bytes of its payload, where it keeps the checksums valid. A
// frame without room for that there (a bare TCP ACK, ARP) grows by a trailer behind its packet,
// as Ethernet's padding is, and a function that cuts trailers off makes it foreign.
#ifndef GEN_TRAFFIC_REPLAY_H
#define GEN_TRAFFIC_REPLAY_H

#include "gen/traffic/pool.h"

// Fills *pool from spec->capture, again and again until frames_min are there, in convoys where the
// specification has such. 0, or a negative errno
// with error set: the file's fault (it and the packet are named), or too large for the port.
int gen_replay_build(struct gen_pool *pool, const struct gen_spec *spec,
	const struct gen_room *room, struct cv_error *error);

#endif
