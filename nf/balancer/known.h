// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The backends that flows know, of a balancer and of those that take its place: each has a number
// for as long as a flow goes to it, whatever the configuration says.
#ifndef CV_KNOWN_H
#define CV_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "nf/balancer/config.h"

#define CV_KNOWN_MAX (2 * CV_MAGLEV_BACKENDS_MAX)

// What one worker counts of a backend.
struct cv_known_count {
	uint64_t flows, created;
};

struct cv_known {
	unsigned owners; // balancers
	unsigned workers;
	struct cv_address address[CV_KNOWN_MAX]; // by number
	unsigned count; // numbers that were ever given
	struct cv_known_count *counted[CV_WORKERS_MAX]; // by number
	int file; // that goes along to another process; -1: none was asked for
	bool stored; // the file says at any time which numbers there are
};

// NULL: no memory.
struct cv_known *cv_known_create(unsigned workers, int socket);

// One owner less; the last one frees it. NULL is allowed.
void cv_known_release(struct cv_known *known);

// What is known, all workers' flows together, written to a file, and read from one that another process
// wrote, as a worker's. 0; or -EPROTO, and nothing changed. A file that was not written whole is refused.
#define CV_KNOWN_LAYOUT 1 // grows when what is in the file means something else
bool cv_known_write(const struct cv_known *known, int fd);
int cv_known_read(struct cv_known *known, int fd, unsigned worker);

// The same of numbers alone: no flow is known.
int cv_known_read_numbers(struct cv_known *known, int fd);

// Gives backends their numbers: the one that its address has, or one that neither a flow nor one of
// those that run has. running may be NULL. 0 or -ENOSPC.
int cv_known_number(struct cv_known *known, const struct cv_backends *backends,
	const uint16_t *running, unsigned running_count, uint16_t *number);

// Flows of a backend, of all workers.
uint64_t cv_known_flows(const struct cv_known *known, unsigned number);
uint64_t cv_known_created(const struct cv_known *known, unsigned number);

// By the worker: a flow goes to a backend, or no longer.
static inline void cv_known_add(struct cv_known_count *counted)
{
	// With the loads in cv_known_flows() and cv_known_created().
	__atomic_store_n(&counted->flows, counted->flows + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&counted->created, counted->created + 1, __ATOMIC_RELAXED);
}

// A flow that goes to a backend since another process.
static inline void cv_known_again(struct cv_known_count *counted)
{
	__atomic_store_n(&counted->flows, counted->flows + 1, __ATOMIC_RELAXED);
}

static inline void cv_known_remove(struct cv_known_count *counted)
{
	__atomic_store_n(&counted->flows, counted->flows - 1, __ATOMIC_RELAXED);
}

#endif
