// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a sanitizer's build reads before each source: nothing is inlined by force. Such a build is
// for finding mistakes, not for speed, and each copy of a function is instrumented and compiled
// anew: with the copies it takes twice as long.
#ifndef CV_SANITIZED_H
#define CV_SANITIZED_H

#define CV_INLINE inline

#if __has_include(<rte_common.h>)
#include <rte_common.h>
#undef __rte_always_inline
#define __rte_always_inline inline
#endif

#endif
