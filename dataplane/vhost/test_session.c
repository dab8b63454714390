// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A front end's messages, one after the other, and what of the rings can be used after each.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/virtio_config.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vhost/log.h"
#include "vhost/message.h"
#include "vhost/session.h"

#define BIT(n) (1ull << (n))
#define BASE 0x100000u // the memory, as the front end names it
#define BYTES 0x20000u
#define GUEST 0x40000000u // the same, as the guest names it

static struct cv_vhost_session session;
static struct cv_vhost_message reply;
static int file;

static int begin(void **state)
{
	session = (struct cv_vhost_session){.pairs = 2, .ring_size_max = 1024, .packed = true};
	cv_vhost_session_begin(&session);
	file = memfd_create("guest", MFD_CLOEXEC);
	return ftruncate(file, BYTES);
}

static int end(void **state)
{
	cv_vhost_session_end(&session);
	close(file);
	return 0;
}

// Sends a message as the device does, with a descriptor, or -1. Returns what the session does.
static int handle(struct cv_vhost_message message, int fd)
{
	struct cv_error error = {""};
	int fds[8] = {fd < 0 ? -1 : dup(fd), -1, -1, -1, -1, -1, -1, -1};
	int rc;

	message.flags = CV_VHOST_VERSION;
	rc = cv_vhost_header_check(&message, session.protocol_features, &error);
	if (rc == 0)
		rc = cv_vhost_message_check(&message, fd >= 0, &error);
	if (rc == 0)
		rc = cv_vhost_session_handle(&session, &message, fds, &reply, &error);
	assert_int_equal(rc < 0, error.text[0] != '\0');
	if (fds[0] >= 0)
		close(fds[0]);
	return rc;
}

static int handle_u64(uint32_t request, uint64_t value, int fd)
{
	return handle((struct cv_vhost_message){.request = request, .bytes = 8, .u64 = value}, fd);
}

static int handle_state(uint32_t request, uint32_t index, uint32_t number)
{
	return handle(
		(struct cv_vhost_message){.request = request, .bytes = 8, .state = {index, number}},
		-1);
}

static int share(uint64_t bytes)
{
	return handle((struct cv_vhost_message){.request = CV_VHOST_SET_MEM_TABLE,
			      .bytes = 40,
			      .memory = {.count = 1, .regions = {{GUEST, bytes, BASE, 0}}}},
		file);
}

static int place(uint32_t index, uint64_t desc, uint64_t avail, uint64_t used)
{
	return handle((struct cv_vhost_message){.request = CV_VHOST_SET_VRING_ADDR,
			      .bytes = 40,
			      .address = {.index = index,
				      .desc_user_addr = desc,
				      .avail_user_addr = avail,
				      .used_user_addr = used}},
		-1);
}

static int ring(uint16_t index, struct cv_vring *vring)
{
	struct cv_error error = {""};
	const int rc = cv_vhost_session_ring(&session, index, vring, &error);

	assert_int_equal(rc == -EINVAL, error.text[0] != '\0');
	return rc;
}

// A ring of 256 that runs.
static void start_ring(uint32_t index)
{
	const uint64_t at = BASE + index * 0x4000;

	assert_int_equal(handle_state(CV_VHOST_SET_VRING_NUM, index, 256), 0);
	assert_int_equal(handle_state(CV_VHOST_SET_VRING_BASE, index, 0), 0);
	assert_int_equal(place(index, at, at + 0x1000, at + 0x2000), 0);
	assert_int_equal(handle_u64(CV_VHOST_SET_VRING_KICK, index | CV_VHOST_VRING_NO_FD, -1), 0);
}

static void start(uint64_t features)
{
	struct cv_vring vring;

	assert_int_equal(handle_u64(CV_VHOST_SET_FEATURES, features, -1), 0);
	assert_int_equal(share(BYTES), 0);
	start_ring(0);
	assert_int_equal(ring(0, &vring), 0);
	assert_ptr_equal(vring.desc, session.memory.guest.regions[0].host);
	assert_int_equal(vring.size, 256);
	assert_int_equal(vring.is_packed, features >> VIRTIO_F_RING_PACKED & 1);
}

