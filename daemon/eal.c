// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "eal.h"
#include "port.h"

#define ARGUMENTS_MAX 24

static char telemetry[PATH_MAX];
static char private_directory[PATH_MAX]; // made by us, to be removed; empty: none

// Where DPDK keeps its files, by its own rules, but never straight in /tmp: a directory of ours
// there. Only an unprivileged user without a session has neither of the better places.
static int choose_runtime_directory(struct cv_error *error)
{
	if (getenv("RUNTIME_DIRECTORY") != NULL || getuid() == 0 ||
		getenv("XDG_RUNTIME_DIR") != NULL)
		return 0;
	snprintf(private_directory, sizeof(private_directory), "/tmp/convoyd-XXXXXX");
	if (mkdtemp(private_directory) == NULL) {
		cv_error_set(error, "/tmp: %s; set XDG_RUNTIME_DIR to a directory of yours",
			strerror(errno));
		private_directory[0] = '\0';
		return -EIO;
	}
	setenv("XDG_RUNTIME_DIR", private_directory, 1);
	return 0;
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

// Removes what the EAL and we have left; files: the EAL's runtime directory.
static void remove_files(const char *files)
{
	char parent[PATH_MAX];

	remove_directory(files);
	if (private_directory[0] == '\0')
		return;
	snprintf(parent, sizeof(parent), "%.*s/dpdk", PATH_MAX - 6, private_directory);
	rmdir(parent);
	rmdir(private_directory);
}

// "0@(0-1),1@1": the main lcore anywhere, worker i on lcore i + 1 and its core.
static void lcores(const struct cv_plan *plan, bool check, char *text, size_t size)
{
	size_t end = snprintf(text, size, "0@(");
	cpu_set_t allowed;
	bool first = true;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && end < size; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		end += snprintf(text + end, size - end, "%s%d", first ? "" : ",", cpu);
		first = false;
	}
	end += snprintf(text + end, size - end, ")");
	for (unsigned i = 0; !check && i < plan->workers_count && end < size; i++)
		end += snprintf(text + end, size - end, ",%u@%u", i + 1, plan->workers[i].core);
}

static bool needs_pci(const struct cv_plan *plan)
{
	for (unsigned i = 0; i < plan->ports_count; i++)
		if (cv_port_needs_pci(plan->ports[i]))
			return true;
	return false;
}

int cv_eal_start(
	const struct cv_plan *plan, bool check, const char *log_level, struct cv_error *error)
{
	char *arguments[ARGUMENTS_MAX];
	char prefix[32], memory[16], cores[4096], level[64];
	int n = 0;

	if (choose_runtime_directory(error) != 0)
		return -EIO;
	snprintf(prefix, sizeof(prefix), "convoyd-%d", getpid());
	snprintf(memory, sizeof(memory), "%u", plan->memory_mb);
	snprintf(level, sizeof(level), "--log-level=%.32s", log_level);
	lcores(plan, check, cores, sizeof(cores));
	arguments[n++] = "convoyd";
	arguments[n++] = "--lcores";
	arguments[n++] = cores;
	arguments[n++] = "--main-lcore";
	arguments[n++] = "0";
	arguments[n++] = "--file-prefix";
	arguments[n++] = prefix;
	arguments[n++] = level;
	if (!needs_pci(plan))
		arguments[n++] = "--no-pci";
	if (plan->hugepages && !check) {
		arguments[n++] = "--in-memory"; // no files to leave behind, no mount needed
		arguments[n++] = "--single-file-segments"; // virtio-user hands memory over by file
	} else {
		arguments[n++] = "--no-huge";
		arguments[n++] = "-m";
		arguments[n++] = memory;
	}
	if (check)
		arguments[n++] = "--no-telemetry";
	arguments[n] = NULL;
	if (rte_eal_init(n, arguments) < 0) {
		cv_error_set(error,
			"DPDK does not start: %s; see its reason with --log-level debug",
			rte_strerror(rte_errno));
		remove_files(rte_eal_get_runtime_dir());
		return -EIO;
	}
	snprintf(telemetry, sizeof(telemetry), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	return 0;
}

const char *cv_eal_telemetry_path(void)
{
	return telemetry;
}

void cv_eal_stop(void)
{
	char files[PATH_MAX];

	snprintf(files, sizeof(files), "%s", rte_eal_get_runtime_dir());
	if (cv_port_eal_may_end())
		rte_eal_cleanup();
	remove_files(files);
}
