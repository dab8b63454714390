// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/handover.h"

#include <errno.h>

static int give(struct cv_port *port, struct cv_record_sink *sink, struct cv_error *error)
{
	return 0;
}

static int take(struct cv_port *port, struct cv_record *record, struct cv_error *error)
{
	cv_error_set(error, "the running node says something of it, which has no peer");
	return -EPROTO;
}

static int taken(struct cv_port *port, struct cv_error *error)
{
	return 0;
}

static void nothing(struct cv_port *port)
{
}

const struct cv_port_handover cv_port_handover_nothing = {
	.give = give,
	.freeze = give,
	.resume = nothing,
	.leave = nothing,
	.take = take,
	.taken = taken,
	.adopt = nothing,
	.listen = nothing,
};
