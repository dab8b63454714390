// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hot half of the flow path: a burst of packets, most of flows that are known. Compiled for
// different processors, each as CV_FLOW_RUN: with AES the hash is inline.
//
// In three passes, so that what each reads of memory was asked for by the one before: keys and
// hashes; the buckets they lead to; the flows those lead to, which are applied in the packets'
// order. A packet of any other kind takes the long way (cv_flow_one()) in its turn.
#include <rte_prefetch.h>

#include "flow/zone.h"

#define NEVER UINT32_MAX // of no bucket

static CV_INLINE uint64_t hash_of(
	const struct cv_flow_secret *secret, const void *key, size_t bytes)
{
#ifdef __AES__
	return cv_flow_aes(secret, key, bytes);
#else
	return cv_flow_hash(secret, key, bytes);
#endif
}

// What the passes hand on, by packet.
struct lanes {
	union cv_flow_key key[CV_BURST_MAX];
	uint64_t hash[CV_BURST_MAX];
	uint32_t bucket[CV_BURST_MAX]; // NEVER: to be looked at for itself
	uint32_t slot[CV_BURST_MAX];
	bool v6[CV_BURST_MAX];
};

// The common case of IPv4: no options, no fragment, a whole TCP or UDP header.
static CV_INLINE bool is_common_ipv4(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	unsigned total, least;

	if (CV_UNLIKELY(room < 28 || ip[0] != 0x45))
		return false;
	total = cv_tuple_load(ip + 2);
	least = ip[9] == IPPROTO_TCP ? 40 : ip[9] == IPPROTO_UDP ? 28 : UINT32_MAX;
	return CV_LIKELY(total >= least && total <= room && (cv_tuple_load(ip + 6) & 0x3fff) == 0);
}

// The same of IPv6: no extension header.
static CV_INLINE bool is_common_ipv6(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	unsigned payload, least;

	if (CV_UNLIKELY(room < 48 || ip[0] >> 4 != 6))
		return false;
	payload = cv_tuple_load(ip + 4);
	least = ip[6] == IPPROTO_TCP ? 20 : ip[6] == IPPROTO_UDP ? 8 : UINT32_MAX;
	return payload >= least && payload + 40 <= room;
}

static CV_INLINE void first_pass(const struct cv_flow_zone *zone, const struct cv_view *views,
	unsigned n, struct lanes *lanes)
{
	for (unsigned i = 0; i < n; i++) {
		const struct cv_view *view = &views[i];
		const uint8_t *ip = view->data + view->l3;
		union cv_flow_key *key = &lanes->key[i];
		const struct cv_flow_table *table = &zone->table[0];
		uint64_t hash;

		lanes->bucket[i] = NEVER;
		lanes->v6[i] = false;
		if (CV_LIKELY(view->proto == CV_PROTO_IPV4 && is_common_ipv4(view))) {
			uint64_t addresses, rest;

			memcpy(&addresses, ip + 12, 8);
			memcpy(&rest, ip + 20, 4);
			rest = (rest & UINT32_MAX) | (uint64_t)ip[9] << 32;
			memcpy(key, &addresses, 8);
			memcpy((uint8_t *)key + 8, &rest, 8);
#ifdef __AES__
			{
				// Not through memory: a load of what two stores wrote would wait.
				__m128i x = _mm_set_epi64x((long long)rest, (long long)addresses);

				x = _mm_xor_si128(
					x, _mm_load_si128((const __m128i *)zone->secret.keys));
				hash = (uint64_t)_mm_cvtsi128_si64(
					cv_flow_aes_rounds(&zone->secret, x));
			}
#else
			hash = hash_of(&zone->secret, key, sizeof(key->ipv4));
#endif
			lanes->v6[i] = false;
		} else if (view->proto == CV_PROTO_IPV6 && is_common_ipv6(view)) {
			table = &zone->table[1];
			memcpy(key, ip + 8, 36);
			memset(key->ipv6.zero, 0, sizeof(key->ipv6.zero));
			key->ipv6.proto = ip[6];
			hash = hash_of(&zone->secret, key, sizeof(key->ipv6));
			lanes->v6[i] = true;
		} else {
			continue;
		}
		lanes->hash[i] = hash;
		lanes->bucket[i] = cv_flow_first_bucket(table, hash);
		rte_prefetch0(&table->buckets[lanes->bucket[i]]);
	}
}

