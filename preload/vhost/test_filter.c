// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <string.h>

#include "preload/vhost/filter.h"

#define BIT(n) (1ull << (n))
#define OFFERED                                                                       \
	(BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_F_RING_PACKED) | BIT(VIRTIO_NET_F_MQ) | \
		BIT(CV_VHOST_F_LOG_ALL) | BIT(CV_VHOST_F_PROTOCOL_FEATURES))
#define SPLIT (BIT(VIRTIO_F_VERSION_1) | BIT(CV_VHOST_F_PROTOCOL_FEATURES))
#define PACKED (SPLIT | BIT(VIRTIO_F_RING_PACKED))
#define MANY (SPLIT | BIT(VIRTIO_NET_F_MQ))
#define ALL_PROTOCOL 0xdffull // what rte_vhost offers where the program asked for nothing, and more
#define PROTOCOL (BIT(0) | BIT(1) | BIT(3))
#define MIB (1u << 20)

// A message as a test writes it, and what comes of it.
struct row {
	uint32_t request;
	uint64_t first, second; // of a state: ring and number; of a region or log: bytes and offset
	unsigned files;
	int rc;
};

static struct cv_vhost_message message_of(const struct row *row)
{
	struct cv_vhost_message message = {.request = row->request, .flags = CV_VHOST_VERSION};

	switch (row->request) {
	case CV_VHOST_SET_MEM_TABLE:
		message.memory.count = 1;
		message.memory.regions[0] =
			(struct cv_vhost_region){0x1000, row->first, 0x7f0000000000, row->second};
		message.bytes = 8 + sizeof(struct cv_vhost_region);
		break;
	case CV_VHOST_SET_LOG_BASE:
		message.log.bytes = row->first;
		message.log.offset = row->second;
		message.bytes = 16;
		break;
	case CV_VHOST_SET_VRING_ADDR:
		message.address.index = (uint32_t)row->first;
		message.bytes = sizeof(message.address);
		break;
	case CV_VHOST_SET_VRING_NUM:
	case CV_VHOST_SET_VRING_BASE:
	case CV_VHOST_GET_VRING_BASE:
	case CV_VHOST_SET_VRING_ENABLE:
		message.state.index = (uint32_t)row->first;
		message.state.num = (uint32_t)row->second;
		message.bytes = sizeof(message.state);
		break;
	case CV_VHOST_SET_FEATURES:
	case CV_VHOST_SET_PROTOCOL_FEATURES:
	case CV_VHOST_SET_VRING_KICK:
	case CV_VHOST_SET_VRING_CALL:
		message.u64 = row->first;
		message.bytes = sizeof(message.u64);
		break;
	default:
		message.u64 = row->first;
		message.bytes = (uint32_t)row->second;
	}
	return message;
}

static int validate(struct cv_filter *filter, const struct row *row)
{
	const struct cv_vhost_message message = message_of(row);
	const uint64_t bytes[8] = {MIB, MIB, CV_FILTER_NO_MEMORY, MIB, MIB, MIB, MIB, MIB};
	struct cv_error error = {""};
	const int rc = cv_filter_validate(filter, &message, bytes, row->files, &error);

	assert_int_equal(rc != 0, error.text[0] != '\0');
	return rc;
}

#define FEATURES(f)                               \
	{                                         \
		CV_VHOST_SET_FEATURES, f, 0, 0, 0 \
	}
#define NEGOTIATE(f) {CV_VHOST_SET_PROTOCOL_FEATURES, PROTOCOL, 0, 0, 0}, FEATURES(f)
#define MEMORY                                       \
	{                                            \
		CV_VHOST_SET_MEM_TABLE, MIB, 0, 1, 0 \
	}
#define NUM(ring, n, rc)                               \
	{                                              \
		CV_VHOST_SET_VRING_NUM, ring, n, 0, rc \
	}
#define BASE(ring, n, rc)                               \
	{                                               \
		CV_VHOST_SET_VRING_BASE, ring, n, 0, rc \
	}
#define ADDR(ring)                                     \
	{                                              \
		CV_VHOST_SET_VRING_ADDR, ring, 0, 0, 0 \
	}
#define KICK(ring, rc)                                  \
	{                                               \
		CV_VHOST_SET_VRING_KICK, ring, 0, 1, rc \
	}
#define STOP(ring)                                     \
	{                                              \
		CV_VHOST_GET_VRING_BASE, ring, 0, 0, 0 \
	}
#define START(ring, n) NUM(ring, n, 0), BASE(ring, 0, 0), ADDR(ring), KICK(ring, 0)

