// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/running.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; // taken before the other one
static struct cv_node *running;
static unsigned waiting; // for that

// Who has what the node is: one after the other, as they came. A mutex is had again by whoever gave it back and
// asks at once, as the main thread does while queues move, before who waits is awake.
static struct {
	pthread_mutex_t lock; // of the rest, for moments
	pthread_cond_t next; // serving has grown
	uint64_t taken, serving; // numbers
} turn = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = PTHREAD_COND_INITIALIZER};

static void take_turn(void)
{
	uint64_t number;

	pthread_mutex_lock(&turn.lock);
	number = turn.taken++;
	while (turn.serving != number)
		pthread_cond_wait(&turn.next, &turn.lock);
	pthread_mutex_unlock(&turn.lock);
}

static void give_turn(void)
{
	pthread_mutex_lock(&turn.lock);
	turn.serving++;
	pthread_cond_broadcast(&turn.next);
	pthread_mutex_unlock(&turn.lock);
}

void cv_running_set(struct cv_node *node)
{
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&changing);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	take_turn();
	running = node;
	give_turn();
	pthread_mutex_unlock(&changing);
}

struct cv_node *cv_running_take(void)
{
	struct cv_node *node;

	take_turn();
	node = running;
	if (node == NULL)
		give_turn();
	return node;
}

void cv_running_give(void)
{
	give_turn();
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
