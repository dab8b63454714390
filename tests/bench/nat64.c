// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat64, which makes IPv6 packets of IPv4 packets: all hosts are in the prefix.
#include "tests/bench/bench.h"

int bench_nat64_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	json_t *config = json_pack("{ss s[s] ss ss}", "prefix", "2001:db8:64::/96", "hosts",
		"0.0.0.0/0", "source", "192.0.2.1", "source_ipv6", "2001:db8::1");
	const int rc = bench_path_create_of(subject, "nat64", config, error);

	json_decref(config);
	subject->uses_up = true;
	return rc;
}
