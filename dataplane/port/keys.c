// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/values.h"

#define KEYS_MAX 24

int cv_keys_known(const json_t *config, const char *const *common, const char *const *own,
	struct cv_error *error)
{
	const char *known[KEYS_MAX + 1];
	size_t count = 0;

	for (; *common != NULL && count < KEYS_MAX; common++)
		known[count++] = *common;
	for (; *own != NULL && count < KEYS_MAX; own++)
		known[count++] = *own;
	known[count] = NULL;
	return cv_config_keys(config, known, "", error);
}

const char *cv_key_string(
	const json_t *config, const char *key, const char *fallback, struct cv_error *error)
{
	const char *value = fallback;

	if (cv_config_string(config, key, "", &value, error) != 0)
		return NULL;
	if (value == NULL)
		cv_config_missing("", key, error);
	else if (value[0] == '\0' && value != fallback)
		cv_error_set(error, "%s: \"\": must not be empty", key);
	else
		return value;
	return NULL;
}

int cv_key_integer(const json_t *config, const char *key, int64_t min, int64_t max,
	int64_t fallback, int64_t *value, struct cv_error *error)
{
	*value = fallback;
	return cv_config_integer(config, key, "", min, max, value, error);
}

int cv_key_slots(const json_t *config, unsigned *slots, struct cv_error *error)
{
	int64_t value;

	if (cv_key_integer(
		    config, "slots", CV_SLOTS_MIN, CV_SLOTS_MAX, CV_SLOTS_MAX, &value, error) != 0)
		return -EINVAL;
	if ((value & (value - 1)) != 0) {
		cv_error_set(error, "slots: %d: must be a power of two, %d to %d", (int)value,
			CV_SLOTS_MIN, CV_SLOTS_MAX);
		return -EINVAL;
	}
	*slots = (unsigned)value;
	return 0;
}

int cv_key_word(
	const json_t *config, const char *key, const char *const *words, struct cv_error *error)
{
	unsigned index = 0;

	if (cv_config_word(config, key, "", words, &index, error) != 0)
		return -EINVAL;
	return (int)index;
}

int cv_key_mac(const json_t *config, const char *key, uint8_t mac[6], struct cv_error *error)
{
	unsigned bytes[6];
	const char *text;
	int end = 0;

	if (json_object_get(config, key) == NULL)
		return 0;
	text = cv_key_string(config, key, NULL, error);
	if (text == NULL)
		return -EINVAL;
	if (strlen(text) != 17 ||
		sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &bytes[0], &bytes[1], &bytes[2],
			&bytes[3], &bytes[4], &bytes[5], &end) != 6 ||
		end != 17) {
		cv_error_set(error, "%s: \"%.64s\": is not a MAC address; write 02:00:00:00:00:01",
			key, text);
		return -EINVAL;
	}
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)bytes[i];
	if ((mac[0] & 1) != 0 || memcmp(mac, "\0\0\0\0\0", 6) == 0) {
		cv_error_set(error,
			"%s: \"%s\": is not the address of one host (a group's, or zero); write "
			"one "
			"like 02:00:00:00:00:01",
			key, text);
		return -EINVAL;
	}
	return 1;
}

const char *cv_key_plain(const json_t *config, const char *key, size_t max, struct cv_error *error)
{
	const char *text = cv_key_string(config, key, NULL, error);

	if (text == NULL)
		return NULL;
	if (strlen(text) > max) {
		cv_error_set(error, "%s: \"%.128s\": has %zu bytes; at most %zu are possible", key,
			text, strlen(text), max);
		return NULL;
	}
	for (const char *c = text; *c != '\0'; c++) {
		if ((unsigned char)*c > ' ' && strchr(",=[]()\"'", *c) == NULL)
			continue;
		cv_error_set(error,
			"%s: \"%s\": has a character that devices' arguments cannot carry; rename "
			"it without spaces, commas, quotes, brackets and =",
			key, text);
		return NULL;
	}
	return text;
}
