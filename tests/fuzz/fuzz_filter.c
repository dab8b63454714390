// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as the text of a filter, and any behind its end as a packet: it is compiled within its
// bounds, or refused with a line that says why; what it may take is never less than what it takes.
#include <stdlib.h>
#include <string.h>

#include "chain/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int find(const void *of, const char *name)
{
	return name[0] == 'a' ? 1 : -1;
}

static bool is_reason(const void *of, const char *name)
{
	return name[0] == 'a';
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cv_filter_names names = {
		.port = find, .chain = find, .reason = is_reason};
	const size_t length = strnlen((const char *)data, size);
	const size_t left = size - length;
	char *text = strndup((const char *)data, length);
	uint8_t *packet = malloc(left + 1);
	struct cv_view view = {.in = 1};
	struct cv_error error = {0};
	struct cv_filter filter;
	uint32_t terms;

	must(text != NULL && packet != NULL);
	memcpy(packet, data + length, left);
	if (cv_filter_compile(&filter, text, &names, &error) == 0 && left <= UINT16_MAX) {
		cv_view_set(&view, packet, (uint16_t)left);
		terms = cv_filter_test(&filter, &view, 1);
		must(!cv_filter_takes(&filter, terms) || cv_filter_may_take(&filter, terms));
		terms = cv_filter_dropped(&filter, terms, "a");
		must(!cv_filter_takes(&filter, terms) || cv_filter_may_take(&filter, terms));
	} else {
		must(left > UINT16_MAX || error.text[0] != '\0');
	}
	free(packet);
	free(text);
	return 0;
}
