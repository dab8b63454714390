// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compiled for AVX2 (meson.build); called where there is AVX2.
#define CV_ROUTER_VALIDATE cv_router_validate_avx2
#include "nf/router/validate_run.h"
