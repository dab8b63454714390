// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Guests' memory is files that their front ends may make shorter. Whoever then touches a page that is
// gone gets SIGBUS, which would end the program: the library reads it, and rte_vhost does. All of
// that mapping becomes zeros that nobody shares, and the guest stands still until it connects anew.
// Every other SIGBUS is the program's.
#ifndef CV_VHOST_TRUNCATED_H
#define CV_VHOST_TRUNCATED_H

#include "socket/shared_memory.h"
#include "vring/guest_memory.h"

// The mappings of one guest.
struct cv_truncated {
	unsigned count;
	unsigned mappings[CV_GUEST_REGIONS_MAX];
};

// rte_vhost has mapped the guest's memory (0 or -EINVAL: it has none) or is about to unmap it.
int cv_truncated_guard(struct cv_truncated *guest, int vid);
void cv_truncated_forget(struct cv_truncated *guest);

#endif
