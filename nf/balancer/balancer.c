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
// same ones. In mode dsr the packet goes to the backend's MAC address and is else unchanged; in modes
// ipip and gue it goes to its IP address in a tunnel (tunnel.h). Answers go past the balancer. In mode
// nat the destination is rewritten, and answers are rewritten back; they must come through the same
// functions.
//
// A backend that drains gets no new flows. TCP of a connection that is not known, for the node was
// started anew, may still be its: it goes by the table that has it.
//
// Reconfigured, flows stay with their backends, also with those whose weight is 0 now or which drain.
// A flow whose backend is gone gets another one.
//
// Backends whose health is asked for and that do not answer get no new flows either; those that they
// have stay.
//
// What goes to no service passes unchanged.
//
// Drops: no_backend (all of the family have weight 0, drain or are down), too_big (for the tunnel, and not to be
// fragmented: an ICMP error tells), no_buffer (none for the tunnel), bad_header.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "flow/hash.h"
#include "nf/balancer/config.h"
#include "nf/balancer/known.h"
#include "nf/balancer/too_big.h"
#include "nf/token_bucket.h"
#include "packet/tuple.h"

#define TCP_SYN 2
#define TCP_ACK 16

enum drop { NO_BACKEND, BAD_HEADER, TOO_BIG, NO_BUFFER };
static const char *const drops[] = {"no_backend", "bad_header", "too_big", "no_buffer", NULL};

#define ERRORS_PER_S 100 // ICMP errors of a worker
#define DOWN_SHOWN 8 // backends
#define KEYS_TRIED 8 // for a backend that is up
#define PLACES_TRIED 4096 // of the table, then

// What one worker has. No other writes to it.
struct lane {
	struct cv_token_bucket errors;
	uint16_t identification; // of the last tunnel's packet that may be fragmented
} __rte_cache_aligned;

struct balancer {
	struct cv_balancer_config config; // backends by address
	struct cv_flow_secret secret;
	// By family, and whether backends that drain are in it.
	uint16_t *table[2][2];
	struct cv_known *known; // shared with the instance that takes this one's place
	uint64_t runners; // workers, a bit each
	uint16_t number[CV_MAGLEV_BACKENDS_MAX]; // by backend
	uint16_t at[CV_KNOWN_MAX]; // by number: the backend's index + 1; 0: it is gone
	uint16_t mtu; // of tunnels
	struct lane lanes[CV_WORKERS_MAX];
	struct cv_health *health; // NULL: nobody is asked
	struct cv_address *serving; // of services and backends, ascending
	unsigned serving_count;
	uint8_t macs[CV_PORTS_MAX][CV_MAC_LEN]; // of ports
};

// What it keeps of a flow.
struct slot {
	uint16_t backend; // its number + 1; 0: to no service
};

// The service that a flow goes to: the most particular one; NULL: to none.
static const struct cv_service *service_of(
	const struct balancer *balancer, const struct cv_flow_tuple *tuple)
{
	const bool v6 = tuple->family == 6, ports = cv_proto_has_ports(tuple->proto);
	const struct cv_service *best = NULL;

	for (unsigned i = 0; i < balancer->config.services.count; i++) {
		const struct cv_service *service = &balancer->config.services.list[i];

		if (service->address.v6 != v6 ||
			memcmp(service->address.bytes, &tuple->dst, v6 ? 16 : 4) != 0 ||
			(service->proto != 0 && service->proto != tuple->proto) ||
			(service->port != 0 &&
				(!ports || service->port != rte_be_to_cpu_16(tuple->dport))))
			continue;
		if (best == NULL || (best->proto == 0 && service->proto != 0) ||
			(best->port == 0 && service->port != 0))
			best = service;
	}
	return best;
}

static bool is_up(const struct balancer *balancer, unsigned backend)
{
	return balancer->health == NULL || cv_health_is_up(balancer->health, backend);
}

// One that is up, of those that a table has: any, from one of them on. CV_MAGLEV_NONE: none is.
static uint16_t any_up(const struct balancer *balancer, const uint16_t *table, uint64_t from)
{
	const uint32_t size = balancer->config.table_size;

	for (uint32_t i = 0; i < size && i < PLACES_TRIED; i++) {
		const uint16_t backend = table[(from + i) % size];

		if (backend == CV_MAGLEV_NONE || is_up(balancer, backend))
			return backend;
	}
	return CV_MAGLEV_NONE;
}

