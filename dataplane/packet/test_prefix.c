// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "packet/prefix.h"

static void prefix_is_read(void **state)
{
	static const struct {
		const char *in;
		int rc;
		const char *out; // as written back; NULL: same as in
	} rows[] = {
		{"10.0.0.0/8", 0, NULL},
		{"0.0.0.0/0", 0, NULL},
		{"192.0.2.1", 0, "192.0.2.1/32"},
		{"192.0.2.1/32", 0, NULL},
		{"255.255.255.254/31", 0, NULL},
		{"2001:db8::/32", 0, NULL},
		{"::/0", 0, NULL},
		{"::1", 0, "::1/128"},
		{"2001:db8:8000::/33", 0, NULL},
		{"2001:db8:4000::/33", -EDOM, "2001:db8:4000::/33"},
		{"10.0.0.1/8", -EDOM, "10.0.0.1/8"},
		{"10.128.0.0/8", -EDOM, "10.128.0.0/8"},
		{"10.0.0.0/33", -EINVAL, NULL},
		{"::/129", -EINVAL, NULL},
		{"10.0.0.0/", -EINVAL, NULL},
		{"10.0.0.0/ 8", -EINVAL, NULL},
		{"10.0.0.0/+8", -EINVAL, NULL},
		{"10.0.0.0/8x", -EINVAL, NULL},
		{"10.0.0.0/4294967304", -EINVAL, NULL},
		{"10.0.0/8", -EINVAL, NULL},
		{"10.0.0.0.0/8", -EINVAL, NULL},
		{"/8", -EINVAL, NULL},
		{"", -EINVAL, NULL},
		{"left", -EINVAL, NULL},
		{"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc/8", -EINVAL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_prefix prefix;
		char text[CV_PREFIX_TEXT];
		int rc = cv_prefix_parse(rows[i].in, &prefix);

		if (rc != rows[i].rc)
			fail_msg("%s: %d", rows[i].in, rc);
		if (rc == 0 || rc == -EDOM)
			assert_string_equal(cv_prefix_text(&prefix, text),
				rows[i].out != NULL ? rows[i].out : rows[i].in);
	}
}

static void prefix_has_addresses(void **state)
{
	static const struct {
		const char *prefix, *address;
		bool in;
	} rows[] = {
		{"10.0.0.0/8", "10.255.255.255", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"0.0.0.0/0", "255.255.255.255", true},
		{"0.0.0.0/0", "::", false},
		{"192.0.2.4/31", "192.0.2.5", true},
		{"192.0.2.4/31", "192.0.2.6", false},
		{"192.0.2.4/32", "192.0.2.4", true},
		{"::/0", "2001:db8::1", true},
		{"2001:db8::/33", "2001:db8:7fff:ffff::", true},
		{"2001:db8::/33", "2001:db8:8000::", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_prefix prefix;
		struct cv_address address;

		assert_int_equal(cv_prefix_parse(rows[i].prefix, &prefix), 0);
		assert_int_equal(cv_address_parse(rows[i].address, &address), 0);
		if (cv_prefix_has(&prefix, &address) != rows[i].in)
			fail_msg("%s in %s", rows[i].address, rows[i].prefix);
	}
}

static void mask_keeps_the_length(void **state)
{
	for (unsigned length = 0; length <= 128; length++) {
		struct cv_prefix prefix = {.length = (uint8_t)length, .address.v6 = true};
		unsigned bits = 0;

		memset(prefix.address.bytes, 0xff, 16);
		cv_prefix_mask(&prefix);
		for (unsigned bit = 0; bit < 128; bit++) {
			unsigned set = prefix.address.bytes[bit / 8] >> (7 - bit % 8) & 1;

			assert_int_equal(set, bit < length);
			bits += set;
		}
		assert_int_equal(bits, length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefix_is_read),
		cmocka_unit_test(prefix_has_addresses),
		cmocka_unit_test(mask_keeps_the_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
