// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a trial's specification: read or refused with a reason. What is accepted keeps what
// the sending loop is built on.
#include <stdint.h>
#include <stdlib.h>

#include "gen/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct cv_error error = {0};
	struct gen_spec spec;

	if (json == NULL)
		return 0;
	if (gen_spec_parse(&spec, json, 2, &error) == 0) {
		must(error.text[0] == '\0');
		must(spec.duration_s > 0 && spec.rate_pps >= 0 && spec.burst >= 1);
		must(spec.rate_pps * spec.duration_s < UINT32_MAX);
		must(spec.path_count >= 1 && spec.path_count <= GEN_MAX_PATHS);
		for (uint32_t i = 0; i < spec.path_count; i++)
			must(spec.paths[i].from < 2 && spec.paths[i].to < 2);
		must(spec.flows.count >= 1 && spec.flows.src_ip.span >= 1 &&
			spec.flows.dst_ip.span >= 1 && spec.flows.src_port.span >= 1 &&
			spec.flows.dst_port.span >= 1);
		must(!spec.flows.tagged || spec.flows.vlan.span >= 1);
	} else {
		must(error.text[0] != '\0');
	}
	gen_spec_free(&spec);
	json_decref(json);
	return 0;
}
