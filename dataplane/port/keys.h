// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What keys of several kinds of port must be. Every error text is "KEY: VALUE: what; fix"; the
// caller says which port of which file it is.
#ifndef CV_PORT_KEYS_H
#define CV_PORT_KEYS_H

#include "config/params.h"

#define CV_SLOTS_MIN 64
#define CV_SLOTS_MAX 1024

// "slots": what the ring of a link holds; all of it without the key.
#define CV_PORT_SLOTS(config)                                                                \
	{                                                                                    \
		"slots", CV_INTEGER, CV_AT(config, slots),                                   \
			.low = CV_SLOTS_MIN, .high = CV_SLOTS_MAX, .fallback = CV_SLOTS_MAX, \
	}

// 0 if it is a power of two, else -EINVAL with error set.
int cv_slots_check(unsigned slots, struct cv_error *error);

// A member const char *: a string that can stand in a device's arguments, without the characters
// that DPDK reads as punctuation there.
int cv_read_plain(const struct cv_where *at, const char *key, const json_t *value, void *member);

#endif
