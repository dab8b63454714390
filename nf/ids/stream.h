// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TCP connections as streams of bytes, which Hyperscan searches as they come. What comes out of order
// is copied and waits, within bounds, while the packet itself goes on: its receiver can read nothing
// of it before the gap is closed, and the packet that closes it is the one that is matched and may be
// dropped.
//
// Overlaps: the first bytes count. A segment that says otherwise, about bytes that are still kept (the
// window, and what waits), is dropped, so that its receiver cannot take it for the first.
#ifndef CV_IDS_STREAM_H
#define CV_IDS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <hs.h>

#define CV_IDS_WAITING_MAX 8 // segments of a direction that wait
#define CV_IDS_PENDING_MAX 16 // rules of a direction of which a part was found
#define CV_IDS_SEGMENT_MAX 2048 // bytes of one that waits
#define CV_IDS_REACH (1 << 24) // bytes ahead or behind that a segment may be

// A rule of which patterns were found, but not all, or whose other contents are not yet there.
struct cv_ids_pending {
	uint64_t since; // position of the last pattern
	uint32_t rule;
	uint8_t mask; // of its parts; 0: nothing is here
	bool done; // it has matched
};

// Bytes that came before what they follow.
struct cv_ids_waiting {
	uint32_t seq;
	uint16_t len;
	uint16_t buffer;
};

// One direction.
struct cv_ids_stream {
	hs_stream_t *hs;
	uint8_t *window; // room for twice the window: the last bytes that were searched
	uint64_t position; // bytes that were searched
	uint32_t next; // the sequence number that comes next
	uint32_t first; // of its first byte
	uint32_t opening; // of the first behind what came with the SYN
	uint32_t filled; // of the window
	bool begun;
	bool syn_waits; // for its answer
	bool unheard; // the other end has not acknowledged its beginning
	uint8_t waiting_count;
	struct cv_ids_waiting waiting[CV_IDS_WAITING_MAX]; // in order, without overlaps
	struct cv_ids_pending pending[CV_IDS_PENDING_MAX];
};

struct cv_ids_connection {
	struct cv_ids_stream way[2]; // by enum cv_flow_direction
};

// A worker's.
struct cv_ids_streams {
	struct cv_ids_connection *connection;
	uint32_t *free_connection; // indices
	uint16_t *free_buffer;
	uint8_t *buffers, *windows;
	uint32_t connections, free_connections;
	uint32_t free_buffers;
};

// Returns 0 or -ENOMEM; either way *streams, which was zero, is to be freed.
int cv_ids_streams_make(struct cv_ids_streams *streams, const hs_database_t *hs,
	uint32_t connections, uint32_t buffers, uint32_t window);
void cv_ids_streams_free(struct cv_ids_streams *streams);

// A connection's number, from 1; 0: there is none left.
uint32_t cv_ids_streams_take(struct cv_ids_streams *streams);
void cv_ids_streams_give(struct cv_ids_streams *streams, uint32_t number);

// Makes a direction as it was at first.
void cv_ids_stream_clear(struct cv_ids_streams *streams, struct cv_ids_stream *stream);

// The next byte has this number. It was not begun.
static inline void cv_ids_stream_begin(struct cv_ids_stream *stream, uint32_t seq)
{
	stream->begun = true;
	stream->next = stream->first = stream->opening = seq;
}

struct cv_ids;
struct cv_ids_lane;
struct cv_ids_packet;

// What became of a segment.
enum cv_ids_segment {
	CV_IDS_SEGMENT_TAKEN, // searched as far as there is no gap before it; rules are in lane->matched.
	// With lane->over: no further than steps sufficed, and the stream is
	// of no use any more
	CV_IDS_SEGMENT_CONTRADICTS, // it has other bytes than those that came first
	CV_IDS_SEGMENT_NO_ROOM, // it came early, and too much waits already
	CV_IDS_SEGMENT_ELSEWHERE, // its sequence number has nothing to do with the stream's
};

// Takes a segment whose first byte of payload has this sequence number.
enum cv_ids_segment cv_ids_stream_segment(struct cv_ids *ids, struct cv_ids_lane *lane,
	struct cv_ids_stream *stream, const struct cv_ids_packet *packet, uint32_t seq);

#endif
