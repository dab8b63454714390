// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/bus_error.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool (*replace)(void *address);
static struct sigaction before;

bool cv_bus_error_replace_page(void *address)
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

void cv_bus_error_report_once(const char *line)
{
	static bool reported; // atomic

	if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED) &&
		write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	// Only what lies beyond the end of a file; not broken memory.
	if (info->si_code == BUS_ADRERR && replace(info->si_addr))
		return;
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		// Again, as it was before, when this returns: a signal that somebody sent, too.
		sigaction(SIGBUS, &before, NULL);
		raise(SIGBUS);
	}
}

void cv_bus_error_handle(bool (*by)(void *address))
{
	struct sigaction action = {
		.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	replace = by;
	sigaction(SIGBUS, &action, &before);
}
