// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/return_next_hop.h"

#include <string.h>

#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

static_assert((CV_RETURN_NEXT_HOPS & (CV_RETURN_NEXT_HOPS - 1)) == 0, "an id has a place's bits");

int cv_return_name_at = -1;
uint64_t cv_return_name_flag;

bool cv_return_name_register(void)
{
	static const struct rte_mbuf_dynfield field = {.name = "convoy_return_next_hop",
		.size = sizeof(struct cv_return_name),
		.align = __alignof__(struct cv_return_name)};
	static const struct rte_mbuf_dynflag flag = {.name = "convoy_return_next_hop"};
	int bit;

	if (cv_return_name_at >= 0)
		return true;
	bit = rte_mbuf_dynflag_register(&flag);
	if (bit < 0)
		return false;
	cv_return_name_at = rte_mbuf_dynfield_register(&field);
	if (cv_return_name_at >= 0)
		cv_return_name_flag = 1ull << bit;
	return cv_return_name_at >= 0;
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

static void make_key(uint8_t key[CV_RETURN_KEY], const struct cv_convoy *convoy)
{
	uint8_t *header = key + 1;
	bool ipv6;
	uint32_t l3 = ip_offset(convoy, &ipv6);
	uint32_t udp = convoy->packets_at - CV_CONVOY_LEN - CV_UDP_LEN;

	memset(key, 0, CV_RETURN_KEY);
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
static int set_outer(struct cv_outer *outer, const uint8_t *key,
	const struct cv_ethdev_config *config, const struct cv_convoy *convoy)
{
	struct cv_outer_config next_hop = {
		.port = config->port, .mtu = config->mtu, .nfi = convoy->nfi};
	const uint8_t *header = key + 1;
	bool ipv6;
	uint32_t l3 = ip_offset(convoy, &ipv6);

	memcpy(next_hop.dst_mac, header + 6, 6);
	memcpy(next_hop.src_mac, header, 6);
	for (uint32_t at = 12; at + 2 < l3; at += CV_VLAN_LEN) {
		next_hop.vlan[next_hop.vlans].type = load16(header + at);
		next_hop.vlan[next_hop.vlans++].tci = load16(header + at + 2);
	}
	next_hop.version = ipv6 ? 6 : 4;
	if (ipv6) {
		memcpy(next_hop.dst, header + l3 + 8, 16);
		memcpy(next_hop.src, header + l3 + 24, 16);
	} else {
		memcpy(next_hop.dst, header + l3 + 12, 4);
		memcpy(next_hop.src, header + l3 + 16, 4);
	}
	return cv_outer_set(outer, &next_hop, NULL);
}

// Was the frame sent to the port, by somebody else?
static bool is_to_us(const uint8_t *header, const uint8_t mac[6])
{
	static const uint8_t none[CV_MAC_LEN];
	const uint8_t *dst = header, *src = header + CV_MAC_LEN;

	if (cv_mac_group(dst) || cv_mac_group(src) || memcmp(src, dst, CV_MAC_LEN) == 0)
		return false;
	return memcmp(mac, none, CV_MAC_LEN) == 0 || memcmp(mac, dst, CV_MAC_LEN) == 0;
}

// The place of a key; that to learn it in if it is not there.
static uint32_t find(const struct cv_return_next_hops *next_hops, const uint8_t key[CV_RETURN_KEY])
{
	uint32_t oldest = 0;

	for (uint32_t i = 0; i < CV_RETURN_NEXT_HOPS; i++) {
		if (memcmp(next_hops->entries[i].key, key, CV_RETURN_KEY) == 0)
			return i;
		if (next_hops->now - next_hops->entries[i].seen >
			next_hops->now - next_hops->entries[oldest].seen)
			oldest = i;
	}
	return oldest;
}

static bool learn(struct cv_return_next_hops *next_hops, uint32_t place,
	const struct cv_ethdev_config *config, const struct cv_convoy *convoy,
	const uint8_t key[CV_RETURN_KEY])
{
	struct cv_return_next_hop *next_hop = &next_hops->entries[place];
	// Comes again after 67 million others. 0 is none.
	uint32_t id = (++next_hops->learned * CV_RETURN_NEXT_HOPS) | place;

	if (id < CV_RETURN_NEXT_HOPS)
		id = (++next_hops->learned * CV_RETURN_NEXT_HOPS) | place;
	atomic_store_explicit(&next_hop->id, 0, memory_order_relaxed);
	// A reader that sees anything of what is written now finds 0 behind it.
	atomic_thread_fence(memory_order_release);
	memcpy(next_hop->key, key, CV_RETURN_KEY);
	if (set_outer(&next_hop->outer, key, config, convoy) != 0)
		return false;
	// Pairs with the acquire in cv_return_next_hop_read().
	atomic_store_explicit(&next_hop->id, id, memory_order_release);
	return true;
}

uint32_t cv_return_next_hop_learn(struct cv_return_next_hops *next_hops, const uint8_t mac[6],
	const struct cv_ethdev_config *config, const struct cv_convoy *convoy)
{
	struct cv_return_next_hop *next_hop = &next_hops->entries[next_hops->last];
	uint8_t key[CV_RETURN_KEY];

	make_key(key, convoy);
	if (CV_UNLIKELY(memcmp(next_hop->key, key, CV_RETURN_KEY) != 0)) {
		uint32_t place;

		if (!is_to_us(key + 1, mac))
			return 0;
		place = find(next_hops, key);
		next_hop = &next_hops->entries[place];
		next_hop->seen = ++next_hops->now;
		next_hops->last = place;
		if (memcmp(next_hop->key, key, CV_RETURN_KEY) != 0 &&
			!learn(next_hops, place, config, convoy, key))
			return 0;
	}
	return atomic_load_explicit(&next_hop->id, memory_order_relaxed);
}

bool cv_return_next_hop_read(
	const struct cv_return_next_hops *next_hops, uint32_t id, struct cv_outer *outer)
{
	const struct cv_return_next_hop *next_hop = &next_hops->entries[id % CV_RETURN_NEXT_HOPS];

	// Pairs with the release in learn().
	if (id == 0 || atomic_load_explicit(&next_hop->id, memory_order_acquire) != id)
		return false;
	memcpy(outer, &next_hop->outer, sizeof(*outer));
	// Pairs with the fence in learn(): what was copied is of that id if it is there still.
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&next_hop->id, memory_order_relaxed) == id;
}
