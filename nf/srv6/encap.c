// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// srv6-encap: puts packets into IPv6 with a segment routing header (RFC 8986 section 5, RFC 8754). The first
// rule that matches a packet says which segments it gets.
//
//   {"source": "2001:db8::1",                   the outer source address
//    "rules": [
//      {"match": {"dst": "10.0.0.0/8"},         as a firewall rule's; the last rule may have none:
//                                               every packet then
//       "segments": ["2001:db8:a::1", "2001:db8:b::4"],      in the order of the path
//       "behaviour": "encaps",                  or encaps-red, encaps-l2, encaps-l2-red
//       "hop_limit": 64,
//       "mac": "02:00:00:00:00:09", "dev": "east"}],    the next hop; absent: as the router behind says
//    "icmp_rate": 1000}
//
// encaps takes IP packets: one hop is taken from them, the Ethernet header and its tags stay before the
// outer header. encaps-l2 takes whole frames. -red leaves the first segment out of the list, and the list
// out where there is no other. The outer traffic class is that inside; the flow label too, or made of the
// flow. What no rule matches, and with encaps what is not IP, goes on unchanged.
//
// Drops: bad_header (of an IP packet), ttl_expired, too_big (for the port's MTU) - of IPv6 packets the sender
// is told of both; no_room (no buffer).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/config.h"
#include "nf/firewall/choice.h"
#include "nf/srv6/header.h"
#include "nf/tell.h"
#include "packet/ipv4.h"
#include "packet/flow_hash.h"
#include "packet/prefix.h"

#define RULES_MAX 65536
#define HEADER_MAX (CV_IPV6_LEN + CV_SRH_LEN + CV_SEGMENTS_MAX * CV_SEGMENT_LEN)

enum drop { BAD_HEADER, TTL_EXPIRED, TOO_BIG, NO_ROOM };
static const char *const drops[] = {"bad_header", "ttl_expired", "too_big", "no_room", NULL};

enum behaviour { ENCAPS, ENCAPS_RED, ENCAPS_L2, ENCAPS_L2_RED };
static const char *const behaviours[] = {
	"encaps", "encaps-red", "encaps-l2", "encaps-l2-red", NULL};

// What the packets of a rule get.
struct policy {
	uint16_t len; // of the header; 0: none
	uint8_t header
		[HEADER_MAX]; // traffic class, flow label, length and the last next header left out
	uint8_t next_at; // where that is
	bool frames;
	bool has_mac;
	uint8_t mac[CV_MAC_LEN];
	int out; // the port that packets leave by; -1: as the chain says
};

struct encap {
	struct cv_choice choice;
	struct policy *policy; // by rule + 1; 0: none matched
	uint8_t source[16];
	uint32_t icmp_rate;
	uint16_t mtus[CV_PORTS_MAX]; // of ports
	struct cv_teller teller;
};

// A packet on its way into a tunnel.
struct job {
	struct encap *encap;
	const struct policy *policy;
	struct cv_nf_worker *worker;
	struct cv_view *view;
};

static uint8_t tell_and_drop(
	const struct job *job, enum drop why, enum cv_icmp_reason reason, uint32_t value)
{
	const struct cv_icmp_error error = {.reason = reason, .value = value};

	if (job->view->proto == CV_PROTO_IPV6)
		cv_teller_tell(
			&job->encap->teller, job->worker, job->view, &error, job->encap->source);
	return CV_DROP(why);
}

// Version, traffic class and flow label of the outer header.
static rte_be32_t first_word(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const uint32_t room = view->len - view->l3;
	uint32_t word = 0x60000000, inner;

	if (view->proto == CV_PROTO_IPV4 && room >= CV_IPV4_LEN) {
		word |= (uint32_t)((const struct cv_ipv4 *)ip)->tos << 20;
	} else if (view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN) {
		memcpy(&inner, ip, sizeof(inner));
		word |= rte_be_to_cpu_32(inner) & 0x0fffffff;
	}
	if ((word & 0xfffff) == 0)
		word |= cv_flow_hash(view) & 0xfffff;
	return rte_cpu_to_be_32(word);
}

