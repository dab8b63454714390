// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/system_calls.h"

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/compiler.h"

#ifndef CLONE_THREAD
#define CLONE_THREAD 0x00010000
#endif

// What forwarding, taking peers, telemetry and ending need, and the C library for them. Those that
// this processor has not are passed over.
static const char *const allowed[] = {
	// descriptors and files
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
	"pwritev2", "close", "close_range", "openat", "openat2", "open", "newfstatat", "fstatat64",
	"fstat", "stat", "lstat", "statx", "fstatfs", "statfs", "access", "faccessat", "faccessat2",
	"readlink", "readlinkat", "lseek", "_llseek", "ftruncate", "fallocate", "fsync",
	"fdatasync", "fcntl", "fcntl64", "flock", "dup", "dup2", "dup3", "getdents", "getdents64",
	"getcwd", "unlink", "unlinkat", "rmdir", "umask", "pipe", "pipe2", "copy_file_range",
	// signalling without waiting (an eventfd, by one request)
	"io_setup", "io_submit", "io_getevents", "io_cancel", "io_destroy",
	// waiting
	"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create",
	"timerfd_settime", "timerfd_gettime", "nanosleep", "clock_nanosleep", "clock_gettime",
	"clock_getres", "gettimeofday", "time", "restart_syscall",
	// sockets; socket itself is below
	"connect", "bind", "listen", "accept", "accept4", "getsockname", "getpeername",
	"getsockopt", "setsockopt", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg",
	"recvmmsg", "shutdown",
	// memory; what may be run is below
	"munmap", "mremap", "madvise", "mlock", "mlock2", "munlock", "mlockall", "munlockall",
	"msync", "mincore", "brk", "memfd_create", "mbind", "get_mempolicy", "set_mempolicy",
	// threads and signals; clone is below
	"set_robust_list", "get_robust_list", "rseq", "set_tid_address", "futex", "futex_waitv",
	"membarrier", "sched_yield", "sched_setaffinity", "sched_getaffinity", "sched_getparam",
	"sched_setparam", "sched_getscheduler", "sched_setscheduler", "sched_getattr",
	"sched_get_priority_max", "sched_get_priority_min", "getpriority", "getcpu", "gettid",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending",
	"rt_sigsuspend", "sigaltstack", "exit", "exit_group",
	// who and where we are
	"getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid",
	"getresgid", "getrlimit", "getrusage", "times", "sysinfo", "uname", "getrandom", "capget"};

// What only an intruder would do.
static const char *const fatal[] = {"execve", "execveat", "fork", "vfork", "ptrace",
	"process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
	"pidfd_getfd", "kcmp", "userfaultfd", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "perf_event_open", "init_module", "finit_module", "delete_module",
	"kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "mount", "umount",
	"umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
	"fsmount", "fspick", "mount_setattr", "setns", "unshare", "add_key", "keyctl",
	"request_key", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
	"setgroups", "capset", "iopl", "ioperm", "mknod", "mknodat", "open_by_handle_at",
	"name_to_handle_at", "acct", "quotactl", "settimeofday", "clock_settime", "adjtimex",
	"modify_ldt", "personality"};

// For the sanitizers, in place of all that is fatal.
static const char *const for_sanitizers[] = {"clone", "clone3", "fork", "vfork", "execve", "ptrace",
	"wait4", "waitid", "prctl", "kill", "tgkill", "mmap", "mprotect", "personality",
	"prlimit64", "setrlimit", "arch_prctl"};

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		const int number = seccomp_syscall_resolve_name(names[i]);

		if (number >=
			0) // not of this processor, or not known to the library: never allowed
			rc = seccomp_rule_add(filter, action, number, 0);
	}
	return rc;
}

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))
#define ALLOW(filter, call, n, ...) \
	seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(call), n, __VA_ARGS__)
#define IS(argument, value) SCMP_CMP64(argument, SCMP_CMP_EQ, value, 0)

static int add_sockets(scmp_filter_ctx filter, bool interfaces)
{
	static const int families[] = {AF_INET, AF_NETLINK, AF_PACKET, AF_XDP};
	int rc = ALLOW(filter, socket, 1, IS(0, AF_UNIX));

	if (rc == 0)
		rc = ALLOW(filter, socketpair, 1, IS(0, AF_UNIX));
	for (size_t i = 0; i < COUNT(families) && interfaces && rc == 0; i++)
		rc = ALLOW(filter, socket, 1, IS(0, (scmp_datum_t)families[i]));
	return rc;
}

// New threads, but no process; signals to itself only; no memory that can be run.
static int add_limited(scmp_filter_ctx filter)
{
	const scmp_datum_t self = (scmp_datum_t)getpid();
	int rc = ALLOW(filter, clone, 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));

	if (rc == 0) // its flags are out of sight; the C library then takes clone
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc == 0)
		rc = ALLOW(filter, mmap, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (rc == 0)
		rc = ALLOW(filter, mprotect, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (rc == 0)
		rc = ALLOW(filter, tgkill, 1, IS(0, self));
	if (rc == 0)
		rc = ALLOW(filter, kill, 1, IS(0, self));
	if (rc == 0) // reading limits, setting none
		rc = ALLOW(filter, prlimit64, 1, IS(2, 0));
	if (rc == 0)
		rc = ALLOW(filter, prctl, 1, IS(0, PR_SET_NAME));
	if (rc == 0)
		rc = ALLOW(filter, prctl, 1, IS(0, PR_GET_NAME));
	if (rc == 0)
		rc = ALLOW(filter, prctl, 1, IS(0, PR_GET_DUMPABLE));
	return rc;
}

// Typing into somebody's terminal is the one that is not for devices.
static int add_ioctl(scmp_filter_ctx filter)
{
	return ALLOW(filter, ioctl, 1, SCMP_A1(SCMP_CMP_NE, TIOCSTI, 0));
}

static int add_all(scmp_filter_ctx filter, const struct cv_sandbox *sandbox)
{
	static const char *const bpf[] = {"bpf"};
	static const char *const for_bpf[] = {"mkdir", "mkdirat"}; // libxdp: its folder of locks
	int rc = add_names(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed));

	if (rc == 0)
		rc = add_sockets(filter, sandbox->interfaces);
	if (rc == 0)
		rc = add_ioctl(filter);
	if (rc == 0)
		rc = add_names(
			filter, sandbox->bpf ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS, bpf, 1);
	if (rc == 0 && sandbox->bpf)
		rc = add_names(filter, SCMP_ACT_ALLOW, for_bpf, COUNT(for_bpf));
	if (rc != 0)
		return rc;
	if (CV_SANITIZED)
		return add_names(filter, SCMP_ACT_ALLOW, for_sanitizers, COUNT(for_sanitizers));
	rc = add_names(filter, SCMP_ACT_KILL_PROCESS, fatal, COUNT(fatal));
	return rc != 0 ? rc : add_limited(filter);
}

int cv_system_calls_limit(const struct cv_sandbox *sandbox)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = -ENOMEM;

	if (filter == NULL)
		return rc;
	rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); // every thread
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); // a tree, no list
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1); // in the kernel's log
	if (rc == 0)
		rc = add_all(filter, sandbox);
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}
