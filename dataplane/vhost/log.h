// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which of a guest's pages were written while it is migrated: a bit for each, in memory that the
// front end shares. Calls of a vring, with one of a session's rings as context.
#ifndef CV_VHOST_LOG_H
#define CV_VHOST_LOG_H

#include <stdint.h>

void cv_vhost_log_bytes(void *ring, uint64_t guest, uint64_t bytes);
void cv_vhost_log_used(void *ring, uint64_t offset, uint64_t bytes);

#endif
