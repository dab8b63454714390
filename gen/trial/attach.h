// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Peers come and go: waiting until each port of a tester has one.
#ifndef GEN_TRIAL_ATTACH_H
#define GEN_TRIAL_ATTACH_H

#include "gen/trial/trial.h"

// Whether every port's peer is there now.
bool gen_attached(const struct gen_tester *tester);

// Attaches the ports whose peer is away, for at most `patience_s` (0: one look each). false: not
// all of them, or a signal asked for the end; error says which port.
bool gen_attach(const struct gen_tester *tester, double patience_s, struct cv_error *error);

#endif
