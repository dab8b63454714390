// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nsh-encap: gives packets a Network Service Header (RFC 8300): the classifier of a service function chain.
// The first rule that matches a packet says which header it gets and where it goes.
//
//   {"rules": [
//      {"match": {"proto": "tcp", "dport": 80},   as a firewall rule's; the last rule may have none:
//                                                 every packet then, IP or not
//       "path": 42, "index": 255, "ttl": 63,
//       "context": "000102030405060708090a0b0c0d0e0f",    metadata of type 1: 16 bytes, absent 0; or
//       "tlvs": [{"metadata_class": 259, "type": 4, "value": "0a"}],    metadata of type 2
//       "mac": "02:00:00:00:00:09", "dev": "east",        the next hop; absent dev: as the chain says
//       "vxlan_gpe": {"src": "10.0.0.1", "dst": "10.0.0.2", "vni": 7}}]}    absent: over Ethernet
//
// The whole Ethernet frame, with its VLAN tags, lies behind the header. What no rule matches goes on
// unchanged.
//
// Drops: no_room (the packet would be too long, or there is no buffer).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/firewall/choice.h"
#include "nf/nsh/header.h"
#include "nf/nsh/transport.h"

#define RULES_MAX 65536

enum drop { NO_ROOM };
static const char *const drops[] = {"no_room", NULL};

// What the packets of a rule get.
struct header {
	uint16_t len; // of the NSH; 0: none
	uint8_t nsh[CV_NSH_LEN_MAX];
	struct cv_nsh_transport transport;
};

struct encap {
	struct cv_choice choice;
	struct header *header; // by rule + 1; 0: none matched
	uint8_t macs[CV_PORTS_MAX][CV_MAC_LEN]; // of ports
};

static uint8_t apply(const struct encap *encap, const struct header *header,
	struct cv_nf_worker *worker, struct cv_view *view)
{
	uint8_t *data =
		cv_nf_prepend(worker, view, (uint16_t)(header->transport.len + header->len));

	if (data == NULL)
		return CV_DROP(NO_ROOM);
	memcpy(data + header->transport.len, header->nsh, header->len);
	cv_nsh_transport_write(&header->transport, view, encap->macs);
	return CV_NEXT;
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	const struct encap *encap = instance;
	uint32_t rule[CV_BURST_MAX];
	uint16_t others = 0;

