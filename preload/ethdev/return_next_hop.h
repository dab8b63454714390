// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Back to where a convoy came from: its outer header with the addresses swapped is the next hop of its
// packets, as long as they leave by the port that it came by.
//
// Each receive queue learns in a table of its own, so that one thread writes it. Anybody may send any
// number of headers: a new one takes the place of the one that was longest not seen. Whoever sends
// reads a table that may change meanwhile: a packet carries the name of what was learned from its
// convoy, and a name that is not there any more is no next hop.
#ifndef CV_ETHDEV_RETURN_NEXT_HOP_H
#define CV_ETHDEV_RETURN_NEXT_HOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "convoy/outer.h"
#include "convoy/walk.h"
#include "preload/ethdev/config.h"

#define CV_RETURN_NEXT_HOPS 64 // of a receive queue
#define CV_RETURN_KEY (CV_OUTER_MAX + 2)

// The name of a return next hop; all 0: there is none.
struct cv_return_name {
	uint32_t id; // its place in the table, and how many were learned before it
	uint16_t queue; // receive queue
	uint16_t port;
};

struct cv_return_next_hop {
	_Atomic uint32_t id; // 0: nobody may use it
	uint32_t seen; // when another was last used before it, by the table's count
	struct cv_outer outer; // of what is sent there
	// The header that was received, but for what differs from frame to frame: lengths,
	// checksums, source port and number of packets are 0. Its length first.
	uint8_t key[CV_RETURN_KEY];
};

struct cv_return_next_hops {
	uint32_t now; // counts changes from one sender to another
	uint32_t learned; // so often
	uint32_t last; // place of the one before
	struct cv_return_next_hop entries[CV_RETURN_NEXT_HOPS];
};

// The return next hop of a convoy just walked: its id, 0 if it has none, because it was not sent to
// this port. mac: the port's; all 0: it has none, and any unicast address is.
uint32_t cv_return_next_hop_learn(struct cv_return_next_hops *next_hops, const uint8_t mac[6],
	const struct cv_ethdev_config *config, const struct cv_convoy *convoy);

// Copies the outer header of one. False: it is not there any more. By any thread.
bool cv_return_next_hop_read(
	const struct cv_return_next_hops *next_hops, uint32_t id, struct cv_outer *outer);

// Packets that were copied out of their convoy bear the name in their mbuf. To be called once the EAL
// runs; false: there is no room in mbufs for it, and copies bear none.
bool cv_return_name_register(void);

extern int cv_return_name_at; // offset in an mbuf; < 0: not registered
extern uint64_t
	cv_return_name_flag; // drivers and allocation clear it, so that no name is left over

static CV_INLINE void cv_return_name_set(struct rte_mbuf *mbuf, struct cv_return_name name)
{
	if (CV_UNLIKELY(cv_return_name_at < 0))
		return;
	*RTE_MBUF_DYNFIELD(mbuf, cv_return_name_at, struct cv_return_name *) = name;
	mbuf->ol_flags |= cv_return_name_flag;
}

static CV_INLINE struct cv_return_name cv_return_name_get(const struct rte_mbuf *mbuf)
{
	if (CV_LIKELY((mbuf->ol_flags & cv_return_name_flag) == 0))
		return (struct cv_return_name){0};
	return *RTE_MBUF_DYNFIELD(mbuf, cv_return_name_at, const struct cv_return_name *);
}

static CV_INLINE bool cv_return_name_same(struct cv_return_name a, struct cv_return_name b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

#endif