// What a flow's backend is chosen by.
struct choice {
	const uint16_t *table;
	uint8_t key[40];
	uint64_t hash;
};

static void set_choice(const struct balancer *balancer, const struct cv_flow_tuple *tuple,
	const struct cv_flow_packet *packet, struct choice *choice)
{
	const bool begun =
		tuple->proto == IPPROTO_TCP && (packet->tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN;
	const bool v6 = tuple->family == 6;
	const unsigned bytes = v6 ? 16 : 4;
	uint8_t *key = choice->key;

	choice->table = balancer->table[v6][begun];
	memset(key, 0, sizeof(choice->key));
	memcpy(key, &tuple->src, bytes);
	memcpy(key + bytes, &tuple->dst, bytes);
	memcpy(key + 32, &tuple->sport, 2);
	memcpy(key + 34, &tuple->dport, 2);
	key[36] = tuple->proto;
	choice->hash = cv_flow_sip(&balancer->secret, key, sizeof(choice->key));
}

// The table's backend at the flow's hash. If that is down, the one at the hash of another key, and so
// on: the flows of one that is down spread over the others by their weights, which keep theirs.
static uint16_t choose(const struct balancer *balancer, struct choice *choice)
{
	for (;;) {
		const uint16_t backend = choice->table[choice->hash % balancer->config.table_size];

		if (backend == CV_MAGLEV_NONE || is_up(balancer, backend))
			return backend;
		if (++choice->key[37] == KEYS_TRIED)
			return any_up(balancer, choice->table, choice->hash);
		choice->hash = cv_flow_sip(&balancer->secret, choice->key, sizeof(choice->key));
	}
}

static void rewrite(const struct balancer *balancer, const struct cv_backend *backend,
	struct cv_flow_tuple *tuple)
{
	if (balancer->config.mode != CV_BALANCER_NAT)
		return;
	memcpy(&tuple->dst, backend->address.bytes, backend->address.v6 ? 16 : 4);
	if (backend->port != 0 && cv_proto_has_ports(tuple->proto))
		tuple->dport = rte_cpu_to_be_16(backend->port);
}

static void apply(const struct balancer *balancer, const struct cv_backend *backend,
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
	if (cv_balancer_tunnels(&balancer->config)) {
		way->set |= CV_FLOW_SET_WRAP;
		way->wrap = (uint16_t)(backend - balancer->config.backends.list);
	}
	rewrite(balancer, backend, &actions->tuple);
}

// A flow goes to its backend no more.
static void forget(struct cv_known_count *counted, struct slot *kept)
{
	if (kept->backend != 0)
		cv_known_remove(&counted[kept->backend - 1]);
	kept->backend = 0;
}

// A flow to no service.
static uint8_t decide_other(const struct balancer *balancer, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions)
{
	if (balancer->health == NULL || packet->why != CV_FLOW_NEW ||
		!cv_health_takes(balancer->health, worker, &actions->tuple, packet))
		return CV_NEXT;
	actions->once = true;
	return CV_ABSORBED;
}

// A flow to a service goes to its backend, or to the one that is chosen.
static uint8_t assign(const struct balancer *balancer, struct cv_known_count *counted,
	struct choice *choice, struct cv_flow_actions *actions, struct slot *kept)
{
	if (kept->backend == 0) {
		const uint16_t backend = choose(balancer, choice);

		if (backend == CV_MAGLEV_NONE) {
			actions->once = true;
			return CV_DROP(NO_BACKEND);
		}
		kept->backend = balancer->number[backend] + 1;
		cv_known_add(&counted[kept->backend - 1]);
	}
	apply(balancer, &balancer->config.backends.list[balancer->at[kept->backend - 1] - 1],
		actions);
	return CV_NEXT;
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot)
{
	struct balancer *balancer = instance;
	struct cv_known_count *counted = balancer->known->counted[worker->index];
	struct slot *kept = slot;
	struct choice choice;

	if (service_of(balancer, &actions->tuple) == NULL) {
		forget(counted, kept); // there was one
		return decide_other(balancer, worker, packet, actions);
	}
	if (kept->backend != 0 && balancer->at[kept->backend - 1] == 0)
		forget(counted, kept);
	if (kept->backend == 0)
		set_choice(balancer, &actions->tuple, packet, &choice);
	return assign(balancer, counted, &choice, actions, kept);
}

// The table's places are asked for before any is read.
static void decide_all(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_opening *openings, uint8_t *verdicts, unsigned n)
{
	struct balancer *balancer = instance;
	struct cv_known_count *counted = balancer->known->counted[worker->index];
	struct choice choices[CV_BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_tuple *tuple = &openings[i].actions->tuple;

		choices[i].table = NULL;
		if (service_of(balancer, tuple) == NULL)
			continue;
		set_choice(balancer, tuple, openings[i].packet, &choices[i]);
		rte_prefetch0(&choices[i].table[choices[i].hash % balancer->config.table_size]);
	}
	for (unsigned i = 0; i < n; i++) {
		struct cv_flow_actions *actions = openings[i].actions;

		verdicts[i] =
			choices[i].table == NULL
				? decide_other(balancer, worker, openings[i].packet, actions)
				: assign(balancer, counted, &choices[i], actions, openings[i].slot);
	}
}

// Puts a packet into the tunnel to its backend.
static uint8_t wrap(
	void *instance, struct cv_nf_worker *worker, struct cv_view *view, uint16_t index)
{
	struct balancer *balancer = instance;
	const struct cv_tunnel *tunnel = &balancer->config.tunnel;
	const struct cv_address *to = &balancer->config.backends.list[index].address;
	struct lane *lane = &balancer->lanes[worker->index];
	const unsigned most = balancer->mtu - cv_tunnel_bytes(tunnel, to);

	if (CV_UNLIKELY(!cv_fits(view, most))) {
		if (cv_token_bucket_take(&lane->errors, worker->now))
			cv_tell_too_big(worker, view, most);
		return CV_DROP(TOO_BIG);
	}
	return cv_tunnel_wrap(tunnel, to, worker, view, ++lane->identification)
		       ? CV_NEXT
		       : CV_DROP(NO_BUFFER);
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *slot)
{
	struct balancer *balancer = instance;
	const unsigned backend = ((const struct slot *)slot)->backend;

	if (backend != 0)
		cv_known_remove(&balancer->known->counted[worker->index][backend - 1]);
}

static enum cv_flow_answers answers(const void *instance)
{
	const struct balancer *balancer = instance;

	return balancer->config.mode == CV_BALANCER_NAT ? CV_FLOW_ANSWERS_REWRITTEN
							: CV_FLOW_ANSWERS_APART;
}

static int compare_addresses(const void *a, const void *b)
{
	return cv_address_compare(a, b);
}

// Is it a service's address, or a backend's?
static bool serves(
	const struct balancer *balancer, uint8_t family, const union cv_flow_address *address)
{
	struct cv_address key = {.v6 = family == 6};

	memcpy(key.bytes, address, family == 6 ? 16 : 4);
	return bsearch(&key, balancer->serving, balancer->serving_count, sizeof(key),
		       compare_addresses) != NULL;
}

// By the client's address: services and backends stand for each other. Where both or none of the
// ends serves nothing is rewritten, for the service's address is not a client's.
static uint8_t home(const void *instance, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple, uint8_t in)
{
	const struct balancer *balancer = instance;
	const bool src = serves(balancer, tuple->family, &tuple->src);
	const bool dst = serves(balancer, tuple->family, &tuple->dst);

	if (src == dst)
		return CV_FLOW_HOME_BY_TUPLE;
	return src ? CV_FLOW_HOME_BY_DESTINATION : CV_FLOW_HOME_BY_SOURCE;
}

// The addresses that serve, ascending.
static int make_serving(struct balancer *balancer)
{
	const struct cv_balancer_config *config = &balancer->config;
	struct cv_address *to;

	balancer->serving = to =
		calloc(config->services.count + config->backends.count, sizeof(*to));
	if (to == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < config->services.count; i++)
		*to++ = config->services.list[i].address;
	for (unsigned i = 0; i < config->backends.count; i++)
		*to++ = config->backends.list[i].address;
	balancer->serving_count = (unsigned)(to - balancer->serving);
	qsort(balancer->serving, balancer->serving_count, sizeof(*to), compare_addresses);
	return 0;
}

static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	const struct balancer *balancer = instance;

	if (why == CV_FLOW_NON_IP && balancer->health != NULL &&
		cv_health_takes_other(balancer->health, worker, view))
		return CV_ABSORBED;
	return why == CV_FLOW_BAD_HEADER ? CV_DROP(BAD_HEADER) : CV_NEXT;
}

