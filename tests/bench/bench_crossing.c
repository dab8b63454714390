// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What it costs a packet to go from one function to the next, by the form of what lies between: nothing
// (inline), a ring between two workers (pipelined), a link of one pool of buffers (shared), memif, and
// vhost-user with DPDK's virtio-user at the other end.
//
//   bench-crossing [ROUNDS [BYTES...]]     21 rounds, packets of 60 and of 1514 bytes (FCS: 4 more)
//
// Prints one JSON object: {"schema": "convoy.bench.crossing/1", "results": [{"form", "packet_bytes",
// "cycles_per_hop": {"median", "min", "max"}}]}.
//
// 512 packets go from one core to another one and back, in calls of 32: two hops. Each core sends all
// of them, or receives all of them, before the other goes on, so lines move between the cores as under
// load and nobody waits for anybody. Counted are the calls that send and receive, and that the function
// behind them reads and writes 16 bytes of each packet (which is all that inline has). A round is the
// median of 32 laps, so that a lap in which the core was taken away does not count; sizes and forms are
// measured alternately, round by round.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_pause.h>

#include "chain/ring.h"
#include "port/port.h"
#include "shared/pool.h"
#include "tests/support/test_port.h"

#define PACKETS 512u
#define BURST 32u
#define LAPS 32u
#define WARM_LAPS 4u
#define ROUNDS_MAX 1001u
#define WAIT_S 20
#define FORMS 5u
#define SIZES_MAX 8u
#define SPINS 20000u

static struct rte_mempool *pool;
static struct rte_mempool *guest_pool; // in DPDK's own memory, which is all that a guest shares
static unsigned bytes; // of the packets that cross now
static char folder[] = "/tmp/convoy-bench-XXXXXX";

static void die(const char *what)
{
	fprintf(stderr, "bench-crossing: %s\n", what);
	exit(1);
}

// One end: of a ring each way, or a port.
struct side {
	struct cv_port *port;
	struct cv_ring *from, *to;
};

static struct form {
	const char *name;
	const char *here, *there; // keys of the two ports, in single quotes; @: the socket
	struct side sides[2];
} forms[FORMS] = {
	{.name = "inline"},
	{.name = "pipelined"},
	{.name = "shared",
		.here = "'kind': 'shared', 'path': '@', 'link': 'a'",
		.there = "'kind': 'shared', 'path': '@', 'link': 'a', 'role': 'client'"},
	{.name = "memif",
		.here = "'kind': 'memif', 'path': '@'",
		.there = "'kind': 'memif', 'path': '@', 'role': 'client'"},
	{.name = "vhost-user",
		.here = "'kind': 'vhost-user', 'path': '@'",
		.there = "'kind': 'virtio-user', 'path': '@'"},
};

// A core's packets while it has them.
struct hand {
	struct rte_mbuf *packets[PACKETS];
	uint8_t *data[PACKETS];
	uint64_t cycles;
};

// The other core does one thing at a time, when it is told.
static struct {
	const struct side *side; // atomic: NULL: nothing to do
	bool quit; // atomic
	struct hand hand;
} other;

static void set_views(struct cv_view *views, struct cv_buffers *buffers, struct rte_mbuf **packets)
{
	buffers->n = BURST;
	for (unsigned i = 0; i < BURST; i++) {
		buffers->buffers[i] = packets[i];
		buffers->views[i] = 1;
		cv_view_set(&views[i], rte_pktmbuf_mtod(packets[i], uint8_t *), (uint16_t)bytes);
	}
}

static void send_all(const struct side *side, struct hand *hand)
{
	const uint64_t deadline = rte_rdtsc() + WAIT_S * rte_get_tsc_hz();
	struct cv_view views[BURST];
	struct cv_buffers buffers;
	uint64_t begin;

	for (unsigned sent = 0; sent < PACKETS;) {
		if (side->to != NULL) {
			set_views(views, &buffers, hand->packets + sent);
			begin = rte_rdtsc();
			sent += cv_ring_push(side->to, &buffers, views, BURST);
		} else {
			begin = rte_rdtsc();
			sent += side->port->tx(side->port, 0, hand->packets + sent, BURST);
		}
		hand->cycles += rte_rdtsc() - begin;
		if (rte_rdtsc() > deadline)
			die("packets are not taken");
	}
}

// What a function does to each packet.
static void touch(uint8_t *const *data, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t words[2];

		memcpy(words, data[i], sizeof(words));
		words[0] += words[1] | 1;
		memcpy(data[i], words, sizeof(words));
	}
}

