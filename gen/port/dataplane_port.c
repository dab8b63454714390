// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/dataplane_port.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "dpdk/compat.h"
#include "gen/machine/clock.h"
#include "gen/traffic/convoys.h"
#include "gen/traffic/stamp.h"
#include "port/eal.h"
#include "port/port.h"

#define MEMORY_MB 128
#define FREE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
#define MBUFS 16384
#define MBUF_CACHE 256
#define BUFFER 2048
#define FRAME_MAX 1518 // with one VLAN tag, without FCS
#define FRAMES_BYTES (256ul << 20)
#define LINK_POLL_MS 20

struct dataplane_port {
	struct cv_port *port;
	uint8_t *frames;
	uint32_t pending_count; // frames that the device had no room for yet
	uint32_t received_count;
	uint32_t spare_count; // buffers taken for what comes next
	struct rte_mbuf *spare[GEN_BURST];
	struct rte_mbuf *pending[GEN_BURST];
	struct rte_mbuf *received[GEN_BURST];
	// The watcher looks at the link while the busy thread makes no system calls.
	rte_thread_t watcher;
	pthread_mutex_t lock; // of what follows
	pthread_cond_t changed;
	bool quit;
	json_int_t peers; // how many had come when one was last seen to be there, or to be gone
};

static bool begun;
static unsigned opened; // numbers the ports
static struct rte_mempool *buffers; // of all ports

// Hands over what waits; true if nothing does any more.
static bool flush(struct dataplane_port *self)
{
	if (self->pending_count == 0)
		return true;
	const uint16_t sent =
		self->port->tx(self->port, 0, self->pending, (uint16_t)self->pending_count);
	self->pending_count -= sent;
	memmove(self->pending, self->pending + sent,
		self->pending_count * sizeof(self->pending[0]));
	return self->pending_count == 0;
}

static uint32_t dataplane_tx_room(struct gen_wire *wire, uint32_t wanted)
{
	struct dataplane_port *self = wire->state;

	if (!flush(self))
		return 0;
	// Buffers are there before they are promised: the device may hold on to many.
	const uint32_t lacking = GEN_BURST - self->spare_count;
	if (self->spare_count < wanted &&
		rte_pktmbuf_alloc_bulk(buffers, self->spare + self->spare_count, lacking) == 0)
		self->spare_count = GEN_BURST;
	return wanted < self->spare_count ? wanted : self->spare_count;
}

static uint32_t dataplane_tx(struct gen_wire *wire, const struct gen_tx *burst)
{
	struct dataplane_port *self = wire->state;

	for (uint32_t i = 0; i < burst->count; i++) {
		const struct gen_frame frame = burst->frame[i];
		struct rte_mbuf *mbuf = self->spare[--self->spare_count];
		uint8_t *data = rte_pktmbuf_mtod(mbuf, uint8_t *);

		memcpy(data, burst->base + frame.offset, frame.bytes);
		if (burst->packets != NULL)
			gen_convoy_stamp(burst, i, data);
		else
			gen_stamp_write(data + gen_stamp_offset(frame.bytes), burst->magic,
				burst->seq[i], burst->ticks[i], frame.sum);
		mbuf->data_len = frame.bytes;
		mbuf->pkt_len = frame.bytes;
		self->pending[i] = mbuf;
	}
	self->pending_count = burst->count;
	flush(self);
	return burst->count;
}

static bool dataplane_tx_idle(struct gen_wire *wire)
{
	return flush(wire->state);
}

static uint32_t dataplane_rx(struct gen_wire *wire, struct gen_rx *frames)
{
	struct dataplane_port *self = wire->state;
	const uint16_t count =
		self->port->rx(self->port, 0, self->received, (uint16_t)wire->rx_most);

	self->received_count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct rte_mbuf *mbuf = self->received[i];
		const struct rte_mbuf *last = rte_pktmbuf_lastseg((struct rte_mbuf *)mbuf);

		frames[i].whole = mbuf->nb_segs == 1;
		const uint8_t *end = rte_pktmbuf_mtod(last, const uint8_t *) + last->data_len;

		// The stamp is at the end: of a frame in several pieces only the last one is read.
		frames[i].bytes = last->data_len > GEN_STAMP_BYTES ? mbuf->pkt_len : 0;
		frames[i].data = end - frames[i].bytes;
	}
	return count;
}

static void dataplane_rx_release(struct gen_wire *wire)
{
	struct dataplane_port *self = wire->state;

	rte_pktmbuf_free_bulk(self->received, self->received_count);
	self->received_count = 0;
}

static const struct gen_wire_ops dataplane_ops = {
	.tx = dataplane_tx,
	.tx_room = dataplane_tx_room,
	.rx = dataplane_rx,
	.rx_release = dataplane_rx_release,
	.tx_idle = dataplane_tx_idle,
};

struct link {
	bool up; // always, for a device that knows nothing of links
	bool counts_peers;
	json_int_t peers; // that have come so far
};

static struct link read_link(const struct dataplane_port *self)
{
	json_t *info = self->port->info != NULL ? self->port->info(self->port) : NULL;
	const char *link = json_string_value(json_object_get(info, "link"));
	const json_t *peers = json_object_get(info, "peers");
	const struct link now = {
		.up = link == NULL || strcmp(link, "up") == 0,
		.counts_peers = peers != NULL,
		.peers = json_integer_value(peers),
	};

	json_decref(info);
	return now;
}

