// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hot half of foreign flows (foreign.h), compiled for different processors: as that of the flow
// path (run.h) it asks for memory one pass before it reads.
#ifndef CV_FLOW_FOREIGN_RUN_H
#define CV_FLOW_FOREIGN_RUN_H

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "chain/ring.h"
#include "chain/trace_here.h"
#include "flow/common_run.h"
#include "flow/foreign.h"
#include "flow/tcp.h"
#include "flow/zone.h"

#ifndef CV_FLOW_READ_HALF
#define CV_FLOW_READ_HALF() // where a test lets the owner change what is being read
#endif

// A packet of a foreign flow, between the passes.
struct foreign_lane {
	uint16_t view; // its number
	uint16_t signature;
	uint16_t handed; // its place among those on their way
	uint8_t tcp_flags;
	uint32_t at; // bucket, then slot; CV_FLOW_NONE
	struct cv_flow_peer *peer;
	struct cv_flow *flow; // that the slot is of
};

// What was handed over in the burst before is in its ring by now.
static CV_INLINE void foreign_begin(struct cv_flow_foreign *foreign)
{
	if (CV_LIKELY(!foreign->busy))
		return;
	for (unsigned i = 0; i < foreign->now_count; i++) {
		struct cv_flow_peer *peer = foreign->now_peer[i];

		peer->pushed = foreign->now[i]->pushed = cv_ring_pushed(peer->ring);
		foreign->now[i]->state = CV_FLOW_HANDED_WAITS;
	}
	foreign->now_count = 0;
	foreign->busy = false;
	for (unsigned i = 0; i < foreign->peers_count; i++) {
		struct cv_flow_peer *peer = &foreign->peers[i];

		peer->busy = peer->busy && !cv_ring_is_done(peer->ring, peer->pushed);
		foreign->busy |= peer->busy;
	}
}

static CV_INLINE bool is_over(const struct foreign_lane *lane, const struct cv_flow_handed *handed)
{
	return handed->state == CV_FLOW_HANDED_NONE ||
	       (handed->state == CV_FLOW_HANDED_WAITS &&
		       cv_ring_is_done(lane->peer->ring, handed->pushed));
}

static CV_INLINE void hand_over(struct cv_flow_foreign *foreign, const struct foreign_lane *lane)
{
	struct cv_flow_handed *handed = &lane->peer->handed[lane->handed];

	if (is_over(lane, handed)) {
		handed->signature = lane->signature;
		handed->any = false;
	} else {
		handed->any |= handed->signature != lane->signature;
	}
	if (handed->state == CV_FLOW_HANDED_NOW)
		return;
	handed->state = CV_FLOW_HANDED_NOW;
	foreign->busy = lane->peer->busy = true;
	foreign->now[foreign->now_count] = handed;
	foreign->now_peer[foreign->now_count++] = lane->peer;
}

static CV_INLINE bool is_on_its_way(const struct foreign_lane *lane)
{
	struct cv_flow_handed *handed = &lane->peer->handed[lane->handed];

	if (CV_LIKELY(!lane->peer->busy || handed->state == CV_FLOW_HANDED_NONE ||
		      (handed->signature != lane->signature && !handed->any)))
		return false;
	if (!is_over(lane, handed))
		return true;
	handed->state = CV_FLOW_HANDED_NONE;
	return false;
}

// What is read of an entry, in pieces that are looked at as they were written: a load of parts of two
// would wait for them.
struct foreign_entry {
	struct cv_flow flow;
	uint8_t key[16]; // of the packet's direction, and more
	uint8_t before_key[16]; // rewrite_ipv4()
};

// Copies an entry. Returns false if its owner changed it meanwhile, or may have.
static CV_INLINE bool copy_entry(
	const struct foreign_lane *lane, unsigned direction, struct foreign_entry *copy)
{
	const uint32_t *version = &lane->peer->table.versions[(lane->at >> 1) % CV_FLOW_VERSIONS];
	const uint32_t before = __atomic_load_n(version, __ATOMIC_ACQUIRE);

	CV_UNSURE_BEGIN();
	memcpy(&copy->flow, lane->flow, sizeof(copy->flow));
	memcpy(copy->key, cv_flow_stored(lane->flow, direction, false), sizeof(copy->key));
	CV_FLOW_READ_HALF();
	memcpy(copy->before_key, before_answer(lane->flow, direction), sizeof(copy->before_key));
	CV_UNSURE_END();
	__atomic_thread_fence(__ATOMIC_ACQUIRE); // the copy is read before the version is, again
	CV_COPIED();
	return __atomic_load_n(version, __ATOMIC_RELAXED) == before;
}