	cv_choice_find(&encap->choice, worker, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct header *header = &encap->header[rule[i]];

		verdict[i] = header->len == 0 ? CV_NEXT : apply(encap, header, worker, &view[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

struct config {
	const json_t *rules;
};

static const struct cv_param params[] = {
	{"rules", CV_LIST, CV_AT(struct config, rules), .low = 1, .high = RULES_MAX,
		.required = true, .doc = "rules in order: who gets which header"},
	{0},
};

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads bytes as pairs of hexadecimal digits, low to high of them; absent (NULL): none. Returns how many,
// or -EINVAL with at's error set.
static int read_hex(const struct cv_where *at, const char *key, const char *text, uint8_t *bytes,
	unsigned low, unsigned high)
{
	const size_t count = text == NULL ? 0 : strlen(text);
	bool sound = count % 2 == 0 && count / 2 >= low && count / 2 <= high;

	for (size_t i = 0; sound && i < count; i++)
		sound = digit(text[i]) >= 0;
	if (!sound)
		return cv_where_error(at, "%s: \"%.64s\": must be %s%u hexadecimal digits", key,
			text, low == high ? "" : "an even number of up to ", 2 * high);
	for (size_t i = 0; i < count / 2; i++)
		bytes[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return (int)(count / 2);
}

struct tlv {
	uint16_t class;
	uint8_t type;
	const char *value;
};

static const struct cv_param tlv_params[] = {
	{"metadata_class", CV_INTEGER, CV_AT(struct tlv, class), .high = UINT16_MAX,
		.required = true},
	{"type", CV_INTEGER, CV_AT(struct tlv, type), .high = UINT8_MAX, .required = true},
	{"value", CV_TEXT, CV_AT(struct tlv, value)},
	{0},
};

// RFC 8300 section 2.5.1: class, type, a bit that stays zero, length, the value, padding to four bytes.
static int add_tlv(struct header *header, const struct cv_where *at, const json_t *value)
{
	uint8_t bytes[127], *to = header->nsh + header->len;
	struct tlv tlv;
	unsigned padded;
	int len;

	if (cv_params_read(at, value, tlv_params, &tlv) != 0)
		return -EINVAL;
	len = read_hex(at, "value", tlv.value, bytes, 0, sizeof(bytes));
	if (len < 0)
		return len;
	padded = RTE_ALIGN_CEIL((unsigned)len, 4u);
	if (header->len + 4 + padded > CV_NSH_LEN_MAX)
		return cv_where_error(at, "the header has more than %u bytes with it; remove some",
			CV_NSH_LEN_MAX);
	to[0] = (uint8_t)(tlv.class >> 8);
	to[1] = (uint8_t)tlv.class;
	to[2] = tlv.type;
	to[3] = (uint8_t)len;
	memcpy(to + 4, bytes, (size_t)len);
	header->len += (uint16_t)(4 + padded);
	return 0;
}

struct rule_config {
	const json_t *match;
	uint32_t path;
	uint8_t index, ttl;
	const char *context;
	const json_t *tlvs;
	struct cv_nsh_transport_config transport;
};

static const struct cv_param rule_params[] = {
	{"match", CV_MAP, CV_AT(struct rule_config, match)},
	{"path", CV_INTEGER, CV_AT(struct rule_config, path), .high = 0xffffff, .required = true},
	{"index", CV_INTEGER, CV_AT(struct rule_config, index), .low = 1, .high = 255,
		.fallback = 255},
	{"ttl", CV_INTEGER, CV_AT(struct rule_config, ttl), .low = 1, .high = CV_NSH_TTL_MAX,
		.fallback = CV_NSH_TTL_MAX},
	{"context", CV_TEXT, CV_AT(struct rule_config, context)},
	{"tlvs", CV_LIST, CV_AT(struct rule_config, tlvs)},
	{NULL, CV_PARAMS, CV_AT(struct rule_config, transport), .params = cv_nsh_transport_params},
	{0},
};

static int add_metadata(
	struct header *header, const struct cv_where *at, const struct rule_config *rule)
{
	const json_t *value;
	size_t i;

	if (rule->tlvs == NULL) {
		if (rule->context != NULL &&
			read_hex(at, "context", rule->context, header->nsh + CV_NSH_LEN,
				CV_NSH_CONTEXT_LEN, CV_NSH_CONTEXT_LEN) < 0)
			return -EINVAL;
		header->nsh[2] = CV_NSH_METADATA_FIXED;
		header->len += CV_NSH_CONTEXT_LEN;
		return 0;
	}
	if (rule->context != NULL)
		return cv_where_error(at, "context and tlvs exclude each other; remove one");
	header->nsh[2] = CV_NSH_METADATA_VARIABLE;
	json_array_foreach (rule->tlvs, i, value) {
		const struct cv_where where = cv_where_item(at, "tlvs", i);

		if (add_tlv(header, &where, value) != 0)
			return -EINVAL;
	}
	return 0;
}

static int read_rule(struct header *header, const struct cv_where *at,
	const struct rule_config *rule, const struct cv_nf_env *env)
{
	const rte_be32_t key = rte_cpu_to_be_32(cv_nsh_key(rule->path, rule->index));

	header->len = CV_NSH_LEN;
	if (cv_nsh_transport_set(&header->transport, at, &rule->transport, env) != 0 ||
		add_metadata(header, at, rule) != 0)
		return -EINVAL;
	header->nsh[1] = (uint8_t)(header->len / 4);
	cv_nsh_set_ttl(header->nsh, rule->ttl);
	header->nsh[3] = CV_NSH_ETHERNET;
	memcpy(header->nsh + 4, &key, sizeof(key));
	return 0;
}

static int configure(struct encap *encap, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	size_t count = json_array_size(config->rules);
	const json_t *value;
	size_t i;

	encap->header = calloc(count + 1, sizeof(*encap->header));
	if (encap->header == NULL)
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
		if (read_rule(&encap->header[last ? 0 : i + 1], &at, &rule, env) != 0)
			return -EINVAL;
		count -= last;
	}
	return cv_choice_make(&encap->choice, config->rules, count, env, error);
}

static void destroy(void *instance)
{
	struct encap *encap = instance;

	cv_choice_free(&encap->choice);
	free(encap->header);
	free(encap);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct encap *encap = calloc(1, sizeof(*encap));

	if (encap != NULL && configure(encap, config, env, error) != 0) {
		destroy(encap);
		return NULL;
	}
	return encap;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct encap *encap = instance;

	memcpy(encap->macs, env->macs, env->ports_count * sizeof(*env->macs));
}

static void inherit(void *instance, void *before)
{
	struct encap *encap = instance;

	cv_choice_inherit(&encap->choice, &((const struct encap *)before)->choice);
}

static json_t *info(const void *instance)
{
	const struct encap *encap = instance;

	return cv_choice_info(&encap->choice);
}

const struct cv_nf cv_nf_nsh_encap = {
	.name = "nsh_encap",
	.summary = "Gives packets a Network Service Header (RFC 8300), by ordered rules.",
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
