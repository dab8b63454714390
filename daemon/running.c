// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/running.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; // taken before the other one
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what the node is
static struct cv_node *running;

void cv_running_set(struct cv_node *node)
{
	pthread_mutex_lock(&changing);
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

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CV_RUNNING_PATIENCE_S;
	return pthread_mutex_timedlock(&changing, &until) == 0;
}

void cv_running_end_change(void)
{
	pthread_mutex_unlock(&changing);
}
