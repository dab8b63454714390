// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which queues go where, by what workers are busy with. It starts nothing and knows no node.
#ifndef CV_SCALE_CHOOSE_H
#define CV_SCALE_CHOOSE_H

#include "chain/nf.h"

// A worker in one period.
struct cv_scale_load {
	unsigned percent; // of its time that it was busy
	unsigned queues, moving; // that it polls, and those of them that move
};

// What was seen in the periods before; all zero at the beginning.
struct cv_scale_choice {
	unsigned busy[CV_WORKERS_MAX]; // periods in a row that a worker was
	unsigned calm; // periods in a row that the queues of two workers would fit into one
};

// So many queues of one worker go to another; 0: all stay.
struct cv_scale_order {
	unsigned from, to, queues;
};

// One of a busy worker's queues goes to the one that is least busy of those that have queues and room,
// else to one that sleeps. All of a worker's go where they will not make it busy. Both take some periods,
// the second more.
struct cv_scale_order cv_scale_choose(
	struct cv_scale_choice *choice, const struct cv_scale_load *loads, unsigned workers);

#endif
