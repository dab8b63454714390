// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_vect.h>

#define CV_ROUTER_VALIDATE cv_router_validate_baseline
#include "nf/router/validate_run.h"

cv_router_validate *cv_router_validate_best(void)
{
#ifdef CV_HAVE_AVX2
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
		rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256)
		return cv_router_validate_avx2;
#endif
	return cv_router_validate_baseline;
}
