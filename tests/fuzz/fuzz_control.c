// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a next hop that somebody sends to a running node: taken or refused with a reason. What
// is taken has a name, a port that sends convoys, keys, and a header that can be made or is refused.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convoy/outer.h"
#include "daemon/plan_next_hop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct cv_plan_next_hop *next_hop)
{
	struct cv_error error = {0};
	struct cv_outer outer;

	must(next_hop->name[0] != '\0' &&
		memchr(next_hop->name, '\0', sizeof(next_hop->name)) != NULL);
	must(next_hop->port < 3 && next_hop->port != 2); // the third carries none
	must(next_hop->keys_count == 0 || next_hop->keys != NULL);
	must((cv_outer_set(&outer, &next_hop->outer, &error) == 0) == (error.text[0] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const ports[] = {"left", "right", "none"};
	static const struct cv_plan_convoys convoys[] = {
		{.carries = true,
			.udp_port = 51966,
			.address = {.len = 4, .bytes = {192, 0, 2, 1}}},
		{.carries = true, .udp_port = 51966, .address = {.len = 16, .bytes = {0x20, 1}}},
		{.carries = false},
	};
	struct cv_error error = {0};
	struct cv_plan_next_hop next_hop;
	const struct cv_where at = cv_where_top("next hop", &error);
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	int rc;

	if (json == NULL)
		return 0;
	rc = cv_plan_next_hop_read(&at, json, ports, 3, convoys, &next_hop);
	must((rc == 0) == (error.text[0] == '\0'));
	if (rc == 0) {
		check(&next_hop);
		cv_plan_next_hop_free(&next_hop);
	}
	json_decref(json);
	return 0;
}
