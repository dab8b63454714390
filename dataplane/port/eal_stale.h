// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a killed process left of DPDK's files.
#ifndef CV_EAL_STALE_H
#define CV_EAL_STALE_H

// Removes the folders BASE/PROGRAM-PID of processes that are gone: no process has that id, nobody
// holds the lock on DPDK's configuration there, and a connection to control.sock is refused. (An id
// alone may be of another namespace.) What has no such socket, or is another user's, stays. Nothing
// is an error.
void cv_eal_remove_stale(const char *base, const char *program);

#endif
