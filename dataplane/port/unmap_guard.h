// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// When a memif peer dies, DPDK 22.11's interrupt thread unmaps the memory that the two shared, even
// while a worker is reading it: the node would die with its peer. So munmap() is ours: called by
// the interrupt thread, it first quiesces the ports' users. (A definition in the program
// itself comes before the C library's, for drivers that are loaded as plug-ins, too.)
#ifndef CV_UNMAP_GUARD_H
#define CV_UNMAP_GUARD_H

#include <stdbool.h>

// Quiesces every user of the device behind argument, until the call with false.
typedef void (*cv_unmap_pause)(void *argument, bool pause);

// From now on pause is called around every munmap() of the interrupt thread. 0, or -ENOSPC: there
// are too many (64).
int cv_unmap_guard_add(cv_unmap_pause pause, void *argument);

// No more. Not called from within pause.
void cv_unmap_guard_remove(void *argument);

#endif
