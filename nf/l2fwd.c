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
//
// Drops: bad_header (no whole Ethernet header).
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "packet/ether.h"

enum { BAD_HEADER };

static const char *const drops[] = {"bad_header", NULL};

enum mode {
	REWRITE,
	SWAP,
};

struct l2fwd {
	enum mode mode;
	bool has_dst;
	uint8_t dst[CV_MAC_LEN];
	bool has_src;
	uint8_t src[CV_PORTS_MAX][CV_MAC_LEN]; // by the port that the packet leaves by
};

struct config {
	enum mode mode;
	uint8_t src[CV_MAC_LEN], dst[CV_MAC_LEN]; // zero: not given
};

static const char *const modes[] = {"rewrite", "swap", NULL};

static const struct cv_param params[] = {
	{"mode", CV_WORD, CV_AT(struct config, mode), .words = modes,
		.doc = "set MACs, or exchange them"},
	{"src", CV_MAC, CV_AT(struct config, src),
		.doc = "rewrite: new source; default: the out port's"},
	{"dst", CV_MAC, CV_AT(struct config, dst),
		.doc = "rewrite: new destination; default: unchanged"},
	{0},
};

static bool is_given(const uint8_t *mac)
{
	static const uint8_t none[CV_MAC_LEN];

	return memcmp(mac, none, CV_MAC_LEN) != 0;
}

static void configure_rewrite(struct l2fwd *fwd, const struct config *config)
{
	memcpy(fwd->dst, config->dst, CV_MAC_LEN);
	fwd->has_dst = is_given(config->dst);
	fwd->has_src = is_given(config->src);
	for (unsigned port = 0; fwd->has_src && port < CV_PORTS_MAX; port++)
		memcpy(fwd->src[port], config->src, CV_MAC_LEN);
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	struct l2fwd *fwd;

	if (config->mode != REWRITE && (is_given(config->src) || is_given(config->dst))) {
		cv_error_set(error, "%s: src and dst are for mode rewrite, and this is mode %s",
			env->name, modes[config->mode]);
		return NULL;
	}
	fwd = calloc(1, sizeof(*fwd));
	if (fwd == NULL)
		return NULL;
	fwd->mode = config->mode;
	configure_rewrite(fwd, config);
	return fwd;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct l2fwd *fwd = instance;

	if (!fwd->has_src)
		memcpy(fwd->src, env->macs, env->ports_count * sizeof(*env->macs));
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
			verdict[i] = CV_DROP(BAD_HEADER);
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

	return fwd->mode == REWRITE ? forward(fwd, view, verdict, n, REWRITE)
				    : forward(fwd, view, verdict, n, SWAP);
}

static json_t *info(const void *instance)
{
	const struct l2fwd *fwd = instance;

	return json_pack("{s:s}", "mode", modes[fwd->mode]);
}

const struct cv_nf cv_nf_l2fwd = {
	.name = "l2fwd",
	.summary = "Layer 2 forwarding: rewrites MAC addresses, or swaps them.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.destroy = free,
	.process = process,
	.info = info,
};
