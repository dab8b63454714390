// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any text as a file of ids' rules, and any bytes as a payload in which the rules' contents are searched
// for. Whatever comes: a file is read, or refused with words; places of contents lie in the payload.
//
// Input: the file; a zero byte; the payload.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nf/ids/confirm.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *variables;
static struct cv_ids_places places;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void confirm_all(const struct cv_ids_rules *rules, const uint8_t *data, size_t size)
{
	const uint32_t len = (uint32_t)(size > CV_IDS_SPAN_MAX ? CV_IDS_SPAN_MAX : size);
	uint8_t *exact = malloc(len + !len);

	must(exact != NULL, "there is memory");
	memcpy(exact, data, len);
	for (uint32_t i = 0; i < rules->count; i++) {
		uint32_t all = UINT32_MAX, enough, few;
		const enum cv_ids_answer answer =
			cv_ids_confirm(&rules->rule[i], exact, len, 0, &places, &all);

		must(answer != CV_IDS_UNKNOWN, "enough steps suffice");
		enough = UINT32_MAX - all + 1;
		few = enough / 2;
		must(answer == cv_ids_confirm(&rules->rule[i], exact, len, 0, &places, &enough),
			"once and again");
		must(enough == 1, "the same steps");
		must(rules->rule[i].contents_count == 0 ||
				cv_ids_confirm(&rules->rule[i], exact, len, 0, &places, &few) ==
					CV_IDS_UNKNOWN,
			"few steps do not suffice");
	}
	free(exact);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	variables = json_pack("{s:s, s:s, s:s}", "HOME", "[10.0.0.0/8, !10.1.0.0/16]", "NOT",
		"!$HOME", "SELF", "$SELF");
	must(variables != NULL, "there is memory");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
	const size_t len = end != NULL ? (size_t)(end - data) : size;
	struct cv_ids_rules rules = {0};
	struct cv_error error = {""};
	char *text = malloc(len + 1);
	int rc;

	must(text != NULL, "there is memory");
	memcpy(text, data, len);
	text[len] = '\0';
	rc = cv_ids_rules_parse(&rules, text, len, "x", "ids", variables, true, &error);
	must((rc == 0) == (error.text[0] == '\0'), "what is refused is refused with words");
	must(strchr(error.text, '\n') == NULL, "in one line");
	if (rc == 0 && end != NULL)
		confirm_all(&rules, end + 1, size - len - 1);
	cv_ids_rules_free(&rules);
	free(text);
	return 0;
}
