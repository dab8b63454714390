// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which system calls the process may still make.
#ifndef CV_SYSTEM_CALLS_H
#define CV_SYSTEM_CALLS_H

#include "daemon/sandbox/sandbox.h"

// For all threads. A call that nothing here needs fails with EPERM; one that only an intruder would
// make (run a program, look into another process, load code into the kernel) ends the process. 0 or
// -errno.
int cv_system_calls_limit(const struct cv_sandbox *sandbox);

#endif
