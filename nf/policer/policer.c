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
// Drops: policed_green, policed_yellow, policed_red, bad_header (lengths that do not add up, tags
// that nobody looks behind), non_ip, table_full (no room for another host or flow).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "nf/policer/meter.h"
#include "nf/policer/table.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/prefix.h"

#define DEFAULT_BURST_S 0.05
#define DEFAULT_BURST_BYTES 15000 // at least
#define DEFAULT_BURST_PACKETS 64 // at least: a burst of a port

enum drop { POLICED_GREEN, POLICED_YELLOW, POLICED_RED, BAD_HEADER, NON_IP, TABLE_FULL };
static const char *const drops[] = {"policed_green", "policed_yellow", "policed_red", "bad_header",
	"non_ip", "table_full", NULL};
static const char *const colours[RTE_COLORS] = {"green", "yellow", "red"};

enum per { PER_ALL, PER_HOST, PER_FLOW };
static const char *const pers[] = {"all", "host", "flow", NULL};
static const char *const meters[] = {"srtcm", "trtcm", "trtcm-4115", NULL};
enum host { HOST_SRC, HOST_DST };
static const char *const hosts[] = {"src", "dst", NULL};
enum non_ip { PASS_NON_IP, DROP_NON_IP };
static const char *const non_ip_actions[] = {"pass", "drop", NULL};

enum what { BY_DEFAULT, PASS, DROP, MARK, OUTPUT };

struct action {
	enum what what;
	uint8_t dscp; // MARK
	const char *output; // OUTPUT; read only
};

struct config {
	enum cv_meter_kind meter;
	enum per per;
	enum host host;
	enum non_ip non_ip;
	uint64_t cir_bps, pir_bps, eir_bps; // 0: not given
	uint64_t cbs_bytes, pbs_bytes, ebs_bytes;
	uint64_t cir_pps, pir_pps, eir_pps;
	uint64_t cbs_packets, pbs_packets, ebs_packets;
	struct action action[RTE_COLORS];
	uint32_t entries;
	uint8_t ipv4_prefix, ipv6_prefix;
	bool colour_aware;
};

static int read_action(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"dscp", CV_INTEGER, CV_AT(struct action, dscp), .high = 63, .fallback = 64},
		{"output", CV_TEXT, CV_AT(struct action, output)},
		{0},
	};
	const struct cv_where in = cv_where_key(at, key);
	struct action *action = member;
	const char *word = json_string_value(value);

	if (json_is_object(value)) {
		if (cv_params_read(&in, value, params, action) != 0)
			return -EINVAL;
		if ((action->output == NULL) == (action->dscp > 63))
			return cv_where_error(
				&in, "has dscp and output, or none; give one of them");
		action->what = action->output == NULL ? MARK : OUTPUT;
		return 0;
	}
	if (word == NULL || (strcmp(word, "pass") != 0 && strcmp(word, "drop") != 0))
		return cv_where_wrong(at, key, value,
			"must be pass, drop, {\"dscp\": 0 to 63} or {\"output\": NAME}");
	action->what = word[0] == 'p' ? PASS : DROP;
	return 0;
}

#define RATE_MAX_BPS 400e9
#define RATE_MAX_PPS 1e9
#define BURST_MAX 1e12

#define RATE(name, max, text)                                                           \
	{                                                                               \
#name, CV_INTEGER, CV_AT(struct config, name), .low = 1, .high = (max), \
							       .doc = (text)            \
	}
#define ACTION(index, text)                                                                   \
	{                                                                                     \
		text, CV_CUSTOM, CV_AT(struct config, action[index]),                         \
			.read = read_action, .doc = "pass, drop, {dscp: N} or {output: NAME}" \
	}

