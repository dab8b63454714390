// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The yardstick for stateful functions: plain DPDK, an mbuf per packet. rte_hash finds the flow by
// either of its two 5-tuples, as l3fwd's exact match does, 64 at a time; addresses, ports, MAC
// addresses and both checksums are rewritten (RFC 1624); rte_meter measures each flow. IPv4 without
// options only, TCP and UDP, no states, no time-outs, no keyed hash: less than the functions do.
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_meter.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "packet/checksum.h"
#include "packet/compiler.h"
#include "tests/bench/bench.h"
#include "tests/bench/flows.h"

#define PREFETCH_AHEAD 8
#define BACKENDS 16

struct key {
	rte_be32_t src, dst;
	rte_be16_t sport, dport;
	uint8_t proto, zero[3];
};

_Static_assert(sizeof(struct key) == 16, "every byte is hashed");

struct flow {
	struct key from[2]; // as packets come, by direction: as they leave, turned around
	uint16_t ip_delta, l4_delta; // that forward packets add to the sums
	uint8_t backend;
	struct rte_meter_srtcm meter;
} __rte_cache_aligned;

struct reference {
	struct rte_hash *hash;
	struct flow *flows;
	uint32_t count; // of these, opened
	uint32_t known;
	bool rewrites, meters;
	struct rte_meter_srtcm_profile profile;
};

static struct key turned(const struct key *key)
{
	return (struct key){key->dst, key->src, key->dport, key->sport, key->proto, {0}};
}

static CV_INLINE struct rte_ipv4_hdr *ip_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
}

static uint16_t delta_of(const struct key *old, const struct key *new, unsigned bytes)
{
	const uint64_t before = cv_checksum_add(0, (const uint8_t *)old, bytes);

	return cv_checksum_fold(cv_checksum_add(0, (const uint8_t *)new, bytes) +
				(uint16_t)~cv_checksum_fold(before));
}

// Opens the flow of a packet. Returns its number, or -1: there is no room.
static int64_t open_flow(struct reference *reference, const struct key *key)
{
	const uint32_t index = reference->count;
	struct flow *flow = &reference->flows[index];
	struct key left = *key;

	if (index == BENCH_FLOWS_TABLE(reference->known))
		return -1;
	*flow = (struct flow){.backend = rte_be_to_cpu_16(key->sport) % BACKENDS};
	if (reference->rewrites) {
		left.src = (key->src & RTE_BE32(0xffffff)) | RTE_BE32(100u << 24);
		left.sport = key->sport ^ RTE_BE16(0x4000);
		left.dst = rte_cpu_to_be_32(192u << 24 | 168 << 16 | (1 + flow->backend));
	}
	flow->from[0] = *key;
	flow->from[1] = turned(&left);
	flow->ip_delta = delta_of(key, &left, 8);
	flow->l4_delta = delta_of(key, &left, 12);
	rte_meter_srtcm_config(&flow->meter, &reference->profile);
	for (unsigned direction = 0; direction < 2; direction++)
		if (rte_hash_add_key_data(reference->hash, &flow->from[direction],
			    (void *)(uintptr_t)(index * 2 + direction)) != 0)
			return -1;
	reference->count++;
	return index * 2;
}

static CV_INLINE void update(uint16_t *checksum, uint16_t delta)
{
	const uint32_t sum = (uint32_t)(uint16_t) ~*checksum + delta;

	*checksum = (uint16_t) ~(sum + (sum >> 16));
}

static CV_INLINE void rewrite(const struct flow *flow, unsigned direction, struct rte_ipv4_hdr *ip)
{
	const struct key *to = &flow->from[!direction];
	const uint16_t flip = (uint16_t)-direction;
	uint8_t *l4 = (uint8_t *)(ip + 1);
	rte_be16_t ports[2] = {to->dport, to->sport};

	ip->src_addr = to->dst;
	ip->dst_addr = to->src;
	memcpy(l4, ports, sizeof(ports));
	update(&ip->hdr_checksum, flow->ip_delta ^ flip);
	update((uint16_t *)(l4 + (ip->next_proto_id == IPPROTO_TCP ? 16 : 6)),
		flow->l4_delta ^ flip);
	if (direction == 0) {
		struct rte_ether_hdr *ether = (struct rte_ether_hdr *)ip - 1;

		ether->dst_addr.addr_bytes[5] = flow->backend;
		ether->src_addr.addr_bytes[5] = 1;
	}
}

