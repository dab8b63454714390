// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the tests of ports share: an EAL that needs no rights and no hugepages, and its own files.
#ifndef CV_TEST_EAL_H
#define CV_TEST_EAL_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_log.h>

#include "tests/support/test_dir.h"

// A directory of this process's own under /tmp, removed by test_eal_end(), or when it dies.
static char test_dir[] = "/tmp/convoy-test-XXXXXX";

static inline const char *test_path(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", test_dir, name);
	return path;
}

// Starts the EAL. Exits on failure: no test could run.
static inline void test_eal_begin(const char *program)
{
	char prefix[64];
	char *arguments[] = {(char *)(uintptr_t)program, "--no-huge", "-m", "256", "--no-pci",
		"--no-telemetry", "--no-shconf", "--log-level=lib.*:error", "--file-prefix", prefix,
		NULL};
	cpu_set_t cores;

	if (test_dir_make(test_dir) != 0 || setenv("XDG_RUNTIME_DIR", test_dir, 1) != 0) {
		perror(test_dir);
		exit(1);
	}
	snprintf(prefix, sizeof(prefix), "test-%d", getpid());
	sched_getaffinity(0, sizeof(cores), &cores);
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]) - 1, arguments) < 0)
		exit(1);
	// The EAL pins this thread, and the threads that it makes would inherit that.
	sched_setaffinity(0, sizeof(cores), &cores);
}

static inline void test_dir_remove(void)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", test_dir);
	if (system(command) != 0)
		fprintf(stderr, "%s: could not be removed\n", test_dir);
}

static inline void test_eal_end(void)
{
	rte_eal_cleanup();
	test_dir_remove();
}

#endif
