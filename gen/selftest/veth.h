// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A pair of virtual Ethernet interfaces, joined, in a network namespace of its own: nobody else
// sends on them, and they go when the last socket in it is closed.
#ifndef GEN_SELFTEST_VETH_H
#define GEN_SELFTEST_VETH_H

#include "packet/error.h"

// Takes the calling thread into a new namespace with the interfaces `a` and `b`, up. Sockets that
// it opens now are there. Returns a descriptor for gen_veth_leave, or -errno with error set: it
// needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
int gen_veth_enter(const char *a, const char *b, struct cv_error *error);

// Takes the thread back to where it was. 0 or -errno.
int gen_veth_leave(int before);

#endif