static CV_HOT uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct reference *reference = state;
	const uint64_t now = rte_rdtsc();
	const void *at[CV_BURST_MAX];
	struct key keys[CV_BURST_MAX];
	void *values[CV_BURST_MAX];
	uint64_t hits = 0;
	uint16_t passed = 0;

	for (uint16_t i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		const struct rte_ipv4_hdr *ip = ip_of(packets[i]);
		const rte_be16_t *ports = (const rte_be16_t *)(ip + 1);

		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(packets[i + PREFETCH_AHEAD], void *));
		if (CV_UNLIKELY(
			    ip->version_ihl != RTE_IPV4_VHL_DEF ||
			    (ip->next_proto_id != IPPROTO_TCP && ip->next_proto_id != IPPROTO_UDP)))
			return 0;
		keys[i] = (struct key){
			ip->src_addr, ip->dst_addr, ports[0], ports[1], ip->next_proto_id, {0}};
		at[i] = &keys[i];
	}
	rte_hash_lookup_bulk_data(reference->hash, at, n, &hits, values);
	for (uint16_t i = 0; i < n; i++)
		if (CV_LIKELY(hits >> i & 1))
			rte_prefetch0(&reference->flows[(uintptr_t)values[i] >> 1]);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_ipv4_hdr *ip = ip_of(packets[i]);
		const int64_t slot = CV_LIKELY(hits >> i & 1) ? (int64_t)(uintptr_t)values[i]
							      : open_flow(reference, &keys[i]);
		struct flow *flow = &reference->flows[slot >> 1];

		if (CV_UNLIKELY(slot < 0))
			continue;
		if (reference->meters &&
			rte_meter_srtcm_color_blind_check(&flow->meter, &reference->profile, now,
				rte_be_to_cpu_16(ip->total_length)) == RTE_COLOR_RED)
			continue;
		if (reference->rewrites)
			rewrite(flow, slot & 1, ip);
		passed++;
	}
	return passed;
}

static double end_fresh(void *state, uint64_t *again)
{
	struct reference *reference = state;
	const uint64_t then = rte_rdtsc();

	for (; reference->count > reference->known; reference->count--)
		for (unsigned direction = 0; direction < 2; direction++)
			rte_hash_del_key(reference->hash,
				&reference->flows[reference->count - 1].from[direction]);
	return (double)(rte_rdtsc() - then) / BENCH_FLOWS_FRESH;
}

static void destroy(void *state)
{
	struct reference *reference = state;

	rte_hash_free(reference->hash);
	free(reference->flows);
	free(reference);
}

int bench_reference_flows_create(struct bench_subject *subject, bool rewrites, bool meters,
	struct bench_flows *flows, struct cv_error *error)
{
	static unsigned number;
	const uint32_t max = BENCH_FLOWS_TABLE(flows->known);
	const size_t bytes = RTE_ALIGN_CEIL(max * sizeof(struct flow), (size_t)2 << 20);
	struct rte_meter_srtcm_params rates = {.cir = 12500000000, .cbs = 1000000, .ebs = 1000000};
	struct reference *reference = calloc(1, sizeof(*reference));
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = max / 3 * 8, // a quarter stays empty
		.key_len = sizeof(struct key),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};

	snprintf(name, sizeof(name), "reference.%u", number++);
	if (reference == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	*subject = (struct bench_subject){.run = run,
		.flows = flows,
		.end_fresh = end_fresh,
		.destroy = destroy,
		.state = reference};
	reference->known = flows->known;
	reference->rewrites = rewrites;
	reference->meters = meters;
	rte_meter_srtcm_profile_config(&reference->profile, &rates);
	reference->hash = rte_hash_create(&parameters);
	reference->flows = aligned_alloc((size_t)2 << 20, bytes);
	if (reference->hash != NULL && reference->flows != NULL) {
		madvise(reference->flows, bytes, MADV_HUGEPAGE);
		return 0;
	}
	cv_error_set(
		error, "no memory for the reference's %u flows: %s", max, rte_strerror(rte_errno));
	destroy(reference);
	return -1;
}
