// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Counters with one writer, a worker, that info() reads meanwhile.
#ifndef CV_NAT_COUNT_H
#define CV_NAT_COUNT_H

#include <stdint.h>

static inline void cv_nat_count(uint64_t *counter, int64_t more)
{
	// Pairs with cv_nat_counted(): whole values, in no particular order.
	__atomic_store_n(counter, *counter + (uint64_t)more, __ATOMIC_RELAXED);
}

static inline uint64_t cv_nat_counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
