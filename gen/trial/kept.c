// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/kept.h"

#include <stdlib.h>
#include <string.h>

struct gen_kept *gen_kept_create(uint32_t most)
{
	struct gen_kept *kept = calloc(1, sizeof(*kept) + most * sizeof(kept->frames[0]));

	if (kept != NULL)
		kept->most = most;
	return kept;
}

void gen_kept_add(struct gen_kept *kept, const struct gen_rx *frame)
{
	if (kept->count == kept->most)
		return;
	struct gen_kept_frame *into = &kept->frames[kept->count++];

	into->bytes = 0;
	if (!frame->whole)
		return;
	into->bytes = (uint16_t)(frame->bytes < GEN_KEPT_BYTES ? frame->bytes : GEN_KEPT_BYTES);
	memcpy(into->data, frame->data, into->bytes);
}

const char *gen_kept_hex(const struct gen_kept *kept, uint32_t index, char *text)
{
	static const char digits[] = "0123456789abcdef";
	const struct gen_kept_frame *frame = &kept->frames[index];

	for (uint32_t i = 0; i < frame->bytes; i++) {
		text[2 * i] = digits[frame->data[i] >> 4];
		text[2 * i + 1] = digits[frame->data[i] & 15];
	}
	text[2 * frame->bytes] = '\0';
	return text;
}
