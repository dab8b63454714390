// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Telling a guest: adding one to the eventfd that it waits at. Plain write(2) will not do: whether it
// waits while the eventfd is full is decided by a flag that we share with whoever sent it, so that a
// peer could hold a worker for as long as it likes. The kernel itself never waits when it signals
// an eventfd; here it does so as the end of an asynchronous read of nothing (io_submit(2),
// IOCB_FLAG_RESFD). docs/decisions/vhost-user-back-end.md.
#ifndef CV_VRING_CALL_H
#define CV_VRING_CALL_H

#include <stdbool.h>

// Makes sure that the kernel can do that, once for the process. 0 or -errno.
int cv_call_begin(void);

// Whether fd is an eventfd, as far as it can be told: nothing else may be told anything.
bool cv_call_is_eventfd(int fd);

// Any thread. Never waits. False: it was not told, and may be next time.
bool cv_call(int fd);

#endif
