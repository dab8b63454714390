// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reads the keys of one port's part of the plan. Every error text is "KEY: VALUE: what; fix"; the
// caller says which port of which file it is.
#ifndef CV_PORT_KEYS_H
#define CV_PORT_KEYS_H

#include <stdint.h>

#include <jansson.h>

#include "packet/error.h"

#define CV_SLOTS_MIN 64
#define CV_SLOTS_MAX 1024

// 0 if every key of the object is one of common or own (both end with NULL); else -EINVAL.
int cv_keys_known(const json_t *config, const char *const *common, const char *const *own,
	struct cv_error *error);

// A string that is not empty. Returns it (it lives as long as config), fallback where the key is
// missing, or NULL with error set. Without a fallback the key must be there.
const char *cv_key_string(
	const json_t *config, const char *key, const char *fallback, struct cv_error *error);

// An integer from min to max, fallback where the key is missing. Returns 0 or -EINVAL.
int cv_key_integer(const json_t *config, const char *key, int64_t min, int64_t max,
	int64_t fallback, int64_t *value, struct cv_error *error);

// "slots": what the ring of a link holds, a power of two, CV_SLOTS_MIN to CV_SLOTS_MAX, which it is
// without the key. Returns 0 or -EINVAL.
int cv_key_slots(const json_t *config, unsigned *slots, struct cv_error *error);

// One of some words, NULL at the end. Returns its index, or -EINVAL. A missing key is the first
// word.
int cv_key_word(
	const json_t *config, const char *key, const char *const *words, struct cv_error *error);

// A MAC address of a host, "02:00:00:00:00:01". Returns 1: mac is filled in; 0: the key is
// missing; -EINVAL.
int cv_key_mac(const json_t *config, const char *key, uint8_t mac[6], struct cv_error *error);

// A string that can stand in a device's arguments: without the characters that DPDK reads as
// punctuation there, and at most max bytes. As cv_key_string without fallback.
const char *cv_key_plain(const json_t *config, const char *key, size_t max, struct cv_error *error);

#endif
