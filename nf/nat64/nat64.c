// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat64: IPv6 hosts and IPv4 hosts speak to each other (RFC 7915), one packet at a time: nothing is kept of flows.
// With clients, and a nat behind that shares external addresses among them, that is stateful NAT64 (RFC 6146).
//
//   {"prefix": "2001:db8:64::/96",             IPv4 addresses as IPv6 hosts see them (RFC 6052); 32, 40, 48,
//                                              56, 64 or 96 bits
//    "hosts": ["198.51.100.0/24"],             IPv4 addresses of IPv6 hosts whose addresses have the prefix
//    "eam": [{"ipv4": "192.0.2.0/24",          and of those whose addresses have not (RFC 7757)
//             "ipv6": "2001:db8:a::/120"}],
//    "clients": "100.64.0.0/16", "client_idle_s": 14400,    and of all other IPv6 hosts, as they begin to send
//    "source": "192.0.2.1", "source_ipv6": "2001:db8::1",     of ICMP errors
//    "ipv6_mtu": 1280, "zero_checksum": "make", "traffic_class": "copy",
//    "ttl": "decrement", "icmp_rate": 1000}
//
// A packet to an address that stands for another is translated: IPv6 to the prefix or to a row of eam, IPv4 to
// a row of eam or to hosts. All others go on unchanged. A router behind forwards what was translated.
//
// A hop is taken, unless a router behind does (ttl: check). Checksums are updated; a UDP checksum of zero is made, or such packets are dropped. IPv4 that may
// be fragmented is, to ipv6_mtu; IPv4 with DF, and IPv6, that is too long for the port is dropped, and
// its sender told. ICMP becomes ICMPv6, with the packet inside of errors.
//
// Drops: bad_header; bad_address (nobody's, or not one for 64:ff9b::/96); no_mapping (the source stands for none);
// ttl_expired and too_big (the sender is told); source_route (so too); untranslatable (what the other IP has not:
// fragmented ICMP, some ICMP messages, IPv6 headers); zero_checksum (a fragment's, or as configured); no_buffer; no_address (clients have all).
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "nf/nat64/common.h"

#define AHEAD 6 // packets that a line is asked for

static const char *const drops[] = {"bad_header", "bad_address", "no_mapping", "ttl_expired",
	"too_big", "source_route", "untranslatable", "zero_checksum", "no_buffer", "no_address",
	NULL};

// Packets of a burst that were translated.
struct translated {
	uint16_t to_ipv4, to_ipv6;
};

// A verdict.
static CV_INLINE uint8_t run(const struct cv_nat64_job *job, struct translated *translated)
{
	const struct cv_view *view = job->view;
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	struct cv_nat64_ends ends;
	rte_be32_t dst;
	uint8_t verdict;

	if (view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN) {
		ends.dst6 = cv_nat64_load(ip + 24);
		if (!cv_nat64_to_ipv4(&job->nat64->map, ends.dst6, &ends.dst))
			return CV_NEXT;
		verdict = cv_nat64_run_to_ipv4(job, &ends);
		translated->to_ipv4 += verdict == CV_NEXT;
		return verdict;
	}
	if (view->proto != CV_PROTO_IPV4 || room < CV_IPV4_LEN)
		return CV_NEXT;
	memcpy(&dst, ip + 16, sizeof(dst));
	ends.dst = rte_be_to_cpu_32(dst);
	if (CV_UNLIKELY(job->nat64->clients != NULL) &&
		cv_nat64_clients_have(job->nat64->clients, ends.dst)) {
		if (!cv_nat64_clients_to_ipv6(job->nat64->clients, ends.dst, &ends.dst6))
			return CV_DROP(CV_NAT64_BAD_ADDRESS);
		cv_nat64_clients_touch(job->nat64->clients, ends.dst, job->worker->now);
	} else if (!cv_nat64_row_has(&job->nat64->map, ends.dst, &ends.dst6)) {
		return CV_NEXT;
	}
	verdict = cv_nat64_run_to_ipv6(job, &ends);
	translated->to_ipv6 += verdict == CV_NEXT;
	return verdict;
}

