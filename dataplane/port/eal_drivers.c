// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/eal_drivers.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_config.h>

#define RINGS "librte_mempool_ring.so"

static __thread bool hides;

// Stands before the C library's, for DPDK's libraries too: the EAL asks by it whether there is a folder.
int stat(const char *restrict path, struct stat *restrict is)
{
	if (hides && strcmp(path, RTE_EAL_PMD_PATH) == 0) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, is, 0);
}

static bool load(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", RTE_EAL_PMD_PATH, name);
	return dlopen(path, RTLD_NOW) != NULL; // for as long as the process lives
}

void cv_eal_drivers_hide(void)
{
	DIR *folder = opendir(RTE_EAL_PMD_PATH);
	struct dirent *entry;

	hides = false;
	// Whatever its version: the name without one is of packages for development.
	while (folder != NULL && !hides && (entry = readdir(folder)) != NULL)
		hides = strncmp(entry->d_name, RINGS, strlen(RINGS)) == 0 && load(entry->d_name);
	if (folder != NULL)
		closedir(folder);
}

void cv_eal_drivers_show(void)
{
	hides = false;
}
