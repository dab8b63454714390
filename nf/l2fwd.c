// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Layer 2 forwarding.
//
//   {"mode": "rewrite", "src": MAC, "dst": MAC}
//       Writes the addresses that are given; without src, that of the port the packet leaves by.
//       Without dst, the destination stays as it is.
//   {"mode": "swap"}
//       Exchanges source and destination.
//
// Drops: bad_header (no whole Ethernet header).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "ether.h"
#include "nf.h"

enum drop {
	BAD_HEADER,
};

static const char *const drops[] = {"bad_header", NULL};

enum mode {
	REWRITE,
	SWAP,
};

struct l2fwd {
	enum mode mode;
	bool has_dst;
	uint8_t dst[CV_MAC_LEN];
	const uint8_t (*src)[CV_MAC_LEN]; // by the port that the packet leaves by
	uint8_t given[CV_PORTS_MAX][CV_MAC_LEN]; // the configured one, for all ports
};

static int read_mac(const json_t *config, const char *key, const char *where, uint8_t *mac,
	struct cv_error *error)
{
	const char *text = NULL;

	if (cv_config_string(config, key, where, &text, error) != 0)
		return -EINVAL;
	if (text == NULL)
		return 0;
	if (!cv_mac_parse(text, mac)) {
		cv_error_set(error, "%s: %s is \"%s\"; write an address like 02:00:00:00:00:01",
			where, key, text);
		return -EINVAL;
	}
	return 1;
}

static int configure(struct l2fwd *fwd, const json_t *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	static const char *const known[] = {"mode", "src", "dst", NULL};
	const char *mode = "rewrite";
	uint8_t src[CV_MAC_LEN];
	int given;

	if (cv_config_keys(config, known, env->name, error) != 0 ||
		cv_config_string(config, "mode", env->name, &mode, error) != 0)
		return -EINVAL;
	if (strcmp(mode, "swap") == 0) {
		fwd->mode = SWAP;
		return 0;
	}
	if (strcmp(mode, "rewrite") != 0) {
		cv_error_set(
			error, "%s: mode is \"%s\"; it must be rewrite or swap", env->name, mode);
		return -EINVAL;
	}
	fwd->mode = REWRITE;
	given = read_mac(config, "dst", env->name, fwd->dst, error);
	if (given < 0)
		return -EINVAL;
	fwd->has_dst = given;
	given = read_mac(config, "src", env->name, src, error);
	if (given < 0)
		return -EINVAL;
	for (unsigned port = 0; given && port < CV_PORTS_MAX; port++)
		memcpy(fwd->given[port], src, CV_MAC_LEN);
	fwd->src = given ? (const uint8_t(*)[CV_MAC_LEN])fwd->given : env->macs;
	return 0;
}

static void *create(const json_t *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct l2fwd *fwd = calloc(1, sizeof(*fwd));

	if (fwd == NULL) {
		cv_error_set(error, "%s: out of memory", env->name);
		return NULL;
	}
	if (configure(fwd, config, env, error) != 0) {
		free(fwd);
		return NULL;
	}
	return fwd;
}

static CV_INLINE uint8_t forward_one(const struct l2fwd *fwd, struct cv_view *view, enum mode mode)
{
	uint8_t old[2 * CV_MAC_LEN];

	if (CV_UNLIKELY(view->len < CV_ETHER_LEN))
		return CV_DROP(BAD_HEADER);
	if (mode == SWAP) {
		memcpy(old, view->data, sizeof(old));
		memcpy(view->data, old + CV_MAC_LEN, CV_MAC_LEN);
		memcpy(view->data + CV_MAC_LEN, old, CV_MAC_LEN);
	} else {
		if (fwd->has_dst)
			memcpy(view->data, fwd->dst, CV_MAC_LEN);
		memcpy(view->data + CV_MAC_LEN, fwd->src[view->out], CV_MAC_LEN);
	}
	return CV_NEXT;
}

static CV_INLINE uint16_t forward_burst(
	const struct l2fwd *fwd, struct cv_view *view, uint8_t *verdict, uint16_t n, enum mode mode)
{
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = forward_one(fwd, &view[i], mode);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

CV_HOT static uint16_t process(
	void *instance, unsigned worker, struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	const struct l2fwd *fwd = instance;

	if (fwd->mode == SWAP)
		return forward_burst(fwd, view, verdict, n, SWAP);
	return forward_burst(fwd, view, verdict, n, REWRITE);
}

const struct cv_nf cv_nf_l2fwd = {
	.name = "l2fwd",
	.summary = "forwards frames, writing their Ethernet addresses",
	.drops = drops,
	.create = create,
	.destroy = free,
	.process = process,
};
