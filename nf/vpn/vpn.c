// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// vpn: ESP in tunnel mode (RFC 4303) with AES-GCM (RFC 4106), IPv4 and IPv6 inside and outside.
//
//   {"outside": ["wan"],                        ports that tunnels go out by, and come in by
//    "policies": [                              in order; the first that matches a packet decides
//      {"name": "branch", "match": {"src": "10.1.0.0/16", "dst": "10.2.0.0/16"}},
//      {"match": {"proto": "icmpv6"}, "action": "bypass"}],
//    "default": "discard",                      what no policy matches
//    "sa_file": "sas",                          associations (sa_file.c); only its owner may read it
//    "udp_port": 4500, "mtu": 1500, "icmp_rate": 1000}
//
// A policy's match, as a firewall rule's, is of packets from inside; of packets from outside with source and
// destination exchanged. It protects (which is the default), bypasses or discards. What is protected
// leaves in ESP, by the policy's association; what should have been and came from outside in the clear
// is dropped, and so is what came by another policy's association. What is not IP passes.
//
// Associations with `aggregate yes` carry many packets in one (aggfrag.h).
//
// Drops: bad_header (of an IP packet, outside or inside), discarded (by policy), unprotected (came in the
// clear), no_sa (the policy has none out; none in has the SPI), ttl_expired, too_big, no_room (no buffer),
// expired (a hard limit), sequence_overflow, fragment (of ESP), bad_esp (lengths, padding, what is inside),
// replayed, bad_tag (not authentic), wrong_policy, congested (RFC 6040),
// unknown_subtype, bad_block and out_of_sequence (of AGGFRAG payloads). Senders of what expired or
// is too big are told, as far as icmp_rate lets.
#include <errno.h>
#include <stdlib.h>

#include "nf/config.h"
#include "nf/vpn/aggfrag.h"

static const char *const drops[] = {"bad_header", "discarded", "unprotected", "no_sa",
	"ttl_expired", "too_big", "no_room", "expired", "sequence_overflow", "fragment", "bad_esp",
	"replayed", "bad_tag", "wrong_policy", "congested", "unknown_subtype", "bad_block",
	"out_of_sequence", NULL};

_Static_assert(RTE_DIM(drops) == CV_VPN_OUT_OF_SEQUENCE + 2, "each drop has a name");

static const char *const actions[] = {"protect", "bypass", "discard", NULL};
static const char *const defaults[] = {"discard", "bypass", NULL};

struct config {
	const json_t *outside, *policies;
	unsigned fallback;
	const char *sa_file;
	uint16_t udp_port, mtu;
	uint32_t icmp_rate;
};

static const struct cv_param params[] = {
	{"outside", CV_LIST, CV_AT(struct config, outside), .required = true, .low = 1,
		.high = CV_PORTS_MAX, .doc = "ports that tunnels go out by, and come in by"},
	{"policies", CV_LIST, CV_AT(struct config, policies), .required = true, .low = 1,
		.high = CV_VPN_POLICIES_MAX, .doc = "in order: what is protected, and what not"},
	{"default", CV_WORD, CV_AT(struct config, fallback), .words = defaults,
		.doc = "what becomes of packets that no policy matches"},
	{"sa_file", CV_FILE, CV_AT(struct config, sa_file), .required = true,
		.doc = "security associations; a file that only its owner may read"},
	{"udp_port", CV_INTEGER, CV_AT(struct config, udp_port), .low = 1, .high = 65535,
		.fallback = 4500, .doc = "the node's port of ESP in UDP"},
	{"mtu", CV_INTEGER, CV_AT(struct config, mtu), .low = 576, .high = 65535,
		.doc = "the longest packet outside; default: the least of the outside ports"},
	{"icmp_rate", CV_INTEGER, CV_AT(struct config, icmp_rate), .high = 1000000,
		.fallback = 1000, .doc = "ICMP errors per second and worker; 0: none"},
	{0},
};

struct policy_config {
	const char *name;
	const json_t *match;
	enum cv_vpn_action action;
};

static const struct cv_param policy_params[] = {
	{"name", CV_TEXT, CV_AT(struct policy_config, name), .high = 64},
	{"match", CV_MAP, CV_AT(struct policy_config, match), .required = true},
	{"action", CV_WORD, CV_AT(struct policy_config, action), .words = actions},
	{0},
};

