// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/confirm.h"

#include <string.h>

#include "packet/compiler.h"

#define NEVER INT32_MAX

static CV_INLINE uint8_t fold(uint8_t byte, bool nocase)
{
	return nocase && byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

// Where a content begins, in [first, last - its length] of data, ascending. Returns how often. Knuth,
// Morris, Pratt: each byte is looked at twice at most.
static uint32_t search(const struct cv_ids_content *content, const uint8_t *data, int32_t first,
	int32_t last, int32_t *begin)
{
	const unsigned len = content->len;
	uint32_t count = 0;
	unsigned matched = 0;

	for (int32_t at = first; at < last; at++) {
		uint8_t byte;

		if (matched == 0 && !content->nocase) {
			const uint8_t *next =
				memchr(data + at, content->bytes[0], (size_t)(last - at));

			if (next == NULL)
				break;
			at = (int32_t)(next - data);
		}
		byte = fold(data[at], content->nocase);
		while (matched > 0 && byte != content->bytes[matched])
			matched = content->failure[matched - 1];
		matched += byte == content->bytes[matched];
		if (matched == len) {
			begin[count++] = at + 1 - (int32_t)len;
			matched = content->failure[len - 1];
		}
	}
	return count;
}

// Of the places where a relative content begins, those that are at the right distance of an end.
// Both ascend, and so do the bounds.
static uint32_t keep_begins(const struct cv_ids_content *content, const int32_t *end, uint32_t ends,
	int32_t *begin, uint32_t count)
{
	uint32_t kept = 0, e = 0;

	for (uint32_t i = 0; i < count; i++) {
		// end + first <= begin, and begin + len <= end + last
		const int64_t most = (int64_t)begin[i] - content->first;
		const int64_t least = content->bounded
					      ? (int64_t)begin[i] + content->len - content->last
					      : INT64_MIN;

		while (e < ends && end[e] < least)
			e++;
		if (e < ends && end[e] <= most)
			begin[kept++] = begin[i];
	}
	return kept;
}

// Of the ends before, those that no negated content stands behind.
static uint32_t keep_ends(const struct cv_ids_content *content, int32_t *end, uint32_t ends,
	const int32_t *begin, uint32_t count)
{
	uint32_t kept = 0, b = 0;

	for (uint32_t i = 0; i < ends; i++) {
		const int64_t least = (int64_t)end[i] + content->first;
		const int64_t most =
			content->bounded ? (int64_t)end[i] + content->last - content->len : NEVER;

		while (b < count && begin[b] < least)
			b++;
		if (b == count || begin[b] > most)
			end[kept++] = end[i];
	}
	return kept;
}

bool cv_ids_confirm(const struct cv_ids_rule *rule, const uint8_t *data, uint32_t len,
	uint64_t base, struct cv_ids_places *places)
{
	uint32_t ends = 0;

	for (unsigned i = 0; i < rule->contents_count; i++) {
		const struct cv_ids_content *content = &rule->contents[i];
		int64_t first = 0, last = len;
		uint32_t count;

		if (!content->relative) {
			first = (int64_t)content->first - (int64_t)base;
			if (content->bounded && content->last - (int64_t)base < last)
				last = content->last - (int64_t)base;
			if (first < 0)
				first = 0;
		}
		count = first < last ? search(content, data, (int32_t)first, (int32_t)last,
					       places->begin)
				     : 0;
		if (content->negated) {
			if (!content->relative && count > 0)
				return false;
			if (!content->relative)
				continue;
			ends = keep_ends(content, places->end, ends, places->begin, count);
			if (ends == 0)
				return false;
			continue;
		}
		if (content->relative)
			count = keep_begins(content, places->end, ends, places->begin, count);
		if (count == 0)
			return false;
		for (ends = 0; ends < count; ends++)
			places->end[ends] = places->begin[ends] + content->len;
	}
	return true;
}
