// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory of a zone: zeros, all there from the beginning, in large pages where the kernel has some.
// It is a file of memory, which another process may map as well, where that costs no look-up anything:
// where the kernel makes large pages of such files (Linux 6.1). Elsewhere it is the process's own.
#ifndef CV_FLOW_MEMORY_H
#define CV_FLOW_MEMORY_H

#include <stddef.h>

#include "packet/error.h"

#define CV_FLOW_HUGE_PAGE ((size_t)2 << 20)

struct cv_flow_memory {
	void *start; // NULL: there is none
	size_t bytes; // a multiple of CV_FLOW_HUGE_PAGE
	int fd; // the file; -1: nobody else can map it
};

// 0, or -errno.
int cv_flow_memory_make(struct cv_flow_memory *memory, size_t bytes);
void cv_flow_memory_free(struct cv_flow_memory *memory);

// Another process's file takes its place, at the same address: only one that is as long, and stays so.
// fd becomes its own, also after an error: -errno with error set, and what was there may be gone.
int cv_flow_memory_replace(struct cv_flow_memory *memory, int fd, struct cv_error *error);

// Another process's file as it is, to be read: only one of so many bytes, which stays so. fd stays the
// caller's. 0, or -errno with error set.
int cv_flow_memory_look(
	struct cv_flow_memory *memory, size_t bytes, int fd, struct cv_error *error);

#endif
