// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_malloc.h>

// As it is in a file.
struct written {
	uint64_t count; // and 1: one that was not written has 0
	struct {
		struct cv_address address;
		struct cv_known_count count;
	} known[CV_KNOWN_MAX]; // by number
};

struct cv_known *cv_known_create(unsigned workers, int socket)
{
	struct cv_known *known = calloc(1, sizeof(*known));

	if (known == NULL)
		return NULL;
	known->owners = 1;
	known->file = -1;
	for (; known->workers < workers; known->workers++) {
		struct cv_known_count *counted = rte_zmalloc_socket(
			"balancer", CV_KNOWN_MAX * sizeof(*counted), RTE_CACHE_LINE_SIZE, socket);

		if (counted == NULL) {
			cv_known_release(known);
			return NULL;
		}
		known->counted[known->workers] = counted;
	}
	return known;
}

void cv_known_release(struct cv_known *known)
{
	if (known == NULL || --known->owners > 0)
		return;
	for (unsigned i = 0; i < known->workers; i++)
		rte_free(known->counted[i]);
	if (known->file >= 0)
		close(known->file);
	free(known);
}

uint64_t cv_known_flows(const struct cv_known *known, unsigned number)
{
	uint64_t flows = 0;

	for (unsigned i = 0; i < known->workers; i++)
		flows += __atomic_load_n(&known->counted[i][number].flows, __ATOMIC_RELAXED);
	return flows;
}

uint64_t cv_known_created(const struct cv_known *known, unsigned number)
{
	uint64_t created = 0;

	for (unsigned i = 0; i < known->workers; i++)
		created += __atomic_load_n(&known->counted[i][number].created, __ATOMIC_RELAXED);
	return created;
}

// The number of an address, or the count.
static unsigned find(const struct cv_known *known, const struct cv_address *address)
{
	unsigned number = 0;

	while (number < known->count && cv_address_compare(&known->address[number], address) != 0)
		number++;
	return number;
}

// Gives an address a number that nobody has.
static int add(struct cv_known *known, const struct cv_address *address, const bool *taken)
{
	unsigned number = 0;

	while (number < CV_KNOWN_MAX && (taken[number] || cv_known_flows(known, number) != 0))
		number++;
	if (number == CV_KNOWN_MAX)
		return -ENOSPC;
	if (number >= known->count)
		known->count = number + 1;
	known->address[number] = *address;
	for (unsigned i = 0; i < known->workers; i++) // nobody counts there
		known->counted[i][number] = (struct cv_known_count){.flows = 0};
	return (int)number;
}

int cv_known_number(struct cv_known *known, const struct cv_backends *backends,
	const uint16_t *running, unsigned running_count, uint16_t *number)
{
	bool taken[CV_KNOWN_MAX] = {false};

	for (unsigned i = 0; i < running_count; i++)
		taken[running[i]] = true;
	for (unsigned i = 0; i < backends->count; i++) {
		const unsigned known_as = find(known, &backends->list[i].address);

		number[i] = (uint16_t)known_as;
		if (known_as < known->count)
			taken[known_as] = true;
		else
			number[i] = UINT16_MAX;
	}
	for (unsigned i = 0; i < backends->count; i++) {
		int added;

		if (number[i] != UINT16_MAX)
			continue;
		added = add(known, &backends->list[i].address, taken);
		if (added < 0)
			return added;
		number[i] = (uint16_t)added;
		taken[added] = true;
	}
	if (known->stored)
		cv_known_write(known, known->file);
	return 0;
}

bool cv_known_write(const struct cv_known *known, int fd)
{
	const size_t bytes = offsetof(struct written, known[known->count]);
	struct written *to = calloc(1, bytes);
	bool whole;

	if (to == NULL)
		return false;
	to->count = known->count + 1u;
	for (unsigned i = 0; i < known->count; i++) {
		to->known[i].address = known->address[i];
		to->known[i].count = (struct cv_known_count){
			cv_known_flows(known, i), cv_known_created(known, i)};
	}
	whole = pwrite(fd, to, bytes, 0) == (ssize_t)bytes;
	free(to);
	if (!whole && ftruncate(fd, 0) != 0) // an empty one is refused
		return false;
	return whole;
}

// NULL: it was not written whole. To be freed.
static struct written *read_file(int fd)
{
	struct written *from = calloc(1, sizeof(*from));
	const ssize_t bytes = from == NULL ? -1 : pread(fd, from, sizeof(*from), 0);

	if (bytes >= (ssize_t)sizeof(from->count) && from->count != 0 &&
		from->count <= CV_KNOWN_MAX + 1u &&
		bytes >= (ssize_t)offsetof(struct written, known[from->count - 1]))
		return from;
	free(from);
	return NULL;
}

static void take_numbers(struct cv_known *known, const struct written *from)
{
	known->count = (unsigned)(from->count - 1);
	for (unsigned i = 0; i < known->count; i++) {
		uint8_t v6;

		memcpy(&v6, &from->known[i].address.v6, 1); // any byte
		known->address[i] = from->known[i].address;
		known->address[i].v6 = v6 != 0;
	}
}

int cv_known_read(struct cv_known *known, int fd, unsigned worker)
{
	struct written *from = read_file(fd);

	if (from == NULL)
		return -EPROTO;
	take_numbers(known, from);
	for (unsigned i = 0; i < known->count; i++)
		known->counted[worker][i] = from->known[i].count;
	free(from);
	return 0;
}

int cv_known_read_numbers(struct cv_known *known, int fd)
{
	struct written *from = read_file(fd);

	if (from == NULL)
		return -EPROTO;
	take_numbers(known, from);
	free(from);
	return 0;
}
