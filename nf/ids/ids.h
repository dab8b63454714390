// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the function ids is made of: rules and their databases, and what each worker has of its own.
#ifndef CV_IDS_IDS_H
#define CV_IDS_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "nf/ids/alert_log.h"
#include "nf/ids/confirm.h"
#include "nf/ids/database.h"
#include "nf/ids/rule.h"
#include "nf/ids/stream.h"
#include "nf/ids/threshold.h"
#include "nf/row_counters.h"

// Steps: what a packet costs beside Hyperscan's search. Those of confirm.h, and these.
#define CV_IDS_MATCH_STEPS 64 // a rule that matches: counted, and told of
#define CV_IDS_BASE_BYTES \
	1024 // a packet has the steps of so many bytes beside those of its payload

enum cv_ids_drop {
	CV_IDS_DROP_RULE,
	CV_IDS_DROP_BAD_HEADER,
	CV_IDS_DROP_FRAGMENT,
	CV_IDS_DROP_OVERLAP,
	CV_IDS_DROP_NO_ROOM,
	CV_IDS_DROP_OVER_BUDGET,
};

// Counted by a worker; read by info().
enum cv_ids_count {
	CV_IDS_COUNT_PACKETS, // that were searched
	CV_IDS_COUNT_BYTES, // of these that were
	CV_IDS_COUNT_CANDIDATES, // rules whose patterns were found and whose header fits
	CV_IDS_COUNT_CONFIRMED, // of those whose contents had to be looked at, that matched
	CV_IDS_COUNT_UNCONFIRMED, // that did not
	CV_IDS_COUNT_ALERTS, // that were told
	CV_IDS_COUNT_SUPPRESSED, // that a threshold kept back
	CV_IDS_COUNT_PASSED, // packets that a pass rule let through
	CV_IDS_COUNT_STREAMS, // connections that were matched as streams
	CV_IDS_COUNT_STREAMS_REFUSED, // for which there was no room
	CV_IDS_COUNT_SEGMENTS, // of streams
	CV_IDS_COUNT_EARLY, // that came before what they follow
	CV_IDS_COUNT_BAD_CHECKSUMS, // that are no part of a stream
	CV_IDS_COUNT_BYPASSED_BYTES, // behind the depth
	CV_IDS_COUNT_FORGOTTEN, // rules that there was no room to remember a part of
	CV_IDS_COUNT_STEPS, // that packets took
	CV_IDS_COUNT_OVER_BUDGET, // packets that had too few of them
	CV_IDS_COUNTS,
};

// A packet as rules see it.
struct cv_ids_packet {
	const uint8_t *src, *dst; // addresses of 4 or 16 bytes
	const uint8_t *payload;
	uint32_t len; // of the payload
	uint16_t sport, dport; // host order; of ICMP type and code
	uint8_t l4; // IP's number
	uint8_t proto; // enum cv_ids_proto
	uint8_t flow; // what of CV_IDS_TO_SERVER ... is so
	bool v6, has_ports;
	bool stream; // the payload is a part of one
};

// What a worker has.
struct cv_ids_lane {
	hs_scratch_t *scratch;
	uint64_t *hits; // by rule
	uint8_t *mask; // by rule, which of its parts were found; 0 between packets
	uint32_t *touched; // rules whose mask is not 0
	uint32_t *matched;
	uint32_t touched_count, matched_count;
	uint32_t given, left; // steps of the packet that is looked at
	bool over; // they did not suffice: what would come next is not known
	const struct cv_ids_database *database; // that is searched now
	struct cv_ids_places *places;
	struct cv_ids_thresholds *thresholds; // NULL: no rule has one
	struct cv_ids_streams streams; // of stateful ones
	uint64_t count[CV_IDS_COUNTS];
} __rte_cache_aligned;

