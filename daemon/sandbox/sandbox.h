// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a node gives up once its ports are open: new privileges, capabilities, root, core dumps, most
// system calls, and files. What remains is enough to forward, to take peers that come and go, and to
// end. For every thread of the process, and for those that it makes later.
#ifndef CV_SANDBOX_H
#define CV_SANDBOX_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "packet/error.h"

#define CV_SANDBOX_FOLDERS_MAX 96
#define CV_SANDBOX_TCP_MAX 9

// What may still be done in a folder and below it.
enum cv_sandbox_use {
	CV_SANDBOX_READS = 1,
	CV_SANDBOX_SOCKETS = 2, // make and remove them
	CV_SANDBOX_REMOVES = 4, // files and folders
	CV_SANDBOX_REMOVES_FOLDERS = 8, // empty ones
};

struct cv_sandbox_folder {
	char path[PATH_MAX];
	unsigned use;
};

struct cv_sandbox {
	const char *run_as; // "USER" or "USER:GROUP"; NULL: stays who it is
	uint64_t keeps; // capabilities, a bit each
	bool interfaces; // sockets for interfaces of the kernel are made, and asked about
	bool bpf; // programs of af_xdp are taken back at the end
	bool core_dumps; // for a debugger: dumps and tracing stay possible
	unsigned descriptors; // open at once
	uint16_t tcp_ports[CV_SANDBOX_TCP_MAX]; // that sockets made before are connected to
	unsigned tcp_ports_count;
	struct cv_sandbox_folder folders[CV_SANDBOX_FOLDERS_MAX];
	unsigned folders_count;
};

// What is in force.
struct cv_sandbox_state {
	bool on;
	int landlock; // version of the kernel's; 0: it has none, so files are not limited
	bool bounded; // the capability bounding set is as small, too: that takes root to do
};

// Adds a folder; one that is not there counts for nothing.
void cv_sandbox_allow(struct cv_sandbox *sandbox, const char *path, unsigned use);

// Checks run_as, with no effect. 0, or -EINVAL with error set.
int cv_sandbox_check(const struct cv_sandbox *sandbox, struct cv_error *error);

// Once, from the main thread. There is no way back; after an error the process is to end. 0, or a
// negative errno with error set.
int cv_sandbox_enter(
	const struct cv_sandbox *sandbox, struct cv_sandbox_state *state, struct cv_error *error);

#endif
