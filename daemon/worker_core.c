// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/worker_core.h"

void cv_worker_core_borrow(struct cv_worker_core *core, const struct cv_node *node)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(node->plan->workers[0].core, &one);
	core->borrowed = sched_getaffinity(0, sizeof(core->before), &core->before) == 0 &&
			 sched_setaffinity(0, sizeof(one), &one) == 0;
}

void cv_worker_core_return(struct cv_worker_core *core)
{
	if (core->borrowed)
		sched_setaffinity(0, sizeof(core->before), &core->before);
	core->borrowed = false;
}
