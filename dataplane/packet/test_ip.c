// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Checksums, and the header checks of IPv4 and IPv6.
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"

// The sum as RFC 1071 section 4.1 writes it: 16-bit words in network order, carries folded in.
static uint16_t plain_checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void checksum_of_any_length(void **state)
{
	uint8_t data[70];

	srand(1);
	for (size_t len = 0; len <= sizeof(data); len++) {
		uint8_t *exact = malloc(len + !len);

		for (size_t i = 0; i < len; i++)
			exact[i] = len % 3 == 0 ? 0xff : (uint8_t)rand();
		assert_int_equal(ntohs(cv_checksum(exact, len)), plain_checksum(exact, len));
		free(exact);
	}
}

// Every old and many new words: the result is what a fresh sum gives, never its other zero.
static void checksum_update_is_as_fresh(void **state)
{
	uint8_t data[6] = {0x45, 0, 0, 0, 0x12, 0x34};

	for (uint32_t old = 0; old < 0x10000; old++) {
		uint32_t new = (old * 40503u + 77) & 0xffff;
		rte_be16_t before, after, word = rte_cpu_to_be_16((uint16_t)old);

		memcpy(data + 2, &word, 2);
		before = cv_checksum(data, sizeof(data));
		word = rte_cpu_to_be_16((uint16_t) new);
		memcpy(data + 2, &word, 2);
		after = cv_checksum_update(before, rte_cpu_to_be_16((uint16_t)old), word);
		assert_int_equal(after, cv_checksum(data, sizeof(data)));
	}
}

static struct cv_ipv4 sound_header(void)
{
	struct cv_ipv4 ip = {.version_ihl = 0x45,
		.total_len = RTE_BE16(20),
		.ttl = 64,
		.proto = 17,
		.src = RTE_BE32(0x0a000001),
		.dst = RTE_BE32(0x0a000002)};

	ip.checksum = cv_checksum((const uint8_t *)&ip, sizeof(ip));
	return ip;
}

// Every TTL with every identification: so every checksum that a header may carry.
static void ttl_decrement_is_as_fresh(void **state)
{
	for (uint32_t id = 0; id < 0x10000; id++) {
		struct cv_ipv4 ip = sound_header(), fresh;

		ip.id = (rte_be16_t)id;
		ip.ttl = (uint8_t)(1 + id % 255);
		ip.checksum = 0;
		ip.checksum = cv_checksum((const uint8_t *)&ip, sizeof(ip));
		fresh = ip;
		fresh.ttl--;
		fresh.checksum = 0;
		fresh.checksum = cv_checksum((const uint8_t *)&fresh, sizeof(fresh));
		cv_ipv4_ttl_decrement(&ip);
		assert_memory_equal(&ip, &fresh, sizeof(ip));
	}
}

// Each single bit that flips in a sound header makes it unsound.
static void any_flipped_bit_is_found(void **state)
{
	struct cv_ipv4 sound = sound_header();

	assert_int_equal(cv_ipv4_check(&sound, 20), 20);
	assert_int_equal(cv_ipv4_check(&sound, 1500), 20);
	for (unsigned bit = 0; bit < 160; bit++) {
		struct cv_ipv4 ip = sound;

		((uint8_t *)&ip)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(cv_ipv4_check(&ip, 1500), 0);
	}
}

static void ipv4_lengths(void **state)
{
	static const struct {
		const char *name;
		uint8_t version_ihl;
		uint16_t total, room, header;
	} rows[] = {
		{"least", 0x45, 20, 20, 20},
		{"padded", 0x45, 20, 46, 20},
		{"frame too short by one", 0x45, 47, 46, 0},
		{"total shorter than the header", 0x45, 19, 46, 0},
		{"total 0", 0x45, 0, 46, 0},
		{"total 65535", 0x45, 65535, 46, 0},
		{"version 6", 0x65, 20, 46, 0},
		{"version 0", 0x05, 20, 46, 0},
		{"IHL 4", 0x44, 20, 46, 0},
		{"IHL 0", 0x40, 20, 46, 0},
		{"options", 0x46, 24, 46, 24},
		{"options, total without them", 0x46, 20, 46, 0},
		{"options, frame without them", 0x46, 24, 23, 0},
		{"most options", 0x4f, 60, 60, 60},
		{"most options, frame too short", 0x4f, 60, 59, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t whole[60] = {0}, *exact = malloc(rows[i].room);
		struct cv_ipv4 *ip = (struct cv_ipv4 *)whole;
		size_t header = (rows[i].version_ihl & 15) * 4;

		whole[0] = rows[i].version_ihl;
		ip->total_len = rte_cpu_to_be_16(rows[i].total);
		ip->checksum = cv_checksum(whole, header < 20 ? 20 : header);
		memcpy(exact, whole, rows[i].room < 60 ? rows[i].room : 60);
		print_message("%s\n", rows[i].name);
		assert_int_equal(
			cv_ipv4_check((const struct cv_ipv4 *)exact, rows[i].room), rows[i].header);
		free(exact);
	}
	for (uint16_t room = 0; room < 20; room++) {
		struct cv_ipv4 ip = sound_header();
		uint8_t *exact = malloc(room + !room);

		memcpy(exact, &ip, room);
		assert_int_equal(cv_ipv4_check((const struct cv_ipv4 *)exact, room), 0);
		free(exact);
	}
}

static void ipv6_lengths(void **state)
{
	for (uint16_t room = 0; room <= 50; room++) {
		uint8_t *exact = calloc(1, room + !room);

		if (room > 0)
			exact[0] = 0x60;
		if (room > 5)
			exact[5] = 8;
		assert_int_equal(cv_ipv6_check((const struct cv_ipv6 *)exact, room), room >= 48);
		if (room > 0)
			exact[0] = 0x40;
		assert_false(cv_ipv6_check((const struct cv_ipv6 *)exact, room));
		free(exact);
	}
}

static void martians(void **state)
{
	static const struct {
		const char *address;
		bool martian;
	} rows[] = {
		{"0.0.0.0", true},
		{"0.255.255.255", true},
		{"1.0.0.0", false},
		{"126.255.255.255", false},
		{"127.0.0.1", true},
		{"128.0.0.0", false},
		{"223.255.255.255", false},
		{"224.0.0.1", true},
		{"239.255.255.255", true},
		{"240.0.0.0", true},
		{"255.255.255.255", true},
		{"::", true},
		{"::1", true},
		{"::2", false},
		{"1::", false},
		{"2001:db8::1", false},
		{"fd00::1", false},
		{"fe7f::", false},
		{"fe80::", true},
		{"febf:ffff::1", true},
		{"fec0::", false},
		{"ff02::1", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t v6[16];
		rte_be32_t v4;
		bool is;

		if (inet_pton(AF_INET, rows[i].address, &v4) == 1) {
			is = cv_ipv4_martian(v4);
		} else {
			assert_int_equal(inet_pton(AF_INET6, rows[i].address, v6), 1);
			is = cv_ipv6_martian(v6);
		}
		if (is != rows[i].martian)
			fail_msg("%s", rows[i].address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_of_any_length),
		cmocka_unit_test(checksum_update_is_as_fresh),
		cmocka_unit_test(ttl_decrement_is_as_fresh),
		cmocka_unit_test(any_flipped_bit_is_found),
		cmocka_unit_test(ipv4_lengths),
		cmocka_unit_test(ipv6_lengths),
		cmocka_unit_test(martians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
