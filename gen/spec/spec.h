// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A trial's specification: one JSON object, checked whole before anything is sent.
// docs/tester.md has the reference for users.
#ifndef GEN_SPEC_SPEC_H
#define GEN_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "convoy/outer.h"
#include "gen/spec/range.h"
#include "packet/error.h"

#define GEN_MAX_PATHS 16u
#define GEN_KEPT_MAX 4096 // frames

enum gen_sizes { GEN_SIZE_FIXED, GEN_SIZE_IMIX, GEN_SIZE_FILE };
enum gen_l4 { GEN_UDP = 17, GEN_TCP = 6 };

struct gen_flows {
	uint32_t count;
	bool shuffle; // order of the flows drawn with the seed, rather than 0, 1, 2 …
	bool written_sending; // frames get their flow when they are sent, rather than before
	uint32_t first; // of that order, which the trial begins with
	bool opens; // TCP segments are SYNs
	uint32_t ip; // 4 or 6
	enum gen_l4 protocol;
	uint8_t src_mac[6], dst_mac[6];
	bool tagged;
	// Flow i has value low + i % span of every range.
	struct gen_range vlan, src_ip, dst_ip, src_port, dst_port;
};

struct gen_path {
	uint32_t from, to; // ports
};

struct gen_spec {
	const char *id; // free text of the caller, echoed; NULL: none
	double duration_s, warmup_s, drain_s;
	double rate_pps; // per path, frames per second on average; 0: as fast as possible
	double tolerance; // share of the offered packets that may stay unsent in a good trial
	uint64_t seed;
	bool drop_when_full; // a full send queue refuses the packet, rather than delaying it
	uint32_t ports; // of the tester
	uint32_t path_count;
	struct gen_path paths[GEN_MAX_PATHS];
	uint32_t burst; // packets that share a scheduled time
	uint32_t packets; // per path, after which it ends; 0: when the time is over
	bool answers; // what comes out of a path is answered; a packet is received when its answer is
	struct gen_range
		translated; // sources that a translator may have written; span 0: unchecked
	double on_us, off_us; // pauses when off_us > 0
	enum gen_sizes sizes;
	uint32_t frame_bytes; // GEN_SIZE_FIXED; with FCS
	const char *size_file;
	struct gen_flows flows;
	const char *capture; // file to replay instead of sizes and flows; NULL: none
	bool capture_timing; // at its own times, divided by capture_speed, rather than at rate_pps
	double capture_speed;
	uint32_t capture_loops; // end after so many passes; 0: when the time is over
	uint32_t keep; // received frames of a capture whose bytes are in the result, the first ones
	uint32_t convoy_packets; // the most that are sent in a frame; received convoys are walked
		// from 1 on; 0: nothing is known of convoys
	struct cv_outer_config convoy_outer;
	json_t *json; // as given; owns the strings above
};

// Fills *spec, for a tester with `ports` ports. Returns 0, or -EINVAL with error set.
// gen_spec_free afterwards in both cases.
int gen_spec_parse(
	struct gen_spec *spec, const json_t *json, uint32_t ports, struct cv_error *error);

void gen_spec_free(struct gen_spec *spec);

#endif
