// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "eal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#define MEMORY_MB 128
#define FREE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
#define NO_SUCH_DEVICE "0000:00:00.0"

static bool started;
static char own_directory[] = "/tmp/convoy-gen-XXXXXX"; // for DPDK's files, if we made it
static bool made_directory;

static bool hugepages_are_free(void)
{
	FILE *file = fopen(FREE_PAGES, "r");
	long pages = 0;

	if (file == NULL)
		return false;
	if (fscanf(file, "%ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages >= MEMORY_MB / 2;
}

static void remove_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL)
		unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory != NULL)
		closedir(directory);
	rmdir(path);
}

int gen_eal_start(uint32_t core, char *error, size_t error_size)
{
	const bool huge = hugepages_are_free();
	char prefix[32], lcores[32], memory[16];
	char *arguments[20];
	int n = 0;

	if (started)
		return 0;
	// An ordinary user without a session has no runtime directory: DPDK would use all of /tmp.
	if (getuid() != 0 && getenv("XDG_RUNTIME_DIR") == NULL) {
		if (mkdtemp(own_directory) == NULL) {
			snprintf(error, error_size,
				"/tmp: %s; set XDG_RUNTIME_DIR to a folder of yours",
				strerror(errno));
			return -1;
		}
		made_directory = true;
		setenv("XDG_RUNTIME_DIR", own_directory, 1);
	}
	snprintf(prefix, sizeof(prefix), "convoy-gen-%d", getpid());
	snprintf(lcores, sizeof(lcores), "0@%u", core);
	snprintf(memory, sizeof(memory), "%d", MEMORY_MB);
	arguments[n++] = "convoy-gen";
	arguments[n++] = "--lcores";
	arguments[n++] = lcores;
	arguments[n++] = "--file-prefix";
	arguments[n++] = prefix;
	arguments[n++] = "--no-telemetry";
	arguments[n++] = "--log-level=4"; // warnings
	// Devices are attached by name later; none is taken just because it is there.
	arguments[n++] = "-a";
	arguments[n++] = NO_SUCH_DEVICE;
	if (huge) {
		arguments[n++] = "--in-memory";
		arguments[n++] = "--single-file-segments"; // virtio-user hands memory over by file
	} else {
		arguments[n++] = "--no-huge";
		arguments[n++] = "-m";
		arguments[n++] = memory;
	}
	arguments[n] = NULL;
	if (rte_eal_init(n, arguments) < 0) {
		snprintf(error, error_size, "DPDK does not start: %s", rte_strerror(rte_errno));
		return -1;
	}
	started = true;
	return 0;
}

void gen_eal_stop(void)
{
	char files[PATH_MAX];

	if (!started)
		return;
	snprintf(files, sizeof(files), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	remove_directory(files);
	if (made_directory) {
		char parent[sizeof(own_directory) + 8];

		snprintf(parent, sizeof(parent), "%s/dpdk", own_directory);
		rmdir(parent);
		rmdir(own_directory);
	}
	started = false;
}