// Puts the header into its place, of `bytes` new ones before the packet: what it carries begins at `inside`.
static uint8_t put(const struct job *job, uint16_t bytes, unsigned inside, uint8_t next)
{
	const struct policy *policy = job->policy;
	struct cv_view *view = job->view;
	const rte_be32_t word = first_word(view);
	const uint16_t l3 = bytes - policy->len; // of an Ethernet header of its own
	uint8_t *data = cv_nf_prepend(job->worker, view, bytes);
	struct cv_ipv6 *ip;

	if (data == NULL)
		return CV_DROP(NO_ROOM);
	memmove(data, data + bytes, inside == 0 ? 2 * CV_MAC_LEN : inside);
	ip = (struct cv_ipv6 *)(data + inside + l3);
	memcpy((uint8_t *)ip - 2, (uint8_t[]){0x86, 0xdd}, 2);
	memcpy(ip, policy->header, policy->len);
	((uint8_t *)ip)[policy->next_at] = next;
	ip->version_class_flow = word;
	ip->payload_len =
		rte_cpu_to_be_16((uint16_t)(data + view->len - (uint8_t *)ip - CV_IPV6_LEN));
	if (policy->has_mac) {
		memcpy(data, policy->mac, CV_MAC_LEN);
		memcpy(data + CV_MAC_LEN, job->encap->teller.macs[view->out], CV_MAC_LEN);
	}
	cv_view_parse(view);
	return CV_NEXT;
}

// Whether an outer packet of so many bytes is too long for the port.
static bool is_too_big(const struct job *job, uint32_t len)
{
	const uint16_t mtu = job->encap->mtus[job->view->out];

	return len > mtu || len - CV_IPV6_LEN > UINT16_MAX;
}

static uint8_t put_frame(const struct job *job)
{
	if (job->view->len < CV_ETHER_LEN)
		return CV_DROP(BAD_HEADER);
	if (is_too_big(job, (uint32_t)job->policy->len + job->view->len))
		return CV_DROP(TOO_BIG);
	return put(job, job->policy->len + CV_ETHER_LEN, 0, CV_SRV6_ETHERNET);
}

// Takes a hop from a packet whose header is sound. False: it had none left.
static bool take_hop(uint8_t *ip, bool v6)
{
	uint8_t *left = v6 ? &((struct cv_ipv6 *)ip)->hop_limit : &((struct cv_ipv4 *)ip)->ttl;

	if (*left <= 1)
		return false;
	if (v6)
		--*left;
	else
		cv_ipv4_ttl_decrement((struct cv_ipv4 *)ip);
	return true;
}

