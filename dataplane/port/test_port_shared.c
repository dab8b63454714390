// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ports of kind shared: two other processes (this program again) in a row send on what they receive.
// They are killed while packets are under way and started again; no buffer is lost, and packets come
// back in the very memory that they left in. And what a member that writes garbage can do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "port/port.h"
#include "shared/message.h"
#include "shared/pool.h"
#include "socket/receive.h"
#include "tests/support/test_eal.h"

#define DEADLINE_S 60
#define BURST 32
#define BUFFERS 4095

extern char **environ;

static struct rte_mempool *pool;
static bool own_packets; // what is received must lie in the port's pool

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct cv_port *open_end(const char *path, const char *role, const char *link,
	unsigned index, struct rte_mempool *from)
{
	struct cv_error error = {""};
	json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", link, "kind", "shared",
		"path", path, "role", role, "link", link);
	struct cv_port_config *config = cv_port_config_read(json, &error);
	struct cv_port *port;

	assert_non_null(config);
	config->own_packets = own_packets;
	port = cv_port_open(config, index, 1, from, &error);
	if (port == NULL)
		fprintf(stderr, "%s: %s\n", link, error.text);
	assert_non_null(port);
	cv_port_config_free(config);
	json_decref(json);
	return port;
}

static json_int_t number(const struct cv_port *port, const char *part, const char *key)
{
	json_t *info = port->info(port);
	const json_t *from = part != NULL ? json_object_get(info, part) : info;
	const json_int_t value = json_integer_value(json_object_get(from, key));

	json_decref(info);
	return value;
}

static bool is_up(const struct cv_port *port)
{
	json_t *info = port->info(port);
	const bool up = strcmp(json_string_value(json_object_get(info, "link")), "up") == 0;

	json_decref(info);
	return up;
}

static void wait_for_link(const struct cv_port *port, bool up)
{
	const double deadline = now_s() + DEADLINE_S;

	while (is_up(port) != up) {
		assert_true(now_s() < deadline);
		usleep(1000);
	}
}

// The other process: what comes by one link, or is left over, goes by the other, one byte changed.
static __attribute__((noreturn)) void forward(const char *path, const char *from, const char *to)
{
	struct rte_mempool *own = rte_pktmbuf_pool_create("own", 1023, 0, 0, 2176, -1);
	struct cv_port *in, *out;

	own_packets = getenv("OWN_PACKETS") != NULL;
	in = open_end(path, "client", from, 0, own);
	out = open_end(path, "client", to, 1, own);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned turn = 0;; turn++) {
		struct rte_mbuf *packets[BURST];
		const uint16_t n = in->rx(in, 0, packets, BURST);
		uint16_t kept = 0, sent;

		if (n == 0)
			sched_yield();
		for (unsigned i = 0; i < n; i++) {
			struct rte_mbuf *packet = packets[i];
			uint8_t *data = rte_pktmbuf_mtod(packet, uint8_t *);

			if (own_packets && packet->pool != own)
				abort();
			data[12]++;
			if (data[13] == 1) { // one to be dropped
				rte_pktmbuf_free(packet);
			} else if (data[13] == 2) { // one to be answered by another packet
				packets[kept] = rte_pktmbuf_alloc(own);
				memcpy(rte_pktmbuf_append(packets[kept++], packet->data_len), data,
					packet->data_len);
				rte_pktmbuf_free(packet);
			} else {
				packets[kept++] = packet;
			}
		}
		sent = out->tx(out, 0, packets, kept);
		rte_pktmbuf_free_bulk(packets + sent, kept - sent);
	}
}

static pid_t start(const char *path, const char *from, const char *to)
{
	char *arguments[] = {"/proc/self/exe", "forward", (char *)(uintptr_t)path,
		(char *)(uintptr_t)from, (char *)(uintptr_t)to, NULL};
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

// Ports of this process, whose packets lie in the pool that is shared.
static struct cv_port *ends[2];

static void send_some(unsigned what)
{
	struct rte_mbuf *packets[BURST];
	uint16_t sent;

	if (rte_pktmbuf_alloc_bulk(pool, packets, BURST) != 0)
		return;
	for (unsigned i = 0; i < BURST; i++) {
		uint8_t *data = (uint8_t *)rte_pktmbuf_append(packets[i], 60);

		memset(data, 0, 60);
		data[13] = (uint8_t)what;
		memcpy(data + 14, &packets[i], sizeof(packets[i]));
	}
	sent = ends[0]->tx(ends[0], 0, packets, BURST);
	rte_pktmbuf_free_bulk(packets + sent, BURST - sent);
}

// Returns how many packets came back.
static unsigned receive_some(bool in_place)
{
	struct rte_mbuf *packets[BURST], *none;
	const uint16_t n = ends[1]->rx(ends[1], 0, packets, BURST);

	// Its worker polls it, too.
	assert_int_equal(ends[0]->rx(ends[0], 0, &none, 1), 0);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);

		assert_int_equal(packets[i]->data_len, 60);
		assert_int_equal(data[12], 2);
		assert_ptr_equal(packets[i]->pool, pool);
		if (in_place) // no copy
			assert_memory_equal(data + 14, &packets[i], sizeof(packets[i]));
	}
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static void pass(unsigned wanted, unsigned what, bool in_place)
{
	const double deadline = now_s() + DEADLINE_S;

	for (unsigned got = 0; got < wanted;) {
		const unsigned n = receive_some(in_place);

		assert_true(now_s() < deadline);
		got += n;
		send_some(what);
		if (n == 0)
			sched_yield();
	}
}

