// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Capabilities of the calling thread, by system calls alone. A set is a bit for each.
#ifndef CV_CAPABILITIES_H
#define CV_CAPABILITIES_H

#include <stdint.h>

// Those in effect.
uint64_t cv_capabilities_now(void);

// Keeps none but these in the bounding set. Takes CAP_SETPCAP. 0 or -errno.
int cv_capabilities_bound(uint64_t keep);

// Keeps of those that the thread has none but these. 0 or -errno.
int cv_capabilities_keep(uint64_t keep);

#endif
