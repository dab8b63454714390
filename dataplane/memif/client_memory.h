// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory that a client brings: two rings, one behind the other, then the buffers of each.
#ifndef CV_MEMIF_CLIENT_MEMORY_H
#define CV_MEMIF_CLIENT_MEMORY_H

#include "memif/session.h"

// For rings of that many descriptors: makes the file, its mapping, both rings and their eventfds.
// 0, or -errno with error set; cv_memif_session_end() frees what there is.
int cv_memif_client_memory_make(
	struct cv_memif_session *session, uint16_t slots, struct cv_error *error);

#endif
