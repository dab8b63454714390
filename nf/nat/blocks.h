// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The external addresses and ports of one worker. A subscriber, an internal address, gets blocks of
// ports of one external address: paired pooling (RFC 4787 REQ-2), so many blocks at most (RFC 6888
// REQ-4). A block serves all protocols, each of which has all of its ports. When its last port is
// given back the block rests, and then is for anybody (RFC 6888 REQ-8).
//
// Ports are taken in this order: the one that was asked for, one of its parity, any; by chance
// otherwise (RFC 6056). Everything takes bounded time, whatever the number of addresses.
#ifndef CV_NAT_BLOCKS_H
#define CV_NAT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#define CV_NAT_BLOCK_LEAST 64 // ports

// Protocols that have ports of their own. DCCP shares those of TCP, UDP-Lite those of UDP.
enum cv_nat_kind { CV_NAT_TCP, CV_NAT_UDP, CV_NAT_ICMP, CV_NAT_KINDS };

// A block got an owner, or lost it.
struct cv_nat_block_event {
	uint64_t now; // TSC
	rte_be32_t subscriber, address;
	uint16_t first_port, last_port;
	bool taken; // else given back
};

typedef void cv_nat_on_block(void *argument, const struct cv_nat_block_event *event);

struct cv_nat_blocks_config {
	const rte_be32_t *addresses; // copied
	unsigned addresses_count; // at least 1
	uint16_t first_port; // of this worker
	uint16_t blocks_per_address; // at least 1
	uint16_t block_size; // 64 to 4096, a power of two
	uint16_t blocks_per_subscriber;
	uint64_t rest; // TSC cycles
	uint64_t seed; // of chance
	cv_nat_on_block *on_block; // may be NULL
	void *argument;
};

// What is counted: may be read by any thread with cv_nat_counted().
struct cv_nat_blocks_counters {
	uint64_t subscribers, blocks_used, blocks_resting;
};

struct cv_nat_blocks;

struct cv_nat_port {
	rte_be32_t address;
	rte_be16_t port;
	uint32_t block; // for cv_nat_blocks_give()
};

// Bytes of memory that they take, a multiple of 64.
size_t cv_nat_blocks_bytes(const struct cv_nat_blocks_config *config);

// In such memory, of zeros, aligned to 64, which must live as long: it has indices, and no addresses. NULL:
// no memory.
struct cv_nat_blocks *cv_nat_blocks_create(const struct cv_nat_blocks_config *config, void *memory);
void cv_nat_blocks_destroy(struct cv_nat_blocks *blocks);

// Takes a port for a subscriber. Returns 0; -ENOSPC: its external address has no block left, or
// none has; -EDQUOT: it has as many blocks as it may.
int cv_nat_blocks_take(struct cv_nat_blocks *blocks, rte_be32_t subscriber, enum cv_nat_kind kind,
	rte_be16_t wanted, uint64_t now, struct cv_nat_port *port);

// Asks for the memory that taking a port for each of n <= CV_BURST_MAX subscribers will read: for their
// buckets, which are written into at[]; then for what is first in each.
void cv_nat_blocks_expect(const struct cv_nat_blocks *blocks, const rte_be32_t *subscribers,
	unsigned n, uint32_t *at);
void cv_nat_blocks_expect_first(const struct cv_nat_blocks *blocks, uint32_t *at, unsigned n);

// Asks for the memory that giving back a port of a block will read.
void cv_nat_blocks_expect_give(const struct cv_nat_blocks *blocks, uint32_t block);

void cv_nat_blocks_give(struct cv_nat_blocks *blocks, enum cv_nat_kind kind,
	const struct cv_nat_port *port, uint64_t now);

// The external address of a subscriber for protocols without ports; nothing is taken.
rte_be32_t cv_nat_blocks_address(const struct cv_nat_blocks *blocks, rte_be32_t subscriber);

// The memory is to be another process's: what is known beside it goes into it.
void cv_nat_blocks_freeze(struct cv_nat_blocks *blocks);

// The memory is what another process wrote. Whether no place in it leads out of it: also while that one
// writes.
bool cv_nat_blocks_lead_inside(const struct cv_nat_blocks *blocks);

// Whether a port is one of its block.
bool cv_nat_blocks_have(const struct cv_nat_blocks *blocks, const struct cv_nat_port *port);

// They go on with what another process froze. False: that is not whole.
bool cv_nat_blocks_thaw(struct cv_nat_blocks *blocks);

// Ports that subscribers had in a process before, which was killed, are claimed from now on; nothing else is
// taken. Blocks that are given back meanwhile do not rest.
void cv_nat_blocks_restore(struct cv_nat_blocks *blocks);

// Takes such a port, with its block: port->block is set. False: it is none of these, or another's, or the
// subscriber has too many blocks with it.
bool cv_nat_blocks_claim(struct cv_nat_blocks *blocks, rte_be32_t subscriber, enum cv_nat_kind kind,
	struct cv_nat_port *port);

// All were claimed. Blocks that somebody had there, or that rested, and that nobody has here, rest from now
// on. before: the memory of such blocks, in which anything may be.
void cv_nat_blocks_rest(struct cv_nat_blocks *blocks, const void *before, uint64_t now);

const struct cv_nat_blocks_counters *cv_nat_blocks_counters(const struct cv_nat_blocks *blocks);

#endif
