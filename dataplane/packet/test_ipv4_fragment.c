// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Fragments: each sound and no longer than the MTU; composed again they are the packet.
#include "packet/ipv4_fragment.h"
#include "tests/support/test_bytes.h"

struct given {
	const char *name;
	const char *options; // hexadecimal
	const char *copied; // those of other fragments
	uint16_t payload, mtu, fragment; // host order
	uint16_t count;
};

static const struct given rows[] = {
	{"two", "", "", 1480, 1400, 0, 2},
	{"ping -s 8000 over 1500", "", "", 8008, 1500, 0, 6},
	{"one byte too many", "", "", 1481, 1500, 0, 2},
	{"MTU 68, no options", "", "", 100, 68, 0, 3},
	{"MTU that is no multiple of 8", "", "", 3000, 1006, 0, 4},
	{"record route is not copied", "0707040000000000", "", 200, 100, 0, 3},
	{"source route is", "8907040a01000100", "8907040a01000100", 200, 100, 0, 3},
	{"padded when copied", "0194050000000100", "9405000000000000", 100, 68, 0, 3},
	{"security between others", "07070400000000018206000000000000", "8206000000000000", 100, 92,
		0, 2},
	{"60 bytes of header, MTU 68",
		"9428000000000000000000000000000000000000"
		"0000000000000000000000000000000000000000",
		"9428000000000000000000000000000000000000"
		"0000000000000000000000000000000000000000",
		40, 68, 0, 5},
	{"a first fragment", "", "", 1480, 700, 0x2000, 3},
	{"a last fragment", "", "", 1003, 500, 0x0007, 3},
	{"the longest packet", "", "", 65515, 1500, 0, 45},
	{"the end of the longest", "", "", 1015, 576, 0x1f80 | 0x2000, 2},
	{"behind the longest", "", "", 1032, 576, 0x1f80, 0},
};

static struct cv_ipv4 *make(const struct given *row)
{
	uint16_t options, len;
	uint8_t *option = bytes_make(row->options, &options);
	struct cv_ipv4 *ip;

	len = CV_IPV4_LEN + options + row->payload;
	ip = malloc(len);
	assert_non_null(ip);
	*ip = (struct cv_ipv4){.version_ihl = (uint8_t)(0x40 | (CV_IPV4_LEN + options) / 4),
		.tos = 0xb8,
		.total_len = rte_cpu_to_be_16(len),
		.id = RTE_BE16(0x1234),
		.fragment = rte_cpu_to_be_16(row->fragment),
		.ttl = 63,
		.proto = IPPROTO_UDP,
		.src = RTE_BE32(0xc6336407),
		.dst = RTE_BE32(0xcb007109)};
	memcpy(ip + 1, option, options);
	for (uint16_t i = 0; i < row->payload; i++)
		((uint8_t *)(ip + 1))[options + i] = (uint8_t)(i * 7 + i / 256);
	ip->checksum = cv_checksum((const uint8_t *)ip, CV_IPV4_LEN + options);
	free(option);
	assert_int_not_equal(cv_ipv4_check(ip, len), 0);
	return ip;
}

// One fragment, against the bytes of the packet that it is of.
static uint16_t expect(const struct given *row, const struct cv_ipv4 *ip, const uint8_t *whole,
	uint16_t len, uint16_t at, bool last)
{
	const uint16_t header = cv_ipv4_check(ip, len);
	const uint16_t field = rte_be_to_cpu_16(ip->fragment);
	const char *options = at == 0 ? row->options : row->copied;
	const uint16_t payload = len - header;

	if (header == 0 || rte_be_to_cpu_16(ip->total_len) != len || len > row->mtu)
		fail_msg("%s: at %u: not a sound fragment of %u bytes", row->name, at, len);
	bytes_expect(row->name, (const uint8_t *)(ip + 1), header - CV_IPV4_LEN, options);
	assert_int_equal(field & 0x1fff, (row->fragment & 0x1fff) + at / 8);
	assert_int_equal(!!(field & 0x2000), !last || (row->fragment & 0x2000));
	assert_int_equal(ip->tos, 0xb8);
	assert_int_equal(ip->id, RTE_BE16(0x1234));
	assert_int_equal(ip->ttl, 63);
	assert_true(last || payload % 8 == 0);
	assert_memory_equal((const uint8_t *)ip + header, whole + at, payload);
	return payload;
}

static void fragments_compose_the_packet(void **state)
{
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const struct given *row = &rows[r];
		struct cv_ipv4 *ip = make(row);
		const uint16_t header = cv_ipv4_header_len(ip);
		struct cv_ipv4_fragments fragments;
		uint8_t *whole = malloc(row->payload);
		uint16_t at;

		memcpy(whole, (uint8_t *)ip + header, row->payload);
		cv_ipv4_fragments(ip, row->mtu, &fragments);
		if (fragments.count != row->count)
			fail_msg(
				"%s: %u fragments, not %u", row->name, fragments.count, row->count);
		at = fragments.first_payload;
		for (uint16_t i = 1; i < fragments.count; i++) {
			uint16_t len = cv_ipv4_fragment_len(&fragments, i);
			uint8_t *out = malloc(len);

			cv_ipv4_fragment(ip, &fragments, i, out);
			at += expect(row, (struct cv_ipv4 *)out, whole, len, at,
				i + 1 == fragments.count);
			free(out);
		}
		if (fragments.count > 0) {
			assert_int_equal(at, row->payload);
			cv_ipv4_fragment_first(ip, &fragments);
			expect(row, ip, whole, fragments.first_len, 0, false);
		}
		free(whole);
		free(ip);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments_compose_the_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
