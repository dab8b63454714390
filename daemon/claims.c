// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/claims.h"

#include <errno.h>
#include <stdlib.h>

struct claimed {
	struct cv_nf_claim claim;
	unsigned claimant;
};

static int compare(const void *a, const void *b)
{
	const struct claimed *x = a, *y = b;
	const int addresses = cv_address_compare(&x->claim.address, &y->claim.address);

	if (addresses != 0)
		return addresses;
	if (x->claim.shared != y->claim.shared) // last, so that the others are neighbours
		return x->claim.shared - y->claim.shared;
	return (int)x->claimant - (int)y->claimant;
}

static size_t claims_of(const struct cv_claimant *of, struct cv_nf_claim *claims, size_t max)
{
	return of->nf->claims == NULL ? 0 : of->nf->claims(of->instance, claims, max);
}

// Adds those of one function behind those before. Returns how many there are then.
static size_t collect(const struct cv_claimant *claimants, unsigned index, struct claimed *all,
	size_t count, struct cv_nf_claim *room)
{
	const size_t own = claims_of(&claimants[index], room, SIZE_MAX);

	for (size_t i = 0; i < own; i++)
		all[count + i] = (struct claimed){room[i], index};
	return count + own;
}

// Sorted, equal ones are neighbours.
static int refuse_equal(const struct cv_claimant *claimants, const struct claimed *all,
	size_t count, struct cv_error *error)
{
	char text[CV_PREFIX_TEXT];

	for (size_t i = 1; i < count; i++) {
		const struct claimed *one = &all[i - 1], *other = &all[i];

		if (one->claimant == other->claimant || one->claim.shared != other->claim.shared ||
			cv_address_compare(&one->claim.address, &other->claim.address) != 0)
			continue;
		cv_error_set(error,
			"functions \"%s\" and \"%s\" both have the address %s; give each its own, "
			"or write share_address where a nat has that of its gateway",
			claimants[one->claimant].name, claimants[other->claimant].name,
			cv_address_text(&one->claim.address, text));
		return -EINVAL;
	}
	return 0;
}

int cv_claims_check(const struct cv_claimant *claimants, unsigned count, struct cv_error *error)
{
	struct cv_nf_claim *room;
	struct claimed *all;
	size_t most = 0, sum = 0, added = 0;
	int rc = -ENOMEM;

	for (unsigned i = 0; i < count; i++) {
		const size_t own = claims_of(&claimants[i], NULL, 0);

		most = own > most ? own : most;
		sum += own;
	}
	room = calloc(most + 1, sizeof(*room));
	all = calloc(sum + 1, sizeof(*all));
	if (room != NULL && all != NULL) {
		for (unsigned i = 0; i < count; i++)
			added = collect(claimants, i, all, added, room);
		qsort(all, added, sizeof(*all), compare);
		rc = refuse_equal(claimants, all, added, error);
	}
	free(room);
	free(all);
	return rc;
}
