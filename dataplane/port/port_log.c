// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/port_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void cv_port_log(struct cv_port *port, const char *format, ...)
{
	enum cv_log_what what;
	uint64_t before;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	what = cv_log_limit(&port->log, now_ns(), &before);
	if (before > 0)
		fprintf(stderr, "port %s: %" PRIu64 " more lines like these\n", port->name, before);
	if (what == CV_LOG_LINE)
		fprintf(stderr, "port %s: %s\n", port->name, text);
	if (what == CV_LOG_LAST)
		fprintf(stderr, "port %s: %d lines in %d s: more are only counted\n", port->name,
			CV_LOG_LIMIT_LINES, (int)(CV_LOG_LIMIT_NS / 1000000000));
	pthread_mutex_unlock(&lock);
}