static void dataplane_check(struct gen_port *port)
{
	struct dataplane_port *self = port->state;

	pthread_mutex_lock(&self->lock);
	const struct link link = read_link(self);
	if (!atomic_load_explicit(&port->gone, memory_order_relaxed) &&
		(!link.up || link.peers != self->peers)) {
		// The next one to come counts, unless that is the one that is there already.
		if (!link.up)
			self->peers = link.peers;
		strcpy(port->gone_reason,
			link.counts_peers ? "the peer went away" : "the link went down");
		// Pairs with the acquire load in the trial's loop.
		atomic_store_explicit(&port->gone, true, memory_order_release);
	}
	pthread_mutex_unlock(&self->lock);
}

static int dataplane_attach(struct gen_port *port, uint64_t deadline_ns, struct cv_error *error)
{
	struct dataplane_port *self = port->state;

	for (;;) {
		pthread_mutex_lock(&self->lock);
		const struct link link = read_link(self);
		const bool up = link.up && (!link.counts_peers || link.peers > self->peers);
		if (up)
			self->peers = link.peers;
		if (up)
			atomic_store_explicit(&port->gone, false, memory_order_release);
		pthread_mutex_unlock(&self->lock);
		if (up)
			return 0;
		if (gen_now_ns() >= deadline_ns) {
			cv_error_set(
				error, "%s: the link is down: nobody at the other end", port->name);
			return -ETIMEDOUT;
		}
		poll(NULL, 0, LINK_POLL_MS);
	}
}

static uint32_t watch(void *argument)
{
	struct gen_port *port = argument;
	struct dataplane_port *self = port->state;
	bool quit = false;

	while (!quit) {
		struct timespec until;

		dataplane_check(port);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LINK_POLL_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_mutex_lock(&self->lock);
		if (!self->quit)
			pthread_cond_clockwait(
				&self->changed, &self->lock, CLOCK_MONOTONIC, &until);
		quit = self->quit;
		pthread_mutex_unlock(&self->lock);
	}
	return 0;
}

static void free_port(struct dataplane_port *self)
{
	if (self->port != NULL)
		self->port->close(self->port);
	if (self->frames != NULL)
		munmap(self->frames, FRAMES_BYTES);
	pthread_mutex_destroy(&self->lock);
	pthread_cond_destroy(&self->changed);
	free(self);
}

static void dataplane_close(struct gen_port *port)
{
	struct dataplane_port *self = port->state;

	pthread_mutex_lock(&self->lock);
	self->quit = true;
	pthread_cond_signal(&self->changed);
	pthread_mutex_unlock(&self->lock);
	rte_thread_join(self->watcher, NULL);
	rte_pktmbuf_free_bulk(self->pending, self->pending_count);
	rte_pktmbuf_free_bulk(self->spare, self->spare_count);
	cv_port_stop(self->port);
	free_port(self);
	port->state = NULL;
}

static bool hugepages_are_free(void)
{
	FILE *file = fopen(FREE_PAGES, "r");
	long pages = 0;

	if (file == NULL)
		return false;
	if (fscanf(file, "%ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages >= MEMORY_MB / 2;
}

int gen_dataplane_begin(uint32_t core, bool pci, struct cv_error *error)
{
	char lcores[32];
	const struct cv_eal eal = {
		.program = "convoy-gen",
		.lcores = lcores,
		.log_level = "warning",
		.memory_mb = MEMORY_MB,
		.hugepages = hugepages_are_free(),
		.pci = pci,
		.drivers = true,
	};

	snprintf(lcores, sizeof(lcores), "0@%u", core);
	if (begun)
		return 0;
	if (cv_eal_start(&eal, error) != 0)
		return -EIO;
	begun = true;
	buffers = rte_pktmbuf_pool_create(
		"convoy-gen", MBUFS, MBUF_CACHE, 0, BUFFER + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (buffers == NULL) {
		cv_error_set(error, "no memory for packet buffers");
		return -EIO;
	}
	return 0;
}

static int open_port(struct gen_port *port, struct dataplane_port *self,
	const struct cv_port_config *config, struct cv_error *error)
{
	void *frames = mmap(NULL, FRAMES_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (frames == MAP_FAILED) {
		cv_error_set(error, "out of memory");
		return -ENOMEM;
	}
	self->frames = frames;
	self->port = cv_port_open(config, opened, 1, buffers, error);
	if (self->port == NULL)
		return -EIO;
	opened++;
	if (cv_port_start(self->port, error) != 0)
		return -EIO;
	// One of DPDK's control threads: never on the busy thread's core.
	if (rte_thread_create_control(&self->watcher, "watch", watch, port) == 0)
		return 0;
	cv_error_set(error, "cannot start a thread");
	cv_port_stop(self->port);
	return -EAGAIN;
}

int gen_dataplane_open(struct gen_port *port, const struct cv_port_config *config, uint32_t slots,
	struct cv_error *error)
{
	struct dataplane_port *self = calloc(1, sizeof(*self));
	int rc;

	if (self == NULL) {
		cv_error_set(error, "out of memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&self->lock, NULL);
	pthread_cond_init(&self->changed, NULL);
	port->state = self;
	atomic_store(&port->gone, true); // until the first attach
	rc = open_port(port, self, config, error);
	if (rc < 0) {
		free_port(self);
		port->state = NULL;
		return rc;
	}
	port->kind = self->port->kind;
	port->wire_count = 1;
	port->wires[0] =
		(struct gen_wire){.ops = &dataplane_ops, .state = self, .rx_most = GEN_BURST};
	port->memory = self->frames;
	port->memory_bytes = FRAMES_BYTES;
	port->frame_bytes_max = FRAME_MAX;
	port->queue_frames = slots;
	port->fd = -1;
	port->attach = dataplane_attach;
	port->check = dataplane_check;
	port->close = dataplane_close;
	return 0;
}

void gen_dataplane_end(void)
{
	if (!begun)
		return;
	rte_mempool_free(buffers);
	buffers = NULL;
	cv_eal_stop();
	begun = false;
}
