// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// rte_vhost's own thread, which accepts guests and answers them.

// Makes it look at what it waits for once more. DPDK 22.11 adds a new listener to its list without
// telling the thread, which sees it when its poll(2) times out: a guest that comes just after the
// port was opened waited for up to a second. Does nothing if there is no such thread.
void cv_vhost_thread_wake(void);
