// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/lost_memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_memory.h>

#include "socket/shared_memory.h"

#define LISTENERS_MAX 4

static void (*listeners[LISTENERS_MAX])(const void *address); // atomic: NULL is a free place
static struct sigaction before;

// Of a mapping that only DPDK knows, no more than a page: of the sizes that pages come in, the
// smallest that the mapping can be cut at.
static bool replace_page(void *address)
{
	static const size_t sizes[] = {(size_t)4 << 10, (size_t)2 << 20, (size_t)1 << 30};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *page = (void *)((uintptr_t)address & ~(sizes[i] - 1));

		if (mmap(page, sizes[i], PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == page)
			return true;
		if (errno != EINVAL) // huge pages say so; anything else might hit a neighbour
			break;
	}
	return false;
}

static void report_once(void)
{
	static const char text[] =
		"a peer took back memory that it shared: what was there is zeros, "
		"and vhost-user gives it no packets until it connects anew\n";
	static bool reported; // atomic: there may be thousands of pages

	if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED) &&
		write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	// Only what lies beyond the end of a file; not broken memory, nor our own.
	if (info->si_code == BUS_ADRERR &&
		(cv_shared_memory_replace(info->si_addr) ||
			(rte_mem_virt2memseg_list(info->si_addr) == NULL &&
				replace_page(info->si_addr)))) {
		for (size_t i = 0; i < LISTENERS_MAX; i++) {
			void (*lost)(const void *) =
				__atomic_load_n(&listeners[i], __ATOMIC_ACQUIRE);

			if (lost != NULL)
				lost(info->si_addr);
		}
		report_once();
	} else if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		// Again, as it was before, when this returns: a signal that somebody sent, too.
		sigaction(SIGBUS, &before, NULL);
		raise(SIGBUS);
	}
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, &before);
}

void cv_lost_memory_guard(void (*lost)(const void *address))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_once(&once, install);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; lost != NULL && i < LISTENERS_MAX; i++) {
		if (listeners[i] == lost)
			break;
		if (listeners[i] == NULL) {
			__atomic_store_n(&listeners[i], lost, __ATOMIC_RELEASE);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}