static uint8_t put_ip(const struct job *job)
{
	struct cv_view *view = job->view;
	const bool v6 = view->proto == CV_PROTO_IPV6;
	uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;
	const uint32_t mtu = job->encap->mtus[view->out];
	uint32_t len;

	if (view->proto != CV_PROTO_IPV4 && !v6)
		return CV_NEXT;
	if (v6 ? !cv_ipv6_check((struct cv_ipv6 *)ip, room)
	       : cv_ipv4_check((struct cv_ipv4 *)ip, room) == 0)
		return CV_DROP(BAD_HEADER);
	len = v6 ? CV_IPV6_LEN + rte_be_to_cpu_16(((struct cv_ipv6 *)ip)->payload_len)
		 : rte_be_to_cpu_16(((struct cv_ipv4 *)ip)->total_len);
	// What every link carries cannot be made smaller (RFC 2473 section 7.1).
	if (is_too_big(job, len + job->policy->len))
		return mtu < 1280u + job->policy->len ? CV_DROP(TOO_BIG)
						      : tell_and_drop(job, TOO_BIG, CV_ICMP_TOO_BIG,
								mtu - job->policy->len);
	if (!take_hop(ip, v6))
		return tell_and_drop(job, TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
	// Padding would be taken for a part of the packet.
	if (room > len && !cv_nf_trim(job->worker, view, (uint16_t)(room - len)))
		return CV_DROP(NO_ROOM);
	return put(job, job->policy->len, view->l3, v6 ? CV_SRV6_IPV6 : CV_SRV6_IPV4);
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct encap *encap = instance;
	uint32_t rule[CV_BURST_MAX];
	uint16_t others = 0;

	cv_choice_find(&encap->choice, worker, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct policy *policy = &encap->policy[rule[i]];
		const struct job job = {encap, policy, worker, &view[i]};

		verdict[i] = CV_NEXT;
		if (policy->len == 0)
			continue;
		if (policy->out >= 0)
			view[i].out = (uint8_t)policy->out;
		verdict[i] = policy->frames ? put_frame(&job) : put_ip(&job);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

static int read_ipv6(const struct cv_where *at, const char *key, const json_t *value, void *to)
{
	const char *text = json_string_value(value);
	struct cv_address address;

	if (text == NULL || cv_address_parse(text, &address) != 0 || !address.v6 ||
		cv_ipv6_martian(address.bytes))
		return cv_where_wrong(at, key, value, "must be an IPv6 address");
	memcpy(to, address.bytes, sizeof(address.bytes));
	return 0;
}

struct config {
	uint8_t source[16];
	const json_t *rules;
	uint32_t icmp_rate;
};

static const struct cv_param params[] = {
	{"source", CV_CUSTOM, CV_AT(struct config, source), .required = true, .read = read_ipv6,
		.doc = "source address of the outer header, one of the node's"},
	{"rules", CV_LIST, CV_AT(struct config, rules), .low = 1, .high = RULES_MAX,
		.required = true, .doc = "rules in order: who gets which segments"},
	{"icmp_rate", CV_INTEGER, CV_AT(struct config, icmp_rate), .high = 1000000,
		.fallback = 1000, .doc = "ICMPv6 errors per second and worker; 0: none"},
	{0},
};

struct rule_config {
	const json_t *match, *segments;
	enum behaviour behaviour;
	uint8_t hop_limit;
	uint8_t mac[CV_MAC_LEN];
	const char *dev;
};

static const struct cv_param rule_params[] = {
	{"match", CV_MAP, CV_AT(struct rule_config, match)},
	{"segments", CV_LIST, CV_AT(struct rule_config, segments), .low = 1,
		.high = CV_SEGMENTS_MAX, .required = true},
	{"behaviour", CV_WORD, CV_AT(struct rule_config, behaviour), .words = behaviours},
	{"hop_limit", CV_INTEGER, CV_AT(struct rule_config, hop_limit), .low = 1, .high = 255,
		.fallback = 64},
	{"mac", CV_MAC, CV_AT(struct rule_config, mac)},
	{"dev", CV_TEXT, CV_AT(struct rule_config, dev)},
	{0},
};

// The outer header, and the list of the segments behind the first `leave_out` of them.
static int set_header(struct policy *policy, const struct encap *encap, const struct cv_where *at,
	const struct rule_config *rule)
{
	const size_t count = json_array_size(rule->segments);
	const bool reduced = rule->behaviour == ENCAPS_RED || rule->behaviour == ENCAPS_L2_RED;
	const size_t listed = count - reduced;
	struct cv_ipv6 *ip = (struct cv_ipv6 *)policy->header;
	struct cv_srh *srh = (struct cv_srh *)(policy->header + CV_IPV6_LEN);
	uint8_t segment[CV_SEGMENT_LEN];
	const json_t *value;
	size_t i;

	json_array_foreach (rule->segments, i, value) {
		if (read_ipv6(at, "segments", value, segment) != 0)
			return -EINVAL;
		if (i == 0)
			memcpy(ip->dst, segment, sizeof(segment));
		if (count - 1 - i < listed)
			memcpy(srh->segment[count - 1 - i], segment, sizeof(segment));
	}
	memcpy(ip->src, encap->source, sizeof(ip->src));
	ip->hop_limit = rule->hop_limit;
	policy->len = CV_IPV6_LEN;
	policy->next_at = offsetof(struct cv_ipv6, next);
	if (listed == 0)
		return 0;
	ip->next = IPPROTO_ROUTING;
	policy->next_at = CV_IPV6_LEN + offsetof(struct cv_srh, next);
	srh->len = (uint8_t)(2 * listed);
	srh->type = CV_SRH_TYPE;
	srh->left = (uint8_t)(count - 1);
	srh->last = (uint8_t)(listed - 1);
	policy->len += (uint16_t)(CV_SRH_LEN + listed * CV_SEGMENT_LEN);
	return 0;
}

static int set_policy(struct policy *policy, const struct encap *encap, const struct cv_where *at,
	const struct rule_config *rule, const struct cv_nf_env *env)
{
	static const uint8_t none[CV_MAC_LEN];

	policy->frames = rule->behaviour >= ENCAPS_L2;
	policy->has_mac = memcmp(rule->mac, none, CV_MAC_LEN) != 0;
	memcpy(policy->mac, rule->mac, CV_MAC_LEN);
	policy->out = rule->dev == NULL ? -1 : cv_nf_env_port(env, rule->dev);
	if (rule->dev != NULL && policy->out < 0)
		return cv_config_no_port_at(at, "dev", rule->dev, env);
	return set_header(policy, encap, at, rule);
}

static int configure(struct encap *encap, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	size_t count = json_array_size(config->rules);
	const json_t *value;
	size_t i;

	memcpy(encap->source, config->source, sizeof(encap->source));
	encap->icmp_rate = config->icmp_rate;
	encap->policy = calloc(count + 1, sizeof(*encap->policy));
	if (encap->policy == NULL)
		return -ENOMEM;
	json_array_foreach (config->rules, i, value) {
		const struct cv_where at = cv_where_item(&top, "rules", i);
		struct rule_config rule;
		bool last;

		if (cv_params_read(&at, value, rule_params, &rule) != 0)
			return -EINVAL;
		last = rule.match == NULL;
		if (last && i + 1 < count)
			return cv_where_error(
				&at, "match: is missing; only the last rule may be without");
		if (set_policy(&encap->policy[last ? 0 : i + 1], encap, &at, &rule, env) != 0)
			return -EINVAL;
		count -= last;
	}
	return cv_choice_make(&encap->choice, config->rules, count, env, error);
}

static void destroy(void *instance)
{
	struct encap *encap = instance;

	cv_choice_free(&encap->choice);
	free(encap->policy);
	free(encap);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct encap *encap =
		aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*encap)); // workers' parts apart

	if (encap == NULL)
		return NULL;
	memset(encap, 0, sizeof(*encap));
	if (configure(encap, config, env, error) != 0) {
		destroy(encap);
		return NULL;
	}
	return encap;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct encap *encap = instance;

	cv_teller_start(&encap->teller, env, encap->icmp_rate);
	memcpy(encap->mtus, env->mtus, env->ports_count * sizeof(*env->mtus));
}

static void inherit(void *instance, void *before)
{
	struct encap *encap = instance;

	cv_choice_inherit(&encap->choice, &((const struct encap *)before)->choice);
}

static json_t *info(const void *instance)
{
	const struct encap *encap = instance;
	json_t *info = cv_choice_info(&encap->choice);

	json_object_set_new(
		info, "icmp_errors_sent", json_integer((json_int_t)cv_teller_sent(&encap->teller)));
	return info;
}

const struct cv_nf cv_nf_srv6_encap = {
	.name = "srv6_encap",
	.summary = "Puts packets into SRv6 (H.Encaps of RFC 8986), by ordered rules.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.inherit = inherit,
	.destroy = destroy,
	.process = process,
	.grows = cv_nf_always_grows,
	.info = info,
};
