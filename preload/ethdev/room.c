// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/room.h"

#include <stdio.h>

#include "preload/ethdev/group.h"

void cv_room_used(struct cv_room *room, const struct rte_mbuf *mbuf)
{
	if (atomic_load_explicit(&room->needed, memory_order_relaxed) ||
		!cv_group_pool_has(mbuf->pool))
		return;
	if (!atomic_exchange(&room->needed, true))
		fputs("convoy: ethdev: the program puts headers in front of packets, for which "
		      "views have no room: from now on they are copied, as with --mode copy\n",
			stderr);
}
