// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/machine/probe.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gen/machine/clock.h"

#define BATCHES 15u
#define TRIPS 8u // of a batch
#define PIECES 15u // of work
#define PIECE 500u // 13 us of work in all, where nobody else is there
// For which either side waits for the other: longer than a scheduler's time slice, and than a
// hypervisor's.
#define PATIENCE_NS 20000000ull
// Above the device's poll loop, which may be SCHED_FIFO at 1.
#define PRIORITY 2
#define LINE 128 // two: processors fetch the neighbour too

// Questions: to wake up; to work, once that is answered; the next is answered when that is done.
enum { WAKE = 1, WORK = 3, WORKED = 5 };

struct gen_probe {
	// 0: nobody asks. Odd numbers are ours, each even one above is the answer.
	_Alignas(LINE) _Atomic uint32_t line;
	_Alignas(LINE) uint64_t work; // ticks; published by the answer after the one to WORK
	sem_t begin;
	_Atomic bool stop;
	pthread_t thread;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

// As much as a core can do at once, so that whoever shares it is felt.
static uint64_t work(void)
{
	uint64_t pieces[PIECES], a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;

	for (uint32_t i = 0; i < PIECES; i++) {
		const uint64_t begin = gen_ticks();

		for (uint32_t j = 0; j < 2 * PIECE; j++) {
			a += 1, b += 3, c ^= 5, d += 7, e += 1, f ^= 3;
			__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
		}
		pieces[i] = gen_ticks() - begin;
	}
	qsort(pieces, PIECES, sizeof(pieces[0]), by_value);
	return pieces[PIECES / 2];
}

// Answers until nobody asks any more, or for as long as anybody has patience.
static void answer(struct gen_probe *probe)
{
	const uint64_t begin = gen_now_ns();
	uint32_t spins = 0;

	for (;;) {
		// Pairs with the release stores in trip() and gen_probe_run().
		const uint32_t seen = atomic_load_explicit(&probe->line, memory_order_acquire);

		if (seen == 0)
			return;
		if (seen & 1) {
			// Pairs with the acquire load in trip().
			atomic_store_explicit(&probe->line, seen + 1, memory_order_release);
			if (seen == WORK)
				probe->work = work();
		} else if (++spins % 1024 == 0 && gen_now_ns() - begin > PATIENCE_NS)
			return;
	}
}

static void *wait_to_begin(void *argument)
{
	const struct sched_param first = {.sched_priority = PRIORITY};
	struct gen_probe *probe = argument;

	// Whoever may not, has to wait for the CPU.
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0)
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);
	for (;;) {
		while (sem_wait(&probe->begin) < 0)
			; // EINTR
		if (atomic_load_explicit(&probe->stop, memory_order_relaxed))
			return NULL;
		answer(probe);
	}
}

struct gen_probe *gen_probe_start(uint32_t core)
{
	struct gen_probe *probe = aligned_alloc(LINE, sizeof(*probe));
	pthread_attr_t attributes;
	sigset_t all, before;
	cpu_set_t only;

	if (probe == NULL)
		return NULL;
	atomic_init(&probe->line, 0);
	atomic_init(&probe->stop, false);
	sem_init(&probe->begin, 0, 0);
	CPU_ZERO(&only);
	CPU_SET(core, &only);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(only), &only);
	// Signals are the main thread's.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&probe->thread, &attributes, wait_to_begin, probe);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (error == 0)
		return probe;
	sem_destroy(&probe->begin);
	free(probe);
	errno = error;
	return NULL;
}

// One round trip, or false where nobody answers by `end` (ns).
static bool trip(struct gen_probe *probe, uint32_t question, uint64_t end)
{
	uint32_t spins = 0;

	// Pairs with the acquire load in answer().
	atomic_store_explicit(&probe->line, question, memory_order_release);
	// Pairs with the release store in answer().
	while (atomic_load_explicit(&probe->line, memory_order_acquire) != question + 1)
		if (++spins % 1024 == 0 && gen_now_ns() > end)
			return false;
	return true;
}

struct gen_probe_result gen_probe_run(struct gen_probe *probe, uint64_t *took)
{
	const uint64_t end = gen_now_ns() + PATIENCE_NS;
	uint64_t batches[BATCHES], there = gen_ticks();
	struct gen_probe_result result = {0};
	uint32_t question = WORKED;

	sem_post(&probe->begin);
	bool answered = trip(probe, WAKE, end);
	if (answered)
		there = gen_ticks();
	answered = answered && trip(probe, WORK, end);
	if (answered)
		result.our_work = work();
	answered = answered && trip(probe, WORKED, end);
	for (uint32_t i = 0; answered && i < BATCHES; i++) {
		const uint64_t begin = gen_ticks();

		for (uint32_t j = 0; answered && j < TRIPS; j++)
			answered = trip(probe, question += 2, end);
		batches[i] = gen_ticks() - begin;
	}
	if (answered)
		result.device_work = probe->work;
	// Pairs with the acquire load in answer().
	atomic_store_explicit(&probe->line, 0, memory_order_release);
	*took += gen_ticks() - there;
	if (!answered)
		return (struct gen_probe_result){0};
	qsort(batches, BATCHES, sizeof(batches[0]), by_value);
	result.round_trip = batches[BATCHES / 2] / TRIPS;
	return result;
}

void gen_probe_stop(struct gen_probe *probe)
{
	if (probe == NULL)
		return;
	atomic_store_explicit(&probe->stop, true, memory_order_relaxed);
	sem_post(&probe->begin);
	pthread_join(probe->thread, NULL);
	sem_destroy(&probe->begin);
	free(probe);
}
