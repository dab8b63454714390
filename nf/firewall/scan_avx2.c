// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compiled for AVX2 (meson.build); called where there is AVX2.
#define CV_FIREWALL_SCAN_RUN cv_firewall_scan_run_avx2
#include "nf/firewall/scan_run.h"
