// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Measures rates and does to each packet what its colour asks for.
//
//   {"meter": "trtcm", "cir_bps": 10000000, "pir_bps": 20000000,
//    "yellow": {"dscp": 12}, "red": "drop", "per": "host"}
//
// A packet is green, yellow or red by one of three meters: srtcm (RFC 2697), trtcm (RFC 2698),
// trtcm-4115 (RFC 4115). They count bytes of IP packets, or packets. Colour-aware, a packet's own
// colour is the drop precedence of its DSCP (RFC 2597): AFx2 is yellow, AFx3 red, all else green.
//
// There is one meter for all packets, one for each host (or prefix), or one for each flow, then both
// of its directions together. Per host, the table has a fixed size; packets of hosts for which
// there is no room are dropped.
//
// Each worker has meters of its own, without a lock. Of "all" and "host" each gets its share of the
// rates: a rate is divided among the workers that have seen packets. Bursts are not divided.
//
// Reconfigured, meters go on as full as they were. They begin anew if what they count is another:
// meter, per, host, the prefixes, entries, or bits in place of packets. Of meters by flow the number
// of entries stays.
//
// Drops: policed_green, policed_yellow, policed_red, bad_header (lengths that do not add up, tags
// that nobody looks behind), non_ip, table_full (no room for another host or flow).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "nf/policer/config.h"
#include "nf/policer/measure.h"
#include "nf/policer/meter.h"
#include "nf/policer/table.h"
#include "packet/prefix.h"

static const char *const drops[] = {"policed_green", "policed_yellow", "policed_red", "bad_header",
	"non_ip", "table_full", NULL};

// What one worker has.
struct lane {
	struct cv_meter meter; // per all
	unsigned seen_by; // the number of the instance that saw its last packet; 0: none has
	struct cv_meter_table table; // per host
	uint64_t flows; // per flow: that have a meter
	uint64_t unit_since; // meters of flows that are older count another unit: fill them
	uint8_t unit; // of the instance that decided last
	struct {
		uint64_t packets, bytes;
	} counted[RTE_COLORS];
} __rte_cache_aligned;

// What the instance that takes this one's place goes on with.
struct lanes {
	unsigned owners; // instances
	unsigned last; // number of an instance
	unsigned running; // workers that have seen a packet
	unsigned workers;
	struct lane lane[];
};

struct policer {
	unsigned number;
	uint8_t unit; // another one when meters of flows count something else
	uint64_t refill; // TSC cycles without packets that fill a host's meter
	enum cv_meter_kind kind;
	enum cv_policer_per per;
	bool packets; // tokens are packets, not bytes
	bool colour_aware;
	bool plain; // neither, and green packets pass as they are: what follow() is fast for
	bool host_dst;
	uint8_t non_ip_verdict;
	uint8_t verdict[RTE_COLORS];
	struct cv_policer_action action[RTE_COLORS];
	struct cv_meter_key mask[2]; // of a host's address: IPv4, IPv6
	unsigned workers;
	uint32_t entries;
	struct cv_meter_rates rates;
	struct lanes *lanes;
	struct cv_meter_profile profiles[]; // by how many workers share the rate, less 1
};

// With the loads in info().
static CV_INLINE void count(
	struct lane *lane, enum rte_color colour, uint64_t packets, uint64_t bytes)
{
	__atomic_store_n(&lane->counted[colour].packets, lane->counted[colour].packets + packets,
		__ATOMIC_RELAXED);
	__atomic_store_n(&lane->counted[colour].bytes, lane->counted[colour].bytes + bytes,
		__ATOMIC_RELAXED);
}

