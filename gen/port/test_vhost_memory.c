// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A guest whose memory changes while packets flow (hot-plugged memory, a balloon): SET_MEM_TABLE
// between packets that a worker of the node's vhost-user port is sending back. The port must not
// touch the mapping of before, which rte_vhost unmaps, and must lose nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>

#include "gen/port/vhost_attach.h"
#include "gen/port/vhost_port.h"
#include "gen/port/vhost_user.h"
#include "port/port.h"
#include "tests/support/test_eal.h"
#include "tests/support/test_port.h"

#define DEADLINE_S 30
#define ROUNDS 60
#define BURST 64

#define RING 256u // descriptors
#define SLOTS 128u // buffers of each queue
#define SLOT_BYTES 2048u
#define HEADER_BYTES 12u

// The guest's memory: the rings, what it receives into and sends from; and a second half, which is
// there at times.
#define RING_BYTES 0x4000u
#define RECEIVE_AT 0x10000u
#define SEND_AT 0x50000u
#define SMALL 0x100000u
#define BIG 0x200000u

static struct rte_mempool *pool;

struct queue {
	struct vring ring;
	uint16_t made, seen; // available, used
	uint32_t buffers; // where they begin
	int kick, call;
};

struct guest {
	uint8_t *memory;
	int file;
	struct vhost_user user;
	struct queue queues[2]; // that it receives by, that it sends by
	uint32_t sent, received;
};

struct worker {
	struct cv_port *port;
	bool views;
	bool stop; // atomic
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint16_t length_of(uint32_t number)
{
	return (uint16_t)(60 + number * 13 % 1455);
}

static void describe(struct guest *guest, struct queue *queue, uint32_t index, uint32_t buffers)
{
	queue->buffers = buffers;
	queue->kick = eventfd(0, EFD_CLOEXEC);
	queue->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(vhost_user_vring_setup(&guest->user,
				 &(const struct vhost_user_vring){
					 .index = index,
					 .size = RING,
					 .desc = queue->ring.desc,
					 .avail = queue->ring.avail,
					 .used = queue->ring.used,
					 .kick = queue->kick,
					 .call = queue->call,
				 }),
		0);
}

static void connect_guest(struct guest *guest, const char *path)
{
	*guest = (struct guest){.file = memfd_create("guest", MFD_CLOEXEC)};
	assert_int_equal(ftruncate(guest->file, BIG), 0);
	guest->memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, guest->file, 0);
	assert_ptr_not_equal(guest->memory, MAP_FAILED);
	vring_init(&guest->queues[0].ring, RING, guest->memory, 4096);
	vring_init(&guest->queues[1].ring, RING, guest->memory + RING_BYTES, 4096);
	assert_int_equal(vhost_user_negotiate(&guest->user, vhost_user_connect(path),
				 1ull << VIRTIO_F_VERSION_1),
		0);
	assert_int_equal(vhost_user_share(&guest->user, guest->memory, SMALL, guest->file), 0);
	describe(guest, &guest->queues[0], 0, RECEIVE_AT);
	describe(guest, &guest->queues[1], 1, SEND_AT);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vhost_user_vring_enable(&guest->user, i, true), 0);
	assert_int_equal(vhost_user_ready(&guest->user), 0);
}

static void disconnect_guest(struct guest *guest)
{
	close(guest->user.socket);
	for (unsigned i = 0; i < 2; i++) {
		close(guest->queues[i].kick);
		close(guest->queues[i].call);
	}
	close(guest->file);
	munmap(guest->memory, BIG);
}

static void make_available(
	struct guest *guest, struct queue *queue, uint32_t at, uint32_t len, uint16_t flags)
{
	const uint16_t slot = queue->made % SLOTS;

	queue->ring.desc[slot] = (struct vring_desc){(uintptr_t)guest->memory + at, len, flags, 0};
	queue->ring.avail->ring[queue->made % RING] = slot;
	queue->made++;
	__atomic_store_n(&queue->ring.avail->idx, queue->made, __ATOMIC_RELEASE);
}

static void offer(struct guest *guest)
{
	const uint32_t at = guest->queues[0].buffers + guest->queues[0].made % SLOTS * SLOT_BYTES;

	make_available(guest, &guest->queues[0], at, SLOT_BYTES, VRING_DESC_F_WRITE);
}

// Sends a packet from either half of the memory.
static void send_one(struct guest *guest, bool upper)
{
	struct queue *queue = &guest->queues[1];
	const uint32_t at = (upper ? SMALL : queue->buffers) + queue->made % SLOTS * SLOT_BYTES;
	const uint16_t len = length_of(guest->sent);
	uint8_t *packet = guest->memory + at + HEADER_BYTES;

	memset(guest->memory + at, 0, HEADER_BYTES);
	memset(packet, (int)(guest->sent & 0xff), len);
	memcpy(packet + 14, &guest->sent, sizeof(guest->sent));
	make_available(guest, queue, at, HEADER_BYTES + len, 0);
	guest->sent++;
}

