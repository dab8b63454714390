// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packet/prefix.h"

int cv_address_parse(const char *text, struct cv_address *address)
{
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, address->bytes) == 1)
		return 0;
	address->v6 = true;
	return inet_pton(AF_INET6, text, address->bytes) == 1 ? 0 : -EINVAL;
}

// Reads a length from 0 to most, at most three digits and nothing else.
static int parse_length(const char *text, unsigned most, uint8_t *length)
{
	unsigned value = 0;
	int digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 3; text++, digits++)
		value = value * 10 + (unsigned)(*text - '0');
	if (digits == 0 || *text != '\0' || value > most)
		return -EINVAL;
	*length = (uint8_t)value;
	return 0;
}

int cv_prefix_parse(const char *text, struct cv_prefix *prefix)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN];
	struct cv_prefix masked;
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	if (cv_address_parse(address, &prefix->address) != 0)
		return -EINVAL;
	prefix->length = prefix->address.v6 ? 128 : 32;
	if (slash != NULL && parse_length(slash + 1, prefix->length, &prefix->length) != 0)
		return -EINVAL;
	masked = *prefix;
	cv_prefix_mask(&masked);
	return memcmp(masked.address.bytes, prefix->address.bytes, 16) == 0 ? 0 : -EDOM;
}

void cv_prefix_mask(struct cv_prefix *prefix)
{
	for (unsigned byte = 0; byte < 16; byte++) {
		if (prefix->length <= byte * 8)
			prefix->address.bytes[byte] = 0;
		else if (prefix->length < byte * 8 + 8)
			prefix->address.bytes[byte] &=
				(uint8_t)(0xff00 >> (prefix->length - byte * 8));
	}
}

bool cv_prefix_has(const struct cv_prefix *prefix, const struct cv_address *address)
{
	struct cv_prefix other = {.address = *address, .length = prefix->length};

	if (prefix->address.v6 != address->v6)
		return false;
	cv_prefix_mask(&other);
	return memcmp(other.address.bytes, prefix->address.bytes, 16) == 0;
}

int cv_address_compare(const struct cv_address *a, const struct cv_address *b)
{
	if (a->v6 != b->v6)
		return a->v6 - b->v6;
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

int cv_prefix_compare(const struct cv_prefix *a, const struct cv_prefix *b)
{
	int order = cv_address_compare(&a->address, &b->address);

	return order != 0 ? order : a->length - b->length;
}

char *cv_address_text(const struct cv_address *address, char text[CV_PREFIX_TEXT])
{
	inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->bytes, text, CV_PREFIX_TEXT);
	return text;
}

char *cv_prefix_text(const struct cv_prefix *prefix, char text[CV_PREFIX_TEXT])
{
	size_t len = strlen(cv_address_text(&prefix->address, text));

	snprintf(text + len, CV_PREFIX_TEXT - len, "/%u", prefix->length);
	return text;
}
