// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/scale_choose.h"

#include <string.h>

// Percent of a worker's time. A worker that took what another one could not do is far from either end:
// two at half of BUSY stay two, and a worker that got the queues of two has as much again as room.
#define BUSY 80
#define ROOM 40 // has at most so much who takes another queue
#define CALM 40 // two together have at most so much, and become one
// Periods in a row. What is too much now is lost; what is too little costs a while.
#define BUSY_PERIODS 2
#define CALM_PERIODS 20

static const struct cv_scale_order stay;

// The least busy worker with queues, or without; but for one. -1: there is none.
static int least(const struct cv_scale_load *loads, unsigned workers, bool awake, int but)
{
	int worker = -1;

	for (unsigned i = 0; i < workers; i++)
		if ((int)i != but && (loads[i].queues > 0) == awake &&
			(worker < 0 || loads[i].percent < loads[worker].percent))
			worker = (int)i;
	return worker;
}

static struct cv_scale_order relieve(
	const struct cv_scale_load *loads, unsigned workers, unsigned from)
{
	int to = least(loads, workers, true, (int)from);

	if (to < 0 || loads[to].percent > ROOM)
		to = least(loads, workers, false, (int)from);
	return to < 0 ? stay
		      : (struct cv_scale_order){.from = from, .to = (unsigned)to, .queues = 1};
}

// Two that can be one.
static struct cv_scale_order join_two(const struct cv_scale_load *loads, unsigned workers)
{
	int from = -1, to;

	for (unsigned i = 0; i < workers; i++)
		if (loads[i].queues > 0 && loads[i].queues == loads[i].moving &&
			(from < 0 || loads[i].percent < loads[from].percent))
			from = (int)i;
	to = from < 0 ? -1 : least(loads, workers, true, from);
	if (to < 0 || loads[from].percent + loads[to].percent > CALM)
		return stay;
	return (struct cv_scale_order){
		.from = (unsigned)from, .to = (unsigned)to, .queues = loads[from].queues};
}

struct cv_scale_order cv_scale_choose(
	struct cv_scale_choice *choice, const struct cv_scale_load *loads, unsigned workers)
{
	struct cv_scale_order order = stay;

	for (unsigned i = 0; i < workers; i++) {
		const bool busy =
			loads[i].percent >= BUSY && loads[i].moving > 0 && loads[i].queues > 1;

		choice->busy[i] = busy ? choice->busy[i] + 1 : 0;
		if (choice->busy[i] >= BUSY_PERIODS && order.queues == 0)
			order = relieve(loads, workers, i);
	}
	if (order.queues == 0) {
		order = join_two(loads, workers);
		choice->calm = order.queues > 0 ? choice->calm + 1 : 0;
		if (choice->calm < CALM_PERIODS)
			return stay;
	}
	memset(choice, 0, sizeof(*choice));
	return order;
}
