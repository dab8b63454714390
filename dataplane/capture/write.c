// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Nanosecond pcap, as draft-ietf-opsawg-pcap describes it: a header of 24 bytes, then for each
// packet 16 bytes of header and its bytes; in the byte order of the machine.
#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_NS 0xa1b23c4du
#define LINK_ETHERNET 1
#define HOLD_BYTES (1 << 20)

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t reserved[2];
	uint32_t snap;
	uint32_t link;
};

struct packet_header {
	uint32_t seconds, nanoseconds;
	uint32_t captured, wire;
};

struct cv_capture_writer {
	int fd;
	char *path;
	off_t whole; // bytes in the file that end with a whole packet
	size_t held; // bytes in hold, whole packets
	uint8_t hold[HOLD_BYTES];
};

// Writes everything or, on an error, leaves the file as it was.
static int write_whole(struct cv_capture_writer *writer, const void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(writer->fd, (const uint8_t *)data + done, len - done,
			writer->whole + (off_t)done);

		if (n < 0) {
			int saved = errno;

			if (saved == EINTR)
				continue;
			// If even this fails, the reader will name the packet that is cut off.
			if (ftruncate(writer->fd, writer->whole) != 0)
				return -saved;
			return -saved;
		}
		done += (size_t)n;
	}
	writer->whole += (off_t)len;
	return 0;
}

struct cv_capture_writer *cv_capture_create(const char *path, struct cv_error *error)
{
	const struct file_header header = {.magic = MAGIC_NS,
		.major = 2,
		.minor = 4,
		.snap = CV_CAPTURE_LONGEST,
		.link = LINK_ETHERNET};
	struct cv_capture_writer *writer = calloc(1, sizeof(*writer));
	struct stat st;
	int rc;

	if (writer != NULL)
		writer->path = strdup(path);
	if (writer == NULL || writer->path == NULL) {
		cv_error_set(error, "%s: out of memory", path);
		free(writer);
		return NULL;
	}
	// O_NONBLOCK: opening a FIFO must fail, not wait. It means nothing to a regular file.
	writer->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	if (writer->fd < 0) {
		cv_error_set(error, "%s: cannot be written: %s; %s", path, strerror(errno),
			errno == ENOENT ? "make its directory first"
					: "name a file that this user may write");
		free(writer->path);
		free(writer);
		return NULL;
	}
	if (fstat(writer->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		cv_error_set(error, "%s: is not a regular file; name one to write", path);
		goto fail;
	}
	rc = ftruncate(writer->fd, 0) != 0 ? -errno : write_whole(writer, &header, sizeof(header));
	if (rc != 0) {
		cv_error_set(error, "%s: cannot be written: %s", path, strerror(-rc));
		goto fail;
	}
	return writer;
fail:
	close(writer->fd);
	free(writer->path);
	free(writer);
	return NULL;
}

int cv_capture_flush(struct cv_capture_writer *writer)
{
	int rc;

	if (writer->held == 0)
		return 0;
	rc = write_whole(writer, writer->hold, writer->held);
	if (rc == 0)
		writer->held = 0;
	return rc;
}

int cv_capture_append(struct cv_capture_writer *writer, const struct cv_capture_packet *packet)
{
	const struct packet_header header = {
		.seconds = (uint32_t)(packet->time_ns / 1000000000u),
		.nanoseconds = (uint32_t)(packet->time_ns % 1000000000u),
		.captured = packet->captured,
		.wire = packet->wire,
	};
	const size_t need = sizeof(header) + packet->captured;

	if (packet->captured > CV_CAPTURE_LONGEST)
		return -EMSGSIZE;
	if (need > HOLD_BYTES - writer->held) {
		int rc = cv_capture_flush(writer);

		if (rc != 0)
			return rc;
	}
	memcpy(writer->hold + writer->held, &header, sizeof(header));
	if (packet->captured > 0)
		memcpy(writer->hold + writer->held + sizeof(header), packet->data,
			packet->captured);
	writer->held += need;
	return 0;
}

int cv_capture_finish(struct cv_capture_writer *writer, struct cv_error *error)
{
	int rc;

	if (writer == NULL)
		return 0;
	rc = cv_capture_flush(writer);
	if (close(writer->fd) != 0 && rc == 0)
		rc = -errno;
	if (rc != 0)
		cv_error_set(error, "%s: the last packets could not be written: %s", writer->path,
			strerror(-rc));
	free(writer->path);
	free(writer);
	return rc;
}