static void tick(void *instance, struct cv_nf_worker *worker)
{
	const struct balancer *balancer = instance;

	if (balancer->health != NULL)
		cv_health_tick(balancer->health, worker);
}

static int make_table(struct balancer *balancer, bool v6, bool draining, int socket)
{
	struct cv_maglev_backend *list = calloc(balancer->config.backends.count, sizeof(*list));
	uint16_t *table = rte_malloc_socket("balancer",
		balancer->config.table_size * sizeof(*table), RTE_CACHE_LINE_SIZE, socket);
	int rc = -ENOMEM;

	balancer->table[v6][draining] = table;
	for (unsigned i = 0; list != NULL && i < balancer->config.backends.count; i++) {
		const struct cv_backend *backend = &balancer->config.backends.list[i];
		const bool counts =
			(balancer->config.mode != CV_BALANCER_NAT || backend->address.v6 == v6) &&
			(draining || !backend->drain);

		list[i] = (struct cv_maglev_backend){
			&backend->address, sizeof(backend->address), counts ? backend->weight : 0};
	}
	if (list != NULL && table != NULL)
		rc = cv_maglev_fill(
			table, balancer->config.table_size, list, balancer->config.backends.count);
	free(list);
	return rc;
}

// 0, or -ENOMEM.
static int make_health(struct balancer *balancer)
{
	static const uint8_t none[CV_MAC_LEN];
	const unsigned count = balancer->config.backends.count;
	struct cv_health_backend *list = calloc(count, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		const struct cv_backend *backend = &balancer->config.backends.list[i];

		list[i] = (struct cv_health_backend){
			.address = &backend->address,
			.mac = memcmp(backend->mac, none, CV_MAC_LEN) != 0 ? backend->mac : NULL,
			.dev = backend->out,
			.tcp_port = backend->port,
		};
	}
	balancer->health = cv_health_create(
		&balancer->config.health, list, count, balancer->config.tunnel.source);
	free(list);
	return balancer->health == NULL ? -ENOMEM : 0;
}

