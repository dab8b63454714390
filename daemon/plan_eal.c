// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_eal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "chain/worker.h"
#include "port/eal.h"
#include "port/port.h"

// "0@(0,1),1@1": the main lcore anywhere, worker i on lcore i + 1 and its core.
static void lcores(const struct cv_plan *plan, bool check, char *text, size_t size)
{
	size_t end = snprintf(text, size, "0@(");
	cpu_set_t allowed;
	bool first = true;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && end < size; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		end += snprintf(text + end, size - end, "%s%d", first ? "" : ",", cpu);
		first = false;
	}
	end += snprintf(text + end, size - end, ")");
	for (unsigned i = 0; !check && i < plan->workers_count && end < size; i++)
		end += snprintf(text + end, size - end, ",%u@%u", i + 1, plan->workers[i].core);
}

// What one of the ports needs.
static void add_needs(const struct cv_plan *plan, struct cv_eal *eal)
{
	for (unsigned i = 0; i < plan->ports_count; i++) {
		eal->pci |= plan->ports[i]->needs.pci;
		eal->drivers |= plan->ports[i]->needs.drivers;
	}
}

int cv_plan_eal_start(
	const struct cv_plan *plan, bool check, const char *log_level, struct cv_error *error)
{
	char cores[8192];
	struct cv_eal eal = {
		.program = "convoyd",
		.lcores = cores,
		.log_level = log_level,
		.memory_mb = plan->memory_mb,
		.hugepages = plan->hugepages && !check,
		.telemetry = !check,
	};

	// A moment is what was asked for, not as much and 50 microseconds: for threads that are made now.
	for (unsigned i = 0; i < plan->workers_count; i++)
		if (plan->workers[i].idle == CV_WORKER_SLEEP)
			prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	lcores(plan, check, cores, sizeof(cores));
	add_needs(plan, &eal);
	if (cv_eal_start(&eal, error) != 0)
		return -EIO;
	if (check || cv_eal_share_sockets(&plan->telemetry, &plan->control, error) == 0)
		return 0;
	cv_eal_stop();
	return -EIO;
}
