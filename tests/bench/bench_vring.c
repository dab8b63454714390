// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of moving packets between the host and a guest over a vhost-user socket: what
// DPDK's rte_vhost costs, our vring with a buffer for each packet (the control), and our vring with
// packets gathered into few buffers and scattered out of them. The guest is another process on
// another core: DPDK's virtio-user driver, sending or receiving as fast as it can.
//
//   bench-vring [ROUNDS [BYTES]]        11 rounds, packets of 60 bytes (64 with FCS)
//
// Prints one JSON object: {"schema": "convoy.bench.vring/1", "results": [{"row", "packet_bytes",
// "cycles_per_packet": {"median", "min", "max"}, "packets_per_call", "mpps"}]}. The rows are
// measured in turns, round by round, on the same rings; only calls that moved something count,
// with the buffers' freeing where the host frees.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_vhost.h>

#include "vhost_port.h"

#define BURST 64
#define STOCK_BURST 32 // rte_vhost moves no more in a call
#define SLICE_MS 30
#define ROUNDS_MAX 1001
#define WAIT_S 20
#define FRAMES 64 // that packets are scattered from

extern char **environ;

static struct rte_mempool *pool;
static unsigned bytes = 60;
static volatile uint64_t sink;

struct side {
	struct cv_vhost_port *port;
	pid_t guest;
	char path[128];
};

struct row {
	const char *name;
	bool to_guest;
	// One call. Adds the cycles it took to *cycles if it moved something; returns how many.
	unsigned (*move)(struct side *side, uint64_t *cycles);
	double cycles[ROUNDS_MAX], mpps, per_call;
};

static void die(const char *what)
{
	fprintf(stderr, "bench-vring: %s\n", what);
	exit(1);
}

static struct cv_port *open_port(const char *format, const char *path, unsigned index)
{
	struct cv_error error = {""};
	struct cv_port *port;
	char text[512];
	json_t *config;

	snprintf(text, sizeof(text), format, path);
	config = json_loads(text, 0, NULL);
	if (config == NULL || cv_port_check(config, &error) != 0)
		die(error.text);
	port = cv_port_open(config, index, 1, pool, &error);
	if (port == NULL || port->start(port, &error) != 0)
		die(error.text);
	json_decref(config);
	return port;
}

// The guest's process: sends without end, or takes what comes.
__attribute__((noreturn)) static void guest(const char *job, const char *path, unsigned len)
{
	struct rte_mbuf *packets[BURST];
	struct cv_port *port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	port = open_port("{\"name\": \"g\", \"kind\": \"virtio-user\", \"path\": \"%s\"}", path, 7);
	if (strcmp(job, "sink") == 0) {
		for (;;)
			rte_pktmbuf_free_bulk(packets, port->rx(port, 0, packets, BURST));
	}
	for (;;) {
		unsigned sent;

		if (rte_pktmbuf_alloc_bulk(pool, packets, 32) != 0)
			continue;
		for (unsigned i = 0; i < 32; i++)
			memset(rte_pktmbuf_append(packets[i], (uint16_t)len), (int)i, len);
		sent = port->tx(port, 0, packets, 32);
		rte_pktmbuf_free_bulk(packets + sent, 32 - sent);
	}
}

static unsigned stock_dequeue(struct side *side, uint64_t *cycles)
{
	struct rte_mbuf *packets[STOCK_BURST];
	uint64_t begin = rte_rdtsc();
	unsigned got =
		rte_vhost_dequeue_burst(side->port->device.vid, 1, pool, packets, STOCK_BURST);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets, got);
	return got;
}

static unsigned plain_dequeue(struct side *side, uint64_t *cycles)
{
	struct cv_port *port = &side->port->port;
	struct rte_mbuf *packets[BURST];
	uint64_t begin = rte_rdtsc();
	unsigned got = port->rx(port, 0, packets, BURST);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets, got);
	return got;
}