// The meter's word on a packet, and what follows.
static CV_INLINE uint8_t police(const struct policer *policer, struct lane *lane,
	struct cv_meter *meter, const struct cv_meter_profile *profile, uint64_t now,
	const struct cv_view *view, const struct cv_measured *measured)
{
	const enum rte_color colour = cv_meter_check(policer->kind, meter, profile, now,
		policer->packets ? 1 : measured->bytes, measured->colour);

	count(lane, colour, 1, measured->bytes);
	if (policer->action[colour].what == CV_POLICER_MARK)
		cv_dscp_write(view, policer->action[colour].dscp);
	return policer->verdict[colour];
}

// The meter of a packet's host; NULL: there is no room for it.
static CV_INLINE struct cv_meter *host_meter(const struct policer *policer, struct lane *lane,
	const struct cv_meter_profile *profile, uint64_t now, const struct cv_view *view, bool v6)
{
	const uint8_t *ip = view->data + view->l3;
	struct cv_meter_key key = {{0, 0}};
	struct cv_meter *meter;
	bool is_new;

	if (v6) {
		memcpy(&key, ip + (policer->host_dst ? 24 : 8), 16);
	} else {
		memcpy(&key, ip + (policer->host_dst ? 16 : 12), 4);
		key.words[1] = UINT64_MAX; // no IPv6 host is masked to this by a length under 128
	}
	key.words[0] &= policer->mask[v6].words[0];
	key.words[1] &= policer->mask[v6].words[1];
	meter = cv_meter_table_get(&lane->table, &key, now, &is_new);
	if (CV_UNLIKELY(meter != NULL && is_new))
		cv_meter_fill(profile, now, meter);
	return meter;
}

static CV_INLINE uint8_t verdict_of(const struct policer *policer, struct lane *lane,
	const struct cv_meter_profile *profile, uint64_t now, const struct cv_view *view)
{
	struct cv_measured measured;
	const uint8_t unmeasured = cv_measure(view, policer->colour_aware, &measured);
	struct cv_meter *meter = &lane->meter;

	if (CV_UNLIKELY(unmeasured != CV_NEXT))
		return unmeasured == CV_DROP(CV_POLICED_NON_IP) ? policer->non_ip_verdict
								: unmeasured;
	if (policer->per == CV_PER_HOST)
		meter = host_meter(policer, lane, profile, now, view, measured.v6);
	if (CV_UNLIKELY(meter == NULL))
		return CV_DROP(CV_POLICED_TABLE_FULL);
	return police(policer, lane, meter, profile, now, view, &measured);
}

