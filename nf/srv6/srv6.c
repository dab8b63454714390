// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// srv6: the node's own segments (RFC 8986, RFC 8754): what becomes of IPv6 packets to each SID.
//
//   {"sids": [
//      {"sid": "2001:db8:a::1", "behaviour": "end"},
//      {"sid": "2001:db8:a::2", "behaviour": "end-x", "mac": "02:00:00:00:00:09", "dev": "east"},
//      {"sid": "2001:db8:a::4", "behaviour": "end-dt4", "output": "tenant"}],
//    "icmp_rate": 1000}
//
// end          the next segment becomes the destination
// end-x        so too, and the packet goes to a neighbour
// end-dx2      the frame inside goes out by dev
// end-dx4, end-dx6            the IP packet inside goes to a neighbour
// end-dt4, end-dt6, end-dt46  the IP packet inside goes on: to the router behind, or by output to another
//
// Packets to no SID go on unchanged. What goes to a neighbour has its hop limit or TTL decremented here;
// what goes on to a router has it decremented there. Flavors (PSP, USP, USD) are not there. TLVs are not
// looked at; HMAC is not verified.
//
// Drops: bad_header (of the packet or of the one inside); ttl_expired; bad_segments (the list and the
// segments left do not fit, a packet that is to be decapsulated has some left, or an unknown routing
// header); upper_layer (nothing inside that the SID takes). Of all but the first the sender is told as
// RFC 8986 says, as far as icmp_rate lets.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/address_table.h"
#include "nf/config.h"
#include "nf/row_counters.h"
#include "nf/srv6/header.h"
#include "nf/tell.h"
#include "nf/strip.h"
#include "packet/ipv4.h"
#include "packet/prefix.h"

#define SIDS_MAX 65536

enum drop { BAD_HEADER, TTL_EXPIRED, BAD_SEGMENTS, UPPER_LAYER };
static const char *const drops[] = {
	"bad_header", "ttl_expired", "bad_segments", "upper_layer", NULL};

enum behaviour { END, END_X, END_DX2, END_DX4, END_DX6, END_DT4, END_DT6, END_DT46 };
static const char *const behaviours[] = {
	"end", "end-x", "end-dx2", "end-dx4", "end-dx6", "end-dt4", "end-dt6", "end-dt46", NULL};

struct sid {
	uint8_t address[16];
	enum behaviour behaviour;
	uint8_t verdict;
	int out; // the port that packets leave by; -1: as the chain says
	uint8_t mac[CV_MAC_LEN]; // the neighbour's; zero: none
};

struct srv6 {
	uint32_t icmp_rate;
	struct cv_address_table table; // sid by address
	size_t count;
	struct sid *sid;
	struct cv_row_counters counters; // by sid
	struct cv_teller teller;
};

// A packet to one of the SIDs.
struct job {
	struct srv6 *srv6;
	struct cv_nf_worker *worker;
	struct cv_view *view;
	const struct sid *sid;
};

static uint8_t tell_and_drop(
	const struct job *job, enum drop why, enum cv_icmp_reason reason, uint32_t value)
{
	const struct cv_icmp_error error = {.reason = reason, .value = value};

	cv_teller_tell(&job->srv6->teller, job->worker, job->view, &error, job->sid->address);
	return CV_DROP(why);
}

// The packet leaves as the SID says; one that goes to a neighbour gets its address.
static uint8_t leave(const struct job *job, bool to_neighbour)
{
	struct cv_view *view = job->view;

	if (job->sid->out >= 0)
		view->out = (uint8_t)job->sid->out;
	if (to_neighbour) {
		memcpy(view->data, job->sid->mac, CV_MAC_LEN);
		memcpy(view->data + CV_MAC_LEN, job->srv6->teller.macs[view->out], CV_MAC_LEN);
	}
	return job->sid->verdict;
}

