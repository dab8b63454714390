// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/truncated.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_vhost.h>

#include "preload/vhost/receive.h"

static struct sigaction before;

// Of a mapping that rte_vhost's thread has just made, and touches before we know of it: one page, of
// the smallest size at which it can be cut.
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
	static const char text[] = "convoy: vhost: a guest took back memory that it shared: it "
				   "stands still until it connects anew\n";
	static bool reported; // atomic

	if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED) &&
		write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	// Only what lies beyond the end of a file; not broken memory.
	if (info->si_code == BUS_ADRERR &&
		(cv_shared_memory_replace(info->si_addr) ||
			(cv_receive_is_server() && replace_page(info->si_addr)))) {
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
	struct sigaction action = {
		.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigaction(SIGBUS, &action, &before);
}

int cv_truncated_guard(struct cv_truncated *guest, int vid)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rte_vhost_memory *table = NULL;

	pthread_once(&once, install);
	cv_truncated_forget(guest);
	if (rte_vhost_get_mem_table(vid, &table) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < table->nregions && i < CV_GUEST_REGIONS_MAX; i++)
		guest->mappings[guest->count++] = cv_shared_memory_enlist(
			table->regions[i].mmap_addr, table->regions[i].mmap_size);
	free(table);
	return 0;
}

void cv_truncated_forget(struct cv_truncated *guest)
{
	while (guest->count > 0)
		cv_shared_memory_delist(guest->mappings[--guest->count]);
}
