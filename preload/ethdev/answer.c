// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_spinlock.h>

#include "ipv4.h"
#include "ipv6.h"
#include "udp.h"

static rte_spinlock_t learning = RTE_SPINLOCK_INITIALIZER;

int cv_answers_init(
	struct cv_answers *answers, const struct cv_ethdev_config *config, struct cv_error *error)
{
	answers->config = *config;
	atomic_init(&answers->count, 0);
	atomic_init(&answers->full, false);
	return config->fixed ? cv_outer_set(&answers->fixed.outer, &config->next_hop, error) : 0;
}

// The frame was walked: it has all these headers, and neither options nor fragments. l3 is where
// the IP header begins, as the walk found it.
static uint32_t ip_offset(const struct cv_convoy *convoy, bool *ipv6)
{
	uint32_t before = convoy->packets_at - CV_CONVOY_LEN - CV_UDP_LEN;

	// Tags take 4 bytes each, the IP headers 20 and 40: 34, 38, 42 or 54, 58, 62.
	*ipv6 = before >= CV_ETHER_LEN + CV_IPV6_LEN;
	return before - (*ipv6 ? CV_IPV6_LEN : CV_IPV4_LEN);
}

static void make_key(uint8_t key[CV_ANSWER_KEY], const struct cv_convoy *convoy)
{
	uint8_t *header = key + 1;
	bool ipv6;
	uint32_t l3 = ip_offset(convoy, &ipv6);
	uint32_t udp = convoy->packets_at - CV_CONVOY_LEN - CV_UDP_LEN;

	memset(key, 0, CV_ANSWER_KEY);
	key[0] = (uint8_t)convoy->packets_at;
	memcpy(header, convoy->data, convoy->packets_at);
	if (ipv6) {
		memset(header + l3, 0, 8); // class, flow label, length, next header, hop limit
	} else {
		memset(header + l3 + 1, 0, 8); // tos, length, identification, fragment, TTL
		memset(header + l3 + 10, 0, 2); // checksum
	}
	memset(header + udp, 0, 2); // source port
	memset(header + udp + 4, 0, 4); // length, checksum
	header[udp + CV_UDP_LEN + 1] = 0; // count
}

static uint16_t load16(const uint8_t *at)
{
	return rte_be_to_cpu_16(cv_load_be16(at));
}

// The header in a key, with source and destination in each other's place.
static int set_outer(struct cv_answer *answer, const struct cv_ethdev_config *config,
	const struct cv_convoy *convoy)
{
	struct cv_outer_config hop = {.port = config->port, .mtu = config->mtu, .nfi = convoy->nfi};
	const uint8_t *header = answer->key + 1;
	bool ipv6;
	uint32_t l3 = ip_offset(convoy, &ipv6);

	memcpy(hop.dst_mac, header + 6, 6);
	memcpy(hop.src_mac, header, 6);
	for (uint32_t at = 12; at + 2 < l3; at += CV_VLAN_LEN) {
		hop.vlan[hop.vlans].type = load16(header + at);
		hop.vlan[hop.vlans++].tci = load16(header + at + 2);
	}
	hop.version = ipv6 ? 6 : 4;
	if (ipv6) {
		memcpy(hop.dst, header + l3 + 8, 16);
		memcpy(hop.src, header + l3 + 24, 16);
	} else {
		memcpy(hop.dst, header + l3 + 12, 4);
		memcpy(hop.src, header + l3 + 16, 4);
	}
	return cv_outer_set(&answer->outer, &hop, NULL);
}

static const struct cv_answer *learn(struct cv_answers *answers, const struct cv_convoy *convoy,
	const uint8_t key[CV_ANSWER_KEY])
{
	uint32_t count = atomic_load_explicit(&answers->count, memory_order_relaxed);
	struct cv_answer *answer = &answers->learned[count];

	for (uint32_t i = 0; i < count; i++) // somebody else was faster
		if (memcmp(answers->learned[i].key, key, CV_ANSWER_KEY) == 0)
			return &answers->learned[i];
	if (count == CV_ANSWERS_MAX) {
		if (!atomic_exchange(&answers->full, true))
			fprintf(stderr,
				"convoy: ethdev: convoys from more than %u senders: the rest are "
				"answered packet by packet; give one next hop with --next-hop\n",
				CV_ANSWERS_MAX);
		return NULL;
	}
	memcpy(answer->key, key, CV_ANSWER_KEY);
	if (set_outer(answer, &answers->config, convoy) != 0)
		return NULL;
	// Pairs with the acquire in cv_answer_find.
	atomic_store_explicit(&answers->count, count + 1, memory_order_release);
	return answer;
}

const struct cv_answer *cv_answer_find(
	struct cv_answers *answers, const struct cv_convoy *convoy, const struct cv_answer *last)
{
	const struct cv_answer *answer = NULL;
	uint8_t key[CV_ANSWER_KEY];
	uint32_t count;

	if (answers->config.fixed)
		return &answers->fixed;
	make_key(key, convoy);
	if (CV_LIKELY(last != NULL && memcmp(last->key, key, CV_ANSWER_KEY) == 0))
		return last;
	count = atomic_load_explicit(&answers->count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(answers->learned[i].key, key, CV_ANSWER_KEY) == 0)
			return &answers->learned[i];
	rte_spinlock_lock(&learning);
	answer = learn(answers, convoy, key);
	rte_spinlock_unlock(&learning);
	return answer;
}
