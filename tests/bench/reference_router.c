// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The yardstick for the router: plain DPDK, an mbuf per packet, written after what the DPDK sample
// applications guide says of l3fwd (LPM, RFC 1812 checks): header checks, rte_lpm_lookupx4 over
// four destinations at a time, both MAC addresses written in one 16-byte store, TTL and checksum.
// Of more routes than rte_lpm takes in some seconds (the time grows with their square), as its FIB
// mode does it: rte_fib_lookup_bulk().
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_fib.h>
#include <rte_ip.h>
#include <rte_lpm.h>
#include <rte_prefetch.h>
#include <rte_vect.h>

#include "chain/nf.h"
#include "dpdk/table_memory.h"
#include "packet/compiler.h"
#include "tests/bench/bench.h"

#define PREFETCH_AHEAD 8
#define NO_ROUTE UINT16_MAX
#define LPM_ROUTES_MAX 100000

struct reference {
	struct rte_lpm *lpm; // or
	struct rte_fib *fib;
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

static CV_HOT uint16_t run_fib(void *state, struct rte_mbuf **packets, uint16_t n)
{
	const struct reference *reference = state;
	uint32_t to[CV_BURST_MAX];
	uint64_t next_hops[CV_BURST_MAX];
	uint16_t forwarded = 0;

	for (uint16_t i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(packets[i + PREFETCH_AHEAD], void *));
		to[i] = rte_be_to_cpu_32(rte_pktmbuf_mtod_offset(
			packets[i], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr))
						 ->dst_addr);
	}
	if (rte_fib_lookup_bulk(reference->fib, to, next_hops, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		forwarded += forward(reference, packets[i], (uint32_t)next_hops[i]);
	return forwarded;
}

static void destroy(void *state)
{
	struct reference *reference = state;

	rte_lpm_free(reference->lpm);
	rte_fib_free(reference->fib);
	free(reference);
}

static int add_to_lpm(
	struct reference *reference, const struct bench_tables *tables, struct cv_error *error)
{
	struct rte_lpm_config config = {.max_rules = tables->entries, .number_tbl8s = 1};
	int socket;
	char name[RTE_LPM_NAMESIZE];

	for (unsigned i = 0; i < tables->entries; i++)
		config.number_tbl8s += tables->routes[i].length > 24;
	snprintf(name, sizeof(name), "reference.%u", tables->entries);
	socket = cv_table_memory(
		(((size_t)1 << 24) + config.number_tbl8s * 256ul) * 4 + config.max_rules * 16ul);
	reference->lpm = rte_lpm_create(name, socket, &config);
	if (reference->lpm == NULL) {
		cv_error_set(error, "no memory for the reference's LPM table: %s",
			rte_strerror(rte_errno));
		return -1;
	}
	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_route *route = &tables->routes[i];

		if (rte_lpm_add(reference->lpm, route->prefix, route->length, route->neighbour) !=
			0) {
			cv_error_set(error, "the reference's LPM table is full at route %u", i);
			return -1;
		}
	}
	return 0;
}

static int add_to_fib(
	struct reference *reference, const struct bench_tables *tables, struct cv_error *error)
{
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = NO_ROUTE,
		.max_routes = (int)tables->entries,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = 1},
	};
	char name[32];
	int socket;

	for (unsigned i = 0; i < tables->entries; i++)
		config.dir24_8.num_tbl8 += tables->routes[i].length > 24;
	snprintf(name, sizeof(name), "reference.%u", tables->entries);
	socket = cv_table_memory((((size_t)1 << 24) + config.dir24_8.num_tbl8 * 256ul) * 4 +
				 tables->entries * 400ul);
	reference->fib = rte_fib_create(name, socket, &config);
	if (reference->fib == NULL) {
		cv_error_set(
			error, "no memory for the reference's FIB: %s", rte_strerror(rte_errno));
		return -1;
	}
	rte_fib_select_lookup(reference->fib, RTE_FIB_LOOKUP_DEFAULT);
	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_route *route = &tables->routes[i];

		if (rte_fib_add(reference->fib, route->prefix, route->length, route->neighbour) !=
			0) {
			cv_error_set(error, "the reference's FIB is full at route %u", i);
			return -1;
		}
	}
	return 0;
}

int bench_reference_router_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct reference *reference = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*reference), RTE_CACHE_LINE_SIZE));
	const bool fib = tables->entries > LPM_ROUTES_MAX;

	if (reference == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(reference, 0, sizeof(*reference));
	for (unsigned i = 0; i < BENCH_NEIGHBOURS; i++) {
		uint8_t head[16] = {0, 0, 0, 0, 0, 0, 2, 0xc0, 0x17, 0, 0, 1, 8, 0};

		bench_neighbour_mac(i, head);
		reference->ether[i] = _mm_loadu_si128((const __m128i *)head);
	}
	if ((fib ? add_to_fib(reference, tables, error) : add_to_lpm(reference, tables, error)) !=
		0) {
		destroy(reference);
		return -1;
	}
	*subject = (struct bench_subject){
		.run = fib ? run_fib : run, .destroy = destroy, .state = reference};
	return 0;
}
