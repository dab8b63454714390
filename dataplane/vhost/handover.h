// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A device handed over to another process while its guest runs. What the guest's front end has said is
// said again, as vhost-user's own messages: the other process checks and handles them as a front end's.
// With them go the sockets, and at last, when no worker moves packets any more, where each ring goes on.
// The front end notices nothing: the connection stays, and what it says meanwhile waits in its socket.
#ifndef CV_VHOST_HANDOVER_H
#define CV_VHOST_HANDOVER_H

#include "socket/record.h"
#include "vhost/device.h"

// The process that gives. After give the front end is not listened to; workers go on. 0, or -errno with
// error set: -EBUSY if it is just speaking, or its guest is being migrated.
int cv_vhost_device_give(
	struct cv_vhost_device *device, struct cv_record_sink *sink, struct cv_error *error);

// No worker moves packets afterwards. 0, or -errno with error set.
int cv_vhost_device_freeze(
	struct cv_vhost_device *device, struct cv_record_sink *sink, struct cv_error *error);

// In the loop's thread, after either: everything is as it was before.
void cv_vhost_device_resume(struct cv_vhost_device *device);

// In the loop's thread, after freeze: it is the other process's.
void cv_vhost_device_leave(struct cv_vhost_device *device);

// The process that takes: its device was opened with endpoint.adopts. A record; of its descriptors it
// puts -1 for those that it keeps. 0, or -errno with error set.
int cv_vhost_device_take(
	struct cv_vhost_device *device, struct cv_record *record, struct cv_error *error);

// Whether all is there that it takes to go on. Nothing of the guest's was touched. 0, or -EPROTO with
// error set.
int cv_vhost_device_taken(struct cv_vhost_device *device, struct cv_error *error);

// After taken, once the other process moves nothing any more: packets may move.
void cv_vhost_device_adopt(struct cv_vhost_device *device);

// After that, in the loop's thread: the front end is listened to, or the next one waited for.
void cv_vhost_device_listen(struct cv_vhost_device *device);

#endif
