// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/log_limit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum cv_log_what cv_log_limit(struct cv_log_limit *limit, uint64_t now_ns, uint64_t *before)
{
	*before = 0;
	if (limit->lines == 0 || now_ns - limit->began_ns >= CV_LOG_LIMIT_NS) {
		*before = limit->left_out;
		*limit = (struct cv_log_limit){.began_ns = now_ns};
	}
	if (limit->lines < CV_LOG_LIMIT_LINES) {
		limit->lines++;
		return CV_LOG_LINE;
	}
	return limit->left_out++ == 0 ? CV_LOG_LAST : CV_LOG_NOTHING;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void cv_log_limited(struct cv_log_limit *limit, const char *kind, const char *name,
	const char *format, va_list args)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all limits
	enum cv_log_what what;
	uint64_t before;
	char text[512];

	vsnprintf(text, sizeof(text), format, args);
	pthread_mutex_lock(&lock);
	what = cv_log_limit(limit, now_ns(), &before);
	if (before > 0)
		fprintf(stderr, "%s %s: %" PRIu64 " more lines like these\n", kind, name, before);
	if (what == CV_LOG_LINE)
		fprintf(stderr, "%s %s: %s\n", kind, name, text);
	if (what == CV_LOG_LAST)
		fprintf(stderr, "%s %s: %d lines in %d s: more are only counted\n", kind, name,
			CV_LOG_LIMIT_LINES, (int)(CV_LOG_LIMIT_NS / 1000000000));
	pthread_mutex_unlock(&lock);
}
