// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames of type 1 (docs/convoy-frame.md): the packets of a convoy, with their lengths, compressed as
// a whole. Each frame is compressed by itself, and with a dictionary that both ends were given: a
// frame that is lost takes nothing from the others.
#ifndef CV_COMPRESS_H
#define CV_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CV_DICTIONARY_MAX 65536 // bytes: as far back as LZ4 reaches
#define CV_DICTIONARIES_MAX 16 // that a receiver has

// Bytes that both ends know, never changed once made. Who makes or holds one releases it; holding
// and releasing is the control thread's.
struct cv_dictionary {
	uint32_t id; // CRC-32 of the bytes, never 0; 0: there are none
	uint32_t len;
	unsigned holders;
	uint8_t bytes[];
};

// Is this program built with LZ4?
bool cv_compress_exists(void);

// Copies len <= CV_DICTIONARY_MAX bytes. len 0: the dictionary of frames that have none. NULL: no
// memory.
struct cv_dictionary *cv_dictionary_make(const uint8_t *bytes, uint32_t len);
struct cv_dictionary *cv_dictionary_hold(struct cv_dictionary *dictionary); // NULL is allowed
void cv_dictionary_release(struct cv_dictionary *dictionary); // NULL is allowed

// What compresses for one next hop: a state for each worker.
struct cv_compressor;

// Holds the dictionary. NULL: no memory, or cv_compress_exists() is false.
struct cv_compressor *cv_compressor_make(struct cv_dictionary *dictionary, unsigned workers);
void cv_compressor_free(struct cv_compressor *compressor); // NULL is allowed

// Compresses the len bytes at run, in place. Returns how many there are then, compression header
// included: fewer than len. 0: it would not get smaller, and nothing was changed.
uint32_t cv_compress(struct cv_compressor *compressor, unsigned worker, uint8_t *run, uint32_t len);

// What a receiver takes compressed frames with.
struct cv_expander {
	bool on;
	unsigned dictionaries_count;
	struct cv_dictionary *dictionaries[CV_DICTIONARIES_MAX]; // held; id 0: takes frames without
};

// Expands a frame of type 1 into one of type 0, of at most room bytes at `to`, whose length goes to
// len: the outer header as it came, with its lengths and checksum brought up to date. The packets
// are not checked yet: walk the new frame. Where the result is not CV_CONVOY_OK, what is at `to`
// means nothing. The frame's bytes stay as they are. It costs no more than room bytes do.
enum cv_convoy_reason cv_expand(const struct cv_expander *expander, const struct cv_view *frame,
	rte_be16_t port, uint8_t *to, uint32_t room, uint16_t *len);

#ifdef __cplusplus
}
#endif

#endif
