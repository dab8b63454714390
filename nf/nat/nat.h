// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An instance of nat: nat.c makes it, translate.c uses it.
#ifndef CV_NAT_NAT_H
#define CV_NAT_NAT_H

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>

#include <rte_spinlock.h>

#include "flow/flow.h"
#include "flow/memory.h"
#include "nf/nat/block_log.h"
#include "nf/nat/blocks.h"
#include "nf/nat/config.h"
#include "nf/nat/mappings.h"

enum cv_nat_drop {
	CV_NAT_NO_MAPPING,
	CV_NAT_FILTERED,
	CV_NAT_NO_PORT,
	CV_NAT_SUBSCRIBER_LIMIT,
	CV_NAT_MAPPINGS_FULL,
	CV_NAT_NOT_EXTERNAL,
	CV_NAT_HAIRPIN,
	CV_NAT_UNSUPPORTED,
	CV_NAT_UNRELATED_ERROR,
	CV_NAT_BAD_HEADER,
};

// What is kept of a flow, to give it back, and to say it again.
struct cv_nat_slot {
	uint32_t source; // its mapping's number + 1, or 0: none; or the address that replaces it
	uint32_t destination : 28; // its mapping's number + 1, or 0
	uint32_t is_address : 1; // what source is
	uint32_t is_hairpin : 1;
	uint32_t from_forward : 1; // source: stands for the external end of a forward
	uint32_t to_forward : 1; // destination: stands for the internal end of a forward
};

static_assert(sizeof(struct cv_nat_slot) == 8, "what is kept of flows is limited");

struct cv_nat_state;

// What one worker has. Another touches its ports and mappings for hairpins between their subscribers
// alone, under the lock, which nobody takes where one worker has all flows.
struct cv_nat_worker {
	const struct cv_nat *nat; // that it runs; set by who is called with it; its own
	struct cv_nat_state *state;
	unsigned index;
	uint32_t first; // its mappings' numbers are counted from here, among those of all
	rte_spinlock_t lock;
	size_t at; // in the state's memory: mappings, and blocks behind them
	struct cv_nat_blocks *blocks;
	struct cv_nat_mappings *mappings;
};

// What an instance shares with the one that takes its place.
struct cv_nat_state {
	unsigned owners; // instances
	rte_be32_t *pool; // ascending
	unsigned pool_count;
	struct cv_nat_config config; // numbers only
	char *block_log; // its path, or NULL
	struct cv_nat_block_log *log; // or NULL
	bool shared; // several workers run it
	struct cv_flow_memory memory; // of all of them
	struct cv_flow_memory before; // of a process that was killed, while its flows are restored
	uint32_t mappings_each; // that a worker has room for
	uint32_t mappings_all; // numbers of mappings
	// Which worker has a block of ports, the same of each address of the pool.
	uint16_t first_port, block_shift;
	unsigned blocks_count;
	uint8_t block_owner[UINT16_MAX / CV_NAT_BLOCK_LEAST + 1];
	unsigned workers_count; // of the node; those that do not run it have nothing
	struct cv_nat_worker workers[];
};

struct cv_nat {
	struct cv_nat_lists lists;
	rte_be32_t *external; // addresses of the pool and of forwards, ascending
	unsigned external_count;
	// The first of them in host order, how far behind it the last one is, and whether all between are
	// among them: a pool is one prefix nearly always, and few packets go to an address near it.
	uint32_t external_first, external_reach;
	bool external_dense;
	bool per_remote; // mappings
	bool hairpinning;
	bool shares_address;
	enum cv_nat_filtering filtering;
	struct cv_nat_mappings *forwards; // never changes; NULL: there are none
	void *forwards_memory;
	rte_be32_t *targets; // addresses that they lead to, ascending
	struct cv_nat_state *state;
};

extern const struct cv_nf_flow cv_nat_flow;

static inline void cv_nat_lock(struct cv_nat_worker *worker)
{
	if (worker->state->shared)
		rte_spinlock_lock(&worker->lock);
}

static inline void cv_nat_unlock(struct cv_nat_worker *worker)
{
	if (worker->state->shared)
		rte_spinlock_unlock(&worker->lock);
}

// translate.c

bool cv_nat_is_among_external(const struct cv_nat *nat, rte_be32_t address); // of a pool with gaps

// Whether an address is between the first and the last one: among them, where they are dense.
static inline bool cv_nat_may_be_external(const struct cv_nat *nat, rte_be32_t address)
{
	return rte_be_to_cpu_32(address) - nat->external_first <= nat->external_reach;
}

static inline bool cv_nat_is_external(const struct cv_nat *nat, rte_be32_t address)
{
	return cv_nat_may_be_external(nat, address) &&
	       (nat->external_dense || cv_nat_is_among_external(nat, address));
}

static inline bool cv_nat_is_inside(const struct cv_nat *nat, rte_be32_t address)
{
	const uint32_t host = rte_be_to_cpu_32(address);

	for (unsigned i = 0; i < nat->lists.inside_count; i++)
		if (nat->lists.inside[i].first <= host && host <= nat->lists.inside[i].last)
			return true;
	return false;
}

// The ports that a protocol shares (enum cv_nat_kind); -1: it has none that may be changed.
static inline int cv_nat_kind_of(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
	case IPPROTO_DCCP:
		return CV_NAT_TCP;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return CV_NAT_UDP;
	case IPPROTO_ICMP:
		return CV_NAT_ICMP;
	default:
		return -1;
	}
}

// Whether what a flow keeps leads to a mapping.
bool cv_nat_slot_leads_inside(const void *instance, const void *slot);

// Makes of a flow's tuple what the slot says. False: it is not what it was.
bool cv_nat_repeat(const struct cv_nat_worker *own, struct cv_flow_tuple *tuple,
	const struct cv_nat_slot *slot);

// Whether a flow has the mapping of its source, and that of its destination, by their numbers.
static inline bool cv_nat_has_source(const struct cv_nat_slot *slot)
{
	return slot->source != 0 && !slot->is_address && !slot->from_forward;
}

static inline bool cv_nat_has_destination(const struct cv_nat_slot *slot)
{
	return slot->destination != 0 && !slot->to_forward;
}

// restore.c: of struct cv_flow_kept.
int cv_nat_restore_begin(void *instance, int fd, struct cv_error *error);
bool cv_nat_restore(
	void *instance, struct cv_nf_worker *worker, struct cv_flow_tuple *tuple, void *slot);
void cv_nat_restore_end(void *instance, struct cv_nf_worker *worker);

// handover.c

// The next worker that runs it, from one on; NULL: none.
struct cv_nat_worker *cv_nat_next_worker(struct cv_nat_state *state, unsigned *from);

extern const struct cv_flow_kept cv_nat_kept;

// home.c

// Once the lists are there. 0 or -ENOMEM.
int cv_nat_home_init(struct cv_nat *nat);

// The worker that has an external port of the pool, or CV_FLOW_HOME_BY_TUPLE: nobody.
static inline uint8_t cv_nat_owner(const struct cv_nat_state *state, rte_be16_t port)
{
	const unsigned at = rte_be_to_cpu_16(port) - (unsigned)state->first_port;

	if (at >= state->blocks_count << state->block_shift) // below the first, too
		return CV_FLOW_HOME_BY_TUPLE;
	return state->block_owner[at >> state->block_shift];
}

// struct cv_nf_flow's home().
uint8_t cv_nat_home(const void *instance, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple, uint8_t in);

#endif