static int allocate(struct balancer *balancer, const struct cv_nf_env *env, struct cv_error *error)
{
	int rc = make_serving(balancer);

	for (unsigned which = 0; rc == 0 && which < 4; which++)
		rc = make_table(balancer, which & 1, which >> 1, env->socket);
	for (unsigned i = 0; i < env->workers; i++)
		balancer->lanes[i].errors = cv_token_bucket(ERRORS_PER_S, rte_get_tsc_hz());
	if (rc == 0 && balancer->config.health.given)
		rc = make_health(balancer);
	if (rc != 0)
		cv_error_set(error,
			"%s: no memory for tables of %u places; raise memory.mb (a plan's "
			"eal.memory_mb)",
			env->name, balancer->config.table_size);
	return rc;
}

// Numbers the backends, as those that run are.
static int number(struct balancer *balancer, const struct balancer *running, struct cv_error *error)
{
	const struct cv_backends *backends = &balancer->config.backends;

	if (cv_known_number(balancer->known, backends, running != NULL ? running->number : NULL,
		    running != NULL ? running->config.backends.count : 0, balancer->number) != 0) {
		cv_error_set(error,
			"backends: flows still go to too many that are gone; add fewer, or wait "
			"until they have ended");
		return -ENOSPC;
	}
	memset(balancer->at, 0, sizeof(balancer->at));
	for (unsigned i = 0; i < backends->count; i++)
		balancer->at[balancer->number[i]] = (uint16_t)(i + 1);
	return 0;
}

// What flows know, and the numbers that they know it by.
static int know(struct balancer *balancer, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct balancer *running = env->running;
	struct cv_error why = {""};
	int rc;

	if (running != NULL) {
		balancer->known = running->known;
		balancer->known->owners++;
	} else {
		balancer->known = cv_known_create(env->workers, env->socket);
	}
	if (balancer->known == NULL)
		return -ENOMEM;
	rc = number(balancer, running, &why);
	if (rc != 0)
		cv_error_set(error, "%s: %s", env->name, why.text);
	return rc;
}