static const struct cv_param params[] = {
	{"meter", CV_WORD, CV_AT(struct config, meter), .words = meters,
		.doc = "RFC 2697 (one rate), 2698 or 4115 (two rates)"},
	RATE(cir_bps, RATE_MAX_BPS, "committed rate, bits of IP packets per second"),
	RATE(pir_bps, RATE_MAX_BPS, "trtcm: peak rate, bits per second"),
	RATE(eir_bps, RATE_MAX_BPS, "trtcm-4115: excess rate, bits per second"),
	RATE(cbs_bytes, BURST_MAX, "committed burst; default: 50 ms of the rate, at least 15000"),
	RATE(pbs_bytes, BURST_MAX, "trtcm: peak burst; default as cbs_bytes"),
	RATE(ebs_bytes, BURST_MAX, "srtcm, trtcm-4115: excess burst; default as cbs_bytes"),
	RATE(cir_pps, RATE_MAX_PPS, "committed rate, packets per second, in place of cir_bps"),
	RATE(pir_pps, RATE_MAX_PPS, "trtcm: peak rate, packets per second"),
	RATE(eir_pps, RATE_MAX_PPS, "trtcm-4115: excess rate, packets per second"),
	RATE(cbs_packets, BURST_MAX, "committed burst; default: 50 ms of the rate, at least 64"),
	RATE(pbs_packets, BURST_MAX, "trtcm: peak burst; default as cbs_packets"),
	RATE(ebs_packets, BURST_MAX, "srtcm, trtcm-4115: excess burst; default as cbs_packets"),
	{"colour_aware", CV_BOOL, CV_AT(struct config, colour_aware),
		.doc = "packets come with the colour of their DSCP: AFx1, AFx2, AFx3"},
	ACTION(RTE_COLOR_GREEN, "green"),
	ACTION(RTE_COLOR_YELLOW, "yellow"),
	ACTION(RTE_COLOR_RED, "red"),
	{"per", CV_WORD, CV_AT(struct config, per), .words = pers,
		.doc = "one meter for all packets, for each host, or for each flow"},
	{"host", CV_WORD, CV_AT(struct config, host), .words = hosts,
		.doc = "per host: by source or destination address"},
	{"ipv4_prefix", CV_INTEGER, CV_AT(struct config, ipv4_prefix), .low = 1, .high = 32,
		.fallback = 32, .doc = "per host: addresses that share so many bits are one host"},
	{"ipv6_prefix", CV_INTEGER, CV_AT(struct config, ipv6_prefix), .low = 1, .high = 128,
		.fallback = 64, .doc = "per host: the same for IPv6"},
	{"entries", CV_INTEGER, CV_AT(struct config, entries), .low = 64, .high = 1 << 24,
		.fallback = 65536, .doc = "hosts or flows that each worker has room for"},
	{"non_ip", CV_WORD, CV_AT(struct config, non_ip), .words = non_ip_actions,
		.doc = "what is neither IPv4 nor IPv6; it is not measured"},
	{0},
};

// What one worker has.
struct lane {
	union cv_meter meter; // per all
	bool is_running; // it has seen a packet
	struct cv_meter_table table; // per host
	union cv_meter *flows; // per flow
	uint32_t *free; // of these, the unused ones
	uint32_t free_count;
	struct {
		uint64_t packets, bytes;
	} counted[RTE_COLORS];
} __rte_cache_aligned;

struct policer {
	enum cv_meter_kind kind;
	enum per per;
	bool packets; // tokens are packets, not bytes
	bool colour_aware;
	bool host_dst;
	uint8_t non_ip_verdict;
	uint8_t verdict[RTE_COLORS];
	struct action action[RTE_COLORS];
	struct cv_meter_key mask[2]; // of a host's address: IPv4, IPv6
	unsigned running; // workers that have seen a packet
	unsigned workers;
	uint32_t entries;
	struct cv_meter_rates rates;
	struct lane *lanes;
	union cv_meter_profile profiles[]; // by how many workers share the rate, less 1
};

// What is to be known of a packet.
struct measured {
	uint32_t bytes; // of the IP packet
	enum rte_color colour; // that it comes with
	bool v6;
};

// Colours of DSCPs: AFxy has the bits xxxyy0, x from 1 to 4, y from 1 to 3 (RFC 2597).
static CV_INLINE enum rte_color colour_of(uint8_t dscp)
{
	const unsigned class = dscp >> 3, precedence = dscp >> 1 & 3;

	if ((dscp & 1) != 0 || class < 1 || class > 4 || precedence < 2)
		return RTE_COLOR_GREEN;
	return precedence == 2 ? RTE_COLOR_YELLOW : RTE_COLOR_RED;
}

