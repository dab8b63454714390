// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The TSC's frequency, for all of a program. Where the processor does not tell it, DPDK measures it
// in a sleep of 100 ms, most of a node's start, between two clocks each of which it reads once: who
// loses the core between these gets a wrong one. The programs that link this file have a
// rte_get_tsc_hz() of their own, which DPDK's libraries call too: against CLOCK_MONOTONIC_RAW, from
// when the program was loaded until somebody asks for the first time, 10 ms at least.
#ifndef CV_EAL_TSC_H
#define CV_EAL_TSC_H

// rte_eal_init(), and what it returns, without DPDK's sleep.
int cv_eal_init(int argc, char **argv);

#endif
