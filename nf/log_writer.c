// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/log_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>

#define RING 4096 // records of a worker; a power of two
#define PERIOD_NS 20000000

struct ring {
	uint32_t head; // written by the worker
	uint64_t lost;
	uint32_t tail __rte_cache_aligned; // written by the writer
	uint8_t records[] __rte_cache_aligned;
};

struct cv_log_writer {
	const struct cv_log_writer_ops *ops;
	void *owner;
	unsigned workers;
	size_t stride; // bytes of a ring
	uint8_t *rings;
	uint64_t written, failed; // by the writer
	pthread_t thread;
	bool started;
	bool end;
};

static struct ring *ring_of(const struct cv_log_writer *writer, unsigned worker)
{
	return (struct ring *)(writer->rings + worker * writer->stride);
}

static uint8_t *record_of(const struct cv_log_writer *writer, struct ring *ring, uint32_t at)
{
	return ring->records + at % RING * writer->ops->record_bytes;
}

struct cv_log_writer *cv_log_writer_create(
	const struct cv_log_writer_ops *ops, void *owner, unsigned workers)
{
	struct cv_log_writer *writer = calloc(1, sizeof(*writer));

	if (writer == NULL)
		return NULL;
	*writer = (struct cv_log_writer){
		.ops = ops,
		.owner = owner,
		.workers = workers,
		.stride = RTE_ALIGN_CEIL(
			sizeof(struct ring) + RING * ops->record_bytes, RTE_CACHE_LINE_SIZE),
	};
	writer->rings = aligned_alloc(RTE_CACHE_LINE_SIZE, workers * writer->stride);
	if (writer->rings == NULL) {
		free(writer);
		return NULL;
	}
	memset(writer->rings, 0, workers * writer->stride);
	return writer;
}

static void count(uint64_t *counter)
{
	// Pairs with the loads in cv_log_writer_written() and _lost(): whole values.
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static void drain(struct cv_log_writer *writer)
{
	bool any = false;

	for (unsigned i = 0; i < writer->workers; i++) {
		struct ring *ring = ring_of(writer, i);
		// Pairs with the release store in cv_log_writer_add().
		const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		for (uint32_t tail = ring->tail; tail != head; tail++) {
			const bool done =
				writer->ops->write(writer->owner, i, record_of(writer, ring, tail));

			count(done ? &writer->written : &writer->failed);
			any = true;
			// Pairs with the acquire loads in cv_log_writer_add() and _wait(): the place
			// may be written again, and what the record points to be gone.
			__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
		}
	}
	if (any && writer->ops->flush != NULL && !writer->ops->flush(writer->owner))
		count(&writer->failed);
}

static void *write_on(void *argument)
{
	struct cv_log_writer *writer = argument;

	// Pairs with the release store in cv_log_writer_destroy().
	while (!__atomic_load_n(&writer->end, __ATOMIC_ACQUIRE)) {
		drain(writer);
		nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
	}
	return NULL;
}

int cv_log_writer_start(struct cv_log_writer *writer)
{
	const int rc = -pthread_create(&writer->thread, NULL, write_on, writer);

	writer->started = rc == 0;
	return rc;
}

void cv_log_writer_wait(const struct cv_log_writer *writer)
{
	for (unsigned i = 0; writer->started && i < writer->workers; i++) {
		const struct ring *ring = ring_of(writer, i);
		const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		// Pairs with the release store in drain().
		while ((int32_t)(head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) > 0)
			nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS / 8}, NULL);
	}
}

void cv_log_writer_destroy(struct cv_log_writer *writer)
{
	if (writer == NULL)
		return;
	if (writer->started) {
		// Pairs with the acquire load in write_on().
		__atomic_store_n(&writer->end, true, __ATOMIC_RELEASE);
		pthread_join(writer->thread, NULL);
		drain(writer);
	}
	free(writer->rings);
	free(writer);
}

bool cv_log_writer_add(struct cv_log_writer *writer, unsigned worker, const void *record)
{
	struct ring *ring = ring_of(writer, worker);
	const uint32_t head = ring->head;

	// Pairs with the release store in drain().
	if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == RING) {
		count(&ring->lost);
		return false;
	}
	memcpy(record_of(writer, ring, head), record, writer->ops->record_bytes);
	// Pairs with the acquire load in drain().
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t cv_log_writer_written(const struct cv_log_writer *writer)
{
	return __atomic_load_n(&writer->written, __ATOMIC_RELAXED);
}

uint64_t cv_log_writer_lost(const struct cv_log_writer *writer)
{
	uint64_t lost = __atomic_load_n(&writer->failed, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < writer->workers; i++)
		lost += __atomic_load_n(&ring_of(writer, i)->lost, __ATOMIC_RELAXED);
	return lost;
}
