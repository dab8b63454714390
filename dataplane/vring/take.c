// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Out of the guest's buffers: one packet each, or one behind the other.
#include "vring/copy.h"
#include "vring/target.h"
#include "vring/walk.h"

// Copies what lies behind the first bytes of the pieces.
static void copy_out(uint8_t *to, const struct cv_vring_pieces *pieces, uint32_t skip)
{
	for (uint32_t i = 0; i < pieces->count; i++) {
		const struct cv_vring_piece *piece = &pieces->piece[i];
		const uint32_t over = skip < piece->bytes ? skip : piece->bytes;

		memcpy(to, piece->at + over, piece->bytes - over);
		to += piece->bytes - over;
		skip -= over;
	}
}

// A buffer of whatever form. False: there is none, or no room for what is in it. Not inlined: its list of pieces would lie in every call's stack.
static __attribute__((noinline)) bool take_any(struct cv_vring *vring, struct cv_target *target)
{
	const uint32_t header = vring->header_bytes;
	struct cv_vring_place at = cv_vring_here(vring);
	struct cv_vring_pieces pieces;
	struct cv_vring_walk walk;
	uint8_t *data = NULL;
	bool too_long = false;
	uint32_t len;

	if (!cv_vring_walk_begin(&walk, vring, at, false))
		return false;
	pieces.count = pieces.bytes = 0;
	cv_vring_walk_pieces(&walk, &pieces, header + UINT16_MAX + 1);
	len = pieces.bytes > header ? pieces.bytes - header : 0;
	if (len >= CV_VRING_PACKET_MIN && !walk.malformed) {
		too_long = len > UINT16_MAX;
		if (!too_long)
			data = cv_target_place(target, len, &too_long);
		if (data == NULL && !too_long)
			return false;
	}
	cv_vring_walk_end(&walk, &at);
	if (vring->broken)
		return false;
	if (data != NULL)
		copy_out(data, &pieces, header);
	CV_COPIED();
	walk.slot.len = 0;
	cv_vring_retire(vring, &walk.slot, 1, false, vring->is_packed);
	if (data != NULL) {
		cv_target_placed(target, data, len);
		vring->counters.bytes += len;
	} else if (too_long) {
		cv_count(&vring->counters.too_long, 1);
	} else {
		cv_count(&vring->counters.malformed, 1);
		vring->counters.steps += CV_VRING_STEPS_MALFORMED;
	}
	return true;
}

// Copies packets out of plain buffers, each into a buffer of its own. Returns how many; *looked
// becomes how many plain buffers that were.
static CV_INLINE uint16_t copy_each(struct cv_vring *vring, const struct cv_vring_slot *slots,
	struct cv_target *target, uint16_t n, uint16_t *examined)
{
	const uint32_t header = vring->header_bytes;
	uint8_t *const *to = target->to + n;
	uint16_t *lens = target->lens + n;
	const uint32_t room = target->room;
	uint16_t got = 0;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < *examined; i++) {
		const uint32_t len = slots[i].len - header;

		if (CV_LIKELY(i + CV_VRING_AHEAD < *examined))
			cv_vring_prefetch_rest(slots[i + CV_VRING_AHEAD].data + header,
				slots[i + CV_VRING_AHEAD].len - header, false);
		if (CV_UNLIKELY(len > room)) {
			cv_count(&vring->counters.too_long, 1);
			continue;
		}
		cv_vring_copy(to[got], slots[i].data + header, len);
		lens[got++] = (uint16_t)len;
		bytes += len;
	}
	vring->counters.bytes += bytes;
	return got;
}

// As copy_each, but one behind the other into shared buffers, as long as there is room.
static CV_INLINE uint16_t copy_coalesced(struct cv_vring *vring, const struct cv_vring_slot *slots,
	struct cv_target *target, uint16_t n, uint16_t *examined)
{
	const uint32_t header = vring->header_bytes;
	struct cv_view *const first = target->views + n;
	struct cv_view *view = first;
	// The buffer being filled, as long as packets fit: it knows nothing of them meanwhile.
	struct cv_vring_buffer *buffer = &target->buffer[target->at];
	uint8_t *end = buffer->data + buffer->len;
	const uint8_t *limit = buffer->data + buffer->coalesced_max;
	uint32_t packets = buffer->packets;
	uint64_t bytes = 0;
	uint16_t i;

