// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The process that owns a pool: listens for members, joins the two ends of each link, and takes back
// what a member had that ended.
//
// A member's buffers are taken back once nobody can use them: its socket has hung up, which the kernel
// does for a process that died, and who shares a link with it has stopped using the link. Until then
// the link is down; everything else goes on. A member that breaks the rules is hung up on, and its
// buffers wait for its end.
#ifndef CV_SHARED_OWNER_H
#define CV_SHARED_OWNER_H

#include <pthread.h>
#include <sys/un.h>

#include "shared/pool.h"
#include "shared/port.h"
#include "socket/loop.h"

enum cv_shared_seat { CV_SHARED_NOBODY = -1, CV_SHARED_HERE = -2 }; // else a member's number

struct cv_shared_joined {
	char name[CV_SHARED_NAME_BYTES]; // "": nobody has it
	int seats[2];
	struct cv_shared_port *ports[2]; // where the seat is CV_SHARED_HERE
	bool up;
	bool stops[2]; // that end is to say that it has stopped
	bool used; // the rings may hold buffers
};

struct cv_shared_one {
	struct cv_shared_owner *owner;
	struct cv_loop_watch watch; // fd -1: there is none
	bool welcome; // it has the memory
	bool refused; // it is to hang up
	bool gone; // it has hung up, and what it had is not taken back yet
	// Used by whoever polls, if he gets the lock.
	struct cv_shared_queue returns, supply;
};

struct cv_shared_owner {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct cv_shared_pool *pool;
	struct rte_mempool *own; // NULL: the pool is the node's
	unsigned users; // ports
	// Told of every member that is refused; any port of this owner.
	struct cv_shared_port *first;
	struct cv_loop_watch listener;
	struct cv_loop_timer retry;
	struct cv_shared_one members[CV_SHARED_MEMBERS];
	uint32_t there; // a bit for each member that has the memory; atomic
	struct cv_loop_timer serve;
	bool polled; // somebody receives by a port of this owner's, and serves; atomic
	struct cv_shared_joined links[CV_SHARED_LINKS];
	uint8_t *lost; // a byte for each buffer: to be taken back
	uint64_t members_came, recovered; // atomic
	uint64_t strays; // of recovered: found only once no member was left; atomic
	struct cv_shared_owner *next;
};

// Joins an end of a link to the owner at that path, which begins to listen if there is none in this
// process. pool: the node's, of cv_shared_pool_create(); or another one: then the owner makes a pool
// like it, and what it sends is copied into it. 0 with *owner set, or -errno with error set.
int cv_shared_owner_open(struct cv_shared_owner **owner, const char *path, struct rte_mempool *pool,
	struct cv_shared_port *port, struct cv_error *error);

// The last port ends the owner. What packets it has must have been freed.
void cv_shared_owner_close(struct cv_shared_owner *owner, struct cv_shared_port *port);

// Whether this process has the owner at that path.
bool cv_shared_owner_is_here(const char *path);

// Takes back what members have freed, and gives them buffers to make packets of. For who polls, and for
// who sends: he only does so where nobody polls. Else a timer does, so that members are never forgotten.
void cv_shared_owner_polls(struct cv_shared_owner *owner);
void cv_shared_owner_sends(struct cv_shared_owner *owner);

// Buffers that members have, or that are on their way.
uint32_t cv_shared_owner_given(const struct cv_shared_owner *owner);

#endif
