// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A learning bridge between two ports.
//
//   {"sides": [PORT, PORT], "entries": 4096, "age_s": 300}
//
// It remembers on which side each source address was heard, for age_s seconds after its last packet,
// and sends every packet out of the other side, unless its destination was heard on the side that it
// came from. Unknown and group destinations go to the other side. Addresses are learned over all
// VLANs together, by all workers. It changes no packet.
//
// Drops: bad_header (no whole Ethernet header), same_side (the destination is on the side that the
// packet came from), bad_source (a group address or 0), not_a_side (came in by another port).
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "chain/nf.h"
#include "nf/config.h"
#include "nf/mac_table.h"
#include "packet/ether.h"

#define TICKS_PER_AGE 16

enum { BAD_HEADER, SAME_SIDE, BAD_SOURCE, NOT_A_SIDE };

static const char *const drops[] = {"bad_header", "same_side", "bad_source", "not_a_side", NULL};

struct bridge {
	int side[2]; // ports
	struct cv_mac_table table;
	uint64_t ticks_per_cycle; // of the table's clock, times 2^64
	uint32_t age_s;
};

struct config {
	const json_t *sides;
	uint32_t entries, age_s;
};

static const struct cv_param params[] = {
	{"sides", CV_LIST, CV_AT(struct config, sides), .low = 2, .high = 2, .required = true,
		.doc = "its two ports; default: the chain's"},
	{"entries", CV_INTEGER, CV_AT(struct config, entries), .low = 1, .high = 1 << 20,
		.fallback = 4096, .doc = "addresses in its table"},
	{"age_s", CV_INTEGER, CV_AT(struct config, age_s), .low = 1, .high = 1000000,
		.fallback = 300, .doc = "seconds of silence after which an address is forgotten"},
	{0},
};

static int find_sides(struct bridge *bridge, const json_t *sides, const struct cv_nf_env *env,
	struct cv_error *error)
{
	for (unsigned i = 0; i < 2; i++) {
		const char *name = json_string_value(json_array_get(sides, i));

		if (name == NULL) {
			cv_error_set(
				error, "%s: sides[%u] must be the name of a port", env->name, i);
			return -EINVAL;
		}
		bridge->side[i] = cv_nf_env_port(env, name);
		if (bridge->side[i] < 0)
			return cv_config_no_port(env->name, name, env, error);
	}
	if (bridge->side[0] != bridge->side[1])
		return 0;
	cv_error_set(error, "%s: both sides are \"%s\"; a bridge needs two ports", env->name,
		env->ports[bridge->side[0]]);
	return -EINVAL;
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	struct bridge *bridge = calloc(1, sizeof(*bridge));

	if (bridge == NULL || find_sides(bridge, config->sides, env, error) != 0) {
		free(bridge);
		return NULL;
	}
	bridge->age_s = config->age_s;
	bridge->ticks_per_cycle =
		UINT64_MAX / (rte_get_tsc_hz() * (uint64_t)config->age_s / TICKS_PER_AGE);
	if (cv_mac_table_init(&bridge->table, config->entries, TICKS_PER_AGE) == 0)
		return bridge;
	cv_error_set(error, "%s: no memory for %u entries", env->name, config->entries);
	free(bridge);
	return NULL;
}

static void destroy(void *instance)
{
	struct bridge *bridge = instance;

	cv_mac_table_free(&bridge->table);
	free(bridge);
}

static uint16_t tick_now(const struct bridge *bridge)
{
	return (uint16_t)((unsigned __int128)rte_rdtsc() * bridge->ticks_per_cycle >> 64) &
	       CV_MAC_TICKS;
}

// Takes over where stations were heard, as long ago as they were.
static void start(void *instance, const struct cv_nf_env *env)
{
	const struct bridge *bridge = instance, *running = env->running;
	uint16_t now, then;

	if (running == NULL)
		return;
	now = tick_now(bridge);
	then = tick_now(running);
	for (size_t i = 0; i < (size_t)running->table.buckets * CV_MAC_TABLE_WAYS; i++) {
		const uint64_t word =
			atomic_load_explicit(&running->table.words[i], memory_order_relaxed);
		const int port = running->side[word >> 48 & 1];
		const uint64_t silent = ((then - (uint16_t)(word >> 49)) & CV_MAC_TICKS) *
					(uint64_t)running->age_s / bridge->age_s;

		if (word == 0 || cv_mac_old(&running->table, word, then) ||
			silent > bridge->table.age ||
			(port != bridge->side[0] && port != bridge->side[1]))
			continue;
		cv_mac_learn(&bridge->table, word & CV_MAC_KEY, port == bridge->side[1],
			(uint16_t)(now - silent) & CV_MAC_TICKS);
	}
}

static CV_INLINE uint8_t forward_one(
	const struct bridge *bridge, struct cv_view *view, uint16_t tick)
{
	uint64_t source = cv_mac_key(view->data + CV_MAC_LEN);
	unsigned side = view->in == bridge->side[1];

	if (CV_UNLIKELY(view->in != bridge->side[side]))
		return CV_DROP(NOT_A_SIDE);
	if (CV_UNLIKELY(source == 0 || cv_mac_group(view->data + CV_MAC_LEN)))
		return CV_DROP(BAD_SOURCE);
	cv_mac_learn(&bridge->table, source, side, tick);
	if (!cv_mac_group(view->data) &&
		cv_mac_find(&bridge->table, cv_mac_key(view->data), tick) == (int)side)
		return CV_DROP(SAME_SIDE);
	view->out = (uint8_t)bridge->side[!side];
	return CV_NEXT;
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	const struct bridge *bridge = instance;
	const uint16_t tick = tick_now(bridge);
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = view[i].len < CV_ETHER_LEN ? CV_DROP(BAD_HEADER)
							: forward_one(bridge, &view[i], tick);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

static json_t *info(const void *instance)
{
	const struct bridge *bridge = instance;

	return json_pack("{s:I, s:I}", "entries",
		(json_int_t)bridge->table.buckets * CV_MAC_TABLE_WAYS, "learned",
		(json_int_t)cv_mac_table_count(&bridge->table, tick_now(bridge)));
}

const struct cv_nf cv_nf_bridge = {
	.name = "bridge",
	.keeps = "learned stations",
	.summary = "Joins two ports: learns MAC addresses and sends each packet to the other side.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.process = process,
	.info = info,
};
