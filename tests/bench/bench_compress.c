// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What compressing the short packets of captures costs a packet, and what it leaves of their bytes.
//
//   bench-compress DICTIONARY CAPTURE...        DICTIONARY: a file of `convoy dictionary`, or ""
//
// The second half of each capture is measured: make the dictionary of the first. Packets of 14 to
// 128 bytes are aggregated into frames of MTU 1500, in the captures' order. Prints one JSON object,
// {"schema": "convoy.bench.compress/1", "packets", "frames", "bytes": with their lengths,
// "dictionary_bytes", "bytes_left": a share, "not_smaller": frames, and for "compress" and "expand"
// {"median", "min", "max"} in TSC cycles per packet}. Whole calls are measured, headers included, over
// all frames, 31 times; compressing and expanding alternate.
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "capture/capture.h"
#include "compress/compress.h"
#include "convoy/frame.h"

#define REPEATS 31
#define SHORT_BYTES 128 // unless CONVOY_BENCH_BYTES says otherwise
#define FRAMES_MAX 100000
#define ROOM 2048

struct frame {
	uint8_t raw[ROOM], sent[ROOM];
	uint32_t raw_len, sent_len; // of packets with their lengths; of the whole frame
	unsigned packets;
	bool compressed;
};

static struct frame *frames;
static unsigned frames_count;
static struct cv_outer outer;
static uint32_t longest = SHORT_BYTES;

static void die(const char *what)
{
	fprintf(stderr, "bench-compress: %s\n", what);
	exit(1);
}

static void add(const uint8_t *packet, uint32_t len)
{
	const uint32_t most = (uint32_t)outer.frame_max - outer.len;
	struct frame *frame = &frames[frames_count - (frames_count > 0)];

	if (frames_count == 0 || frame->raw_len + CV_CONVOY_PREFIX_LEN + len > most) {
		if (frames_count == FRAMES_MAX)
			return;
		frame = &frames[frames_count++];
	}
	cv_convoy_write_len(frame->raw + frame->raw_len, len);
	memcpy(frame->raw + frame->raw_len + CV_CONVOY_PREFIX_LEN, packet, len);
	frame->raw_len += CV_CONVOY_PREFIX_LEN + len;
	frame->packets++;
}

// Reads a capture up to its end or what is broken; adds the packets behind the first skip. Returns
// how many were short enough.
static unsigned read_short(const char *path, unsigned skip)
{
	struct cv_capture_packet packet;
	struct cv_error error = {0};
	struct cv_capture *capture = cv_capture_open(path, &error);
	unsigned count = 0;

	if (capture == NULL)
		die(error.text);
	while (cv_capture_next(capture, &packet, &error) == 1)
		if (packet.captured == packet.wire && packet.captured >= CV_CONVOY_PACKET_MIN &&
			packet.captured <= longest && count++ >= skip)
			add(packet.data, packet.captured);
	cv_capture_close(capture);
	return count;
}

static struct cv_dictionary *read_dictionary(const char *path)
{
	static uint8_t bytes[CV_DICTIONARY_MAX];
	FILE *file = path[0] != '\0' ? fopen(path, "rb") : NULL;
	size_t len = 0;

	if (file == NULL && path[0] != '\0')
		die("the dictionary cannot be read");
	if (file != NULL) {
		len = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
	}
	return cv_dictionary_make(bytes, (uint32_t)len);
}

// Compresses all frames. Returns ticks.
static uint64_t compress_all(struct cv_compressor *compressor)
{
	uint64_t ticks = 0;

	for (unsigned i = 0; i < frames_count; i++) {
		struct frame *frame = &frames[i];
		uint64_t before;
		uint32_t made;

		memcpy(frame->sent + outer.len, frame->raw, frame->raw_len);
		before = __rdtsc();
		made = cv_compress(compressor, 0, frame->sent + outer.len, frame->raw_len);
		frame->compressed = made > 0;
		frame->sent_len = outer.len + (made > 0 ? made : frame->raw_len);
		cv_outer_write(&outer, frame->sent, (uint8_t)frame->packets,
			frame->sent_len - outer.len, 0);
		if (made > 0)
			frame->sent[outer.len - CV_CONVOY_LEN] =
				CV_CONVOY_VERSION << 4 | CV_CONVOY_COMPRESSED;
		ticks += __rdtsc() - before;
	}
	return ticks;
}