// Looks at a packet. Returns CV_NEXT, or the verdict of one that is not measured.
static CV_INLINE uint8_t measure(
	const struct policer *policer, const struct cv_view *view, struct measured *measured)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;
	uint8_t dscp;

	switch (view->proto) {
	case CV_PROTO_IPV4: {
		const struct cv_ipv4 *header = (const struct cv_ipv4 *)ip;

		if (CV_UNLIKELY(room < CV_IPV4_LEN || header->version_ihl >> 4 != 4))
			return CV_DROP(BAD_HEADER);
		measured->bytes = rte_be_to_cpu_16(header->total_len);
		if (CV_UNLIKELY(cv_ipv4_header_len(header) < CV_IPV4_LEN ||
				measured->bytes < cv_ipv4_header_len(header) ||
				measured->bytes > room))
			return CV_DROP(BAD_HEADER);
		measured->v6 = false;
		dscp = header->tos >> 2;
		break;
	}
	case CV_PROTO_IPV6:
		if (CV_UNLIKELY(!cv_ipv6_check((const struct cv_ipv6 *)ip, room)))
			return CV_DROP(BAD_HEADER);
		measured->bytes =
			CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
		measured->v6 = true;
		dscp = (uint8_t)((ip[0] & 15) << 2 | ip[1] >> 6);
		break;
	case 0:
	case CV_PROTO_VLAN:
	case CV_PROTO_QINQ:
	case CV_PROTO_QINQ1:
	case CV_PROTO_QINQ2:
	case CV_PROTO_QINQ3:
		return CV_DROP(BAD_HEADER);
	default:
		return CV_DROP(NON_IP);
	}
	measured->colour = policer->colour_aware ? colour_of(dscp) : RTE_COLOR_GREEN;
	return CV_NEXT;
}

// Writes a packet's DSCP.
static void mark(const struct cv_view *view, uint8_t dscp)
{
	uint8_t *ip = view->data + view->l3;

	if (view->proto == CV_PROTO_IPV4) {
		struct cv_ipv4 *header = (struct cv_ipv4 *)ip;
		const uint16_t old = cv_load_be16(ip);

		header->tos = (uint8_t)(dscp << 2 | (header->tos & 3));
		header->checksum = cv_checksum_update(header->checksum, old, cv_load_be16(ip));
	} else {
		ip[0] = (uint8_t)(0x60 | dscp >> 2);
		ip[1] = (uint8_t)((dscp & 3) << 6 | (ip[1] & 0x3f));
	}
}

// The meter's word on a packet, and what follows.
static CV_INLINE uint8_t police(const struct policer *policer, struct lane *lane,
	union cv_meter *meter, const union cv_meter_profile *profile, uint64_t now,
	const struct cv_view *view, const struct measured *measured)
{
	const enum rte_color colour = cv_meter_check(policer->kind, meter, profile, now,
		policer->packets ? 1 : measured->bytes, measured->colour);

	// With the loads in info().
	__atomic_store_n(&lane->counted[colour].packets, lane->counted[colour].packets + 1,
		__ATOMIC_RELAXED);
	__atomic_store_n(&lane->counted[colour].bytes,
		lane->counted[colour].bytes + measured->bytes, __ATOMIC_RELAXED);
	if (policer->action[colour].what == MARK)
		mark(view, policer->action[colour].dscp);
	return policer->verdict[colour];
}

// The meter of a packet's host; NULL: there is no room for it.
static CV_INLINE union cv_meter *host_meter(const struct policer *policer, struct lane *lane,
	const union cv_meter_profile *profile, uint64_t now, const struct cv_view *view, bool v6)
{
	const uint8_t *ip = view->data + view->l3;
	struct cv_meter_key key = {{0, 0}};
	union cv_meter *meter;
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
		cv_meter_fill(policer->kind, profile, meter);
	return meter;
}

