// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vhost/memory.h"

#define KIB UINT64_C(1024)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct row {
	const char *what;
	uint64_t file; // bytes
	bool good;
	uint32_t count;
	struct cv_vhost_region regions[CV_VHOST_REGIONS_MAX]; // guest, bytes, user, offset
} rows[] = {
	{"one region", 64 * KIB, true, 1, {{0, 64 * KIB, 0x10000, 0}}},
	{"as QEMU has them, below and above the hole", 4 * GIB, true, 3,
		{{0, 640 * KIB, 0x7f0000000000, 0}, {768 * KIB, GIB, 0x7f00000c0000, 768 * KIB},
			{4 * GIB, 2 * GIB, 0x7f0080000000, 2 * GIB}}},
	{"next to each other", 64 * KIB, true, 2,
		{{0, 32 * KIB, 0x10000, 0}, {32 * KIB, 32 * KIB, 0x18000, 32 * KIB}}},
	{"the same piece of the file twice", 64 * KIB, true, 2,
		{{0, 64 * KIB, 0x10000, 0}, {GIB, 64 * KIB, 0x100000, 0}}},
	{"up to the last address but one", 64 * KIB, true, 1,
		{{UINT64_MAX - 64 * KIB, 64 * KIB, 0x10000, 0}}},
	{"of no size", 64 * KIB, false, 1, {{0, 0, 0x10000, 0}}},
	{"longer than the file", 64 * KIB, false, 1, {{0, 64 * KIB + 1, 0x10000, 0}}},
	{"behind the file", 64 * KIB, false, 1, {{0, 4 * KIB, 0x10000, 64 * KIB}}},
	{"an empty file", 0, false, 1, {{0, 4 * KIB, 0x10000, 0}}},
	{"an offset that wraps", 64 * KIB, false, 1, {{0, 8 * KIB, 0x10000, UINT64_MAX - 4095}}},
	{"a guest's address that wraps", 64 * KIB, false, 1,
		{{UINT64_MAX - 4095, 8 * KIB, 0x10000, 0}}},
	{"a user's address that wraps", 64 * KIB, false, 1, {{0, 8 * KIB, UINT64_MAX - 4095, 0}}},
	{"guests' addresses that overlap", 64 * KIB, false, 2,
		{{0, 32 * KIB, 0x10000, 0}, {32 * KIB - 1, 32 * KIB, 0x18000, 32 * KIB}}},
	{"one inside the other", 64 * KIB, false, 2,
		{{8 * KIB, 4 * KIB, 0x10000, 0}, {0, 32 * KIB, 0x18000, 32 * KIB}}},
	{"users' addresses that overlap", 64 * KIB, false, 2,
		{{0, 32 * KIB, 0x10000, 0}, {32 * KIB, 32 * KIB, 0x17fff, 32 * KIB}}},
	{"more than there is memory", 5 * TIB, false, 1, {{0, 5 * TIB, 0, 0}}},
	{"more than there is memory, in two", 5 * TIB, false, 2,
		{{0, 3 * TIB, 0, 0}, {3 * TIB, 2 * TIB, 3 * TIB, 0}}},
};

static int make_file(uint64_t bytes)
{
	const int fd = memfd_create("guest", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static int set(struct cv_vhost_memory *memory, const struct row *row, int fd)
{
	struct cv_vhost_memory_table table = {.count = row->count};
	int fds[CV_VHOST_REGIONS_MAX];
	struct cv_error error = {""};
	int rc;

	memcpy(table.regions, row->regions, sizeof(table.regions));
	for (unsigned i = 0; i < CV_VHOST_REGIONS_MAX; i++)
		fds[i] = fd;
	rc = cv_vhost_memory_set(memory, &table, fds, &error);
	assert_int_equal(rc == 0, error.text[0] == '\0');
	return rc;
}

static void tables(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_vhost_memory memory = {0};
		const int fd = make_file(rows[i].file);

		print_message("  %s\n", rows[i].what);
		assert_int_equal(set(&memory, &rows[i], fd) == 0, rows[i].good);
		assert_int_equal(memory.guest.count, rows[i].good ? rows[i].count : 0);
		for (unsigned k = 0; k < memory.guest.count; k++) {
			const struct cv_vhost_region *region = &rows[i].regions[k];
			uint8_t *at = cv_vhost_memory_at(&memory, region->user, region->bytes);
			uint8_t byte;

			assert_ptr_equal(at, memory.guest.regions[k].host);
			*at = (uint8_t)(k + 1);
			assert_int_equal(pread(fd, &byte, 1, (off_t)region->offset), 1);
			assert_int_equal(byte, k + 1);
		}
		cv_vhost_memory_clear(&memory);
		assert_int_equal(memory.guest.count, 0);
		close(fd);
	}
}

// What was there before is there afterwards, and can be read.
static void a_table_that_fails_changes_nothing(void **state)
{
	struct cv_vhost_memory memory = {0}, before;
	const int first = make_file(rows[0].file);

	assert_int_equal(set(&memory, &rows[0], first), 0);
	memory.guest.regions[0].host[5] = 0x55;
	before = memory;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int fd = make_file(rows[i].file);

		if (!rows[i].good) {
			assert_true(set(&memory, &rows[i], fd) < 0);
			assert_memory_equal(&memory, &before, sizeof(memory));
			assert_int_equal(memory.guest.regions[0].host[5], 0x55);
		}
		close(fd);
	}
	// Of the first two pieces one is there, of the third there is no file.
	struct cv_vhost_memory_table table = {
		.count = 2, .regions = {{0, 4096, 0, 0}, {4096, 4096, 4096, 0}}};
	assert_true(cv_vhost_memory_set(&memory, &table, (int[]){first, -1}, NULL) < 0);
	assert_memory_equal(&memory, &before, sizeof(memory));
	cv_vhost_memory_clear(&memory);
	close(first);
}

static void addresses_are_in_one_piece(void **state)
{
	struct cv_vhost_memory memory = {0};
	const int fd = make_file(rows[2].file);
	uint8_t *low, *high;

	assert_int_equal(set(&memory, &rows[2], fd), 0);
	low = memory.guest.regions[0].host;
	high = memory.guest.regions[1].host;
	assert_ptr_equal(cv_vhost_memory_at(&memory, 0x10000, 1), low);
	assert_ptr_equal(cv_vhost_memory_at(&memory, 0x10000, 32 * KIB), low);
	assert_ptr_equal(cv_vhost_memory_at(&memory, 0x17fff, 1), low + 0x7fff);
	assert_ptr_equal(cv_vhost_memory_at(&memory, 0x18000, 32 * KIB), high);
	assert_null(cv_vhost_memory_at(&memory, 0x17fff, 2)); // over the border
	assert_null(cv_vhost_memory_at(&memory, 0xffff, 1));
	assert_null(cv_vhost_memory_at(&memory, 0x20000, 1));
	assert_null(cv_vhost_memory_at(&memory, 0x1ffff, 2));
	assert_null(cv_vhost_memory_at(&memory, 0x10000, UINT64_MAX));
	assert_null(cv_vhost_memory_at(&memory, UINT64_MAX, 2));
	cv_vhost_memory_clear(&memory);
	assert_null(cv_vhost_memory_at(&memory, 0x10000, 1));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(a_table_that_fails_changes_nothing),
		cmocka_unit_test(addresses_are_in_one_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
