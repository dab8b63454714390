// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/block_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "nf/log_file.h"
#include "nf/nat/count.h"

#define RING 4096 // events; a power of two
#define PERIOD_NS 50000000
#define NAME_MAX_BYTES 64

struct ring {
	uint32_t head; // written by the worker
	uint64_t lost;
	uint32_t tail __rte_cache_aligned; // written by the writer
	struct cv_nat_block_event event[RING];
};

struct cv_nat_block_log {
	FILE *file; // NULL: not yet open
	char *path;
	char name[NAME_MAX_BYTES];
	unsigned workers;
	struct ring *rings;
	uint64_t failed; // events that the file did not take
	pthread_t thread;
	bool started;
	bool end;
};

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
	log->workers = workers;
	log->path = strdup(path);
	log->rings = aligned_alloc(RTE_CACHE_LINE_SIZE, workers * sizeof(*log->rings));
	if (log->path == NULL || log->rings == NULL) {
		cv_nat_block_log_destroy(log);
		return NULL;
	}
	memset(log->rings, 0, workers * sizeof(*log->rings));
	return log;
}

static void write_line(
	struct cv_nat_block_log *log, unsigned worker, const struct cv_nat_block_event *event)
{
	const uint8_t *in = (const uint8_t *)&event->subscriber;
	const uint8_t *out = (const uint8_t *)&event->address;
	char date[32];
	const uint64_t us = cv_log_file_time(event->now, date, sizeof(date));

	if (fprintf(log->file,
		    "{\"time\": \"%s.%03uZ\", \"function\": \"%s\", \"worker\": %u, \"event\": "
		    "\"%s\", "
		    "\"subscriber\": \"%u.%u.%u.%u\", \"external\": \"%u.%u.%u.%u\", "
		    "\"first_port\": %u, \"last_port\": %u}\n",
		    date, (unsigned)(us / 1000 % 1000), log->name, worker,
		    event->taken ? "taken" : "given_back", in[0], in[1], in[2], in[3], out[0],
		    out[1], out[2], out[3], event->first_port, event->last_port) < 0)
		cv_nat_count(&log->failed, 1);
}

static void drain(struct cv_nat_block_log *log)
{
	bool any = false;

	for (unsigned i = 0; i < log->workers; i++) {
		struct ring *ring = &log->rings[i];
		// Pairs with the release store in cv_nat_block_log_add().
		const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		for (uint32_t tail = ring->tail; tail != head; tail++) {
			write_line(log, i, &ring->event[tail % RING]);
			any = true;
			// Pairs with the acquire load there: the place may be written again.
			__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
		}
	}
	if (any && fflush(log->file) != 0)
		cv_nat_count(&log->failed, 1);
}

static void *write_on(void *argument)
{
	struct cv_nat_block_log *log = argument;

	// Pairs with the release store in cv_nat_block_log_destroy().
	while (!__atomic_load_n(&log->end, __ATOMIC_ACQUIRE)) {
		drain(log);
		nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
	}
	return NULL;
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
	rc = -pthread_create(&log->thread, NULL, write_on, log);
	log->started = rc == 0;
	return rc;
}

void cv_nat_block_log_destroy(struct cv_nat_block_log *log)
{
	if (log == NULL)
		return;
	if (log->started) {
		// Pairs with the acquire load in write_on().
		__atomic_store_n(&log->end, true, __ATOMIC_RELEASE);
		pthread_join(log->thread, NULL);
	}
	if (log->file != NULL) {
		drain(log);
		fclose(log->file);
	}
	free(log->path);
	free(log->rings);
	free(log);
}

void cv_nat_block_log_add(
	struct cv_nat_block_log *log, unsigned worker, const struct cv_nat_block_event *event)
{
	struct ring *ring = &log->rings[worker];
	const uint32_t head = ring->head;

	// Pairs with the release store in drain().
	if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == RING) {
		cv_nat_count(&ring->lost, 1);
		return;
	}
	ring->event[head % RING] = *event;
	// Pairs with the acquire load in drain().
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

uint64_t cv_nat_block_log_lost(const struct cv_nat_block_log *log)
{
	uint64_t lost = cv_nat_counted(&log->failed);

	for (unsigned i = 0; i < log->workers; i++)
		lost += cv_nat_counted(&log->rings[i].lost);
	return lost;
}