static CV_INLINE uint8_t verdict_of(const struct policer *policer, struct lane *lane,
	const union cv_meter_profile *profile, uint64_t now, const struct cv_view *view)
{
	struct measured measured;
	const uint8_t unmeasured = measure(policer, view, &measured);
	union cv_meter *meter = &lane->meter;

	if (CV_UNLIKELY(unmeasured != CV_NEXT))
		return unmeasured == CV_DROP(NON_IP) ? policer->non_ip_verdict : unmeasured;
	if (policer->per == PER_HOST)
		meter = host_meter(policer, lane, profile, now, view, measured.v6);
	if (CV_UNLIKELY(meter == NULL))
		return CV_DROP(TABLE_FULL);
	return police(policer, lane, meter, profile, now, view, &measured);
}

// Another worker shares the rates from now on.
static void begin_running(struct policer *policer, struct lane *lane)
{
	lane->is_running = true;
	__atomic_fetch_add(&policer->running, 1, __ATOMIC_RELAXED); // with the load in process()
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes[worker->index];
	const union cv_meter_profile *profile;
	uint16_t others = 0;

	if (n == 0)
		return 0;
	if (CV_UNLIKELY(!lane->is_running))
		begin_running(policer, lane);
	profile = &policer->profiles[__atomic_load_n(&policer->running, __ATOMIC_RELAXED) - 1];
	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = verdict_of(policer, lane, profile, worker->now, &view[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

// What it keeps of a flow: which of its worker's meters.
struct slot {
	uint32_t meter;
};

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes[worker->index];

	if (packet->why == CV_FLOW_NEW) {
		if (lane->free_count == 0) {
			actions->once = true;
			return CV_DROP(TABLE_FULL);
		}
		((struct slot *)slot)->meter = lane->free[--lane->free_count];
		cv_meter_fill(policer->kind, &policer->profiles[0],
			&lane->flows[((struct slot *)slot)->meter]);
	}
	actions->follow = true;
	return CV_NEXT;
}

static uint8_t follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, void *slot)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes[worker->index];
	struct measured measured;
	const uint8_t unmeasured = measure(policer, packet->view, &measured);

	if (unmeasured != CV_NEXT)
		return unmeasured;
	return police(policer, lane, &lane->flows[((struct slot *)slot)->meter],
		&policer->profiles[0], worker->now, packet->view, &measured);
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	struct policer *policer = instance;
	struct lane *lane = &policer->lanes[worker->index];

	lane->free[lane->free_count++] = ((const struct slot *)slot)->meter;
}

// An ICMP error about nothing that is known passes: it is of no flow that has a rate.
static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	const struct policer *policer = instance;

	if (why == CV_FLOW_NON_IP)
		return policer->non_ip_verdict;
	return why == CV_FLOW_BAD_HEADER ? CV_DROP(BAD_HEADER) : CV_NEXT;
}

static bool is_stateful(const void *instance)
{
	return ((const struct policer *)instance)->per == PER_FLOW;
}

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct slot),
	.is_stateful = is_stateful,
	.decide = decide,
	.follow = follow,
	.ended = ended,
	.other = other,
};

// The rates and bursts of a configuration, in one unit.
struct rate_set {
	const char *unit, *burst_unit;
	uint64_t cir, pir, eir, cbs, pbs, ebs;
	double per_rate; // tokens of a rate of 1
	uint64_t burst_least;
};

static int refuse(const char *name, struct cv_error *error, const char *key, const char *unit,
	const char *what)
{
	cv_error_set(error, "%s: %s_%s: %s", name, key, unit, what);
	return -EINVAL;
}

static uint64_t burst_of(const struct rate_set *set, uint64_t burst, uint64_t rate)
{
	if (burst == 0)
		burst = (uint64_t)((double)rate * set->per_rate * DEFAULT_BURST_S);
	return burst > set->burst_least ? burst : set->burst_least;
}

// Which second rate the meter has, and that no other is given.
static int check_second(const struct rate_set *set, enum cv_meter_kind kind, const char *name,
	struct cv_error *error)
{
	const bool peak = kind == CV_METER_TRTCM, excess = kind == CV_METER_TRTCM_4115;

