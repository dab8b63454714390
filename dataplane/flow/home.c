// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#define CV_FLOW_HOME_RUN cv_flow_home_run_baseline
#include "flow/home_run.h"

#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "flow/parse.h"
#include "flow/rewrite.h"
#include "flow/zone.h"

#define TICKS_PER_S 32 // at least
#define FRAGMENT_TICKS (30 * TICKS_PER_S) // 15 to 30 s, as the flow path remembers them

_Static_assert(
	CV_WORKERS_MAX <= CV_FLOW_HOME_BY_SOURCE, "a worker is told from what says which one");

struct cv_flow_home *cv_flow_home_create(const struct cv_flow_homes *homes, unsigned self,
	const struct cv_nf *nf, const void *instance, uint64_t tsc_hz, struct cv_ring *const *to)
{
	struct cv_flow_home *home = calloc(1, sizeof(*home));

	if (home == NULL)
		return NULL;
	if (to != NULL)
		home->foreign = cv_flow_foreign_create(homes->workers, homes->count, to);
	if (to != NULL && home->foreign == NULL) {
		free(home);
		return NULL;
	}
	home->homes = homes;
	home->flow = nf != NULL ? nf->flow : NULL;
	home->instance = instance;
	home->self = (uint8_t)self;
	while (tsc_hz >> (home->shift + 1) >= TICKS_PER_S)
		home->shift++;
	return home;
}

void cv_flow_home_destroy(struct cv_flow_home *home)
{
	if (home != NULL)
		cv_flow_foreign_destroy(home->foreign);
	free(home);
}

void cv_flow_home_read(struct cv_flow_home *home, unsigned worker, struct cv_flow_zone *zone)
{
	if (worker == home->self)
		home->own = zone;
	else if (home->foreign != NULL)
		cv_flow_foreign_read(home->foreign, worker, zone);
}

const void *cv_flow_home_instance(const struct cv_flow_home *home)
{
	return home->instance;
}

void cv_flow_home_replace(struct cv_flow_home *home, const void *instance)
{
	home->instance = instance;
}

uint8_t cv_flow_home_of_address(
	const struct cv_flow_homes *homes, uint8_t family, const union cv_flow_address *address)
{
	uint8_t key[16];

	if (family == 6)
		memcpy(key, address->ipv6, sizeof(key));
	else
		cv_flow_key_write(key, address->ipv4, 0, 0, 0, 0);
	return cv_flow_homes_at(homes, cv_flow_hash(&homes->secret, key, sizeof(key)));
}

static uint8_t home_by_tuple(const struct cv_flow_homes *homes, const struct cv_flow_tuple *tuple)
{
	struct end {
		uint8_t address[16];
		rte_be16_t port;
		uint8_t proto, zero;
	} ends[2] = {{.port = tuple->sport, .proto = tuple->proto},
		{.port = tuple->dport, .proto = tuple->proto}};
	_Static_assert(sizeof(ends) == 40, "every byte counts, and is hashed");
	struct end key[2];
	unsigned first;

	memcpy(ends[0].address, tuple->src.ipv6, 16);
	memcpy(ends[1].address, tuple->dst.ipv6, 16);
	first = memcmp(&ends[0], &ends[1], sizeof(ends[0])) > 0;
	key[0] = ends[first];
	key[1] = ends[!first];
	return cv_flow_homes_at(homes, cv_flow_hash(&homes->secret, key, sizeof(key)));
}

static struct cv_flow_tuple tuple_of(const union cv_flow_key *key, bool v6)
{
	struct cv_flow_tuple tuple = {.family = v6 ? 6 : 4};

	if (v6) {
		memcpy(tuple.src.ipv6, key->ipv6.src, 16);
		memcpy(tuple.dst.ipv6, key->ipv6.dst, 16);
		tuple.sport = key->ipv6.sport;
		tuple.dport = key->ipv6.dport;
		tuple.proto = key->ipv6.proto;
	} else {
		tuple.src.ipv4 = key->ipv4.src;
		tuple.dst.ipv4 = key->ipv4.dst;
		tuple.sport = key->ipv4.sport;
		tuple.dport = key->ipv4.dport;
		tuple.proto = key->ipv4.proto;
	}
	return tuple;
}

static uint8_t home_of_key(
	const struct cv_flow_home *home, const union cv_flow_key *key, bool v6, uint8_t in)
{
	const struct cv_flow_tuple tuple = tuple_of(key, v6);
	const uint8_t worker = home_of_tuple(home->flow, home->instance, home->homes, &tuple, in);

	if (!v6)
		return home_by_ipv4(home->homes, &tuple, worker);
	switch (worker) {
	case CV_FLOW_HOME_BY_SOURCE:
		return cv_flow_home_of_address(home->homes, 6, &tuple.src);
	case CV_FLOW_HOME_BY_DESTINATION:
		return cv_flow_home_of_address(home->homes, 6, &tuple.dst);
	case CV_FLOW_HOME_BY_TUPLE:
		return home_by_tuple(home->homes, &tuple);
	default:
		return worker;
	}
}

// The home of a fragment: the first one's by its ports, which is remembered for the others.
static uint8_t home_of_fragment(
	struct cv_flow_home *home, const struct cv_flow_parsed *parsed, uint8_t in)
{
	const uint32_t now = (uint32_t)(rte_rdtsc() >> home->shift);
	const uint32_t deadline = now + FRAGMENT_TICKS;
	struct cv_flow_fragment_key key;
	uint32_t worker;
	uint64_t hash;

	cv_flow_fragment_key_of(parsed, &key);
	hash = cv_flow_hash(&home->homes->secret, &key, sizeof(key));
	if (parsed->kind == CV_FLOW_IS_FRAGMENT) {
		worker = cv_flow_fragments_find(&home->fragments, hash, &key, now);
		if (worker != CV_FLOW_NONE)
			return (uint8_t)worker;
	}
	worker = home_of_key(home, &parsed->key, parsed->v6, in);
	if (parsed->kind != CV_FLOW_IS_FRAGMENT)
		cv_flow_fragments_put(
			&home->fragments, hash, &key, worker, now, deadline + (deadline == 0));
	return (uint8_t)worker;
}

uint8_t cv_flow_home_of_one(struct cv_flow_home *home, const struct cv_view *view)
{
	struct cv_flow_parsed parsed;
	struct cv_flow_inner inner;

	cv_flow_parse(view, &parsed);
	switch (parsed.kind) {
	case CV_FLOW_IS_FLOW:
		if (!parsed.first_fragment)
			return home_of_key(home, &parsed.key, parsed.v6, view->in);
		// Others follow.
		// fall through
	case CV_FLOW_IS_FRAGMENT:
		return home_of_fragment(home, &parsed, view->in);
	case CV_FLOW_IS_ERROR:
		// An answer to the packet inside would go the same way.
		if (!parsed.first_fragment && cv_flow_inner_read(view, &parsed, &inner))
			return home_of_key(home, &inner.answer, parsed.v6, view->in);
		return home->self;
	default:
		return home->self;
	}
}

uint16_t cv_flow_home_find(void *instance, struct cv_view *views, uint8_t *workers, uint16_t n)
{
	struct cv_flow_home *home = instance;

#ifdef CV_HAVE_AES
	if (CV_LIKELY(home->homes->secret.aes))
		return cv_flow_home_run_aes(home, views, workers, n);
#endif
	return cv_flow_home_run_baseline(home, views, workers, n);
}