// The flow that most likely is a packet's: the first whose signature is. Whether it is its flow is
// seen in the third pass.
static CV_INLINE void second_pass(const struct cv_flow_zone *zone, unsigned n, struct lanes *lanes)
{
	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_table *table;
		const struct cv_flow_bucket *bucket;
		uint16_t signature;
		uint32_t same;

		lanes->slot[i] = CV_FLOW_NONE;
		if (CV_UNLIKELY(lanes->bucket[i] == NEVER))
			continue;
		table = &zone->table[lanes->v6[i]];
		bucket = &table->buckets[lanes->bucket[i]];
		signature = cv_flow_signature(lanes->hash[i]);
		same = cv_flow_bucket_match(bucket, signature);
		if (CV_UNLIKELY(same == 0)) {
			if (CV_LIKELY(bucket->displaced == 0))
				continue;
			bucket = &table->buckets[cv_flow_other_bucket(
				table, lanes->bucket[i], signature)];
			same = cv_flow_bucket_match(bucket, signature);
			if (same == 0)
				continue;
		}
		lanes->slot[i] = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
		rte_prefetch0(cv_flow_at(table, lanes->slot[i] >> 1));
		if (table->v6)
			rte_prefetch0((uint8_t *)cv_flow_at(table, lanes->slot[i] >> 1) + 64);
	}
}

#ifdef __SSE4_1__
static CV_INLINE bool has_key_ipv4(
	struct cv_flow *flow, unsigned direction, const union cv_flow_key *key)
{
	const __m128i twelve = _mm_set_epi32(0, -1, -1, -1);
	__m128i x = _mm_loadu_si128((const __m128i *)key);
	__m128i y = _mm_loadu_si128((const __m128i *)cv_flow_stored(flow, direction, false));

	return _mm_testz_si128(_mm_xor_si128(x, y), twelve) && flow->proto == key->ipv4.proto;
}

// Addresses and ports of a common packet, as those of its answers turned around.
static CV_INLINE void put_ipv4(struct cv_flow *flow, unsigned direction, uint8_t *ip)
{
	const __m128i turn = _mm_set_epi8(15, 14, 13, 12, 9, 8, 11, 10, 3, 2, 1, 0, 7, 6, 5, 4);
	__m128i x = _mm_loadu_si128((const __m128i *)(ip + 12));
	__m128i y = _mm_loadu_si128((const __m128i *)cv_flow_stored(flow, !direction, false));

	y = _mm_shuffle_epi8(y, turn);
	_mm_storeu_si128((__m128i *)(ip + 12), _mm_blend_epi16(y, x, 0xc0));
}
#else
static CV_INLINE bool has_key_ipv4(
	struct cv_flow *flow, unsigned direction, const union cv_flow_key *key)
{
	return cv_flow_has_key(flow, direction, false, key);
}

static CV_INLINE void put_ipv4(struct cv_flow *flow, unsigned direction, uint8_t *ip)
{
	cv_flow_put_addresses(flow, direction, false, ip);
	cv_flow_put_ports(flow, direction, false, ip + CV_IPV4_LEN);
}
#endif

static CV_INLINE void rewrite_common_ipv4(struct cv_flow *flow, unsigned direction, uint8_t *ip)
{
	const bool udp = flow->proto == IPPROTO_UDP;
	uint8_t *at = ip + CV_IPV4_LEN + (udp ? 6 : 16);
	rte_be16_t header = cv_load_be16(ip + 10), old = cv_load_be16(at), new;

	put_ipv4(flow, direction, ip);
	header = cv_flow_checksum(header, cv_flow_delta(flow->ip_delta, direction));
	memcpy(ip + 10, &header, 2);
	// Without a branch that half of the packets of mixed traffic would take.
	new = cv_flow_checksum(old, cv_flow_delta(flow->l4_delta, direction));
	new = udp &&new == 0 ? 0xffff : new;
	new = udp &&old == 0 ? 0 : new;
	memcpy(at, &new, 2);
}

static CV_INLINE void rewrite_common_ipv6(struct cv_flow *flow, unsigned direction, uint8_t *ip)
{
	const bool udp = flow->proto == IPPROTO_UDP;
	uint8_t *l4 = ip + CV_IPV6_LEN;

	cv_flow_put_addresses(flow, direction, true, ip);
	cv_flow_put_ports(flow, direction, true, l4);
	cv_flow_checksum_at_update(
		l4 + (udp ? 6 : 16), cv_flow_delta(flow->l4_delta, direction), udp);
}

