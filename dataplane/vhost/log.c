// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/log.h"

#include "vhost/session.h"

void cv_vhost_log_bytes(void *context, uint64_t guest, uint64_t bytes)
{
	const struct cv_vhost_ring *ring = context;
	const struct cv_shared_memory *log = &ring->session->log;
	uint64_t page = guest / CV_VHOST_LOG_PAGE;
	const uint64_t last = (guest + bytes - 1) / CV_VHOST_LOG_PAGE;

	if (bytes == 0 || guest + bytes < guest)
		return;
	// A log that is too short is the front end's own loss.
	for (; page <= last && page / 8 < log->size; page++)
		__atomic_fetch_or(
			&log->data[page / 8], (uint8_t)(1u << page % 8), __ATOMIC_RELAXED);
}

void cv_vhost_log_used(void *context, uint64_t offset, uint64_t bytes)
{
	const struct cv_vhost_ring *ring = context;
	const uint64_t used = ring->address.log_guest_addr;

	if ((ring->address.flags & 1u << VHOST_VRING_F_LOG) && used + offset >= used)
		cv_vhost_log_bytes(context, used + offset, bytes);
}
