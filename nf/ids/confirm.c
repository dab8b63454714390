// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/confirm.h"

#include <string.h>

#include "packet/compiler.h"

#define NEVER INT32_MAX
#define RUN 16 // bytes that are run over in one step

static CV_INLINE uint8_t fold(uint8_t byte, bool nocase)
{
	return nocase && byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

// How many bytes there are before the next one that a content may begin with; len: there is none.
static uint32_t run_over(const struct cv_ids_content *content, const uint8_t *data, uint32_t len)
{
	const uint8_t want = content->bytes[0];
	uint32_t at = 0;

	if (!content->nocase || want < 'a' || want > 'z') {
		const uint8_t *next = memchr(data, want, len);

		return next == NULL ? len : (uint32_t)(next - data);
	}
	for (; at + RUN <= len; at += RUN) {
		uint8_t some = 0;

		for (unsigned i = 0; i < RUN; i++)
			some |= (data[at + i] | 0x20) == want;
		if (some)
			break;
	}
	while (at < len && (data[at] | 0x20) != want)
		at++;
	return at;
}

static CV_INLINE void take(uint32_t *left, uint32_t steps)
{
	*left = *left > steps ? *left - steps : 0;
}

// Where a content begins, in [first, last - its length] of data, ascending. Returns how often, as far as
// *left reaches. Knuth, Morris, Pratt: each byte is looked at twice at most.
static uint32_t search(const struct cv_ids_content *content, const uint8_t *data, int32_t first,
	int32_t last, int32_t *begin, uint32_t *left)
{
	const unsigned len = content->len;
	uint32_t count = 0;
	unsigned matched = 0;

	for (int32_t at = first; at < last; at++) {
		uint8_t byte;

		if (matched == 0) {
			const uint32_t over = run_over(content, data + at, (uint32_t)(last - at));

			at += (int32_t)over;
			take(left, 1 + over / RUN);
			if (at == last)
				break;
		}
		byte = fold(data[at], content->nocase);
		while (matched > 0 && byte != content->bytes[matched])
			matched = content->failure[matched - 1];
		matched += byte == content->bytes[matched];
		if (matched == len) {
			begin[count++] = at + 1 - (int32_t)len;
			matched = content->failure[len - 1];
		}
		take(left, 1);
		if (CV_UNLIKELY(*left == 0))
			break;
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

enum cv_ids_answer cv_ids_confirm(const struct cv_ids_rule *rule, const uint8_t *data, uint32_t len,
	uint64_t base, struct cv_ids_places *places, uint32_t *left)
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
					       places->begin, left)
				     : 0;
		take(left, content->relative ? 1 + count + ends : 1);
		if (*left == 0)
			return CV_IDS_UNKNOWN;
		if (content->negated) {
			if (!content->relative && count > 0)
				return CV_IDS_NO;
			if (!content->relative)
				continue;
			ends = keep_ends(content, places->end, ends, places->begin, count);
			if (ends == 0)
				return CV_IDS_NO;
			continue;
		}
		if (content->relative)
			count = keep_begins(content, places->end, ends, places->begin, count);
		if (count == 0)
			return CV_IDS_NO;
		for (ends = 0; ends < count; ends++)
			places->end[ends] = places->begin[ends] + content->len;
	}
	return CV_IDS_YES;
}
