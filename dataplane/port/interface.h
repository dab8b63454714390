// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A network interface of the kernel, and what it takes to use it.
#ifndef CV_INTERFACE_H
#define CV_INTERFACE_H

#include "config/params.h"

// The key interface, into a const char *: one that exists in this network namespace.
extern const struct cv_param cv_interface_params[];

// Checks that this process has every capability of a list (CAP_NET_RAW, -1 at the end). 0, or
// -EPERM with an error that names those that are missing and how to give them.
int cv_interface_rights(const int *capabilities, struct cv_error *error);

// Checks that the interface is up. 0, or -ENETDOWN with error set.
int cv_interface_is_up(const char *name, struct cv_error *error);

#endif
