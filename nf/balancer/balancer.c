// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Spreads the flows to a service over its backends.
//
//   {"mode": "nat",
//    "services": [{"address": "203.0.113.10", "proto": "tcp", "port": 443}],
//    "backends": [{"address": "10.0.0.1", "weight": 2}, {"address": "10.0.0.2", "drain": true}]}
//
// A new flow's backend is that of Maglev's table (NSDI 2016) at the hash of the flow; the flow stays
// there, whatever becomes of the table. Balancers with the same backends, sizes and seed choose the
// same ones. In mode dsr the packet goes to the backend's MAC address and is else unchanged; answers
// go past the balancer. In mode nat the destination is rewritten, and answers are rewritten back;
// they must come through the same functions.
//
// A backend that drains gets no new flows. TCP of a connection that is not known, for the node was
// started anew, may still be its: it goes by the table that has it.
//
// What goes to no service passes unchanged.
//
// Drops: no_backend (all of the family have weight 0 or drain), bad_header.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_malloc.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "flow/hash.h"
#include "nf/balancer/maglev.h"
#include "nf/config.h"
#include "packet/ether.h"
#include "packet/prefix.h"
#include "packet/tuple.h"

#define SERVICES_MAX 256
#define TCP_SYN 2
#define TCP_ACK 16

enum drop { NO_BACKEND, BAD_HEADER };
static const char *const drops[] = {"no_backend", "bad_header", NULL};

enum mode { DSR, NAT };
static const char *const modes[] = {"dsr", "nat", NULL};

// Protocols, by the words of the parameter.
static const char *const protos[] = {"any", "tcp", "udp", "sctp", NULL};
static const uint8_t proto_numbers[] = {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

struct service {
	struct cv_address address;
	unsigned proto; // index of protos
	uint16_t port; // 0: any
};

struct backend {
	struct cv_address address;
	const char *dev; // read only
	int out; // the port to it, or -1: as the chain says
	uint32_t weight;
	uint16_t port; // nat: the new one; 0: as it was
	uint8_t mac[CV_MAC_LEN];
	bool drain;
	unsigned index; // in the configuration
};

struct services {
	unsigned count;
	struct service list[SERVICES_MAX];
};

struct backends {
	unsigned count;
	struct backend list[CV_MAGLEV_BACKENDS_MAX];
};

struct config {
	enum mode mode;
	uint32_t table_size, seed;
	struct services services;
	struct backends backends;
};

static int read_address(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text == NULL || cv_address_parse(text, member) != 0)
		return cv_where_wrong(at, key, value, "must be an IPv4 or IPv6 address");
	return 0;
}

static int read_service(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"address", CV_CUSTOM, CV_AT(struct service, address), .required = true,
			.read = read_address},
		{"proto", CV_WORD, CV_AT(struct service, proto), .words = protos},
		{"port", CV_INTEGER, CV_AT(struct service, port), .low = 1, .high = 65535},
		{0},
	};
	struct services *services = member;
	struct service *service = &services->list[services->count++];
	int rc = cv_params_read(at, value, params, service);

	if (rc == 0 && service->port != 0 && proto_numbers[service->proto] == 0)
		rc = cv_where_error(at, "port: needs proto; write tcp, udp or sctp");
	return rc;
}

static int read_backend(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"address", CV_CUSTOM, CV_AT(struct backend, address), .required = true,
			.read = read_address},
		{"mac", CV_MAC, CV_AT(struct backend, mac)},
		{"dev", CV_TEXT, CV_AT(struct backend, dev)},
		{"port", CV_INTEGER, CV_AT(struct backend, port), .low = 1, .high = 65535},
		{"weight", CV_INTEGER, CV_AT(struct backend, weight), .high = 1000, .fallback = 1},
		{"drain", CV_BOOL, CV_AT(struct backend, drain)},
		{0},
	};
	struct backends *backends = member;
	struct backend *backend = &backends->list[backends->count];

	backend->index = backends->count++;
	return cv_params_read(at, value, params, backend);
}

static const struct cv_param params[] = {
	{"mode", CV_WORD, CV_AT(struct config, mode), .words = modes,
		.doc = "to the backend's MAC address, or to its IP address"},
	{"table_size", CV_INTEGER, CV_AT(struct config, table_size), .low = 251, .high = 5000011,
		.fallback = 65537, .doc = "places of Maglev's table, a prime"},
	{"seed", CV_INTEGER, CV_AT(struct config, seed), .high = UINT32_MAX,
		.doc = "of the flows' hash: equal in all balancers of a service"},
	{"services", CV_EACH, CV_AT(struct config, services), .low = 1, .high = SERVICES_MAX,
		.required = true, .read = read_service, .doc = "addresses that clients use"},
	{"backends", CV_EACH, CV_AT(struct config, backends), .low = 1,
		.high = CV_MAGLEV_BACKENDS_MAX, .required = true, .read = read_backend,
		.doc = "who serves them"},
	{0},
};