// The first packet of a worker since the instance was made.
static void begin_running(struct policer *policer, struct lane *lane)
{
	if (lane->seen_by == 0) // another worker shares the rates; with the load in process()
		__atomic_fetch_add(&policer->lanes->running, 1, __ATOMIC_RELAXED);
	lane->seen_by = policer->number;
	if (policer->per == CV_PER_HOST)
		cv_meter_table_set_idle(&lane->table, policer->refill);
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes->lane[worker->index];
	const struct cv_meter_profile *profile;
	uint16_t others = 0;

	if (n == 0)
		return 0;
	if (CV_UNLIKELY(lane->seen_by != policer->number))
		begin_running(policer, lane);
	profile =
		&policer->profiles[__atomic_load_n(&policer->lanes->running, __ATOMIC_RELAXED) - 1];
	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = verdict_of(policer, lane, profile, worker->now, &view[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct policer *policer = instance;
	struct cv_meter *meter = slot;
	struct lane *lane = &policer->lanes->lane[worker->index];

	if (packet->why == CV_FLOW_NEW) {
		if (lane->flows >= policer->entries) {
			actions->once = true;
			return CV_DROP(CV_POLICED_TABLE_FULL);
		}
		// With the load in info().
		__atomic_store_n(&lane->flows, lane->flows + 1, __ATOMIC_RELAXED);
	}
	if (lane->unit != policer->unit) {
		lane->unit = policer->unit;
		lane->unit_since = worker->now;
	}
	if (packet->why == CV_FLOW_NEW || meter->time <= lane->unit_since)
		cv_meter_fill(&policer->profiles[0], worker->now, meter);
	actions->follow = true;
	return CV_NEXT;
}

// Of one kind, which the compiler knows. All that is the same for all packets is read once. plain: tokens
// are bytes, colours that packets come with do not matter, and green ones pass as they are.
static CV_INLINE unsigned follow_as(const struct policer *policer, const enum cv_meter_kind kind,
	const bool plain, struct lane *lane, uint64_t now, const struct cv_flow_followed *packets,
	uint8_t *verdicts, unsigned n)
{
	const struct cv_meter_profile profile = policer->profiles[0];
	const bool in_packets = !plain && policer->packets;
	const bool colour_aware = !plain && policer->colour_aware;
	unsigned counted[RTE_COLORS] = {0}, others = 0;
	uint64_t bytes[RTE_COLORS] = {0}, green = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_followed *packet = &packets[i];
		const enum rte_color in =
			colour_aware ? cv_dscp_colour(cv_dscp_read(packet->view)) : RTE_COLOR_GREEN;
		const uint32_t len = packet->bytes;
		const enum rte_color colour =
			cv_meter_check(kind, packet->slot, &profile, now, in_packets ? 1 : len, in);

		green += len;
		if (CV_LIKELY(plain && colour == RTE_COLOR_GREEN))
			continue;
		counted[colour]++;
		bytes[colour] += len;
		if (policer->action[colour].what == CV_POLICER_MARK)
			cv_dscp_write(packet->view, policer->action[colour].dscp);
		verdicts[i] = policer->verdict[colour];
		others += verdicts[i] != CV_NEXT;
	}
	for (unsigned colour = RTE_COLOR_YELLOW; colour < RTE_COLORS; colour++) {
		if (counted[colour] == 0)
			continue;
		count(lane, colour, counted[colour], bytes[colour]);
		n -= counted[colour];
		green -= bytes[colour];
	}
	count(lane, RTE_COLOR_GREEN, n, green); // all others
	return others;
}

CV_HOT static unsigned follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	const struct policer *policer = instance;
	struct lane *lane = &policer->lanes->lane[worker->index];

	switch (policer->kind) {
	case CV_METER_SRTCM:
		if (CV_LIKELY(policer->plain))
			return follow_as(policer, CV_METER_SRTCM, true, lane, worker->now, packets,
				verdicts, n);
		return follow_as(
			policer, CV_METER_SRTCM, false, lane, worker->now, packets, verdicts, n);
	case CV_METER_TRTCM:
		return follow_as(
			policer, CV_METER_TRTCM, false, lane, worker->now, packets, verdicts, n);
	default:
		return follow_as(policer, CV_METER_TRTCM_4115, false, lane, worker->now, packets,
			verdicts, n);
	}
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes->lane[worker->index];

	__atomic_store_n(&lane->flows, lane->flows - 1, __ATOMIC_RELAXED); // as above
}

// An ICMP error about nothing that is known passes: it is of no flow that has a rate.
static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	const struct policer *policer = instance;

	if (why == CV_FLOW_NON_IP)
		return policer->non_ip_verdict;
	return why == CV_FLOW_BAD_HEADER ? CV_DROP(CV_POLICED_BAD_HEADER) : CV_NEXT;
}

static bool is_stateful(const void *instance)
{
	return ((const struct policer *)instance)->per == CV_PER_FLOW;
}

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct cv_meter),
	.is_stateful = is_stateful,
	.decide = decide,
	.follow = follow,
	.ended = ended,
	.other = other,
};

