// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where layer 3 begins, for every way that a frame may be tagged or cut.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "packet/view.h"

#define MACS 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1

static const struct {
	const char *name;
	uint8_t bytes[32];
	uint16_t len, l3;
	uint16_t proto; // host order
	int vlan;
} rows[] = {
	{"ipv4", {MACS, 8, 0, 0x45}, 20, 14, 0x0800, -1},
	{"ipv6, nothing behind", {MACS, 0x86, 0xdd}, 14, 14, 0x86dd, -1},
	{"vlan", {MACS, 0x81, 0, 0x60, 10, 8, 0, 0x45}, 24, 18, 0x0800, 10},
	{"vlan, ends behind the tag", {MACS, 0x81, 0, 0xef, 0xff, 8, 0}, 18, 18, 0x0800, 4095},
	{"vlan, cut", {MACS, 0x81, 0, 0, 10, 8}, 17, 17, 0, -1},
	{"vlan, cut behind its type", {MACS, 0x81, 0}, 14, 14, 0, -1},
	{"qinq", {MACS, 0x88, 0xa8, 0, 20, 0x81, 0, 0, 10, 0x86, 0xdd}, 30, 22, 0x86dd, 20},
	{"two customer tags", {MACS, 0x81, 0, 0, 20, 0x81, 0, 0, 10, 8, 0}, 30, 22, 0x0800, 20},
	{"qinq, inner cut", {MACS, 0x88, 0xa8, 0, 20, 0x81, 0, 0, 10, 8}, 21, 21, 0, 20},
	{"three tags: the third is no protocol of ours",
		{MACS, 0x88, 0xa8, 0, 20, 0x81, 0, 0, 10, 0x81, 0, 0, 11, 8, 0}, 32, 22, 0x8100,
		20},
	{"a frame with a length: 802.3", {MACS, 0, 3, 0x42}, 17, 14, 3, -1},
	{"13 bytes", {MACS, 8}, 13, 13, 0, -1},
	{"0 bytes", {0}, 0, 0, 0, -1},
};

static void layer3_is_found(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		// A copy of its own size: a read behind it is found by the sanitizer.
		uint8_t *bytes = malloc(rows[i].len + !rows[i].len);
		struct cv_view view = {.in = 3, .out = 4};

		memcpy(bytes, rows[i].bytes, rows[i].len);
		cv_view_set(&view, bytes, rows[i].len);
		print_message("%s\n", rows[i].name);
		assert_ptr_equal(view.data, bytes);
		assert_int_equal(view.len, rows[i].len);
		assert_int_equal(view.l3, rows[i].l3);
		assert_int_equal(rte_be_to_cpu_16(view.proto), rows[i].proto);
		assert_int_equal(cv_view_vlan(&view), rows[i].vlan);
		assert_int_equal(view.in, 3);
		assert_int_equal(view.out, 4);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(layer3_is_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