static void what_is_offered_can_be_accepted(void **state)
{
	assert_int_equal(
		handle((struct cv_vhost_message){.request = CV_VHOST_GET_FEATURES}, -1), 1);
	const uint64_t offered = reply.u64;
	assert_int_equal(reply.flags, CV_VHOST_VERSION | CV_VHOST_REPLY);
	assert_int_equal(reply.bytes, 8);
	assert_int_equal(handle_u64(CV_VHOST_SET_FEATURES, offered, -1), 0);
	for (int bit = 0; bit < 64; bit++) {
		assert_int_equal(
			handle_u64(CV_VHOST_SET_FEATURES, BIT(bit), -1) == 0, offered >> bit & 1);
	}
	session.packed = false;
	handle((struct cv_vhost_message){.request = CV_VHOST_GET_FEATURES}, -1);
	assert_int_equal(reply.u64, offered & ~BIT(VIRTIO_F_RING_PACKED));
	assert_true(handle_u64(CV_VHOST_SET_FEATURES, offered, -1) < 0);
	assert_int_equal(
		handle((struct cv_vhost_message){.request = CV_VHOST_GET_PROTOCOL_FEATURES}, -1),
		1);
	const uint64_t protocol = reply.u64;
	for (int bit = 0; bit < 64; bit++)
		assert_int_equal(handle_u64(CV_VHOST_SET_PROTOCOL_FEATURES, BIT(bit), -1) == 0,
			protocol >> bit & 1);
	assert_int_equal(handle_u64(CV_VHOST_SET_PROTOCOL_FEATURES, protocol, -1), 0);
	assert_int_equal(
		handle((struct cv_vhost_message){.request = CV_VHOST_GET_QUEUE_NUM}, -1), 1);
	assert_int_equal(reply.u64, 2);
	assert_true(handle_u64(CV_VHOST_NET_SET_MTU, 67, -1) < 0);
	assert_int_equal(handle_u64(CV_VHOST_NET_SET_MTU, 1500, -1), 0);
	assert_true(handle_u64(CV_VHOST_NET_SET_MTU, 65536, -1) < 0);
}

static void a_reply_where_one_is_wanted(void **state)
{
	struct cv_vhost_message message = {
		.request = CV_VHOST_SET_OWNER, .flags = CV_VHOST_VERSION | CV_VHOST_NEED_REPLY};

	assert_int_equal(cv_vhost_session_handle(&session, &message, NULL, &reply, NULL), 0);
	handle_u64(CV_VHOST_SET_PROTOCOL_FEATURES, BIT(CV_VHOST_PROTOCOL_F_REPLY_ACK), -1);
	assert_int_equal(cv_vhost_session_handle(&session, &message, NULL, &reply, NULL), 1);
	assert_int_equal(reply.request, CV_VHOST_SET_OWNER);
	assert_int_equal(reply.u64, 0);
}

static void a_ring_runs_when_all_is_set(void **state)
{
	struct cv_vring vring;

	handle_u64(CV_VHOST_SET_FEATURES, BIT(CV_VHOST_F_PROTOCOL_FEATURES), -1);
	handle_u64(CV_VHOST_SET_PROTOCOL_FEATURES, BIT(CV_VHOST_PROTOCOL_F_STATUS), -1);
	start_ring(3);
	assert_int_equal(ring(3, &vring), -EAGAIN); // no memory
	assert_int_equal(share(BYTES), 0);
	assert_int_equal(ring(3, &vring), -EAGAIN); // not enabled
	assert_int_equal(handle_state(CV_VHOST_SET_VRING_ENABLE, 3, 1), 0);
	assert_int_equal(ring(3, &vring), -EAGAIN); // the driver is not ready
	assert_int_equal(handle_u64(CV_VHOST_SET_STATUS, VIRTIO_CONFIG_S_DRIVER_OK, -1), 0);
	assert_int_equal(ring(3, &vring), 0);
	assert_int_equal(ring(2, &vring), -EAGAIN);
	assert_int_equal(handle_state(CV_VHOST_SET_VRING_ENABLE, 3, 0), 0);
	assert_int_equal(ring(3, &vring), -EAGAIN);
	assert_int_equal(handle_state(CV_VHOST_SET_VRING_ENABLE, 3, 1), 0);
	assert_int_equal(ring(3, &vring), 0);
	assert_int_equal(handle_state(CV_VHOST_GET_VRING_BASE, 3, 0), 1);
	assert_int_equal(ring(3, &vring), -EAGAIN);
	start_ring(3);
	assert_int_equal(ring(3, &vring), 0);
	assert_int_equal(handle_u64(CV_VHOST_SET_STATUS, 0, -1), 0);
	assert_int_equal(ring(3, &vring), -EAGAIN);
	handle_u64(CV_VHOST_SET_STATUS, VIRTIO_CONFIG_S_DRIVER_OK, -1);
	assert_int_equal(ring(3, &vring), -EAGAIN); // a reset stopped it
	start_ring(3);
	assert_int_equal(handle((struct cv_vhost_message){.request = CV_VHOST_RESET_OWNER}, -1), 0);
	assert_int_equal(ring(3, &vring), -EAGAIN);
}