static unsigned gather(struct side *side, uint64_t *cycles)
{
	struct cv_port *port = &side->port->port;
	struct cv_view views[CV_VIEWS_MAX];
	struct cv_buffers buffers;
	uint64_t begin = rte_rdtsc();
	unsigned got = port->rx_views(port, 0, views, CV_VIEWS_MAX, &buffers);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
	return got;
}

static void make(struct rte_mbuf **packets, unsigned n)
{
	if (rte_pktmbuf_alloc_bulk(pool, packets, n) != 0)
		die("no buffers");
	for (unsigned i = 0; i < n; i++)
		memset(rte_pktmbuf_append(packets[i], (uint16_t)bytes), (int)i, bytes);
}

static unsigned stock_enqueue(struct side *side, uint64_t *cycles)
{
	struct rte_mbuf *packets[STOCK_BURST];
	unsigned sent;
	uint64_t begin;

	make(packets, STOCK_BURST);
	begin = rte_rdtsc();
	sent = rte_vhost_enqueue_burst(side->port->device.vid, 0, packets, STOCK_BURST);
	rte_pktmbuf_free_bulk(packets, sent);
	if (sent > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets + sent, STOCK_BURST - sent);
	return sent;
}

static unsigned plain_enqueue(struct side *side, uint64_t *cycles)
{
	struct cv_port *port = &side->port->port;
	struct rte_mbuf *packets[BURST];
	unsigned sent;
	uint64_t begin;

	make(packets, BURST);
	begin = rte_rdtsc();
	sent = port->tx(port, 0, packets, BURST);
	if (sent > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets + sent, BURST - sent);
	return sent;
}

static unsigned scatter(struct side *side, uint64_t *cycles)
{
	static uint8_t frames[FRAMES][2048];
	static struct cv_view views[BURST];
	static unsigned next;
	struct cv_port *port = &side->port->port;
	const unsigned packets = 1466 / (bytes + 2);
	unsigned sent;
	uint64_t begin;

	for (unsigned i = 0; i < BURST; i++) {
		uint8_t *frame = frames[(next + i / packets) % FRAMES];

		views[i].data = frame + i % packets * (bytes + 2) + 2;
		views[i].len = (uint16_t)bytes;
	}
	next += BURST / packets + 1;
	begin = rte_rdtsc();
	sent = port->tx_views(port, 0, views, BURST);
	if (sent > 0)
		*cycles += rte_rdtsc() - begin;
	return sent;
}

static struct row rows[] = {
	{"rte_vhost_dequeue", false, stock_dequeue, {0}, 0, 0},
	{"plain_dequeue", false, plain_dequeue, {0}, 0, 0},
	{"gather", false, gather, {0}, 0, 0},
	{"rte_vhost_enqueue", true, stock_enqueue, {0}, 0, 0},
	{"plain_enqueue", true, plain_enqueue, {0}, 0, 0},
	{"scatter", true, scatter, {0}, 0, 0},
};

