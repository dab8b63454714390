// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Some rights are each thread's own (capabilities, Landlock), and other libraries have made threads
// by the time that they are given up.
#ifndef CV_EVERY_THREAD_H
#define CV_EVERY_THREAD_H

// Has call() run in every thread of the process, the caller's last: in a signal handler, so it makes
// system calls only. Returns 0 when each has returned 0; else the first thing that one returned, or
// a negative errno. Once at a time.
int cv_every_thread(int (*call)(void));

#endif
