// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <limits.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/packet_socket.h"

#define QUEUES 4
// As DPDK's driver asks: a number, by hash, with fragments reassembled.
#define NUMBER 0x1234u
#define KIND ((uint32_t)(PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER) << 16)
#define REQUESTED (NUMBER | KIND | (uint32_t)PACKET_FANOUT_FLAG_DEFRAG << 16)

// A packet socket on the loopback interface.
static int open_socket(int protocol)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons((uint16_t)protocol),
		.sll_ifindex = (int)if_nametoindex("lo")};
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons((uint16_t)protocol));

	assert_true(fd >= 0);
	assert_return_code(bind(fd, (const struct sockaddr *)&at, sizeof(at)), errno);
	return fd;
}

static uint32_t group_of(int fd)
{
	uint32_t fanout = 0;
	socklen_t size = sizeof(fanout);

	assert_return_code(getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, &size), errno);
	return fanout;
}

// As another program has it: not through the function under test.
static int open_others(int protocol, uint32_t fanout)
{
	const int fd = open_socket(protocol);

	assert_return_code(
		syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof(fanout)),
		errno);
	return fd;
}

// Opens a port's queues as the driver does; all are in one group, which is returned.
static uint32_t open_queues(int fds[QUEUES], uint32_t requested)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		fds[i] = open_socket(ETH_P_ALL);
		if (setsockopt(fds[i], SOL_PACKET, PACKET_FANOUT, &requested, sizeof(requested)) !=
			0)
			fail_msg("queue %u: %s", i, strerror(errno));
		assert_int_equal(group_of(fds[i]), group_of(fds[0]));
	}
	return group_of(fds[0]);
}

static void close_all(const int fds[QUEUES])
{
	for (unsigned i = 0; i < QUEUES; i++)
		close(fds[i]);
}

static void a_port_has_a_group_of_its_own(void **state)
{
	static const struct {
		const char *description;
		int protocol; // of who has the number already; 0: nobody
		uint32_t fanout;
	} rows[] = {
		{"the number is nobody's", 0, 0},
		// As on another interface: the kernel refuses to join them.
		{"somebody else's, who listens to something else", ETH_P_IP, NUMBER | KIND},
		{"somebody else's, of another kind", ETH_P_ALL,
			NUMBER | (uint32_t)PACKET_FANOUT_LB << 16},
		// The kernel would join them, and spread packets over both programs.
		{"somebody else's, who listens to the same", ETH_P_ALL, NUMBER | KIND},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fds[QUEUES], others = -1;

		if (rows[i].protocol != 0)
			others = open_others(rows[i].protocol, rows[i].fanout);
		cv_packet_socket_begin();
		const uint32_t group = open_queues(fds, REQUESTED);
		assert_int_equal(group & ~0xffffu, KIND); // fragments stay fragments
		if (others >= 0 && group == group_of(others))
			fail_msg("%s: joined", rows[i].description);
		close_all(fds);
		if (others >= 0)
			close(others);
	}
}

static void ports_share_no_group(void **state)
{
	int one[QUEUES], two[QUEUES], three[QUEUES];
	(void)state;

	cv_packet_socket_begin();
	const uint32_t first = open_queues(one, REQUESTED);
	cv_packet_socket_begin();
	const uint32_t second = open_queues(two, REQUESTED); // on the same interface
	assert_int_not_equal(first, second);
	// Ports that are opened by DPDK's devargs do not begin: on other interfaces they ask for
	// other numbers.
	assert_int_not_equal(open_queues(three, REQUESTED ^ 1), second);
	close_all(one);
	close_all(two);
	close_all(three);
}

static void a_group_ends_with_its_port(void **state)
{
	int fds[QUEUES], more[QUEUES];
	(void)state;

	cv_packet_socket_begin();
	const uint32_t before = open_queues(fds, REQUESTED);
	close_all(fds);
	// Its first socket's number is another socket's now, its group's another program's.
	const int first = open_socket(ETH_P_ALL);
	assert_int_equal(first, fds[0]);
	const int others = open_others(ETH_P_ALL, before);
	assert_int_not_equal(open_queues(more, REQUESTED), before);
	close_all(more);
	close(first);
	close(others);
}

// What the kernel lets a socket have on its way, in bytes.
static int send_buffer(int fd)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);

	assert_return_code(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size), errno);
	return bytes;
}

static int ring_to_send_from(unsigned slots, unsigned slot_bytes)
{
	const struct tpacket_req ring = {
		.tp_block_size = 4096,
		.tp_block_nr = slots * slot_bytes / 4096,
		.tp_frame_size = slot_bytes,
		.tp_frame_nr = slots,
	};
	const int fd = open_socket(ETH_P_ALL);
	int version = TPACKET_V2;

	assert_return_code(
		setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), errno);
	assert_return_code(setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof(ring)), errno);
	return fd;
}

static void all_slots_may_be_on_their_way(void **state)
{
	const unsigned slots[] = {64, 512, 1024};
	int others = open_socket(ETH_P_ALL), bytes = 4096;
	const int usual = send_buffer(others);
	const bool any = setsockopt(others, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) == 0;
	(void)state;

	assert_true(usual < 1024 * 2048); // else nothing is tested
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		const int fd = ring_to_send_from(slots[i], 2048);
		const int needed = (int)slots[i] * 2048;

		// Without the right to any buffer it may be a smaller one, but none below the usual.
		assert_true(send_buffer(fd) >= (any || needed < usual ? needed : usual));
		close(fd);
	}
	close(others);
}

static void other_options_pass(void **state)
{
	const int fd = open_socket(ETH_P_ALL);
	int version = TPACKET_V2, bytes = 1 << 16, wanted = bytes;
	socklen_t size = sizeof(bytes);
	(void)state;

	assert_return_code(
		setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), errno);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)), errno);
	assert_return_code(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size), errno);
	assert_int_equal(bytes, 2 * wanted);
	assert_int_equal(setsockopt(-1, SOL_PACKET, PACKET_FANOUT, &version, sizeof(version)), -1);
	assert_int_equal(errno, EBADF);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_has_a_group_of_its_own),
		cmocka_unit_test(ports_share_no_group),
		cmocka_unit_test(a_group_ends_with_its_port),
		cmocka_unit_test(all_slots_may_be_on_their_way),
		cmocka_unit_test(other_options_pass),
	};
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK};

	// Numbers count within a network namespace: this is one of the test's own.
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
		fprintf(stderr, "skipped: no network namespace here: %s\n", strerror(errno));
		return 77;
	}
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) != 0) {
		perror("lo");
		return 1;
	}
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
