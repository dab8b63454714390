// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/unmap_guard.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_interrupts.h>

#define GUARDS_MAX 64

static struct {
	cv_unmap_pause pause; // NULL: a free place
	void *argument;
} guards[GUARDS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cv_unmap_guard_add(cv_unmap_pause pause, void *argument)
{
	int rc = -ENOSPC;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < GUARDS_MAX && rc != 0; i++) {
		if (guards[i].pause != NULL)
			continue;
		guards[i].pause = pause;
		guards[i].argument = argument;
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void cv_unmap_guard_remove(void *argument)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < GUARDS_MAX; i++) {
		if (guards[i].argument == argument) {
			guards[i].pause = NULL;
			guards[i].argument = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void pause_all(bool pause)
{
	for (unsigned i = 0; i < GUARDS_MAX; i++) {
		if (guards[i].pause != NULL)
			guards[i].pause(guards[i].argument, pause);
	}
}

// Takes the place of the C library's for the whole program.
int munmap(void *address, size_t size)
{
	int rc;

	if (rte_thread_is_intr() == 0)
		return (int)syscall(SYS_munmap, address, size);
	pthread_mutex_lock(&lock);
	pause_all(true);
	rc = (int)syscall(SYS_munmap, address, size);
	pause_all(false);
	pthread_mutex_unlock(&lock);
	return rc;
}