static int read_outside(struct cv_vpn *vpn, const struct config *config,
	const struct cv_nf_env *env, const struct cv_where *top)
{
	const json_t *value;
	size_t i;

	json_array_foreach (config->outside, i, value) {
		const struct cv_where at = cv_where_item(top, "outside", i);
		const char *name = json_string_value(value);
		const int port = name != NULL ? cv_nf_env_port(env, name) : -1;

		if (name == NULL)
			return cv_where_wrong(&at, "", value, "must be the name of a port");
		if (port < 0)
			return cv_config_no_port_at(&at, "", name, env);
		vpn->is_outside[port] = true;
	}
	return 0;
}

static int read_policies(
	struct cv_vpn *vpn, const struct config *config, const struct cv_where *top)
{
	const json_t *value;
	size_t i;

	vpn->policy = calloc(json_array_size(config->policies) + 1, sizeof(*vpn->policy));
	if (vpn->policy == NULL)
		return -ENOMEM;
	vpn->policy[0].action = config->fallback == 0 ? CV_VPN_DISCARD : CV_VPN_BYPASS;
	json_array_foreach (config->policies, i, value) {
		const struct cv_where at = cv_where_item(top, "policies", i);
		struct cv_vpn_policy *policy = &vpn->policy[i + 1];
		struct policy_config row;

		if (cv_params_read(&at, value, policy_params, &row) != 0)
			return -EINVAL;
		policy->action = row.action;
		vpn->policies++;
		if (row.name == NULL && row.action == CV_VPN_PROTECT)
			return cv_where_error(
				&at, "name: is missing; associations name the policy");
		for (size_t other = 1; row.name != NULL && other <= i; other++)
			if (vpn->policy[other].name != NULL &&
				strcmp(vpn->policy[other].name, row.name) == 0)
				return cv_where_error(&at,
					"name: %s is another policy's; "
					"give it its own",
					row.name);
		policy->name = row.name != NULL ? strdup(row.name) : NULL;
		if (row.name != NULL && policy->name == NULL)
			return -ENOMEM;
	}
	return 0;
}

// The policies as they are for packets from outside.
static json_t *exchanged(const json_t *policies)
{
	static const char *const pairs[][2] = {{"src", "dst"}, {"sport", "dport"}};
	json_t *all = json_deep_copy(policies), *policy;
	size_t i;

	json_array_foreach (all, i, policy) {
		json_t *match = json_object_get(policy, "match");

		for (unsigned p = 0; p < RTE_DIM(pairs); p++) {
			json_t *a = json_incref(json_object_get(match, pairs[p][0]));
			json_t *b = json_incref(json_object_get(match, pairs[p][1]));

			json_object_del(match, pairs[p][0]);
			json_object_del(match, pairs[p][1]);
			if (b != NULL)
				json_object_set_new(match, pairs[p][0], b);
			if (a != NULL)
				json_object_set_new(match, pairs[p][1], a);
		}
	}
	return all;
}

static int make_choices(struct cv_vpn *vpn, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	json_t *inbound = exchanged(config->policies);
	int rc = inbound == NULL ? -ENOMEM
				 : cv_choice_make(&vpn->outbound, config->policies, vpn->policies,
					   env, error);

	if (rc == 0)
		rc = cv_choice_make(&vpn->inbound, inbound, vpn->policies, env, error);
	json_decref(inbound);
	return rc;
}

static int configure(struct cv_vpn *vpn, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	int rc;

	vpn->udp_port = config->udp_port;
	vpn->mtu = config->mtu;
	vpn->icmp_rate = config->icmp_rate;
	rc = read_outside(vpn, config, env, &top);
	if (rc == 0)
		rc = read_policies(vpn, config, &top);
	if (rc == 0)
		rc = make_choices(vpn, config, env, error);
	if (rc == 0)
		rc = cv_vpn_read_sas(vpn, config->sa_file, env->running, env, error);
	return rc;
}

