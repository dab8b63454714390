// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compression in a plan: {"compress": "lz4", "dictionary": BASE64} of a next hop, {"expand": "lz4",
// "dictionaries": [BASE64 ...]} of a port's convoys. The bytes stand in the plan itself: a node that
// runs in its sandbox has no file to open.
#ifndef CV_PLAN_DICTIONARY_H
#define CV_PLAN_DICTIONARY_H

#include "compress/compress.h"
#include "config/params.h"

enum cv_plan_codec { CV_PLAN_CODEC_OFF, CV_PLAN_CODEC_LZ4 };

extern const char *const cv_plan_codecs[];

// A cv_param's read(): a dictionary, into a struct cv_dictionary *, which the caller releases.
int cv_plan_dictionary_read(
	const struct cv_where *at, const char *key, const json_t *value, void *dictionary);

// The same of one element, added to a struct cv_expander.
int cv_plan_dictionary_add(
	const struct cv_where *at, const char *key, const json_t *value, void *expander);

// What follows from the words. A next hop that compresses gets a dictionary in any case: without
// bytes where none is given. 0, -ENOMEM, or -EINVAL with an error.
int cv_plan_compress_set(
	const struct cv_where *at, enum cv_plan_codec codec, struct cv_dictionary **dictionary);
int cv_plan_expander_set(
	const struct cv_where *at, enum cv_plan_codec codec, struct cv_expander *expander);

#endif