// Rewrites the packet if its flow is settled. Returns whether it was, and is.
static CV_INLINE bool apply_foreign(
	const struct foreign_lane *lane, const struct cv_view *view, uint64_t tsc)
{
	const struct cv_flow_peer *peer = lane->peer;
	const unsigned direction = lane->at & 1;
	uint8_t *ip = view->data + view->l3;
	struct foreign_entry copy;
	uint32_t now;

	if (lane->at == CV_FLOW_NONE || is_on_its_way(lane) ||
		(lane->tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0 ||
		!copy_entry(lane, direction, &copy))
		return false;
	if (!has_key_ipv4(copy.key, copy.flow.proto, ip) ||
		(copy.flow.flags & CV_FLOW_SETTLED(direction)) == 0 ||
		(copy.flow.flags & (CV_FLOW_DENIED | CV_FLOW_OUTPUT)) != 0 ||
		copy.flow.follows != 0 || (copy.flow.way[0] | copy.flow.way[1]) != 0 ||
		copy.flow.epoch != __atomic_load_n(peer->epoch, __ATOMIC_ACQUIRE))
		return false;
	now = (uint32_t)(tsc >> peer->shift);
	if ((int32_t)(now - copy.flow.seen) >= CV_FLOW_STALE_SHARED)
		cv_flow_see(lane->flow, now); // if it has ended since, a free entry's says nothing
	if (copy.flow.flags & CV_FLOW_REWRITES)
		rewrite_ipv4(&copy.flow, copy.before_key, direction, ip);
	return true;
}

// n <= CV_BURST_MAX packets, views[which[i]], common IPv4 ones of flows that others keep. Those that are
// done with are this worker's now. Returns how many.
static CV_INLINE unsigned foreign_run(struct cv_flow_foreign *foreign, uint8_t self,
	struct cv_view *views, uint8_t *workers, const uint8_t *which, unsigned n)
{
	struct foreign_lane lanes[CV_BURST_MAX];
	const uint64_t tsc = rte_rdtsc();
	unsigned done = 0, count = 0;

	for (unsigned i = 0; i < n; i++) {
		struct cv_flow_peer *peer = &foreign->peers[foreign->peer[workers[which[i]]]];
		const struct cv_view *view = &views[which[i]];
		const uint8_t *ip = view->data + view->l3;
		struct foreign_lane *lane = &lanes[count];
		uint64_t hash;

		if (CV_UNLIKELY(peer->table.buckets == NULL))
			continue;
		hash = hash_ipv4(&peer->secret, ip, ip[9]);
		*lane = (struct foreign_lane){
			.view = which[i],
			.signature = cv_flow_signature(hash),
			.handed = (uint16_t)(hash >> 48) % CV_FLOW_HANDED,
			.tcp_flags = tcp_flags_of(ip + CV_IPV4_LEN, ip[9]),
			.at = cv_flow_bucket_of(hash, peer->table.buckets_count),
			.peer = peer,
		};
		rte_prefetch0(&peer->table.buckets[lane->at]);
		count++;
	}
	for (unsigned i = 0; i < count; i++) {
		struct foreign_lane *lane = &lanes[i];
		const struct cv_flow_bucket *bucket = &lane->peer->table.buckets[lane->at];
		uint32_t same;

		lane->at = CV_FLOW_NONE; // one that stands in its second bucket is handed over
		CV_UNSURE_BEGIN(); // the entry says whose it is, and its version whether that is so
		same = cv_flow_bucket_match(bucket, lane->signature);
		if (same != 0)
			lane->at = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
		CV_UNSURE_END();
		if (same == 0)
			continue;
		lane->flow =
			(struct cv_flow *)(lane->peer->table.flows +
					   (size_t)(lane->at >> 1) * sizeof(struct cv_flow_ipv4));
		rte_prefetch0(lane->flow);
		rte_prefetch0(&lane->peer->table.versions[(lane->at >> 1) % CV_FLOW_VERSIONS]);
	}
	for (unsigned i = 0; i < count; i++) {
		struct foreign_lane *lane = &lanes[i];

		if (!apply_foreign(lane, &views[lane->view], tsc)) {
			hand_over(foreign, lane);
			continue;
		}
		views[lane->view].in |= CV_VIEW_DONE;
		workers[lane->view] = self;
		done++;
	}
	return done;
}

#endif
