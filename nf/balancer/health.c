// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/health.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>

#include "packet/arp.h"
#include "packet/ipv6.h"

#define PROBES_A_TICK 8
#define NOBODY UINT32_MAX

struct state {
	// Written by whoever asks.
	struct cv_probe probe;
	uint32_t run; // answers or silences in a row that speak against the state
	bool probed;
	bool up; // read by all
	uint64_t probes, answers;
	uint32_t nonce; // of the last probe; read by all
	uint32_t answer; // enum cv_answer, written by whoever hears it
};

struct cv_health {
	struct cv_health_config config;
	struct cv_address source[2];
	const uint8_t (*macs)[CV_MAC_LEN];
	uint32_t owner; // the worker that asks
	unsigned count, next;
	uint64_t step; // TSC ticks between two probes, to any backends
	uint64_t due;
	uint64_t chance;
	bool resolves[2]; // by family: nobody behind answers for where probes come from
	struct state state[];
};

struct cv_health *cv_health_create(const struct cv_health_config *config,
	const struct cv_health_backend *backends, unsigned count,
	const struct cv_address sources[2])
{
	struct cv_health *health = calloc(1, sizeof(*health) + count * sizeof(struct state));

	if (health == NULL || getrandom(&health->chance, sizeof(health->chance), 0) !=
				      (ssize_t)sizeof(health->chance)) {
		free(health);
		return NULL;
	}
	health->config = *config;
	memcpy(health->source, sources, sizeof(health->source));
	health->owner = NOBODY;
	health->count = count;
	health->step = rte_get_tsc_hz() / 1000 * config->interval_ms / count;
	for (unsigned i = 0; i < count; i++) {
		const struct cv_health_backend *of = &backends[i];

		health->resolves[of->address->v6] |= of->mac != NULL;
		health->state[i].up = true;
		health->state[i].probe = (struct cv_probe){.kind = config->by,
			.source = &health->source[of->address->v6],
			.to = of->address,
			.mac = of->mac,
			.port = (uint8_t)(of->dev < 0 ? 0 : of->dev),
			.number = (uint16_t)i,
			.tcp_port = config->port != 0 ? config->port : of->tcp_port};
	}
	return health;
}

void cv_health_destroy(struct cv_health *health)
{
	free(health);
}

