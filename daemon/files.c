// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/params.h"

#define BLOCK 65536

void cv_files_path(int fd, char path[CV_FILES_PATH_MAX])
{
	snprintf(path, CV_FILES_PATH_MAX, "/proc/self/fd/%d", fd);
}

// Copies so many bytes from a descriptor that somebody else may change meanwhile. 0 or -errno.
static int copy(int to, int from, uint64_t offset, uint64_t length)
{
	char *block = malloc(BLOCK);
	int rc = block == NULL ? -ENOMEM : 0;

	while (rc == 0 && length > 0) {
		const size_t want = length < BLOCK ? (size_t)length : BLOCK;
		const ssize_t n = pread(from, block, want, (off_t)offset);

		if (n <= 0)
			rc = n == 0 ? -ENODATA : -errno;
		else if (write(to, block, (size_t)n) != n)
			rc = errno != 0 ? -errno : -ENOSPC;
		else
			offset += (uint64_t)n, length -= (uint64_t)n;
	}
	free(block);
	return rc;
}

static int take(struct cv_files *files, const char *path, int from, uint64_t offset,
	uint64_t length, struct cv_error *error)
{
	struct cv_file *file = &files->file[files->count];
	int rc;

	file->path = path;
	file->fd = memfd_create("convoy-file", MFD_CLOEXEC);
	if (file->fd < 0) {
		cv_error_set(error, "%s: no copy of it: %s", path, strerror(errno));
		return -ENOMEM;
	}
	files->count++;
	rc = copy(file->fd, from, offset, length);
	if (rc != 0)
		cv_error_set(error, "%s: not in the descriptor that came with the request: %s",
			path, strerror(-rc));
	return rc == 0 ? 0 : -EINVAL;
}

// Where a file is in the descriptor.
struct extent {
	uint64_t offset, length;
};

static int read_extent(const struct cv_where *at, const char *path, const json_t *value,
	struct extent *extent, uint64_t *bytes)
{
	const json_t *offset = json_array_get(value, 0), *length = json_array_get(value, 1);

	if (json_array_size(value) != 2 || !json_is_integer(offset) || !json_is_integer(length) ||
		json_integer_value(offset) < 0 || json_integer_value(length) < 0)
		return cv_where_wrong(at, path, value, "must be [OFFSET, LENGTH]");
	*extent = (struct extent){
		(uint64_t)json_integer_value(offset), (uint64_t)json_integer_value(length)};
	if (extent->length > CV_FILES_BYTES_MAX - *bytes)
		return cv_where_error(at, "files: more than 1 GiB");
	*bytes += extent->length;
	return 0;
}

int cv_files_take(struct cv_files *files, const json_t *places, int from, struct cv_error *error)
{
	const struct cv_where at = cv_where_top("files", error);
	uint64_t bytes = 0;
	const char *path;
	json_t *value;
	int rc = 0;

	files->count = 0;
	if (json_object_size(places) > CV_FILES_MAX)
		return cv_where_error(&at, "more than %d", CV_FILES_MAX);
	if (json_object_size(places) > 0 && from < 0)
		return cv_where_error(&at, "no descriptor came with the request");
	json_object_foreach ((json_t *)(uintptr_t)places, path, value) {
		struct extent extent = {0};

		rc = read_extent(&at, path, value, &extent, &bytes);
		if (rc == 0)
			rc = take(files, path, from, extent.offset, extent.length, error);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int cv_files_copy(struct cv_files *files, const struct cv_files *from, struct cv_error *error)
{
	int rc = 0;

	files->count = 0;
	for (unsigned i = 0; rc == 0 && i < from->count; i++) {
		const off_t length = lseek(from->file[i].fd, 0, SEEK_END);

		rc = take(files, from->file[i].path, from->file[i].fd, 0,
			length > 0 ? (uint64_t)length : 0, error);
	}
	return rc;
}

void cv_files_free(struct cv_files *files)
{
	for (unsigned i = 0; i < files->count; i++)
		close(files->file[i].fd);
	files->count = 0;
}

int cv_files_find(const struct cv_files *files, const char *path)
{
	for (unsigned i = 0; path != NULL && i < files->count; i++)
		if (strcmp(files->file[i].path, path) == 0)
			return files->file[i].fd;
	return -1;
}

// Where a text names a copy, and no other whose number begins with its: or NULL.
static char *find_in(char *text, const char *copy)
{
	const size_t length = strlen(copy);
	char *at = strstr(text, copy);

	while (at != NULL && at[length] >= '0' && at[length] <= '9')
		at = strstr(at + length, copy);
	return at;
}

void cv_files_name(const struct cv_files *files, struct cv_error *error)
{
	for (unsigned i = 0; i < files->count; i++) {
		char copy[CV_FILES_PATH_MAX], text[sizeof(error->text)];
		char *at;

		cv_files_path(files->file[i].fd, copy);
		at = find_in(error->text, copy);
		if (at == NULL)
			continue;
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - error->text), error->text,
			files->file[i].path, at + strlen(copy));
		memcpy(error->text, text, sizeof(text));
	}
}
