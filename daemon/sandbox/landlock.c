// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

// Of later versions than the oldest headers that we build with.
#define REFER (1ull << 13) // 2
#define TRUNCATE (1ull << 14) // 3
#define TCP (3ull << 0) // 4: bind and connect
#define TCP_CONNECT (1ull << 1) // 4
#define RULE_TCP_PORT 2 // 4
#define IOCTL_DEV (1ull << 15) // 5
// 6: abstract sockets. Not signals: some kernels take another thread's domain for another process's,
// and seccomp has this process signal none but itself.
#define SCOPES (1ull << 0)

// As the kernel has it since version 6; it takes more bytes than it knows if they are 0.
struct rules {
	uint64_t files, network, scopes;
};

// As the kernel has it since version 4.
struct tcp_rule {
	uint64_t rights, port;
};

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static const uint64_t all_files = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; // version 1

int cv_landlock_version(void)
{
	const long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

static uint64_t rights_of(unsigned use)
{
	uint64_t rights = 0;

	if ((use & CV_SANDBOX_READS) != 0)
		rights |= READS;
	if ((use & CV_SANDBOX_SOCKETS) != 0)
		rights |= LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
	if ((use & CV_SANDBOX_REMOVES) != 0)
		rights |= LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			  LANDLOCK_ACCESS_FS_REMOVE_DIR;
	if ((use & CV_SANDBOX_REMOVES_FOLDERS) != 0)
		rights |= LANDLOCK_ACCESS_FS_REMOVE_DIR;
	return rights;
}

static int add(int rules, const struct cv_sandbox_folder *folder)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights_of(folder->use)};
	int rc;

	rule.parent_fd = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno; // nothing is done there
	rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0
		     ? 0
		     : -errno;
	close(rule.parent_fd);
	return rc;
}

static int add_tcp_port(int rules, uint16_t port)
{
	const struct tcp_rule rule = {.rights = TCP_CONNECT, .port = port};

	return syscall(SYS_landlock_add_rule, rules, RULE_TCP_PORT, &rule, 0) == 0 ? 0 : -errno;
}

int cv_landlock_rules(const struct cv_sandbox *sandbox, int version)
{
	const struct rules wanted = {
		.files = all_files | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
			 (version >= 5 && !sandbox->interfaces ? IOCTL_DEV : 0),
		.network = version >= 4 ? TCP : 0,
		.scopes = version >= 6 ? SCOPES : 0,
	};
	const int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, sizeof(wanted), 0);
	int rc = rules < 0 ? -errno : 0;

	for (unsigned i = 0; rc == 0 && i < sandbox->folders_count; i++)
		rc = add(rules, &sandbox->folders[i]);
	for (unsigned i = 0; rc == 0 && version >= 4 && i < sandbox->tcp_ports_count; i++)
		rc = add_tcp_port(rules, sandbox->tcp_ports[i]);
	if (rc == 0)
		return rules;
	if (rules >= 0)
		close(rules);
	return rc;
}

int cv_landlock_enter(int rules)
{
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? 0 : -errno;
}
