// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/keys.h"

#include <errno.h>
#include <string.h>

int cv_slots_check(unsigned slots, struct cv_error *error)
{
	if ((slots & (slots - 1)) == 0)
		return 0;
	cv_error_set(error, "slots: %u: must be a power of two, %d to %d", slots, CV_SLOTS_MIN,
		CV_SLOTS_MAX);
	return -EINVAL;
}

int cv_read_plain(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text == NULL)
		return cv_where_wrong(at, key, value, "must be a string");
	if (text[0] == '\0')
		return cv_where_wrong(at, key, value, "must not be empty");
	for (const char *c = text; *c != '\0'; c++) {
		if ((unsigned char)*c > ' ' && strchr(",=[]()\"'", *c) == NULL)
			continue;
		return cv_where_wrong(at, key, value,
			"has a character that devices' arguments cannot carry; rename it without "
			"spaces, commas, quotes, brackets and =");
	}
	*(const char **)member = text;
	return 0;
}
