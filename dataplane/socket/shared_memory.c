// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

// A single piece; far more than there is, and no sum of two wraps.
#define SIZE_MAX_BYTES (UINT64_C(1) << 45)

// All mappings, for a signal handler: atomic. A place is taken by its start, set last and cleared
// first; who finds the same start before and after the end has them of one mapping.
#define MAPPINGS_MAX 4096
static struct {
	uintptr_t start; // 0: free
	uintptr_t end;
} mappings[MAPPINGS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of who sets them

unsigned cv_shared_memory_enlist(const void *start, uint64_t bytes)
{
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAPPINGS_MAX; i++) {
		if (mappings[i].start != 0)
			continue;
		__atomic_store_n(&mappings[i].end, (uintptr_t)start + bytes, __ATOMIC_RELAXED);
		// Pairs with the acquire of cv_shared_memory_replace().
		__atomic_store_n(&mappings[i].start, (uintptr_t)start, __ATOMIC_RELEASE);
		break;
	}
	pthread_mutex_unlock(&lock);
	return i;
}

void cv_shared_memory_delist(unsigned number)
{
	if (number == MAPPINGS_MAX)
		return;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&mappings[number].start, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
}

bool cv_shared_memory_replace(const void *address)
{
	const uintptr_t at = (uintptr_t)address;

	for (unsigned i = 0; i < MAPPINGS_MAX; i++) {
		const uintptr_t start = __atomic_load_n(&mappings[i].start, __ATOMIC_ACQUIRE);
		const uintptr_t end = __atomic_load_n(&mappings[i].end, __ATOMIC_ACQUIRE);

		if (start == 0 || at < start || at >= end ||
			__atomic_load_n(&mappings[i].start, __ATOMIC_RELAXED) != start)
			continue;
		return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			       0) == (void *)start;
	}
	return false;
}

// The page size that mappings of the file go by, or -errno with error set.
static int64_t page_of(int fd, uint64_t end, struct cv_error *error)
{
	struct statfs system;
	struct stat file;

	// Asked first: only files of memory have seals, and asking never calls a file system that a
	// peer runs itself.
	if (fcntl(fd, F_GET_SEALS) < 0) {
		cv_error_set(error, "its memory is no memfd, nor a file in tmpfs or hugetlbfs");
		return -EINVAL;
	}
	if (fstat(fd, &file) != 0 || fstatfs(fd, &system) != 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || file.st_size < 0 || (uint64_t)file.st_size < end) {
		cv_error_set(error,
			"its memory ends at byte %" PRIu64 " of a file of %" PRIu64 " bytes", end,
			(uint64_t)file.st_size);
		return -EINVAL;
	}
	if (system.f_type == HUGETLBFS_MAGIC)
		return system.f_bsize;
	return sysconf(_SC_PAGESIZE);
}

int cv_shared_memory_map(struct cv_shared_memory *memory, int fd, uint64_t offset, uint64_t size,
	struct cv_error *error)
{
	uint64_t page, from, bytes;
	int64_t rc;
	uint8_t *start;
	void *reserved;

	*memory = (struct cv_shared_memory){.number = MAPPINGS_MAX};
	if (size == 0 || size > SIZE_MAX_BYTES || offset > SIZE_MAX_BYTES) {
		cv_error_set(error, "%" PRIu64 " bytes of memory from byte %" PRIu64 " of a file",
			size, offset);
		return -EINVAL;
	}
	rc = page_of(fd, offset + size, error);
	if (rc <= 0)
		return rc < 0 ? (int)rc : -EINVAL;
	page = (uint64_t)rc;
	from = offset & ~(page - 1);
	bytes = (offset + size - from + page - 1) & ~(page - 1);
	// One page before, one behind, and what it takes to begin at a multiple of one.
	memory->reserved_bytes = bytes + 3 * page;
	reserved = mmap(NULL, memory->reserved_bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		goto fail;
	memory->reserved = reserved;
	start = (uint8_t *)(((uintptr_t)reserved + 2 * page - 1) & ~(uintptr_t)(page - 1));
	if (mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		    (off_t)from) != start)
		goto fail;
	// A guest's memory is not for our core file.
	madvise(start, bytes, MADV_DONTDUMP);
	memory->data = start + (offset - from);
	memory->size = size;
	memory->number = cv_shared_memory_enlist(start, bytes);
	return 0;

fail:
	rc = -errno;
	cv_error_set(error, "%" PRIu64 " bytes of memory cannot be mapped: %s", size,
		strerror((int)-rc));
	cv_shared_memory_unmap(memory);
	return (int)rc;
}

void cv_shared_memory_unmap(struct cv_shared_memory *memory)
{
	if (memory->data != NULL)
		cv_shared_memory_delist(memory->number);
	if (memory->reserved != NULL)
		munmap(memory->reserved, memory->reserved_bytes);
	*memory = (struct cv_shared_memory){0};
}
