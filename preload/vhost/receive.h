// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What rte_vhost's only thread receives from guests' sockets goes through the library's recvmsg(),
// before rte_vhost looks at it: some messages make it hang up without closing the files that came
// with them, and it waits for as long as a guest likes for the rest of a message, or for one that
// does not read its replies. Those guests are disconnected.
#ifndef CV_VHOST_RECEIVE_H
#define CV_VHOST_RECEIVE_H

#include <stdbool.h>

// Messages may carry files that no message of a network guest carries: the program asked for what
// they are for. Atomic.
extern bool cv_receive_any_files;

// Whether this is rte_vhost's thread. For signal handlers, too.
bool cv_receive_is_server(void);

#endif