CV_HOT static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct cv_nat64 *nat64 = instance;
	struct cv_nat64_lane *lane = &nat64->lanes[worker->index];
	struct translated translated = {0};
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		// An IPv4 packet grows into a line that nobody has touched yet.
		if (i + AHEAD < n)
			CV_PREFETCH_WRITE(view[i + AHEAD].data - CV_NAT64_GROWTH);
		verdict[i] = run(&(struct cv_nat64_job){nat64, worker, &view[i]}, &translated);
		others += verdict[i] != CV_NEXT;
	}
	cv_nat64_add(&lane->to_ipv4, translated.to_ipv4);
	cv_nat64_add(&lane->to_ipv6, translated.to_ipv6);
	return others;
}

static const char *const zero_checksums[] = {"make", "drop", NULL};
static const char *const classes[] = {"copy", "zero", NULL};
static const char *const ttls[] = {"decrement", "check", NULL};

// Reads a prefix of one IP version.
static int read_prefix(const struct cv_where *at, const char *key, const json_t *value, bool v6,
	struct cv_prefix *prefix)
{
	const char *text = json_string_value(value);
	const int rc = text != NULL ? cv_prefix_parse(text, prefix) : -EINVAL;
	char fixed[CV_PREFIX_TEXT];

	if (rc == -EDOM) {
		cv_prefix_mask(prefix);
		return cv_where_wrong(at, key, value, "host bits are set; write \"%s\"",
			cv_prefix_text(prefix, fixed));
	}
	if (rc != 0 || prefix->address.v6 != v6)
		return cv_where_wrong(at, key, value, "must be an IPv%c prefix", v6 ? '6' : '4');
	return 0;
}

static int read_ipv4_prefix(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	return read_prefix(at, key, value, false, member);
}

static int read_ipv6_prefix(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	return read_prefix(at, key, value, true, member);
}

static int read_translation(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	struct cv_prefix prefix;

	if (read_prefix(at, key, value, true, &prefix) != 0)
		return -EINVAL;
	if (cv_nat64_prefix_set(member, &prefix) != 0)
		return cv_where_wrong(at, key, value,
			"must have 32, 40, 48, 56, 64 or 96 bits, and zeros from bit 64 to 71");
	return 0;
}

static int read_clients(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	struct cv_prefix *prefix = member;

	if (read_prefix(at, key, value, false, prefix) != 0)
		return -EINVAL;
	if (prefix->length < CV_NAT64_CLIENTS_SHORTEST || prefix->length > 30)
		return cv_where_wrong(
			at, key, value, "must have from %u to 30 bits", CV_NAT64_CLIENTS_SHORTEST);
	return 0;
}

// Reads an address of the node.
static int read_source(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const bool v6 = strcmp(key, "source_ipv6") == 0;
	const char *text = json_string_value(value);
	struct cv_address *address = member;

	if (text == NULL || cv_address_parse(text, address) != 0 || address->v6 != v6 ||
		(v6 ? cv_ipv6_martian(address->bytes) : cv_ipv4_martians[address->bytes[0]] != 0))
		return cv_where_wrong(
			at, key, value, "must be an IPv%c address of the node", v6 ? '6' : '4');
	return 0;
}

struct config {
	struct cv_nat64_prefix prefix;
	struct cv_prefix clients; // of length 0: there are none
	uint32_t client_idle_s;
	const json_t *hosts, *eam;
	struct cv_address source, source_ipv6;
	uint16_t ipv6_mtu;
	unsigned zero_checksum, traffic_class, ttl;
	uint32_t icmp_rate;
};

