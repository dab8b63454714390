// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packet accounting of one stream: what came back, from the sequence numbers in the stamps.
//
// Sequence numbers below `next` were received, or are marked missing in a window of the last
// GEN_ACCOUNT_WINDOW numbers. A number that leaves the window while missing is lost for good.
#ifndef GEN_TRIAL_ACCOUNT_H
#define GEN_TRIAL_ACCOUNT_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"
#include "stats/histogram.h"

#define GEN_ACCOUNT_WINDOW (1u << 20)

struct gen_account {
	uint32_t next; // highest received + 1
	uint32_t missing; // marked in the window
	uint64_t received;
	uint64_t received_bytes; // without FCS
	uint64_t duplicated; // copies beyond the first
	uint64_t reordered; // RFC 4737: after a later packet of the same flow
	uint64_t stale; // so late that they were already counted as lost
	uint64_t misrouted; // came back at a port that is not the stream's
	uint64_t corrupt; // our magic, but a stamp that was never sent
	uint64_t lost; // final
	uint64_t run; // length of the current loss period (RFC 3357)
	uint32_t run_next; // number that would continue the run
	uint64_t first_rx, last_rx; // ticks
	uint64_t last_latency; // ticks
	uint64_t jitter_sum; // of |latency - latency before|, ticks
	struct cv_histogram *latency; // ns, from the scheduled time
	struct cv_histogram *bursts; // lengths of runs of consecutive losses
	// Flow of a packet: flow_of[seq % period], or seq % period itself where NULL.
	const uint32_t *flow_of;
	uint32_t period;
	uint64_t bits[GEN_ACCOUNT_WINDOW / 64];
};

// flow_of (may be NULL) is borrowed. NULL when out of memory.
struct gen_account *gen_account_create(const uint32_t *flow_of, uint32_t period);
void gen_account_destroy(struct gen_account *account);

// A packet that is not the next in line. False as below.
bool gen_account_gap(struct gen_account *account, uint32_t seq);

// Every number below `end` has been offered and no more will come: what is missing is lost.
void gen_account_close(struct gen_account *account, uint32_t end);

// One packet of the stream with a good stamp. False: it is not received, but a copy or stale.
static inline bool gen_account_seq(struct gen_account *account, uint32_t seq)
{
	if (CV_LIKELY(seq == account->next && account->missing == 0)) {
		account->next = seq + 1;
		account->received++;
		return true;
	}
	return gen_account_gap(account, seq);
}

#endif