// Takes back what came: the next packet, byte by byte, in the buffer that was offered next.
static bool receive_one(struct guest *guest)
{
	struct queue *queue = &guest->queues[0];
	const uint16_t len = length_of(guest->received);
	const struct vring_used_elem *element = &queue->ring.used->ring[queue->seen % RING];
	const uint8_t *packet;
	uint32_t number;

	if (__atomic_load_n(&queue->ring.used->idx, __ATOMIC_ACQUIRE) == queue->seen)
		return false;
	assert_int_equal(element->id, queue->seen % SLOTS);
	assert_int_equal(element->len, HEADER_BYTES + len);
	packet = guest->memory + queue->buffers + element->id * SLOT_BYTES + HEADER_BYTES;
	memcpy(&number, packet + 14, sizeof(number));
	assert_int_equal(number, guest->received);
	for (uint16_t i = 0; i < len; i++) {
		if (i < 14 || i >= 18)
			assert_int_equal(packet[i], number & 0xff);
	}
	queue->seen++;
	guest->received++;
	offer(guest);
	return true;
}

static void receive_all(struct guest *guest)
{
	const double deadline = now_s() + DEADLINE_S;

	while (guest->received < guest->sent) {
		if (receive_one(guest))
			continue;
		if (now_s() > deadline)
			fail_msg("%u sent, %u back after %d s", guest->sent, guest->received,
				DEADLINE_S);
		sched_yield();
	}
	// Its buffers came back before the packets did.
	assert_int_equal(guest->queues[1].ring.used->idx, guest->queues[1].made);
}

// Sends back what comes, by buffers or by views.
static unsigned send_back(struct worker *worker)
{
	struct cv_port *port = worker->port;
	struct rte_mbuf *packets[BURST];
	struct cv_view views[CV_VIEWS_MAX];
	struct cv_buffers buffers;
	uint16_t got, sent = 0;

	got = worker->views ? port->rx_views(port, 0, views, CV_VIEWS_MAX, &buffers)
			    : port->rx(port, 0, packets, BURST);
	while (sent < got && !__atomic_load_n(&worker->stop, __ATOMIC_RELAXED))
		sent += worker->views ? port->tx_views(port, 0, views + sent, got - sent)
				      : port->tx(port, 0, packets + sent, got - sent);
	if (worker->views)
		rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
	else
		rte_pktmbuf_free_bulk(packets + sent, got - sent);
	return got;
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	while (!__atomic_load_n(&worker->stop, __ATOMIC_RELAXED)) {
		if (send_back(worker) == 0)
			sched_yield();
	}
	return NULL;
}

static void memory_changes(bool views)
{
	struct worker worker = {.views = views};
	struct cv_error error = {""};
	struct guest guest;
	pthread_t thread;
	json_t *config = json_pack("{s:s, s:s, s:s}", "name", "p", "kind", "vhost-user", "path",
		test_path("guest.sock"));
	json_t *info;

	worker.port = test_port_open(config, 0, 1, pool, &error);
	assert_non_null(worker.port);
	assert_int_equal(cv_port_start(worker.port, &error), 0);
	assert_int_equal(pthread_create(&thread, NULL, work, &worker), 0);
	connect_guest(&guest, test_path("guest.sock"));
	for (unsigned i = 0; i < SLOTS; i++)
		offer(&guest);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const bool big = round % 2 == 0;

		// These are under way when the memory changes.
		for (unsigned i = 0; i < SLOTS / 2; i++)
			send_one(&guest, false);
		assert_int_equal(
			vhost_user_share(&guest.user, guest.memory, big ? BIG : SMALL, guest.file),
			0);
		for (unsigned i = 0; i < SLOTS / 2; i++)
			send_one(&guest, big);
		receive_all(&guest);
	}
	info = worker.port->info(worker.port);
	assert_int_equal(json_integer_value(json_object_get(info, "rx_errors")), 0);
	assert_int_equal(json_integer_value(json_object_get(info, "tx_errors")), 0);
	assert_int_equal(json_integer_value(json_object_get(info, "rx_pkts")), guest.sent);
	json_decref(info);
	__atomic_store_n(&worker.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	disconnect_guest(&guest);
	cv_port_stop(worker.port);
	worker.port->close(worker.port);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void memory_changes_under_packets(void **state)
{
	(void)state;
	memory_changes(false);
}

static void memory_changes_under_views(void **state)
{
	(void)state;
	memory_changes(true);
}

// The other way round: what a device can do to the file that the tester gives it.
static void a_device_cannot_cut_the_testers_memory(void **state)
{
	const struct gen_vhost_options options = {.path = test_path("tester.sock"),
		.queues = 2,
		.ring = 256,
		.buffer = 1514,
		.memory = 1 << 20};
	struct gen_port port = {0};
	const struct gen_vhost *vhost;
	off_t bytes;
	int file;

	(void)state;
	assert_int_equal(gen_vhost_open(&port, &options), 0);
	vhost = port.state;
	file = dup(vhost->memfd); // as a message brings it
	bytes = lseek(file, 0, SEEK_END);
	assert_int_equal(bytes, vhost->memory_bytes);
	for (off_t other = 0; other <= 2 * bytes; other += bytes / 2) {
		if (other == bytes)
			continue;
		assert_int_equal(ftruncate(file, other), -1);
		assert_int_equal(errno, EPERM);
	}
	assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	assert_int_equal(errno, EPERM);
	vhost->memory[bytes - 1] = 1; // still there
	close(file);
	port.close(&port);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_changes_under_packets),
		cmocka_unit_test(memory_changes_under_views),
		cmocka_unit_test(a_device_cannot_cut_the_testers_memory),
	};
	int failed = 1;

	(void)argc;
	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("pool", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	if (pool != NULL)
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return failed;
}
