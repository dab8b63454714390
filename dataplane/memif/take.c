// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Out of shared buffers: one packet each, or one behind the other.
#include "memif/slot.h"
#include "vring/copy.h"
#include "vring/target.h"

// Reads the descriptors of one packet. Returns how many, 0: it is not all there yet; ok: it is whole,
// within the shared memory, and *len bytes long.
static uint16_t read_chain(struct cv_memif_ring *ring, struct cv_memif_slot *slots, uint16_t ready,
	bool client, bool *ok, uint32_t *len)
{
	uint64_t bytes = 0;
	bool good = true;

	for (uint16_t i = 0; i < ready && i < CV_MEMIF_CHAIN_MAX; i++) {
		const uint16_t at = (uint16_t)(ring->next + i);

		good &= cv_memif_slot(ring, at, client, true, &slots[i]);
		bytes += slots[i].len;
		if (!(slots[i].flags & CV_MEMIF_NEXT)) {
			*ok = good && bytes >= CV_MEMIF_PACKET_MIN && bytes <= CV_MEMIF_PACKET_MAX;
			*len = (uint32_t)bytes;
			return i + 1;
		}
	}
	// A chain that never ends is given back as far as it was looked at.
	*ok = false;
	return ready == ring->size || ready >= CV_MEMIF_CHAIN_MAX
		       ? (ready < CV_MEMIF_CHAIN_MAX ? ready : CV_MEMIF_CHAIN_MAX)
		       : 0;
}

// One packet of whatever form. Returns the descriptors that it took, 0: there is none yet, or no room.
// Not inlined: its list of slots would lie in every call's stack.
static __attribute__((noinline)) uint16_t take_any(
	struct cv_memif_ring *ring, struct cv_target *target, bool client, int *steps)
{
	const uint16_t ready = cv_memif_available(ring, ring->size, client);
	struct cv_memif_slot slots[CV_MEMIF_CHAIN_MAX];
	bool ok, too_long = false;
	uint32_t len = 0, done = 0;
	const uint16_t count = read_chain(ring, slots, ready, client, &ok, &len);
	uint8_t *data = count > 0 && ok ? cv_target_place(target, len, &too_long) : NULL;

	if (count == 0 || (ok && data == NULL && !too_long))
		return 0;
	for (uint16_t i = 0; data != NULL && i < count; i++) {
		memcpy(data + done, slots[i].data, slots[i].len);
		done += slots[i].len;
	}
	CV_COPIED();
	cv_memif_give_back(ring, count, client);
	*steps -= count + (ok ? 0 : CV_MEMIF_STEPS_MALFORMED);
	cv_count(&ring->counters.malformed, !ok);
	cv_count(&ring->counters.too_long, too_long);
	if (data != NULL) {
		cv_target_placed(target, data, len);
		ring->counters.bytes += len;
	}
	return count;
}

// Looks at up to wanted packets of one descriptor each and asks for their bytes. Returns how many;
// more: the packet behind them is of another form.
static CV_INLINE uint16_t fetch(struct cv_memif_ring *ring, struct cv_memif_slot *slots,
	uint16_t wanted, bool client, bool *more)
{
	const uint16_t ready = cv_memif_available(ring, wanted, client);
	uint16_t i;

	cv_memif_prefetch(ring, ready);
	for (i = 0; i < ready; i++) {
		if (CV_UNLIKELY(!cv_memif_slot(ring, (uint16_t)(ring->next + i), client, true,
					&slots[i]) ||
				slots[i].flags != 0 ||
				slots[i].len - CV_MEMIF_PACKET_MIN >
					CV_MEMIF_PACKET_MAX - CV_MEMIF_PACKET_MIN))
			break;
		__builtin_prefetch(slots[i].data);
	}
	*more = i < ready;
	return i;
}

// Copies packets out, each into a buffer of its own.
static CV_INLINE void copy_each(struct cv_memif_ring *ring, const struct cv_memif_slot *slots,
	uint16_t n, struct cv_target *target)
{
	uint8_t *const *to = target->to + target->n;
	uint16_t *lens = target->lens + target->n;
	const uint32_t room = target->room;
	uint16_t got = 0;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint32_t len = slots[i].len;

		if (CV_LIKELY(i + CV_VRING_AHEAD < n))
			cv_vring_prefetch_rest(slots[i + CV_VRING_AHEAD].data,
				slots[i + CV_VRING_AHEAD].len, false);
		if (CV_UNLIKELY(len > room)) {
			cv_count(&ring->counters.too_long, 1);
			continue;
		}
		cv_vring_copy(to[got], slots[i].data, len);
		lens[got++] = (uint16_t)len;
		bytes += len;
	}
	ring->counters.bytes += bytes;
	target->n = (uint16_t)(target->n + got);
}

