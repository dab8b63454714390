// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/capability.h>

#include "daemon/sandbox/capabilities.h"
#include "daemon/sandbox/every_thread.h"
#include "daemon/sandbox/landlock.h"
#include "daemon/sandbox/system_calls.h"
#include "daemon/sandbox/user.h"
#include "packet/compiler.h"

// What threads are told: they get nothing else.
static uint64_t keeps;
static int rules;

void cv_sandbox_allow(struct cv_sandbox *sandbox, const char *path, unsigned use)
{
	struct cv_sandbox_folder *folder = &sandbox->folders[sandbox->folders_count];

	if (sandbox->folders_count == CV_SANDBOX_FOLDERS_MAX)
		return;
	snprintf(folder->path, sizeof(folder->path), "%s", path);
	folder->use = use;
	sandbox->folders_count++;
}

int cv_sandbox_check(const struct cv_sandbox *sandbox, struct cv_error *error)
{
	struct cv_user user;

	if (sandbox->run_as == NULL)
		return 0;
	if (sandbox->keeps != 0) {
		cv_error_set(error,
			"run_as: \"%s\": a port of kind af_xdp or dpdk needs capabilities to its "
			"end, "
			"which another user has not; remove run_as",
			sandbox->run_as);
		return -EINVAL;
	}
	return cv_user_find(sandbox->run_as, &user, error);
}

static int bound_thread(void)
{
	return cv_capabilities_bound(keeps);
}

static int restrict_thread(void)
{
	int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;

	if (rc == 0 && rules >= 0)
		rc = cv_landlock_enter(rules);
	return rc != 0 ? rc : cv_capabilities_keep(keeps);
}

static int set_limits(const struct cv_sandbox *sandbox)
{
	static const struct rlimit none = {0, 0};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return -errno;
	if (files.rlim_max > sandbox->descriptors)
		files.rlim_max = sandbox->descriptors;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		return -errno;
	if (!sandbox->core_dumps && setrlimit(RLIMIT_CORE, &none) != 0)
		return -errno;
	return 0;
}

static int become(const struct cv_sandbox *sandbox, struct cv_error *error)
{
	struct cv_user user;
	int rc;

	if (sandbox->run_as == NULL)
		return 0;
	rc = cv_user_find(sandbox->run_as, &user, error);
	return rc != 0 ? rc : cv_user_become(&user);
}

static int enter(
	const struct cv_sandbox *sandbox, struct cv_sandbox_state *state, struct cv_error *error)
{
	const bool may_bound = (cv_capabilities_now() >> CAP_SETPCAP & 1) != 0;
	int rc = set_limits(sandbox);

	if (rc == 0 && may_bound)
		rc = cv_every_thread(bound_thread);
	if (rc == 0)
		rc = become(sandbox, error);
	// After the user, for a change of that sets it again.
	if (rc == 0 && !sandbox->core_dumps && !CV_SANITIZED &&
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		rc = -errno;
	if (rc == 0)
		rc = cv_every_thread(restrict_thread);
	if (rc == 0)
		rc = cv_system_calls_limit(sandbox);
	state->on = rc == 0;
	state->bounded = may_bound;
	return rc;
}

int cv_sandbox_enter(
	const struct cv_sandbox *sandbox, struct cv_sandbox_state *state, struct cv_error *error)
{
	// Each thread gets a domain of its own, and the leak checker must look into all of them.
	const int version = CV_SANITIZED ? 0 : cv_landlock_version();
	int rc = 0;

	*state = (struct cv_sandbox_state){.landlock = version};
	// The C library loads it to end a thread, and aborts without it: no file can be run any more.
	dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
	keeps = sandbox->keeps;
	rules = -1;
	if (version > 0)
		rc = rules = cv_landlock_rules(sandbox, version);
	if (rc >= 0)
		rc = enter(sandbox, state, error);
	if (rules >= 0)
		close(rules);
	if (rc != 0)
		cv_error_set(error, "cannot give up rights: %s; to run without: --no-sandbox",
			strerror(-rc));
	return rc;
}