	for (i = 0; i < *examined; i++) {
		const uint32_t len = slots[i].len - header;

		if (CV_LIKELY(i + CV_VRING_AHEAD < *examined))
			cv_vring_prefetch_rest(slots[i + CV_VRING_AHEAD].data + header,
				slots[i + CV_VRING_AHEAD].len - header, false);
		// Numbers: 4 GiB behind an address is no overflow, but behind a pointer's object.
		if (CV_UNLIKELY((uintptr_t)end + len + CV_CONVOY_PREFIX_LEN > (uintptr_t)limit ||
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
				cv_count(&vring->counters.too_long, 1);
				continue;
			}
		}
		cv_vring_copy(end + CV_CONVOY_PREFIX_LEN, slots[i].data + header, len);
		end = cv_target_show(view++, end + CV_CONVOY_PREFIX_LEN, len);
		packets++;
		bytes += len;
	}
	cv_target_close(buffer, end, packets);
	vring->counters.bytes += bytes;
	*examined = i;
	return (uint16_t)(view - first);
}

// What to do after plain buffers.
enum next {
	NEXT_PLAIN, // there may be more of them
	NEXT_ANY, // the next one is something else
	NEXT_STOP, // there is no more, or no room for it
};

// Plain buffers, up to *wanted; *wanted becomes how many there were. Returns the packets.
static CV_INLINE uint16_t take_plain(struct cv_vring *vring, struct cv_target *target, uint16_t n,
	uint16_t *wanted, bool is_packed, bool coalesces, enum next *next)
{
	struct cv_vring_slot slots[CV_VRING_BATCH];
	uint16_t fetched, taken, got;
	bool more;

	fetched = cv_vring_fetch(vring, slots, *wanted, false, is_packed, &more);
	cv_vring_prefetch_used(vring, vring->in_order ? 1 : fetched, is_packed);
	taken = fetched;
	got = coalesces ? copy_coalesced(vring, slots, target, n, &taken)
			: copy_each(vring, slots, target, n, &taken);
	CV_COPIED();
	if (taken > 0)
		cv_vring_retire(vring, slots, taken, false, is_packed);
	*next = taken < fetched     ? NEXT_STOP
		: more              ? NEXT_ANY
		: fetched < *wanted ? NEXT_STOP
				    : NEXT_PLAIN;
	*wanted = taken;
	return got;
}

static CV_INLINE uint16_t take(struct cv_vring *vring, struct cv_target *target, uint16_t n,
	bool is_packed, bool coalesces)
{
	enum next next = vring->log == NULL ? NEXT_PLAIN : NEXT_ANY;
	const uint64_t last_step = vring->counters.steps + CV_VRING_STEPS_MAX;
	uint16_t batch = CV_VRING_BATCH; // plain buffers looked at together
	uint16_t budget = n; // bad buffers count: a guest cannot keep us here

	while (budget > 0 && next != NEXT_STOP && !vring->broken) {
		if (CV_LIKELY(next == NEXT_PLAIN)) {
			uint16_t examined = budget < batch ? budget : batch;

			target->n += take_plain(
				vring, target, target->n, &examined, is_packed, coalesces, &next);
			budget -= examined;
			batch = batch < CV_VRING_BATCH ? 2 * batch : CV_VRING_BATCH;
		} else {
			if (vring->counters.steps >= last_step || !take_any(vring, target))
				break;
			budget--;
			batch = 1;
			next = vring->log == NULL ? NEXT_PLAIN : NEXT_ANY;
		}
	}
	cv_vring_log_used(vring);
	cv_count(&vring->counters.packets, target->n);
	return target->n;
}

CV_HOT uint16_t cv_vring_dequeue(
	struct cv_vring *vring, uint8_t *const *to, uint32_t room, uint16_t *lens, uint16_t n)
{
	// What is longer has no length in 16 bits.
	const uint32_t most = room < UINT16_MAX ? room : UINT16_MAX;
	struct cv_target target = {.to = to, .lens = lens, .room = most};

	return vring->is_packed ? take(vring, &target, n, true, false)
				: take(vring, &target, n, false, false);
}

CV_HOT uint16_t cv_vring_coalesce(struct cv_vring *vring, struct cv_view *views, uint16_t n,
	struct cv_vring_buffer *buffer, uint16_t *buffers)
{
	struct cv_target target = {
		.coalesces = true, .views = views, .buffer = buffer, .buffers = *buffers};
	uint16_t got;

	if (*buffers == 0)
		return 0;
	cv_target_open(&target);
	got = vring->is_packed ? take(vring, &target, n, true, true)
			       : take(vring, &target, n, false, true);
	*buffers = cv_target_used(&target);
	return got;
}