static void receive_all(const struct side *side, struct hand *hand)
{
	const uint64_t deadline = rte_rdtsc() + WAIT_S * rte_get_tsc_hz();
	struct cv_view views[BURST];
	struct cv_buffers buffers;

	for (unsigned got = 0; got < PACKETS;) {
		const uint64_t begin = rte_rdtsc();
		unsigned n;

		if (side->from != NULL) {
			n = cv_ring_pop(side->from, &buffers, views, BURST);
			for (unsigned i = 0; i < n; i++) {
				hand->packets[got + i] = buffers.buffers[i];
				hand->data[got + i] = views[i].data;
			}
		} else {
			const unsigned most = PACKETS - got < BURST ? PACKETS - got : BURST;

			n = side->port->rx(side->port, 0, hand->packets + got, (uint16_t)most);
			for (unsigned i = 0; i < n; i++)
				hand->data[got + i] =
					rte_pktmbuf_mtod(hand->packets[got + i], uint8_t *);
		}
		touch(hand->data + got, n);
		if (n > 0)
			hand->cycles += rte_rdtsc() - begin;
		got += n;
		if (rte_rdtsc() > deadline)
			die("packets are lost");
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

// Until the other core is done, or for a while: who gives his core away at once finds his caches full
// of others' data.
static const struct side *wait_while(bool busy)
{
	const struct side *side;

	for (unsigned i = 1;; i++) {
		// Pairs with the releases of who sets it.
		side = __atomic_load_n(&other.side, __ATOMIC_ACQUIRE);
		if ((side != NULL) != busy || __atomic_load_n(&other.quit, __ATOMIC_RELAXED))
			return side;
		if (i % SPINS == 0)
			sched_yield();
		rte_pause();
	}
}

static void *be_other(void *unused)
{
	(void)unused;
	pin(1);
	for (;;) {
		const struct side *side = wait_while(false);

		if (side == NULL)
			return NULL;
		receive_all(side, &other.hand);
		send_all(side, &other.hand);
		__atomic_store_n(&other.side, NULL, __ATOMIC_RELEASE);
	}
}

// Packets cross to the other side and return. Returns cycles per packet and hop. They are taken and
// given back in bursts, so that the pool's cache has them all after a few laps: taken at once they are
// sometimes the pool's oldest in every lap, far apart and cold, whatever the form.
static double lap(const struct form *form)
{
	static struct hand hand;
	struct rte_mbuf **packets = hand.packets;

	hand.cycles = other.hand.cycles = 0;
	for (unsigned i = 0; i < PACKETS; i += BURST)
		if (rte_pktmbuf_alloc_bulk(pool, packets + i, BURST) != 0)
			die("no buffers");
	for (unsigned i = 0; i < PACKETS; i++) {
		hand.data[i] = (uint8_t *)rte_pktmbuf_append(packets[i], (uint16_t)bytes);
		memset(hand.data[i], (int)i, bytes);
	}
	if (form->sides[0].port == NULL && form->sides[0].to == NULL) {
		const uint64_t begin = rte_rdtsc();

		for (unsigned i = 0; i < PACKETS; i += BURST) {
			touch(hand.data + i, BURST);
			touch(hand.data + i, BURST);
		}
		hand.cycles = rte_rdtsc() - begin;
	} else {
		send_all(&form->sides[0], &hand);
		__atomic_store_n(&other.side, &form->sides[1], __ATOMIC_RELEASE);
		wait_while(true);
		receive_all(&form->sides[0], &hand);
	}
	for (unsigned i = 0; i < PACKETS; i += BURST)
		rte_pktmbuf_free_bulk(packets + i, BURST);
	return (double)(hand.cycles + other.hand.cycles) / (2 * PACKETS);
}

static int by_value(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double measure(const struct form *form)
{
	double laps[LAPS];

	for (unsigned i = 0; i < WARM_LAPS; i++)
		lap(form);
	for (unsigned i = 0; i < LAPS; i++)
		laps[i] = lap(form);
	qsort(laps, LAPS, sizeof(double), by_value);
	return laps[LAPS / 2];
}

static struct cv_port *open_port(
	const char *keys, const char *path, unsigned index, struct rte_mempool *from)
{
	struct cv_error error = {""};
	struct cv_port *port;
	char text[512];
	size_t used = (size_t)snprintf(text, sizeof(text), "{\"name\": \"p%u\", ", index);

	for (; *keys != '\0'; keys++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s",
			*keys == '@' ? 200 : 1,
			*keys == '@'    ? path
			: *keys == '\'' ? "\""
					: keys);
	snprintf(text + used, sizeof(text) - used, "}");
	port = test_port_open(json_loads(text, 0, NULL), index, 1, from, &error);
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

static void join(struct form *form, unsigned index)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%u", folder, index);
	for (unsigned i = 0; i < 2; i++)
		form->sides[i].port = open_port(i == 0 ? form->here : form->there, path,
			2 * index + i, i == 0 ? pool : guest_pool);
	for (unsigned i = 0; !is_up(form->sides[0].port) || !is_up(form->sides[1].port); i++) {
		struct rte_mbuf *none;

		if (i > WAIT_S * 1000)
			die("the two ends do not find each other");
		for (unsigned side = 0; side < 2; side++)
			if (form->sides[side].port->rx(form->sides[side].port, 0, &none, 1) > 0)
				die("a packet from nowhere");
		usleep(1000);
	}
}

static void make_rings(struct form *form)
{
	struct cv_error error = {""};

	for (unsigned i = 0; i < 2; i++) {
		form->sides[i].to = cv_ring_create("bench", 1024, 1024, &error);
		if (form->sides[i].to == NULL)
			die(error.text);
		form->sides[!i].from = form->sides[i].to;
	}
}

static void start_eal(char *self)
{
	struct cv_error error = {""};
	char prefix[32];
	char *eal[] = {self, "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=*:error",
		"--file-prefix", prefix, "-m", "256", "--no-huge", "--single-file-segments", NULL};
	cpu_set_t cores;

	snprintf(prefix, sizeof(prefix), "bench-%d", getpid());
	sched_getaffinity(0, sizeof(cores), &cores);
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]) - 1, eal) < 0)
		die("no EAL");
	sched_setaffinity(0, sizeof(cores), &cores);
	pool = cv_shared_pool_create("pool", 16383, 512, RTE_MBUF_DEFAULT_BUF_SIZE, &error);
	guest_pool = rte_pktmbuf_pool_create("guest", 8191, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	if (pool == NULL || guest_pool == NULL)
		die(pool == NULL ? error.text : "no memory");
}

