// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/block_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nf/log_file.h"
#include "nf/log_writer.h"

#define NAME_MAX_BYTES 64

struct cv_nat_block_log {
	FILE *file; // NULL: not yet open
	char *path;
	char name[NAME_MAX_BYTES];
	struct cv_log_writer *writer;
};

static bool write_line(void *owner, unsigned worker, const void *record)
{
	const struct cv_nat_block_log *log = owner;
	const struct cv_nat_block_event *event = record;
	const uint8_t *in = (const uint8_t *)&event->subscriber;
	const uint8_t *out = (const uint8_t *)&event->address;
	char date[32];
	const uint64_t us = cv_log_file_time(event->now, date, sizeof(date));

	return fprintf(log->file,
		       "{\"time\": \"%s.%03uZ\", \"function\": \"%s\", \"worker\": %u, \"event\": "
		       "\"%s\", "
		       "\"subscriber\": \"%u.%u.%u.%u\", \"external\": \"%u.%u.%u.%u\", "
		       "\"first_port\": %u, \"last_port\": %u}\n",
		       date, (unsigned)(us / 1000 % 1000), log->name, worker,
		       event->taken ? "taken" : "given_back", in[0], in[1], in[2], in[3], out[0],
		       out[1], out[2], out[3], event->first_port, event->last_port) >= 0;
}

static bool flush(void *owner)
{
	const struct cv_nat_block_log *log = owner;

	return fflush(log->file) == 0;
}

static const struct cv_log_writer_ops ops = {
	.record_bytes = sizeof(struct cv_nat_block_event), .write = write_line, .flush = flush};

struct cv_nat_block_log *cv_nat_block_log_create(
	const char *path, const char *name, unsigned workers, struct cv_error *error)
{
	struct cv_nat_block_log *log;
	const int why = cv_log_file_check(path);

	if (why != 0) {
		cv_error_set(error, "%s: block_log: \"%s\": cannot be written: %s", name, path,
			strerror(why));
		return NULL;
	}
	log = calloc(1, sizeof(*log));
	if (log == NULL)
		return NULL;
	snprintf(log->name, sizeof(log->name), "%s", name);
	log->path = strdup(path);
	log->writer = cv_log_writer_create(&ops, log, workers);
	if (log->path == NULL || log->writer == NULL) {
		cv_nat_block_log_destroy(log);
		return NULL;
	}
	return log;
}

int cv_nat_block_log_start(struct cv_nat_block_log *log)
{
	const int file = cv_log_file_open(log->path);
	int rc;

	if (file < 0)
		return file;
	log->file = fdopen(file, "a");
	if (log->file == NULL) {
		rc = -errno;
		close(file);
		return rc;
	}
	return cv_log_writer_start(log->writer);
}

void cv_nat_block_log_destroy(struct cv_nat_block_log *log)
{
	if (log == NULL)
		return;
	cv_log_writer_destroy(log->writer);
	if (log->file != NULL)
		fclose(log->file);
	free(log->path);
	free(log);
}

void cv_nat_block_log_add(
	struct cv_nat_block_log *log, unsigned worker, const struct cv_nat_block_event *event)
{
	cv_log_writer_add(log->writer, worker, event);
}

uint64_t cv_nat_block_log_lost(const struct cv_nat_block_log *log)
{
	return cv_log_writer_lost(log->writer);
}
