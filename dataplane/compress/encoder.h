// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Short packets into an LZ4 block, by an encoder that knows where packets begin. Each is compared with one
// earlier packet that it resembles most, byte by byte at the same places: headers differ in few, and
// nothing has to be searched. Any bytes may be given; what are no packets get less small.
#ifndef CV_COMPRESS_ENCODER_H
#define CV_COMPRESS_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#define CV_ENCODER_SLACK 64 // bytes behind what is encoded that may be read
#define CV_ENCODER_SLOTS 4096

// Packets of a dictionary, by flow and by what kind they are: where they begin, plus 1; 0: none.
struct cv_encoder_index {
	uint16_t by_flow[CV_ENCODER_SLOTS];
	uint16_t by_kind[CV_ENCODER_SLOTS];
};

// Most bytes of the block that n bytes become, those that may be written behind it included.
#define CV_ENCODER_MOST(n) ((n) + (n) / 255 + 64)

// Indexes a dictionary of len bytes: packets, each behind its length, as far as it consists of such.
void cv_encoder_index(struct cv_encoder_index *index, const uint8_t *dictionary, uint32_t len);

// Are n bytes packets, each behind its length, that are so short that what differs between them is
// mostly in their headers? Of others the library finds more.
bool cv_encoder_suits(const uint8_t *run, uint32_t n);

// Encodes len <= UINT16_MAX bytes that stand at bytes + known, right behind the dictionary of known
// bytes. Returns how many bytes the block at `to` has, for which CV_ENCODER_MOST(len) may be written.
uint32_t cv_encoder_run(const struct cv_encoder_index *index, const uint8_t *bytes, uint32_t known,
	uint32_t len, uint8_t *to);

#endif
