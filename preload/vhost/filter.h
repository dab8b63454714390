// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a guest's front end may say to the program's rte_vhost, which itself serves whatever it knows.
// Each message is looked at before rte_vhost sees it: it must look as vhost/message.h has it, belong
// to what was offered and negotiated, and fit what the front end said before. So a ring runs only
// with the size and the layout that it was described with, and no memory or log reaches beyond its
// file. No input or output.
//
// A front end whose message is refused, or fails, must be disconnected: nothing is undone here.
#ifndef CV_VHOST_FILTER_H
#define CV_VHOST_FILTER_H

#include <stdbool.h>

#include "packet/error.h"
#include "vhost/protocol.h"

#define CV_FILTER_RINGS 256 // that rte_vhost knows

struct cv_filter_ring {
	uint16_t size; // descriptors; 0: not said since it stopped
	uint16_t base; // where it goes on, as SET_VRING_BASE has it
	bool has_address, has_base; // said since it stopped; the first base need not be
	bool started; // between SET_VRING_KICK and GET_VRING_BASE
};

struct cv_filter {
	uint64_t offered, protocol_offered; // by the program; set before the first message
	uint64_t features, protocol; // negotiated
	bool has_memory;
	struct cv_filter_ring rings[CV_FILTER_RINGS];
};

// Bytes of a file that came with a message and that is no file of memory: of another kind a guest
// could make every access wait.
#define CV_FILTER_NO_MEMORY UINT64_MAX

// Begins with a new front end.
void cv_filter_begin(struct cv_filter *filter, uint64_t offered, uint64_t protocol_offered);

// Whether the program asked for something that is not looked at here: post-copy migration, an IOMMU,
// in-flight buffers, a configuration space. Its guests are then left to rte_vhost.
bool cv_filter_leaves(uint64_t offered, uint64_t protocol_offered);

// What a guest is offered of the protocol.
uint64_t cv_filter_protocol(const struct cv_filter *filter);

// Validates a message and the files that came with it, of which file_bytes says how long they are.
// 0: it may be handled, and counts as done. -EPROTO with error set.
int cv_filter_validate(struct cv_filter *filter, const struct cv_vhost_message *message,
	const uint64_t *file_bytes, unsigned files, struct cv_error *error);

#endif
