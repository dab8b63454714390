// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The device's side of one virtqueue of a virtio-net (VIRTIO 1.2, sections 2.7, 2.8 and 5.1.6): takes
// packets out of a guest's buffers and puts packets into them. Works on memory alone: whoever has
// the rings and knows what was negotiated can use it (the vhost-user port, the library preloaded
// under other programs, tests, a fuzzer).
//
// Everything in the guest's memory is hostile. Indices, descriptors and lengths are read once, and
// validated and used as that copy; nothing outside of the guest's memory is ever touched. A guest
// that breaks the rules loses its own packets (counted in malformed), or its ring stands still
// (broken) until it is set up again. Chains and indirect tables are looked at one descriptor at a
// time; how many of them a call looks at is bounded, whatever the guest writes.
//
// One thread at a time uses a vring. Nobody else may unmap the memory meanwhile.
#ifndef CV_VRING_H
#define CV_VRING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

#include "packet/view.h"
#include "stats/counter.h"
#include "vring/guest_memory.h"

// What is read from the packed ring's bits and is not in every kernel's headers.
#define CV_VIRTIO_NET_F_MRG_RXBUF 15
#define CV_VIRTIO_RING_F_INDIRECT_DESC 28
#define CV_VIRTIO_RING_F_EVENT_IDX 29
#define CV_VIRTIO_F_VERSION_1 32
#define CV_VIRTIO_F_RING_PACKED 34
#define CV_VIRTIO_F_IN_ORDER 35

#define CV_VRING_SIZE_MAX 32768

// The packed ring's descriptor.
struct cv_vring_packed {
	uint64_t address;
	uint32_t len;
	uint16_t id;
	uint16_t flags;
};

// Counted since cv_vring_begin(); the thread that uses the vring writes them.
struct cv_vring_counters {
	uint64_t packets; // taken or put
	uint64_t bytes;
	uint64_t malformed; // buffers that break the rules; given back empty
	uint64_t
		too_long; // packets larger than what they were to go into, or in too many pieces; lost
	uint64_t kicks; // the guest was told
	uint64_t steps; // descriptors looked at one by one, or in vain
};

// Where in a ring a buffer begins.
struct cv_vring_place {
	uint16_t avail;
	bool wrap; // packed
};

struct cv_vring {
	union {
		struct vring_desc *desc;
		struct cv_vring_packed *packed;
	};
	union {
		struct vring_avail *avail;
		uint16_t *driver_event; // offset and wrap, flags
	};
	union {
		struct vring_used *used;
		uint16_t *device_event;
	};
	uint16_t size; // descriptors
	uint16_t next_avail; // the split ring's free running, the packed ring's a place in it
	uint16_t next_used;
	uint16_t avail_seen; // split: avail->idx as last read
	bool avail_wrap, used_wrap; // packed
	bool is_packed, in_order, mergeable, event_idx, indirect;
	// The guest broke the ring itself; nothing moves any more. Others read it: relaxed atomics.
	bool broken;
	bool signalled_valid, signalled_wrap;
	uint8_t header_bytes; // of virtio-net before each packet: 10 or 12
	uint16_t
		signalled; // next_used when the guest was last told, with used_wrap in signalled_wrap
	// Putting: what begins at next_avail has room for less than so many bytes (0: not known), until
	// a buffer is at this place.
	uint32_t short_bytes;
	struct cv_vring_place short_at;
	struct cv_guest_region region; // where the last address was found
	const struct cv_guest_memory *memory;
	// Told of every byte written, while the guest is migrated; NULL otherwise.
	void (*log)(void *context, uint64_t guest, uint64_t bytes);
	void (*log_used)(void *context, uint64_t offset, uint64_t bytes);
	void *log_context;
	int call_fd; // eventfd that tells the guest; -1: it polls
	struct cv_vring_counters counters;
};

// Where a ring goes on: for the split ring its indices, for the packed ring bits 0-14 the place
// and bit 15 the wrap counter, as vhost-user's GET_VRING_BASE has them.
struct cv_vring_base {
	uint16_t avail, used;
};

// Begins to use a ring whose desc, avail, used, size, memory, call_fd and log calls are set,
// with the features that were negotiated. memory must stay. Returns 0, or -EINVAL: the size or
// an address is not what VIRTIO allows, or an area does not lie in memory for this size and layout.
int cv_vring_begin(struct cv_vring *vring, uint64_t features, struct cv_vring_base base);

struct cv_vring_base cv_vring_base(const struct cv_vring *vring);

// Asks the guest not to tell us of new buffers: we look by ourselves. (With EVENT_IDX on a split
// ring it cannot be told; it then does so once every 65536 buffers.)
void cv_vring_quiet(struct cv_vring *vring);

// A call of dequeue or coalesce looks at no more descriptors of chains and tables, but for the last
// buffer's; what is left waits for the next call.
#define CV_VRING_STEPS_MAX 128

// What a malformed buffer counts for beside its descriptors: validated by itself it takes a
// multiple of what a packet does.
#define CV_VRING_STEPS_MALFORMED 16

// Takes up to n packets that the guest sends, each into a buffer of its own: to[i] has room bytes,
// lens[i] is set. Longer ones are lost. Returns how many; the guest has its buffers back.
uint16_t cv_vring_dequeue(
	struct cv_vring *vring, uint8_t *const *to, uint32_t room, uint16_t *lens, uint16_t n);

// A buffer to coalesce packets in.
struct cv_vring_buffer {
	uint8_t *data;
	uint32_t room; // bytes from data, 65535 at most
	uint32_t coalesced_max; // <= room: of several packets; a single one may take room
	uint32_t len; // set: bytes used
	uint16_t packets; // set
};

// Takes up to n packets that the guest sends, one behind the other into buffers, as a convoy frame
// has them: 16-bit length in network order, packet. A buffer holds 255 packets at most. Fills in
// views (cv_view_set). Returns the number of views; *buffers becomes the number of buffers with
// packets. A packet that is too long for an empty buffer is lost.
uint16_t cv_vring_coalesce(struct cv_vring *vring, struct cv_view *views, uint16_t n,
	struct cv_vring_buffer *buffer, uint16_t *buffers);

// Descriptors that a call of enqueue looks at one by one: some, and for each packet as many as one
// of its length lies in where drivers cut it small; but for the last buffer's.
#define CV_VRING_PUT_STEPS 128
#define CV_VRING_PUT_STEPS_OF(bytes) (4u + (bytes) / 512u)

// Puts the first of n packets into the guest's buffers, as many as there are buffers for; returns
// how many. A packet is what cv_view_packet() says; of a view only that is looked at. A packet that
// will never fit (longer than a buffer, without MRG_RXBUF) is lost and counted, and so is what is
// left of the n once the guest's buffers took more steps than such packets should need.
uint16_t cv_vring_enqueue(struct cv_vring *vring, const struct cv_view *views, uint16_t n);

// Tells the guest that its buffers have come back, if it wants to know. To be called once after
// each of the three above that moved something.
void cv_vring_notify(struct cv_vring *vring);

// Buffers that the guest has made available, as far as can be told at once: 0 or more.
uint16_t cv_vring_ready(struct cv_vring *vring);

#endif
