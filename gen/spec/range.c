// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/spec/range.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

// "5", "5-9", 5, "10.0.0.1", "10.0.0.1-10.0.0.9", "10.0.0.0/24".
static bool parse_point(const char *text, int family, uint64_t max, uint8_t low[16])
{
	memset(low, 0, 16);
	if (family == AF_INET)
		return inet_pton(AF_INET, text, low + 12) == 1;
	if (family == AF_INET6)
		return inet_pton(AF_INET6, text, low) == 1;
	char *end;
	const unsigned long long number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > max)
		return false;
	for (int i = 0; i < 8; i++)
		low[15 - i] = (uint8_t)(number >> (8 * i));
	return true;
}

static uint64_t low_half(const uint8_t address[16])
{
	uint64_t value = 0;

	for (int i = 8; i < 16; i++)
		value = value << 8 | address[i];
	return value;
}

bool gen_range_parse(const char *text, int family, uint64_t max, struct gen_range *range)
{
	char first[64];
	const char *mark = strpbrk(text, "-/");
	const size_t length = mark != NULL ? (size_t)(mark - text) : strlen(text);

	if (length >= sizeof(first))
		return false;
	memcpy(first, text, length);
	first[length] = '\0';
	if (!parse_point(first, family, max, range->low))
		return false;
	range->span = 1;
	if (mark == NULL)
		return true;
	if (*mark == '/') {
		const uint32_t bits = family == AF_INET6 ? 128 : 32;
		char *end;
		const unsigned long prefix = strtoul(mark + 1, &end, 10);

		if (family == 0 || mark[1] < '0' || mark[1] > '9' || *end != '\0' || prefix > bits)
			return false;
		const uint32_t host = bits - (uint32_t)prefix;
		if (host > 32)
			return false;
		range->span = 1ull << host;
		// The prefix's own address, whatever host bits were written.
		const uint64_t low = low_half(range->low) & ~(range->span - 1);
		for (int i = 0; i < 8; i++)
			range->low[15 - i] = (uint8_t)(low >> (8 * i));
		return true;
	}
	uint8_t last[16];
	if (!parse_point(mark + 1, family, max, last) || memcmp(last, range->low, 8) != 0 ||
		low_half(last) < low_half(range->low) ||
		low_half(last) - low_half(range->low) > UINT32_MAX)
		return false;
	range->span = low_half(last) - low_half(range->low) + 1;
	return true;
}
