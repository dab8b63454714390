// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A counter with one writer and any number of readers, who may be an update behind.
#ifndef CV_COUNTER_H
#define CV_COUNTER_H

#include <stdint.h>

#include "packet/compiler.h"

// The only writer of *counter adds to it.
static CV_INLINE void cv_count(uint64_t *counter, uint64_t more)
{
	// Pairs with cv_counted(): whole values, in no particular order.
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static CV_INLINE uint64_t cv_counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
