// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a capture file: read to the end or to the error, never a crash; and what could be
// read is written and read again, the same.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/capture.h"

static int in_fd = -1, out_fd;
static char in_path[32], out_path[32];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

// A file in memory, and a path that opens it.
static int make_file(const char *name, char *path, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	require(fd >= 0, "memfd_create");
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}

static void copy_all(struct cv_capture *in, struct cv_capture_writer *out)
{
	struct cv_error error = {""};
	struct cv_capture_packet packet;
	int rc;

	while ((rc = cv_capture_next(in, &packet, &error)) == 1)
		require(cv_capture_append(out, &packet) == 0, "append");
	require((rc == 0) == (error.text[0] == '\0'), "an error has a text");
	if (rc < 0)
		require(cv_capture_next(in, &packet, NULL) == rc, "an error stays");
}

static void compare_all(struct cv_capture *a, struct cv_capture *b)
{
	struct cv_error error = {""};
	struct cv_capture_packet p, q;

	while (cv_capture_next(a, &p, NULL) == 1) {
		require(cv_capture_next(b, &q, &error) == 1, "every packet was written");
		require(p.captured == q.captured && p.wire == q.wire, "lengths");
		require(memcmp(p.data, q.data, p.captured) == 0, "bytes");
	}
	require(cv_capture_next(b, &q, &error) == 0, "nothing else was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_capture_writer *writer;
	struct cv_error error = {""};
	struct cv_capture *in, *out;

	if (in_fd < 0) {
		in_fd = make_file("in", in_path, sizeof(in_path));
		out_fd = make_file("out", out_path, sizeof(out_path));
	}
	require(ftruncate(in_fd, 0) == 0, "ftruncate");
	require(pwrite(in_fd, data, size, 0) == (ssize_t)size, "pwrite");
	in = cv_capture_open(in_path, &error);
	require((in == NULL) == (error.text[0] != '\0'), "an error has a text");
	if (in == NULL)
		return 0;
	writer = cv_capture_create(out_path, &error);
	require(writer != NULL, "create");
	copy_all(in, writer);
	require(cv_capture_finish(writer, &error) == 0, "finish");
	cv_capture_close(in);

	in = cv_capture_open(in_path, &error);
	out = cv_capture_open(out_path, &error);
	require(in != NULL && out != NULL, "open again");
	compare_all(in, out);
	cv_capture_close(in);
	cv_capture_close(out);
	return 0;
}
