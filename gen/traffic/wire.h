// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A wire is one queue pair of a port: what the trial sends into and receives from.
#ifndef GEN_TRAFFIC_WIRE_H
#define GEN_TRAFFIC_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/error.h"

#define GEN_BURST 64u
#define GEN_MAX_PORTS 8u
#define GEN_MAX_QUEUES 16u
#define GEN_CACHE_LINE 64u
#define GEN_FCS_BYTES 4u // sizes that people write include it, as in RFC 2544; frames do not

// A prebuilt frame in a pool; `offset` from the pool's base, a multiple of a cache line.
struct gen_frame {
	uint32_t offset;
	uint16_t bytes; // without FCS
	uint16_t sum; // one's complement sum of its stamp's place
};

// What to send: frame i gets the stamp (magic, seq[i], ticks[i]).
struct gen_tx {
	uint8_t *base;
	uint16_t magic;
	uint32_t count;
	struct gen_frame frame[GEN_BURST];
	uint32_t seq[GEN_BURST];
	uint64_t ticks[GEN_BURST];
	// Of convoys, whose packets have their own stamps, seq[i] is the first's. NULL: of frames.
	const struct gen_convoy *convoys[GEN_BURST];
	const struct gen_frame *packets; // the pool's; NULL: no convoys
};

// What was received: bytes that stay as they are until they are released.
struct gen_rx {
	const uint8_t *data;
	uint32_t bytes;
	bool whole; // all bytes lie at data; otherwise only the stamp does
};

struct gen_wire;

struct gen_wire_ops {
	// Stamps and queues the first frames of a burst, as many as there is room for, and returns
	// how many. Frames lie in the wire's memory and must stay unchanged until sent (tx_idle).
	uint32_t (*tx)(struct gen_wire *wire, const struct gen_tx *burst);
	// Free places of the send queue, at most `wanted`.
	uint32_t (*tx_room)(struct gen_wire *wire, uint32_t wanted);
	// Up to wire->rx_most received frames; each call's frames go back with one rx_release.
	uint32_t (*rx)(struct gen_wire *wire, struct gen_rx *frames);
	void (*rx_release)(struct gen_wire *wire);
	// Whether every frame given to tx has been taken by the device.
	bool (*tx_idle)(struct gen_wire *wire);
};

struct gen_wire {
	const struct gen_wire_ops *ops;
	void *state;
	uint32_t rx_most; // frames, at most GEN_BURST
	uint32_t tx_half; // half of the send queue's places; 0: tx_room knows of fewer
	bool sees_full; // counts the next; otherwise nobody knows
	uint64_t rx_full; // polls that found the receive queue more than three quarters full
	// Peer-made nonsense: an index, length or address out of bounds. Never followed.
	uint64_t ring_errors;
	uint64_t kicks; // notifications that the device asked for
};

struct gen_port {
	char name[192]; // as on the command line
	const char *kind;
	uint32_t wire_count;
	struct gen_wire wires[GEN_MAX_QUEUES];
	uint8_t *memory; // where the frames that this port sends must lie
	size_t memory_bytes;
	uint32_t frame_bytes_max; // largest frame, without FCS
	uint32_t queue_frames; // places of one send queue
	bool calls; // each burst is handed over in a system call, that does much of the work
	atomic_bool gone; // the peer went away: set by any thread, cleared by attach
	char gone_reason[96]; // valid when gone
	int fd; // readable when something happened to the peer; -1: none
	// Makes the port ready, waiting until `deadline_ns` (CLOCK_MONOTONIC); 0, or -errno with
	// error set. Called again after the peer went away.
	int (*attach)(struct gen_port *port, uint64_t deadline_ns, struct cv_error *error);
	// Looks whether the peer is still there, and sets `gone`; NULL: `gone` is set by itself.
	void (*check)(struct gen_port *port);
	void (*close)(struct gen_port *port);
	void *state;
};

#endif