static const struct cv_param params[] = {
	{"prefix", CV_CUSTOM, CV_AT(struct config, prefix), .read = read_translation,
		.doc = "IPv4 addresses as IPv6 hosts see them: 32, 40, 48, 56, 64 or 96 bits"},
	{"hosts", CV_LIST, CV_AT(struct config, hosts), .high = CV_NAT64_ROWS_MAX,
		.doc = "IPv4 prefixes of IPv6 hosts whose addresses have the prefix"},
	{"eam", CV_LIST, CV_AT(struct config, eam), .high = CV_NAT64_ROWS_MAX,
		.doc = "explicit address mappings (RFC 7757)"},
	{"clients", CV_CUSTOM, CV_AT(struct config, clients), .read = read_clients,
		.doc = "IPv4 addresses of all other IPv6 hosts, one each, as they begin to send"},
	{"client_idle_s", CV_INTEGER, CV_AT(struct config, client_idle_s), .low = 1, .high = 604800,
		.fallback = 14400,
		.doc = "how long a client is silent before its address is another's, s"},
	{"source", CV_CUSTOM, CV_AT(struct config, source), .read = read_source, .required = true,
		.doc = "source of ICMP errors, an IPv4 address of the node"},
	{"source_ipv6", CV_CUSTOM, CV_AT(struct config, source_ipv6), .read = read_source,
		.required = true, .doc = "source of ICMPv6 errors, an IPv6 address of the node"},
	{"ipv6_mtu", CV_INTEGER, CV_AT(struct config, ipv6_mtu), .low = CV_IPV6_MTU_LEAST,
		.high = UINT16_MAX, .fallback = CV_IPV6_MTU_LEAST,
		.doc = "the longest IPv6 packet that is made of IPv4 without DF, bytes"},
	{"zero_checksum", CV_WORD, CV_AT(struct config, zero_checksum), .words = zero_checksums,
		.doc = "what becomes of UDP over IPv4 without a checksum"},
	{"traffic_class", CV_WORD, CV_AT(struct config, traffic_class), .words = classes,
		.doc = "whether DSCP and ECN go over"},
	{"ttl", CV_WORD, CV_AT(struct config, ttl), .words = ttls,
		.doc = "whether a hop is taken here, or by a router behind"},
	{"icmp_rate", CV_INTEGER, CV_AT(struct config, icmp_rate), .high = 1000000,
		.fallback = 1000, .doc = "ICMP errors per second and worker; 0: none"},
	{0},
};

struct mapping {
	struct cv_prefix ipv4, ipv6;
};

static const struct cv_param mapping_params[] = {
	{"ipv4", CV_CUSTOM, CV_AT(struct mapping, ipv4), .read = read_ipv4_prefix,
		.required = true},
	{"ipv6", CV_CUSTOM, CV_AT(struct mapping, ipv6), .read = read_ipv6_prefix,
		.required = true},
	{0},
};

static uint32_t host_order(const struct cv_address *address)
{
	rte_be32_t ipv4;

	memcpy(&ipv4, address->bytes, sizeof(ipv4));
	return rte_be_to_cpu_32(ipv4);
}

static int read_host(const struct cv_where *at, const json_t *value, struct cv_nat64_row *row)
{
	struct cv_prefix prefix;

	if (read_prefix(at, "", value, false, &prefix) != 0)
		return -EINVAL;
	*row = (struct cv_nat64_row){.ipv4 = host_order(&prefix.address),
		.ipv4_length = prefix.length,
		.by_prefix = true};
	return 0;
}

static int read_mapping(const struct cv_where *at, const json_t *value, struct cv_nat64_row *row)
{
	struct mapping mapping;

	if (cv_params_read(at, value, mapping_params, &mapping) != 0)
		return -EINVAL;
	if (32 - mapping.ipv4.length > 128 - mapping.ipv6.length)
		return cv_where_wrong(at, "ipv6", json_object_get(value, "ipv6"),
			"has fewer addresses than ipv4; its length may be %u at most",
			96u + mapping.ipv4.length);
	*row = (struct cv_nat64_row){
		.ipv4 = host_order(&mapping.ipv4.address),
		.ipv4_length = mapping.ipv4.length,
		.ipv6 = cv_nat64_load(mapping.ipv6.address.bytes),
		.ipv6_length = mapping.ipv6.length,
	};
	return 0;
}

