// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Memory that a peer shares with us as a file (vhost-user, memif) is still the peer's: it can make
// the file shorter. Whoever touches a page that is gone then gets SIGBUS, which ends a process. It
// must end nobody's but the peer's own traffic.
#ifndef CV_LOST_MEMORY_H
#define CV_LOST_MEMORY_H

// From now on a mapping of cv_shared_memory_map() of which such a page is touched becomes one of
// zeros that nobody shares, and `lost` (or NULL) is told the address: in a signal handler, by the
// thread that touched it. Of other shared mappings (DPDK's) the page alone becomes zeros; DPDK's
// own memory is left alone, and a handler that is there for everything else is called. Any number
// of times; each `lost` once.
void cv_lost_memory_guard(void (*lost)(const void *address));

#endif
