// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/lost_memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <rte_memory.h>

#include "socket/bus_error.h"
#include "socket/shared_memory.h"

#define LISTENERS_MAX 4

static void (*listeners[LISTENERS_MAX])(const void *address); // atomic: NULL is a free place

static bool replace(void *address)
{
	// Of a mapping that only DPDK's vhost or memif knows, no more than a page; not DPDK's own memory.
	if (!cv_shared_memory_replace(address) &&
		(rte_mem_virt2memseg_list(address) != NULL || !cv_bus_error_replace_page(address)))
		return false;
	for (size_t i = 0; i < LISTENERS_MAX; i++) {
		void (*lost)(const void *) = __atomic_load_n(&listeners[i], __ATOMIC_ACQUIRE);

		if (lost != NULL)
			lost(address);
	}
	cv_bus_error_report_once("a peer took back memory that it shared: what was there is zeros, "
				 "and vhost-user gives it no packets until it connects anew\n");
	return true;
}

static void install(void)
{
	cv_bus_error_handle(replace);
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