// Backends are in the order of their addresses.
static int find(const struct cv_health *health, const struct cv_address *address)
{
	unsigned low = 0, high = health->count;

	while (low < high) {
		const unsigned middle = (low + high) / 2;
		const int order = cv_address_compare(health->state[middle].probe.to, address);

		if (order == 0)
			return (int)middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

void cv_health_start(
	struct cv_health *health, const uint8_t (*macs)[CV_MAC_LEN], const struct cv_health *before)
{
	health->macs = macs;
	for (unsigned i = 0; i < health->count; i++) {
		struct state *state = &health->state[i];
		const int known = before == NULL ? -1 : find(before, state->probe.to);

		state->probe.own_mac = macs[state->probe.port];
		if (known >= 0)
			state->up = cv_health_is_up(before, (unsigned)known);
	}
}

// Counters and states are read by info(), and states by other workers, each for itself.
static void update(const struct cv_health *health, struct state *state)
{
	// Whoever hears an answer stores it relaxed: nothing else comes with it.
	const bool good = __atomic_load_n(&state->answer, __ATOMIC_RELAXED) == CV_ANSWER_GOOD;

	if (good)
		__atomic_store_n(&state->answers, state->answers + 1, __ATOMIC_RELAXED);
	state->run = good == state->up ? 0 : state->run + 1;
	if (state->run < (state->up ? health->config.fall : health->config.rise))
		return;
	state->run = 0;
	__atomic_store_n(&state->up, !state->up, __ATOMIC_RELAXED);
}

// A number that those who do not see the probes cannot know: xorshift64*, from a random seed.
static uint32_t next_nonce(struct cv_health *health)
{
	health->chance ^= health->chance >> 12;
	health->chance ^= health->chance << 25;
	health->chance ^= health->chance >> 27;
	return (uint32_t)(health->chance * 0x2545f4914f6cdd1d >> 32);
}

static void ask(struct cv_health *health, struct state *state, struct cv_nf_worker *worker)
{
	if (state->probed)
		update(health, state);
	state->probe.nonce = next_nonce(health);
	__atomic_store_n(&state->answer, CV_ANSWER_NONE, __ATOMIC_RELAXED);
	__atomic_store_n(&state->nonce, state->probe.nonce, __ATOMIC_RELAXED);
	// Without a buffer nothing is known about the backend.
	state->probed = cv_probe_send(worker, &state->probe);
	if (state->probed)
		__atomic_store_n(&state->probes, state->probes + 1, __ATOMIC_RELAXED);
}

void cv_health_tick(struct cv_health *health, struct cv_nf_worker *worker)
{
	uint32_t nobody = NOBODY;

	if (__atomic_load_n(&health->owner, __ATOMIC_RELAXED) != worker->index &&
		!__atomic_compare_exchange_n(&health->owner, &nobody, worker->index, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	if (health->due == 0)
		health->due = worker->now;
	for (unsigned i = 0; i < PROBES_A_TICK && worker->now >= health->due; i++) {
		ask(health, &health->state[health->next], worker);
		health->next = (health->next + 1) % health->count;
		// After a pause each is asked once, not as often as was missed.
		if (worker->now - health->due > health->step * health->count)
			health->due = worker->now;
		health->due += health->step;
	}
}

static void hear(struct cv_health *health, unsigned backend, enum cv_answer answer)
{
	__atomic_store_n(&health->state[backend].answer, answer, __ATOMIC_RELAXED);
}

bool cv_health_takes(struct cv_health *health, struct cv_nf_worker *worker,
	const struct cv_flow_tuple *tuple, const struct cv_flow_packet *packet)
{
	const bool v6 = tuple->family == 6;
	struct cv_answered answered;
	struct state *state;
	int at;

	if (v6 && health->resolves[1] && cv_ipv6_multicast(tuple->dst.ipv6))
		return cv_probe_resolve(
			worker, packet->view, &health->source[1], health->macs[packet->view->in]);
	if (memcmp(&tuple->dst, health->source[v6].bytes, v6 ? 16 : 4) != 0)
		return false;
	answered = cv_answer_read(tuple, packet->view, packet->l4);
	if (answered.answer == CV_ANSWER_NONE || answered.kind != health->config.by)
		return v6 && health->resolves[1] &&
		       cv_probe_resolve(worker, packet->view, &health->source[1],
			       health->macs[packet->view->in]);
	at = find(health, &answered.from);
	if (at < 0)
		return false;
	state = &health->state[at];
	if (answered.kind != CV_PROBE_LINK &&
		(answered.number != at ||
			answered.nonce != __atomic_load_n(&state->nonce, __ATOMIC_RELAXED)))
		return false;
	hear(health, (unsigned)at, answered.answer);
	if (answered.kind == CV_PROBE_TCP && answered.answer == CV_ANSWER_GOOD) {
		struct cv_probe probe = state->probe;

		probe.nonce = answered.nonce;
		cv_probe_reset(worker, &probe);
	}
	return true;
}

bool cv_health_takes_other(
	struct cv_health *health, struct cv_nf_worker *worker, const struct cv_view *view)
{
	struct cv_address from = {.v6 = false};
	struct cv_arp arp;
	int at;

	if (view->proto != CV_PROTO_ARP)
		return false;
	if (health->resolves[0] &&
		cv_probe_resolve(worker, view, &health->source[0], health->macs[view->in]))
		return true;
	if (health->config.by != CV_PROBE_LINK ||
		!cv_arp_read(view->data + view->l3, view->len - view->l3, &arp) ||
		arp.operation != RTE_BE16(CV_ARP_REPLY) ||
		memcmp(&arp.target, health->source[0].bytes, 4) != 0)
		return false;
	memcpy(from.bytes, &arp.sender, 4);
	at = find(health, &from);
	if (at >= 0)
		hear(health, (unsigned)at, CV_ANSWER_GOOD);
	return at >= 0;
}

bool cv_health_is_up(const struct cv_health *health, unsigned backend)
{
	return __atomic_load_n(&health->state[backend].up, __ATOMIC_RELAXED);
}

void cv_health_counts(
	const struct cv_health *health, unsigned backend, uint64_t *probes, uint64_t *answers)
{
	*probes = __atomic_load_n(&health->state[backend].probes, __ATOMIC_RELAXED);
	*answers = __atomic_load_n(&health->state[backend].answers, __ATOMIC_RELAXED);
}
