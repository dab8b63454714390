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
//       A learning bridge (bridge.h).
//
// Drops: bad_header (no whole Ethernet header); and the bridge's.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/bridge.h"
#include "packet/ether.h"

// As enum cv_l2_drop has them.
static const char *const drops[] = {"bad_header", "same_side", "bad_source", "not_a_side", NULL};

enum mode {
	REWRITE,
	SWAP,
	BRIDGE,
};

struct l2fwd {
	enum mode mode;
	bool has_dst;
	uint8_t dst[CV_MAC_LEN];
	bool has_src;
	uint8_t src[CV_PORTS_MAX][CV_MAC_LEN]; // by the port that the packet leaves by
	struct cv_bridge bridge;
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
		return cv_bridge_init(&fwd->bridge, config->sides,
			config->entries != 0 ? config->entries : 4096,
			config->age_s != 0 ? config->age_s : 300, env, error);
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

	cv_bridge_free(&fwd->bridge);
	free(fwd);
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

static CV_INLINE uint16_t forward(
	const struct l2fwd *fwd, struct cv_view *view, uint8_t *verdict, uint16_t n, enum mode mode)
{
	const uint8_t *destination = fwd->has_dst ? fwd->dst : NULL;
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (CV_UNLIKELY(view[i].len < CV_ETHER_LEN))
			verdict[i] = CV_DROP(CV_L2_BAD_HEADER);
		else if (mode == REWRITE)
			verdict[i] = rewrite_one(&view[i], fwd->src, destination);
		else
			verdict[i] = swap_one(&view[i]);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	const struct l2fwd *fwd = instance;

	switch (fwd->mode) {
	case REWRITE:
		return forward(fwd, view, verdict, n, REWRITE);
	case SWAP:
		return forward(fwd, view, verdict, n, SWAP);
	default:
		return cv_bridge_forward(&fwd->bridge, view, verdict, n);
	}
}

static json_t *info(const void *instance)
{
	const struct l2fwd *fwd = instance;
	json_t *info = json_pack("{s:s}", "mode", modes[fwd->mode]);

	if (fwd->mode == BRIDGE)
		cv_bridge_info(&fwd->bridge, info);
	return info;
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