static const struct {
	const char *what;
	struct row rows[16];
} stories[] = {
	{"an honest guest, which stops and starts anew, packed",
		{NEGOTIATE(SPLIT), MEMORY, START(0, 256), {CV_VHOST_SET_VRING_ENABLE, 0, 1, 0, 0},
			STOP(0), FEATURES(PACKED), START(0, 100)}},
	{"migrated while it runs",
		{NEGOTIATE(SPLIT), MEMORY, START(0, 256), {CV_VHOST_SET_LOG_BASE, MIB, 0, 1, 0},
			FEATURES(SPLIT | BIT(26)), ADDR(0)}},
	{"memory is plugged while it runs", {NEGOTIATE(SPLIT), MEMORY, START(0, 256), MEMORY}},
	{"a feature that was not offered", {{CV_VHOST_SET_FEATURES, BIT(33), 0, 0, -EPROTO}}},
	{"a protocol feature that was not",
		{{CV_VHOST_SET_PROTOCOL_FEATURES, BIT(8), 0, 0, -EPROTO}}},
	{"one that rte_vhost offers, and nobody needs",
		{{CV_VHOST_SET_PROTOCOL_FEATURES, BIT(11), 0, 0, -EPROTO}}},
	{"post-copy", {{28, 0, 0, 0, -EPROTO}}},
	{"post-copy after all features", {NEGOTIATE(SPLIT), {29, 0, 0, 0, -EPROTO}}},
	{"in-flight buffers", {NEGOTIATE(SPLIT), {31, 0, 20, 0, -EPROTO}}},
	{"a log that was not negotiated", {{CV_VHOST_SET_LOG_BASE, MIB, 0, 1, -EPROTO}}},
	{"RESET_OWNER", {{CV_VHOST_RESET_OWNER, 0, 0, 0, -EPROTO}}},
	{"a file with a message that has none", {{CV_VHOST_GET_FEATURES, 0, 0, 1, -EPROTO}}},
	{"no file with one that has", {{CV_VHOST_SET_MEM_TABLE, MIB, 0, 0, -EPROTO}}},
	{"memory beyond its file", {{CV_VHOST_SET_MEM_TABLE, MIB, 1, 1, -EPROTO}}},
	{"no memory", {{CV_VHOST_SET_MEM_TABLE, 0, 0, 1, -EPROTO}}},
	{"an offset that wraps", {{CV_VHOST_SET_MEM_TABLE, MIB, UINT64_MAX, 1, -EPROTO}}},
	{"a size that wraps", {{CV_VHOST_SET_MEM_TABLE, UINT64_MAX, 0, 1, -EPROTO}}},
	{"a log beyond its file",
		{NEGOTIATE(SPLIT), {CV_VHOST_SET_LOG_BASE, MIB + 1, 0, 1, -EPROTO}}},
	{"a log at an offset", {NEGOTIATE(SPLIT), {CV_VHOST_SET_LOG_BASE, 4096, 4096, 1, -EPROTO}}},
	{"no descriptors", {NEGOTIATE(SPLIT), NUM(0, 0, -EPROTO)}},
	{"too many", {NEGOTIATE(SPLIT), NUM(0, 65536, -EPROTO)}},
	{"too many for VIRTIO", {NEGOTIATE(PACKED), NUM(0, 32769, -EPROTO)}},
	{"no power of two", {NEGOTIATE(SPLIT), NUM(0, 100, -EPROTO)}},
	{"no such ring", {NEGOTIATE(SPLIT), NUM(256, 64, -EPROTO)}},
	{"larger while it runs", {NEGOTIATE(SPLIT), MEMORY, START(0, 256), NUM(0, 512, -EPROTO)}},
	{"smaller while it runs", {NEGOTIATE(SPLIT), MEMORY, START(0, 256), NUM(0, 8, -EPROTO)}},
	{"as it is while it runs", {NEGOTIATE(SPLIT), MEMORY, START(0, 256), NUM(0, 256, 0)}},
	{"another layout while it runs", {NEGOTIATE(SPLIT), MEMORY, START(0, 256),
						 {CV_VHOST_SET_FEATURES, PACKED, 0, 0, -EPROTO}}},
	{"another layout after it was described",
		{NEGOTIATE(SPLIT), NUM(0, 256, 0), {CV_VHOST_SET_FEATURES, PACKED, 0, 0, -EPROTO}}},
	{"started without memory", {NEGOTIATE(SPLIT), NUM(0, 64, 0), ADDR(0), KICK(0, -EPROTO)}},
	{"started without a size", {NEGOTIATE(SPLIT), MEMORY, ADDR(0), KICK(0, -EPROTO)}},
	{"started without addresses", {NEGOTIATE(SPLIT), MEMORY, NUM(0, 64, 0), KICK(0, -EPROTO)}},
	{"started again as if it were described",
		{NEGOTIATE(SPLIT), MEMORY, START(0, 64), STOP(0), KICK(0, -EPROTO)}},
	{"a place that a packed ring does not have",
		{NEGOTIATE(PACKED), MEMORY, NUM(0, 64, 0), BASE(0, 64, 0), ADDR(0),
			KICK(0, -EPROTO)}},
	{"the last place, and the wrap counter", {NEGOTIATE(PACKED), MEMORY, NUM(0, 64, 0),
							 BASE(0, 0x803f, 0), ADDR(0), KICK(0, 0)}},
	{"a place it does not have, while it runs",
		{NEGOTIATE(PACKED), MEMORY, START(0, 64), BASE(0, 64, -EPROTO)}},
	{"a place of a split ring, of a ring that is packed now",
		{NEGOTIATE(SPLIT), BASE(0, 500, 0), FEATURES(PACKED), MEMORY, NUM(0, 64, 0),
			ADDR(0), KICK(0, -EPROTO)}},
	{"more queues, then no MQ, which has rte_vhost forget them",
		{NEGOTIATE(MANY), MEMORY, NUM(2, 64, 0), BASE(2, 0, 0), ADDR(2), FEATURES(SPLIT),
			KICK(2, -EPROTO)}},
	{"no MQ while another queue runs", {NEGOTIATE(MANY), MEMORY, START(2, 64),
						   {CV_VHOST_SET_FEATURES, SPLIT, 0, 0, -EPROTO}}},
};

