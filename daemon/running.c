// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/running.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

// Who changes the node has this before a turn.
static struct {
	pthread_mutex_t lock; // of the rest, for moments
	pthread_cond_t ended;
	bool going_on;
	unsigned waiting;
} change = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static struct cv_node *running;

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

// until: CLOCK_MONOTONIC, which nobody sets; NULL: whenever it is.
static bool begin_change(const struct timespec *until)
{
	bool begun;
	int rc = 0;

	pthread_mutex_lock(&change.lock);
	change.waiting++;
	while (change.going_on && rc == 0)
		rc = until == NULL ? pthread_cond_wait(&change.ended, &change.lock)
				   : pthread_cond_clockwait(
					     &change.ended, &change.lock, CLOCK_MONOTONIC, until);
	change.waiting--;
	begun = !change.going_on;
	change.going_on = true;
	pthread_mutex_unlock(&change.lock);
	return begun;
}

void cv_running_set(struct cv_node *node)
{
	begin_change(NULL);
	take_turn();
	running = node;
	give_turn();
	cv_running_end_change();
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

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CV_RUNNING_PATIENCE_S;
	return begin_change(&until);
}

bool cv_running_try_change(void)
{
	bool begun;

	pthread_mutex_lock(&change.lock);
	begun = !change.going_on && change.waiting == 0;
	change.going_on |= begun;
	pthread_mutex_unlock(&change.lock);
	return begun;
}

void cv_running_end_change(void)
{
	pthread_mutex_lock(&change.lock);
	change.going_on = false;
	pthread_cond_signal(&change.ended);
	pthread_mutex_unlock(&change.lock);
}