// RFC 8986 sections 4.1 and 4.2.
static uint8_t end(const struct job *job, uint8_t *ip, const struct cv_srv6 *headers)
{
	struct cv_ipv6 *outer = (struct cv_ipv6 *)ip;
	struct cv_srh *srh = (struct cv_srh *)(ip + headers->srh);

	if (headers->srh == 0 || srh->left == 0)
		return tell_and_drop(job, UPPER_LAYER, CV_ICMP_SR_UPPER_LAYER, headers->upper);
	if (outer->hop_limit <= 1)
		return tell_and_drop(job, TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
	if (srh->last + 1 > srh->len / 2 || srh->left > srh->last + 1)
		return tell_and_drop(job, BAD_SEGMENTS, CV_ICMP_PARAMETER,
			headers->srh + offsetof(struct cv_srh, left));
	srh->left--;
	memcpy(outer->dst, srh->segment[srh->left], CV_SEGMENT_LEN);
	outer->hop_limit -= job->sid->behaviour == END_X;
	return leave(job, job->sid->behaviour == END_X);
}

// The frame inside is all that is left: the packet's padding is gone already.
static uint8_t expose_frame(const struct job *job, unsigned inside)
{
	return cv_nf_adj(job->worker, job->view, (uint16_t)inside) ? leave(job, false)
								   : CV_DROP(BAD_HEADER);
}

// As a router takes a hop from a packet that it forwards. Its sender is not told: it is behind the tunnel.
static bool take_hop(struct cv_view *view)
{
	uint8_t *ip = view->data + view->l3;

	if (view->proto == CV_PROTO_IPV6) {
		if (((struct cv_ipv6 *)ip)->hop_limit <= 1)
			return false;
		((struct cv_ipv6 *)ip)->hop_limit--;
		return true;
	}
	if (((struct cv_ipv4 *)ip)->ttl <= 1)
		return false;
	cv_ipv4_ttl_decrement((struct cv_ipv4 *)ip);
	return true;
}

static uint8_t expose_ip(const struct job *job, unsigned inside, bool v6)
{
	const bool to_neighbour = job->sid->behaviour == END_DX4 || job->sid->behaviour == END_DX6;
	struct cv_view *view = job->view;
	const uint8_t *ip = view->data + inside;
	const uint16_t room = (uint16_t)(view->len - inside);

	if (v6 ? !cv_ipv6_check((const struct cv_ipv6 *)ip, room)
	       : cv_ipv4_check((const struct cv_ipv4 *)ip, room) == 0)
		return CV_DROP(BAD_HEADER);
	if (!cv_strip_to_ip(job->worker, view, inside, 0, v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4))
		return CV_DROP(BAD_HEADER);
	if (to_neighbour && !take_hop(view))
		return CV_DROP(TTL_EXPIRED);
	return leave(job, to_neighbour);
}

static bool takes(enum behaviour behaviour, uint8_t proto)
{
	switch (behaviour) {
	case END_DX2:
		return proto == CV_SRV6_ETHERNET;
	case END_DX4:
	case END_DT4:
		return proto == CV_SRV6_IPV4;
	case END_DX6:
	case END_DT6:
		return proto == CV_SRV6_IPV6;
	case END_DT46:
		return proto == CV_SRV6_IPV4 || proto == CV_SRV6_IPV6;
	case END:
	case END_X:
		break;
	}
	return false;
}

// RFC 8986 sections 4.4 to 4.9: the outer headers are taken off.
static uint8_t decapsulate(const struct job *job, const uint8_t *ip, const struct cv_srv6 *headers)
{
	const struct cv_srh *srh = (const struct cv_srh *)(ip + headers->srh);
	struct cv_view *view = job->view;
	const unsigned inside = view->l3 + headers->upper;
	const uint32_t len =
		CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
	const uint32_t padding = view->len - view->l3 - len;

	if (headers->srh != 0 && srh->left != 0)
		return tell_and_drop(job, BAD_SEGMENTS, CV_ICMP_PARAMETER,
			headers->srh + offsetof(struct cv_srh, left));
	if (!takes(job->sid->behaviour, headers->proto))
		return tell_and_drop(job, UPPER_LAYER, CV_ICMP_SR_UPPER_LAYER, headers->upper);
	if (padding > 0 && !cv_nf_trim(job->worker, view, (uint16_t)padding))
		return CV_DROP(BAD_HEADER);
	return headers->proto == CV_SRV6_ETHERNET
		       ? expose_frame(job, inside)
		       : expose_ip(job, inside, headers->proto == CV_SRV6_IPV6);
}

static uint8_t run(const struct job *job)
{
	uint8_t *ip = job->view->data + job->view->l3;
	struct cv_srv6 headers;

	if (!cv_ipv6_check((const struct cv_ipv6 *)ip, job->view->len - job->view->l3) ||
		!cv_srv6_read(ip, &headers))
		return CV_DROP(BAD_HEADER);
	if (headers.unknown != 0) // RFC 8200 section 4.4
		return tell_and_drop(job, BAD_SEGMENTS, CV_ICMP_PARAMETER, headers.unknown + 2u);
	return job->sid->behaviour <= END_X ? end(job, ip, &headers)
					    : decapsulate(job, ip, &headers);
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct srv6 *srv6 = instance;
	uint64_t *packets = srv6->counters.packets[worker->index];
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *ip = view[i].data + view[i].l3;
		uint32_t at = CV_ADDRESS_NONE;

		verdict[i] = CV_NEXT;
		if (view[i].proto == CV_PROTO_IPV6 && view[i].len - view[i].l3 >= CV_IPV6_LEN)
			at = cv_address_find(&srv6->table, ((const struct cv_ipv6 *)ip)->dst);
		if (at == CV_ADDRESS_NONE)
			continue;
		cv_row_count(packets, at, 1);
		verdict[i] = run(&(struct job){srv6, worker, &view[i], &srv6->sid[at]});
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

struct config {
	const json_t *sids;
	uint32_t icmp_rate;
};

static const struct cv_param params[] = {
	{"sids", CV_LIST, CV_AT(struct config, sids), .low = 1, .high = SIDS_MAX, .required = true,
		.doc = "its segments, and what becomes of packets to them"},
	{"icmp_rate", CV_INTEGER, CV_AT(struct config, icmp_rate), .high = 1000000,
		.fallback = 1000, .doc = "ICMPv6 errors per second and worker; 0: none"},
	{0},
};

struct sid_config {
	const char *sid;
	enum behaviour behaviour;
	const char *output;
	uint8_t mac[CV_MAC_LEN];
	const char *dev;
};

static const struct cv_param sid_params[] = {
	{"sid", CV_TEXT, CV_AT(struct sid_config, sid), .required = true},
	{"behaviour", CV_WORD, CV_AT(struct sid_config, behaviour), .words = behaviours},
	{"output", CV_TEXT, CV_AT(struct sid_config, output)},
	{"mac", CV_MAC, CV_AT(struct sid_config, mac)},
	{"dev", CV_TEXT, CV_AT(struct sid_config, dev)},
	{0},
};

static bool needs_neighbour(enum behaviour behaviour)
{
	return behaviour == END_X || behaviour == END_DX4 || behaviour == END_DX6;
}

static int set_way(struct sid *sid, const struct cv_where *at, const struct sid_config *config,
	const struct cv_nf_env *env)
{
	static const uint8_t none[CV_MAC_LEN];
	const bool given = memcmp(config->mac, none, CV_MAC_LEN) != 0;
	const char *behaviour = behaviours[config->behaviour];
	int output;

	if (needs_neighbour(config->behaviour) && !given)
		return cv_where_error(at, "mac: is missing; %s needs its neighbour's", behaviour);
	if (!needs_neighbour(config->behaviour) && given)
		return cv_where_error(at, "mac: %s has no neighbour; remove it", behaviour);
	memcpy(sid->mac, config->mac, CV_MAC_LEN);
	if (config->dev != NULL) {
		sid->out = cv_nf_env_port(env, config->dev);
		if (sid->out < 0)
			return cv_config_no_port_at(at, "dev", config->dev, env);
	}
	if (config->output != NULL) {
		output = cv_nf_env_output(env, config->output);
		if (output < 0)
			return cv_config_no_output_at(at, "output", config->output);
		sid->verdict = CV_OUTPUT(output);
	}
	return 0;
}

static int read_sid(struct srv6 *srv6, const struct cv_where *at, const json_t *value,
	const struct cv_nf_env *env)
{
	struct sid_config config;
	struct cv_address address;
	struct sid *sid = &srv6->sid[srv6->count];

	if (cv_params_read(at, value, sid_params, &config) != 0)
		return -EINVAL;
	if (cv_address_parse(config.sid, &address) != 0 || !address.v6 ||
		cv_ipv6_martian(address.bytes))
		return cv_where_error(at, "sid: \"%.64s\": must be an IPv6 address", config.sid);
	*sid = (struct sid){.behaviour = config.behaviour, .verdict = CV_NEXT, .out = -1};
	memcpy(sid->address, address.bytes, sizeof(sid->address));
	if (set_way(sid, at, &config, env) != 0)
		return -EINVAL;
	if (cv_address_add(&srv6->table, sid->address, (uint32_t)srv6->count) != 0)
		return cv_where_error(at, "sid: %.64s is there twice; remove one", config.sid);
	srv6->count++;
	return 0;
}

static int configure(struct srv6 *srv6, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	const json_t *value;
	size_t i;

	srv6->icmp_rate = config->icmp_rate;
	srv6->sid = calloc(json_array_size(config->sids), sizeof(*srv6->sid));
	if (srv6->sid == NULL ||
		cv_address_table_init(&srv6->table, json_array_size(config->sids)) != 0)
		return -ENOMEM;
	json_array_foreach (config->sids, i, value) {
		const struct cv_where at = cv_where_item(&top, "sids", i);

		if (read_sid(srv6, &at, value, env) != 0)
			return -EINVAL;
	}
	return cv_row_counters_make(&srv6->counters, srv6->count, env);
}

static void destroy(void *instance)
{
	struct srv6 *srv6 = instance;

	cv_row_counters_free(&srv6->counters);
	cv_address_table_free(&srv6->table);
	free(srv6->sid);
	free(srv6);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct srv6 *srv6 =
		aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*srv6)); // workers' parts apart

	if (srv6 == NULL)
		return NULL;
	memset(srv6, 0, sizeof(*srv6));
	if (configure(srv6, config, env, error) != 0) {
		destroy(srv6);
		return NULL;
	}
	return srv6;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct srv6 *srv6 = instance;

	cv_teller_start(&srv6->teller, env, srv6->icmp_rate);
}

