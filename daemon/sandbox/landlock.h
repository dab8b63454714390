// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Landlock: the kernel lets a process do with files only what a set of rules says (Linux 5.13; later
// versions add TCP and abstract sockets, neither of which a node needs).
#ifndef CV_LANDLOCK_H
#define CV_LANDLOCK_H

#include "daemon/sandbox/sandbox.h"

// The kernel's version of it; 0: it has none, or it is off.
int cv_landlock_version(void);

// Makes the rules for these folders. A descriptor, or -errno.
int cv_landlock_rules(const struct cv_sandbox *sandbox, int version);

// Puts the calling thread, which has given up new privileges, under the rules. 0 or -errno.
int cv_landlock_enter(int rules);

#endif
