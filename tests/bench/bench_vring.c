// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of moving packets between the host and a guest over a vhost-user socket: what
// DPDK's rte_vhost costs, our vring with a buffer for each packet (the control), and our vring with
// packets coalesced into few buffers and scattered out of them; on split and on packed rings. The
// guest is another process on another core: DPDK's virtio-user driver, sending or receiving as fast
// as it can.
//
//   bench-vring [ROUNDS [BYTES [ROW]]]  11 rounds, packets of 60 bytes (64 with FCS), all rows
//
// Prints one JSON object: {"schema": "convoy.bench.vring/3", "hugepages", "results": [{"row", "ring",
// "packet_bytes", "cycles_per_packet": {"median", "min", "max"}, "packets_per_call"}]}. Uses
// hugepages where 300 of 2 MiB are free; without, the host's buffers lie where a node's do
// (packet_pool.h), for rte_vhost as well.
//
// The host is to be what is slow, as it is in a node under load: before each call it waits, and
// that does not count, until the guest has made a whole batch available. (A host that is faster than
// the guest finds what the guest is just writing, and pays for taking it out of its hands.) rte_vhost
// moves 32 packets in a call, the others 64. Buffers go around: each is used again when 1,024 other
// packets have been, so that they do not come from the first cache. Allocating counts where the port
// allocates, freeing where it frees. The rows are measured alternately, round by round.
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

#include "port/packet_pool.h"
#include "port/vhost_port.h"
#include "tests/support/test_port.h"

#define BURST 64
#define STOCK_BURST 32 // rte_vhost moves no more in a call
#define SLICE_MS 30
#define ROUNDS_MAX 1001
#define WAIT_S 20
#define PACKETS 1024 // that go around
#define FRAMES 48 // that so many short ones lie in
#define ROWS 6
#define HUGEPAGES 300
#define SIDES 8

extern char **environ;

static struct rte_mempool *pool;
static unsigned bytes = 60;
static bool hugepages;

struct side {
	const char *job; // of the guest
	bool packed, stock;
	struct cv_port *port;
	pid_t guest;
	char path[128];
	// The ring that packets go over.
	unsigned queue;
	int vid; // of a stock one
	struct rte_vhost_vring ring; // its; or what this needs of ours
};

struct row {
	const char *name;
	bool to_guest;
	bool stock;
	// One call. Adds the cycles it took to *cycles if it moved something; returns how many.
	unsigned (*move)(struct side *side, uint64_t *cycles);
};

struct result {
	double cycles[ROUNDS_MAX], per_call;
};

// Received buffers, kept for a while.
struct shelf {
	struct rte_mbuf *buffers[PACKETS];
	unsigned room, at;
};

static struct shelf single = {.room = PACKETS}, coalesced = {.room = FRAMES};

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

	snprintf(text, sizeof(text), format, path);
	port = test_port_open(json_loads(text, 0, NULL), index, 1, pool, &error);
	if (port == NULL || cv_port_start(port, &error) != 0)
		die(error.text);
	return port;
}

#define GUEST(packed)                                                       \
	"{\"name\": \"g\", \"kind\": \"dpdk\", \"devargs\": "               \
	"\"net_virtio_user7,path=%s,mac=02:00:00:00:00:07,queue_size=1024," \
	"packed_vq=" #packed "\"}"

#define HOST(more) "{\"name\": \"h\", \"kind\": \"vhost-user\", \"path\": \"%s\"" more "}"

static volatile uint64_t sink;

// A guest reads what it got. Lines that nobody else has had cost the host less to write.
static void read_all(struct rte_mbuf *const *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const char *const data = rte_pktmbuf_mtod(packets[i], const char *);

		for (unsigned at = 0; at < packets[i]->data_len; at += RTE_CACHE_LINE_SIZE)
			sink += (uint64_t)data[at];
	}
}

