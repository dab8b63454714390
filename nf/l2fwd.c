// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Layer 2 forwarding.
//
//   {"mode": "rewrite", "src": MAC, "dst": MAC}
//       Writes the addresses that are given; without src, that of the port the packet leaves by.
//       Without dst, the destination stays as it is. The default mode.
//   {"mode": "swap"}
//       Exchanges source and destination.
//   {"mode": "bridge", "sides": [PORT, PORT], "entries": 4096, "age_s": 300}
//       A learning bridge: remembers on which side each source address was heard, for age_s
//       seconds after its last packet, and sends every packet out of the other side, unless its
//       destination was heard on the side that it came from. Unknown and group destinations go to
//       the other side. Addresses are learned over all VLANs together.
//
// Drops: bad_header (no whole Ethernet header); a bridge also same_side (the destination is on
// the side that the packet came from), bad_source (a group address or 0 as source), not_a_side
// (came in by a port that is neither side).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "chain/nf.h"
#include "nf/config.h"
#include "nf/mac_table.h"
#include "packet/ether.h"

enum drop {
	BAD_HEADER,
	SAME_SIDE,
	BAD_SOURCE,
	NOT_A_SIDE,
};

static const char *const drops[] = {"bad_header", "same_side", "bad_source", "not_a_side", NULL};

enum mode {
	REWRITE,
	SWAP,
	BRIDGE,
};

#define TICKS_PER_AGE 16

struct l2fwd {
	enum mode mode;
	bool has_dst;
	uint8_t dst[CV_MAC_LEN];
	bool has_src;
	uint8_t src[CV_PORTS_MAX][CV_MAC_LEN]; // by the port that the packet leaves by
	int side[2]; // ports
	struct cv_mac_table table;
	uint64_t ticks_per_cycle; // of the table's clock, times 2^64
};

struct config {
	enum mode mode;
	uint8_t src[CV_MAC_LEN], dst[CV_MAC_LEN]; // zero: not given
	const json_t *sides;
	uint32_t entries, age_s; // 0: not given
};

static const char *const modes[] = {"rewrite", "swap", "bridge", NULL};

static const struct cv_param params[] = {
	{"mode", CV_WORD, CV_AT(struct config, mode), .words = modes,
		.doc = "set MACs; exchange them; or learn them and bridge"},
	{"src", CV_MAC, CV_AT(struct config, src),
		.doc = "rewrite: new source; default: the out port's"},
	{"dst", CV_MAC, CV_AT(struct config, dst),
		.doc = "rewrite: new destination; default: unchanged"},
	{"sides", CV_LIST, CV_AT(struct config, sides),
		.doc = "bridge: its ports; default: the chain's"},
	{"entries", CV_INTEGER, CV_AT(struct config, entries), .low = 1, .high = 1 << 20,
		.doc = "bridge: MAC table (4096)"},
	{"age_s", CV_INTEGER, CV_AT(struct config, age_s), .low = 1, .high = 1000000,
		.doc = "bridge: forget after (300)"},
	{0},
};

static void configure_rewrite(struct l2fwd *fwd, const struct config *config)
{
	memcpy(fwd->dst, config->dst, CV_MAC_LEN);
	fwd->has_dst = cv_mac_key(config->dst) != 0;
	fwd->has_src = cv_mac_key(config->src) != 0;
	for (unsigned port = 0; fwd->has_src && port < CV_PORTS_MAX; port++)
		memcpy(fwd->src[port], config->src, CV_MAC_LEN);
}

static int configure_bridge(struct l2fwd *fwd, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const uint32_t entries = config->entries != 0 ? config->entries : 4096;
	const uint32_t age_s = config->age_s != 0 ? config->age_s : 300;

	if (json_array_size(config->sides) != 2) {
		cv_error_set(
			error, "%s: a bridge needs sides: [PORT, PORT], its two ports", env->name);
		return -EINVAL;
	}
	for (unsigned i = 0; i < 2; i++) {
		const char *name = json_string_value(json_array_get(config->sides, i));

		if (name == NULL) {
			cv_error_set(
				error, "%s: sides[%u] must be the name of a port", env->name, i);
			return -EINVAL;
		}
		fwd->side[i] = cv_nf_env_port(env, name);
		if (fwd->side[i] < 0)
			return cv_config_no_port(env->name, name, env, error);
	}
	if (fwd->side[0] == fwd->side[1]) {
		cv_error_set(error, "%s: both sides are \"%s\"; a bridge needs two ports",
			env->name, env->ports[fwd->side[0]]);
		return -EINVAL;
	}
	fwd->ticks_per_cycle = UINT64_MAX / (rte_get_tsc_hz() * (uint64_t)age_s / TICKS_PER_AGE);
	if (cv_mac_table_init(&fwd->table, entries, TICKS_PER_AGE) != 0) {
		cv_error_set(error, "%s: no memory for %u entries", env->name, entries);
		return -ENOMEM;
	}
	return 0;
}

