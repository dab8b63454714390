// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The messages of memif 2.0 (FD.io: src/plugins/memif/memif.h), with which two processes agree on
// the memory and the rings that they share: 128 bytes each, over a SOCK_SEQPACKET socket. The client
// (which the protocol calls slave) brings the memory; the server (master) listens.
//
//   server  HELLO                                ACK  ACK         ACK  CONNECTED
//   client         INIT  ADD_REGION ... ADD_RING ...     CONNECT
//
// Either side may say DISCONNECT, and why.
#ifndef CV_MEMIF_MESSAGE_H
#define CV_MEMIF_MESSAGE_H

#include <stdint.h>

#include "packet/error.h"

#define CV_MEMIF_MESSAGE_BYTES 128
#define CV_MEMIF_VERSION 0x0200
#define CV_MEMIF_NAME_BYTES 32
#define CV_MEMIF_SECRET_BYTES 24
#define CV_MEMIF_REASON_BYTES 96
#define CV_MEMIF_ETHERNET 0 // mode
#define CV_MEMIF_RING_TO_SERVER 1 // flag of ADD_RING

enum cv_memif_type {
	CV_MEMIF_ACK = 1,
	CV_MEMIF_HELLO,
	CV_MEMIF_INIT,
	CV_MEMIF_ADD_REGION,
	CV_MEMIF_ADD_RING,
	CV_MEMIF_CONNECT,
	CV_MEMIF_CONNECTED,
	CV_MEMIF_DISCONNECT,
};

// As it is sent; in the machine's byte order.
struct cv_memif_message {
	uint16_t type;
	union {
		struct {
			char name[CV_MEMIF_NAME_BYTES];
			uint16_t min_version, max_version;
			uint16_t max_region, max_to_client_ring, max_to_server_ring; // indices
			uint8_t max_log2_ring_size;
		} __attribute__((packed)) hello;
		struct {
			uint16_t version;
			uint32_t id;
			uint8_t mode;
			char secret[CV_MEMIF_SECRET_BYTES];
			char name[CV_MEMIF_NAME_BYTES];
		} __attribute__((packed)) init;
		struct {
			uint16_t index;
			uint64_t size;
		} __attribute__((packed)) add_region; // with a descriptor of the file
		struct {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2_ring_size;
			uint16_t private_header_bytes;
		} __attribute__((packed)) add_ring; // with an eventfd
		struct {
			char interface[CV_MEMIF_NAME_BYTES];
		} connect; // and connected
		struct {
			uint32_t code;
			char reason[CV_MEMIF_REASON_BYTES];
		} __attribute__((packed)) disconnect;
		uint8_t bytes[CV_MEMIF_MESSAGE_BYTES - 2];
	};
} __attribute__((packed));

// Checks what came from a peer: its size, its type, and that as many descriptors came along as belong
// to the type. Texts end within their fields afterwards, and are printable. 0, or -EPROTO with error
// set.
int cv_memif_message_check(
	struct cv_memif_message *message, int size, unsigned fds, struct cv_error *error);

#endif
