// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>

static_assert(CV_VHOST_REGIONS_MAX <= CV_GUEST_REGIONS_MAX, "a table fits");

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes; // neither sum wraps
}

// Region i, which must not wrap, nor lie where one before it lies.
static int check(const struct cv_vhost_memory_table *table, uint32_t i, struct cv_error *error)
{
	const struct cv_vhost_region *region = &table->regions[i];
	const uint64_t bytes = region->bytes;

	if (bytes == 0 || region->guest + bytes < bytes || region->user + bytes < bytes) {
		cv_error_set(error, "memory region %u: %" PRIu64 " bytes at 0x%" PRIx64, i, bytes,
			region->guest);
		return -EINVAL;
	}
	for (uint32_t k = 0; k < i; k++) {
		const struct cv_vhost_region *other = &table->regions[k];

		if (overlap(region->guest, bytes, other->guest, other->bytes) ||
			overlap(region->user, bytes, other->user, other->bytes)) {
			cv_error_set(error, "memory regions %u and %u overlap", k, i);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_all(const struct cv_vhost_memory_table *table, struct cv_error *error)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const int rc = check(table, i, error);

		if (rc != 0)
			return rc;
		if (table->regions[i].bytes > CV_VHOST_MEMORY_MAX - total) {
			cv_error_set(error, "its memory is larger than %" PRIu64 " bytes",
				CV_VHOST_MEMORY_MAX);
			return -EINVAL;
		}
		total += table->regions[i].bytes;
	}
	return 0;
}

void cv_vhost_memory_clear(struct cv_vhost_memory *memory)
{
	for (unsigned i = 0; i < memory->guest.count; i++)
		close(memory->fds[i]);
	memory->guest.count = 0;
	for (size_t i = 0; i < CV_GUEST_REGIONS_MAX; i++)
		cv_shared_memory_unmap(&memory->mapped[i]);
}

// Maps a region; afterwards there is one more.
static int add(struct cv_vhost_memory *memory, const struct cv_vhost_region *region, int fd,
	struct cv_error *error)
{
	const unsigned i = memory->guest.count;
	const int rc =
		cv_shared_memory_map(&memory->mapped[i], fd, region->offset, region->bytes, error);

	if (rc != 0)
		return rc;
	memory->fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (memory->fds[i] < 0) {
		cv_error_set(error, "no descriptor is left for its memory");
		return -EMFILE;
	}
	memory->offsets[i] = region->offset;
	memory->user[i] = region->user;
	memory->guest.regions[i] =
		(struct cv_guest_region){region->guest, region->bytes, memory->mapped[i].data};
	memory->guest.count++;
	return 0;
}

int cv_vhost_memory_set(struct cv_vhost_memory *memory, const struct cv_vhost_memory_table *table,
	const int *fds, struct cv_error *error)
{
	struct cv_vhost_memory fresh = {0};
	int rc = check_all(table, error);

	for (uint32_t i = 0; rc == 0 && i < table->count; i++)
		rc = add(&fresh, &table->regions[i], fds[i], error);
	if (rc != 0) {
		cv_vhost_memory_clear(&fresh);
		return rc;
	}
	cv_vhost_memory_clear(memory);
	*memory = fresh;
	return 0;
}

void *cv_vhost_memory_at(const struct cv_vhost_memory *memory, uint64_t user, uint64_t bytes)
{
	for (unsigned i = 0; i < memory->guest.count; i++) {
		const struct cv_guest_region *region = &memory->guest.regions[i];
		const uint64_t offset = user - memory->user[i]; // huge if it lies before the region

		if (offset <= region->size && bytes <= region->size - offset)
			return region->host + offset;
	}
	return NULL;
}
