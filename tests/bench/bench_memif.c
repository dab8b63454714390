// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of a memif port, as server and as client: with DPDK's driver, with our rings and a
// buffer for each packet, and with our rings and packets coalesced into few buffers and scattered out
// of them. The other end is always ours, in a thread on another core of this process.
//
//   bench-memif [ROUNDS [BYTES]]        11 rounds, packets of 60 bytes (64 with FCS)
//
// Prints one JSON object: {"schema": "convoy.bench.memif/2", "results": [{"row", "role",
// "packet_bytes", "cycles_per_packet": {"median", "min", "max"}}]}.
//
// The two alternate: the peer fills 512 descriptors, then the port empties them in calls of 32
// packets; or the port fills them and the peer empties them. Only the port's calls are timed, so
// that lines move between the cores as under load and nobody waits for anybody meanwhile. Buffers go
// around, each again when 1,024 other packets have been. Allocating counts where the port allocates,
// freeing where it frees. The rows are measured alternately, round by round.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "port/packet_pool.h"
#include "port/port.h"
#include "tests/support/test_port.h"

#define FILL 512
#define BURST 32
#define LAPS 30 // fills of a round that count
#define WARM_LAPS 3
#define ROUNDS_MAX 1001
#define WAIT_S 20
#define PACKETS 1024 // that go around
#define FRAMES 48 // that so many short ones lie in

static struct rte_mempool *pool;
static unsigned bytes = 60;
static char folder[] = "/tmp/convoy-bench-XXXXXX";

struct side {
	const char *role; // of the port that is measured
	const char *datapath; // its
	struct cv_port *port, *peer;
};

static struct side sides[] = {
	{"server", "memif", NULL, NULL},
	{"client", "memif", NULL, NULL},
	{"server", "dpdk", NULL, NULL},
	{"client", "dpdk", NULL, NULL},
};

static void die(const char *what)
{
	fprintf(stderr, "bench-memif: %s\n", what);
	exit(1);
}

static struct cv_port *open_port(
	unsigned index, const char *path, const char *role, const char *datapath)
{
	struct cv_error error = {""};
	json_t *config = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "name", "m", "kind", "memif",
		"path", path, "role", role, "datapath", datapath, "trusted",
		strcmp(datapath, "dpdk") == 0);
	struct cv_port *port = test_port_open(config, index, 1, pool, &error);

	if (port == NULL || cv_port_start(port, &error) != 0)
		die(error.text);
	return port;
}

static bool is_up(const struct cv_port *port)
{
	json_t *info = port->info(port);
	const char *link = json_string_value(json_object_get(info, "link"));
	const bool up = link != NULL && strcmp(link, "up") == 0;

	json_decref(info);
	return up;
}

static void join(struct side *side, unsigned index)
{
	struct rte_mbuf *none;
	char path[64];

	snprintf(path, sizeof(path), "%s/%u", folder, index);
	side->port = open_port(2 * index, path, side->role, side->datapath);
	side->peer = open_port(2 * index + 1, path,
		strcmp(side->role, "server") == 0 ? "client" : "server", "memif");
	for (unsigned i = 0; !is_up(side->port) || !is_up(side->peer); i++) {
		if (i > WAIT_S * 100)
			die("the two ends do not find each other");
		usleep(10000);
	}
	// DPDK's client offers buffers when it looks for packets.
	side->port->rx(side->port, 0, &none, 1);
}

// The other end: does one thing at a time, when it is told.
static struct {
	struct cv_port *port; // atomic: NULL: nothing to do
	bool sends;
	bool quit; // atomic
} peer;

static void make(struct rte_mbuf **packets, unsigned n)
{
	if (rte_pktmbuf_alloc_bulk(pool, packets, n) != 0)
		die("no buffers");
	for (unsigned i = 0; i < n; i++)
		memset(rte_pktmbuf_append(packets[i], (uint16_t)bytes), (int)i, bytes);
}

static void fill(struct cv_port *port)
{
	struct rte_mbuf *packets[BURST];

	for (unsigned sent = 0; sent < FILL; sent += BURST) {
		make(packets, BURST);
		for (unsigned i = 0; i < BURST;)
			i += port->tx(port, 0, packets + i, (uint16_t)(BURST - i));
	}
}

