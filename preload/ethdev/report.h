// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the library says: of each port when it is put in place, by telemetry while the program
// runs, and at its end.
#ifndef CV_ETHDEV_REPORT_H
#define CV_ETHDEV_REPORT_H

#include <stdio.h>

#include <rte_ethdev.h>

#include "preload/ethdev/config.h"

// Before anything else. of stays where it is.
void cv_report_begin(const struct cv_ethdev_config *of);

// A port has our functions now.
void cv_report_hooked(uint16_t id, const struct rte_eth_dev_info *info);

// What all ports did since the program began, one JSON object.
void cv_report_print(FILE *file);

// What somebody should know who sees few packets come out: nothing, or one line. Of all ports.
void cv_report_advice(FILE *file, uint64_t viewed, uint64_t received, uint64_t sent);

#endif
