// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/policer/config.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_BURST_S 0.05
#define DEFAULT_BURST_BYTES 15000 // at least
#define DEFAULT_BURST_PACKETS 64 // at least: a burst of a port

const char *const cv_policer_colours[RTE_COLORS] = {"green", "yellow", "red"};

static const char *const pers[] = {"all", "host", "flow", NULL};
static const char *const meters[] = {"srtcm", "trtcm", "trtcm-4115", NULL};
static const char *const hosts[] = {"src", "dst", NULL};
static const char *const non_ip_actions[] = {"pass", "drop", NULL};

static int read_action(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"dscp", CV_INTEGER, CV_AT(struct cv_policer_action, dscp), .high = 63,
			.fallback = 64},
		{"output", CV_TEXT, CV_AT(struct cv_policer_action, output)},
		{0},
	};
	const struct cv_where in = cv_where_key(at, key);
	struct cv_policer_action *action = member;
	const char *word = json_string_value(value);

	if (json_is_object(value)) {
		if (cv_params_read(&in, value, params, action) != 0)
			return -EINVAL;
		if ((action->output == NULL) == (action->dscp > 63))
			return cv_where_error(
				&in, "has dscp and output, or none; give one of them");
		action->what = action->output == NULL ? CV_POLICER_MARK : CV_POLICER_OUTPUT;
		return 0;
	}
	if (word == NULL || (strcmp(word, "pass") != 0 && strcmp(word, "drop") != 0))
		return cv_where_wrong(at, key, value,
			"must be pass, drop, {\"dscp\": 0 to 63} or {\"output\": NAME}");
	action->what = word[0] == 'p' ? CV_POLICER_PASS : CV_POLICER_DROP;
	return 0;
}

#define RATE_MAX_BPS 400e9
#define RATE_MAX_PPS 1e9
#define BURST_MAX CV_METER_BURST_MAX

#define RATE(name, max, text)                                                                      \
	{                                                                                          \
#name, CV_INTEGER, CV_AT(struct cv_policer_config, name), .low = 1, .high = (max), \
									  .doc = (text)            \
	}
#define ACTION(index, text)                                                                   \
	{                                                                                     \
		text, CV_CUSTOM, CV_AT(struct cv_policer_config, action[index]),              \
			.read = read_action, .doc = "pass, drop, {dscp: N} or {output: NAME}" \
	}

const struct cv_param cv_policer_params[] = {
	{"meter", CV_WORD, CV_AT(struct cv_policer_config, meter), .words = meters,
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
	{"colour_aware", CV_BOOL, CV_AT(struct cv_policer_config, colour_aware),
		.doc = "packets come with the colour of their DSCP: AFx1, AFx2, AFx3"},
	ACTION(RTE_COLOR_GREEN, "green"),
	ACTION(RTE_COLOR_YELLOW, "yellow"),
	ACTION(RTE_COLOR_RED, "red"),
	{"per", CV_WORD, CV_AT(struct cv_policer_config, per), .words = pers,
		.doc = "one meter for all packets, for each host, or for each flow"},
	{"host", CV_WORD, CV_AT(struct cv_policer_config, host), .words = hosts,
		.doc = "per host: by source or destination address"},
	{"ipv4_prefix", CV_INTEGER, CV_AT(struct cv_policer_config, ipv4_prefix), .low = 1,
		.high = 32, .fallback = 32,
		.doc = "per host: addresses that share so many bits are one host"},
	{"ipv6_prefix", CV_INTEGER, CV_AT(struct cv_policer_config, ipv6_prefix), .low = 1,
		.high = 128, .fallback = 64, .doc = "per host: the same for IPv6"},
	{"entries", CV_INTEGER, CV_AT(struct cv_policer_config, entries), .low = 64,
		.high = 1 << 24, .fallback = 65536,
		.doc = "hosts or flows that each worker has room for"},
	{"non_ip", CV_WORD, CV_AT(struct cv_policer_config, non_ip), .words = non_ip_actions,
		.doc = "what is neither IPv4 nor IPv6; it is not measured"},
	{0},
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

int cv_policer_rates_read(const struct cv_policer_config *config, const char *name,
	struct cv_meter_rates *rates, bool *in_packets, struct cv_error *error)
{
	struct rate_set set = {"bps", "bytes", config->cir_bps, config->pir_bps, config->eir_bps,
		config->cbs_bytes, config->pbs_bytes, config->ebs_bytes, 1.0 / 8,
		DEFAULT_BURST_BYTES};
	const struct rate_set packets = {"pps", "packets", config->cir_pps, config->pir_pps,
		config->eir_pps, config->cbs_packets, config->pbs_packets, config->ebs_packets, 1,
		DEFAULT_BURST_PACKETS};
	const bool bytes_given = set.cir | set.pir | set.eir | set.cbs | set.pbs | set.ebs;
	uint64_t second;

	*in_packets =
		packets.cir | packets.pir | packets.eir | packets.cbs | packets.pbs | packets.ebs;
	if (*in_packets && bytes_given) {
		cv_error_set(error,
			"%s: has rates or bursts in bits and in packets; keep one of the two",
			name);
		return -EINVAL;
	}
	if (*in_packets)
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
	*rates = (struct cv_meter_rates){
		.committed = (double)set.cir * set.per_rate,
		.second = config->meter == CV_METER_SRTCM ? 0 : (double)second * set.per_rate,
	};
	set.burst_least = set.cbs != 0 ? 1 : set.burst_least;
	rates->committed_burst = burst_of(&set, set.cbs, set.cir);
	set.burst_least = (set.pbs | set.ebs) != 0 ? 1
			  : *in_packets            ? DEFAULT_BURST_PACKETS
						   : DEFAULT_BURST_BYTES;
	rates->second_burst = burst_of(&set, set.pbs | set.ebs, second);
	return 0;
}
