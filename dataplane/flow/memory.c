// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

// Addresses that a large page can begin at, with nothing there. NULL with errno set.
static void *reserve(size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + CV_FLOW_HUGE_PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *aligned;

	if (memory == MAP_FAILED)
		return NULL;
	aligned = RTE_PTR_ALIGN_CEIL(memory, CV_FLOW_HUGE_PAGE);
	if (aligned > memory)
		munmap(memory, (size_t)(aligned - memory));
	if (aligned < memory + CV_FLOW_HUGE_PAGE)
		munmap(aligned + bytes, (size_t)(memory + CV_FLOW_HUGE_PAGE - aligned));
	return aligned;
}

// All of it is there. The bytes stay as they are, if others have written some.
static bool populate(uint8_t *start, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
	if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL) // else a kernel before 5.14
		return false;
#endif
	for (size_t at = 0; at < bytes; at += 4096)
		__atomic_fetch_or(&start[at], 0, __ATOMIC_RELAXED);
	return true;
}

// Maps a file there, in large pages. False: the kernel makes none of files.
static bool map_file(uint8_t *start, size_t bytes, int fd)
{
	if (mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != start)
		return false;
	// A large page is made of those that are there: one of each is.
	for (size_t at = 0; at < bytes; at += CV_FLOW_HUGE_PAGE)
		if (!populate(start + at, 4096))
			return false;
	return madvise(start, bytes, MADV_COLLAPSE) == 0 && populate(start, bytes);
}

static bool make_file(struct cv_flow_memory *memory)
{
	memory->fd = memfd_create("convoy-flows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory->fd < 0)
		return false;
	if (ftruncate(memory->fd, (off_t)memory->bytes) == 0 &&
		fcntl(memory->fd, F_ADD_SEALS, SEALS) == 0 &&
		map_file(memory->start, memory->bytes, memory->fd))
		return true;
	close(memory->fd);
	memory->fd = -1;
	return false;
}

static int make_own(const struct cv_flow_memory *memory)
{
	if (mmap(memory->start, memory->bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		    0) != memory->start)
		return -errno;
	madvise(memory->start, memory->bytes, MADV_HUGEPAGE);
	return populate(memory->start, memory->bytes) ? 0 : -ENOMEM;
}

int cv_flow_memory_make(struct cv_flow_memory *memory, size_t bytes)
{
	int rc = 0;

	*memory = (struct cv_flow_memory){.start = reserve(bytes), .bytes = bytes, .fd = -1};
	if (memory->start == NULL)
		return -errno;
	if (!make_file(memory))
		rc = make_own(memory);
	if (rc != 0)
		cv_flow_memory_free(memory);
	return rc;
}

void cv_flow_memory_free(struct cv_flow_memory *memory)
{
	if (memory->start == NULL)
		return;
	munmap(memory->start, memory->bytes);
	if (memory->fd >= 0)
		close(memory->fd);
	*memory = (struct cv_flow_memory){.fd = -1};
}

// Whether a file is so long, and nobody can change that.
static bool stays_so(int fd, size_t bytes, struct cv_error *error)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat file;

	if (seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &file) == 0 &&
		(uint64_t)file.st_size == bytes)
		return true;
	cv_error_set(error, "the memory of flows is not %zu bytes that stay so", bytes);
	return false;
}

int cv_flow_memory_look(struct cv_flow_memory *memory, size_t bytes, int fd, struct cv_error *error)
{
	int rc = 0;

	*memory = (struct cv_flow_memory){.fd = -1};
	if (!stays_so(fd, bytes, error))
		return -EPROTO;
	memory->start = reserve(bytes);
	memory->bytes = bytes;
	if (memory->start == NULL ||
		mmap(memory->start, bytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
			0) != memory->start)
		rc = -errno;
	if (rc == 0)
		return 0;
	cv_error_set(error, "the memory of flows cannot be mapped: %s", strerror(-rc));
	cv_flow_memory_free(memory);
	return rc;
}

int cv_flow_memory_replace(struct cv_flow_memory *memory, int fd, struct cv_error *error)
{
	if (!stays_so(fd, memory->bytes, error)) {
		close(fd);
		return -EPROTO;
	}
	if (!map_file(memory->start, memory->bytes, fd)) {
		cv_error_set(error, "the memory of flows cannot be mapped: %s", strerror(errno));
		close(fd);
		return -ENOMEM;
	}
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = fd;
	return 0;
}
