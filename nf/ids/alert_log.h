// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Alerts as lines of EVE JSON, Suricata's format, to a file or to a unix datagram socket. Workers put
// them into rings of their own; one thread writes them. What finds its ring full, or nobody takes, is
// counted as lost: no worker ever waits.
#ifndef CV_IDS_ALERT_LOG_H
#define CV_IDS_ALERT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/error.h"

// What is told of a packet, or of a stream's bytes.
struct cv_ids_alert {
	uint64_t now; // TSC
	const char *
		rule; // its part of the line: lives until cv_ids_alert_log_flush() after its last use
	uint8_t src[16], dst[16];
	uint16_t sport, dport; // host order; of ICMP type and code
	uint8_t proto; // IP's
	bool v6, blocked, stream;
};

struct cv_ids_alert_log;

// Exactly one of file and socket is a path; it can be written, or made. name: the function's, for
// errors and lines. NULL with error set, or for want of memory.
struct cv_ids_alert_log *cv_ids_alert_log_create(const char *file, const char *socket,
	const char *name, unsigned workers, struct cv_error *error);

// Begins to write. 0 or -errno.
int cv_ids_alert_log_start(struct cv_ids_alert_log *log);

// Returns when all that was added is written, or the log does not write. NULL is allowed.
void cv_ids_alert_log_flush(struct cv_ids_alert_log *log);

// Writes what is left, and ends. NULL is allowed.
void cv_ids_alert_log_destroy(struct cv_ids_alert_log *log);

// Whether it writes there: what a log of another instance must say to be shared.
bool cv_ids_alert_log_is_to(
	const struct cv_ids_alert_log *log, const char *file, const char *socket);

// By the worker alone. False: it is lost.
bool cv_ids_alert_log_add(
	struct cv_ids_alert_log *log, unsigned worker, const struct cv_ids_alert *alert);

// By any thread: alerts that are written, and that are lost.
uint64_t cv_ids_alert_log_written(const struct cv_ids_alert_log *log);
uint64_t cv_ids_alert_log_lost(const struct cv_ids_alert_log *log);

#endif
