// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A node's standby in a plan: where it is, or that this node is one, and the key that both have
// (docs/handover.md).
#ifndef CV_STANDBY_CONFIG_H
#define CV_STANDBY_CONFIG_H

#include "config/params.h"
#include "daemon/peer/target.h"
#include "daemon/peer/tls.h"

struct cv_standby_config {
	struct cv_peer_target to; // its flows go there; tcp_port 0: nowhere
	struct cv_peer_target
		listen; // it waits there for an active node's; tcp_port 0: it does not wait
	const char *key_file; // NULL: the plan has no standby
	unsigned take_over_ms; // of silence, until it forwards by itself; 0: when it is told to
};

extern const struct cv_param cv_standby_params[];

// Whether the standby of a plan, if it has one, is whole. 0, or -EINVAL with error set.
int cv_standby_check(
	const struct cv_standby_config *config, const json_t *plan, const struct cv_where *top);

// TLS by the key in the file. NULL with error set.
struct cv_peer_tls_context *cv_standby_tls(
	const struct cv_standby_config *config, struct cv_error *error);

#endif
