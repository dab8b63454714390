// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat64/clients.h"

#include <stdlib.h>

#include "flow/hash.h"

#define NONE UINT32_MAX
#define TRIES 64 // addresses that are looked at for an idle one

struct client {
	struct cv_nat64_ipv6 ipv6;
	uint64_t seen; // TSC
	uint32_t next; // of the same bucket
};

struct cv_nat64_clients {
	struct cv_flow_secret secret;
	unsigned owners; // instances
	uint32_t first, count;
	uint8_t length;
	uint64_t idle;
	uint32_t taken; // so many of the first have a host
	uint32_t hand; // the next that may be idle
	uint32_t mask;
	uint32_t *bucket;
	struct client *client;
};

struct cv_nat64_clients *cv_nat64_clients_create(uint32_t first, uint8_t length, uint64_t idle)
{
	struct cv_nat64_clients *clients =
		aligned_alloc(64, (sizeof(*clients) + 63) / 64 * 64); // of the secret

	if (clients == NULL)
		return NULL;
	memset(clients, 0, sizeof(*clients));
	clients->owners = 1;
	clients->first = first;
	clients->length = length;
	clients->idle = idle;
	clients->count = (uint32_t)(UINT64_C(1) << (32 - length));
	clients->mask = clients->count - 1;
	clients->bucket = malloc(clients->count * sizeof(*clients->bucket));
	clients->client = calloc(clients->count, sizeof(*clients->client));
	if (clients->bucket == NULL || clients->client == NULL ||
		cv_flow_secret_make(&clients->secret) != 0) {
		cv_nat64_clients_release(clients);
		return NULL;
	}
	memset(clients->bucket, 0xff, clients->count * sizeof(*clients->bucket));
	return clients;
}

struct cv_nat64_clients *cv_nat64_clients_share(struct cv_nat64_clients *clients)
{
	clients->owners++;
	return clients;
}

void cv_nat64_clients_release(struct cv_nat64_clients *clients)
{
	if (clients == NULL || --clients->owners > 0)
		return;
	free(clients->bucket);
	free(clients->client);
	free(clients);
}

bool cv_nat64_clients_are(
	const struct cv_nat64_clients *clients, uint32_t first, uint8_t length, uint64_t idle)
{
	return clients->first == first && clients->length == length && clients->idle == idle;
}

static uint32_t *bucket_of(const struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6)
{
	return &clients->bucket[cv_flow_hash(&clients->secret, &ipv6, sizeof(ipv6)) &
				clients->mask];
}

static uint32_t find(const struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6)
{
	uint32_t at = *bucket_of(clients, ipv6);

	while (at != NONE && (clients->client[at].ipv6.low != ipv6.low ||
				     clients->client[at].ipv6.high != ipv6.high))
		at = clients->client[at].next;
	return at;
}

static void forget(struct cv_nat64_clients *clients, uint32_t index)
{
	uint32_t *from = bucket_of(clients, clients->client[index].ipv6);

	while (*from != index)
		from = &clients->client[*from].next;
	*from = clients->client[index].next;
}

// An address that no host has any more; NONE: of those that were looked at none is idle for so long.
static uint32_t take_idle(struct cv_nat64_clients *clients, uint64_t now)
{
	for (unsigned i = 0; i < TRIES && i < clients->count; i++) {
		const uint32_t at = clients->hand;

		clients->hand = (at + 1) & clients->mask;
		if (now - clients->client[at].seen > clients->idle) {
			forget(clients, at);
			return at;
		}
	}
	return NONE;
}

bool cv_nat64_clients_take(
	struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6, uint64_t now, uint32_t *ipv4)
{
	uint32_t at = find(clients, ipv6);

	if (CV_UNLIKELY(at == NONE)) {
		uint32_t *bucket = bucket_of(clients, ipv6);

		if (clients->taken < clients->count) {
			at = clients->taken;
			// Pairs with cv_nat64_clients_count().
			__atomic_store_n(&clients->taken, at + 1, __ATOMIC_RELAXED);
		} else {
			at = take_idle(clients, now);
		}
		if (at == NONE)
			return false;
		clients->client[at].ipv6 = ipv6;
		clients->client[at].next = *bucket;
		*bucket = at;
	}
	clients->client[at].seen = now;
	*ipv4 = clients->first + at;
	return true;
}

bool cv_nat64_clients_to_ipv4(
	const struct cv_nat64_clients *clients, struct cv_nat64_ipv6 ipv6, uint32_t *ipv4)
{
	const uint32_t at = find(clients, ipv6);

	*ipv4 = clients->first + at;
	return at != NONE;
}

bool cv_nat64_clients_have(const struct cv_nat64_clients *clients, uint32_t ipv4)
{
	return ipv4 - clients->first < clients->count;
}

bool cv_nat64_clients_to_ipv6(
	const struct cv_nat64_clients *clients, uint32_t ipv4, struct cv_nat64_ipv6 *ipv6)
{
	const uint32_t at = ipv4 - clients->first;

	if (at >= clients->taken)
		return false;
	*ipv6 = clients->client[at].ipv6;
	return true;
}

void cv_nat64_clients_touch(struct cv_nat64_clients *clients, uint32_t ipv4, uint64_t now)
{
	clients->client[ipv4 - clients->first].seen = now;
}

uint64_t cv_nat64_clients_count(const struct cv_nat64_clients *clients)
{
	return __atomic_load_n(&clients->taken, __ATOMIC_RELAXED);
}