static int read_rows(
	struct cv_nat64_map *map, const struct cv_where *top, const struct config *config)
{
	const size_t rows = json_array_size(config->hosts) + json_array_size(config->eam);
	const json_t *value;
	uint32_t twice;
	size_t i;
	int rc;

	map->row = calloc(rows + 1, sizeof(*map->row));
	if (map->row == NULL)
		return -ENOMEM;
	json_array_foreach (config->hosts, i, value) {
		const struct cv_where at = cv_where_item(top, "hosts", i);

		if (read_host(&at, value, &map->row[map->rows++]) != 0)
			return -EINVAL;
	}
	json_array_foreach (config->eam, i, value) {
		const struct cv_where at = cv_where_item(top, "eam", i);

		if (read_mapping(&at, value, &map->row[map->rows++]) != 0)
			return -EINVAL;
	}
	rc = cv_nat64_map_finish(map, &twice);
	if (rc == -EEXIST) {
		const bool is_host = twice < json_array_size(config->hosts);
		const struct cv_where at = cv_where_item(top, is_host ? "hosts" : "eam",
			is_host ? twice : twice - json_array_size(config->hosts));

		return cv_where_error(&at, "has a prefix that another row has; remove one");
	}
	return rc;
}

// Makes the table of clients, or goes on with that of the instance that runs.
static int make_clients(struct cv_nat64 *nat64, const struct config *config,
	const struct cv_nf_env *env, const struct cv_where *top)
{
	const struct cv_nat64 *old = env->running;
	const uint32_t first = host_order(&config->clients.address);
	const uint64_t idle = config->client_idle_s * rte_get_tsc_hz();

	if (config->clients.length == 0)
		return 0;
	if (!config->prefix.given)
		return cv_where_error(
			top, "clients: there is no prefix that they could send to; add prefix");
	if (__builtin_popcountll(cv_nf_env_runners(env)) > 1)
		return cv_where_error(top, "clients: several workers run this function, and one "
					   "alone may; give its chains one worker");
	if (old == NULL || old->clients == NULL) {
		nat64->clients = cv_nat64_clients_create(first, config->clients.length, idle);
		return nat64->clients == NULL ? -ENOMEM : 0;
	}
	if (!cv_nat64_clients_are(old->clients, first, config->clients.length, idle))
		return cv_where_error(top, "clients, client_idle_s: stay as they are while packets "
					   "flow; start the node anew");
	nat64->clients = cv_nat64_clients_share(old->clients);
	return 0;
}

// What every checksum changes by, if that is so.
static void find_delta(struct cv_nat64 *nat64)
{
	const struct cv_nat64_prefix *prefix = &nat64->map.prefix;
	const uint64_t both =
		2 * (cv_nat64_sum(prefix->first.high) + cv_nat64_sum(prefix->first.low));

	nat64->even = nat64->clients == NULL && nat64->map.ipv6.lengths == 0 &&
		      cv_nat64_prefix_is_even(prefix);
	nat64->to_ipv4_delta = cv_nat64_delta(both, 0);
	nat64->to_ipv6_delta = cv_nat64_delta(0, both);
}

