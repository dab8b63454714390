// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/waiting_frame.h"

#include <pthread.h>
#include <stdlib.h>

#include <rte_cycles.h>

#define SHORTEST (CV_CONVOY_PREFIX_LEN + 60u) // Ethernet's, without FCS

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the list
static struct cv_waiting_frame *all; // a thread that ended left its own, empty or not

uint64_t cv_waiting_ticks(uint64_t ns)
{
	return ns * (rte_get_tsc_hz() / 1000000) / 1000;
}

struct cv_waiting_frame *cv_waiting_frame_here(uint64_t ticks)
{
	static _Thread_local struct cv_waiting_frame *here;

	if (CV_LIKELY(here != NULL))
		return here;
	here = calloc(1, sizeof(*here));
	if (here == NULL)
		return NULL;
	here->ticks = ticks;
	pthread_mutex_lock(&lock);
	here->next = all;
	all = here;
	pthread_mutex_unlock(&lock);
	return here;
}

static unsigned drop(struct cv_waiting_frame *waiting, const struct cv_from_guest *owner)
{
	unsigned packets = 0;

	rte_spinlock_lock(&waiting->lock);
	if (waiting->mbuf != NULL && waiting->of[0] == owner) {
		packets = waiting->frame.count;
		rte_pktmbuf_free(waiting->mbuf);
		waiting->mbuf = NULL;
	}
	rte_spinlock_unlock(&waiting->lock);
	return packets;
}

unsigned cv_waiting_frames_drop(struct cv_waiting_frame *own, const struct cv_from_guest *owner)
{
	unsigned packets = drop(own, owner);

	pthread_mutex_lock(&lock);
	for (struct cv_waiting_frame *one = all; one != NULL; one = one->next)
		packets += drop(one, owner);
	pthread_mutex_unlock(&lock);
	return packets;
}

bool cv_waiting_frame_is_full(const struct cv_waiting_frame *waiting)
{
	return waiting->frame.room < SHORTEST || waiting->frame.count == CV_CONVOY_PACKETS_MAX;
}

bool cv_waiting_frame_begin(struct cv_waiting_frame *waiting, const struct cv_from_guest *owner,
	const struct cv_outer *outer, struct rte_mbuf *mbuf, uint8_t *begin, uint8_t *end,
	uint8_t count, const struct cv_view *first, uint64_t now)
{
	const uint8_t *limit = (uint8_t *)mbuf->buf_addr + mbuf->buf_len;

	cv_frame_adopt(&waiting->frame, outer, begin, end, (uint32_t)(limit - end), count, first);
	if (cv_waiting_frame_is_full(waiting))
		return false;
	waiting->mbuf = mbuf;
	waiting->of[0] = owner;
	waiting->of_count = 1;
	waiting->passed = 0;
	waiting->due = now + waiting->ticks;
	return true;
}

uint16_t cv_waiting_frame_add(struct cv_waiting_frame *waiting, const struct cv_from_guest *from,
	const struct cv_view *views, uint16_t n)
{
	const bool is_of = cv_waiting_frame_is_of(waiting, from);
	uint16_t added;

	if (!is_of && waiting->of_count == CV_WAITING_QUEUES)
		return 0;
	added = cv_frame_add(&waiting->frame, views, n);
	if (!is_of && added > 0)
		waiting->of[waiting->of_count++] = from;
	return added;
}

struct rte_mbuf *cv_waiting_frame_end(struct cv_waiting_frame *waiting)
{
	struct rte_mbuf *mbuf = waiting->mbuf;
	uint16_t len;
	const uint8_t *data = cv_frame_close(&waiting->frame, &len);

	waiting->mbuf = NULL;
	if (CV_UNLIKELY(data == NULL)) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	mbuf->data_off = (uint16_t)(data - (uint8_t *)mbuf->buf_addr);
	mbuf->data_len = len;
	mbuf->pkt_len = len;
	return mbuf;
}