static int configure(struct l2fwd *fwd, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const bool macs = cv_mac_key(config->src) != 0 || cv_mac_key(config->dst) != 0;
	const bool table = config->sides != NULL || config->entries != 0 || config->age_s != 0;

	fwd->mode = config->mode;
	if ((macs && fwd->mode != REWRITE) || (table && fwd->mode != BRIDGE)) {
		cv_error_set(error, "%s: %s for mode %s, and this is mode %s", env->name,
			macs && fwd->mode != REWRITE ? "src and dst are"
						     : "sides, entries and age_s are",
			macs && fwd->mode != REWRITE ? "rewrite" : "bridge", modes[fwd->mode]);
		return -EINVAL;
	}
	if (fwd->mode == BRIDGE)
		return configure_bridge(fwd, config, env, error);
	if (fwd->mode == REWRITE)
		configure_rewrite(fwd, config);
	return 0;
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct l2fwd *fwd = calloc(1, sizeof(*fwd));

	if (fwd == NULL)
		return NULL;
	if (configure(fwd, config, env, error) != 0) {
		free(fwd);
		return NULL;
	}
	return fwd;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct l2fwd *fwd = instance;

	if (!fwd->has_src)
		memcpy(fwd->src, env->macs, env->ports_count * sizeof(*env->macs));
}

static void destroy(void *instance)
{
	struct l2fwd *fwd = instance;

	cv_mac_table_free(&fwd->table);
	free(fwd);
}

static uint16_t tick_now(const struct l2fwd *fwd)
{
	return (uint16_t)((unsigned __int128)rte_rdtsc() * fwd->ticks_per_cycle >> 64) &
	       CV_MAC_TICKS;
}

// The values are read before the packet is written: the compiler cannot know that they are not
// the same memory.
static CV_INLINE uint8_t rewrite_one(
	struct cv_view *view, const uint8_t (*sources)[CV_MAC_LEN], const uint8_t *destination)
{
	uint8_t *data = view->data;
	uint32_t source_low;
	uint16_t source_high;

	memcpy(&source_low, sources[view->out], 4);
	memcpy(&source_high, sources[view->out] + 4, 2);
	if (destination != NULL)
		memcpy(data, destination, CV_MAC_LEN);
	memcpy(data + CV_MAC_LEN, &source_low, 4);
	memcpy(data + CV_MAC_LEN + 4, &source_high, 2);
	return CV_NEXT;
}

static CV_INLINE uint8_t swap_one(struct cv_view *view)
{
	uint8_t old[2 * CV_MAC_LEN];

	memcpy(old, view->data, sizeof(old));
	memcpy(view->data, old + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(view->data + CV_MAC_LEN, old, CV_MAC_LEN);
	return CV_NEXT;
}

static CV_INLINE uint8_t bridge_one(const struct l2fwd *fwd, struct cv_view *view, uint16_t tick)
{
	uint64_t source = cv_mac_key(view->data + CV_MAC_LEN);
	unsigned side = view->in == fwd->side[1];

	if (CV_UNLIKELY(view->in != fwd->side[side]))
		return CV_DROP(NOT_A_SIDE);
	if (CV_UNLIKELY(source == 0 || cv_mac_group(view->data + CV_MAC_LEN)))
		return CV_DROP(BAD_SOURCE);
	cv_mac_learn(&fwd->table, source, side, tick);
	if (!cv_mac_group(view->data) &&
		cv_mac_find(&fwd->table, cv_mac_key(view->data), tick) == (int)side)
		return CV_DROP(SAME_SIDE);
	view->out = (uint8_t)fwd->side[!side];
	return CV_NEXT;
}

static CV_INLINE uint16_t forward(
	const struct l2fwd *fwd, struct cv_view *view, uint8_t *verdict, uint16_t n, enum mode mode)
{
	const uint8_t *destination = fwd->has_dst ? fwd->dst : NULL;
	uint16_t tick = mode == BRIDGE ? tick_now(fwd) : 0, dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (CV_UNLIKELY(view[i].len < CV_ETHER_LEN))
			verdict[i] = CV_DROP(BAD_HEADER);
		else if (mode == REWRITE)
			verdict[i] = rewrite_one(&view[i], fwd->src, destination);
		else if (mode == SWAP)
			verdict[i] = swap_one(&view[i]);
		else
			verdict[i] = bridge_one(fwd, &view[i], tick);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

CV_HOT static uint16_t process(
	void *instance, unsigned worker, struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	const struct l2fwd *fwd = instance;

	switch (fwd->mode) {
	case REWRITE:
		return forward(fwd, view, verdict, n, REWRITE);
	case SWAP:
		return forward(fwd, view, verdict, n, SWAP);
	default:
		return forward(fwd, view, verdict, n, BRIDGE);
	}
}

static json_t *info(const void *instance)
{
	const struct l2fwd *fwd = instance;
	json_t *told = json_pack("{s:s}", "mode", modes[fwd->mode]);

	if (fwd->mode == BRIDGE) {
		json_object_set_new(told, "entries",
			json_integer((json_int_t)fwd->table.buckets * CV_MAC_TABLE_WAYS));
		json_object_set_new(told, "learned",
			json_integer(cv_mac_table_count(&fwd->table, tick_now(fwd))));
	}
	return told;
}

const struct cv_nf cv_nf_l2fwd = {
	.name = "l2fwd",
	.summary = "Layer 2: rewrites MAC addresses, swaps them, or bridges between two ports.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.process = process,
	.info = info,
};