// What one worker counts of a backend.
struct counted {
	uint64_t flows, created;
};

struct balancer {
	enum mode mode;
	uint32_t table_size;
	struct cv_flow_secret secret;
	// By family, and whether backends that drain are in it.
	uint16_t *table[2][2];
	unsigned workers;
	struct counted *counted[CV_WORKERS_MAX]; // by backend
	uint8_t macs[CV_PORTS_MAX][CV_MAC_LEN]; // of ports
	struct services services;
	struct backends backends; // by address
};

// What it keeps of a flow.
struct slot {
	uint16_t backend; // + 1; 0: to no service
};

// The service that a flow goes to: the most particular one; NULL: to none.
static const struct service *service_of(
	const struct balancer *balancer, const struct cv_flow_tuple *tuple)
{
	const bool v6 = tuple->family == 6, ports = cv_proto_has_ports(tuple->proto);
	const struct service *best = NULL;

	for (unsigned i = 0; i < balancer->services.count; i++) {
		const struct service *service = &balancer->services.list[i];
		const uint8_t proto = proto_numbers[service->proto];

		if (service->address.v6 != v6 ||
			memcmp(service->address.bytes, &tuple->dst, v6 ? 16 : 4) != 0 ||
			(proto != 0 && proto != tuple->proto) ||
			(service->port != 0 &&
				(!ports || service->port != rte_be_to_cpu_16(tuple->dport))))
			continue;
		if (best == NULL || (best->proto == 0 && proto != 0) ||
			(best->port == 0 && service->port != 0))
			best = service;
	}
	return best;
}

static uint16_t choose(const struct balancer *balancer, const struct cv_flow_tuple *tuple,
	const struct cv_flow_packet *packet)
{
	const bool begun =
		tuple->proto == IPPROTO_TCP && (packet->tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN;
	const bool v6 = tuple->family == 6;
	uint8_t key[40] = {0};
	const unsigned bytes = v6 ? 16 : 4;

	memcpy(key, &tuple->src, bytes);
	memcpy(key + bytes, &tuple->dst, bytes);
	memcpy(key + 32, &tuple->sport, 2);
	memcpy(key + 34, &tuple->dport, 2);
	key[36] = tuple->proto;
	return balancer->table[v6][begun][cv_flow_sip(&balancer->secret, key, sizeof(key)) %
					  balancer->table_size];
}

static void apply(const struct balancer *balancer, const struct backend *backend,
	struct cv_flow_actions *actions)
{
	static const uint8_t none[CV_MAC_LEN];
	struct cv_flow_way *way = &actions->way[CV_FLOW_FORWARD];

	if (memcmp(backend->mac, none, CV_MAC_LEN) != 0) {
		way->set |= CV_FLOW_SET_DST_MAC;
		memcpy(way->dst_mac, backend->mac, CV_MAC_LEN);
	}
	if (backend->out >= 0) {
		way->set |= CV_FLOW_SET_OUT | CV_FLOW_SET_SRC_MAC;
		way->out = (uint8_t)backend->out;
		memcpy(way->src_mac, balancer->macs[backend->out], CV_MAC_LEN);
	}
	if (balancer->mode != NAT)
		return;
	memcpy(&actions->tuple.dst, backend->address.bytes, backend->address.v6 ? 16 : 4);
	if (backend->port != 0 && cv_proto_has_ports(actions->tuple.proto))
		actions->tuple.dport = rte_cpu_to_be_16(backend->port);
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct balancer *balancer = instance;
	struct counted *counted = balancer->counted[worker->index];
	struct slot *kept = slot;
	uint16_t backend;

	if (service_of(balancer, &actions->tuple) == NULL)
		return CV_NEXT;
	if (kept->backend == 0) {
		backend = choose(balancer, &actions->tuple, packet);
		if (backend == CV_MAGLEV_NONE) {
			actions->once = true;
			return CV_DROP(NO_BACKEND);
		}
		kept->backend = backend + 1;
		// With the loads in info().
		__atomic_store_n(
			&counted[backend].flows, counted[backend].flows + 1, __ATOMIC_RELAXED);
		__atomic_store_n(
			&counted[backend].created, counted[backend].created + 1, __ATOMIC_RELAXED);
	}
	apply(balancer, &balancer->backends.list[kept->backend - 1], actions);
	return CV_NEXT;
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	struct balancer *balancer = instance;
	const unsigned backend = ((const struct slot *)slot)->backend;
	struct counted *counted = balancer->counted[worker->index];

	if (backend != 0)
		__atomic_store_n(&counted[backend - 1].flows, counted[backend - 1].flows - 1,
			__ATOMIC_RELAXED);
}

static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	return why == CV_FLOW_BAD_HEADER ? CV_DROP(BAD_HEADER) : CV_NEXT;
}

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct slot),
	.decide = decide,
	.ended = ended,
	.other = other,
};

