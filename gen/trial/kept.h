// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The bytes of the first frames of a trial that came back, for who compares them with what he
// expects. Nothing of it is touched where a specification does not ask for it.
#ifndef GEN_TRIAL_KEPT_H
#define GEN_TRIAL_KEPT_H

#include <stdint.h>

#include "gen/traffic/wire.h"

#define GEN_KEPT_BYTES 1518u // of each; the rest of a longer one is not kept

struct gen_kept_frame {
	uint16_t bytes;
	uint8_t data[GEN_KEPT_BYTES];
};

struct gen_kept {
	uint32_t count, most;
	struct gen_kept_frame frames[];
};

// Room for so many frames; free() it. NULL when out of memory.
struct gen_kept *gen_kept_create(uint32_t most);

// Copies a frame while there is room. One that does not lie at one place is kept as no bytes.
void gen_kept_add(struct gen_kept *kept, const struct gen_rx *frame);

// Writes a frame as hexadecimal digits into text, of 2 * GEN_KEPT_BYTES + 1 bytes. Returns text.
const char *gen_kept_hex(const struct gen_kept *kept, uint32_t index, char *text);

#endif
