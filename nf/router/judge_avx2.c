// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compiled for AVX2 (meson.build); called where there is AVX2.
#define CV_ROUTER_JUDGE cv_router_judge_avx2
#include "nf/router/judge_run.h"
