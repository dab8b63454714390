// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// One trial: send what the specification says, receive, keep the books.

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "account.h"
#include "clock.h"
#include "convoys.h"
#include "pace.h"
#include "pool.h"
#include "spec.h"
#include "wire.h"

// What one send queue of a path carries. All times are ticks since the trial began.
struct gen_stream {
	uint32_t from, to, queue;
	struct gen_wire *wire;
	struct gen_pool pool;
	struct gen_pace pace; // of sending
	struct gen_pace ahead; // convoys: of sending, when the last packet of the next one is due
	bool is_ahead; // it is valid
	struct gen_pace arrivals; // on_full drop: of becoming due
	uint64_t backlog, debt; // due and not sent; how much of it may wait
	uint64_t *gaps; // replay: the pool's, in 48.16 ticks
	struct gen_account *account;
	uint32_t next_frame; // of the pool: frame, or convoy where there are some
	uint32_t seq; // next; all below were sent
	uint32_t limit; // of seq
	uint64_t offered; // scheduled
	uint64_t sent, sent_bytes;
	uint64_t refused; // scheduled, but the send queue was full (on_full: drop)
	struct cv_histogram *refused_bursts; // lengths of runs of refused packets
	uint64_t full_events; // times the send queue had no room for a packet that was due
	uint64_t late_max; // longest delay from schedule to send queue
	uint64_t first_tx, last_tx; // scheduled time of the first, sending time of the last
	bool done;
};

struct gen_trial {
	uint32_t stream_count;
	struct gen_stream *streams;
	uint16_t magic; // of stream 0; the others count on
	uint64_t start; // absolute ticks
	uint64_t send_end, end; // when the last stream was done, and the last receive poll
	uint64_t loops, busy_ticks;
	uint64_t gap_max; // longest time between two turns of the loop
	uint64_t gaps, gap_ticks; // turns longer than 10 us
	uint64_t descheduled_ns; // ready to run, but not running (schedstat); UINT64_MAX: unknown
	uint64_t foreign; // no stamp of this trial
	uint64_t earlier; // stamps of earlier trials
	uint64_t ring_errors, kicks;
	struct gen_convoy_counts convoys;
	bool ok;
	char reason_code[24]; // "" when ok
	char reason[256];
};

struct gen_tester {
	uint32_t port_count;
	struct gen_port *ports[GEN_MAX_PORTS];
	struct gen_clock clock;
	uint16_t next_magic;
	volatile sig_atomic_t stop; // a signal asks for the end
};

// Runs one trial (no warm-up) on attached ports. Returns 0 with *trial filled — trial->ok says
// whether it is a result — or -1 with a message: the specification does not fit, nothing was
// sent. gen_trial_free afterwards in both cases.
int gen_trial_run(struct gen_tester *tester, const struct gen_spec *spec, double duration_s,
	struct gen_trial *trial, char *error, size_t error_size);

void gen_trial_free(struct gen_trial *trial);
