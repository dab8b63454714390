// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Capture files: reads pcap and pcapng (microseconds or nanoseconds, either byte order) by libpcap,
// writes nanosecond pcap. Ethernet only: everything behind a port is an Ethernet frame.
//
// A file is somebody else's data: whatever is wrong with it is an error text that names the file,
// the packet (counted from 1, as Wireshark does), what is wrong and how to fix it.
#ifndef CV_CAPTURE_H
#define CV_CAPTURE_H

#include <stdint.h>

#include "packet/error.h"

#define CV_CAPTURE_LONGEST 262144 // bytes of a packet: libpcap reads no longer ones

struct cv_capture; // a file being read
struct cv_capture_writer; // a file being written

struct cv_capture_packet {
	uint64_t time_ns; // since 1970-01-01 UTC
	const uint8_t *data; // the captured bytes; valid until the next call for this file
	uint32_t captured; // bytes at data; may be 0
	uint32_t wire; // bytes that the packet had; more than captured: a snap length cut it
};

struct cv_capture_summary {
	uint64_t packets;
	uint64_t bytes; // captured
	uint64_t cut; // packets of which a snap length took bytes away
	uint32_t longest; // captured bytes of the longest packet
	uint64_t first_ns, last_ns; // times of the first and the last packet in file order
};

// Opens a capture. NULL with error set: missing, unreadable, a directory, empty, not a capture,
// not Ethernet.
struct cv_capture *cv_capture_open(const char *path, struct cv_error *error);

// Reads one packet. Returns 1: packet is filled in; 0: the end; -EINVAL with error set: cut off in
// the middle of a packet, or damaged, and every later call says the same.
int cv_capture_next(
	struct cv_capture *capture, struct cv_capture_packet *packet, struct cv_error *error);

// What has been read so far. Another thread may read packets, bytes and cut, by cv_counted().
const struct cv_capture_summary *cv_capture_read_so_far(const struct cv_capture *capture);

void cv_capture_close(struct cv_capture *capture); // NULL is allowed

// Reads a capture to its end. Returns 0 with summary filled in (summary may be NULL), or -EINVAL
// with error set.
int cv_capture_check(const char *path, struct cv_capture_summary *summary, struct cv_error *error);

// Creates a capture, or empties the one that is there. It grows in place, in whole packets: a writer
// that is killed leaves a readable capture of all it had flushed (only a kill in the midst of a
// flush can leave its last packet cut off). NULL with error set.
struct cv_capture_writer *cv_capture_create(const char *path, struct cv_error *error);

// Adds one packet; wire >= captured as in cv_capture_packet. It is in the file at the latest after
// the next flush. Returns 0, or -errno of the file system: the packet is then not added, the file
// still ends with a whole packet, and a later call may work (after somebody made room).
int cv_capture_append(struct cv_capture_writer *writer, const struct cv_capture_packet *packet);

// Writes out what append holds back. Returns 0 or -errno (nothing held back is lost by that).
int cv_capture_flush(struct cv_capture_writer *writer);

// Flushes, closes and frees. Returns 0, or -errno with error set: the last packets are not in the
// file. NULL is allowed.
int cv_capture_finish(struct cv_capture_writer *writer, struct cv_error *error);

#endif
