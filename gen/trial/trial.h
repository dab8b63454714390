// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One trial: send what the specification says, receive, account for every packet.
#ifndef GEN_TRIAL_TRIAL_H
#define GEN_TRIAL_TRIAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "gen/machine/clock.h"
#include "gen/machine/probe.h"
#include "gen/spec/spec.h"
#include "gen/traffic/convoys.h"
#include "gen/traffic/wire.h"
#include "gen/trial/kept.h"
#include "gen/trial/stream.h"

// Packets whose addresses, ports or checksums are not what a translator should have made of them.
struct gen_translated {
	uint64_t checked, source, destination, checksum, length;
};

struct gen_trial {
	uint32_t stream_count;
	struct gen_stream *streams;
	uint16_t magic; // of stream 0; the others count on
	uint64_t start; // absolute ticks
	uint64_t send_end, end; // when the last stream was done, and the last receive poll
	uint64_t duration; // of sending; at a rate with the pause after the last packet
	uint64_t loops, busy_ticks;
	uint64_t gap_max; // longest time between two iterations
	uint64_t gaps, gap_ticks; // iterations longer than 10 us
	bool sees_full; // every queue that is received from; the next is known
	uint64_t full_ticks; // iterations that found a receive queue full
	uint64_t descheduled_ns; // ready to run, but not running (schedstat); UINT64_MAX: unknown
	struct gen_probe_result before, after;
	uint64_t probe_ticks; // for which the device may have been kept from its work for that
	uint64_t foreign; // no stamp of this trial
	uint64_t earlier; // stamps of earlier trials
	uint64_t settled; // frames that came before it began, and were thrown away
	uint64_t ring_errors, kicks;
	struct gen_convoy_counts convoys;
	uint64_t answered, unanswered; // packets; unanswered: no room, or not whole
	struct gen_translated translated;
	struct gen_kept *kept; // NULL: the bytes of no frame
	bool ok;
	char reason_code[24]; // "" when ok
	char reason[256];
};

struct gen_tester {
	uint32_t port_count;
	struct gen_port *ports[GEN_MAX_PORTS];
	struct gen_clock clock;
	struct gen_probe *probe; // NULL: nobody said where the device is
	uint16_t next_magic;
	volatile sig_atomic_t stop; // a signal asks for the end
};

// Runs one trial (no warm-up) on attached ports. Returns 0 with *trial filled — trial->ok says
// whether it is a result — or a negative errno with error set: the specification does not fit,
// nothing was sent. gen_trial_free afterwards in both cases.
int gen_trial_run(struct gen_tester *tester, const struct gen_spec *spec, double duration_s,
	struct gen_trial *trial, struct cv_error *error);

void gen_trial_free(struct gen_trial *trial);

#endif
