// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "socket/shared_memory.h"

#define KIB 1024u

static int make_file(off_t bytes)
{
	const int fd = memfd_create("peer", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

// Whether a byte can be touched, without touching it.
static bool is_there(const uint8_t *at)
{
	int ends[2];
	bool there;

	assert_int_equal(pipe(ends), 0);
	there = write(ends[1], at, 1) == 1;
	assert_true(there || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return there;
}

static void a_piece_of_a_file_between_guards(void **state)
{
	static const struct {
		uint64_t offset, size;
	} rows[] = {{0, 64 * KIB}, {0, 4 * KIB}, {4 * KIB, 8 * KIB}, {5 * KIB, 3 * KIB}};
	const int fd = make_file(64 * KIB);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t size = rows[i].size;
		struct cv_shared_memory memory;
		struct cv_error error = {""};
		uint8_t byte;
		uint8_t *begin, *end;

		assert_int_equal(
			cv_shared_memory_map(&memory, fd, rows[i].offset, size, &error), 0);
		assert_int_equal(memory.size, size);
		memory.data[0] = 0x11;
		memory.data[size - 1] = 0x22;
		assert_int_equal(pread(fd, &byte, 1, (off_t)rows[i].offset), 1);
		assert_int_equal(byte, 0x11);
		assert_int_equal(pread(fd, &byte, 1, (off_t)(rows[i].offset + size - 1)), 1);
		assert_int_equal(byte, 0x22);
		begin = (uint8_t *)((uintptr_t)memory.data & ~(uintptr_t)4095);
		end = (uint8_t *)(((uintptr_t)memory.data + size + 4095) & ~(uintptr_t)4095);
		assert_true(is_there(begin) && is_there(end - 1));
		assert_false(is_there(begin - 1));
		assert_false(is_there(end));
		cv_shared_memory_unmap(&memory);
		assert_null(memory.data);
		assert_false(is_there(begin));
		cv_shared_memory_unmap(&memory);
	}
	close(fd);
}

static void what_is_no_such_piece_is_refused(void **state)
{
	const int file = make_file(64 * KIB), event = eventfd(0, 0);
	const int device = open("/dev/zero", O_RDWR), program = open("/proc/self/exe", O_RDONLY);
	const struct {
		const char *why;
		int fd;
		uint64_t offset, size;
	} rows[] = {
		{"nothing", file, 0, 0},
		{"a byte too many", file, 0, 64 * KIB + 1},
		{"behind the end", file, 64 * KIB, 1},
		{"a sum that wraps", file, UINT64_MAX - 4095, 8 * KIB},
		{"a size that wraps", file, 4 * KIB, UINT64_MAX - 4095},
		{"an eventfd", event, 0, 4 * KIB},
		{"a device", device, 0, 4 * KIB},
		{"a file on a disk", program, 0, 4 * KIB},
		{"no descriptor", -1, 0, 4 * KIB},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_shared_memory memory;
		struct cv_error error = {""};

		print_message("  %s\n", rows[i].why);
		assert_true(cv_shared_memory_map(
				    &memory, rows[i].fd, rows[i].offset, rows[i].size, &error) < 0);
		assert_null(memory.data);
		assert_null(memory.reserved);
		assert_string_not_equal(error.text, "");
	}
	close(file);
	close(event);
	close(device);
	close(program);
}

// Each mapping for itself, whatever came and went before it; neither guards nor others' mappings.
static void a_mapping_is_replaced_whole(void **state)
{
	const int fd = make_file(64 * KIB);
	struct cv_shared_memory memories[3];
	struct cv_error error = {""};
	uint8_t byte;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			cv_shared_memory_map(&memories[i], fd, 4 * KIB * i + 100, 12 * KIB, &error),
			0);
	cv_shared_memory_unmap(&memories[1]);
	memset(memories[0].data, 0x11, 12 * KIB);
	assert_true(cv_shared_memory_replace(memories[0].data + 12 * KIB - 1));
	for (unsigned i = 0; i < 12 * KIB; i++)
		assert_int_equal(memories[0].data[i], 0);
	memories[0].data[0] = 0x22;
	assert_int_equal(pread(fd, &byte, 1, 100), 1);
	assert_int_equal(byte, 0x11);
	memories[2].data[0] = 0x33;
	assert_int_equal(pread(fd, &byte, 1, 8 * KIB + 100), 1);
	assert_int_equal(byte, 0x33);
	assert_false(cv_shared_memory_replace(memories[0].reserved));
	assert_false(cv_shared_memory_replace(&byte));
	assert_false(is_there(memories[0].reserved));
	cv_shared_memory_unmap(&memories[0]);
	cv_shared_memory_unmap(&memories[2]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_of_a_file_between_guards),
		cmocka_unit_test(what_is_no_such_piece_is_refused),
		cmocka_unit_test(a_mapping_is_replaced_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
