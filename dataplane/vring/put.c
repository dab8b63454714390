// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Into the guest's buffers.
#include "vring/copy.h"
#include "vring/walk.h"

#define HEADS_MAX 64 // buffers that one packet may be spread over

// Where a packet is to go.
struct room {
	uint16_t heads;
	struct cv_vring_slot slots[HEADS_MAX];
	struct cv_vring_pieces pieces;
};

enum space {
	SPACE_ENOUGH,
	SPACE_TOO_LITTLE, // yet
	SPACE_NEVER, // the packet is lost
	SPACE_MALFORMED, // the buffers of room, of which one is none
};

// The virtio-net header before each packet: no offloads; in how many buffers the packet lies.
struct header {
	uint8_t flags, gso_type;
	uint16_t words[4];
	uint16_t buffers; // not in the 10 bytes of a guest without VERSION_1 and MRG_RXBUF
} __attribute__((packed));

static_assert(sizeof(struct header) == 12, "as VIRTIO has it");

// One buffer holds the packet. Stored only where it is not there already, from the packet before:
// a line that is only read stays in the guest's cache, too.
static CV_INLINE void put_header(uint8_t *at, bool has_buffers)
{
	const uint32_t last_wanted = has_buffers ? 1u << 16 : 0;
	uint32_t last = 0;
	uint64_t first;

	memcpy(&first, at, sizeof(first));
	if (CV_UNLIKELY(first != 0))
		memset(at, 0, sizeof(first));
	if (CV_LIKELY(has_buffers)) {
		memcpy(&last, at + 8, 4);
		if (CV_UNLIKELY(last != last_wanted))
			memcpy(at + 8, &last_wanted, 4);
	} else {
		memcpy(&last, at + 8, 2);
		if (CV_UNLIKELY(last != 0))
			memset(at + 8, 0, 2);
	}
}

// Adds a buffer's descriptors to those of the buffers before it. False: the ring has not so many,
// and contradicts itself.
static bool add_descriptors(struct cv_vring *vring, uint32_t *descriptors, uint32_t more)
{
	*descriptors += more;
	if (CV_UNLIKELY(*descriptors > vring->size))
		__atomic_store_n(&vring->broken, true, __ATOMIC_RELAXED);
	return !vring->broken;
}

// What was found to hold too little holds no more by now.
static CV_INLINE bool is_short(struct cv_vring *vring, uint32_t bytes)
{
	const uint16_t before = (uint16_t)(vring->short_at.avail - vring->next_avail);
	uint16_t flags;

	if (CV_LIKELY(vring->short_bytes == 0) || bytes < vring->short_bytes)
		return false;
	return vring->is_packed ? !cv_vring_packed_ready(vring, vring->short_at.avail,
					  vring->short_at.wrap, &flags)
				: cv_vring_split_ready(vring, before + 1) <= before;
}

static enum space too_little(struct cv_vring *vring, uint32_t bytes, struct cv_vring_place at)
{
	vring->short_bytes = bytes;
	vring->short_at = at;
	return SPACE_TOO_LITTLE;
}

// Looks for room for `bytes` in the guest's next buffers, 1 to HEADS_MAX of them.
static enum space find_room(
	struct cv_vring *vring, uint32_t bytes, uint64_t last_step, struct room *room)
{
	const int most = vring->mergeable ? HEADS_MAX : 1;
	struct cv_vring_place at = cv_vring_here(vring);
	struct cv_vring_pieces *pieces = &room->pieces;
	uint32_t descriptors = 0;

	pieces->count = pieces->bytes = 0;
	for (room->heads = 0; room->heads < most;) {
		const uint32_t before = pieces->bytes;
		struct cv_vring_walk walk;

		if (descriptors >= vring->size || vring->counters.steps >= last_step)
			return SPACE_NEVER;
		if (!cv_vring_walk_begin(&walk, vring, at, true))
			return too_little(vring, bytes, at);
		cv_vring_walk_pieces(&walk, pieces, bytes);
		cv_vring_walk_end(&walk, &at);
		if (!add_descriptors(vring, &descriptors, walk.slot.descriptors))
			return SPACE_TOO_LITTLE;
		walk.slot.len = pieces->bytes - before;
		room->slots[room->heads++] = walk.slot;
		if (walk.malformed)
			return SPACE_MALFORMED;
		if (pieces->bytes == bytes)
			return SPACE_ENOUGH;
	}
	return SPACE_NEVER;
}

// Copies header and packet into the pieces, which are as many bytes.
static void copy_in(struct cv_vring *vring, const struct cv_vring_pieces *pieces,
	const uint8_t *header, uint32_t header_bytes, const uint8_t *data)
{
	for (uint32_t i = 0; i < pieces->count; i++) {
		const struct cv_vring_piece *piece = &pieces->piece[i];
		const uint32_t first = header_bytes < piece->bytes ? header_bytes : piece->bytes;

		memcpy(piece->at, header, first);
		memcpy(piece->at + first, data, piece->bytes - first);
		if (vring->log != NULL)
			vring->log(vring->log_context, piece->guest, piece->bytes);
		header += first;
		header_bytes -= first;
		data += piece->bytes - first;
	}
}

