// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ports that have a peer: another process (this program again) that sends back what it receives.
// It is killed while packets are under way and started again; the port goes on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <rte_errno.h>

#include "port/port.h"
#include "tests/support/test_eal.h"
#include "tests/support/test_port.h"

#define DEADLINE_S 30

// DPDK's virtio-user leaks when its first peer leaves at once, as the port plays it to be able to
// stop: named here, so that our own leaks are found.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:rte_intr_instance_alloc\nleak:librte_net_virtio.so\n";
}

extern char **environ;

static struct rte_mempool *pool;

#define MEMIF_BY_DPDK "'kind': 'memif', 'path': '@', 'datapath': 'dpdk', 'trusted': true"

static const struct pair {
	const char *description;
	const char *here, *there; // keys, in single quotes; @ is the socket
} pairs[] = {
	{"vhost-user server, virtio-user client", "'kind': 'vhost-user', 'path': '@'",
		"'kind': 'virtio-user', 'path': '@'"},
	{"vhost-user client, virtio-user server",
		"'kind': 'vhost-user', 'path': '@', 'mode': 'client'",
		"'kind': 'virtio-user', 'path': '@', 'mode': 'server'"},
	{"virtio-user client, vhost-user server", "'kind': 'virtio-user', 'path': '@'",
		"'kind': 'vhost-user', 'path': '@'"},
	{"virtio-user server, vhost-user client",
		"'kind': 'virtio-user', 'path': '@', 'mode': 'server'",
		"'kind': 'vhost-user', 'path': '@', 'mode': 'client'"},
	{"memif server, client", "'kind': 'memif', 'path': '@', 'id': 3",
		"'kind': 'memif', 'path': '@', 'id': 3, 'role': 'client'"},
	{"vhost-user server, virtio-user client, two queues",
		"'kind': 'vhost-user', 'path': '@', 'queues': 2",
		"'kind': 'virtio-user', 'path': '@', 'queues': 2"},
	{"memif client, server", "'kind': 'memif', 'path': '@', 'role': 'client'",
		"'kind': 'memif', 'path': '@'"},
	{"vhost-user server by DPDK's driver, virtio-user client",
		"'kind': 'vhost-user', 'path': '@', 'datapath': 'dpdk', "
		"'trusted': true",
		"'kind': 'virtio-user', 'path': '@'"},
	{"memif server, client by DPDK's driver", "'kind': 'memif', 'path': '@', 'id': 3",
		MEMIF_BY_DPDK ", 'id': 3, 'role': 'client'"},
	{"memif client, server by DPDK's driver",
		"'kind': 'memif', 'path': '@', 'role': 'client', 'slots': 64", MEMIF_BY_DPDK},
	{"memif server by DPDK's driver, client", MEMIF_BY_DPDK,
		"'kind': 'memif', 'path': '@', 'role': 'client'"},
	{"memif client by DPDK's driver, server", MEMIF_BY_DPDK ", 'role': 'client'",
		"'kind': 'memif', 'path': '@'"},
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// The core is the other process's, and other tests' beside.
static void breathe(void)
{
	const struct timespec soon = {.tv_nsec = 20000};

	nanosleep(&soon, NULL);
}

static struct cv_port *open_port(const char *keys, const char *path, unsigned index)
{
	struct cv_error error = {""};
	struct cv_port *port;
	char text[1024];
	size_t used = (size_t)snprintf(text, sizeof(text), "{\"name\": \"p\", ");
	json_t *config;

	for (; *keys != '\0'; keys++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s",
			*keys == '@' ? 200 : 1,
			*keys == '@'    ? path
			: *keys == '\'' ? "\""
					: keys);
	snprintf(text + used, sizeof(text) - used, "}");
	config = json_loads(text, 0, NULL);
	port = test_port_open(config, index, 2, pool, &error);
	if (port != NULL && cv_port_start(port, &error) != 0) {
		port->close(port);
		port = NULL;
	}
	if (port == NULL)
		fprintf(stderr, "%s: %s\n", text, error.text);
	return port;
}

static bool by_views; // packets are sent and received as views, where the port can

// What rx_views gives, each packet copied to a buffer of its own.
static uint16_t receive_views(
	struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_view views[32];
	struct cv_buffers buffers;
	const uint16_t got = port->rx_views(port, queue, views, n, &buffers);
	uint16_t seen = 0;

	for (uint16_t i = 0; i < buffers.n; i++) {
		const struct rte_mbuf *buffer = buffers.buffers[i];
		const uint8_t *begin = rte_pktmbuf_mtod(buffer, const uint8_t *);

		for (unsigned j = 0; j < buffers.views[i]; j++, seen++) {
			const struct cv_view *view = &views[seen];

			assert_true(view->data >= begin &&
				    view->data + view->len <= begin + buffer->data_len);
			assert_true(buffers.views[i] > 1 || view->data == begin);
			packets[seen] = rte_pktmbuf_alloc(pool);
			assert_non_null(packets[seen]);
			memcpy(rte_pktmbuf_append(packets[seen], view->len), view->data, view->len);
		}
	}
	assert_int_equal(seen, got);
	rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
	return got;
}

static uint16_t send_packets(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t sent = 0;

	if (!by_views)
		return port->tx(port, tx_queue, packets, n);
	for (; sent < n; sent++) {
		struct cv_view view;

		cv_view_set(
			&view, rte_pktmbuf_mtod(packets[sent], uint8_t *), packets[sent]->data_len);
		if (port->tx_views(port, tx_queue, &view, 1) == 0)
			break;
		rte_pktmbuf_free(packets[sent]);
	}
	return sent;
}

// From whatever queue there is something in.
static uint16_t receive(struct cv_port *port, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t got = 0;

	for (uint16_t queue = 0; by_views && queue < port->rx_queues && got == 0; queue++)
		got = receive_views(port, queue, packets, n);
	if (by_views)
		return got;
	for (uint16_t queue = 0; queue < port->rx_queues && got == 0; queue++)
		got = port->rx(port, queue, packets, n);
	return got;
}

// The other process: sends back until it is killed.
static int reflect(const char *keys, const char *path)
{
	struct cv_port *port;
	struct rte_mbuf *packets[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	port = open_port(keys, path, 7);
	if (port == NULL)
		return 1;
	for (;;) {
		uint16_t got = receive(port, packets, 32);
		uint16_t sent = 0;
		double give_up = now_s() + 1;

		while (sent < got && now_s() < give_up)
			sent += port->tx(port, 1, packets + sent, got - sent);
		rte_pktmbuf_free_bulk(packets + sent, got - sent);
		if (got == 0)
			breathe();
	}
}

static pid_t start_peer(const char *keys, const char *path)
{
	char *arguments[] = {"test_port_peers", "reflect", (char *)(uintptr_t)keys,
		(char *)(uintptr_t)path, NULL};
	pid_t peer;

	assert_int_equal(posix_spawn(&peer, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
	return peer;
}

static void kill_peer(pid_t peer)
{
	int status;

	assert_int_equal(kill(peer, SIGKILL), 0);
	assert_int_equal(waitpid(peer, &status, 0), peer);
	// It was there to be killed: it had not ended by itself.
	assert_true(WIFSIGNALED(status));
}

static bool link_is_up(const struct cv_port *port)
{
	json_t *info = port->info(port);
	const char *link = json_string_value(json_object_get(info, "link"));
	bool up = link != NULL && strcmp(link, "up") == 0;

	json_decref(info);
	return up;
}

static void wait_for_link(const struct cv_port *port, bool up)
{
	double deadline = now_s() + DEADLINE_S;

	while (link_is_up(port) != up) {
		if (now_s() > deadline)
			fail_msg("link not %s after %d s", up ? "up" : "down", DEADLINE_S);
		breathe();
	}
}

static struct rte_mbuf *make_packet(uint32_t number, uint16_t len)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	if (packet == NULL)
		return NULL;
	data = (uint8_t *)rte_pktmbuf_append(packet, len);
	memset(data, (int)(number & 0xff), len);
	memcpy(data + 14, &number, sizeof(number));
	return packet;
}

static void assert_is(const struct rte_mbuf *packet, uint32_t number, uint16_t len)
{
	const uint8_t *data = rte_pktmbuf_mtod(packet, const uint8_t *);
	uint32_t got;

	assert_int_equal(packet->nb_segs, 1);
	memcpy(&got, data + 14, sizeof(got));
	assert_int_equal(got, number);
	assert_int_equal(packet->pkt_len, len);
	for (uint16_t i = 0; i < len; i++) {
		if (i < 14 || i >= 18)
			assert_int_equal(data[i], number & 0xff);
	}
}

static uint16_t length_of(uint32_t number)
{
	return (uint16_t)(60 + number * 13 % 1455);
}

// Everything that is sent comes back: once, in order, byte by byte.
static void round_trip(struct cv_port *port, uint32_t first, uint32_t count)
{
	double deadline = now_s() + DEADLINE_S;
	uint32_t sent = 0, received = 0;
	struct rte_mbuf *packets[32];

	while (received < count) {
		uint16_t n = 0, got;

		// Not more under way than every ring between the two can hold.
		while (sent < count && sent - received < 200) {
			struct rte_mbuf *packet =
				make_packet(first + sent, length_of(first + sent));

			assert_non_null(packet);
			if (send_packets(port, 0, &packet, 1) == 0) {
				rte_pktmbuf_free(packet);
				break;
			}
			sent++;
			n++;
		}
		got = receive(port, packets, 32);
		for (uint16_t i = 0; i < got; i++)
			assert_is(
				packets[i], first + received + i, length_of(first + received + i));
		rte_pktmbuf_free_bulk(packets, got);
		received += got;
		if (now_s() > deadline)
			fail_msg("%u sent, %u back after %d s", sent, received, DEADLINE_S);
		if (got == 0 && n == 0)
			breathe();
	}
}

// Sends into the peer as it dies, until the port has noticed. Packets are lost, nothing else.
static void send_until_gone(struct cv_port *port)
{
	double deadline = now_s() + DEADLINE_S;
	struct rte_mbuf *packets[32];

	do {
		struct rte_mbuf *packet = make_packet(0, 60);

		if (packet != NULL && send_packets(port, 1, &packet, 1) == 0)
			rte_pktmbuf_free(packet);
		rte_pktmbuf_free_bulk(packets, receive(port, packets, 32));
		if (now_s() > deadline)
			fail_msg("link still up after %d s", DEADLINE_S);
	} while (link_is_up(port));
	// What was received before it went, and nothing when it is gone.
	for (int i = 0; i < 100; i++)
		rte_pktmbuf_free_bulk(packets, receive(port, packets, 32));
	assert_int_equal(receive(port, packets, 32), 0);
}

// Late packets of before must not be taken for new ones.
static void empty(struct cv_port *port)
{
	struct rte_mbuf *packets[32];
	double until = now_s() + 0.2;

	while (now_s() < until) {
		rte_pktmbuf_free_bulk(packets, receive(port, packets, 32));
		breathe();
	}
}

static void peers_come_and_go(const struct pair *pair)
{
	const char *path = test_path("peer.sock");
	struct cv_port *port = open_port(pair->here, path, 1);
	pid_t peer;

	assert_non_null(port);
	for (uint32_t life = 0; life < 3; life++) {
		peer = start_peer(pair->there, path);
		wait_for_link(port, true);
		empty(port);
		round_trip(port, life * 100000, 3000);
		kill_peer(peer);
		send_until_gone(port);
	}
	cv_port_stop(port);
	port->close(port);
	// Everything is back: the rings of the devices held some.
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#define PAIR_TEST(name, index)                                     \
	static void name(void **state)                             \
	{                                                          \
		(void)state;                                       \
		print_message("  %s\n", pairs[index].description); \
		peers_come_and_go(&pairs[index]);                  \
	}

PAIR_TEST(vhost_user_server, 0)
PAIR_TEST(vhost_user_client, 1)
PAIR_TEST(virtio_user_client, 2)
PAIR_TEST(virtio_user_server, 3)
PAIR_TEST(memif_server, 4)
PAIR_TEST(two_queues, 5)
PAIR_TEST(memif_client, 6)
PAIR_TEST(vhost_user_dpdk, 7)
PAIR_TEST(memif_server_of_dpdk, 8)
PAIR_TEST(memif_client_of_dpdk, 9)
PAIR_TEST(memif_server_by_dpdk, 10)
PAIR_TEST(memif_client_by_dpdk, 11)

static void vhost_user_views(void **state)
{
	by_views = true;
	peers_come_and_go(&pairs[0]);
	by_views = false;
}

static void memif_views(void **state)
{
	by_views = true;
	for (size_t i = 4; i <= 6; i += 2)
		peers_come_and_go(&pairs[i]);
	by_views = false;
}

// A port without a peer stops at once, whoever was to begin.
static void stops_without_a_peer(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(pairs); i++) {
		struct cv_port *port = open_port(pairs[i].here, test_path("alone.sock"), 1);
		struct rte_mbuf *packet = make_packet(0, 60);

		print_message("  %s\n", pairs[i].description);
		assert_non_null(port);
		assert_int_equal(port->rx(port, 0, &packet, 1), 0);
		assert_int_equal(port->tx(port, 0, &packet, 1), 0);
		assert_false(link_is_up(port));
		rte_pktmbuf_free(packet);
		cv_port_stop(port);
		port->close(port);
		assert_int_not_equal(access(test_path("alone.sock"), F_OK), 0);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

// A peer that connects and is silent.
static int connect_mute(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

// One that has no peer, or one that does not answer, does not keep the other's away: DPDK's driver
// waits for them with a lock of all devices in its hand.
static void ports_do_not_wait_for_each_other(void **state)
{
	static const struct pair *const pair = &pairs[3];
	char paths[2][108];
	struct cv_port *ports[2];
	pid_t peers[2];
	double begun;
	int mute;

	for (unsigned i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s", test_path(i ? "b.sock" : "a.sock"));
		ports[i] = open_port(pair->here, paths[i], i + 1);
		assert_non_null(ports[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		peers[i] = start_peer(pair->there, paths[i]);
	for (unsigned i = 0; i < 2; i++)
		wait_for_link(ports[i], true);
	for (unsigned i = 0; i < 2; i++)
		kill_peer(peers[i]);
	for (unsigned i = 0; i < 2; i++)
		wait_for_link(ports[i], false);
	peers[0] = start_peer(pair->there, paths[0]);
	wait_for_link(ports[0], true);
	round_trip(ports[0], 0, 100);
	mute = connect_mute(paths[1]);
	kill_peer(peers[0]);
	send_until_gone(ports[0]);
	peers[0] = start_peer(pair->there, paths[0]);
	wait_for_link(ports[0], true);
	empty(ports[0]);
	round_trip(ports[0], 1000, 100);
	kill_peer(peers[0]);
	close(mute);
	mute = connect_mute(paths[1]);
	begun = now_s();
	for (unsigned i = 0; i < 2; i++) {
		cv_port_stop(ports[i]);
		ports[i]->close(ports[i]);
	}
	assert_true(now_s() - begun < DEADLINE_S);
	close(mute);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(vhost_user_server),
		cmocka_unit_test(vhost_user_client),
		cmocka_unit_test(virtio_user_client),
		cmocka_unit_test(virtio_user_server),
		cmocka_unit_test(memif_server),
		cmocka_unit_test(two_queues),
		cmocka_unit_test(memif_client),
		cmocka_unit_test(vhost_user_dpdk),
		cmocka_unit_test(memif_server_of_dpdk),
		cmocka_unit_test(memif_client_of_dpdk),
		cmocka_unit_test(memif_server_by_dpdk),
		cmocka_unit_test(memif_client_by_dpdk),
		cmocka_unit_test(memif_views),
		cmocka_unit_test(vhost_user_views),
		cmocka_unit_test(stops_without_a_peer),
		cmocka_unit_test(ports_do_not_wait_for_each_other),
	};
	int failed;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("pool", 8191, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	if (pool == NULL)
		failed = 1;
	else if (argc == 4 && strcmp(argv[1], "reflect") == 0)
		failed = reflect(argv[2], argv[3]);
	else {
		if (argc == 2) // one test alone
			cmocka_set_test_filter(argv[1]);
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	}
	rte_mempool_free(pool);
	if (cv_port_eal_may_end())
		test_eal_end();
	else
		test_dir_remove();
	return failed;
}
