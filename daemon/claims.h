// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The addresses that functions take for their own: each is one function's.
#ifndef CV_CLAIMS_H
#define CV_CLAIMS_H

#include "chain/nf.h"

struct cv_claimant {
	const struct cv_nf *nf;
	const void *instance;
	const char *name;
};

// Returns 0; -EINVAL with error set: two functions have the same address, and neither says that it shares
// it; or -ENOMEM.
int cv_claims_check(const struct cv_claimant *claimants, unsigned count, struct cv_error *error);

#endif
