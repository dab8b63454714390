// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// A list of words for an error text, at most size bytes with the final zero.
static const char *join(const char *const *words, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (; *words != NULL && used < size; words++)
		used += (size_t)snprintf(text + used, size - used, used > 0 ? " %s" : "%s", *words);
	return text;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strcmp(word, *words) == 0)
			return true;
	}
	return false;
}

int cv_keys_known(const json_t *config, const char *const *common, const char *const *own,
	struct cv_error *error)
{
	char first[128], second[128];
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)config, key, value) {
		if (is_one_of(key, common) || is_one_of(key, own))
			continue;
		cv_error_set(error, "%.64s: is not a key of this kind of port; its keys are %s %s",
			key, join(common, first, sizeof(first)), join(own, second, sizeof(second)));
		return -EINVAL;
	}
	return 0;
}

const char *cv_key_string(
	const json_t *config, const char *key, const char *fallback, struct cv_error *error)
{
	const json_t *value = json_object_get(config, key);

	if (value == NULL && fallback != NULL)
		return fallback;
	if (value == NULL) {
		cv_error_set(error, "%s: is missing; add it", key);
		return NULL;
	}
	if (!json_is_string(value) || json_string_length(value) == 0) {
		cv_error_set(error, "%s: must be a string that is not empty", key);
		return NULL;
	}
	return json_string_value(value);
}

int cv_key_integer(const json_t *config, const char *key, int64_t min, int64_t max,
	int64_t fallback, int64_t *value, struct cv_error *error)
{
	const json_t *given = json_object_get(config, key);

	*value = fallback;
	if (given == NULL)
		return 0;
	if (!json_is_integer(given)) {
		cv_error_set(error, "%s: must be a whole number; give %lld to %lld", key,
			(long long)min, (long long)max);
		return -EINVAL;
	}
	*value = json_integer_value(given);
	if (*value < min || *value > max) {
		cv_error_set(error, "%s: %lld: is out of range; give %lld to %lld", key,
			(long long)*value, (long long)min, (long long)max);
		return -EINVAL;
	}
	return 0;
}

int cv_key_word(
	const json_t *config, const char *key, const char *const *words, struct cv_error *error)
{
	const char *given = cv_key_string(config, key, words[0], error);
	char text[128];

	if (given == NULL)
		return -EINVAL;
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(given, words[i]) == 0)
			return i;
	}
	cv_error_set(error, "%s: \"%.64s\": is none of: %s", key, given,
		join(words, text, sizeof(text)));
	return -EINVAL;
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
