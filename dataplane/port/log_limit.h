// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How many lines one source may write: a peer that connects and leaves in a loop must not fill a
// disk.
#ifndef CV_LOG_LIMIT_H
#define CV_LOG_LIMIT_H

#include <stdarg.h>
#include <stdint.h>

#define CV_LOG_LIMIT_LINES 10
#define CV_LOG_LIMIT_NS 10000000000ull // in this time

// All zero: nothing written yet.
struct cv_log_limit {
	uint64_t began_ns; // of the first line of this period
	uint64_t left_out; // lines since then
	unsigned lines; // written since then
};

enum cv_log_what {
	CV_LOG_LINE, // write the line
	CV_LOG_LAST, // write that the next ones are left out, not the line
	CV_LOG_NOTHING,
};

// What to do with a line at a time that never goes back. *before: how many lines were left out in
// the period that has ended with this one, to be said first, once.
enum cv_log_what cv_log_limit(struct cv_log_limit *limit, uint64_t now_ns, uint64_t *before);

// Writes "KIND NAME: line" to stderr, or that more are only counted, as the limit says now.
__attribute__((format(printf, 4, 0))) void cv_log_limited(struct cv_log_limit *limit,
	const char *kind, const char *name, const char *format, va_list args);

#endif
