// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The yardstick for the router: plain DPDK, an mbuf per packet, written after what the DPDK sample
// applications guide says of l3fwd (LPM, RFC 1812 checks): header checks, rte_lpm_lookupx4 over
// four destinations at a time, both MAC addresses written in one 16-byte store, TTL and checksum.
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_lpm.h>
#include <rte_prefetch.h>
#include <rte_vect.h>

#include "chain/nf.h"
#include "packet/compiler.h"
#include "tests/bench/bench.h"

#define PREFETCH_AHEAD 8
#define NO_ROUTE UINT16_MAX

struct reference {
	struct rte_lpm *lpm;
	// Destination and source MAC and EtherType, by neighbour: the packet's first 14 bytes.
	__m128i ether[BENCH_NEIGHBOURS];
};

// RFC 1812 5.2.2 as l3fwd does it, on a packet that is known to be 60 bytes long.
static CV_INLINE bool header_good(const struct rte_ether_hdr *ether, const struct rte_ipv4_hdr *ip)
{
	return ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && ip->version_ihl >> 4 == 4 &&
	       (ip->version_ihl & 0xf) >= 5 &&
	       rte_be_to_cpu_16(ip->total_length) >= sizeof(struct rte_ipv4_hdr) &&
	       ip->time_to_live > 1;
}

static CV_INLINE uint16_t forward(
	const struct reference *reference, struct rte_mbuf *packet, uint32_t neighbour)
{
	struct rte_ether_hdr *ether = rte_pktmbuf_mtod(packet, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
	__m128i head = _mm_loadu_si128((const __m128i *)ether);

	if (CV_UNLIKELY(neighbour >= BENCH_NEIGHBOURS || !header_good(ether, ip)))
		return 0;
	ip->time_to_live--;
	ip->hdr_checksum++; // as l3fwd: the carry is left to chance
	_mm_storeu_si128(
		(__m128i *)ether, _mm_blend_epi16(head, reference->ether[neighbour], 0x7f));
	packet->port = neighbour & 1;
	return 1;
}

static CV_HOT uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	const struct reference *reference = state;
	const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
	uint16_t forwarded = 0;
	uint16_t i = 0;

	for (i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (i = 0; i + 4 <= n; i += 4) {
		uint32_t next_hops[4];
		rte_be32_t to[4];

		for (unsigned j = 0; j < 4; j++) {
			if (i + j + PREFETCH_AHEAD < n)
				rte_prefetch0(
					rte_pktmbuf_mtod(packets[i + j + PREFETCH_AHEAD], void *));
			to[j] = rte_pktmbuf_mtod_offset(
				packets[i + j], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr))
					->dst_addr;
		}
		rte_lpm_lookupx4(reference->lpm,
			_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)to), swap), next_hops,
			NO_ROUTE);
		for (unsigned j = 0; j < 4; j++)
			forwarded += forward(reference, packets[i + j], next_hops[j]);
	}
	for (; i < n; i++) {
		uint32_t next_hop;
		rte_be32_t to = rte_pktmbuf_mtod_offset(
			packets[i], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr))
					->dst_addr;

		if (rte_lpm_lookup(reference->lpm, rte_be_to_cpu_32(to), &next_hop) != 0)
			next_hop = NO_ROUTE;
		forwarded += forward(reference, packets[i], next_hop);
	}
	return forwarded;
}

static void destroy(void *state)
{
	struct reference *reference = state;

	rte_lpm_free(reference->lpm);
	free(reference);
}

int bench_reference_router_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct rte_lpm_config config = {.max_rules = tables->entries, .number_tbl8s = 1};
	struct reference *reference = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*reference), RTE_CACHE_LINE_SIZE));
	char name[RTE_LPM_NAMESIZE];

	if (reference == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	for (unsigned i = 0; i < tables->entries; i++)
		config.number_tbl8s += tables->routes[i].length > 24;
	snprintf(name, sizeof(name), "reference.%u", tables->entries);
	reference->lpm = rte_lpm_create(name, SOCKET_ID_ANY, &config);
	if (reference->lpm == NULL) {
		cv_error_set(error, "no memory for the reference's LPM table: %s",
			rte_strerror(rte_errno));
		free(reference);
		return -1;
	}
	for (unsigned i = 0; i < BENCH_NEIGHBOURS; i++) {
		uint8_t head[16] = {0, 0, 0, 0, 0, 0, 2, 0xc0, 0x17, 0, 0, 1, 8, 0};

		bench_neighbour_mac(i, head);
		reference->ether[i] = _mm_loadu_si128((const __m128i *)head);
	}
	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_route *route = &tables->routes[i];

		if (rte_lpm_add(reference->lpm, route->prefix, route->length, route->neighbour) !=
			0) {
			cv_error_set(error, "the reference's LPM table is full at route %u", i);
			destroy(reference);
			return -1;
		}
	}
	*subject = (struct bench_subject){.run = run, .destroy = destroy, .state = reference};
	return 0;
}