static int read_actions(const struct cv_policer_config *config, struct policer *policer,
	const struct cv_nf_env *env, struct cv_error *error)
{
	for (unsigned colour = 0; colour < RTE_COLORS; colour++) {
		struct cv_policer_action action = config->action[colour];
		int output;

		if (action.what == CV_POLICER_DEFAULT)
			action.what = colour == RTE_COLOR_RED ? CV_POLICER_DROP : CV_POLICER_PASS;
		policer->verdict[colour] = action.what == CV_POLICER_DROP
						   ? CV_DROP(CV_POLICED_GREEN + colour)
						   : CV_NEXT;
		policer->action[colour] = action;
		policer->action[colour].output = NULL; // it is the configuration's
		if (action.what != CV_POLICER_OUTPUT)
			continue;
		output = cv_nf_env_output(env, action.output);
		if (output < 0 || policer->per == CV_PER_FLOW) {
			cv_error_set(error, "%s: %s: output: \"%.64s\": %s", env->name,
				cv_policer_colours[colour], action.output,
				output < 0 ? "no output has that name; add it to outputs"
					   : "is not possible per flow; drop or mark");
			return -EINVAL;
		}
		policer->verdict[colour] = CV_OUTPUT(output);
	}
	return 0;
}

static int make_lane(struct policer *policer, struct lane *lane, int socket)
{
	cv_meter_fill(&policer->profiles[0], 0, &lane->meter);
	if (policer->per == CV_PER_HOST)
		return cv_meter_table_init(&lane->table, policer->entries, policer->refill, socket);
	return 0;
}

static void free_lanes(struct lanes *lanes)
{
	if (lanes == NULL || --lanes->owners > 0)
		return;
	for (unsigned i = 0; i < lanes->workers; i++)
		cv_meter_table_free(&lanes->lane[i].table);
	free(lanes);
}

static void destroy(void *instance)
{
	struct policer *policer = instance;

	free_lanes(policer->lanes);
	free(policer);
}

static int make_lanes(struct policer *policer, int socket)
{
	const size_t bytes = sizeof(struct lanes) + policer->workers * sizeof(struct lane);
	int rc = 0;

	policer->lanes = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (policer->lanes == NULL)
		return -ENOMEM;
	memset(policer->lanes, 0, bytes);
	policer->lanes->owners = 1;
	policer->lanes->workers = policer->workers;
	for (unsigned i = 0; rc == 0 && i < policer->workers; i++)
		rc = make_lane(policer, &policer->lanes->lane[i], socket);
	return rc;
}

// Whether meters are what they were.
static bool counts_the_same(const struct policer *a, const struct policer *b)
{
	return a->kind == b->kind && a->packets == b->packets && a->per == b->per &&
	       a->host_dst == b->host_dst && memcmp(a->mask, b->mask, sizeof(a->mask)) == 0;
}

// Goes on with the meters of the instance that runs. False: they are others.
static bool share_lanes(struct policer *policer, const struct policer *running)
{
	if (running->per != policer->per || running->entries != policer->entries ||
		(policer->per != CV_PER_FLOW && !counts_the_same(policer, running)))
		return false;
	policer->unit = (uint8_t)(running->unit + !counts_the_same(policer, running));
	policer->lanes = running->lanes;
	policer->lanes->owners++;
	return true;
}

static int make(struct policer *policer, const struct cv_policer_config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	int rc =
		cv_policer_rates_read(config, env->name, &policer->rates, &policer->packets, error);

	if (rc == 0)
		rc = read_actions(config, policer, env, error);
	if (rc != 0)
		return rc;
	policer->plain = !policer->packets && !policer->colour_aware &&
			 policer->action[RTE_COLOR_GREEN].what == CV_POLICER_PASS;
	for (unsigned i = 0; i < env->workers; i++) {
		struct cv_meter_rates share = policer->rates;

		share.committed /= i + 1;
		share.second /= i + 1;
		cv_meter_profile_make(
			policer->kind, &share, rte_get_tsc_hz(), &policer->profiles[i]);
	}
	policer->refill =
		cv_meter_refill_cycles(policer->kind, &policer->profiles[policer->workers - 1]);
	if (env->running == NULL || !share_lanes(policer, env->running))
		rc = make_lanes(policer, env->socket);
	if (rc == 0)
		policer->number = ++policer->lanes->last;
	if (rc == -ENOMEM)
		cv_error_set(error,
			"%s: no memory for %u entries; make entries less, or raise memory.mb (a "
			"plan's eal.memory_mb)",
			env->name, policer->entries);
	else if (rc != 0)
		cv_error_set(error, "%s: no random numbers: %s", env->name, strerror(-rc));
	return rc;
}

