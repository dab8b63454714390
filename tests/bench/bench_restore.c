// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// bench-restore [REPEATS [FLOWS...]]: what it takes to go on with the flows of a process that was killed,
// and to take them over from one that runs, in milliseconds of this thread's processor time, by the number
// of flows. One line of JSON for each number: medians of repeats, with the least and the most.
//
//	memory	of a new zone: the kernel clears it
//	restore	each flow is read, checked and made anew
//	later	of that, before packets flow, where flows come back as packets ask for them
//	take	in a handover, while packets flow: the memory is mapped, no place leads out of it
//	adopt	in a handover, while no packet moves
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "flow/handover.h"
#include "flow/restore.h"
#include "packet/ipv4.h"
#include "packet/view.h"

#define REPEATS_MAX 99
#define FRAME 60

enum { MEMORY, RESTORE, LATER, TAKE, ADOPT, PARTS };

static const char *const names[PARTS] = {"memory", "restore", "later", "take", "adopt"};

static uint8_t allow(void *instance, struct cv_nf_worker *of, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, void *slot)
{
	return CV_NEXT;
}

static const struct cv_nf_flow allows = {.in_slots = true, .decide = allow};
static const struct cv_nf nf = {.name = "allows", .flow = &allows};
static struct cv_nf_worker worker;

static void die(const char *what)
{
	fprintf(stderr, "bench-restore: %s\n", what);
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct zone {
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
};

static struct zone zone_make(uint32_t flows)
{
	static struct cv_nf_counters counted;
	const struct cv_flow_limits limits = {
		.max = flows, .max_ipv6 = 64, .timeouts_s = {[0 ... CV_FLOW_TIMEOUTS - 1] = 3600}};
	const struct cv_flow_member member = {&nf, NULL};
	struct cv_nf_counters *counters = &counted;
	struct cv_error error = {""};
	struct zone it = {cv_flow_zone_create(&member, 1, &limits, rte_get_tsc_hz(), &error), NULL};

	if (it.zone == NULL)
		die(error.text);
	it.group = cv_flow_group_create(it.zone, (const uint8_t[]){0}, &counters);
	return it;
}

// One UDP packet of each flow, of as many hosts.
static void fill(const struct zone *it, uint32_t flows)
{
	static uint8_t frames[CV_BURST_MAX][FRAME];
	struct cv_view views[CV_BURST_MAX];
	uint8_t verdicts[CV_BURST_MAX];

	for (uint32_t i = 0; i < flows; i += CV_BURST_MAX) {
		const unsigned n = RTE_MIN(flows - i, (uint32_t)CV_BURST_MAX);

		for (unsigned k = 0; k < n; k++) {
			uint8_t *frame = frames[k];
			const uint32_t src = rte_cpu_to_be_32(10u << 24 | (i + k));

			memset(frame, 0, FRAME);
			frame[12] = 8;
			frame[14] = 0x45;
			frame[17] = FRAME - 14;
			frame[22] = 64;
			frame[23] = 17;
			memcpy(frame + 26, &src, 4);
			frame[30] = 198;
			frame[35] = 1;
			frame[37] = 2;
			frame[39] = FRAME - 34;
			cv_view_set(&views[k], frame, FRAME);
		}
		worker.now = rte_rdtsc();
		cv_flow_process(it->group, &worker, views, verdicts, (uint16_t)n);
	}
	if (cv_flow_zone_counters(it->zone)->flows_ipv4 != flows)
		die("not all flows are there");
}

// A new process goes on with the flows of one that was killed.
static void restore(const struct zone *before, uint32_t flows, double *ms)
{
	const int fd = cv_flow_zone_store(before->zone);
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};
	double begun = now_ms();
	const struct zone it = zone_make(flows);

	ms[MEMORY] = now_ms() - begun;
	begun = now_ms();
	worker.now = rte_rdtsc();
	if (fd < 0)
		die("this kernel makes no large pages of files (Linux 6.1)");
	if (cv_flow_zone_restore(it.zone, &worker, fd, CV_FLOW_KEPT, &restored, &error) != 0)
		die(error.text);
	ms[RESTORE] = now_ms() - begun;
	if (restored.flows != flows)
		die("flows were lost");
	cv_flow_zone_destroy(it.zone);
}

// The same, but that packets flow at once.
static void restore_later(const struct zone *before, uint32_t flows, double *ms)
{
	const struct zone it = zone_make(flows);
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};
	double begun = now_ms();

	worker.now = rte_rdtsc();
	if (cv_flow_zone_restore_later(
		    it.zone, &worker, cv_flow_zone_store(before->zone), &error) != 0)
		die(error.text);
	ms[LATER] = now_ms() - begun;
	while (!cv_flow_zone_is_restored(it.zone, &restored)) {
		worker.now = rte_rdtsc();
		cv_flow_tick(it.group, &worker);
	}
	if (restored.flows != flows)
		die("flows were lost");
	cv_flow_zone_destroy(it.zone);
}

// And takes them over from one that runs.
static void take(const struct zone *before, uint32_t flows, double *ms)
{
	const struct zone it = zone_make(flows);
	struct cv_error error = {""};
	double begun = now_ms();

	if (cv_flow_zone_take(it.zone, dup(cv_flow_zone_give(before->zone)), &error) != 0)
		die(error.text);
	ms[TAKE] = now_ms() - begun;
	begun = now_ms();
	cv_flow_zone_freeze(before->zone);
	if (cv_flow_zone_taken(it.zone, &error) != 0)
		die(error.text);
	cv_flow_zone_adopt(it.zone);
	ms[ADOPT] = now_ms() - begun;
	cv_flow_zone_destroy(it.zone);
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(uint32_t flows, unsigned repeats)
{
	static double all[PARTS][REPEATS_MAX];
	const struct zone before = zone_make(flows);

	fill(&before, flows);
	for (unsigned i = 0; i < repeats; i++) {
		double ms[PARTS];

		restore(&before, flows, ms);
		restore_later(&before, flows, ms);
		take(&before, flows, ms);
		for (unsigned p = 0; p < PARTS; p++)
			all[p][i] = ms[p];
	}
	cv_flow_zone_destroy(before.zone);
	printf("{\"flows\": %u", flows);
	for (unsigned p = 0; p < PARTS; p++) {
		qsort(all[p], repeats, sizeof(all[p][0]), ascending);
		printf(", \"%s_ms\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", names[p],
			all[p][repeats / 2], all[p][0], all[p][repeats - 1]);
	}
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t usual[] = {65536, 1000000};
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"64", "-l", "0", "--log-level=error", "--file-prefix=bench-restore"};
	const unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 11;

	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		die("DPDK did not start");
	if (repeats < 1 || repeats > REPEATS_MAX)
		die("REPEATS: give 1 to 99");
	if (argc < 3)
		for (unsigned i = 0; i < RTE_DIM(usual); i++)
			measure(usual[i], repeats);
	for (int i = 2; i < argc; i++)
		measure((uint32_t)atoi(argv[i]), repeats);
	return 0;
}
