// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which rules match a packet, and what follows.
#include <string.h>

#include "nf/ids/ids.h"

int cv_ids_found(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
	struct cv_ids_lane *lane = context;
	const struct cv_ids_database *database = lane->database;

	for (uint32_t i = database->first[id]; i < database->first[id + 1]; i++) {
		const struct cv_ids_part part = database->part[i];

		if (!cv_ids_step(lane, 1))
			return 1; // ends the search
		if (lane->mask[part.rule] == 0)
			lane->touched[lane->touched_count++] = part.rule;
		lane->mask[part.rule] |= part.bit;
	}
	return 0;
}

static bool fits_one_way(
	const struct cv_ids_rule *rule, const struct cv_ids_packet *packet, bool turned)
{
	const uint8_t *src = turned ? packet->dst : packet->src;
	const uint8_t *dst = turned ? packet->src : packet->dst;
	const uint16_t sport = turned ? packet->dport : packet->sport;
	const uint16_t dport = turned ? packet->sport : packet->dport;

	return (packet->has_ports || (rule->sport == NULL && rule->dport == NULL)) &&
	       cv_ids_ports_have(rule->dport, dport) && cv_ids_ports_have(rule->sport, sport) &&
	       cv_ids_addresses_have(rule->src, src, packet->v6) &&
	       cv_ids_addresses_have(rule->dst, dst, packet->v6);
}

bool cv_ids_header_fits(const struct cv_ids_rule *rule, const struct cv_ids_packet *packet)
{
	if ((rule->flow & packet->flow) != rule->flow)
		return false;
	return fits_one_way(rule, packet, false) ||
	       (rule->both_ways && fits_one_way(rule, packet, true));
}

bool cv_ids_is_confirmed(struct cv_ids_lane *lane, const struct cv_ids_rule *rule,
	const uint8_t *data, uint32_t len, uint64_t base)
{
	const enum cv_ids_answer answer =
		cv_ids_confirm(rule, data, len, base, lane->places, &lane->left);

	lane->over |= answer == CV_IDS_UNKNOWN;
	return answer == CV_IDS_YES;
}

// Puts a rule whose parts were all found into matched, if the rest fits as well.
static void consider(struct cv_ids *ids, struct cv_ids_lane *lane,
	const struct cv_ids_packet *packet, uint32_t index)
{
	const struct cv_ids_rule *rule = &ids->rules.rule[index];

	if (!cv_ids_header_fits(rule, packet))
		return;
	cv_ids_count(lane, CV_IDS_COUNT_CANDIDATES, 1);
	if (!rule->exact) {
		const bool is = cv_ids_is_confirmed(lane, rule, packet->payload, packet->len, 0);

		if (lane->over)
			return;
		cv_ids_count(lane, is ? CV_IDS_COUNT_CONFIRMED : CV_IDS_COUNT_UNCONFIRMED, 1);
		if (!is)
			return;
	}
	if (cv_ids_step(lane, CV_IDS_MATCH_STEPS))
		lane->matched[lane->matched_count++] = index;
}

void cv_ids_consider_bare(
	struct cv_ids *ids, struct cv_ids_lane *lane, const struct cv_ids_packet *packet)
{
	const struct cv_ids_database *database = &ids->packets[packet->proto];

	for (uint32_t i = 0; i < database->bare_count && !lane->over; i++)
		consider(ids, lane, packet, database->bare[i]);
}

static void alert_of(struct cv_ids *ids, struct cv_nf_worker *worker,
	const struct cv_ids_packet *packet, const struct cv_ids_rule *rule)
{
	struct cv_ids_lane *lane = &ids->lane[worker->index];
	const unsigned bytes = packet->v6 ? 16 : 4;
	struct cv_ids_alert alert = {
		.now = worker->now,
		.rule = rule->json,
		.sport = packet->sport,
		.dport = packet->dport,
		.proto = packet->l4,
		.v6 = packet->v6,
		.blocked = rule->action == CV_IDS_DROP,
		.stream = packet->stream,
	};

	if (rule->threshold.type != CV_IDS_UNBOUNDED &&
		!cv_ids_threshold_tells(lane->thresholds, rule,
			rule->threshold.track == CV_IDS_BY_SRC ? packet->src : packet->dst, bytes,
			worker->now, ids->hz)) {
		cv_ids_count(lane, CV_IDS_COUNT_SUPPRESSED, 1);
		return;
	}
	cv_ids_count(lane, CV_IDS_COUNT_ALERTS, 1);
	if (ids->log == NULL)
		return;
	memcpy(alert.src, packet->src, bytes);
	memcpy(alert.dst, packet->dst, bytes);
	cv_ids_alert_log_add(ids->log, worker->index, &alert);
}

uint8_t cv_ids_conclude(struct cv_ids *ids, struct cv_nf_worker *worker,
	const struct cv_ids_packet *packet, bool *passed)
{
	struct cv_ids_lane *lane = &ids->lane[worker->index];
	uint8_t action = CV_IDS_ALERT;

	for (uint32_t i = 0; i < lane->matched_count; i++) {
		const uint8_t of = ids->rules.rule[lane->matched[i]].action;

		cv_row_count(lane->hits, lane->matched[i], 1);
		if (of < action)
			action = of;
	}
	*passed = action == CV_IDS_PASS;
	if (*passed)
		cv_ids_count(lane, CV_IDS_COUNT_PASSED, 1);
	for (uint32_t i = 0; i < lane->matched_count && !*passed; i++)
		alert_of(ids, worker, packet, &ids->rules.rule[lane->matched[i]]);
	lane->matched_count = 0;
	cv_ids_count(lane, CV_IDS_COUNT_STEPS, lane->given - lane->left);
	if (action == CV_IDS_DROP)
		return CV_DROP(CV_IDS_DROP_RULE);
	if (CV_LIKELY(!lane->over) || *passed)
		return CV_NEXT;
	cv_ids_count(lane, CV_IDS_COUNT_OVER_BUDGET, 1);
	return ids->passes_over_budget ? CV_NEXT : CV_DROP(CV_IDS_DROP_OVER_BUDGET);
}

CV_HOT uint8_t cv_ids_match(struct cv_ids *ids, struct cv_nf_worker *worker,
	const struct cv_ids_packet *packet, bool *passed)
{
	struct cv_ids_lane *lane = &ids->lane[worker->index];
	const struct cv_ids_database *database = &ids->packets[packet->proto];

	*passed = false;
	cv_ids_begin(ids, lane, packet->len);
	if (CV_LIKELY(database->hs != NULL && packet->len > 0)) {
		lane->database = database;
		hs_scan(database->hs, (const char *)packet->payload, packet->len, 0, lane->scratch,
			cv_ids_found, lane);
		cv_ids_count(lane, CV_IDS_COUNT_PACKETS, 1);
		cv_ids_count(lane, CV_IDS_COUNT_BYTES, packet->len);
	}
	for (uint32_t i = 0; i < lane->touched_count; i++) {
		const uint32_t rule = lane->touched[i];

		if (lane->mask[rule] == ids->rules.rule[rule].parts && !lane->over &&
			cv_ids_step(lane, ids->rules.rule[rule].header_steps))
			consider(ids, lane, packet, rule);
		lane->mask[rule] = 0;
	}
	lane->touched_count = 0;
	cv_ids_consider_bare(ids, lane, packet);
	// Most packets have nothing that was found.
	return lane->left == lane->given ? CV_NEXT : cv_ids_conclude(ids, worker, packet, passed);
}
