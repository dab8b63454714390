// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/known.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

struct cv_known *cv_known_create(unsigned workers, int socket)
{
	struct cv_known *known = calloc(1, sizeof(*known));

	if (known == NULL)
		return NULL;
	known->owners = 1;
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
	return 0;
}