static void wait_for_given(json_int_t given, const struct cv_port *port)
{
	const double deadline = now_s() + DEADLINE_S;

	while (number(port, "pool", "given") > given) {
		struct rte_mbuf *none;

		assert_true(now_s() < deadline);
		port->rx(ends[0], 0, &none, 1);
		receive_some(false);
		usleep(1000);
	}
}

static void open_ends(const char *path)
{
	ends[0] = open_end(path, "server", "in", 0, pool);
	ends[1] = open_end(path, "server", "out", 1, pool);
}

static void close_ends(void)
{
	for (unsigned i = 0; i < 2; i++)
		ends[i]->close(ends[i]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void members_die_and_come_back(void **state)
{
	static const char *const links[] = {"in", "middle", "out"};
	char path[108];
	pid_t members[2];

	(void)state;
	snprintf(path, sizeof(path), "%s", test_path("pool.sock"));
	open_ends(path);
	for (unsigned i = 0; i < 2; i++)
		members[i] = start(path, links[i], links[i + 1]);
	for (unsigned i = 0; i < 2; i++)
		wait_for_link(ends[i], true);
	pass(2000, 0, true);
	for (unsigned turn = 0; turn < 6; turn++) {
		const unsigned which = turn % 2;
		const double until = now_s() + 0.002 * turn;

		while (now_s() < until) {
			send_some(turn % 3);
			receive_some(false);
		}
		end(members[which]);
		send_some(0);
		wait_for_link(ends[which], false);
		assert_true(is_up(ends[!which])); // the other one goes on
		members[which] = start(path, links[which], links[which + 1]);
		wait_for_link(ends[which], true);
		// Until packets of this life come, others of before may.
		pass(2000, 0, false);
		pass(2000, 0, true);
	}
	// What they dropped, and what they made packets of, is back as well: there are but so many.
	for (unsigned i = 0; i < 4 * BUFFERS / BURST; i++) {
		send_some(1);
		receive_some(false);
		if (i % 8 == 0)
			usleep(1000);
	}
	pass(2 * BUFFERS, 2, false);
	assert_true(number(ends[0], "pool", "recovered") > 0);
	assert_int_equal(number(ends[0], NULL, "rx_errors"), 0);
	assert_int_equal(number(ends[1], NULL, "rx_errors"), 0);
	// All that is left with them are the buffers to make packets of.
	wait_for_given(2 * 512, ends[0]);
	for (unsigned i = 0; i < 2; i++)
		end(members[i]);
	wait_for_given(0, ends[0]);
	assert_int_equal(number(ends[0], "pool", "strays"), 0);
	assert_int_equal(number(ends[0], "pool", "members"), 8);
	close_ends();
}

// A node that receives from no such port still has its buffers back, and members have theirs.
static void an_owner_that_only_sends(void **state)
{
	const double deadline = now_s() + DEADLINE_S;
	unsigned sent = 0;
	char path[108];
	pid_t member;

	(void)state;
	snprintf(path, sizeof(path), "%s", test_path("sends.sock"));
	open_ends(path);
	member = start(path, "in", "out");
	wait_for_link(ends[0], true);
	while (number(ends[0], "pool", "given") < 512) {
		assert_true(now_s() < deadline);
		usleep(1000);
	}
	while (sent < 4 * BUFFERS) { // which the member drops
		const json_int_t before = number(ends[0], NULL, "tx_pkts");

		assert_true(now_s() < deadline);
		send_some(1);
		sent += (unsigned)(number(ends[0], NULL, "tx_pkts") - before);
	}
	while (number(ends[0], "pool", "given") > 512) { // nor does it have to send for that
		assert_true(now_s() < deadline);
		usleep(1000);
	}
	end(member);
	wait_for_given(0, ends[0]);
	close_ends();
}

// The owner goes away and comes back, with packets of it still here.
static void owner_comes_back(void **state)
{
	char path[108];
	pid_t member;

	(void)state;
	snprintf(path, sizeof(path), "%s", test_path("again.sock"));
	open_ends(path);
	member = start(path, "in", "out");
	for (unsigned turn = 0; turn < 2; turn++) {
		if (turn > 0)
			open_ends(path);
		for (unsigned i = 0; i < 2; i++)
			wait_for_link(ends[i], true);
		for (unsigned got = 0; got < 1000;) {
			struct rte_mbuf *packets[BURST], *none;
			const uint16_t n = ends[1]->rx(ends[1], 0, packets, BURST);

			ends[0]->rx(ends[0], 0, &none, 1);
			rte_pktmbuf_free_bulk(packets, n);
			got += n;
			send_some(0);
		}
		for (unsigned i = 0; i < 2; i++)
			ends[i]->close(ends[i]);
		// What it had given away is gone with it: so a node ends, with its pool.
		rte_mempool_free(pool);
		pool = cv_shared_pool_create("pool", BUFFERS, 0, 2176, &(struct cv_error){""});
		assert_non_null(pool);
	}
	end(member);
}

// A member that is none: its socket, and the memory as it got it.
struct fake {
	int socket;
	struct cv_shared_layout layout;
	uint8_t *base;
	uint32_t member, link, side;
};

static void fake_receive(struct fake *fake, uint32_t type, struct cv_shared_message *message,
	struct cv_socket_fds *fds)
{
	const double deadline = now_s() + DEADLINE_S;
	int rc;

	while ((rc = cv_socket_receive(fake->socket, message, sizeof(*message), fds)) == -EAGAIN) {
		assert_true(now_s() < deadline);
		usleep(1000);
	}
	assert_int_equal(rc, sizeof(*message));
	assert_int_equal(message->type, type);
}

static void fake_begin(struct fake *fake, const char *path, const char *link)
{
	struct cv_shared_message message = {.type = CV_SHARED_HELLO, .hello = {CV_SHARED_VERSION}};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct cv_socket_fds fds = {0};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fake->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fake->socket, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(cv_socket_send(fake->socket, &message, sizeof(message)), 0);
	fake_receive(fake, CV_SHARED_WELCOME, &message, &fds);
	assert_int_equal(fds.count, 1);
	fake->layout = (struct cv_shared_layout){message.welcome.buffers, message.welcome.stride,
		message.welcome.first, message.welcome.room, 0, 0, 0, 0, 0};
	fake->member = message.welcome.member;
	assert_true(cv_shared_layout_make(&fake->layout));
	fake->base =
		mmap(NULL, fake->layout.size, PROT_READ | PROT_WRITE, MAP_SHARED, fds.fds[0], 0);
	assert_ptr_not_equal(fake->base, MAP_FAILED);
	assert_int_equal(ftruncate(fds.fds[0], 4096), -1); // nobody takes memory back
	cv_socket_fds_close(&fds);
	message = (struct cv_shared_message){.type = CV_SHARED_JOIN};
	snprintf(message.named.name, sizeof(message.named.name), "%s", link);
	assert_int_equal(cv_socket_send(fake->socket, &message, sizeof(message)), 0);
	fake_receive(fake, CV_SHARED_UP, &message, &fds);
	fake->link = message.link;
	fake->side = message.named.side;
}

static void fake_end(struct fake *fake)
{
	munmap(fake->base, fake->layout.size);
	close(fake->socket);
}

static void garbage_hurts_nobody(void **state)
{
	// One that the owner has itself is among them.
	struct rte_mbuf *kept = rte_pktmbuf_alloc(pool);
	const uint64_t own = cv_shared_number(&cv_shared_pool_of(pool)->buffers, kept);
	const uint64_t slots[] = {own | 128ull << 32 | 60ull << 48,
		BUFFERS | 128ull << 32 | 60ull << 48, UINT32_MAX | 128ull << 32 | 60ull << 48,
		1 | 2176ull << 32 | 60ull << 48, 1 | 128ull << 32 | 13ull << 48,
		1 | 65535ull << 32 | 65535ull << 48, UINT64_MAX};
	struct cv_shared_ring *to, *from;
	struct rte_mbuf *packets[BURST];
	struct fake fake;
	char path[108];

	(void)state;
	snprintf(path, sizeof(path), "%s", test_path("fake.sock"));
	open_ends(path);
	fake_begin(&fake, path, "in");
	wait_for_link(ends[0], true);
	to = cv_shared_link(&fake.layout, fake.base, fake.link, fake.side);
	from = cv_shared_link(&fake.layout, fake.base, fake.link, !fake.side);
	for (unsigned i = 0; i < RTE_DIM(slots); i++)
		to->slots[i] = slots[i];
	__atomic_store_n(&to->tail, RTE_DIM(slots), __ATOMIC_RELEASE);
	assert_int_equal(ends[0]->rx(ends[0], 0, packets, BURST), 0);
	assert_int_equal(number(ends[0], NULL, "rx_errors"), RTE_DIM(slots));
	// The same buffer twice: once.
	send_some(0);
	to->slots[RTE_DIM(slots)] = to->slots[RTE_DIM(slots) + 1] = from->slots[0];
	__atomic_store_n(&to->tail, RTE_DIM(slots) + 2, __ATOMIC_RELEASE);
	assert_int_equal(ends[0]->rx(ends[0], 0, packets, BURST), 1);
	rte_pktmbuf_free(packets[0]);
	// Indices that cannot be.
	__atomic_store_n(&to->tail, 5000, __ATOMIC_RELEASE);
	assert_int_equal(ends[0]->rx(ends[0], 0, packets, BURST), 0);
	__atomic_store_n(&from->head, 999999, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 40; i++)
		send_some(0);
	assert_int_equal(number(ends[0], NULL, "broken_queues"), 2);
	// And what the owner looks at when it is gone.
	to->upto = 77777;
	memset(cv_shared_marks(&fake.layout, fake.base, fake.member), 0xff, BUFFERS);
	fake_end(&fake);
	wait_for_link(ends[0], false);
	wait_for_given(0, ends[0]);
	// The next one finds all in order.
	fake_begin(&fake, path, "in");
	wait_for_link(ends[0], true);
	assert_int_equal(number(ends[0], NULL, "broken_queues"), 0);
	// A message that is none; its end is waited for before anything is taken back.
	send_some(0);
	assert_int_equal(send(fake.socket, "x", 1, 0), 1);
	usleep(20000);
	assert_int_not_equal(number(ends[0], "pool", "given"), 0);
	fake_end(&fake);
	wait_for_given(0, ends[0]);
	rte_pktmbuf_free(kept);
	close_ends();
}

// Returns how many packets came back from the one member, which had to copy what it sent.
static unsigned receive_copies(void)
{
	struct rte_mbuf *packets[BURST];
	const uint16_t n = ends[1]->rx(ends[1], 0, packets, BURST);

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(rte_pktmbuf_mtod(packets[i], uint8_t *)[12], 1);
		if (own_packets)
			assert_ptr_equal(packets[i]->pool, pool);
	}
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

// The node's packets lie elsewhere: they are copied, and all goes on.
static void carry_with_another_pool(void)
{
	const double deadline = now_s() + DEADLINE_S;
	struct rte_mempool *shared = pool;
	char path[108];
	pid_t member;

	snprintf(path, sizeof(path), "%s", test_path("other.sock"));
	pool = rte_pktmbuf_pool_create("other", 2047, 0, 0, 2176, -1);
	open_ends(path);
	member = start(path, "in", "out");
	for (unsigned i = 0; i < 2; i++)
		wait_for_link(ends[i], true);
	for (unsigned got = 0; got < 1000; got += receive_copies())
		send_some(0);
	end(member);
	while (number(ends[0], "pool", "given") > 0) {
		struct rte_mbuf *none;

		assert_true(now_s() < deadline);
		ends[0]->rx(ends[0], 0, &none, 1);
		receive_copies();
		usleep(1000);
	}
	close_ends();
	assert_int_equal(rte_mempool_avail_count(pool), 2047);
	rte_mempool_free(pool);
	pool = shared;
}

static void another_pool(void **state)
{
	(void)state;
	carry_with_another_pool();
}

// Nobody but this process may be given what lies in another's memory: each copies what it receives.
static void another_pool_that_all_packets_lie_in(void **state)
{
	(void)state;
	own_packets = true;
	setenv("OWN_PACKETS", "1", 1);
	carry_with_another_pool();
	unsetenv("OWN_PACKETS");
	own_packets = false;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_die_and_come_back),
		cmocka_unit_test(an_owner_that_only_sends),
		cmocka_unit_test(owner_comes_back),
		cmocka_unit_test(garbage_hurts_nobody),
		cmocka_unit_test(another_pool),
		cmocka_unit_test(another_pool_that_all_packets_lie_in),
	};
	struct cv_error error = {""};
	int failed = 1;

	test_eal_begin(argv[0]);
	if (argc == 5)
		forward(argv[2], argv[3], argv[4]);
	pool = cv_shared_pool_create("pool", BUFFERS, 0, 2176, &error);
	if (argc == 2) // one test alone
		cmocka_set_test_filter(argv[1]);
	if (pool != NULL)
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return failed;
}
