// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/truncated.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <rte_vhost.h>

#include "preload/vhost/receive.h"
#include "socket/bus_error.h"

static bool replace(void *address)
{
	// Of a mapping that rte_vhost's thread has just made, and touches before we know of it: a page.
	if (!cv_shared_memory_replace(address) &&
		(!cv_receive_is_server() || !cv_bus_error_replace_page(address)))
		return false;
	cv_bus_error_report_once("convoy: vhost: a guest took back memory that it shared: it "
				 "stands still until it connects anew\n");
	return true;
}

static void install(void)
{
	cv_bus_error_handle(replace);
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