static void validates(void **state)
{
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		struct cv_filter filter;

		cv_filter_begin(&filter, OFFERED, ALL_PROTOCOL);
		for (const struct row *row = stories[i].rows; row->request != 0; row++) {
			const int rc = validate(&filter, row);

			if (rc != row->rc)
				fail_msg("%s: message %td: %d", stories[i].what,
					row - stories[i].rows, rc);
		}
	}
}

static void takes_files_of_memory_only(void **state)
{
	struct cv_vhost_message message = {.request = CV_VHOST_SET_MEM_TABLE,
		.flags = CV_VHOST_VERSION,
		.bytes = 8 + 2 * sizeof(struct cv_vhost_region),
		.memory = {.count = 2, .regions = {{0, 4096, 0, 0}, {4096, 4096, 4096, 4096}}}};
	const uint64_t good[] = {MIB, 8192}, bad[] = {MIB, CV_FILTER_NO_MEMORY},
		       shorter[] = {MIB, 8191};
	struct cv_filter filter;
	struct cv_error error;

	cv_filter_begin(&filter, OFFERED, ALL_PROTOCOL);
	assert_int_equal(cv_filter_validate(&filter, &message, bad, 2, &error), -EPROTO);
	assert_int_equal(cv_filter_validate(&filter, &message, shorter, 2, &error), -EPROTO);
	assert_int_equal(cv_filter_validate(&filter, &message, good, 2, &error), 0);
	message.memory.regions[1].guest = UINT64_MAX - 4096;
	assert_int_equal(cv_filter_validate(&filter, &message, good, 2, &error), 0);
	message.memory.regions[1].guest++;
	assert_int_equal(cv_filter_validate(&filter, &message, good, 2, &error), -EPROTO);
	message.memory.regions[1] = (struct cv_vhost_region){4096, 4096, UINT64_MAX - 4000, 4096};
	assert_int_equal(cv_filter_validate(&filter, &message, good, 2, &error), -EPROTO);
}

static void offers_what_is_validated(void **state)
{
	struct cv_filter filter;

	cv_filter_begin(&filter, OFFERED, UINT64_MAX);
	// MQ, LOG_SHMFD, REPLY_ACK, NET_MTU, STATUS.
	assert_int_equal(cv_filter_protocol(&filter), 0x1001b);
	cv_filter_begin(&filter, OFFERED, BIT(0));
	assert_int_equal(cv_filter_protocol(&filter), BIT(0));
	assert_false(cv_filter_leaves(OFFERED, ALL_PROTOCOL & ~BIT(8)));
	assert_true(cv_filter_leaves(OFFERED | BIT(VIRTIO_F_IOMMU_PLATFORM), 0));
	assert_true(cv_filter_leaves(OFFERED, BIT(8)));
	assert_true(cv_filter_leaves(OFFERED, BIT(9)));
	assert_true(cv_filter_leaves(OFFERED, BIT(12)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(validates),
		cmocka_unit_test(takes_files_of_memory_only),
		cmocka_unit_test(offers_what_is_validated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
