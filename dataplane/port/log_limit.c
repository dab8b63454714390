// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/log_limit.h"

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
