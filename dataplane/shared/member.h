// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A process that has another one's pool mapped. Its ports that name the same path are one member: what
// comes by one goes by another as it lies. The mbufs are its own, in a mempool that they are never
// allocated from: freed, a buffer goes back to the owner.
//
// When the owner is gone the ports are down at once. The memory stays until the last packet that lies
// in it is freed; then the member connects anew.
#ifndef CV_SHARED_MEMBER_H
#define CV_SHARED_MEMBER_H

#include "shared/port.h"
#include "socket/endpoint.h"
#include "socket/shared_memory.h"

struct cv_shared_member;

// Joins an end of a link to the member of that path, which begins to connect if there is none in this
// process. 0 with *member set, or -errno with error set.
int cv_shared_member_open(struct cv_shared_member **member, const char *path,
	struct cv_shared_port *port, struct cv_error *error);

// The last port ends the member. What packets it has must have been freed.
void cv_shared_member_close(struct cv_shared_member *member, struct cv_shared_port *port);

// A buffer of the owner's to make a packet in; NULL: there is none now. For who sends, under the lock
// of the port's tx.
struct rte_mbuf *cv_shared_member_buffer(struct cv_shared_member *member);

#endif