// Flows keep their places among the meters.
static int check_running(
	const struct policer *policer, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct policer *running = env->running;

	if (running == NULL || running->per != CV_PER_FLOW || policer->per != CV_PER_FLOW ||
		running->entries == policer->entries)
		return 0;
	cv_error_set(error, "%s: entries: %u: stays %u while packets flow; start the node anew",
		env->name, policer->entries, running->entries);
	return -EINVAL;
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_policer_config *config = of;
	struct policer *policer =
		calloc(1, sizeof(*policer) + env->workers * sizeof(struct cv_meter_profile));

	if (policer == NULL)
		return NULL;
	policer->kind = config->meter;
	policer->per = config->per;
	policer->colour_aware = config->colour_aware;
	policer->host_dst = config->host == CV_HOST_DST;
	policer->non_ip_verdict =
		config->non_ip == CV_NON_IP_DROP ? CV_DROP(CV_POLICED_NON_IP) : CV_NEXT;
	policer->entries = config->entries;
	policer->workers = env->workers;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct cv_prefix prefix = {
			.address.v6 = v6, .length = v6 ? config->ipv6_prefix : config->ipv4_prefix};

		memset(prefix.address.bytes, 0xff, sizeof(prefix.address.bytes));
		cv_prefix_mask(&prefix);
		memcpy(&policer->mask[v6], prefix.address.bytes, 16);
		if (!v6)
			policer->mask[v6].words[1] = UINT64_MAX;
	}
	if (check_running(policer, env, error) == 0 && make(policer, config, env, error) == 0)
		return policer;
	destroy(policer);
	return NULL;
}

static json_t *info(const void *instance)
{
	const struct policer *policer = instance;
	json_t *by_colour = json_object();
	uint64_t taken = 0;

	for (unsigned colour = 0; colour < RTE_COLORS; colour++) {
		uint64_t packets = 0, bytes = 0;

		for (unsigned i = 0; i < policer->workers; i++) {
			const struct lane *lane = &policer->lanes->lane[i];

			packets +=
				__atomic_load_n(&lane->counted[colour].packets, __ATOMIC_RELAXED);
			bytes += __atomic_load_n(&lane->counted[colour].bytes, __ATOMIC_RELAXED);
		}
		json_object_set_new(by_colour, cv_policer_colours[colour],
			json_pack("{s:I, s:I}", "packets", (json_int_t)packets, "bytes",
				(json_int_t)bytes));
	}
	for (unsigned i = 0; i < policer->workers; i++) {
		const struct lane *lane = &policer->lanes->lane[i];

		taken += policer->per == CV_PER_HOST
				 ? __atomic_load_n(&lane->table.taken, __ATOMIC_RELAXED)
				 : __atomic_load_n(&lane->flows, __ATOMIC_RELAXED);
	}
	return json_pack("{s:o, s:I, s:I}", "colours", by_colour, "entries", (json_int_t)taken,
		"workers", (json_int_t)__atomic_load_n(&policer->lanes->running, __ATOMIC_RELAXED));
}

const struct cv_nf cv_nf_policer = {
	.name = "policer",
	.keeps = "filled buckets",
	.summary = "Measures rates (RFC 2697, 2698, 4115); drops or marks packets by their colour.",
	.drops = drops,
	.branches = true,
	.params = cv_policer_params,
	.config_size = sizeof(struct cv_policer_config),
	.create = create,
	.destroy = destroy,
	.process = process,
	.flow = &flow,
	.info = info,
};