// As copy_each, but one behind the other into shared buffers, as long as there is room. Returns how
// many descriptors that were.
static CV_INLINE uint16_t copy_coalesced(struct cv_memif_ring *ring,
	const struct cv_memif_slot *slots, uint16_t n, struct cv_target *target)
{
	struct cv_view *view = target->views + target->n;
	// The buffer being filled, as long as packets fit: it knows nothing of them meanwhile.
	struct cv_vring_buffer *buffer = &target->buffer[target->at];
	uint8_t *end = buffer->data + buffer->len;
	const uint8_t *limit = buffer->data + buffer->coalesced_max;
	uint32_t packets = buffer->packets;
	uint64_t bytes = 0;
	uint16_t i;

	for (i = 0; i < n; i++) {
		const uint32_t len = slots[i].len;

		if (CV_LIKELY(i + CV_VRING_AHEAD < n))
			cv_vring_prefetch_rest(slots[i + CV_VRING_AHEAD].data,
				slots[i + CV_VRING_AHEAD].len, false);
		if (CV_UNLIKELY(end + CV_CONVOY_PREFIX_LEN + len > limit ||
				packets == CV_CONVOY_PACKETS_MAX)) {
			bool too_long;
			uint8_t *data;

			cv_target_close(buffer, end, packets);
			data = cv_target_place(target, len, &too_long);
			if (data == NULL && !too_long)
				break;
			buffer = &target->buffer[target->at];
			limit = buffer->data + buffer->coalesced_max;
			end = buffer->data + buffer->len;
			packets = buffer->packets;
			if (data == NULL) {
				cv_count(&ring->counters.too_long, 1);
				continue;
			}
		}
		cv_vring_copy(end + CV_CONVOY_PREFIX_LEN, slots[i].data, len);
		end = cv_target_show(view++, end + CV_CONVOY_PREFIX_LEN, len);
		packets++;
		bytes += len;
	}
	cv_target_close(buffer, end, packets);
	ring->counters.bytes += bytes;
	target->n = (uint16_t)(view - target->views);
	return i;
}

static CV_INLINE void take(struct cv_memif_ring *ring, struct cv_target *target, uint16_t n,
	bool client, bool coalesces)
{
	// Bad packets and the parts of chains count: a peer cannot keep us here.
	int steps = CV_MEMIF_STEPS;
	uint16_t batch = CV_MEMIF_BATCH;

	while (target->n < n && steps > 0 && !ring->broken) {
		struct cv_memif_slot slots[CV_MEMIF_BATCH];
		uint16_t wanted = n - target->n, fetched, took;
		bool more;

		if (wanted > batch)
			wanted = batch;
		fetched = fetch(ring, slots, wanted, client, &more);
		took = fetched;
		if (coalesces)
			took = copy_coalesced(ring, slots, fetched, target);
		else
			copy_each(ring, slots, fetched, target);
		CV_COPIED();
		if (took > 0)
			cv_memif_give_back(ring, took, client);
		steps -= took;
		if (took < fetched || (!more && fetched < wanted))
			break;
		batch = batch < CV_MEMIF_BATCH ? 2 * batch : CV_MEMIF_BATCH;
		if (more) {
			if (steps <= 0 || take_any(ring, target, client, &steps) == 0)
				break;
			// What came after this was looked at in vain.
			batch = 1;
		}
	}
	cv_count(&ring->counters.packets, target->n);
}

CV_HOT uint16_t cv_memif_dequeue(
	struct cv_memif_ring *ring, uint8_t *const *to, uint32_t room, uint16_t *lens, uint16_t n)
{
	struct cv_target target = {.to = to, .lens = lens, .room = room};

	if (ring->client)
		take(ring, &target, n, true, false);
	else
		take(ring, &target, n, false, false);
	return target.n;
}

CV_HOT uint16_t cv_memif_coalesce(struct cv_memif_ring *ring, struct cv_view *views, uint16_t n,
	struct cv_vring_buffer *buffer, uint16_t *buffers)
{
	struct cv_target target = {
		.coalesces = true, .views = views, .buffer = buffer, .buffers = *buffers};

	if (*buffers == 0)
		return 0;
	cv_target_open(&target);
	if (ring->client)
		take(ring, &target, n, true, true);
	else
		take(ring, &target, n, false, true);
	*buffers = cv_target_used(&target);
	return target.n;
}
