// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// vhost-user on the wire, for both of its ends: the node's back end (this folder) and the tester's
// front end (gen/port/vhost_user.c). Source: the vhost-user specification of the QEMU project. Only what
// one of the two uses is here.
#ifndef CV_VHOST_PROTOCOL_H
#define CV_VHOST_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include <linux/vhost_types.h>

enum cv_vhost_request {
	CV_VHOST_GET_FEATURES = 1,
	CV_VHOST_SET_FEATURES = 2,
	CV_VHOST_SET_OWNER = 3,
	CV_VHOST_RESET_OWNER = 4,
	CV_VHOST_SET_MEM_TABLE = 5,
	CV_VHOST_SET_LOG_BASE = 6,
	CV_VHOST_SET_LOG_FD = 7,
	CV_VHOST_SET_VRING_NUM = 8,
	CV_VHOST_SET_VRING_ADDR = 9,
	CV_VHOST_SET_VRING_BASE = 10,
	CV_VHOST_GET_VRING_BASE = 11,
	CV_VHOST_SET_VRING_KICK = 12,
	CV_VHOST_SET_VRING_CALL = 13,
	CV_VHOST_SET_VRING_ERR = 14,
	CV_VHOST_GET_PROTOCOL_FEATURES = 15,
	CV_VHOST_SET_PROTOCOL_FEATURES = 16,
	CV_VHOST_GET_QUEUE_NUM = 17,
	CV_VHOST_SET_VRING_ENABLE = 18,
	CV_VHOST_NET_SET_MTU = 20,
	CV_VHOST_SET_STATUS = 39,
	CV_VHOST_GET_STATUS = 40,
	CV_VHOST_REQUESTS, // behind the last
};

// Bits of the features that are vhost's, not virtio's.
#define CV_VHOST_F_LOG_ALL 26
#define CV_VHOST_F_PROTOCOL_FEATURES 30

// Bits of the protocol features.
#define CV_VHOST_PROTOCOL_F_MQ 0
#define CV_VHOST_PROTOCOL_F_LOG_SHMFD 1
#define CV_VHOST_PROTOCOL_F_REPLY_ACK 3
#define CV_VHOST_PROTOCOL_F_NET_MTU 4
#define CV_VHOST_PROTOCOL_F_STATUS 16

// A message's flags.
#define CV_VHOST_VERSION 1u // in bits 0 and 1
#define CV_VHOST_REPLY (1u << 2)
#define CV_VHOST_NEED_REPLY (1u << 3)

// Of SET_VRING_KICK, _CALL and _ERR.
#define CV_VHOST_VRING_INDEX 0xffu
#define CV_VHOST_VRING_NO_FD (1u << 8)

#define CV_VHOST_REGIONS_MAX 8
#define CV_VHOST_LOG_PAGE 4096u // that a bit of the dirty log stands for

// Packed, for it lies anywhere in a message.
struct cv_vhost_region {
	uint64_t guest; // its address as the guest names it
	uint64_t bytes;
	uint64_t user; // as the front end names it, in SET_VRING_ADDR
	uint64_t offset; // in the file
} __attribute__((packed));

struct cv_vhost_memory_table {
	uint32_t count, padding;
	struct cv_vhost_region regions[CV_VHOST_REGIONS_MAX]; // as many as count on the wire
} __attribute__((packed));

struct cv_vhost_message {
	uint32_t request, flags, bytes; // bytes: of what follows
	union {
		uint64_t u64;
		struct vhost_vring_state state;
		struct vhost_vring_addr address;
		struct cv_vhost_memory_table memory;
		struct {
			uint64_t bytes, offset;
		} log;
	};
} __attribute__((packed));

#define CV_VHOST_HEADER_BYTES offsetof(struct cv_vhost_message, u64)

#endif