// One packet of a flow that is known. Whatever is not the common case takes the long way.
static CV_INLINE uint8_t apply(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *view, uint32_t slot, bool v6)
{
	const struct cv_flow_zone *zone = group->zone;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], slot >> 1);
	const unsigned direction = slot & 1;
	uint8_t *ip = view->data + view->l3, verdict;
	const unsigned header = v6 ? CV_IPV6_LEN : CV_IPV4_LEN;
	const bool tcp = flow->proto == IPPROTO_TCP;
	const uint8_t tcp_flags = tcp ? ip[header + 13] : 0;
	const uint8_t usual = tcp ? CV_FLOW_TCP_DONE : CV_FLOW_TCP_NONE;

	// Neither another epoch, nor a change of TCP's state, nor a first reply.
	if (CV_UNLIKELY(flow->epoch != zone->epoch || flow->tcp_state != usual ||
			(tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0 ||
			(direction == CV_FLOW_REPLY && !(flow->flags & CV_FLOW_REPLIED)) ||
			(flow->flags & CV_FLOW_DENIED) != 0))
		return cv_flow_one(group, worker, view, slot);
	if (flow->seen != zone->now) // else the line stays clean
		flow->seen = zone->now;
	if (CV_UNLIKELY(flow->follows != 0)) {
		verdict = cv_flow_follow(group, worker, view, (uint16_t)(view->l3 + header),
			tcp_flags, flow, v6, slot);
		if (CV_UNLIKELY(verdict != CV_NEXT))
			return verdict;
	}
	if (flow->flags & CV_FLOW_REWRITES) {
		if (v6)
			rewrite_common_ipv6(flow, direction, ip);
		else
			rewrite_common_ipv4(flow, direction, ip);
	}
	if (flow->way[direction] != 0)
		cv_flow_apply_way(zone, view, flow->way[direction]);
	return CV_NEXT;
}

static CV_INLINE uint16_t third_pass(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, unsigned n, const struct lanes *lanes)
{
	const struct cv_flow_zone *zone = group->zone;
	const uint64_t removals = zone->removals;
	unsigned dropped = 0;

	for (unsigned i = 0; i < n; i++) {
		const bool v6 = lanes->v6[i];
		uint32_t slot = lanes->slot[i];
		bool is_known = slot != CV_FLOW_NONE && zone->removals == removals;

		if (CV_LIKELY(is_known && !v6)) {
			struct cv_flow *flow = cv_flow_at(&zone->table[0], slot >> 1);

			is_known = has_key_ipv4(flow, slot & 1, &lanes->key[i]);
			if (CV_LIKELY(is_known))
				verdicts[i] = apply(group, worker, &views[i], slot, false);
		} else if (is_known) {
			struct cv_flow *flow = cv_flow_at(&zone->table[1], slot >> 1);

			is_known = cv_flow_has_key(flow, slot & 1, true, &lanes->key[i]);
			if (CV_LIKELY(is_known))
				verdicts[i] = apply(group, worker, &views[i], slot, true);
		}
		if (CV_UNLIKELY(!is_known))
			verdicts[i] = cv_flow_one(group, worker, &views[i], CV_FLOW_NONE);
		dropped += verdicts[i] != CV_NEXT;
	}
	return (uint16_t)dropped;
}

// Each function counts what it would have been shown.
static CV_INLINE void count(struct cv_flow_group *group, uint32_t packets, uint32_t bytes)
{
	const unsigned functions = group->zone->members_count;

	if (CV_UNLIKELY(group->drops)) {
		for (unsigned i = 0; i < functions; i++) {
			packets -= group->dropped[i].packets;
			bytes -= group->dropped[i].bytes;
			cv_count(&group->counters[i]->packets, packets);
			cv_count(&group->counters[i]->bytes, bytes);
		}
		memset(group->dropped, 0, sizeof(group->dropped));
		group->drops = false;
		return;
	}
	for (unsigned i = 0; i < functions; i++) {
		cv_count(&group->counters[i]->packets, packets);
		cv_count(&group->counters[i]->bytes, bytes);
	}
}

uint16_t CV_FLOW_RUN(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, uint16_t n)
{
	struct cv_flow_zone *zone = group->zone;
	struct lanes lanes;
	uint32_t bytes = 0;
	uint16_t dropped;

	zone->now = (uint32_t)(worker->now >> zone->shift);
	if (zone->generations_count > 0)
		cv_flow_learn_changes(zone);
	first_pass(zone, views, n, &lanes);
	for (unsigned i = 0; i < n; i++)
		bytes += views[i].len;
	second_pass(zone, n, &lanes);
	dropped = third_pass(group, worker, views, verdicts, n, &lanes);
	count(group, n, bytes);
	return dropped;
}
