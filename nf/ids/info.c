// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the function tells about itself.
#include "nf/ids/ids.h"

static const char *const names[CV_IDS_COUNTS] = {"searched_packets", "searched_bytes", "candidates",
	"confirmed", "unconfirmed", "alerts", "alerts_suppressed", "packets_passed", "streams",
	"streams_refused", "segments", "early_segments", "bad_checksums", "bypassed_bytes",
	"forgotten", "steps", "over_budget"};

static json_t *skipped(const struct cv_ids_rules *rules)
{
	json_t *lines = json_array();

	for (uint32_t i = 0; i < rules->skipped_count && i < CV_IDS_SKIPPED_MAX; i++)
		json_array_append_new(
			lines, json_pack("{s:I, s:s}", "line", (json_int_t)rules->skipped[i].line,
				       "why", rules->skipped[i].why));
	return lines;
}

// Of rules that have matched.
static json_t *hits(const struct cv_ids *ids)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < ids->rules.count; i++) {
		const struct cv_ids_rule *rule = &ids->rules.rule[i];
		const uint64_t packets = cv_row_counters_sum(&ids->hits, i);

		if (packets > 0)
			json_array_append_new(
				rows, json_pack("{s:I, s:I, s:I, s:s, s:I}", "gid",
					      (json_int_t)rule->gid, "sid", (json_int_t)rule->sid,
					      "line", (json_int_t)rule->line, "msg",
					      rule->msg != NULL ? rule->msg : "", "packets",
					      (json_int_t)packets));
	}
	return rows;
}

static size_t database_bytes(const struct cv_ids *ids)
{
	size_t all = 0, bytes;

	for (unsigned i = 0; i < CV_IDS_PROTOS; i++)
		if (ids->packets[i].hs != NULL &&
			hs_database_size(ids->packets[i].hs, &bytes) == HS_SUCCESS)
			all += bytes;
	if (ids->streams.hs != NULL && hs_database_size(ids->streams.hs, &bytes) == HS_SUCCESS)
		all += bytes;
	return all;
}

uint64_t cv_ids_counted(const struct cv_ids *ids, enum cv_ids_count what)
{
	uint64_t sum = ids->counted_before[what];

	for (unsigned w = 0; w < ids->workers; w++)
		sum += __atomic_load_n(&ids->lane[w].count[what], __ATOMIC_RELAXED);
	return sum;
}

json_t *cv_ids_info(const void *instance)
{
	const struct cv_ids *ids = instance;
	json_t *info = json_pack("{s:I, s:I, s:I, s:o, s:o}", "rules_count",
		(json_int_t)ids->rules.count, "rules_skipped", (json_int_t)ids->rules.skipped_count,
		"database_bytes", (json_int_t)database_bytes(ids), "skipped", skipped(&ids->rules),
		"hits", hits(ids));

	for (unsigned i = 0; i < CV_IDS_COUNTS; i++)
		json_object_set_new(
			info, names[i], json_integer((json_int_t)cv_ids_counted(ids, i)));
	if (ids->log != NULL) {
		json_object_set_new(info, "alerts_written",
			json_integer((json_int_t)cv_ids_alert_log_written(ids->log)));
		json_object_set_new(info, "alerts_lost",
			json_integer((json_int_t)cv_ids_alert_log_lost(ids->log)));
	}
	return info;
}
