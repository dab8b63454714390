// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/input.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/options.h"
#include "gen/trial/attach.h"

#define IDLE_MS 50
#define SPEC_MAX (1 << 20)

void gen_print(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', stdout);
	fflush(stdout);
	json_decref(object);
}

// An answer even where the message quotes what is no UTF-8, or was cut in the middle of it.
static void print_bad_spec(struct cv_error *error, json_t *json)
{
	json_t *reason = json_string(error->text);

	if (reason == NULL) {
		for (char *c = error->text; *c != '\0'; c++)
			*c = *c < ' ' ? '?' : *c;
		reason = json_string(error->text);
	}
	gen_print(json_pack("{s:s, s:b, s:s, s:o, s:O?}", "schema", "convoy.trial/2", "ok", false,
		"reason_code", "bad_spec", "reason", reason, "spec", json));
}

static int run_trial(const struct gen_input *input, json_t *json)
{
	struct cv_error error = {0};
	struct gen_trial trial = {0};
	struct gen_spec spec;
	int status = GEN_BAD_INPUT;

	if (gen_spec_parse(&spec, json, input->tester->port_count, &error) < 0) {
		gen_complain(0, "%s", error.text);
		print_bad_spec(&error, json);
		gen_spec_free(&spec);
		return GEN_BAD_INPUT;
	}
	if (!gen_attached(input->tester)) {
		fprintf(stderr, "convoy-gen: a port's peer is away, waiting for it\n");
		gen_attach(input->tester, input->attach_timeout_s, NULL);
	}
	if (spec.warmup_s > 0) {
		struct gen_spec warmup = spec;
		warmup.drain_s = 0;
		gen_trial_run(input->tester, &warmup, spec.warmup_s, &trial, NULL);
		gen_trial_free(&trial);
	}
	if (gen_trial_run(input->tester, &spec, spec.duration_s, &trial, &error) == 0) {
		if (trial.reason_code[0] != '\0')
			fprintf(stderr, "convoy-gen: trial failed: %s\n", trial.reason);
		gen_print(gen_result(input->tester, input->context, &spec, &trial));
		status = GEN_OK;
	} else {
		gen_complain(0, "%s", error.text);
		print_bad_spec(&error, json);
	}
	gen_trial_free(&trial);
	gen_spec_free(&spec);
	return status;
}

static int run_text(
	const struct gen_input *input, const char *text, size_t length, const char *name)
{
	struct cv_error error = {0};
	json_error_t where;
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);

	if (json == NULL) {
		gen_complain(0, "%s: not JSON: %s (column %d)", name, where.text, where.column);
		cv_error_set(&error, "spec: not JSON: %.200s", where.text);
		print_bad_spec(&error, NULL);
		return GEN_BAD_INPUT;
	}
	const int status = run_trial(input, json);
	json_decref(json);
	return status;
}

int gen_input_file(const struct gen_input *input, const char *path)
{
	static char text[SPEC_MAX];
	FILE *file = fopen(path, "r");

	if (file == NULL)
		return gen_complain(GEN_BAD_INPUT, "--spec %s: %s", path, strerror(errno));
	const size_t length = fread(text, 1, sizeof(text), file);
	fclose(file);
	return run_text(input, text, length, path);
}

// Lines from standard input; between them, ports whose peer went away are attached again.
int gen_input_lines(const struct gen_input *input)
{
	static char text[SPEC_MAX];
	size_t have = 0;
	int status = GEN_OK;

	while (!input->tester->stop) {
		struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
		char *end = memchr(text, '\n', have);

		if (end != NULL) {
			const size_t length = (size_t)(end - text);
			if (strspn(text, " \t\r") < length &&
				run_text(input, text, length, "standard input") != GEN_OK)
				status = GEN_BAD_INPUT;
			have -= length + 1;
			memmove(text, end + 1, have);
			continue;
		}
		if (have == sizeof(text))
			return gen_complain(
				GEN_BAD_INPUT, "standard input: a line of more than 1 MiB");
		if (!gen_attached(input->tester))
			gen_attach(input->tester, 0, NULL);
		if (poll(&ready, 1, IDLE_MS) <= 0)
			continue;
		const ssize_t got = read(STDIN_FILENO, text + have, sizeof(text) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (have == 0)
				return status;
			text[have++] = '\n';
			continue;
		}
		have += (size_t)got;
	}
	return status;
}