static void drain(struct cv_port *port)
{
	struct rte_mbuf *packets[BURST];

	for (unsigned got = 0; got < FILL;) {
		const uint16_t n = port->rx(port, 0, packets, BURST);

		rte_pktmbuf_free_bulk(packets, n);
		got += n;
	}
}

static void pin(unsigned which)
{
	cpu_set_t all, one;
	int core = -1;

	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE && core < 0; i++)
		core = CPU_ISSET(i, &all) && which-- == 0 ? i : -1;
	if (core < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *be_peer(void *unused)
{
	(void)unused;
	pin(1);
	while (!__atomic_load_n(&peer.quit, __ATOMIC_RELAXED)) {
		// Pairs with the release in let_peer().
		struct cv_port *port = __atomic_load_n(&peer.port, __ATOMIC_ACQUIRE);

		if (port == NULL) {
			sched_yield();
			continue;
		}
		if (peer.sends)
			fill(port);
		else
			drain(port);
		__atomic_store_n(&peer.port, NULL, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void let_peer(struct cv_port *port, bool sends)
{
	peer.sends = sends;
	__atomic_store_n(&peer.port, port, __ATOMIC_RELEASE);
	// Pairs with the release in be_peer().
	while (__atomic_load_n(&peer.port, __ATOMIC_ACQUIRE) != NULL)
		sched_yield();
}

// Received buffers, kept for a while.
struct shelf {
	struct rte_mbuf *buffers[PACKETS];
	unsigned room, at;
};

static struct shelf single = {.room = PACKETS}, coalesced = {.room = FRAMES};

// Frees those n buffers that have been on the shelf longest, and puts n <= BURST others on it.
static void put_away(struct rte_mbuf **buffers, unsigned n, struct shelf *shelf)
{
	if (shelf->buffers[0] == NULL &&
		rte_pktmbuf_alloc_bulk(pool, shelf->buffers, shelf->room) != 0)
		die("no buffers");
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *oldest = shelf->buffers[shelf->at];

		shelf->buffers[shelf->at] = buffers[i];
		buffers[i] = oldest;
		shelf->at = (shelf->at + 1) % shelf->room;
	}
	rte_pktmbuf_free_bulk(buffers, n);
}

static unsigned receive(struct cv_port *port, uint64_t *cycles)
{
	struct rte_mbuf *packets[BURST];
	const uint64_t begin = rte_rdtsc();
	const unsigned got = port->rx(port, 0, packets, BURST);

	*cycles += rte_rdtsc() - begin;
	put_away(packets, got, &single);
	return got;
}

static unsigned coalesce(struct cv_port *port, uint64_t *cycles)
{
	struct cv_view views[BURST];
	struct cv_buffers buffers;
	const uint64_t begin = rte_rdtsc();
	const unsigned got = port->rx_views(port, 0, views, BURST, &buffers);

	*cycles += rte_rdtsc() - begin;
	put_away(buffers.buffers, buffers.n, &coalesced);
	return got;
}

static unsigned transmit(struct cv_port *port, uint64_t *cycles)
{
	struct rte_mbuf *packets[BURST];
	unsigned sent;
	uint64_t begin;

	make(packets, BURST);
	begin = rte_rdtsc();
	sent = port->tx(port, 0, packets, BURST);
	*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets + sent, BURST - sent);
	return sent;
}

static unsigned scatter(struct cv_port *port, uint64_t *cycles)
{
	static uint8_t frames[FRAMES][2048];
	static unsigned next;
	struct cv_view views[BURST];
	const unsigned packets = bytes + 2 < 1466 ? 1466 / (bytes + 2) : 1;
	unsigned sent;
	uint64_t begin;

	for (unsigned i = 0; i < BURST; i++)
		views[i] = (struct cv_view){.data = frames[(next + i / packets) % FRAMES] +
						    i % packets * (bytes + 2) + 2,
			.len = (uint16_t)bytes};
	next += BURST / packets + 1;
	begin = rte_rdtsc();
	sent = port->tx_views(port, 0, views, BURST);
	*cycles += rte_rdtsc() - begin;
	return sent;
}

static const struct row {
	const char *name, *datapath;
	bool receives;
	unsigned (*call)(struct cv_port *port, uint64_t *cycles);
} rows[] = {
	{"dpdk_rx", "dpdk", true, receive},
	{"plain_rx", "memif", true, receive},
	{"coalesce", "memif", true, coalesce},
	{"dpdk_tx", "dpdk", false, transmit},
	{"plain_tx", "memif", false, transmit},
	{"scatter", "memif", false, scatter},
};

static double measure(const struct side *side, const struct row *row)
{
	uint64_t cycles = 0;

	for (unsigned lap = 0; lap < WARM_LAPS + LAPS; lap++) {
		const uint64_t deadline = rte_rdtsc() + WAIT_S * rte_get_tsc_hz();

		if (lap == WARM_LAPS)
			cycles = 0;
		if (row->receives)
			let_peer(side->peer, true);
		for (unsigned moved = 0; moved < FILL;) {
			if (rte_rdtsc() > deadline)
				die("packets are lost");
			moved += row->call(side->port, &cycles);
		}
		if (!row->receives)
			let_peer(side->peer, false);
	}
	return (double)cycles / (LAPS * FILL);
}

static int by_value(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

#define RESULTS (RTE_DIM(rows) * 2)

// Server and client of each row.
static const struct side *side_of(unsigned result)
{
	const bool dpdk = strcmp(rows[result / 2].datapath, "dpdk") == 0;

	return &sides[(dpdk ? 2 : 0) + result % 2];
}

static void print(double (*cycles)[ROUNDS_MAX], unsigned rounds)
{
	printf("{\"schema\": \"convoy.bench.memif/2\", \"results\": [");
	for (unsigned i = 0; i < RESULTS; i++) {
		qsort(cycles[i], rounds, sizeof(double), by_value);
		printf("%s\n  {\"row\": \"%s\", \"role\": \"%s\", \"packet_bytes\": %u, "
		       "\"cycles_per_packet\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}}",
			i > 0 ? "," : "", rows[i / 2].name, side_of(i)->role, bytes,
			cycles[i][rounds / 2], cycles[i][0], cycles[i][rounds - 1]);
	}
	printf("\n]}\n");
}

static void start_eal(char *self)
{
	char prefix[32];
	char *eal[] = {self, "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=*:error",
		"--file-prefix", prefix, "-m", "256", "--no-huge", "--single-file-segments", NULL};
	cpu_set_t cores;

	snprintf(prefix, sizeof(prefix), "bench-%d", getpid());
	sched_getaffinity(0, sizeof(cores), &cores);
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]) - 1, eal) < 0)
		die("no EAL");
	sched_setaffinity(0, sizeof(cores), &cores);
	pool = cv_packet_pool_create("pool", 16383, 256, RTE_MBUF_DEFAULT_BUF_SIZE, false);
	if (pool == NULL)
		die("no pool");
}

int main(int argc, char **argv)
{
	static double cycles[RESULTS][ROUNDS_MAX];
	const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 11;
	pthread_t thread;

	bytes = argc > 2 ? (unsigned)atoi(argv[2]) : bytes;
	if (rounds < 1 || rounds > ROUNDS_MAX || bytes < 14 || bytes > 1514)
		die("bench-memif [ROUNDS [BYTES]]: 1 to 1001 rounds, 14 to 1514 bytes");
	start_eal(argv[0]);
	if (mkdtemp(folder) == NULL)
		die(folder);
	for (unsigned i = 0; i < RTE_DIM(sides); i++)
		join(&sides[i], i);
	if (pthread_create(&thread, NULL, be_peer, NULL) != 0)
		die("no thread");
	pin(0);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < RESULTS; i++)
			cycles[i][round] = measure(side_of(i), &rows[i / 2]);
	}
	__atomic_store_n(&peer.quit, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < RTE_DIM(sides); i++) {
		sides[i].peer->close(sides[i].peer);
		sides[i].port->close(sides[i].port);
	}
	rmdir(folder);
	print(cycles, rounds);
	return 0;
}
