// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A start of the EAL that does not sleep for 100 ms.
#ifndef CV_EAL_TSC_H
#define CV_EAL_TSC_H

// rte_eal_init(), and what it returns. Where the processor does not tell its TSC's frequency, DPDK
// measures it during a sleep of 100 ms, most of a node's start. Here it sleeps for 10 ms: it rounds
// to 10 MHz, and the clock is read in nanoseconds.
int cv_eal_init(int argc, char **argv);

// How far rte_get_tsc_hz() is from what the clock said during all of cv_eal_init(), 0.01 for 1 %: more
// than that if this process lost its core just between the two that DPDK reads.
double cv_eal_tsc_error(void);

#endif