static void destroy(void *instance)
{
	struct cv_vpn *vpn = instance;

	for (size_t i = 0; i < vpn->sas; i++)
		cv_sa_state_put(vpn->sa[i].state);
	free(vpn->spis.place);
	free(vpn->sa);
	cv_choice_free(&vpn->inbound);
	cv_choice_free(&vpn->outbound);
	for (size_t i = 1; vpn->policy != NULL && i <= vpn->policies; i++)
		free(vpn->policy[i].name);
	free(vpn->policy);
	free(vpn);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_vpn *vpn =
		aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*vpn)); // workers' parts apart

	if (vpn == NULL)
		return NULL;
	memset(vpn, 0, sizeof(*vpn));
	if (configure(vpn, config, env, error) != 0) {
		destroy(vpn);
		return NULL;
	}
	return vpn;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct cv_vpn *vpn = instance;

	cv_teller_start(&vpn->teller, env, vpn->icmp_rate);
	if (vpn->mtu != 0)
		return;
	vpn->mtu = UINT16_MAX;
	for (unsigned i = 0; i < env->ports_count; i++)
		if (vpn->is_outside[i])
			vpn->mtu = RTE_MIN(vpn->mtu, env->mtus[i]);
}

static void inherit(void *instance, void *before)
{
	struct cv_vpn *vpn = instance;

	cv_choice_inherit(&vpn->outbound, &((const struct cv_vpn *)before)->outbound);
}

static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct cv_vpn *vpn = instance;
	uint16_t others = 0;

	for (uint16_t i = 0, end; i < n; i = end) {
		const bool outside = vpn->is_outside[view[i].in];

		for (end = i + 1; end < n && vpn->is_outside[view[end].in] == outside; end++)
			;
		others += outside ? cv_vpn_open(vpn, worker, &view[i], &verdict[i], end - i)
				  : cv_vpn_seal(vpn, worker, &view[i], &verdict[i], end - i);
	}
	return others;
}

static bool grows(const void *instance, unsigned in)
{
	return !((const struct cv_vpn *)instance)->is_outside[in];
}

// Keys are not in it.
static json_t *sa_info(const struct cv_vpn *vpn, const struct cv_sa *sa)
{
	const struct cv_sa_state *state = sa->state;
	json_t *info = json_pack("{s:s, s:I, s:s, s:I, s:I, s:b, s:b}", "direction",
		sa->outbound ? "out" : "in", "spi", (json_int_t)sa->spi, "policy",
		vpn->policy[sa->policy].name, "packets",
		(json_int_t)__atomic_load_n(&state->packets, __ATOMIC_RELAXED), "bytes",
		(json_int_t)__atomic_load_n(&state->bytes, __ATOMIC_RELAXED), "soft_limit_reached",
		cv_sa_is_over(sa, false), "hard_limit_reached", cv_sa_is_over(sa, true));

	if (!sa->outbound) {
		json_object_set_new(info, "replayed",
			json_integer(
				(json_int_t)__atomic_load_n(&state->replayed, __ATOMIC_RELAXED)));
		json_object_set_new(info, "bad_tags",
			json_integer(
				(json_int_t)__atomic_load_n(&state->bad_tags, __ATOMIC_RELAXED)));
	}
	if (sa->aggregate && !sa->outbound) {
		json_object_set_new(info, "packets_inside",
			json_integer((json_int_t)__atomic_load_n(
				&state->aggfrag->packets, __ATOMIC_RELAXED)));
		json_object_set_new(info, "incomplete",
			json_integer((json_int_t)__atomic_load_n(
				&state->aggfrag->lost, __ATOMIC_RELAXED)));
	}
	return info;
}

static json_t *info(const void *instance)
{
	const struct cv_vpn *vpn = instance;
	json_t *sas = json_array(), *policies = json_array();

	for (size_t i = 0; i < vpn->sas; i++)
		json_array_append_new(sas, sa_info(vpn, &vpn->sa[i]));
	for (size_t i = 1; i <= vpn->policies; i++)
		json_array_append_new(policies,
			json_pack("{s:s*, s:s, s:I}", "name", vpn->policy[i].name, "action",
				actions[vpn->policy[i].action], "packets_out",
				(json_int_t)cv_row_counters_sum(&vpn->outbound.counters, i)));
	return json_pack("{s:o, s:o, s:I, s:I}", "sas", sas, "policies", policies,
		"rest_packets_out", (json_int_t)cv_row_counters_sum(&vpn->outbound.counters, 0),
		"icmp_errors_sent", (json_int_t)cv_teller_sent(&vpn->teller));
}

const struct cv_nf cv_nf_vpn = {
	.name = "vpn",
	.keeps = "sequence numbers",
	.keeps_unique = true,
	.summary = "ESP tunnels with AES-GCM (RFC 4303, 4106), to the peers of a file.",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.inherit = inherit,
	.destroy = destroy,
	.process = process,
	.grows = grows,
	.info = info,
};