// Counters of rows that are in both go on.
static void inherit(void *instance, void *before)
{
	const struct srv6 *old = before;
	struct srv6 *srv6 = instance;
	uint32_t *same = calloc(srv6->count, sizeof(*same));

	for (size_t i = 0; same != NULL && i < srv6->count; i++) {
		const uint32_t at = cv_address_find(&old->table, srv6->sid[i].address);

		same[i] = at == CV_ADDRESS_NONE ? 0 : at + 1;
	}
	cv_row_counters_inherit(&srv6->counters, &old->counters, same);
	free(same);
}

static json_t *info(const void *instance)
{
	const struct srv6 *srv6 = instance;
	json_t *sids = json_array();

	for (size_t i = 0; i < srv6->count; i++) {
		struct cv_address address = {.v6 = true};
		char text[CV_PREFIX_TEXT];

		memcpy(address.bytes, srv6->sid[i].address, sizeof(address.bytes));
		json_array_append_new(
			sids, json_pack("{s:s, s:s, s:I}", "sid", cv_address_text(&address, text),
				      "behaviour", behaviours[srv6->sid[i].behaviour], "packets",
				      (json_int_t)cv_row_counters_sum(&srv6->counters, i)));
	}
	return json_pack("{s:o, s:I}", "sids", sids, "icmp_errors_sent",
		(json_int_t)cv_teller_sent(&srv6->teller));
}

const struct cv_nf cv_nf_srv6 = {
	.name = "srv6",
	.summary = "Segments of the node: End, End.X, End.DX2/4/6, End.DT4/6/46 (RFC 8986).",
	.drops = drops,
	.branches = true,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.inherit = inherit,
	.destroy = destroy,
	.process = process,
	.info = info,
};
