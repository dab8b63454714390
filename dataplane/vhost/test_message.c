// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "vhost/message.h"

#define ALL UINT64_MAX // protocol features
#define REGIONS(n) (8 + 32 * (n))
#define NO_FD CV_VHOST_VRING_NO_FD

// Every request that is served: its bytes, the descriptors that come along, and the protocol feature
// that it belongs to.
static const struct request {
	uint32_t request, bytes;
	unsigned fds;
	int needs; // -1: nothing
	uint64_t u64; // what follows begins with this
} requests[] = {
	{CV_VHOST_GET_FEATURES, 0, 0, -1, 0},
	{CV_VHOST_SET_FEATURES, 8, 0, -1, 0},
	{CV_VHOST_SET_OWNER, 0, 0, -1, 0},
	{CV_VHOST_RESET_OWNER, 0, 0, -1, 0},
	{CV_VHOST_SET_MEM_TABLE, REGIONS(1), 1, -1, 1},
	{CV_VHOST_SET_MEM_TABLE, REGIONS(8), 8, -1, 8},
	{CV_VHOST_SET_LOG_BASE, 16, 1, CV_VHOST_PROTOCOL_F_LOG_SHMFD, 0},
	{CV_VHOST_SET_LOG_FD, 0, 1, CV_VHOST_PROTOCOL_F_LOG_SHMFD, 0},
	{CV_VHOST_SET_VRING_NUM, 8, 0, -1, 0},
	{CV_VHOST_SET_VRING_ADDR, 40, 0, -1, 0},
	{CV_VHOST_SET_VRING_BASE, 8, 0, -1, 0},
	{CV_VHOST_GET_VRING_BASE, 8, 0, -1, 0},
	{CV_VHOST_SET_VRING_KICK, 8, 1, -1, 0},
	{CV_VHOST_SET_VRING_KICK, 8, 0, -1, NO_FD},
	{CV_VHOST_SET_VRING_CALL, 8, 1, -1, 0},
	{CV_VHOST_SET_VRING_CALL, 8, 0, -1, NO_FD | 3},
	{CV_VHOST_SET_VRING_ERR, 8, 1, -1, 255},
	{CV_VHOST_GET_PROTOCOL_FEATURES, 0, 0, -1, 0},
	{CV_VHOST_SET_PROTOCOL_FEATURES, 8, 0, -1, 0},
	{CV_VHOST_GET_QUEUE_NUM, 0, 0, CV_VHOST_PROTOCOL_F_MQ, 0},
	{CV_VHOST_SET_VRING_ENABLE, 8, 0, -1, 0},
	{CV_VHOST_NET_SET_MTU, 8, 0, CV_VHOST_PROTOCOL_F_NET_MTU, 0},
	{CV_VHOST_SET_STATUS, 8, 0, CV_VHOST_PROTOCOL_F_STATUS, 0},
	{CV_VHOST_GET_STATUS, 0, 0, CV_VHOST_PROTOCOL_F_STATUS, 0},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static bool passes(const struct cv_vhost_message *message, unsigned fds, uint64_t protocol)
{
	struct cv_error error = {""};
	const bool good = cv_vhost_header_check(message, protocol, &error) == 0 &&
			  cv_vhost_message_check(message, fds, &error) == 0;

	assert_int_equal(good, error.text[0] == '\0');
	return good;
}

static struct cv_vhost_message message_of(const struct request *request)
{
	return (struct cv_vhost_message){.request = request->request,
		.flags = CV_VHOST_VERSION,
		.bytes = request->bytes,
		.u64 = request->u64};
}

static void what_is_served_passes(void **state)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		struct cv_vhost_message message = message_of(&requests[i]);

		print_message("  %s\n", cv_vhost_request_name(message.request));
		assert_true(passes(&message, requests[i].fds, ALL));
		message.flags |= CV_VHOST_NEED_REPLY;
		assert_true(passes(&message, requests[i].fds, ALL));
	}
}

static void flags_are_a_front_ends(void **state)
{
	static const uint32_t wrong[] = {0, 2, 3, CV_VHOST_VERSION | CV_VHOST_REPLY,
		CV_VHOST_VERSION | 0x10, CV_VHOST_VERSION | 0x80000000};

	for (size_t i = 0; i < REQUESTS; i++) {
		for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
			struct cv_vhost_message message = message_of(&requests[i]);

			message.flags = wrong[k];
			assert_false(passes(&message, requests[i].fds, ALL));
		}
	}
}