// One packet into buffers of whatever form. Returns 1: it was put, or it is lost; 0: no room yet.
static int put_any(struct cv_vring *vring, const uint8_t *data, uint32_t len, uint64_t last_step)
{
	const uint32_t header_bytes = vring->header_bytes;
	struct header header = {0};
	struct room room;

	switch (find_room(vring, header_bytes + len, last_step, &room)) {
	case SPACE_TOO_LITTLE:
		return 0;
	case SPACE_NEVER:
		cv_count(&vring->counters.too_long, 1);
		return 1;
	case SPACE_MALFORMED:
		cv_count(&vring->counters.malformed, 1);
		for (uint16_t i = 0; i < room.heads; i++)
			room.slots[i].len = 0;
		break;
	case SPACE_ENOUGH:
		header.buffers = room.heads;
		copy_in(vring, &room.pieces, (const uint8_t *)&header, header_bytes, data);
		cv_count(&vring->counters.packets, 1);
		vring->counters.bytes += len;
	}
	cv_vring_retire(vring, room.slots, room.heads, true, vring->is_packed);
	vring->short_bytes = 0;
	return 1;
}

// Packets into plain buffers, up to wanted. Returns how many were put; any: the next packet or the
// next buffer is not for here.
static CV_INLINE uint16_t put_plain(struct cv_vring *vring, const struct cv_view *views,
	uint16_t wanted, bool is_packed, bool *any)
{
	struct cv_vring_slot slots[CV_VRING_BATCH];
	const uint32_t header = vring->header_bytes;
	uint16_t fetched, i;
	uint64_t bytes = 0;
	bool more;

	fetched = cv_vring_fetch(vring, slots, wanted, true, is_packed, &more);
	cv_vring_prefetch_used(vring, fetched, is_packed);
	for (i = 0; i < fetched; i++) {
		const uint32_t len = cv_view_packet_len(&views[i]);

		if (CV_LIKELY(i + 1u < fetched))
			cv_vring_prefetch_rest(slots[i + 1].data + header,
				cv_view_packet_len(&views[i + 1]), true);
		if (CV_UNLIKELY(header + len > slots[i].len))
			break;
		put_header(slots[i].data, header == sizeof(struct header));
		cv_vring_copy(slots[i].data + header, cv_view_packet(&views[i]), len);
		slots[i].len = header + len;
		bytes += len;
	}
	if (i > 0) {
		cv_vring_retire(vring, slots, i, true, is_packed);
		vring->short_bytes = 0;
	}
	cv_count(&vring->counters.packets, i);
	vring->counters.bytes += bytes;
	vring->counters.steps += fetched - i;
	*any = more || i < fetched;
	return i;
}

// One packet, off the fast path. False: there is no room for it yet. Not inlined: its list of
// pieces would lie in every call's stack.
static __attribute__((noinline)) bool put_one(
	struct cv_vring *vring, const struct cv_view *view, uint64_t *last_step)
{
	const uint32_t len = cv_view_packet_len(view);

	*last_step += CV_VRING_PUT_STEPS_OF(len);
	return !is_short(vring, vring->header_bytes + len) &&
	       put_any(vring, cv_view_packet(view), len, *last_step);
}

static CV_INLINE uint16_t put(
	struct cv_vring *vring, const struct cv_view *views, uint16_t n, bool is_packed)
{
	uint64_t last_step = vring->counters.steps + CV_VRING_PUT_STEPS;
	uint16_t batch = CV_VRING_BATCH; // plain buffers looked at together
	uint16_t done = 0;

	if (n > 0 && CV_UNLIKELY(is_short(vring, vring->header_bytes + cv_view_packet_len(views))))
		return 0;
	while (done < n && !vring->broken) {
		uint16_t wanted = (uint16_t)(n - done), moved;
		bool any;

		if (wanted > batch)
			wanted = batch;
		if (CV_LIKELY(vring->log == NULL)) {
			moved = put_plain(vring, views + done, wanted, is_packed, &any);
			done += moved;
			if (!any) {
				if (moved < wanted)
					break;
				batch = batch < CV_VRING_BATCH ? 2 * batch : CV_VRING_BATCH;
				continue;
			}
		}
		// What came after this was looked at in vain.
		batch = 1;
		if (CV_UNLIKELY(vring->counters.steps >= last_step)) {
			cv_count(&vring->counters.too_long, n - done);
			done = n;
			break;
		}
		if (!put_one(vring, &views[done], &last_step))
			break;
		done++;
	}
	cv_vring_log_used(vring);
	return done;
}

CV_HOT uint16_t cv_vring_enqueue(struct cv_vring *vring, const struct cv_view *views, uint16_t n)
{
	return vring->is_packed ? put(vring, views, n, true) : put(vring, views, n, false);
}
