// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Records that workers hand over without waiting, and a thread that writes them: a ring for each
// worker, which loses what comes while it is full.
#ifndef CV_LOG_WRITER_H
#define CV_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cv_log_writer;

// What its owner does with records, on the writer's thread.
struct cv_log_writer_ops {
	size_t record_bytes;
	bool (*write)(void *owner, unsigned worker, const void *record); // false: it is lost
	bool (*flush)(void *owner); // behind some of them; false: one is lost. NULL: nothing to do
};

// Makes a writer, whose thread does not run yet. ops and owner outlive it. NULL: no memory.
struct cv_log_writer *cv_log_writer_create(
	const struct cv_log_writer_ops *ops, void *owner, unsigned workers);

// Starts its thread. 0 or -errno.
int cv_log_writer_start(struct cv_log_writer *writer);

// Returns when all that was added is written, or the thread does not run.
void cv_log_writer_wait(const struct cv_log_writer *writer);

// Writes what is left, if the thread ever ran, and ends it. NULL is allowed.
void cv_log_writer_destroy(struct cv_log_writer *writer);

// Of the worker alone: copies a record of record_bytes. False: the ring is full, the record is lost.
bool cv_log_writer_add(struct cv_log_writer *writer, unsigned worker, const void *record);

// How many records were written and lost until now. Any thread.
uint64_t cv_log_writer_written(const struct cv_log_writer *writer);
uint64_t cv_log_writer_lost(const struct cv_log_writer *writer);

#endif
