// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "packet/ether.h"

static void mac_is_read(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint8_t mac[6];
	} rows[] = {
		{"02:00:00:00:00:01", true, {2, 0, 0, 0, 0, 1}},
		{"Fe-dC-ba-98-76-54", true, {0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54}},
		{"02:00:00:00:00", false, {0}},
		{"02:00:00:00:00:01 ", false, {0}},
		{"02:00:00:00:00:0", false, {0}},
		{"2:0:0:0:0:1", false, {0}},
		{"020000000001", false, {0}},
		{"0g:00:00:00:00:01", false, {0}},
		{"", false, {0}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t mac[6];

		if (cv_mac_parse(rows[i].text, mac) != rows[i].ok)
			fail_msg("%s", rows[i].text);
		if (rows[i].ok)
			assert_memory_equal(mac, rows[i].mac, 6);
	}
}

static void group_bit(void **state)
{
	assert_true(cv_mac_group((const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
	assert_true(cv_mac_group((const uint8_t[]){0x01, 0, 0x5e, 0, 0, 1}));
	assert_false(cv_mac_group((const uint8_t[]){0x02, 1, 1, 1, 1, 1}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mac_is_read),
		cmocka_unit_test(group_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
