// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The lock of something that workers use and that another thread may take away from them: a queue
// whose peer changes its memory, or goes.
#ifndef CV_REVOCABLE_H
#define CV_REVOCABLE_H

#include <stdbool.h>

#include <rte_spinlock.h>

#include "packet/compiler.h"

struct cv_revocable {
	rte_spinlock_t lock;
	bool ready; // atomic: what the lock is of may be used, by who holds it
};

// Takes the lock, if there is something to use.
static CV_INLINE bool cv_revocable_enter(struct cv_revocable *it)
{
	if (!__atomic_load_n(&it->ready, __ATOMIC_RELAXED))
		return false;
	rte_spinlock_lock(&it->lock);
	// It may have been revoked just before.
	if (CV_LIKELY(__atomic_load_n(&it->ready, __ATOMIC_RELAXED)))
		return true;
	rte_spinlock_unlock(&it->lock);
	return false;
}

static CV_INLINE void cv_revocable_leave(struct cv_revocable *it)
{
	rte_spinlock_unlock(&it->lock);
}

#endif