static void rings_and_sizes_are_bounded(void **state)
{
	for (uint32_t index = 0; index < 256; index++) {
		const bool there = index < 4;

		assert_int_equal(handle_state(CV_VHOST_SET_VRING_NUM, index, 256) == 0, there);
		assert_int_equal(place(index, BASE, BASE, BASE) == 0, there);
		assert_int_equal(handle_state(CV_VHOST_SET_VRING_BASE, index, 0) == 0, there);
		assert_int_equal(handle_state(CV_VHOST_GET_VRING_BASE, index, 0) == 1, there);
		assert_int_equal(handle_state(CV_VHOST_SET_VRING_ENABLE, index, 1) == 0, there);
		for (uint32_t request = CV_VHOST_SET_VRING_KICK; request <= CV_VHOST_SET_VRING_ERR;
			request++)
			assert_int_equal(
				handle_u64(request, index | CV_VHOST_VRING_NO_FD, -1) == 0, there);
	}
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, UINT32_MAX, 256) < 0);
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, 0x80000000, 256) < 0);
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, 0, 0) < 0);
	assert_int_equal(handle_state(CV_VHOST_SET_VRING_NUM, 0, 1024), 0);
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, 0, 1025) < 0);
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, 0, 65536 + 256) < 0);
	assert_true(handle_state(CV_VHOST_SET_VRING_NUM, 0, UINT32_MAX) < 0);
}