// What is wrong with an address twice; backends are sorted.
static int check_backends(struct balancer *balancer, const char *name, struct cv_error *error)
{
	static const uint8_t none[CV_MAC_LEN];
	char text[CV_PREFIX_TEXT];
	uint32_t weights = 0;

	for (unsigned i = 0; i < balancer->backends.count; i++) {
		const struct backend *one = &balancer->backends.list[i];
		const struct backend *next = one + 1;

		weights += one->drain ? 0 : one->weight;
		if (balancer->mode == DSR && memcmp(one->mac, none, CV_MAC_LEN) == 0) {
			cv_error_set(error, "%s: backends[%u]: mac is missing; mode dsr needs it",
				name, one->index);
			return -EINVAL;
		}
		if (balancer->mode == DSR && one->port != 0) {
			cv_error_set(error,
				"%s: backends[%u]: port: %u: is for mode nat; remove it", name,
				one->index, one->port);
			return -EINVAL;
		}
		if (i + 1 == balancer->backends.count ||
			cv_address_compare(&one->address, &next->address) != 0)
			continue;
		cv_error_set(error, "%s: backends[%u]: %s is backends[%u] as well; remove one",
			name, RTE_MAX(one->index, next->index),
			cv_address_text(&one->address, text), RTE_MIN(one->index, next->index));
		return -EINVAL;
	}
	if (weights != 0)
		return 0;
	cv_error_set(error,
		"%s: backends: each has weight 0 or drain; give one that does not drain a weight",
		name);
	return -EINVAL;
}

static int check_service(
	const struct balancer *balancer, unsigned index, const char *name, struct cv_error *error)
{
	const struct service *service = &balancer->services.list[index];
	bool family = balancer->mode == DSR;
	char text[CV_PREFIX_TEXT];

	cv_address_text(&service->address, text);
	for (unsigned i = 0; i < index; i++) {
		const struct service *before = &balancer->services.list[i];

		if (cv_address_compare(&service->address, &before->address) == 0 &&
			service->proto == before->proto && service->port == before->port) {
			cv_error_set(error,
				"%s: services[%u]: %s is services[%u] as well; remove one", name,
				index, text, i);
			return -EINVAL;
		}
	}
	for (unsigned i = 0; i < balancer->backends.count; i++) {
		const struct backend *backend = &balancer->backends.list[i];

		family |= backend->address.v6 == service->address.v6;
		if (cv_address_compare(&service->address, &backend->address) == 0) {
			cv_error_set(error,
				"%s: services[%u]: %s is backends[%u] as well; a service has an "
				"address of its own",
				name, index, text, backend->index);
			return -EINVAL;
		}
		if (backend->port != 0 && service->port == 0) {
			cv_error_set(error,
				"%s: services[%u]: has no port, and backends[%u] has; give both "
				"one, or none",
				name, index, backend->index);
			return -EINVAL;
		}
	}
	if (family)
		return 0;
	cv_error_set(error, "%s: services[%u]: no backend is IPv%d as %s is; mode nat needs one",
		name, index, service->address.v6 ? 6 : 4, text);
	return -EINVAL;
}

static int make_table(struct balancer *balancer, bool v6, bool draining, int socket)
{
	struct cv_maglev_backend *list = calloc(balancer->backends.count, sizeof(*list));
	uint16_t *table = rte_malloc_socket(
		"balancer", balancer->table_size * sizeof(*table), RTE_CACHE_LINE_SIZE, socket);
	int rc = -ENOMEM;

	balancer->table[v6][draining] = table;
	for (unsigned i = 0; list != NULL && i < balancer->backends.count; i++) {
		const struct backend *backend = &balancer->backends.list[i];
		const bool counts = (balancer->mode == DSR || backend->address.v6 == v6) &&
				    (draining || !backend->drain);

		list[i] = (struct cv_maglev_backend){
			&backend->address, sizeof(backend->address), counts ? backend->weight : 0};
	}
	if (list != NULL && table != NULL)
		rc = cv_maglev_fill(table, balancer->table_size, list, balancer->backends.count);
	free(list);
	return rc;
}

