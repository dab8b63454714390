// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A piece of what a port tells the process that it is handed over to: bytes and descriptors. What the
// bytes mean is the kind of port's matter; who reads them checks them as a peer's.
#ifndef CV_SOCKET_RECORD_H
#define CV_SOCKET_RECORD_H

#include <stdint.h>

#include "socket/receive.h"

#define CV_RECORD_BYTES_MAX 16384

struct cv_record {
	uint32_t bytes;
	_Alignas(8) uint8_t data[CV_RECORD_BYTES_MAX];
	struct cv_socket_fds fds;
};

// Part of a larger struct, which put() knows.
struct cv_record_sink {
	// Takes a record; its descriptors stay the caller's. 0 or -errno.
	int (*put)(struct cv_record_sink *sink, const struct cv_record *record);
};

#endif