// What was measured of packets of one size.
struct size {
	unsigned bytes;
	double cycles[FORMS][ROUNDS_MAX];
};

static void print(struct size *sizes, unsigned count, unsigned rounds)
{
	printf("{\"schema\": \"convoy.bench.crossing/1\", \"results\": [");
	for (unsigned s = 0; s < count; s++)
		for (unsigned i = 0; i < FORMS; i++) {
			double *cycles = sizes[s].cycles[i];

			qsort(cycles, rounds, sizeof(double), by_value);
			printf("%s\n  {\"form\": \"%s\", \"packet_bytes\": %u, "
			       "\"cycles_per_hop\": {\"median\": %.1f, \"min\": %.1f, \"max\": "
			       "%.1f}}",
				s + i > 0 ? "," : "", forms[i].name, sizes[s].bytes,
				cycles[rounds / 2], cycles[0], cycles[rounds - 1]);
		}
	printf("\n]}\n");
}

// Reads sizes of packets. Returns how many.
static unsigned read_sizes(struct size *sizes, int argc, char **argv)
{
	unsigned count = 0;

	for (int i = 2; i < argc && count < SIZES_MAX; i++)
		sizes[count++].bytes = (unsigned)atoi(argv[i]);
	if (count == 0) {
		sizes[count++].bytes = 60;
		sizes[count++].bytes = 1514;
	}
	for (unsigned i = 0; i < count; i++)
		if (sizes[i].bytes < 60 || sizes[i].bytes > 1514)
			die("BYTES: 60 to 1514");
	return count;
}

int main(int argc, char **argv)
{
	static struct size sizes[SIZES_MAX];
	const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
	const unsigned count = read_sizes(sizes, argc, argv);
	pthread_t thread;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		die("ROUNDS: 1 to 1001");
	start_eal(argv[0]);
	if (mkdtemp(folder) == NULL)
		die(folder);
	make_rings(&forms[1]);
	for (unsigned i = 2; i < FORMS; i++)
		join(&forms[i], i);
	if (pthread_create(&thread, NULL, be_other, NULL) != 0)
		die("no thread");
	pin(0);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned s = 0; s < count; s++) {
			bytes = sizes[s].bytes;
			for (unsigned i = 0; i < FORMS; i++)
				sizes[s].cycles[i][round] = measure(&forms[i]);
		}
	__atomic_store_n(&other.quit, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	for (unsigned i = 2; i < FORMS; i++)
		for (unsigned side = 2; side-- > 0;) {
			cv_port_stop(forms[i].sides[side].port);
			forms[i].sides[side].port->close(forms[i].sides[side].port);
		}
	for (unsigned i = 0; i < 2; i++)
		cv_ring_free(forms[1].sides[i].to);
	rte_mempool_free(guest_pool);
	rte_mempool_free(pool);
	rmdir(folder);
	print(sizes, count, rounds);
	return 0;
}
