// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Workers with loads, period by period: which queues go where, and when.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/scale_choose.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LONG 100 // periods

// Three workers, {percent, queues, moving} each; what comes first, after how many periods.
static const struct {
	const char *what;
	struct cv_scale_load loads[3];
	struct cv_scale_order order;
	unsigned periods; // 0: never
} rows[] = {
	{"a busy one wakes another", {{80, 4, 4}, {0, 0, 0}, {0, 0, 0}}, {0, 1, 1}, 2},
	{"one that has room comes before", {{95, 2, 2}, {0, 0, 0}, {40, 1, 1}}, {0, 2, 1}, 2},
	{"one that has none does not", {{95, 2, 2}, {0, 0, 0}, {41, 1, 1}}, {0, 1, 1}, 2},
	{"nobody has room", {{95, 2, 2}, {60, 1, 1}, {70, 1, 1}}, {0, 0, 0}, 0},
	{"one queue is not divided", {{100, 1, 1}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}, 0},
	{"what stays stays", {{100, 3, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}, 0},
	{"one that moves goes, others stay", {{100, 3, 1}, {0, 0, 0}, {0, 0, 0}}, {0, 1, 1}, 2},
	{"not quite busy", {{79, 4, 4}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}, 0},
	{"calm ones become one", {{30, 2, 2}, {10, 3, 3}, {50, 1, 1}}, {1, 0, 3}, 20},
	{"together too much", {{31, 2, 2}, {10, 3, 3}, {50, 1, 1}}, {0, 0, 0}, 0},
	{"a queue that stays has others come", {{1, 2, 1}, {9, 3, 3}, {60, 1, 1}}, {1, 0, 3}, 20},
	{"two of these stay", {{1, 2, 1}, {9, 3, 2}, {0, 0, 0}}, {0, 0, 0}, 0},
	{"one is all there is", {{5, 4, 4}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}, 0},
};

static void queues_go_where_there_is_room(void **state)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct cv_scale_choice choice = {.calm = 0};
		struct cv_scale_order order = {.queues = 0};
		unsigned periods = 0;

		while (order.queues == 0 && periods < LONG) {
			order = cv_scale_choose(&choice, rows[i].loads, 3);
			periods++;
		}
		print_message("%s\n", rows[i].what);
		assert_int_equal(order.queues, rows[i].order.queues);
		assert_int_equal(order.from, rows[i].order.from);
		assert_int_equal(order.to, rows[i].order.to);
		assert_int_equal(order.queues > 0 ? periods : 0, rows[i].periods);
	}
}

// What is busy now and then, or calm, is not worth a move.
static void a_moment_is_no_reason(void **state)
{
	const struct cv_scale_load busy[] = {{90, 2, 2}, {0, 0, 0}},
				   calm[] = {{1, 1, 1}, {1, 1, 1}},
				   neither[] = {{60, 1, 1}, {30, 1, 1}};
	struct cv_scale_choice choice = {.calm = 0};

	for (unsigned i = 0; i < LONG; i++) {
		const struct cv_scale_load *loads = i % 20 == 19 ? neither : calm;

		assert_int_equal(cv_scale_choose(&choice, loads, 2).queues, 0);
	}
	for (unsigned i = 0; i < LONG; i++)
		assert_int_equal(cv_scale_choose(&choice, i % 2 ? busy : neither, 2).queues, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_go_where_there_is_room),
		cmocka_unit_test(a_moment_is_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
