// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nsh: what becomes of packets with a Network Service Header (RFC 8300), by service path and index.
//
//   {"paths": [
//      {"path": 42, "index": 255, "action": "proxy"},
//      {"path": 42, "index": 254, "mac": "02:00:00:00:00:09", "dev": "east"},
//      {"path": 42, "index": 253, "action": "decapsulate", "output": "servers"}],
//    "oam": "drop", "not_nsh": "drop"}
//
// forward (a service function forwarder): to the next hop, straight behind Ethernet, or in
//   "vxlan_gpe": {"src": "10.0.0.1", "dst": "10.0.0.2", "vni": 7}; the TTL is decremented.
// proxy (for functions that know nothing of NSH): the functions behind see the packet inside, the
//   header stays before it in its buffer, and the index is decremented. The next nsh function sees the
//   whole packet again; without one it leaves as it came, but for the index.
// decapsulate (the path's end): the packet goes on without header. What was IP straight behind NSH gets
//   the Ethernet header, with its tags, that NSH had.
//
// With "output" the packet goes to the chain there, else to the next function. Metadata of both types is
// carried along and not looked at.
//
// Drops: not_nsh; bad_header (version, lengths, the frame inside too short); metadata_type (neither 1
// nor 2); oam; no_path (that path and index are not in the table); ttl_expired; index_expired (proxy, of
// index 0); next_protocol (decapsulate: neither Ethernet nor IP inside; proxy: not Ethernet); too_long
// (proxy: the headers before the frame have more than 255 bytes, or a tunnel before them); no_room.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/config.h"
#include "nf/nsh/header.h"
#include "nf/nsh/path_table.h"
#include "nf/nsh/transport.h"
#include "nf/row_counters.h"
#include "nf/strip.h"

enum drop {
	NOT_NSH,
	BAD_HEADER,
	METADATA_TYPE,
	OAM,
	NO_PATH,
	TTL_EXPIRED,
	INDEX_EXPIRED,
	NEXT_PROTOCOL,
	TOO_LONG,
	NO_ROOM,
};
static const char *const drops[] = {"not_nsh", "bad_header", "metadata_type", "oam", "no_path",
	"ttl_expired", "index_expired", "next_protocol", "too_long", "no_room", NULL};

enum action { FORWARD, PROXY, DECAPSULATE };
static const char *const actions[] = {"forward", "proxy", "decapsulate", NULL};
static const char *const not_nsh_words[] = {"drop", "pass", NULL};
static const char *const oam_words[] = {"drop", "forward", NULL};

struct row {
	uint32_t key;
	enum action action;
	uint8_t verdict;
	struct cv_nsh_transport transport; // of FORWARD
};

struct nsh {
	bool pass_others, forward_oam;
	uint8_t macs[CV_PORTS_MAX][CV_MAC_LEN]; // of ports
	struct cv_nsh_path_table table; // row by path and index
	size_t count;
	struct row *row;
	struct cv_row_counters counters; // by row
};

static uint8_t forward(const struct nsh *nsh, const struct row *row, struct cv_nf_worker *worker,
	struct cv_view *view, unsigned at)
{
	uint8_t *header = view->data + at;
	const unsigned ttl = (cv_nsh_ttl(header) - 1) & CV_NSH_TTL_MAX; // 63 comes after 0

	if (ttl == 0)
		return CV_DROP(TTL_EXPIRED);
	cv_nsh_set_ttl(header, ttl);
	if (!cv_nsh_transport_replace(&row->transport, worker, view, at, nsh->macs))
		return CV_DROP(NO_ROOM);
	return row->verdict;
}

static uint8_t proxy(const struct row *row, struct cv_nf_worker *worker, struct cv_view *view,
	unsigned at, unsigned len)
{
	uint8_t *header = view->data + at;

	if (header[3] != CV_NSH_ETHERNET)
		return CV_DROP(NEXT_PROTOCOL);
	if (header[7] == 0)
		return CV_DROP(INDEX_EXPIRED);
	if (view->len < at + len + CV_ETHER_LEN)
		return CV_DROP(BAD_HEADER);
	if (view->before > 0)
		return CV_DROP(TOO_LONG);
	if (at != view->l3) // the outer UDP checksum would no longer hold: none (RFC 6935)
		memset(header - CV_VXLAN_LEN - 2, 0, 2);
	header[7]--;
	if (!cv_nf_hide(worker, view, (uint16_t)(at + len)))
		return CV_DROP(TOO_LONG);
	return row->verdict;
}

