// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "memif/client_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGN(bytes) (((bytes) + 63) & ~UINT64_C(63))

static int make_file(uint64_t bytes)
{
	const int fd = memfd_create("convoy-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	// The server cannot take the memory back.
	if (ftruncate(fd, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void make_ring(struct cv_memif_session *session, enum cv_memif_way way, uint16_t slots)
{
	const uint64_t ring_bytes = ALIGN(cv_memif_ring_bytes(slots));
	const uint64_t buffers =
		CV_MEMIF_WAYS * ring_bytes + way * (uint64_t)slots * CV_MEMIF_STRIDE;
	uint8_t *data = session->memory[0].data;

	session->rings[way] = (struct cv_memif_ring){
		.shared = (struct cv_memif_shared *)(void *)(data + way * ring_bytes),
		.size = slots,
		.client = true,
		.to_server = way == CV_MEMIF_TO_SERVER,
		.buffers = data + buffers,
		.stride = CV_MEMIF_STRIDE,
		.buffer_bytes = CV_MEMIF_BUFFER_BYTES,
		.buffers_offset = (uint32_t)buffers};
	cv_memif_ring_make(&session->rings[way]);
}

int cv_memif_client_memory_make(
	struct cv_memif_session *session, uint16_t slots, struct cv_error *error)
{
	const uint64_t bytes = CV_MEMIF_WAYS * (ALIGN(cv_memif_ring_bytes(slots)) +
						       (uint64_t)slots * CV_MEMIF_STRIDE);
	int rc;

	session->file = make_file(bytes);
	if (session->file < 0) {
		cv_error_set(error, "no memory to share: %s", strerror(-session->file));
		return session->file;
	}
	rc = cv_shared_memory_map(&session->memory[0], session->file, 0, bytes, error);
	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < CV_MEMIF_WAYS; i++) {
		session->calls[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (session->calls[i] < 0) {
			cv_error_set(error, "no eventfd: %s", strerror(errno));
			return -errno;
		}
		make_ring(session, i, slots);
	}
	return 0;
}
