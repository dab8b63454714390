// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/headroom_probe.h"

#include <stdio.h>

#include "preload/ethdev/mbuf_set.h"

void cv_headroom_used(struct cv_headroom *headroom, const struct rte_mbuf *mbuf)
{
	if (atomic_load_explicit(&headroom->needed, memory_order_relaxed) ||
		!cv_mbuf_set_pool_has(mbuf->pool))
		return;
	if (!atomic_exchange(&headroom->needed, true))
		fputs("convoy: ethdev: the program puts headers in front of packets, for which "
		      "views have no room: from now on they are copied, as with --mode copy\n",
			stderr);
}
