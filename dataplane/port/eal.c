// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/eal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "port/eal_drivers.h"
#include "port/eal_stale.h"
#include "port/eal_tsc.h"
#include "port/port.h"

#define ARGUMENTS_MAX 24
#define NO_SUCH_DEVICE "0000:00:00.0"

static bool started;
static bool has_files; // the two below are to be removed; atomic
static char files[PATH_MAX]; // the EAL's runtime directory
static int files_fd = -1;
static char telemetry[PATH_MAX];
static char private_directory[64]; // made by us, to be removed; empty: none

// DPDK uses BASE/dpdk if it is there, whoever made it. 0, or -EIO with error set.
static int check_owner(const char *base, struct cv_error *error)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/dpdk", base);
	if (lstat(path, &st) != 0)
		return 0; // DPDK makes it, or says why not
	if (S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	cv_error_set(error,
		"%s: is not a directory of this user's that no other may write; remove it, or set "
		"RUNTIME_DIRECTORY to a directory of yours",
		path);
	return -EIO;
}

// Of what DPDK and we make there a socket of DPDK's has the longest path.
static int check_length(const char *base, const char *program, struct cv_error *error)
{
	const size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path);
	const int length =
		snprintf(NULL, 0, "%s/dpdk/%.32s-%d/dpdk_telemetry.v2", base, program, getpid());

	if ((size_t)length < room)
		return 0;
	cv_error_set(error,
		"%s: sockets there would have paths of %d bytes, and %zu are possible; set "
		"RUNTIME_DIRECTORY to a shorter one",
		base, length, room - 1);
	return -EIO;
}

// Where DPDK keeps its files, by its own rules, but never straight in /tmp: a directory of ours
// there. Only an unprivileged user without a session has neither of the better places.
static int choose_runtime_directory(const char *program, struct cv_error *error)
{
	const char *base = getenv("RUNTIME_DIRECTORY");
	char folder[PATH_MAX];

	// In DPDK's order.
	if (base == NULL)
		base = getuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");
	if (base != NULL) {
		if (check_owner(base, error) != 0 || check_length(base, program, error) != 0)
			return -EIO;
		snprintf(folder, sizeof(folder), "%s/dpdk", base);
		cv_eal_remove_stale(folder, program);
		return 0;
	}
	snprintf(private_directory, sizeof(private_directory), "/tmp/%.32s-XXXXXX", program);
	if (mkdtemp(private_directory) == NULL) {
		cv_error_set(error, "/tmp: %s; set XDG_RUNTIME_DIR to a directory of yours",
			strerror(errno));
		private_directory[0] = '\0';
		return -EIO;
	}
	setenv("XDG_RUNTIME_DIR", private_directory, 1);
	return 0;
}

// By descriptor: the way to the directory may be closed to whom the process has become.
static void remove_directory(int fd, const char *path)
{
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL)
		unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory != NULL)
		closedir(directory);
	rmdir(path);
}

void cv_eal_remove_files(void)
{
	char parent[sizeof(private_directory) + 8];

	// Once, by whichever thread ends the process.
	if (!__atomic_exchange_n(&has_files, false, __ATOMIC_ACQ_REL))
		return;
	remove_directory(files_fd, files);
	if (private_directory[0] == '\0')
		return;
	snprintf(parent, sizeof(parent), "%s/dpdk", private_directory);
	rmdir(parent);
	rmdir(private_directory);
}

