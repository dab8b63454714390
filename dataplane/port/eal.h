// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Starting and ending DPDK's environment: with files of its own, removed at the end, and without
// root or hugepages where it must. One per process.
#ifndef CV_EAL_H
#define CV_EAL_H

#include <stdbool.h>
#include <stddef.h>

#include "packet/error.h"
#include "port/socket_access.h"

struct cv_eal {
	const char *program; // its name, and of its files
	const char
		*lcores; // "0@(0-3),1@2": threads, and the cores that they may use; 0 is the caller
	const char *log_level; // of DPDK's own log
	unsigned memory_mb; // without hugepages: address space, touched as it is used
	bool hugepages;
	bool pci; // PCI devices may be attached later; none is taken just because it is there
	bool drivers; // of DPDK's devices are needed
	bool telemetry;
};

// The calling thread becomes lcore 0. 0, or -EIO with error set.
int cv_eal_start(const struct cv_eal *eal, struct cv_error *error);

// Path of the telemetry socket.
const char *cv_eal_telemetry_path(void);

// Lets others connect to the telemetry socket, if telemetry says so, and come to its folder, if that
// or what is said of another socket there does. 0, or a negative errno with error set.
int cv_eal_share_sockets(const struct cv_socket_access *telemetry,
	const struct cv_socket_access *other, struct cv_error *error);

// Where DPDK keeps its files, and whether it and two folders above it were made for this process.
const char *cv_eal_folder(void);
bool cv_eal_folder_is_private(void);

// Before the process becomes that user: who removes the files at the end. The folder itself stays,
// if the user may not write the one above. 0, or a negative errno with error set.
int cv_eal_give_folder(uid_t uid, gid_t gid, struct cv_error *error);

// Nothing happens if it was not started.
void cv_eal_stop(void);

// For a process that ends without cv_eal_stop(): removes the files. From any thread; the second
// call does nothing.
void cv_eal_remove_files(void);

#endif
