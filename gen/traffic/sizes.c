// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/sizes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/traffic/random.h"

#define SIZES_MAX 65536u

struct share {
	uint32_t bytes;
	double weight;
};

static const struct share imix[] = {{64, 28}, {570, 16}, {1518, 4}};

// Lines `bytes,weight`; empty lines and those that begin with # are skipped, as is a header.
static int read_file(
	const char *path, struct share **shares, uint32_t *count, struct cv_error *error)
{
	FILE *file = fopen(path, "r");
	char line[256];
	uint32_t number = 0;

	*count = 0;
	*shares = calloc(SIZES_MAX, sizeof(**shares));
	if (file == NULL || *shares == NULL) {
		cv_error_set(error, "spec: size: file: %s: %s", path, strerror(errno));
		if (file != NULL)
			fclose(file);
		return -EINVAL;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		struct share share;
		int end = 0;

		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '\0' || line[0] == '#' || strcmp(line, "bytes,weight") == 0)
			continue;
		if (sscanf(line, "%u,%lf%n", &share.bytes, &share.weight, &end) != 2 ||
			line[end] != '\0' || share.bytes < 64 || share.bytes > 65535 ||
			!(share.weight >= 0 && share.weight < 1e15) || *count == SIZES_MAX) {
			cv_error_set(error,
				"%s:%u: %.60s: must be `bytes,weight`, bytes (with FCS) 64 to "
				"65535, weight 0 or more",
				path, number, line);
			fclose(file);
			return -EINVAL;
		}
		if (share.weight > 0)
			(*shares)[(*count)++] = share;
	}
	fclose(file);
	if (*count == 0) {
		cv_error_set(error, "%s: no sizes; add lines `bytes,weight`", path);
		return -EINVAL;
	}
	return 0;
}

// Cumulative rounding: every prefix of the list has its share within one packet.
static void apportion(
	uint32_t *sizes, uint32_t count, const struct share *shares, uint32_t share_count)
{
	double total = 0, sum = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < share_count; i++)
		total += shares[i].weight;
	for (uint32_t i = 0; i < share_count; i++) {
		sum += shares[i].weight;
		uint32_t end = (uint32_t)(sum / total * count + 0.5);
		if (i == share_count - 1)
			end = count;
		while (at < end)
			sizes[at++] = shares[i].bytes;
	}
}

int gen_sizes_draw(
	uint32_t *sizes, uint32_t count, const struct gen_spec *spec, struct cv_error *error)
{
	struct share *shares = NULL;
	uint32_t share_count = 0;

	switch (spec->sizes) {
	case GEN_SIZE_FIXED:
		for (uint32_t i = 0; i < count; i++)
			sizes[i] = spec->frame_bytes;
		return 0;
	case GEN_SIZE_IMIX:
		apportion(sizes, count, imix, sizeof(imix) / sizeof(imix[0]));
		break;
	case GEN_SIZE_FILE:
		if (read_file(spec->size_file, &shares, &share_count, error) < 0) {
			free(shares);
			return -EINVAL;
		}
		apportion(sizes, count, shares, share_count);
		free(shares);
	}
	gen_shuffle(sizes, count, spec->seed);
	return 0;
}