static int configure(struct cv_nat64 *nat64, const struct config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	int rc;

	if (!config->prefix.given && json_array_size(config->hosts) > 0)
		return cv_where_error(
			&top, "hosts: there is no prefix; add prefix, or remove hosts");
	if (!config->prefix.given && json_array_size(config->eam) == 0)
		return cv_where_error(&top, "translates nothing; add prefix or eam");
	nat64->map.prefix = config->prefix;
	memcpy(nat64->source, config->source.bytes, sizeof(nat64->source));
	memcpy(nat64->source_ipv6, config->source_ipv6.bytes, sizeof(nat64->source_ipv6));
	nat64->source_host = host_order(&config->source);
	nat64->ipv6_mtu = config->ipv6_mtu;
	nat64->class_mask = config->traffic_class == 0 ? 0xff : 0;
	nat64->hop = config->ttl == 0 ? 1 : 0;
	nat64->drops_zero_checksum = config->zero_checksum != 0;
	nat64->icmp_rate = config->icmp_rate;
	if (read_rows(&nat64->map, &top, config) != 0)
		return -EINVAL;
	rc = make_clients(nat64, config, env, &top);
	if (rc == 0)
		find_delta(nat64);
	return rc;
}

static void destroy(void *instance)
{
	struct cv_nat64 *nat64 = instance;

	cv_nat64_clients_release(nat64->clients);
	cv_nat64_map_free(&nat64->map);
	free(nat64);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_nat64 *nat64 =
		aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*nat64)); // workers' parts apart

	if (nat64 == NULL)
		return NULL;
	memset(nat64, 0, sizeof(*nat64));
	if (configure(nat64, config, env, error) != 0) {
		destroy(nat64);
		return NULL;
	}
	return nat64;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	const struct cv_nat64 *old = env->running;
	struct cv_nat64 *nat64 = instance;

	cv_teller_start(&nat64->teller, env, nat64->icmp_rate);
	memcpy(nat64->mtus, env->mtus, env->ports_count * sizeof(*env->mtus));
	// Workers begin apart: their identifications of packets between the same ends differ for long. Or
	// they go on, but for what is sent until they go over.
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++)
		nat64->lanes[i].id = old == NULL
					     ? (uint16_t)(i << 10)
					     : __atomic_load_n(&old->lanes[i].id,
						       __ATOMIC_RELAXED); // with cv_nat64_next_id()
}

// Counts go on.
static void inherit(void *instance, void *before)
{
	const struct cv_nat64 *old = before;
	struct cv_nat64 *nat64 = instance;

	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		struct cv_nat64_lane *lane = &nat64->lanes[i];

		cv_nat64_add(&lane->to_ipv4, old->lanes[i].to_ipv4);
		cv_nat64_add(&lane->to_ipv6, old->lanes[i].to_ipv6);
		cv_nat64_add(&lane->fragments, old->lanes[i].fragments);
	}
}

static bool has_clients(const void *instance)
{
	return ((const struct cv_nat64 *)instance)->clients != NULL;
}

static json_t *info(const void *instance)
{
	const struct cv_nat64 *nat64 = instance;
	uint64_t to_ipv4 = 0, to_ipv6 = 0, fragments = 0;

	for (unsigned i = 0; i < CV_WORKERS_MAX; i++) {
		to_ipv4 += __atomic_load_n(&nat64->lanes[i].to_ipv4, __ATOMIC_RELAXED);
		to_ipv6 += __atomic_load_n(&nat64->lanes[i].to_ipv6, __ATOMIC_RELAXED);
		fragments += __atomic_load_n(&nat64->lanes[i].fragments, __ATOMIC_RELAXED);
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "packets_to_ipv4", (json_int_t)to_ipv4,
		"packets_to_ipv6", (json_int_t)to_ipv6, "fragments", (json_int_t)fragments,
		"mappings", (json_int_t)nat64->map.rows, "icmp_errors_sent",
		(json_int_t)cv_teller_sent(&nat64->teller), "clients",
		(json_int_t)(nat64->clients != NULL ? cv_nat64_clients_count(nat64->clients) : 0));
}

const struct cv_nf cv_nf_nat64 = {
	.name = "nat64",
	.summary =
		"Translates between IPv6 and IPv4, packet by packet (SIIT: RFC 7915, 6052, 7757).",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.inherit = inherit,
	.destroy = destroy,
	.process = process,
	.grows = cv_nf_always_grows,
	.keeps = "clients",
	.keeps_owners = true,
	.keeps_any = has_clients,
	.info = info,
};
