// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A guest's messages on their way to rte_vhost, around which it calls us: validated (filter.h)
// before it sees them, with files that it would keep closed. A front end whose message is refused,
// or fails in rte_vhost, is disconnected: rte_vhost would go on with what the message left undone.
#ifndef CV_VHOST_MESSAGES_H
#define CV_VHOST_MESSAGES_H

#include <rte_vhost.h>

#include "preload/vhost/filter.h"

struct cv_messages {
	struct cv_filter filter;
	bool acknowledge; // the message at hand, once it is done
};

// In rte_vhost's pre_msg_handle, with its argument: what it is to return. error is set where the front
// end is disconnected; otherwise empty.
enum rte_vhost_msg_result cv_messages_before(
	struct cv_messages *messages, void *context, struct cv_error *error);

// In its post_msg_handle, which it calls unless the message failed.
void cv_messages_after(struct cv_messages *messages, void *context);

#endif