static uint8_t decapsulate(const struct row *row, struct cv_nf_worker *worker, struct cv_view *view,
	unsigned at, unsigned len)
{
	const uint8_t next = view->data[at + 3];
	bool done;

	if (next == CV_NSH_ETHERNET)
		done = cv_nf_adj(worker, view, (uint16_t)(at + len));
	else if (next == CV_NSH_IPV4 || next == CV_NSH_IPV6)
		done = cv_strip_to_ip(worker, view, at + len, 0,
			next == CV_NSH_IPV4 ? CV_PROTO_IPV4 : CV_PROTO_IPV6);
	else
		return CV_DROP(NEXT_PROTOCOL);
	return done ? row->verdict : CV_DROP(BAD_HEADER);
}

// What a proxy hid, the functions between having seen the packet inside, is shown again. A tunnel that a
// chain is known by is not.
static void show(struct cv_nf_worker *worker, struct cv_view *view)
{
	struct cv_view all = *view;
	unsigned at, len;

	cv_view_set(&all, cv_view_packet(view), (uint16_t)cv_view_packet_len(view));
	at = cv_nsh_find(&all);
	len = at == 0 ? 0 : cv_nsh_len(all.data + at, all.len - at);
	if (len != 0 && at + len == view->before)
		cv_nf_show(worker, view);
}

