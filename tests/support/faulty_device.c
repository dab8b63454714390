// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A device under test that does its work, or nearly: a firewall by destination port, then a router
// by prefix, between two ports. A line on standard input plants a fault: none, drop, checksum,
// skipped-rule, cached, reorder, duplicate. The testbed must catch each of them.
//
// faulty-device [EAL options] -- DENIED_PORT PREFIX/LENGTH=MAC …
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define BURST 32
#define ROUTES 64
#define DROP_EVERY 100000
#define HOLD_EVERY 10000
#define HOLD_PKTS 5000 // more than there are flows: one of its own flow overtakes it
#define CACHE 1024

enum fault { NONE, DROP, CHECKSUM, SKIPPED_RULE, CACHED, REORDER, DUPLICATE, FAULTS };
static const char *const names[FAULTS] = {
	"none", "drop", "checksum", "skipped-rule", "cached", "reorder", "duplicate"};

struct route {
	uint32_t prefix, mask;
	uint8_t mac[6];
};

static struct route routes[ROUTES];
static int route_count;
static uint16_t denied;
static const uint8_t own[6] = {2, 0, 0, 0, 0x0c, 2};
static enum fault fault;
static uint64_t forwarded;
static int cache[CACHE]; // by destination: 1 + what was answered to the last packet that had it
static struct rte_mbuf *held;
static uint64_t held_at;

static uint32_t get(const uint8_t *at, int bytes)
{
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

static int look_up(uint32_t dst)
{
	int best = -1;

	for (int i = 0; i < route_count; i++)
		if ((dst & routes[i].mask) == routes[i].prefix &&
			(best < 0 || routes[i].mask > routes[best].mask))
			best = i;
	return best;
}

// The route of a packet, or -1: it is dropped.
static int route_of(const uint8_t *ip)
{
	const bool ports = ip[9] == 6 || ip[9] == 17;
	const uint32_t dst = get(ip + 16, 4);
	int *known = &cache[dst % CACHE];

	if (fault == CACHED && *known != 0)
		return *known - 2;
	int route = look_up(dst);
	if (fault != SKIPPED_RULE && ip[9] == 17 && ports && get(ip + 22, 2) == denied)
		route = -1;
	if (ip[8] <= 1)
		route = -1;
	*known = route + 2;
	return route;
}

// RFC 1624; the planted fault forgets the carry.
static void decrement(uint8_t *ip)
{
	uint32_t sum = get(ip + 10, 2) + 0x100;

	if (fault != CHECKSUM)
		sum = (sum & 0xffff) + (sum >> 16);
	ip[8]--;
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void send_one(struct rte_mbuf *packet)
{
	if (rte_eth_tx_burst(1, 0, &packet, 1) == 0)
		rte_pktmbuf_free(packet);
}

static void forward(struct rte_mbuf *packet)
{
	uint8_t *frame = rte_pktmbuf_mtod(packet, uint8_t *);
	const int route =
		packet->data_len < 34 || get(frame + 12, 2) != 0x0800 ? -1 : route_of(frame + 14);

	if (route < 0 || (fault == DROP && ++forwarded % DROP_EVERY == 0)) {
		rte_pktmbuf_free(packet);
		return;
	}
	decrement(frame + 14);
	memcpy(frame, routes[route].mac, 6);
	memcpy(frame + 6, own, 6);
	forwarded += fault != DROP;
	if (fault == REORDER && held == NULL && forwarded % HOLD_EVERY == 0) {
		held = packet;
		held_at = forwarded;
		return;
	}
	if (fault == DUPLICATE && forwarded % HOLD_EVERY == 0) {
		struct rte_mbuf *again = rte_pktmbuf_copy(packet, packet->pool, 0, UINT32_MAX);

		if (again != NULL)
			send_one(again);
	}
	send_one(packet);
	if (held != NULL && forwarded - held_at >= HOLD_PKTS) {
		send_one(held);
		held = NULL;
	}
}

static bool read_fault(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[32];

	if (poll(&input, 1, 0) == 0)
		return true;
	if (fgets(line, sizeof(line), stdin) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < FAULTS; i++)
		if (strcmp(line, names[i]) == 0)
			fault = (enum fault)i;
	memset(cache, 0, sizeof(cache));
	forwarded = 0;
	printf("%s\n", names[fault]);
	return true;
}

static int start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf configuration = {0};
	const int rc = rte_eth_dev_configure(port, 1, 1, &configuration);

	if (rc < 0 || rte_eth_rx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL, pool) < 0 ||
		rte_eth_tx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL) < 0)
		return -1;
	return rte_eth_dev_start(port);
}

int main(int argc, char **argv)
{
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used < 3)
		return 2;
	argv += used;
	denied = (uint16_t)atoi(argv[1]);
	for (int i = 2; argv[i] != NULL && route_count < ROUTES; i++) {
		struct route *route = &routes[route_count++];
		char address[16];
		int length, mac[6];

		if (sscanf(argv[i], "%15[^/]/%d=%x:%x:%x:%x:%x:%x", address, &length, &mac[0],
			    &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 8)
			return 2;
		struct in_addr parsed;
		if (inet_pton(AF_INET, address, &parsed) != 1)
			return 2;
		route->prefix = ntohl(parsed.s_addr);
		route->mask = length == 0 ? 0 : UINT32_MAX << (32 - length);
		for (int k = 0; k < 6; k++)
			route->mac[k] = (uint8_t)mac[k];
	}
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"pool", 8191, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL || start(0, pool) < 0 || start(1, pool) < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	for (uint64_t i = 0; i % 1024 != 0 || read_fault(); i++) {
		struct rte_mbuf *packets[BURST];
		const uint16_t count = rte_eth_rx_burst(0, 0, packets, BURST);

		for (uint16_t k = 0; k < count; k++)
			forward(packets[k]);
	}
	return 0;
}
