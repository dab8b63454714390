// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The DPDK of the program that a library is preloaded under. It must be of the release that the
// library was built with: what lies in memory between them differs from release to release.
#ifndef CV_DPDK_HOST_H
#define CV_DPDK_HOST_H

// Ends the program with one line, before main() or in its middle: without its handlers. library:
// "ethdev", "vhost".
__attribute__((noreturn, format(printf, 2, 3))) void cv_host_refuse(
	const char *library, const char *format, ...);

// Refuses a program that brings another DPDK.
void cv_host_check(const char *library);

// DPDK's own function, in front of which the library has put another. Refuses a program without it.
void *cv_host_function(const char *library, const char *name);

#endif