// The numbers that flows know backends by, and how many go to each, go along to another process. That one may
// have other backends: they are numbered as after a change.
static uint64_t layout(const void *instance)
{
	return CV_KNOWN_LAYOUT;
}

static int give(void *instance)
{
	struct cv_known *known = ((struct balancer *)instance)->known;

	if (known->file < 0)
		known->file = memfd_create("convoy-balancer", MFD_CLOEXEC);
	return known->file;
}

static void freeze(void *instance)
{
	const struct balancer *balancer = instance;

	cv_known_write(balancer->known, balancer->known->file); // refused there if it is not whole
}

static int take(void *instance, int fd, struct cv_error *error)
{
	struct cv_known *known = ((struct balancer *)instance)->known;

	if (known->file >= 0)
		close(known->file);
	known->file = fd;
	return 0;
}

static bool leads_inside(const void *instance, const void *slot)
{
	return ((const struct slot *)slot)->backend <= CV_KNOWN_MAX;
}

static int taken(void *instance, struct cv_error *error)
{
	struct balancer *balancer = instance;

	if (cv_known_read(balancer->known, balancer->known->file,
		    (unsigned)__builtin_ctzll(balancer->runners)) != 0) {
		cv_error_set(error, "what it knows of backends did not come whole");
		return -EPROTO;
	}
	return number(balancer, NULL, error);
}

static int store(void *instance)
{
	struct cv_known *known = ((struct balancer *)instance)->known;
	const int fd = give(instance);

	known->stored = fd >= 0 && cv_known_write(known, fd);
	return known->stored ? fd : -1;
}

// Backends get the numbers that they had. What is written of them at the same moment may be lost: flows to
// those are.
static int restore_begin(void *instance, int fd, struct cv_error *error)
{
	struct balancer *balancer = instance;

	if (cv_known_read_numbers(balancer->known, fd) != 0) {
		cv_error_set(error, "what it knows of backends is not whole");
		return -EPROTO;
	}
	return number(balancer, NULL, error);
}

// A flow whose backend is gone is lost: it would go to another one.
static bool restore(
	void *instance, struct cv_nf_worker *worker, struct cv_flow_tuple *tuple, void *slot)
{
	struct balancer *balancer = instance;
	const unsigned known_as = ((const struct slot *)slot)->backend;
	const struct cv_backend *backend;

	if (known_as == 0)
		return true;
	if (known_as > CV_KNOWN_MAX || balancer->at[known_as - 1] == 0)
		return false;
	backend = &balancer->config.backends.list[balancer->at[known_as - 1] - 1];
	if (balancer->config.mode == CV_BALANCER_NAT && backend->address.v6 != (tuple->family == 6))
		return false;
	rewrite(balancer, backend, tuple);
	cv_known_again(&balancer->known->counted[worker->index][known_as - 1]);
	return true;
}

static void restore_end(void *instance, struct cv_nf_worker *worker)
{
}

static const struct cv_flow_kept kept_along = {
	.layout = layout,
	.give = give,
	.freeze = freeze,
	.take = take,
	.leads_inside = leads_inside,
	.taken = taken,
	.store = store,
	.restore_begin = restore_begin,
	.restore = restore,
	.restore_end = restore_end,
	.later = CV_FLOW_LATER,
};

static const struct cv_nf_flow flow = {
	.slot_bytes = sizeof(struct slot),
	.kept = &kept_along,
	.decide = decide,
	.decide_all = decide_all,
	.wrap = wrap,
	.ended = ended,
	.other = other,
	.answers = answers,
	.home = home,
};

static void destroy(void *instance)
{
	struct balancer *balancer = instance;

	cv_known_release(balancer->known);
	for (unsigned which = 0; which < 4; which++)
		rte_free(balancer->table[which & 1][which >> 1]);
	cv_health_destroy(balancer->health);
	free(balancer->serving);
	free(balancer);
}