static void every_length_is_exact(void **state)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		for (uint32_t bytes = 0; bytes <= 4096; bytes++) {
			struct cv_vhost_message message = message_of(&requests[i]);

			message.bytes = bytes;
			assert_int_equal(
				passes(&message, requests[i].fds, ALL), bytes == requests[i].bytes);
		}
	}
}

static void only_its_descriptors_come_along(void **state)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		for (unsigned fds = 0; fds <= 8; fds++) {
			const struct cv_vhost_message message = message_of(&requests[i]);

			assert_int_equal(passes(&message, fds, ALL), fds == requests[i].fds);
		}
	}
}

static void a_feature_comes_before_its_messages(void **state)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		const struct cv_vhost_message message = message_of(&requests[i]);
		const uint64_t without =
			requests[i].needs < 0 ? ALL : ALL & ~(1ull << requests[i].needs);

		assert_int_equal(passes(&message, requests[i].fds, 0), requests[i].needs < 0);
		assert_int_equal(passes(&message, requests[i].fds, without), requests[i].needs < 0);
	}
}

// All others, whatever they are to other back ends: post-copy's among them.
static void nothing_else_is_served(void **state)
{
	for (uint32_t request = 0; request <= 70000; request++) {
		bool served = false;

		for (size_t i = 0; i < REQUESTS; i++)
			served |= requests[i].request == request;
		for (uint32_t bytes = 0; bytes <= 64 && !served; bytes += 8) {
			const struct cv_vhost_message message = {
				.request = request, .flags = CV_VHOST_VERSION, .bytes = bytes};

			assert_false(passes(&message, 0, ALL));
		}
	}
}

static void values_that_are_none(void **state)
{
	static const struct {
		const char *why;
		struct request request;
		struct cv_vhost_message message;
	} rows[] = {
		{"no region", {CV_VHOST_SET_MEM_TABLE, 0, 0, -1, 0}, {.bytes = REGIONS(0)}},
		{"no region, said to be one", {CV_VHOST_SET_MEM_TABLE, 0, 1, -1, 0},
			{.bytes = REGIONS(0), .memory.count = 1}},
		{"fewer regions than bytes", {CV_VHOST_SET_MEM_TABLE, 0, 1, -1, 0},
			{.bytes = REGIONS(2), .memory.count = 1}},
		{"nine regions", {CV_VHOST_SET_MEM_TABLE, 0, 8, -1, 0},
			{.bytes = REGIONS(9), .memory.count = 9}},
		{"a product that wraps", {CV_VHOST_SET_MEM_TABLE, 0, 1, -1, 0},
			{.bytes = REGIONS(1), .memory.count = 0x08000001}},
		{"a kick's unknown bits", {CV_VHOST_SET_VRING_KICK, 0, 1, -1, 0},
			{.bytes = 8, .u64 = 0x200}},
		{"a call's upper half", {CV_VHOST_SET_VRING_CALL, 0, 1, -1, 0},
			{.bytes = 8, .u64 = 1ull << 32}},
		{"neither on nor off", {CV_VHOST_SET_VRING_ENABLE, 0, 0, -1, 0},
			{.bytes = 8, .state.num = 2}},
		{"an address's unknown flag", {CV_VHOST_SET_VRING_ADDR, 0, 0, -1, 0},
			{.bytes = 40, .address.flags = 2}},
		{"a status of more than a byte", {CV_VHOST_SET_STATUS, 0, 0, -1, 0},
			{.bytes = 8, .u64 = 256}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_vhost_message message = rows[i].message;

		print_message("  %s\n", rows[i].why);
		message.request = rows[i].request.request;
		message.flags = CV_VHOST_VERSION;
		assert_false(passes(&message, rows[i].request.fds, ALL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_served_passes),
		cmocka_unit_test(flags_are_a_front_ends),
		cmocka_unit_test(every_length_is_exact),
		cmocka_unit_test(only_its_descriptors_come_along),
		cmocka_unit_test(a_feature_comes_before_its_messages),
		cmocka_unit_test(nothing_else_is_served),
		cmocka_unit_test(values_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