// The audit's item 3: what was checked for one size, layout, place or memory holds for no other.
static void each_change_is_validated_anew(void **state)
{
	const uint64_t last = BASE + BYTES;
	struct cv_vring vring;

	start(0);
	// The used ring of 2054 bytes ends where the memory does.
	place(0, BASE, BASE + 0x1000, last - 2056);
	assert_int_equal(ring(0, &vring), 0);
	handle_state(CV_VHOST_SET_VRING_NUM, 0, 512); // a size alone, afterwards
	assert_int_equal(ring(0, &vring), -EINVAL);
	handle_state(CV_VHOST_SET_VRING_NUM, 0, 256);
	assert_int_equal(ring(0, &vring), 0);
	place(0, BASE, BASE + 0x1000, last - 2052);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, BASE, last - (6 + 256 * 2), BASE + 0x2000);
	assert_int_equal(ring(0, &vring), 0);
	place(0, BASE, last - (6 + 256 * 2) + 2, BASE + 0x2000);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, last - 256 * 16, BASE, BASE + 0x2000);
	assert_int_equal(ring(0, &vring), 0);
	place(0, last - 255 * 16, BASE, BASE + 0x2000);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, BASE + 8, BASE + 0x1000, BASE + 0x2000); // not aligned
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, BASE, BASE + 0x1001, BASE + 0x2000);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, BASE, BASE + 0x1000, BASE + 0x2002);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, 0, 0, 0);
	assert_int_equal(ring(0, &vring), -EINVAL);
	place(0, UINT64_MAX & ~15ull, BASE, BASE);
	assert_int_equal(ring(0, &vring), -EINVAL);
	// Packed at the kick, split later.
	handle_u64(CV_VHOST_SET_FEATURES, BIT(VIRTIO_F_RING_PACKED), -1);
	place(0, BASE, last - 4, last - 4);
	assert_int_equal(ring(0, &vring), 0);
	handle_u64(CV_VHOST_SET_FEATURES, 0, -1);
	assert_int_equal(ring(0, &vring), -EINVAL);
	handle_u64(CV_VHOST_SET_FEATURES, BIT(VIRTIO_F_RING_PACKED), -1);
	handle_state(CV_VHOST_SET_VRING_NUM, 0, 300); // a packed ring may have that many
	assert_int_equal(ring(0, &vring), 0);
	handle_u64(CV_VHOST_SET_FEATURES, 0, -1);
	place(0, BASE, BASE + 0x2000, BASE + 0x4000);
	assert_int_equal(ring(0, &vring), -EINVAL); // a split ring not
	handle_state(CV_VHOST_SET_VRING_NUM, 0, 256);
	assert_int_equal(ring(0, &vring), 0);
	// The memory becomes smaller.
	assert_int_equal(share(0x4000), 0);
	assert_int_equal(ring(0, &vring), -EINVAL);
	assert_int_equal(share(0x8000), 0);
	assert_int_equal(ring(0, &vring), 0);
	// A packed ring's place outside of it.
	handle_u64(CV_VHOST_SET_FEATURES, BIT(VIRTIO_F_RING_PACKED), -1);
	handle_state(CV_VHOST_SET_VRING_BASE, 0, 256);
	assert_int_equal(ring(0, &vring), -EINVAL);
	handle_state(CV_VHOST_SET_VRING_BASE, 0, 0x8000 | 255);
	assert_int_equal(ring(0, &vring), 0);
}

// The audit's item 4: a table that fails, and then any other message.
static void after_a_table_that_fails(void **state)
{
	struct cv_vring vring;

	for (int before = 0; before < 2; before++) {
		if (before)
			start(0);
		assert_true(share(BYTES + 1) < 0);
		assert_int_equal(ring(0, &vring), before ? 0 : -EAGAIN);
		start_ring(0);
		assert_int_equal(ring(0, &vring), before ? 0 : -EAGAIN);
		assert_int_equal(handle_state(CV_VHOST_SET_VRING_NUM, 0, 128), 0);
		assert_int_equal(handle_u64(CV_VHOST_SET_FEATURES, 0, -1), 0);
		assert_int_equal(ring(0, &vring), before ? 0 : -EAGAIN);
		if (before)
			*(volatile uint8_t *)vring.desc = 1; // it is there
	}
}

static void a_ring_goes_on_where_it_was(void **state)
{
	struct cv_vring vring;
	uint8_t *host;

	start(0);
	host = session.memory.guest.regions[0].host;
	// A back end before us gave back 77 buffers, which the front end need not know.
	handle_state(CV_VHOST_GET_VRING_BASE, 0, 0);
	*(uint16_t *)(void *)(host + 0x2002) = 77;
	start_ring(0);
	assert_int_equal(ring(0, &vring), 0);
	assert_int_equal(vring.next_avail, 77);
	assert_int_equal(vring.next_used, 77);
	// Whoever used it came to 80.
	session.rings[0].base = (struct cv_vring_base){80, 80};
	assert_int_equal(ring(0, &vring), 0);
	assert_int_equal(vring.next_avail, 80);
	assert_int_equal(handle_state(CV_VHOST_GET_VRING_BASE, 0, 0), 1);
	assert_int_equal(reply.bytes, 8);
	assert_int_equal(reply.state.index, 0);
	assert_int_equal(reply.state.num, 80);
	// The packed ring has both places in one number, with their wrap counters.
	handle_u64(CV_VHOST_SET_FEATURES, BIT(VIRTIO_F_RING_PACKED), -1);
	start_ring(0);
	handle_state(CV_VHOST_SET_VRING_BASE, 0, 0x8000 | 5);
	assert_int_equal(ring(0, &vring), 0);
	assert_int_equal(vring.next_avail, 5);
	assert_true(vring.avail_wrap && vring.used_wrap);
	handle_state(CV_VHOST_GET_VRING_BASE, 0, 0);
	assert_int_equal(reply.state.num, 0x80058005);
}

