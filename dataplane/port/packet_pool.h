// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The buffers that packets are received into.
#ifndef CV_PACKET_POOL_H
#define CV_PACKET_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mempool.h>

#include "packet/error.h"

// Makes a pool of n buffers of room bytes each, headroom included, of which every lcore keeps up to
// cache. shares: somebody else reads packets where they lie (a port's needs.shared_packets), so they lie
// in DPDK's memory. Otherwise, without hugepages, they lie in memory of this process alone, which
// the kernel backs with large pages on request (transparent hugepages), as it does not DPDK's: that
// is a file. Where it has none to give, small ones do. Returns NULL with rte_errno set.
struct rte_mempool *cv_packet_pool_create(
	const char *name, unsigned n, unsigned cache, uint16_t room, bool shares);

// Do frames with that much layer 3 and two VLAN tags fit into its buffers? Sets error if not.
bool cv_packet_pool_fits(struct rte_mempool *pool, uint16_t mtu, struct cv_error *error);

#endif