	if (peak && set->pir == 0)
		return refuse(name, error, "pir", set->unit, "is missing; trtcm needs it");
	if (peak && set->pir < set->cir)
		return refuse(name, error, "pir", set->unit, "is less than cir; raise it");
	if (excess && set->eir == 0)
		return refuse(name, error, "eir", set->unit, "is missing; trtcm-4115 needs it");
	if (!peak && set->pir != 0)
		return refuse(name, error, "pir", set->unit, "is for meter trtcm; remove it");
	if (!excess && set->eir != 0)
		return refuse(name, error, "eir", set->unit, "is for meter trtcm-4115; remove it");
	if (!peak && set->pbs != 0)
		return refuse(name, error, "pbs", set->burst_unit, "is for meter trtcm; remove it");
	if (peak && set->ebs != 0)
		return refuse(name, error, "ebs", set->burst_unit,
			"is for meters srtcm and trtcm-4115; remove it");
	return 0;
}

static int read_rates(const struct config *config, struct policer *policer, const char *name,
	struct cv_error *error)
{
	struct rate_set set = {"bps", "bytes", config->cir_bps, config->pir_bps, config->eir_bps,
		config->cbs_bytes, config->pbs_bytes, config->ebs_bytes, 1.0 / 8,
		DEFAULT_BURST_BYTES};
	const struct rate_set packets = {"pps", "packets", config->cir_pps, config->pir_pps,
		config->eir_pps, config->cbs_packets, config->pbs_packets, config->ebs_packets, 1,
		DEFAULT_BURST_PACKETS};
	const bool bytes_given = set.cir | set.pir | set.eir | set.cbs | set.pbs | set.ebs;
	uint64_t second;

	policer->packets =
		packets.cir | packets.pir | packets.eir | packets.cbs | packets.pbs | packets.ebs;
	if (policer->packets && bytes_given) {
		cv_error_set(error,
			"%s: has rates or bursts in bits and in packets; keep one of the two",
			name);
		return -EINVAL;
	}
	if (policer->packets)
		set = packets;
	if (set.cir == 0) {
		cv_error_set(error, "%s: cir_bps is missing; add it, or cir_pps", name);
		return -EINVAL;
	}
	if (check_second(&set, config->meter, name, error) != 0)
		return -EINVAL;
	second = config->meter == CV_METER_TRTCM        ? set.pir
		 : config->meter == CV_METER_TRTCM_4115 ? set.eir
							: set.cir; // for the burst
	policer->rates = (struct cv_meter_rates){
		.committed = (double)set.cir * set.per_rate,
		.second = config->meter == CV_METER_SRTCM ? 0 : (double)second * set.per_rate,
	};
	set.burst_least = set.cbs != 0 ? 1 : set.burst_least;
	policer->rates.committed_burst = burst_of(&set, set.cbs, set.cir);
	set.burst_least = (set.pbs | set.ebs) != 0 ? 1
			  : policer->packets       ? DEFAULT_BURST_PACKETS
						   : DEFAULT_BURST_BYTES;
	policer->rates.second_burst = burst_of(&set, set.pbs | set.ebs, second);
	return 0;
}

