// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Files that parameters of functions name, as they came to a running node. It opens no files after
// its start: who changes it sends what is in them, in one descriptor, one behind the other. The node
// takes copies, which nobody else writes to.
#ifndef CV_FILES_H
#define CV_FILES_H

#include <stdint.h>

#include <jansson.h>

#include "packet/error.h"

#define CV_FILES_MAX 64 // of one request
#define CV_FILES_BYTES_MAX (UINT64_C(1) << 30) // of all of them
#define CV_FILES_PATH_MAX 32 // bytes of a copy's path

struct cv_file {
	const char *path; // as parameters name it; of the request
	int fd; // the copy
};

struct cv_files {
	struct cv_file file[CV_FILES_MAX];
	unsigned count;
};

// Takes copies: places is {PATH: [OFFSET, LENGTH]} in the descriptor, and must outlive them; NULL:
// there are none. 0, or a negative errno with error set; either way they are to be freed.
int cv_files_take(struct cv_files *files, const json_t *places, int from, struct cv_error *error);
void cv_files_free(struct cv_files *files);

// Copies of others, which must outlive them. 0, or a negative errno with error set; either way they are
// to be freed.
int cv_files_copy(struct cv_files *files, const struct cv_files *from, struct cv_error *error);

// The copy of a file, or -1.
int cv_files_find(const struct cv_files *files, const char *path);

// The path that a copy is opened by.
void cv_files_path(int fd, char path[CV_FILES_PATH_MAX]);

// Copies are called in an error's text what people call them.
void cv_files_name(const struct cv_files *files, struct cv_error *error);

#endif
