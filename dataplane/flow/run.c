// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#define CV_FLOW_RUN cv_flow_run_baseline
#include "flow/run.h"

uint16_t cv_flow_process(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	struct cv_flow_group *group = instance;

#ifdef CV_HAVE_AES
	if (CV_LIKELY(group->zone->secret.aes))
		return cv_flow_run_aes(group, worker, views, verdicts, n);
#endif
	return cv_flow_run_baseline(group, worker, views, verdicts, n);
}
