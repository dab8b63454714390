// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The operators of a compiled filter, beside the indices of its terms.
#ifndef CV_FILTER_OPS_H
#define CV_FILTER_OPS_H

#include "chain/filter.h"

enum { CV_FILTER_NOT = CV_FILTER_TERMS_MAX, CV_FILTER_AND, CV_FILTER_OR };

// Values that wait while an expression is read from left to right: each parenthesis adds one, each
// qualifier before another (`tcp port 80`) one.
#define CV_FILTER_STACK_MAX (2 * CV_FILTER_DEPTH_MAX + 4)

#endif
