// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost_thread.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME "vhost-events\n" // as DPDK calls it, and the kernel writes it

// Ends the poll, which is then begun anew with the list as it is.
static void do_nothing(int number)
{
	(void)number;
}

static void install(void)
{
	// SIGURG: whoever has no handler for it never notices. A program's own handler stays, and is
	// called; that ends the poll, too.
	const struct sigaction action = {.sa_handler = do_nothing};
	struct sigaction theirs;

	if (sigaction(SIGURG, NULL, &theirs) == 0 && theirs.sa_handler == SIG_DFL)
		sigaction(SIGURG, &action, NULL);
}

static bool is_it(const char *thread)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", thread);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	return strcmp(name, NAME) == 0;
}

void cv_vhost_thread_wake(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	if (tasks == NULL)
		return;
	pthread_once(&once, install);
	while ((task = readdir(tasks)) != NULL)
		if (is_it(task->d_name))
			syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGURG);
	closedir(tasks);
}