// The guest's process: sends without end, or takes what comes.
__attribute__((noreturn)) static void guest(
	const char *job, const char *path, unsigned len, bool packed)
{
	struct rte_mbuf *packets[BURST];
	struct cv_port *port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	port = open_port(packed ? GUEST(1) : GUEST(0), path, 7);
	if (strcmp(job, "sink") == 0) {
		for (;;) {
			const unsigned n = port->rx(port, 0, packets, BURST);

			read_all(packets, n);
			rte_pktmbuf_free_bulk(packets, n);
		}
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

static unsigned stock_dequeue(struct side *side, uint64_t *cycles)
{
	struct rte_mbuf *packets[STOCK_BURST];
	uint64_t begin = rte_rdtsc();
	unsigned got = rte_vhost_dequeue_burst(
		side->vid, (uint16_t)side->queue, pool, packets, STOCK_BURST);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	put_away(packets, got, &single);
	return got;
}

static unsigned plain_dequeue(struct side *side, uint64_t *cycles)
{
	struct cv_port *port = side->port;
	struct rte_mbuf *packets[BURST];
	uint64_t begin = rte_rdtsc();
	unsigned got = port->rx(port, 0, packets, BURST);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	put_away(packets, got, &single);
	return got;
}

static unsigned coalesce(struct side *side, uint64_t *cycles)
{
	struct cv_port *port = side->port;
	struct cv_view views[BURST];
	struct cv_buffers buffers;
	uint64_t begin = rte_rdtsc();
	unsigned got = port->rx_views(port, 0, views, BURST, &buffers);

	if (got > 0)
		*cycles += rte_rdtsc() - begin;
	put_away(buffers.buffers, buffers.n, &coalesced);
	return got;
}

static void make(struct rte_mbuf **packets, unsigned n)
{
	if (rte_pktmbuf_alloc_bulk(pool, packets, n) != 0)
		die("no buffers");
	for (unsigned i = 0; i < n; i++)
		memset(rte_pktmbuf_append(packets[i], (uint16_t)bytes), (int)i, bytes);
}

static unsigned send(struct side *side, unsigned n, bool stock, uint64_t *cycles)
{
	struct cv_port *port = side->port;
	struct rte_mbuf *packets[BURST];
	unsigned sent;
	uint64_t begin;

	make(packets, n);
	begin = rte_rdtsc();
	if (stock) {
		sent = rte_vhost_enqueue_burst(
			side->vid, (uint16_t)side->queue, packets, (uint16_t)n);
		rte_pktmbuf_free_bulk(packets, sent);
	} else {
		sent = port->tx(port, 0, packets, (uint16_t)n);
	}
	if (sent > 0)
		*cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(packets + sent, n - sent);
	return sent;
}

static unsigned stock_enqueue(struct side *side, uint64_t *cycles)
{
	return send(side, STOCK_BURST, true, cycles);
}

static unsigned plain_enqueue(struct side *side, uint64_t *cycles)
{
	return send(side, BURST, false, cycles);
}

static unsigned scatter(struct side *side, uint64_t *cycles)
{
	static uint8_t frames[FRAMES][2048];
	static struct cv_view views[BURST];
	static unsigned next;
	struct cv_port *port = side->port;
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

static const struct row rows[ROWS] = {
	{"rte_vhost_dequeue", false, true, stock_dequeue},
	{"plain_dequeue", false, false, plain_dequeue},
	{"coalesce", false, false, coalesce},
	{"rte_vhost_enqueue", true, true, stock_enqueue},
	{"plain_enqueue", true, false, plain_enqueue},
	{"scatter", true, false, scatter},
};

static struct cv_vring *vring_of(const struct side *side)
{
	return &((struct cv_vhost_port *)side->port)->device.queues[side->queue].vring;
}

static bool is_up(const struct side *side)
{
	json_t *info = side->port->info(side->port);
	const char *link = json_string_value(json_object_get(info, "link"));
	const bool up = link != NULL && strcmp(link, "up") == 0;

	json_decref(info);
	return up;
}

static void find_ring(struct side *side)
{
	char path[PATH_MAX] = "";

	if (!side->stock) {
		side->ring.desc = vring_of(side)->desc;
		side->ring.avail = vring_of(side)->avail;
		side->ring.size = vring_of(side)->size;
		return;
	}
	for (side->vid = 0; side->vid < SIDES; side->vid++) {
		if (rte_vhost_get_ifname(side->vid, path, sizeof(path)) == 0 &&
			strcmp(path, side->path) == 0 &&
			rte_vhost_get_vhost_vring(side->vid, (uint16_t)side->queue, &side->ring) ==
				0)
			return;
	}
	die("no ring");
}

static void start_guest(struct side *side, char *self)
{
	char len[16];
	char *arguments[] = {self, "guest", (char *)(uintptr_t)side->job, side->path, len,
		side->packed ? "packed" : "split", hugepages ? "hugepages" : "pages", NULL};

	snprintf(len, sizeof(len), "%u", bytes);
	if (posix_spawn(&side->guest, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
		die("no guest");
	for (double i = 0; !is_up(side); i++) {
		if (i > WAIT_S * 100)
			die("no guest came");
		usleep(10000);
	}
	find_ring(side);
}

// Has the guest made n buffers available?
static bool is_full(const struct side *side, unsigned n)
{
	const struct rte_vhost_vring *ring = &side->ring;
	struct cv_vring_base base;
	unsigned last;
	uint16_t flags;

	if (side->stock)
		rte_vhost_get_vring_base(side->vid, (uint16_t)side->queue, &base.avail, &base.used);
	else
		base = cv_vring_base(vring_of(side));
	if (!side->packed)
		return (uint16_t)(__atomic_load_n(&ring->avail->idx, __ATOMIC_ACQUIRE) -
				  base.avail) >= n;
	last = (base.avail & 0x7fff) + n - 1;
	flags = __atomic_load_n(&ring->desc_packed[last % ring->size].flags, __ATOMIC_ACQUIRE);
	// Available in this pass around the ring: AVAIL as the pass's wrap counter, USED not.
	return (flags >> 7 & 1) == ((base.avail >> 15) ^ (last >= ring->size)) &&
	       (flags >> 15 & 1) != (flags >> 7 & 1);
}

static void measure(struct side *side, const struct row *row, struct result *result, unsigned round)
{
	const uint64_t hz = rte_get_tsc_hz(), slice = hz * SLICE_MS / 1000;
	const unsigned batch = row->stock ? STOCK_BURST : BURST;
	uint64_t cycles = 0, packets = 0, calls = 0, warm, until, deadline;

	kill(side->guest, SIGCONT);
	warm = rte_rdtsc() + slice / 3;
	until = warm + slice;
	// Where others use the cores, the guest may not run within a slice.
	deadline = warm + WAIT_S * hz;
	for (;;) {
		const uint64_t now = rte_rdtsc();
		uint64_t took = 0;
		unsigned moved;

		if (now > until && (packets > 0 || now > deadline))
			break;
		if (!is_full(side, batch))
			continue;
		moved = row->move(side, &took);
		if (now < warm)
			continue;
		packets += moved;
		calls += moved > 0;
		cycles += took;
	}
	kill(side->guest, SIGSTOP);
	if (packets == 0)
		die("no packets");
	result->cycles[round] = (double)cycles / (double)packets;
	result->per_call = (double)packets / (double)calls;
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

static bool is_wanted(const struct row *row, const char *only)
{
	return only == NULL || strcmp(row->name, only) == 0;
}

static void print(struct result *results, unsigned rounds, const char *only)
{
	const char *comma = "";

	printf("{\"schema\": \"convoy.bench.vring/3\", \"hugepages\": %s, \"results\": [",
		hugepages ? "true" : "false");
	for (unsigned i = 0; i < 2 * ROWS; i++) {
		struct result *result = &results[i];

		if (!is_wanted(&rows[i % ROWS], only))
			continue;
		qsort(result->cycles, rounds, sizeof(double), by_value);
		printf("%s\n  {\"row\": \"%s\", \"ring\": \"%s\", \"packet_bytes\": %u, "
		       "\"cycles_per_packet\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}, "
		       "\"packets_per_call\": %.1f}",
			comma, rows[i % ROWS].name, i < ROWS ? "split" : "packed", bytes,
			result->cycles[rounds / 2], result->cycles[0], result->cycles[rounds - 1],
			result->per_call);
		comma = ",";
	}
	printf("\n]}\n");
}

static unsigned free_hugepages(void)
{
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned count = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%u", &count) != 1)
		count = 0;
	fclose(file);
	return count;
}

static void start_eal(char *self, bool is_guest)
{
	char prefix[32];
	char *eal[] = {self, "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=*:error",
		"--file-prefix", prefix, "-m", hugepages ? "64" : "256",
		hugepages ? "--in-memory" : "--no-huge", "--single-file-segments", NULL};
	cpu_set_t cores;

	snprintf(prefix, sizeof(prefix), "bench-%d", getpid());
	sched_getaffinity(0, sizeof(cores), &cores);
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]) - 1, eal) < 0)
		die("no EAL");
	sched_setaffinity(0, sizeof(cores), &cores);
	pool = cv_packet_pool_create("pool", 16383, 256, RTE_MBUF_DEFAULT_BUF_SIZE, is_guest);
	if (pool == NULL)
		die("no pool");
}

int main(int argc, char **argv)
{
	const bool is_guest = argc == 7 && strcmp(argv[1], "guest") == 0;
	static char folder[] = "/tmp/bench-vring-XXXXXX";
	static struct side sides[SIDES]; // to the guest: 1; packed: 2; rte_vhost: 4
	static struct result results[2 * ROWS];
	const unsigned rounds = is_guest || argc < 2 ? 11 : (unsigned)atoi(argv[1]);
	const char *only = argc > 3 ? argv[3] : NULL;

	if (argc > 2 && !is_guest)
		bytes = (unsigned)atoi(argv[2]);
	if (rounds < 1 || rounds > ROUNDS_MAX || bytes < 14 || bytes > 1464)
		die("usage: bench-vring [ROUNDS [BYTES [ROW]]]");
	if (!is_guest && (mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0))
		die("no folder in /tmp");
	hugepages = is_guest ? strcmp(argv[6], "hugepages") == 0 : free_hugepages() >= HUGEPAGES;
	start_eal(argv[0], is_guest);
	if (is_guest) {
		pin(1);
		guest(argv[2], argv[3], (unsigned)atoi(argv[4]), strcmp(argv[5], "packed") == 0);
	}
	for (unsigned i = 0; i < SIDES; i++) {
		sides[i].job = i & 1 ? "sink" : "source";
		sides[i].packed = i & 2;
		sides[i].stock = i & 4;
		sides[i].queue = !(i & 1);
		snprintf(sides[i].path, sizeof(sides[i].path), "%s/%u", folder, i);
		sides[i].port = open_port(sides[i].stock ? HOST(", \"datapath\": \"dpdk\", "
								"\"trusted\": true")
							 : HOST(""),
			sides[i].path, i);
		start_guest(&sides[i], argv[0]);
		kill(sides[i].guest, SIGSTOP);
	}
	pin(0);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < 2 * ROWS; i++) {
			const struct row *row = &rows[i % ROWS];

			if (is_wanted(row, only))
				measure(&sides[i / ROWS * 2 + row->to_guest + 4 * row->stock], row,
					&results[i], round);
		}
	}
	print(results, rounds, only);
	for (unsigned i = 0; i < SIDES; i++) {
		kill(sides[i].guest, SIGKILL);
		kill(sides[i].guest, SIGCONT);
		waitpid(sides[i].guest, NULL, 0);
		sides[i].port->close(sides[i].port);
	}
	rte_eal_cleanup();
	rmdir(folder);
	return 0;
}
