// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// DPDK's environment, started only if a port needs it: a vhost-user port of ours does not.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Starts it once, with this thread on `core`, on hugepages if there are some. 0, or -1 with a
// message.
int gen_eal_start(uint32_t core, char *error, size_t error_size);

// Stops it if it was started, and removes its files.
void gen_eal_stop(void);