static CV_INLINE uint8_t verdict_of(
	const struct nsh *nsh, struct cv_nf_worker *worker, struct cv_view *view)
{
	const uint8_t *header;
	const struct row *row;
	unsigned at, len;
	uint32_t index;

	if (CV_UNLIKELY(view->before > 0))
		show(worker, view);
	at = cv_nsh_find(view);
	if (at == 0)
		return nsh->pass_others ? CV_NEXT : CV_DROP(NOT_NSH);
	header = view->data + at;
	len = cv_nsh_len(header, view->len - at);
	if (len == 0)
		return CV_DROP(BAD_HEADER);
	if (cv_nsh_metadata_type(header) != CV_NSH_METADATA_FIXED &&
		cv_nsh_metadata_type(header) != CV_NSH_METADATA_VARIABLE)
		return CV_DROP(METADATA_TYPE);
	index = cv_nsh_path_find(&nsh->table, cv_nsh_key_of(header));
	if (index == CV_NSH_NO_PATH)
		return CV_DROP(NO_PATH);
	row = &nsh->row[index];
	if (cv_nsh_is_oam(header) && !(nsh->forward_oam && row->action == FORWARD))
		return CV_DROP(OAM);
	cv_row_count(nsh->counters.packets[worker->index], index, 1);
	switch (row->action) {
	case FORWARD:
		return forward(nsh, row, worker, view, at);
	case PROXY:
		return proxy(row, worker, view, at, len);
	case DECAPSULATE:
		break;
	}
	return decapsulate(row, worker, view, at, len);
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = verdict_of(instance, worker, &view[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

struct config {
	const json_t *paths;
	unsigned oam, not_nsh;
};

static const struct cv_param params[] = {
	{"paths", CV_LIST, CV_AT(struct config, paths), .low = 1, .high = CV_NSH_PATHS_MAX,
		.required = true, .doc = "what becomes of packets, by service path and index"},
	{"oam", CV_WORD, CV_AT(struct config, oam), .words = oam_words,
		.doc = "packets with the O bit: forward leaves them to rows that forward"},
	{"not_nsh", CV_WORD, CV_AT(struct config, not_nsh), .words = not_nsh_words,
		.doc = "what becomes of packets without the header"},
	{0},
};

struct row_config {
	uint32_t path;
	uint8_t index;
	enum action action;
	const char *output;
	struct cv_nsh_transport_config transport;
};

static const struct cv_param row_params[] = {
	{"path", CV_INTEGER, CV_AT(struct row_config, path), .high = 0xffffff, .required = true},
	{"index", CV_INTEGER, CV_AT(struct row_config, index), .high = 255, .required = true},
	{"action", CV_WORD, CV_AT(struct row_config, action), .words = actions},
	{"output", CV_TEXT, CV_AT(struct row_config, output)},
	{NULL, CV_PARAMS, CV_AT(struct row_config, transport), .params = cv_nsh_transport_params},
	{0},
};

static int read_row(struct nsh *nsh, const struct cv_where *at, const json_t *value,
	const struct cv_nf_env *env)
{
	struct row_config config = {0};
	struct row *row = &nsh->row[nsh->count];
	int output;

	if (cv_params_read(at, value, row_params, &config) != 0)
		return -EINVAL;
	*row = (struct row){
		.key = cv_nsh_key(config.path, config.index),
		.action = config.action,
		.verdict = CV_NEXT,
	};
	if (config.output != NULL) {
		output = cv_nf_env_output(env, config.output);
		if (output < 0)
			return cv_config_no_output_at(at, "output", config.output);
		row->verdict = CV_OUTPUT(output);
	}
	if (config.action == FORWARD &&
		cv_nsh_transport_set(&row->transport, at, &config.transport, env) != 0)
		return -EINVAL;
	if (cv_nsh_path_add(&nsh->table, row->key, (uint32_t)nsh->count) != 0)
		return cv_where_error(at, "path %u with index %u is there twice; remove one",
			config.path, config.index);
	nsh->count++;
	return 0;
}

static int configure(struct nsh *nsh, const struct config *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	const json_t *value;
	size_t i;

	nsh->pass_others = config->not_nsh != 0;
	nsh->forward_oam = config->oam != 0;
	nsh->row = calloc(json_array_size(config->paths), sizeof(*nsh->row));
	if (nsh->row == NULL ||
		cv_nsh_path_table_init(&nsh->table, json_array_size(config->paths)) != 0)
		return -ENOMEM;
	json_array_foreach (config->paths, i, value) {
		const struct cv_where at = cv_where_item(&top, "paths", i);

		if (read_row(nsh, &at, value, env) != 0)
			return -EINVAL;
	}
	return cv_row_counters_make(&nsh->counters, nsh->count, env);
}

static void destroy(void *instance)
{
	struct nsh *nsh = instance;

	cv_row_counters_free(&nsh->counters);
	cv_nsh_path_table_free(&nsh->table);
	free(nsh->row);
	free(nsh);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct nsh *nsh = calloc(1, sizeof(*nsh));

	if (nsh != NULL && configure(nsh, config, env, error) != 0) {
		destroy(nsh);
		return NULL;
	}
	return nsh;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct nsh *nsh = instance;

	memcpy(nsh->macs, env->macs, env->ports_count * sizeof(*env->macs));
}

// Counters of rows that are in both go on.
static void inherit(void *instance, void *before)
{
	const struct nsh *old = before;
	struct nsh *nsh = instance;
	uint32_t *same = calloc(nsh->count, sizeof(*same));

	for (size_t i = 0; same != NULL && i < nsh->count; i++) {
		const uint32_t at = cv_nsh_path_find(&old->table, nsh->row[i].key);

		same[i] = at == CV_NSH_NO_PATH ? 0 : at + 1;
	}
	cv_row_counters_inherit(&nsh->counters, &old->counters, same);
	free(same);
}

static json_t *info(const void *instance)
{
	const struct nsh *nsh = instance;
	json_t *paths = json_array();

	for (size_t i = 0; i < nsh->count; i++) {
		json_array_append_new(
			paths, json_pack("{s:i, s:i, s:I}", "path", (int)(nsh->row[i].key >> 8),
				       "index", (int)(nsh->row[i].key & 0xff), "packets",
				       (json_int_t)cv_row_counters_sum(&nsh->counters, i)));
	}
	return json_pack("{s:o}", "paths", paths);
}

const struct cv_nf cv_nf_nsh = {
	.name = "nsh",
	.summary = "Forwards, decapsulates and proxies NSH (RFC 8300) by service path and index.",
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