static void *create(const void *of, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_balancer_config *config = of;
	struct balancer *balancer = aligned_alloc(
		_Alignof(struct balancer), RTE_ALIGN(sizeof(*balancer), _Alignof(struct balancer)));

	if (balancer == NULL)
		return NULL;
	memset(balancer, 0, sizeof(*balancer));
	balancer->config = *config;
	balancer->runners = cv_nf_env_runners(env);
	memcpy(balancer->secret.keys, &config->seed, sizeof(config->seed));
	if (cv_balancer_config_check(&balancer->config, env, error) == 0 &&
		allocate(balancer, env, error) == 0 && know(balancer, env, error) == 0)
		return balancer;
	destroy(balancer);
	return NULL;
}

static void start(void *instance, const struct cv_nf_env *env)
{
	struct balancer *balancer = instance;
	const struct balancer *before = env->running;

	memcpy(balancer->macs, env->macs, env->ports_count * sizeof(*env->macs));
	if (balancer->health != NULL)
		cv_health_start(balancer->health, (const uint8_t(*)[CV_MAC_LEN])balancer->macs,
			before == NULL ? NULL : before->health);
	balancer->mtu = balancer->config.mtu;
	for (unsigned i = 0; balancer->config.mtu == 0 && i < env->ports_count; i++)
		if (balancer->mtu == 0 || env->mtus[i] < balancer->mtu)
			balancer->mtu = env->mtus[i];
}

static void add_health(const struct cv_health *health, unsigned backend, json_t *object)
{
	uint64_t probes, answers;

	cv_health_counts(health, backend, &probes, &answers);
	json_object_set_new(object, "up", json_boolean(cv_health_is_up(health, backend)));
	json_object_set_new(object, "probes", json_integer((json_int_t)probes));
	json_object_set_new(object, "answers", json_integer((json_int_t)answers));
}

// What telemetry can show, which has no lists: how many are up, and the first that are down.
static void add_summary(const struct balancer *balancer, json_t *object)
{
	char down[DOWN_SHOWN * CV_PREFIX_TEXT] = "", text[CV_PREFIX_TEXT];
	unsigned up = 0, shown = 0;
	size_t at = 0;

	for (unsigned i = 0; i < balancer->config.backends.count; i++) {
		if (cv_health_is_up(balancer->health, i))
			up++;
		else if (shown++ < DOWN_SHOWN)
			at += (size_t)snprintf(down + at, sizeof(down) - at, "%s%s",
				at == 0 ? "" : " ",
				cv_address_text(&balancer->config.backends.list[i].address, text));
	}
	json_object_set_new(object, "up", json_integer((json_int_t)up));
	json_object_set_new(object, "down", json_string(down));
}

static json_t *info(const void *instance)
{
	const struct balancer *balancer = instance;
	json_t *list = json_array(), *all;

	for (unsigned i = 0; i < balancer->config.backends.count; i++) {
		const struct cv_backend *backend = &balancer->config.backends.list[i];
		const unsigned number = balancer->number[i];
		uint64_t places = 0;
		char text[CV_PREFIX_TEXT];
		json_t *object;

		for (uint32_t p = 0; p < balancer->config.table_size; p++)
			places += balancer->table[backend->address.v6][0][p] == i;
		object = json_pack("{s:s, s:I, s:I, s:f, s:b}", "address",
			cv_address_text(&backend->address, text), "flows",
			(json_int_t)cv_known_flows(balancer->known, number), "created",
			(json_int_t)cv_known_created(balancer->known, number), "share",
			(double)places / balancer->config.table_size, "drain", backend->drain);
		if (balancer->health != NULL)
			add_health(balancer->health, i, object);
		json_array_append_new(list, object);
	}
	all = json_pack("{s:o}", "backends", list);
	if (balancer->health != NULL)
		add_summary(balancer, all);
	return all;
}

static bool grows(const void *instance, unsigned in)
{
	(void)in;
	return cv_balancer_tunnels(&((const struct balancer *)instance)->config);
}

const struct cv_nf cv_nf_balancer = {
	.name = "balancer",
	.summary = "Spreads the flows to a service over its backends (Maglev, NSDI 2016).",
	.drops = drops,
	.params = cv_balancer_params,
	.config_size = sizeof(struct cv_balancer_config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.flow = &flow,
	.grows = grows,
	.tick = tick,
	.info = info,
};