static void start_guest(struct side *side, char *self, const char *job)
{
	char len[16];
	char *arguments[] = {self, "guest", (char *)(uintptr_t)job, side->path, len, NULL};

	snprintf(len, sizeof(len), "%u", bytes);
	if (posix_spawn(&side->guest, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
		die("no guest");
	for (double i = 0; !cv_vhost_is_up(&side->port->device); i++) {
		if (i > WAIT_S * 100)
			die("no guest came");
		usleep(10000);
	}
}

static void measure(struct side *side, struct row *row, unsigned round)
{
	const uint64_t slice = rte_get_tsc_hz() * SLICE_MS / 1000;
	const bool stock = strncmp(row->name, "rte_vhost", 9) == 0;
	uint64_t cycles = 0, packets = 0, calls = 0, warm, until, deadline;

	kill(side->guest, SIGCONT);
	if (stock)
		cv_vhost_pause(&side->port->device);
	warm = rte_rdtsc() + slice / 3;
	until = warm + slice;
	// Where others use the cores, the guest may not get its turn in a slice.
	deadline = warm + WAIT_S * rte_get_tsc_hz();
	while (rte_rdtsc() < warm)
		sink += row->move(side, &cycles);
	cycles = 0;
	while (rte_rdtsc() < until || (packets == 0 && rte_rdtsc() < deadline)) {
		unsigned moved = row->move(side, &cycles);

		packets += moved;
		calls += moved > 0;
	}
	if (stock)
		cv_vhost_resume(&side->port->device);
	kill(side->guest, SIGSTOP);
	if (packets == 0)
		die("no packets");
	row->cycles[round] = (double)cycles / (double)packets;
	row->per_call = (double)packets / (double)calls;
	row->mpps = (double)packets / SLICE_MS / 1e3;
}

static int by_value(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static void pin(unsigned which)
{
	cpu_set_t all, one;
	int core = -1;

	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE && core < 0; i++)
		core = CPU_ISSET(i, &all) && which-- == 0 ? i : -1;
	CPU_ZERO(&one);
	CPU_SET(core < 0 ? 0 : core, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	const bool is_guest = argc == 5 && strcmp(argv[1], "guest") == 0;
	static char folder[] = "/tmp/bench-vring-XXXXXX";
	static const char *const jobs[] = {"source", "sink"};
	const unsigned rounds = is_guest || argc < 2 ? 11 : (unsigned)atoi(argv[1]);
	struct side sides[2] = {0};
	char prefix[32];
	char *eal[] = {argv[0], "--no-huge", "-m", "256", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=*:error", "--file-prefix", prefix, NULL};
	cpu_set_t cores;

	if (argc > 2 && !is_guest)
		bytes = (unsigned)atoi(argv[2]);
	if (rounds < 1 || rounds > ROUNDS_MAX || bytes < 14 || bytes > 1464)
		die("usage: bench-vring [ROUNDS [BYTES]]");
	if (!is_guest && (mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0))
		die("no folder in /tmp");
	snprintf(prefix, sizeof(prefix), "bench-%d", getpid());
	sched_getaffinity(0, sizeof(cores), &cores);
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]) - 1, eal) < 0)
		die("no EAL");
	sched_setaffinity(0, sizeof(cores), &cores);
	pool = rte_pktmbuf_pool_create("pool", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	if (pool == NULL)
		die("no pool");
	if (is_guest) {
		pin(1);
		guest(argv[2], argv[3], (unsigned)atoi(argv[4]));
	}
	for (unsigned i = 0; i < 2; i++) {
		snprintf(sides[i].path, sizeof(sides[i].path), "%s/%s", folder, jobs[i]);
		sides[i].port = (struct cv_vhost_port *)open_port(
			"{\"name\": \"h\", \"kind\": \"vhost-user\", \"path\": \"%s\"}",
			sides[i].path, i);
		start_guest(&sides[i], argv[0], jobs[i]);
		kill(sides[i].guest, SIGSTOP);
	}
	pin(0);
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < RTE_DIM(rows); i++)
			measure(&sides[rows[i].to_guest], &rows[i], round);
	}
	printf("{\"schema\": \"convoy.bench.vring/1\", \"results\": [");
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		qsort(rows[i].cycles, rounds, sizeof(double), by_value);
		printf("%s\n  {\"row\": \"%s\", \"packet_bytes\": %u, \"cycles_per_packet\": "
		       "{\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}, \"packets_per_call\": "
		       "%.1f, \"mpps\": %.2f}",
			i > 0 ? "," : "", rows[i].name, bytes, rows[i].cycles[rounds / 2],
			rows[i].cycles[0], rows[i].cycles[rounds - 1], rows[i].per_call,
			rows[i].mpps);
	}
	printf("\n]}\n");
	for (unsigned i = 0; i < 2; i++) {
		kill(sides[i].guest, SIGKILL);
		kill(sides[i].guest, SIGCONT);
		waitpid(sides[i].guest, NULL, 0);
		sides[i].port->port.close(&sides[i].port->port);
	}
	rte_eal_cleanup();
	rmdir(folder);
	return 0;
}
