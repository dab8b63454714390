// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What libconvoy_ethdev.so itself costs, in cycles per packet: a driver that costs next to nothing
// gives convoys that were not touched for long, a program sends what it received. Best of many
// short runs, so that whatever else the machine does matters little.
//
//   bench-ethdev [packets in a convoy [their bytes]]

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "convoy/frame.h"
#include "preload/ethdev/receive.h"
#include "preload/ethdev/send.h"

#define CARRIERS 1024u // 2 MiB and more: beyond the second-level cache
#define BURST 32
#define RUN 64 // bursts
#define RUNS 4000

static struct rte_mbuf *line[CARRIERS]; // frames on their way round
static uint32_t head, tail;

static uint16_t stub_receive(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		mbufs[i] = line[head++ % CARRIERS];
	return n;
}

static uint16_t stub_send(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		line[tail++ % CARRIERS] = mbufs[i];
	return n;
}

static void macswap(struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *at = rte_pktmbuf_mtod(mbufs[i], uint8_t *), mac[6];

		memcpy(mac, at, 6);
		memmove(at, at + 6, 6);
		memcpy(at + 6, mac, 6);
		mbufs[i]->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
		mbufs[i]->l2_len = 14;
		mbufs[i]->l3_len = 20;
	}
}

enum program { IO, MACSWAP, REORDER };
static const char *const names[] = {"io", "macswap", "reorder"};

struct spent {
	double rx, tx;
};

static struct spent run(struct cv_rx_queue *rx, struct cv_tx_queue *tx, enum program program)
{
	struct spent best = {1e9, 1e9};

	for (unsigned r = 0; r < RUNS; r++) {
		uint64_t in = 0, out = 0, packets = 0;

		for (unsigned i = 0; i < RUN; i++) {
			struct rte_mbuf *mbufs[BURST];
			uint64_t a = rte_rdtsc(), b, c;
			uint16_t n = cv_receive(rx, mbufs, BURST);

			b = rte_rdtsc();
			packets += n;
			in += b - a;
			if (program == MACSWAP)
				macswap(mbufs, n);
			b = rte_rdtsc();
			if (program == REORDER && n > 1) {
				struct rte_mbuf *first = mbufs[0];

				mbufs[0] = mbufs[1];
				mbufs[1] = first;
			}
			cv_send(tx, mbufs, n);
			c = rte_rdtsc();
			out += c - b;
		}
		best.rx = RTE_MIN(best.rx, (double)in / (double)packets);
		best.tx = RTE_MIN(best.tx, (double)out / (double)packets);
	}
	return best;
}

static struct rte_mempool *pool;
static struct cv_outer next_hop;

static void fill(unsigned n, unsigned bytes)
{
	const struct cv_outer_config config = {
		.version = 4, .dst_mac = {2}, .src_mac = {4}, .src = {1}, .dst = {2}};
	static uint8_t packet[1514] = {[12] = 8, [14] = 0x45};
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_outer outer;

	cv_outer_set(&outer, &config, NULL);
	next_hop = outer;
	for (unsigned i = 0; i < n; i++)
		cv_view_set(&views[i], packet, (uint16_t)bytes);
	for (unsigned i = 0; i < CARRIERS; i++) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
		struct cv_frame built;
		uint16_t len;

		if (mbuf == NULL)
			exit(1);
		cv_frame_begin(&built, &outer, rte_pktmbuf_mtod(mbuf, uint8_t *), 1600);
		cv_frame_add(&built, views, (uint16_t)n);
		uint8_t *frame = cv_frame_close(&built, &len);
		mbuf->data_off = (uint16_t)(frame - (uint8_t *)mbuf->buf_addr);
		mbuf->data_len = len;
		mbuf->pkt_len = len;
		line[i] = mbuf;
	}
	head = tail = 0;
}

static void one(const char *mode, struct cv_mbuf_set_pool *sets, struct rte_mempool *buffers,
	enum program program, unsigned n, unsigned bytes)
{
	static const struct cv_return_next_hops *returns[1];
	static _Atomic bool flag;
	static struct cv_rx_queue rx;
	static struct cv_tx_queue tx;
	struct cv_ethdev_config config;
	struct cv_headroom headroom = {.needed = false};
	struct spent spent;

	cv_ethdev_config_read(&config, CV_ETHDEV_ENV, NULL, NULL);
	memset(&rx, 0, sizeof(rx));
	memset(&tx, 0, sizeof(tx));
	rx.receive = stub_receive;
	rx.config = &config;
	rx.any_convoys = rx.speaks = &flag;
	tx.convoys = tx.speaks = &flag;
	tx.returns = returns;
	tx.returns_count = 1;
	returns[0] = &rx.returns;
	rx.sets = sets;
	rx.headroom.headroom = tx.headroom = strcmp(mode, "auto") == 0 ? &headroom : NULL;
	rx.port = rte_cpu_to_be_16(CV_CONVOY_PORT);
	tx.udp_port = rx.port;
	// Programs clear the flags of packets, and with them where a copy came from: as with --next-hop.
	config.fixed = strcmp(mode, "view") != 0;
	tx.fixed = config.fixed ? &next_hop : NULL;
	tx.send = stub_send;
	tx.buffers = buffers;
	fill(n, bytes);
	spent = run(&rx, &tx, program);
	printf("%-5s %-13s %3u x %4u B   rx %6.1f   tx %6.1f   sum %6.1f cycles per packet\n", mode,
		names[program], n, bytes, spent.rx, spent.tx, spent.rx + spent.tx);
	cv_receive_clear(&rx);
	for (unsigned i = 0; i < CARRIERS; i++)
		rte_pktmbuf_free(line[i]);
}

int main(int argc, char **argv)
{
	char *arguments[] = {argv[0], (char *)"--no-huge", (char *)"-m", (char *)"256",
		(char *)"--no-pci", (char *)"--no-telemetry", (char *)"--no-shconf",
		(char *)"--log-level=lib.*:error", NULL};
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 22;
	unsigned bytes = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
	struct rte_mempool *buffers;

	if (rte_eal_init(8, arguments) < 0)
		return 1;
	if (!cv_return_name_register())
		return 1;
	pool = rte_pktmbuf_pool_create("program", 16383, 256, 0, 2176, SOCKET_ID_ANY);
	buffers = rte_pktmbuf_pool_create("buffers", 4095, 256, 0, 1700, SOCKET_ID_ANY);
	if (pool == NULL || buffers == NULL)
		return 1;
	struct cv_mbuf_set_pool *sets = cv_mbuf_set_pool_get(pool);
	for (enum program program = IO; program <= REORDER; program++) {
		one("view", sets, buffers, program, n, bytes);
		one("auto", sets, buffers, program, n, bytes);
		one("copy", NULL, buffers, program, n, bytes);
	}
	rte_eal_cleanup();
	return 0;
}