static void only_an_eventfd_is_called(void **state)
{
	const int event = eventfd(0, 0);
	struct cv_vring vring;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	start(0);
	assert_int_equal(ring(0, &vring), 0);
	assert_int_equal(vring.call_fd, -1);
	assert_true(handle_u64(CV_VHOST_SET_VRING_CALL, 0, ends[1]) < 0);
	assert_true(handle_u64(CV_VHOST_SET_VRING_CALL, 0, file) < 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(handle_u64(CV_VHOST_SET_VRING_CALL, 0, event), 0);
	assert_int_equal(ring(0, &vring), 0);
	assert_true(vring.call_fd >= 0);
	assert_int_equal(handle_u64(CV_VHOST_SET_VRING_CALL, CV_VHOST_VRING_NO_FD, -1), 0);
	assert_int_equal(ring(0, &vring), 0);
	assert_int_equal(vring.call_fd, -1);
	close(event);
	close(ends[0]);
	close(ends[1]);
}

static int log_at(uint64_t bytes, uint64_t offset)
{
	return handle(
		(struct cv_vhost_message){
			.request = CV_VHOST_SET_LOG_BASE, .bytes = 16, .log = {bytes, offset}},
		file);
}

static void what_is_written_is_logged(void **state)
{
	struct cv_vring vring;
	const uint8_t *log;

	start(BIT(CV_VHOST_F_LOG_ALL));
	assert_true(log_at(16, 0) < 0); // not negotiated
	handle_u64(CV_VHOST_SET_PROTOCOL_FEATURES, BIT(CV_VHOST_PROTOCOL_F_LOG_SHMFD), -1);
	assert_int_equal(ring(0, &vring), 0);
	assert_null(vring.log);
	assert_true(log_at(BYTES + 1, 0) < 0);
	assert_true(log_at(16, UINT64_MAX) < 0);
	assert_true(log_at(0, 0) < 0);
	assert_int_equal(log_at(2, 0x1f000), 1);
	assert_int_equal(ring(0, &vring), 0);
	assert_ptr_equal(vring.log, cv_vhost_log_bytes);
	log = session.log.data;
	vring.log(vring.log_context, 0x1fff, 2); // pages 1 and 2
	assert_int_equal(log[0], 0x06);
	vring.log(vring.log_context, 0x8000, 0x1000);
	assert_int_equal(log[1], 0x01);
	vring.log(vring.log_context, 0xf000, UINT64_MAX - 0xf000); // beyond the log, and far
	assert_int_equal(log[1], 0x81);
	assert_int_equal(log[2], 0);
	vring.log(vring.log_context, UINT64_MAX - 1, 100);
	vring.log(vring.log_context, 0, 0);
	assert_int_equal(log[0], 0x06);
	// The ring itself, where the front end wants that.
	vring.log_used(vring.log_context, 4, 4);
	assert_int_equal(log[0], 0x06);
	session.rings[0].address.flags = 1 << VHOST_VRING_F_LOG;
	session.rings[0].address.log_guest_addr = 0x3000;
	vring.log_used(vring.log_context, 4, 4);
	assert_int_equal(log[0], 0x0e);
	session.rings[0].address.log_guest_addr = UINT64_MAX;
	vring.log_used(vring.log_context, 4, 4);
	assert_int_equal(log[0], 0x0e);
	handle_u64(CV_VHOST_SET_FEATURES, 0, -1); // migration given up
	assert_int_equal(ring(0, &vring), 0);
	assert_null(vring.log);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_offered_can_be_accepted),
		TEST(a_reply_where_one_is_wanted),
		TEST(a_ring_runs_when_all_is_set),
		TEST(rings_and_sizes_are_bounded),
		TEST(each_change_is_validated_anew),
		TEST(after_a_table_that_fails),
		TEST(a_ring_goes_on_where_it_was),
		TEST(only_an_eventfd_is_called),
		TEST(what_is_written_is_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