// Expands those that were compressed. Returns ticks.
static uint64_t expand_all(const struct cv_expander *expander)
{
	static uint8_t to[ROOM];
	uint64_t ticks = 0;

	for (unsigned i = 0; i < frames_count; i++) {
		struct frame *frame = &frames[i];
		struct cv_view view = {0};
		uint64_t before;
		uint16_t len;

		if (!frame->compressed)
			continue;
		before = __rdtsc();
		cv_view_set(&view, frame->sent, (uint16_t)frame->sent_len);
		if (cv_expand(expander, &view, RTE_BE16(CV_CONVOY_PORT), to, ROOM, &len) !=
			CV_CONVOY_OK)
			die("a frame does not expand");
		ticks += __rdtsc() - before;
		if (len != outer.len + frame->raw_len ||
			memcmp(to + outer.len, frame->raw, frame->raw_len) != 0)
			die("a frame expands to something else");
	}
	return ticks;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *ticks, const char *end)
{
	qsort(ticks, REPEATS, sizeof(*ticks), ascending);
	printf("\"%s\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}%s", name,
		ticks[REPEATS / 2], ticks[0], ticks[REPEATS - 1], end);
}

int main(int argc, char **argv)
{
	static double compress[REPEATS], expand[REPEATS];
	unsigned packets = 0, not_smaller = 0, expanded = 0;
	uint64_t bytes = 0, left = 0;
	struct cv_compressor *compressor;
	struct cv_expander expander = {.on = true, .dictionaries_count = 1};

	if (getenv("CONVOY_BENCH_BYTES") != NULL)
		longest = (uint32_t)atoi(getenv("CONVOY_BENCH_BYTES"));
	if (argc < 3) {
		fprintf(stderr, "usage: bench-compress DICTIONARY CAPTURE...\n");
		return 2;
	}
	frames = calloc(FRAMES_MAX, sizeof(*frames));
	expander.dictionaries[0] = read_dictionary(argv[1]);
	compressor = cv_compressor_make(expander.dictionaries[0], 1);
	if (frames == NULL || compressor == NULL)
		die("no memory, or built without LZ4");
	cv_outer_set(&outer, &(struct cv_outer_config){.version = 4}, NULL);
	for (int i = 2; i < argc; i++)
		read_short(argv[i], read_short(argv[i], UINT32_MAX) / 2);
	if (frames_count == 0)
		die("the captures have no packets short enough");
	compress_all(compressor);
	for (unsigned i = 0; i < frames_count; i++) {
		packets += frames[i].packets;
		expanded += frames[i].compressed ? frames[i].packets : 0;
		not_smaller += !frames[i].compressed;
		bytes += frames[i].raw_len;
		left += frames[i].sent_len - outer.len;
	}
	for (unsigned r = 0; r < REPEATS; r++) {
		compress[r] = (double)compress_all(compressor) / packets;
		expand[r] = (double)expand_all(&expander) / (expanded > 0 ? expanded : 1);
	}
	printf("{\"schema\": \"convoy.bench.compress/1\", \"packets\": %u, \"frames\": %u, "
	       "\"bytes\": %lu, \"dictionary_bytes\": %u, \"bytes_left\": %.3f, "
	       "\"not_smaller\": %u, ",
		packets, frames_count, (unsigned long)bytes, expander.dictionaries[0]->len,
		(double)left / (double)bytes, not_smaller);
	print("compress", compress, ", ");
	print("expand", expand, "}\n");
	cv_compressor_free(compressor);
	cv_dictionary_release(expander.dictionaries[0]);
	free(frames);
	return 0;
}
