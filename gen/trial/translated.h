// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Whether a source address translator did what it should, packet by packet.
#ifndef GEN_TRIAL_TRANSLATED_H
#define GEN_TRIAL_TRANSLATED_H

#include <stdbool.h>

#include "gen/traffic/walk.h"
#include "gen/trial/trial.h"

// Counts a packet that came to where it is answered (a source of the translator's, the destination
// that was sent), or came back (from that destination, to the true source).
void gen_translated_check(const struct gen_spec *spec, const struct gen_walk *walk, uint32_t seq,
	const struct gen_rx *frame, bool back, struct gen_translated *counts);

#endif