struct cv_ids {
	struct cv_ids_rules rules;
	struct cv_ids_database packets[CV_IDS_PROTOS];
	struct cv_ids_database streams; // of TCP; none unless stateful
	uint32_t number; // of the instance; the one before had another
	uint32_t window, connections, segments;
	uint64_t depth; // bytes of a direction that are matched; 0: all
	bool stateful, checks_sums;
	uint32_t budget; // steps for each byte
	bool passes_over_budget;
	struct cv_row_counters hits;
	uint64_t hz; // of the TSC
	bool drop_fragments;
	unsigned workers;
	struct cv_ids_alert_log *log; // NULL: none
	unsigned *log_owners; // instances
	uint64_t counted_before[CV_IDS_COUNTS]; // by instances that this one took the place of
	struct cv_ids_lane *lane; // by worker; those that do not run it have none of the arrays
};

static CV_INLINE void cv_ids_count(struct cv_ids_lane *lane, enum cv_ids_count what, uint64_t more)
{
	// With the load in cv_ids_counted().
	__atomic_store_n(&lane->count[what], lane->count[what] + more, __ATOMIC_RELAXED);
}

// Of all workers, and of instances before. By any thread.
uint64_t cv_ids_counted(const struct cv_ids *ids, enum cv_ids_count what);

// A packet begins, that has the steps of so many bytes.
static CV_INLINE void cv_ids_begin(
	const struct cv_ids *ids, struct cv_ids_lane *lane, uint32_t bytes)
{
	lane->given = lane->left = ids->budget * (bytes + CV_IDS_BASE_BYTES);
	lane->over = false;
}

// Takes steps. False: they are not there, and none is left.
static CV_INLINE bool cv_ids_step(struct cv_ids_lane *lane, uint32_t steps)
{
	if (CV_LIKELY(steps < lane->left)) {
		lane->left -= steps;
		return true;
	}
	lane->left = 0;
	lane->over = true;
	return false;
}

// Whether a rule's contents are in data, within the steps that are left.
bool cv_ids_is_confirmed(struct cv_ids_lane *lane, const struct cv_ids_rule *rule,
	const uint8_t *data, uint32_t len, uint64_t base);

// What a pattern's match is told to, with a lane that names the database.
int cv_ids_found(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *lane);

// Whether a rule's header fits a packet.
bool cv_ids_header_fits(const struct cv_ids_rule *rule, const struct cv_ids_packet *packet);

// What becomes of a packet by the rules in lane->matched, which are told. *passed: a pass rule is
// among them. If neither a pass nor a drop rule is, and its steps did not suffice: what the
// configuration says of such packets.
uint8_t cv_ids_conclude(struct cv_ids *ids, struct cv_nf_worker *worker,
	const struct cv_ids_packet *packet, bool *passed);

// Puts rules without a pattern into lane->matched that match a TCP segment by itself.
void cv_ids_consider_bare(
	struct cv_ids *ids, struct cv_ids_lane *lane, const struct cv_ids_packet *packet);

// Searches a packet by itself. A verdict.
uint8_t cv_ids_match(struct cv_ids *ids, struct cv_nf_worker *worker,
	const struct cv_ids_packet *packet, bool *passed);

// Reads layer 4 at l4, up to end, of data. False: it is not sound.
bool cv_ids_packet_l4(const uint8_t *data, uint32_t l4, uint32_t end, struct cv_ids_packet *packet);

// Makes what a view shows a packet. CV_NEXT; else its verdict: what is not IP, and *packet is not
// set; what is not sound.
enum cv_ids_kind { CV_IDS_IS_PACKET, CV_IDS_IS_FRAGMENT, CV_IDS_IS_NON_IP, CV_IDS_IS_BAD };
enum cv_ids_kind cv_ids_packet_of(const struct cv_view *view, struct cv_ids_packet *packet);

extern const struct cv_nf_flow cv_ids_flow;

// See struct cv_nf.
json_t *cv_ids_info(const void *instance);

#endif
