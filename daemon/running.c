// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/running.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; // taken before the other one
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what the node is
static struct cv_node *running;
static unsigned waiting; // for the first one

void cv_running_set(struct cv_node *node)
{
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&changing);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	running = node;
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&changing);
}

struct cv_node *cv_running_take(void)
{
	struct cv_node *node;

	pthread_mutex_lock(&lock);
	node = running;
	if (node == NULL)
		pthread_mutex_unlock(&lock);
	return node;
}

void cv_running_give(void)
{
	pthread_mutex_unlock(&lock);
}

bool cv_running_begin_change(void)
{
	struct timespec until;
	bool begun;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CV_RUNNING_PATIENCE_S;
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	begun = pthread_mutex_timedlock(&changing, &until) == 0;
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	return begun;
}

bool cv_running_try_change(void)
{
	return __atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0 &&
	       pthread_mutex_trylock(&changing) == 0;
}

void cv_running_end_change(void)
{
	pthread_mutex_unlock(&changing);
}
