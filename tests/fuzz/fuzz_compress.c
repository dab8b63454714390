// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compressed convoys. Byte 0 says what the others are:
//
//   0  a frame: expanded into a buffer of just the room that byte 1 and 2 give
//   1  behind a good outer header, the bytes from the convoy header on
//   2  an LZ4 block that the headers say is of bytes 1 and 2 when expanded
//   3  packets: compressed, expanded, the same
//
// What is accepted is what a slow and plain reading of the block gives, and a whole frame.
#include <stdio.h>
#include <stdlib.h>

#include "compress/compress.h"
#include "convoy/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DICTIONARY_LEN 300
#define HEADER 8 // compression header

static struct cv_expander expander;
static struct cv_compressor *compressor;
static struct cv_outer outer;

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static void set_up(void)
{
	const struct cv_outer_config config = {.version = 4, .mtu = CV_OUTER_MTU_MAX};
	uint8_t bytes[DICTIONARY_LEN];

	for (unsigned i = 0; i < DICTIONARY_LEN; i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	expander = (struct cv_expander){.on = true,
		.dictionaries_count = 2,
		.dictionaries = {
			cv_dictionary_make(bytes, DICTIONARY_LEN), cv_dictionary_make(NULL, 0)}};
	compressor = cv_compressor_make(expander.dictionaries[0], 1);
	require(cv_outer_set(&outer, &config, NULL) == 0, "an outer header");
}

// A length in an LZ4 block, as the format's description has it.
static size_t length_of(size_t nibble, const uint8_t *block, size_t size, size_t *at)
{
	size_t len = nibble;

	for (uint8_t more = 255; nibble == 15 && more == 255;) {
		require(*at < size, "a length that is accepted is there");
		more = block[(*at)++];
		len += more;
	}
	return len;
}

// Expands a block that was accepted, byte by byte, and compares.
static void is_expanded(const struct cv_dictionary *known, const uint8_t *block, size_t size,
	const uint8_t *expanded, size_t len)
{
	uint8_t *out = malloc(known->len + len + 1), *end = out + known->len + len;
	uint8_t *to = out + known->len;
	size_t at = 0;

	memcpy(out, known->bytes, known->len);
	for (;;) {
		size_t literals, match, offset;
		uint8_t token;

		require(at < size, "a token that is accepted is there");
		token = block[at++];
		literals = length_of(token >> 4, block, size, &at);
		require(literals <= size - at && literals <= (size_t)(end - to), "literals");
		memcpy(to, block + at, literals);
		to += literals;
		at += literals;
		if (at == size)
			break;
		require(size - at >= 2, "an offset");
		offset = block[at] | (size_t)block[at + 1] << 8;
		at += 2;
		match = length_of(token & 15, block, size, &at) + 4;
		require(offset > 0 && offset <= (size_t)(to - out), "the offset");
		require(match <= (size_t)(end - to), "the match");
		for (; match > 0; match--, to++)
			*to = *(to - offset);
	}
	require(to == end && memcmp(out + known->len, expanded, len) == 0, "the same bytes");
	free(out);
}

static void expand(const uint8_t *frame, size_t size, uint32_t room)
{
	struct cv_view view = {0}, views[CV_CONVOY_PACKETS_MAX], whole = {0};
	uint8_t *bytes = malloc(size + !size), *to = malloc(room + !room);
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;
	uint16_t len;

	memcpy(bytes, frame, size);
	cv_view_set(&view, bytes, (uint16_t)size);
	reason = cv_expand(&expander, &view, RTE_BE16(CV_CONVOY_PORT), to, room, &len);
	require(memcmp(bytes, frame, size) == 0, "the frame stays as it is");
	if (reason == CV_CONVOY_OK) {
		enum cv_convoy_reason was =
			cv_convoy_walk_compressed(&convoy, &view, RTE_BE16(CV_CONVOY_PORT));
		const size_t at = convoy.packets_at;
		const bool known = frame[at + 4] | frame[at + 5] | frame[at + 6] | frame[at + 7];

		require(was == CV_CONVOY_OK && len <= room, "a compressed frame");
		is_expanded(expander.dictionaries[known ? 0 : 1], frame + at + HEADER,
			size - at - HEADER, to + at, len - at);
		cv_view_set(&whole, to, len);
		reason = cv_convoy_walk(&convoy, views, &whole, RTE_BE16(CV_CONVOY_PORT));
		require(reason == CV_CONVOY_OK || reason == CV_CONVOY_BAD_COUNT ||
				reason == CV_CONVOY_RUNT_PACKET || reason == CV_CONVOY_BAD_LENGTH ||
				reason == CV_CONVOY_TRAILING_BYTES,
			"the headers are good");
	}
	free(bytes);
	free(to);
}

// Bytes behind a good outer header.
static void expand_behind_outer(
	const uint8_t *convoy, size_t convoy_len, const uint8_t *data, size_t size)
{
	const size_t headers = outer.len - CV_CONVOY_LEN;
	uint8_t *frame = malloc(headers + convoy_len + size);

	cv_outer_write(&outer, frame, 1, (uint32_t)(convoy_len + size - CV_CONVOY_LEN), 0);
	memcpy(frame + headers, convoy, convoy_len);
	memcpy(frame + headers + convoy_len, data, size);
	expand(frame, headers + convoy_len + size, 8192);
	free(frame);
}

static void expand_block(const uint8_t *data, size_t size)
{
	uint8_t headers[CV_CONVOY_LEN + HEADER] = {CV_CONVOY_VERSION << 4 | CV_CONVOY_COMPRESSED, 2,
		0, 7, CV_CONVOY_LZ4, 0, data[0], data[1]};
	const rte_be32_t id = rte_cpu_to_be_32(expander.dictionaries[data[0] >> 7]->id);

	headers[6] &= 0x7f;
	memcpy(headers + 8, &id, sizeof(id));
	expand_behind_outer(headers, sizeof(headers), data + 2, size - 2);
}

static void there_and_back(const uint8_t *data, size_t size)
{
	const uint32_t len = (uint32_t)size;
	uint8_t *frame = malloc(outer.len + size + 1), *to = malloc(outer.len + size + 1);
	uint8_t *run = frame + outer.len;
	struct cv_view view = {0};
	uint16_t expanded;
	uint32_t made;

	memcpy(run, data, size);
	made = cv_compress(compressor, 0, run, len);
	require(made < len || made == 0, "smaller");
	if (made == 0) {
		require(memcmp(run, data, size) == 0, "unchanged");
	} else {
		cv_outer_write(&outer, frame, 1, made, 0);
		frame[outer.len - CV_CONVOY_LEN] = CV_CONVOY_VERSION << 4 | CV_CONVOY_COMPRESSED;
		cv_view_set(&view, frame, (uint16_t)(outer.len + made));
		require(cv_expand(&expander, &view, RTE_BE16(CV_CONVOY_PORT), to, outer.len + len,
				&expanded) == CV_CONVOY_OK,
			"what was compressed expands");
		require(expanded == outer.len + len && memcmp(to + outer.len, data, size) == 0,
			"to the same");
	}
	free(frame);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (compressor == NULL)
		set_up();
	if (size < 3 || size > 60000)
		return 0;
	switch (data[0] & 3) {
	case 0:
		expand(data + 3, size - 3, (uint32_t)data[1] << 8 | data[2]);
		break;
	case 1:
		if (size > CV_CONVOY_LEN)
			expand_behind_outer(data + 1, CV_CONVOY_LEN, data + 1 + CV_CONVOY_LEN,
				size - 1 - CV_CONVOY_LEN);
		break;
	case 2:
		expand_block(data + 1, size - 1);
		break;
	default:
		there_and_back(data + 1, size - 1);
	}
	return 0;
}
