// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Files that functions append lines to, and the time of what they tell of.
#ifndef CV_LOG_FILE_H
#define CV_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

// Whether a regular file can be appended to, or made: nothing else, for a pipe may keep its writer
// waiting. 0 or an errno.
int cv_log_file_check(const char *path);

// Opens it, or makes it. A descriptor or -errno. Never waits.
int cv_log_file_open(const char *path);

// Microseconds since 1970 of a TSC value, which is in the past; and up to the second as text
// ("2026-11-23T09:00:00", size 20 at least) at date.
uint64_t cv_log_file_time(uint64_t tsc, char *date, size_t size);

#endif