static int read_actions(const struct config *config, struct policer *policer,
	const struct cv_nf_env *env, struct cv_error *error)
{
	for (unsigned colour = 0; colour < RTE_COLORS; colour++) {
		struct action action = config->action[colour];
		int output;

		if (action.what == BY_DEFAULT)
			action.what = colour == RTE_COLOR_RED ? DROP : PASS;
		policer->verdict[colour] =
			action.what == DROP ? CV_DROP(POLICED_GREEN + colour) : CV_NEXT;
		policer->action[colour] = action;
		policer->action[colour].output = NULL; // it is the configuration's
		if (action.what != OUTPUT)
			continue;
		output = cv_nf_env_output(env, action.output);
		if (output < 0 || policer->per == PER_FLOW) {
			cv_error_set(error, "%s: %s: output: \"%.64s\": %s", env->name,
				colours[colour], action.output,
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
	const uint64_t refill =
		cv_meter_refill_cycles(policer->kind, &policer->profiles[policer->workers - 1]);

	cv_meter_fill(policer->kind, &policer->profiles[0], &lane->meter);
	if (policer->per == PER_HOST)
		return cv_meter_table_init(&lane->table, policer->entries, refill, socket);
	if (policer->per != PER_FLOW)
		return 0;
	lane->flows = rte_zmalloc_socket(
		"policer", policer->entries * sizeof(*lane->flows), RTE_CACHE_LINE_SIZE, socket);
	lane->free = rte_malloc_socket(
		"policer", policer->entries * sizeof(*lane->free), RTE_CACHE_LINE_SIZE, socket);
	if (lane->flows == NULL || lane->free == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < policer->entries; i++)
		lane->free[lane->free_count++] = policer->entries - 1 - i;
	return 0;
}

static void destroy(void *instance)
{
	struct policer *policer = instance;

	for (unsigned i = 0; policer->lanes != NULL && i < policer->workers; i++) {
		cv_meter_table_free(&policer->lanes[i].table);
		rte_free(policer->lanes[i].flows);
		rte_free(policer->lanes[i].free);
	}
	free(policer->lanes);
	free(policer);
}

static int make(struct policer *policer, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	int rc = read_rates(config, policer, env->name, error);

	if (rc == 0)
		rc = read_actions(config, policer, env, error);
	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < env->workers; i++) {
		struct cv_meter_rates share = policer->rates;

		share.committed /= i + 1;
		share.second /= i + 1;
		cv_meter_profile_make(
			policer->kind, &share, rte_get_tsc_hz(), &policer->profiles[i]);
	}
	policer->lanes = aligned_alloc(RTE_CACHE_LINE_SIZE, env->workers * sizeof(struct lane));
	if (policer->lanes == NULL)
		return -ENOMEM;
	memset(policer->lanes, 0, env->workers * sizeof(struct lane));
	for (unsigned i = 0; rc == 0 && i < env->workers; i++)
		rc = make_lane(policer, &policer->lanes[i], env->socket);
	if (rc == -ENOMEM)
		cv_error_set(error,
			"%s: no memory for %u entries; make entries less, or raise memory.mb (a "
			"plan's eal.memory_mb)",
			env->name, policer->entries);
	else if (rc != 0)
		cv_error_set(error, "%s: no random numbers: %s", env->name, strerror(-rc));
	return rc;
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	struct policer *policer =
		calloc(1, sizeof(*policer) + env->workers * sizeof(union cv_meter_profile));

	if (policer == NULL)
		return NULL;
	policer->kind = config->meter;
	policer->per = config->per;
	policer->colour_aware = config->colour_aware;
	policer->host_dst = config->host == HOST_DST;
	policer->non_ip_verdict = config->non_ip == DROP_NON_IP ? CV_DROP(NON_IP) : CV_NEXT;
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
	if (make(policer, config, env, error) == 0)
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
			const struct lane *lane = &policer->lanes[i];

			packets +=
				__atomic_load_n(&lane->counted[colour].packets, __ATOMIC_RELAXED);
			bytes += __atomic_load_n(&lane->counted[colour].bytes, __ATOMIC_RELAXED);
		}
		json_object_set_new(by_colour, colours[colour],
			json_pack("{s:I, s:I}", "packets", (json_int_t)packets, "bytes",
				(json_int_t)bytes));
	}
	for (unsigned i = 0; i < policer->workers; i++) {
		const struct lane *lane = &policer->lanes[i];

		taken += policer->per == PER_HOST
				 ? __atomic_load_n(&lane->table.taken, __ATOMIC_RELAXED)
			 : policer->per == PER_FLOW
				 ? policer->entries -
					   __atomic_load_n(&lane->free_count, __ATOMIC_RELAXED)
				 : 0;
	}
	return json_pack("{s:o, s:I, s:I}", "colours", by_colour, "entries", (json_int_t)taken,
		"workers", (json_int_t)__atomic_load_n(&policer->running, __ATOMIC_RELAXED));
}

const struct cv_nf cv_nf_policer = {
	.name = "policer",
	.summary = "Measures rates (RFC 2697, 2698, 4115); drops or marks packets by their colour.",
	.drops = drops,
	.branches = true,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.destroy = destroy,
	.process = process,
	.flow = &flow,
	.info = info,
};
