// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a client of the control sockets may ask of the running node (docs/control.md).
#ifndef CV_METHODS_H
#define CV_METHODS_H

#include "daemon/control/rpc.h"

// They use the node of running.h; without one they say that it is ending.
extern const struct cv_rpc_method cv_methods[];

#endif