static void note_files(void)
{
	snprintf(files, sizeof(files), "%s", rte_eal_get_runtime_dir());
	files_fd = open(files, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	// Pairs with the exchange in cv_eal_remove_files().
	__atomic_store_n(&has_files, true, __ATOMIC_RELEASE);
}

int cv_eal_start(const struct cv_eal *eal, struct cv_error *error)
{
	char *arguments[ARGUMENTS_MAX];
	char prefix[64], memory[16], level[64];
	int n = 0, used;

	if (choose_runtime_directory(eal->program, error) != 0)
		return -EIO;
	snprintf(prefix, sizeof(prefix), "%.32s-%d", eal->program, getpid());
	snprintf(memory, sizeof(memory), "%u", eal->memory_mb);
	snprintf(level, sizeof(level), "--log-level=%.32s", eal->log_level);
	arguments[n++] = (char *)(uintptr_t)eal->program;
	arguments[n++] = "--lcores";
	arguments[n++] = (char *)(uintptr_t)eal->lcores;
	arguments[n++] = "--main-lcore";
	arguments[n++] = "0";
	arguments[n++] = "--file-prefix";
	arguments[n++] = prefix;
	arguments[n++] = level;
	if (eal->pci) {
		arguments[n++] = "-a";
		arguments[n++] = NO_SUCH_DEVICE;
	} else {
		arguments[n++] = "--no-pci";
	}
	if (eal->hugepages) {
		arguments[n++] = "--in-memory"; // no files to leave behind, no mount needed
		arguments[n++] = "--single-file-segments"; // virtio-user hands memory over by file
	} else {
		arguments[n++] = "--no-huge";
		arguments[n++] = "-m";
		arguments[n++] = memory;
	}
	if (!eal->telemetry)
		arguments[n++] = "--no-telemetry";
	arguments[n] = NULL;
	if (!eal->drivers)
		cv_eal_drivers_hide();
	used = cv_eal_init(n, arguments);
	cv_eal_drivers_show();
	if (used < 0) {
		cv_error_set(error, "DPDK does not start: %s", rte_strerror(rte_errno));
		note_files();
		cv_eal_remove_files();
		return -EIO;
	}
	note_files();
	started = true;
	snprintf(telemetry, sizeof(telemetry), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	return 0;
}

const char *cv_eal_telemetry_path(void)
{
	return telemetry;
}

// Who may connect must get to the socket: /run/NODE/dpdk/convoyd-1.
static mode_t folder_mode(const struct cv_socket_access *access, mode_t fallback)
{
	const mode_t mode = access->has_mode ? access->mode : fallback;

	if (!cv_socket_access_is_set(access))
		return 0700;
	return 0700 | ((mode & 0060) != 0 ? 0010 : 0) | ((mode & 0006) != 0 ? 0001 : 0);
}

int cv_eal_share_sockets(const struct cv_socket_access *telemetry_access,
	const struct cv_socket_access *other, struct cv_error *error)
{
	const mode_t mode = telemetry_access->has_mode ? telemetry_access->mode : 0770;
	struct cv_socket_access access = telemetry_access->has_group ? *telemetry_access : *other;
	mode_t folder = folder_mode(telemetry_access, 0770) | folder_mode(other, 0660);
	const char *base = getenv("RUNTIME_DIRECTORY");
	char parent[PATH_MAX];
	int rc = 0;

	if (!cv_socket_access_is_set(telemetry_access) && !cv_socket_access_is_set(other))
		return 0;
	if (base == NULL) {
		cv_error_set(error,
			"telemetry, control: their folder is that of all DPDK programs of this "
			"user; set RUNTIME_DIRECTORY to a folder for this node");
		return -EINVAL;
	}
	// A folder has but one group: what is in it is guarded by the sockets' own rights.
	if (telemetry_access->has_group && other->has_group &&
		telemetry_access->group != other->group)
		folder |= 0001;
	snprintf(parent, sizeof(parent), "%s/dpdk", base);
	// The folders last: until then nobody else gets to the socket.
	if (cv_socket_access_is_set(telemetry_access))
		rc = cv_socket_access_give(telemetry_access, telemetry, mode, error);
	if (rc == 0)
		rc = cv_socket_access_give(&access, files, folder, error);
	if (rc == 0)
		rc = cv_socket_access_give(&access, parent, folder, error);
	return rc;
}

const char *cv_eal_folder(void)
{
	return files;
}

bool cv_eal_folder_is_private(void)
{
	return private_directory[0] != '\0';
}

int cv_eal_give_folder(uid_t uid, gid_t gid, struct cv_error *error)
{
	if (fchown(files_fd, uid, gid) == 0)
		return 0;
	cv_error_set(error, "run_as: %s: %s", files, strerror(errno));
	return -errno;
}

void cv_eal_stop(void)
{
	if (!started)
		return;
	if (cv_port_eal_may_end())
		rte_eal_cleanup();
	cv_eal_remove_files();
	started = false;
}
