// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Into shared buffers.
#include "memif/slot.h"
#include "vring/copy.h"

// One packet into as many buffers as it takes. Returns the descriptors that it took, 0: there are not
// enough yet, -1: it never fits.
static int put_chain(struct cv_memif_ring *ring, const uint8_t *from, uint32_t len, bool client)
{
	const uint16_t ready = cv_memif_available(ring, CV_MEMIF_CHAIN_MAX, client);
	struct cv_memif_slot slots[CV_MEMIF_CHAIN_MAX];
	uint64_t room = 0;
	uint16_t count = 0;

	while (count < ready && room < len) {
		if (!cv_memif_slot(
			    ring, (uint16_t)(ring->next + count), client, false, &slots[count])) {
			__atomic_store_n(&ring->broken, true, __ATOMIC_RELAXED);
			return 0;
		}
		room += slots[count++].len;
	}
	if (room < len)
		return ready == CV_MEMIF_CHAIN_MAX || ready == ring->size ? -1 : 0;
	for (uint16_t i = 0; i < count; i++) {
		const uint32_t bytes = slots[i].len < len ? slots[i].len : len;

		memcpy(slots[i].data, from, bytes);
		from += bytes;
		len -= bytes;
		slots[i].len = bytes;
		slots[i].flags = i + 1 < count ? CV_MEMIF_NEXT : 0;
		cv_memif_write(ring, (uint16_t)(ring->next + i), client, &slots[i]);
	}
	cv_memif_advance(ring, count, client);
	return count;
}

// Looks at up to wanted buffers, one for each packet, and asks for their lines. Returns how many hold
// their packets; more: the one behind them does not. A bad one ends the ring when it is the next.
static CV_INLINE uint16_t fetch(struct cv_memif_ring *ring, struct cv_memif_slot *slots,
	const struct cv_view *views, uint16_t wanted, bool client, bool *more)
{
	const uint16_t ready = cv_memif_available(ring, wanted, client);
	uint16_t i;

	if (!client)
		cv_memif_prefetch(ring, ready);
	for (i = 0; i < ready; i++) {
		if (CV_UNLIKELY(!cv_memif_slot(
			    ring, (uint16_t)(ring->next + i), client, false, &slots[i]))) {
			__atomic_store_n(&ring->broken, i == 0, __ATOMIC_RELAXED);
			break;
		}
		if (CV_UNLIKELY(cv_view_packet_len(&views[i]) > slots[i].len))
			break;
		CV_PREFETCH_WRITE(slots[i].data);
	}
	*more = i < ready;
	return i;
}

// Packets into one buffer each.
static CV_INLINE void put_plain(struct cv_memif_ring *ring, struct cv_memif_slot *slots,
	const struct cv_view *views, uint16_t n, bool client)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint32_t len = cv_view_packet_len(&views[i]);

		if (CV_LIKELY(i + 1 < n))
			cv_vring_prefetch_rest(
				slots[i + 1].data, cv_view_packet_len(&views[i + 1]), true);
		cv_vring_copy(slots[i].data, cv_view_packet(&views[i]), len);
		slots[i].len = len;
		slots[i].flags = 0;
		cv_memif_write(ring, (uint16_t)(ring->next + i), client, &slots[i]);
		bytes += len;
	}
	if (n > 0)
		cv_memif_advance(ring, n, client);
	cv_count(&ring->counters.packets, n);
	ring->counters.bytes += bytes;
}

// The next packet, whose buffer is too short. Returns false where there is no room yet. Not inlined:
// its list of slots would lie in every call's stack.
static __attribute__((noinline)) bool put_any(
	struct cv_memif_ring *ring, const struct cv_view *view, bool client, int *steps)
{
	const uint32_t len = cv_view_packet_len(view);
	const int took = put_chain(ring, cv_view_packet(view), len, client);

	*steps += (int)CV_MEMIF_PUT_STEPS_OF(len);
	if (took > 0) {
		cv_count(&ring->counters.packets, 1);
		ring->counters.bytes += len;
	}
	cv_count(&ring->counters.too_long, took < 0);
	*steps -= took < 0 ? CV_MEMIF_CHAIN_MAX : took;
	return took != 0;
}

static CV_INLINE uint16_t put(
	struct cv_memif_ring *ring, const struct cv_view *views, uint16_t n, bool client)
{
	int steps = CV_MEMIF_PUT_STEPS; // a peer cannot keep us here with buffers of a few bytes
	uint16_t batch = CV_MEMIF_BATCH;
	uint16_t done = 0;

	while (done < n && !ring->broken) {
		struct cv_memif_slot slots[CV_MEMIF_BATCH];
		uint16_t wanted = n - done, fetched;
		bool more;

		if (wanted > batch)
			wanted = batch;
		fetched = fetch(ring, slots, views + done, wanted, client, &more);
		put_plain(ring, slots, views + done, fetched, client);
		done += fetched;
		batch = batch < CV_MEMIF_BATCH ? 2 * batch : CV_MEMIF_BATCH;
		if (!more) {
			if (fetched < wanted)
				break;
			continue;
		}
		// What came after this was looked at in vain.
		batch = 1;
		if (CV_UNLIKELY(steps <= 0)) {
			// Not left to the caller, who would come again with a new budget.
			cv_count(&ring->counters.too_long, n - done);
			return n;
		}
		if (!put_any(ring, &views[done], client, &steps))
			break;
		done++;
	}
	return done;
}

CV_HOT uint16_t cv_memif_enqueue(
	struct cv_memif_ring *ring, const struct cv_view *views, uint16_t n)
{
	return ring->client ? put(ring, views, n, true) : put(ring, views, n, false);
}