static int compare_backends(const void *a, const void *b)
{
	return cv_address_compare(
		&((const struct backend *)a)->address, &((const struct backend *)b)->address);
}

static int configure(struct balancer *balancer, const struct cv_nf_env *env, struct cv_error *error)
{
	int rc;

	if (!cv_maglev_is_size(balancer->table_size)) {
		cv_error_set(error, "%s: table_size: %u: is no prime; use 65537 or 655373",
			env->name, balancer->table_size);
		return -EINVAL;
	}
	for (unsigned i = 0; i < balancer->backends.count; i++) {
		struct backend *backend = &balancer->backends.list[i];
		char where[128];

		backend->out = -1;
		if (backend->dev == NULL)
			continue;
		snprintf(where, sizeof(where), "%s: backends[%u]: dev", env->name, i);
		backend->out = cv_nf_env_port(env, backend->dev);
		if (backend->out < 0)
			return cv_config_no_port(where, backend->dev, env, error);
		backend->dev = NULL; // it is the configuration's
	}
	qsort(balancer->backends.list, balancer->backends.count, sizeof(struct backend),
		compare_backends);
	rc = check_backends(balancer, env->name, error);
	for (unsigned i = 0; rc == 0 && i < balancer->services.count; i++)
		rc = check_service(balancer, i, env->name, error);
	return rc;
}

static int allocate(struct balancer *balancer, const struct cv_nf_env *env, struct cv_error *error)
{
	int rc = 0;

	for (unsigned which = 0; rc == 0 && which < 4; which++)
		rc = make_table(balancer, which & 1, which >> 1, env->socket);
	for (; rc == 0 && balancer->workers < env->workers; balancer->workers++) {
		struct counted *counted =
			rte_zmalloc_socket("balancer", balancer->backends.count * sizeof(*counted),
				RTE_CACHE_LINE_SIZE, env->socket);

		if (counted == NULL)
			rc = -ENOMEM;
		balancer->counted[balancer->workers] = counted;
	}
	if (rc != 0)
		cv_error_set(error,
			"%s: no memory for tables of %u places; raise memory.mb (a plan's "
			"eal.memory_mb)",
			env->name, balancer->table_size);
	return rc;
}

static void destroy(void *instance)
{
	struct balancer *balancer = instance;

	for (unsigned i = 0; i < balancer->workers; i++)
		rte_free(balancer->counted[i]);
	for (unsigned which = 0; which < 4; which++)
		rte_free(balancer->table[which & 1][which >> 1]);
	free(balancer);
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct config *config = of;
	struct balancer *balancer = aligned_alloc(
		_Alignof(struct balancer), RTE_ALIGN(sizeof(*balancer), _Alignof(struct balancer)));

	if (balancer == NULL)
		return NULL;
	memset(balancer, 0, sizeof(*balancer));
	balancer->mode = config->mode;
	balancer->table_size = config->table_size;
	balancer->services = config->services;
	balancer->backends = config->backends;
	memcpy(balancer->secret.keys, &config->seed, sizeof(config->seed));
	if (configure(balancer, env, error) == 0 && allocate(balancer, env, error) == 0)
		return balancer;
	destroy(balancer);
	return NULL;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct balancer *balancer = instance;

	memcpy(balancer->macs, env->macs, env->ports_count * sizeof(*env->macs));
}

static json_t *info(const void *instance)
{
	const struct balancer *balancer = instance;
	json_t *list = json_array();

	for (unsigned i = 0; i < balancer->backends.count; i++) {
		const struct backend *backend = &balancer->backends.list[i];
		uint64_t flows = 0, created = 0, places = 0;
		char text[CV_PREFIX_TEXT];

		for (unsigned w = 0; w < balancer->workers; w++) {
			const struct counted *counted = &balancer->counted[w][i];

			flows += __atomic_load_n(&counted->flows, __ATOMIC_RELAXED);
			created += __atomic_load_n(&counted->created, __ATOMIC_RELAXED);
		}
		for (uint32_t p = 0; p < balancer->table_size; p++)
			places += balancer->table[backend->address.v6][0][p] == i;
		json_array_append_new(list,
			json_pack("{s:s, s:I, s:I, s:f, s:b}", "address",
				cv_address_text(&backend->address, text), "flows",
				(json_int_t)flows, "created", (json_int_t)created, "share",
				(double)places / balancer->table_size, "drain", backend->drain));
	}
	return json_pack("{s:o}", "backends", list);
}

const struct cv_nf cv_nf_balancer = {
	.name = "balancer",
	.summary = "Spreads the flows to a service over its backends (Maglev, NSDI 2016).",
	.drops = drops,
	.params = params,
	.config_size = sizeof(struct config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.flow = &flow,
	.info = info,
};
